"""Schemas as CustomResourceDefinitions may have them, from the pydantic models of this package.

Specification: 10 §1. The schemas of templates are in a table that tools/schemas/podtemplate.py writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
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
    """The structural schema of a type of the table, such as `core.v1.PodTemplateSpec`. Specification: 10 §1."""
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
