"""Validation of custom resources against their schema, with the causes that a real server gives. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import jsonschema_rs
import orjson

from lwskit.embedded import names
from lwskit.embedded.cel.times import read_long_duration
from lwskit.embedded.failures import FieldError, duplicate, invalid_value, not_supported, required, too_long
from lwskit.embedded.schema import EMBEDDED, INT_OR_STRING, Schema, to_json_schema

_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_TEXT_RULES = ("maxLength", "minLength", "pattern")
"""Rules for texts in the order in which a server looks at them."""
_RANGES = {"int32": 2**31, "int64": 2**63}


_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_FORMATS = {
    "duration": lambda text: read_long_duration(text) is not None,
    "byte": lambda text: _BASE64.fullmatch(text) is not None,
}
"""Formats of texts that JSON Schema does not have, or has otherwise."""


@lru_cache(maxsize=32)
def _compiled(text: bytes, ranges: bool) -> jsonschema_rs.Draft7Validator:
    """A schema, by its text: tests install the same definitions again and again."""
    schema = to_json_schema(orjson.loads(text), ranges=ranges)
    return jsonschema_rs.Draft7Validator(schema, formats=_FORMATS, validate_formats=True)


class SchemaValidator:
    """Checks objects against one structural schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._text = orjson.dumps(schema)
        self._quick = _compiled(self._text, True)

    def errors(self, obj: Mapping[str, Any]) -> list[FieldError]:
        """The broken rules, sorted by the field that breaks them; empty when the object is valid."""
        body = {k: v for k, v in obj.items() if k not in ("apiVersion", "kind", "metadata")}
        found: list[FieldError] = []
        if not self._quick.is_valid(body):
            made = [*_number_errors(body, self._schema, "")]
            typed = {place for place, _ in made}
            for error in _first_of_texts(_compiled(self._text, False).iter_errors(body)):
                place = _path(error.instance_path)
                if place not in typed or error.kind.name != "type":
                    made += [(place if e.field == "<nil>" else e.field, e) for e in _field_errors(error)]
            made.sort(key=lambda one: one[0])
            found = list(dict.fromkeys(e for _, e in made))
        found.extend(_list_errors(body, self._schema, ""))
        return found


