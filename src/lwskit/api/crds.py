"""CustomResourceDefinitions, generated from the models: `python -m lwskit.api.crds --write config/crd` or `--check`.

Specification: 10 §1–3. The schemas of templates are in a table that tools/schemas/podtemplate.py writes.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from lwskit.api import names

_DROPPED = ("title", "additionalProperties")


@lru_cache(maxsize=1)
def _templates() -> Mapping[str, Any]:
    raw = resources.files("lwskit.api").joinpath("podtemplate-schema.json").read_bytes()
    return json.loads(raw)["definitions"]


def _expand(schema: Any) -> Any:
    """A schema of the table with the definitions that it refers to in their places."""
    if isinstance(schema, list):
        return [_expand(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        schema = _templates()[schema["$ref"]] | {key: value for key, value in schema.items() if key != "$ref"}
    return {key: _expand(value) for key, value in schema.items()}


def template_schema(name: str) -> dict[str, Any]:
    """The structural schema of `core.v1.PodTemplateSpec` or `core.v1.PersistentVolumeClaim`. Specification: 10 §1."""
    return _expand({"$ref": name})


def structural(schema: dict[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema as pydantic writes it in the form that a CRD may have: without references and null.

    `definitions` are those that its references name.
    """
    if "$ref" in schema:
        target = definitions[schema["$ref"].rsplit("/", 1)[-1]]
        schema = target | {key: value for key, value in schema.items() if key != "$ref"}
    if "x-template" in schema:
        extra = {"description": schema["description"]} if "description" in schema else {}
        return template_schema(schema["x-template"]) | extra
    options = schema.get("anyOf")
    if options and any(option.get("type") == "null" for option in options):
        (option,) = (option for option in options if option.get("type") != "null")
        outer = {key: value for key, value in schema.items() if key != "anyOf"}
        inner = structural(option, definitions)
        return inner | structural(outer, definitions)
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DROPPED or (key == "default" and value is None):
            continue
        if key == "const":
            out["enum"] = [value]
        elif key == "properties":
            if not value:
                continue
            out[key] = {name: structural(part, definitions) for name, part in value.items()}
        elif key == "items":
            out[key] = structural(value, definitions)
        else:
            out[key] = value
    if out.get("format") in ("int32", "int64"):
        # The format says it; the bounds of the type itself need not be repeated.
        if out.get("minimum") in (names.INT32_MIN, names.INT64_MIN):
            del out["minimum"]
        if out.get("maximum") in (names.INT32_MAX, names.INT64_MAX):
            del out["maximum"]
    return out


def schema_of_model(model: type[Any]) -> dict[str, Any]:
    """The structural schema of a pydantic model of this package."""
    raw = model.model_json_schema(by_alias=True)
    return structural({key: value for key, value in raw.items() if key != "$defs"}, raw.get("$defs", {}))


@lru_cache(maxsize=1)
def _leaderworkerset_crd() -> dict[str, Any]:
    # pydantic is imported only by those who need a CRD.
    from lwskit.api.leaderworkerset import LeaderWorkerSet

    schema = schema_of_model(LeaderWorkerSet)
    properties = schema["properties"]
    properties["metadata"] = {"type": "object"}
    for name in ("apiVersion", "kind"):
        properties[name].pop("default")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": names.CRD_NAME},
        "spec": {
            "group": names.GROUP,
            "names": {
                "kind": names.KIND,
                "listKind": names.LIST_KIND,
                "plural": names.PLURAL,
                "shortNames": list(names.SHORT_NAMES),
                "singular": names.SINGULAR,
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [
                        {"name": "Ready", "type": "integer", "jsonPath": ".status.readyReplicas"},
                        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
                        {"name": "Up-to-date", "type": "integer", "jsonPath": ".status.updatedReplicas"},
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.hpaPodSelector",
                        },
                    },
                }
            ],
        },
    }


def leaderworkerset_crd() -> dict[str, Any]:
    """The CRD of LeaderWorkerSet as a new object that the caller may change. Specification: 10 §1–3."""
    return copy.deepcopy(_leaderworkerset_crd())


def crds() -> list[dict[str, Any]]:
    """All CRDs of this package, new objects."""
    return [leaderworkerset_crd()]


def file_name(crd: Mapping[str, Any]) -> str:
    """The name of a CRD's file: group, underscore, plural."""
    return f"{crd['spec']['group']}_{crd['spec']['names']['plural']}.yaml"


def plain_yaml(document: Mapping[str, Any]) -> str:
    """An object as YAML that every reader of manifests understands: fields in order, equal parts written out."""
    import yaml

    class Plain(yaml.SafeDumper):
        """Writes equal parts out instead of naming them."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    return yaml.dump(dict(document), Dumper=Plain, sort_keys=True, width=120)


def to_yaml(crd: Mapping[str, Any]) -> str:
    """The text of a CRD's file."""
    return "# Generated by python -m lwskit.api.crds --write config/crd; do not edit.\n" + plain_yaml(crd)


def main(arguments: list[str] | None = None) -> int:
    """Write the CRDs' files, or compare with them. Returns the exit status: 1 if a file is not current."""
    parser = argparse.ArgumentParser(prog="python -m lwskit.api.crds", description="Writes the CRDs of lwskit.")
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", metavar="DIRECTORY", type=Path, help="write the files into this directory")
    choice.add_argument(
        "--check",
        metavar="DIRECTORY",
        type=Path,
        nargs="?",
        const=Path("config/crd"),
        help="compare with the files of this directory (config/crd) and write nothing",
    )
    options = parser.parse_args(arguments)
    status = 0
    for crd in crds():
        text = to_yaml(crd)
        if options.write is not None:
            options.write.mkdir(parents=True, exist_ok=True)
            (options.write / file_name(crd)).write_text(text)
            continue
        path = options.check / file_name(crd)
        if not path.is_file() or path.read_text() != text:
            print(f"{path} is not current: run python -m lwskit.api.crds --write {options.check}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
