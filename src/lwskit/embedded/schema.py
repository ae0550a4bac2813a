"""Structural schemas of custom resources: pruning, defaults, unknown fields and nulls. Pure.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", on structural schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lwskit.runtime.typed import TypeTable

Schema = Mapping[str, Any]
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
RULES = "x-kubernetes-validations"
_LARGEST = 2**63
_ROOT = ("apiVersion", "kind", "metadata")


def clone(value: Any) -> Any:
    """A copy of JSON data down to its leaves."""
    if isinstance(value, dict):
        return {k: clone(v) for k, v in value.items()}
    if isinstance(value, list):
        return [clone(v) for v in value]
    return value


def has_rules(schema: Schema) -> bool:
    """Whether there is a rule anywhere in a schema."""
    if schema.get(RULES):
        return True
    below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(has_rules(s) for s in below if isinstance(s, Mapping))


def prune(value: Any, schema: Schema, types: TypeTable, report: Callable[[str], None] | None = None) -> None:
    """Drop, in place, the fields that the schema does not have; `report` is told their paths.

    The root's and embedded resources' apiVersion, kind and metadata stay; what is unknown in metadata goes.
    """
    _prune(value, schema, types, report or _ignore, "", True)


def _ignore(path: str) -> None:
    pass


def _prune(value: Any, schema: Schema, types: TypeTable, report: Callable[[str], None], path: str, root: bool) -> None:
    if isinstance(value, list):
        items = schema.get("items")
        if items is None:
            return
        for i, item in enumerate(value):
            _prune(item, items, types, report, f"{path}[{i}]", bool(items.get(EMBEDDED)))
        return
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    preserve = bool(schema.get(PRESERVE))
    for name in list(value):
        where = f"{path}.{name}" if path else name
        if root and name in _ROOT:
            if name == "metadata" and path and isinstance(value[name], dict):
                for unknown in types.unknown("meta.v1.ObjectMeta", value[name], where):
                    report(unknown)
                value[name] = {k: v for k, v in value[name].items() if k in types.fields("meta.v1.ObjectMeta")}
            continue
        found = properties.get(name)
        if found is not None:
            _prune(value[name], found, types, report, where, bool(found.get(EMBEDDED)))
        elif isinstance(additional, dict):
            _prune(value[name], additional, types, report, where, bool(additional.get(EMBEDDED)))
        elif not preserve and not additional:
            report(where)
            del value[name]


def apply_defaults(value: Any, schema: Schema) -> None:
    """Set, in place, the defaults of absent fields, and of nulls where null is not allowed."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        for name, found in properties.items():
            if "default" in found and (name not in value or (value[name] is None and not found.get("nullable"))):
                value[name] = clone(found["default"])
            if name in value:
                apply_defaults(value[name], found)
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            for name, item in value.items():
                if name not in properties:
                    if item is None and "default" in additional and not additional.get("nullable"):
                        item = value[name] = clone(additional["default"])
                    apply_defaults(item, additional)
    elif isinstance(value, list):
        items = schema.get("items")
        if items:
            for i, item in enumerate(value):
                if item is None and "default" in items and not items.get("nullable"):
                    item = value[i] = clone(items["default"])
                apply_defaults(item, items)


def drop_nulls(value: Any, schema: Schema) -> None:
    """Drop, in place, nulls of fields that may not be null and have no default."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        for name in list(value):
            found = properties.get(name)
            if found is None and isinstance(additional, dict):
                found = additional
            if found is None:
                continue
            if value[name] is None and not found.get("nullable") and "default" not in found:
                del value[name]
            else:
                drop_nulls(value[name], found)
    elif isinstance(value, list):
        items = schema.get("items")
        if items:
            for item in value:
                drop_nulls(item, items)


def whole_numbers(value: Any) -> None:
    """Write, in place, numbers without a fraction as whole ones, those beyond 64 bits as others."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            whole_numbers(item)
        elif isinstance(item, float):
            if item.is_integer() and -_LARGEST < item < _LARGEST:
                value[key] = int(item)
        elif isinstance(item, int) and not -_LARGEST <= item < _LARGEST:
            value[key] = float(item)


def coerce_metadata(obj: dict[str, Any], types: TypeTable) -> dict[str, Any]:
    """The object with its metadata as the typed ObjectMeta encodes it; values of a wrong type raise DecodeError."""
    meta = obj.get("metadata")
    return {**obj, "metadata": types.encode("meta.v1.ObjectMeta", meta, "metadata")}


def to_json_schema(schema: Schema, root: bool = True, *, ranges: bool = False) -> dict[str, Any]:
    """The schema as plain JSON Schema: int-or-string as two types, nullable as a type, without Kubernetes' keywords.

    With `ranges` whole numbers have the bounds of their formats, the lowest number excepted.
    """
    out: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties":
            out[name] = {k: to_json_schema(v, False, ranges=ranges) for k, v in value.items()}
        elif name in ("items", "not") or (name == "additionalProperties" and isinstance(value, dict)):
            out[name] = to_json_schema(value, False, ranges=ranges)
        elif name in ("allOf", "anyOf", "oneOf"):
            out[name] = [to_json_schema(v, False, ranges=ranges) for v in value]
        elif name in ("exclusiveMinimum", "exclusiveMaximum"):
            continue
        elif not name.startswith("x-kubernetes-") and name not in ("description", "default", "nullable", "example"):
            out[name] = value
    for bound in ("Minimum", "Maximum"):
        if schema.get(f"exclusive{bound}"):
            out[f"exclusive{bound}"] = out.pop(bound.lower())
    if schema.get(INT_OR_STRING):
        out.pop("anyOf", None)
        out["type"] = ["integer", "string"]
    if ranges and (schema.get("type") == "integer" or schema.get(INT_OR_STRING)):
        limit = 2**31 if schema.get("format") == "int32" else _LARGEST
        out["allOf"] = [*out.get("allOf", ()), {"exclusiveMinimum": -limit, "exclusiveMaximum": limit}]
    if schema.get("nullable") and "type" in out:
        kinds = out["type"] if isinstance(out["type"], list) else [out["type"]]
        out["type"] = [*kinds, "null"]
        if "enum" in out:
            out["enum"] = [*out["enum"], None]
    if root:
        out.setdefault("$schema", "http://json-schema.org/draft-07/schema#")
    return out