def _number_errors(value: Any, schema: Schema, path: str) -> Iterator[tuple[str, FieldError]]:
    """Errors, with their places, of values that are no whole number of their format, in the order of a real server."""
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, item in value.items():
            found = properties.get(name) or (additional if isinstance(additional, dict) else None)
            if found:
                yield from _number_errors(item, found, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and schema.get("type") == "array":
        for i, item in enumerate(value):
            yield from _number_errors(item, schema.get("items") or {}, f"{path}[{i}]")
        return
    if value is None and schema.get("nullable"):
        return
    if schema.get("type") == "integer" and schema.get("format") in _RANGES:
        yield from ((path, e) for e in _formatted(value, schema["format"], path))
    elif schema.get("type") == "integer" and isinstance(value, float):
        yield path, _wrong_type(path, _kind(value), "integer")
        yield path, _unchecked(path, "(default format)")
    elif schema.get(INT_OR_STRING) and not _int_or_string(value):
        yield path, _wrong_type(path, _kind(value), "integer,string")
        if schema.get("anyOf"):
            yield path, _no_schema(path, "at least one schema (anyOf)")
            yield path, _wrong_type(path, _kind(value), "integer")
            if isinstance(value, float):
                yield path, _unchecked(path, "(default format)")


def _int_or_string(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _formatted(value: Any, form: str, path: str) -> Iterator[FieldError]:
    if isinstance(value, str | list):
        yield _wrong_type(path, _kind(value), "integer")
    elif isinstance(value, bool) or not isinstance(value, int):
        yield _wrong_type(path, "float64" if isinstance(value, float) else "", form)
    elif -_RANGES[form] <= value < _RANGES[form]:
        return
    if isinstance(value, float | int) and not isinstance(value, bool):
        yield _unchecked(path, f"with format {form}")


def _wrong_type(path: str, kind: str, wanted: str) -> FieldError:
    text = f'Invalid value: "{kind}": {path} in body must be of type {wanted}: "{kind}"'
    return FieldError("FieldValueTypeInvalid", path or "<nil>", text)


def _unchecked(path: str, form: str) -> FieldError:
    text = f'Invalid value: "": Checked value must be of type integer {form} in {path}'
    return FieldError("FieldValueInvalid", "<nil>", text)


def _no_schema(path: str, word: str) -> FieldError:
    return FieldError("FieldValueInvalid", "<nil>", f'Invalid value: "": "{path}" must validate {word}')


def _path(parts: Iterable[Any]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else str(part))
    return text


def _kind(value: Any) -> str:
    return "null" if value is None else _KINDS.get(type(value), "object")


def _first_of_texts(errors: Iterable[jsonschema_rs.ValidationError]) -> list[jsonschema_rs.ValidationError]:
    """The errors, of a text that breaks several rules only the first: a real server looks no further."""
    found = list(errors)
    first: dict[str, int] = {}
    for error in found:
        if error.kind.name in _TEXT_RULES:
            place, rule = _path(error.instance_path), _TEXT_RULES.index(error.kind.name)
            first[place] = min(rule, first.get(place, rule))
    return [
        error
        for error in found
        if error.kind.name not in _TEXT_RULES or first[_path(error.instance_path)] == _TEXT_RULES.index(error.kind.name)
    ]


def _field_errors(error: jsonschema_rs.ValidationError) -> Iterable[FieldError]:
    field = _path(error.instance_path)
    value: Any = error.instance
    detail: dict[str, Any] = error.kind.as_dict()
    where = field or "<nil>"
    name = detail.get("name", error.kind.name)
    limit: Any = detail.get("limit", detail.get("value"))
    if isinstance(error.instance, float) and isinstance(limit, int):
        limit = f"{float(limit):g}"
    match name:
        case "required":
            missing = detail["property"]
            yield required(f"{field}.{missing}" if field else missing)
        case "type":
            kinds = detail["types"] if "types" in detail else [detail["value"]]
            text = ",".join(sorted(kinds)) if isinstance(kinds, list) else str(kinds)
            text = text.removesuffix(",null")
            yield _wrong_type(field, _kind(value), text)
        case "enum":
            options = [str(o) for o in detail.get("options", detail.get("value", [])) if o is not None]
            yield not_supported(where, value, options)
        case "minimum" | "exclusiveMinimum":
            more = "greater than" if name.startswith("ex") else "greater than or equal to"
            yield invalid_value(where, value, f"{field} in body should be {more} {limit}")
        case "maximum" | "exclusiveMaximum":
            less = "less than" if name.startswith("ex") else "less than or equal to"
            yield invalid_value(where, value, f"{field} in body should be {less} {limit}")
        case "maxLength":
            yield too_long(where, limit)
        case "minLength":
            yield invalid_value(where, value, f"{field} in body should be at least {limit} chars long")
        case "pattern":
            pattern = detail.get("pattern", limit)
            yield invalid_value(where, value, f"{field} in body should match '{pattern}'")
        case "maxItems" | "maxProperties":
            plural = "" if limit == 1 else "s"
            text = f"Too many: {len(value)}: must have at most {limit} item{plural}"
            yield FieldError("FieldValueTooMany", where, text)
        case "minItems":
            yield invalid_value(where, len(value), f"{field} in body should have at least {limit} items")
        case "minProperties":
            yield invalid_value(where, len(value), f"{field} in body should have at least {limit} properties")
        case "uniqueItems":
            yield invalid_value(where, value, f"{field} in body shouldn't contain duplicates")
        case "format":
            form = detail.get("format", limit)
            yield FieldError(
                "FieldValueTypeInvalid",
                where,
                f'Invalid value: "{value}": {field} in body must be of type {form}: "{value}"',
            )
        case "multipleOf":
            yield invalid_value(where, value, f"{field} in body should be a multiple of {limit}")
        case "anyOf" | "oneOfNotValid" | "oneOf":
            word = "at least one schema (anyOf)" if name == "anyOf" else "one and only one schema (oneOf)"
            yield _no_schema(field, word)
        case _:
            yield invalid_value(where, value, error.message)


def _list_errors(value: Any, schema: Schema, path: str) -> Iterable[FieldError]:
    """Duplicates in lists that are sets or maps."""
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, item in value.items():
            found = properties.get(name) or (additional if isinstance(additional, dict) else None)
            if found and isinstance(item, dict | list):
                yield from _list_errors(item, found, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and not schema.get(INT_OR_STRING):
        items = schema.get("items") or {}
        kind = schema.get("x-kubernetes-list-type")
        seen: set[str] = set()
        for i, item in enumerate(value):
            if kind in ("set", "map"):
                mark = item if kind == "set" else _keys(item, schema.get("x-kubernetes-list-map-keys") or (), items)
                text = json.dumps(mark, sort_keys=True)
                if text in seen:
                    yield duplicate(f"{path}[{i}]", mark)
                seen.add(text)
            yield from _list_errors(item, items, f"{path}[{i}]")


def _keys(item: Any, keys: Sequence[str], items: Schema) -> dict[str, Any]:
    if not isinstance(item, dict):
        return {}
    properties = items.get("properties") or {}
    found = {k: item.get(k, (properties.get(k) or {}).get("default")) for k in keys}
    return {k: v for k, v in found.items() if v is not None}


def embedded_errors(value: Any, schema: Schema, path: str = "") -> Iterator[FieldError]:
    """What is wrong with the kinds of resources that are embedded in an object."""
    if isinstance(value, dict):
        if schema.get(EMBEDDED):
            yield from _kind_errors(value, path)
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for name, item in value.items():
            found, where = properties.get(name), f"{path}.{name}" if path else name
            if found is None and isinstance(additional, dict):
                found, where = additional, f"{path}[{name}]"
            if found and isinstance(item, dict | list):
                yield from embedded_errors(item, found, where)
    elif isinstance(value, list) and schema.get("items"):
        for i, item in enumerate(value):
            yield from embedded_errors(item, schema["items"], f"{path}[{i}]")


def _kind_errors(value: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for name in ("apiVersion", "kind"):
        where, given = f"{path}.{name}", value.get(name)
        if name not in value:
            yield required(where)
        elif not isinstance(given, str):
            yield invalid_value(where, given, "must be a string")
        elif not given:
            yield invalid_value(where, given, "must not be empty")
        elif name == "apiVersion" and given.count("/") > 1:
            yield invalid_value(where, given, f"unexpected GroupVersion string: {given}")
        elif name == "kind" and names.dns_1035(given.lower()):
            text = ",".join(names.dns_1035(given.lower()))
            yield invalid_value(where, given, f"may have mixed case, but should otherwise match: {text}")
