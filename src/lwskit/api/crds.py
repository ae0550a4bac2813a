"""CustomResourceDefinitions, generated from the models: `python -m lwskit.api.crds --write config/crd` or `--check`.

Specification: 10 §1–3, 50 §1, §2.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from lwskit.api import disaggregated_names, names

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def _crd(
    model: type[Any],
    group: str,
    version: str,
    accepted: Mapping[str, Any],
    *,
    columns: Sequence[Mapping[str, str]] = (),
    scale: Mapping[str, str] | None = None,
) -> str:
    """The CRD of a model as JSON, one version of it; objects have a status."""
    from lwskit.api.structural import schema_of_model

    schema = schema_of_model(model)
    properties = schema["properties"]
    properties["metadata"] = {"type": "object"}
    for name in ("apiVersion", "kind"):
        properties[name].pop("default")
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, **({"scale": dict(scale)} if scale else {})},
    }
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{accepted['plural']}.{group}"},
        "spec": {
            "group": group,
            "names": dict(accepted),
            "scope": "Namespaced",
            "versions": [{**served, **({"additionalPrinterColumns": [*columns, _AGE]} if columns else {})}],
        },
    }
    # Kept as text: reading it is several times faster than a deep copy of what was read.
    return json.dumps(crd)


@lru_cache(maxsize=1)
def _leaderworkerset_json() -> str:
    # pydantic is imported only by those who need a CRD.
    from lwskit.api.leaderworkerset import LeaderWorkerSet

    return _crd(
        LeaderWorkerSet,
        names.GROUP,
        names.VERSION,
        {
            "kind": names.KIND,
            "listKind": names.LIST_KIND,
            "plural": names.PLURAL,
            "shortNames": list(names.SHORT_NAMES),
            "singular": names.SINGULAR,
        },
        columns=(
            {"name": "Ready", "type": "integer", "jsonPath": ".status.readyReplicas"},
            {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Up-to-date", "type": "integer", "jsonPath": ".status.updatedReplicas"},
        ),
        scale={
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.hpaPodSelector",
        },
    )


@lru_cache(maxsize=1)
def _disaggregatedset_json() -> str:
    from lwskit.api.disaggregatedset import DisaggregatedSet

    return _crd(
        DisaggregatedSet,
        disaggregated_names.GROUP,
        disaggregated_names.VERSION,
        {
            "kind": disaggregated_names.KIND,
            "listKind": disaggregated_names.LIST_KIND,
            "plural": disaggregated_names.PLURAL,
            "singular": disaggregated_names.SINGULAR,
        },
    )


@lru_cache(maxsize=1)
def _role_scaler_json() -> str:
    from lwskit.api.disaggregatedset import DisaggregatedSetRoleScaler

    return _crd(
        DisaggregatedSetRoleScaler,
        disaggregated_names.GROUP,
        disaggregated_names.VERSION,
        {
            "kind": disaggregated_names.SCALER_KIND,
            "listKind": disaggregated_names.SCALER_LIST_KIND,
            "plural": disaggregated_names.SCALER_PLURAL,
            "shortNames": list(disaggregated_names.SCALER_SHORT_NAMES),
            "singular": disaggregated_names.SCALER_SINGULAR,
        },
        columns=(
            {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Current", "type": "integer", "jsonPath": ".status.replicas"},
        ),
        scale={
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    )


def leaderworkerset_crd() -> dict[str, Any]:
    """The CRD of LeaderWorkerSet as a new object that the caller may change. Specification: 10 §1–3."""
    return json.loads(_leaderworkerset_json())


def disaggregatedset_crd() -> dict[str, Any]:
    """The CRD of DisaggregatedSet as a new object that the caller may change. Specification: 50 §1."""
    return json.loads(_disaggregatedset_json())


def role_scaler_crd() -> dict[str, Any]:
    """The CRD of DisaggregatedSetRoleScaler as a new object that the caller may change. Specification: 50 §2."""
    return json.loads(_role_scaler_json())


def crds() -> list[dict[str, Any]]:
    """All CRDs of this package, new objects."""
    return [leaderworkerset_crd(), disaggregatedset_crd(), role_scaler_crd()]


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
