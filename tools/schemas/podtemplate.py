"""Writes src/lwskit/api/podtemplate-schema.json: the structural schema of pod and claim templates, without prose.

Source: the published Kubernetes schemas that the kubernetes-validate package carries; defaults and what counts as one
come from src/lwskit/api/pod-types.json (tools/gotypes). `--check` compares with the file and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

VERSION = "1.37.0"
ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "src/lwskit/api/podtemplate-schema.json"
TYPES = ROOT / "src/lwskit/api/pod-types.json"
ROOTS = ("core.v1.PodTemplateSpec", "core.v1.PersistentVolumeClaim")

# Numbers and texts are both allowed in these; the pattern is that of a quantity.
QUANTITY = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}
INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
SPECIAL: dict[str, dict[str, Any]] = {
    "api.resource.Quantity": QUANTITY,
    "util.intstr.IntOrString": INT_OR_STRING,
    "meta.v1.Time": {"type": "string", "format": "date-time"},
    "meta.v1.MicroTime": {"type": "string", "format": "date-time"},
    # Templates have only these of an object's metadata (specification 10 §1).
    "meta.v1.ObjectMeta": {
        "type": "object",
        "properties": {
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "name": {"type": "string"},
            "namespace": {"type": "string"},
        },
    },
}
KEPT = ("format", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type")


def short(name: str) -> str:
    """The table's name of a published definition."""
    for prefix in ("io.k8s.apimachinery.pkg.apis.", "io.k8s.apimachinery.pkg.", "io.k8s.api."):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    raise SystemExit(f"the definition {name} is of no known group")


def published() -> dict[str, Any]:
    """The definitions of the published schemas, or an exit with what to install."""
    try:
        import kubernetes_validate
    except ImportError:
        raise SystemExit("kubernetes-validate is not installed: pip install 'lwskit[dev]'") from None
    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / f"v{VERSION}-local"
    definitions = json.loads((folder / "_definitions.json").read_text())["$defs"]
    known = ("io.k8s.api.core.", "io.k8s.apimachinery.")
    return {short(name): schema for name, schema in definitions.items() if name.startswith(known)}


class Extractor:
    """Collects the definitions that the templates need, in structural form."""

    def __init__(self, definitions: dict[str, Any], types: dict[str, Any]) -> None:
        self.definitions = definitions
        self.types = types
        self.out: dict[str, Any] = {}

    def reference(self, ref: str) -> dict[str, Any]:
        name = short(ref.rsplit("/", 1)[-1])
        if name in SPECIAL:
            return SPECIAL[name] if name != "meta.v1.ObjectMeta" else self.define(name)
        return self.define(name)

    def define(self, name: str) -> dict[str, Any]:
        if name not in self.out:
            self.out[name] = {}
            self.out[name] = SPECIAL[name] if name in SPECIAL else self.structure(self.definitions[name], name)
        return {"$ref": name}

    def structure(self, schema: dict[str, Any], owner: str = "") -> dict[str, Any]:
        if "$ref" in schema:
            found = self.reference(schema["$ref"])
            extra = {key: schema[key] for key in KEPT if key in schema}
            return found | extra
        kind = schema["type"]
        if isinstance(kind, list):
            (kind,) = (k for k in kind if k != "null")
        out: dict[str, Any] = {"type": kind} | {key: schema[key] for key in KEPT if key in schema}
        if "required" in schema:
            out["required"] = schema["required"]
        if "items" in schema:
            out["items"] = self.structure(schema["items"])
        if isinstance(schema.get("additionalProperties"), dict):
            out["additionalProperties"] = self.structure(schema["additionalProperties"])
        if "properties" in schema:
            fields = self.types.get(owner, {}).get("fields", {})
            out["properties"] = {}
            for name, part in sorted(schema["properties"].items()):
                structural = self.structure(part)
                if "d" in fields.get(name, {}):
                    structural = structural | {"default": fields[name]["d"]}
                out["properties"][name] = structural
        return out


def build() -> str:
    """The text of the table: one line for each definition, so that a change is a small difference."""
    extractor = Extractor(published(), json.loads(TYPES.read_text())["types"])
    for root in ROOTS:
        extractor.define(root)
    lines = [
        f"{json.dumps(name)}:{json.dumps(schema, sort_keys=True, separators=(',', ':'))}"
        for name, schema in sorted(extractor.out.items())
    ]
    return f'{{"source":"Kubernetes {VERSION}",\n"definitions":{{\n' + ",\n".join(lines) + "\n}}\n"


def main() -> int:
    """Write the table, or with --check compare; the exit status is 1 if it is not current."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the file and write nothing")
    text = build()
    if parser.parse_args().check:
        if TARGET.read_text() == text:
            return 0
        print(f"{TARGET.relative_to(ROOT)} is not current: run {Path(__file__).relative_to(ROOT)}", file=sys.stderr)
        return 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
