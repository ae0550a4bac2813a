"""What rules in CEL see of a custom resource: the types of its schema, and values of its data. Pure.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", on validation rules:
which types fields have, escaping of names, and what of unknown fields and metadata is visible.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lwskit.embedded.cel import times, types
from lwskit.embedded.cel.checker import KEYWORDS
from lwskit.embedded.cel.cost import Extent
from lwskit.embedded.cel.types import Type
from lwskit.embedded.cel.values import MISSING, EvaluationError, Items, Map, equal, no_overload
from lwskit.embedded.schema import EMBEDDED, INT_OR_STRING, PRESERVE, Schema

_SIGNS = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_WORDS = {word.strip("_"): sign for sign, word in _SIGNS.items()}
_TEXT: Schema = {"type": "string"}
_META: dict[str, Schema] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}},
}
Wrap = Callable[[Any], Any]


def escape(name: str) -> str | None:
    """A field's name as expressions write it, or None for one that they cannot name."""
    if name in KEYWORDS:
        return f"__{name}__"
    if not re.fullmatch(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*", name):
        return None
    return re.sub("__|[-./]", lambda m: _SIGNS[m[0]], name)


def unescape(name: str) -> str | None:
    """The field's name behind one in an expression, or None where that names none."""
    if "__" not in name:
        return name
    wrong = False

    def plain(found: re.Match[str]) -> str:
        nonlocal wrong
        word = found[0][2:-2]
        if word in KEYWORDS:
            wrong = wrong or found[0] != name
            return word
        wrong = wrong or word not in _WORDS
        return _WORDS.get(word, "")

    made = re.sub("__[^_]+__", plain, name)
    return None if wrong else made


def visible(schema: Schema, root: bool) -> Schema:
    """The schema with the metadata that rules see at the root of a resource, also of an embedded one."""
    if not root:
        return schema
    return {**schema, "properties": {**(schema.get("properties") or {}), **_META}}


def type_of(schema: Schema, root: bool, name: str) -> Type | None:
    """The type of values of a schema, None where rules do not see them; objects in it are called by `name` and path."""
    if schema.get(INT_OR_STRING):
        return types.DYN
    schema = visible(schema, root)
    match schema.get("type"):
        case "array":
            items = schema.get("items")
            element = type_of(items, bool(items.get(EMBEDDED)), f"{name}.@idx") if items else None
            return types.list_of(element) if element else None
        case "object":
            additional = schema.get("additionalProperties")
            if isinstance(additional, Mapping):
                value = type_of(additional, bool(additional.get(EMBEDDED)), f"{name}.@elem")
                return types.map_of(types.STRING, value) if value else None
            fields: dict[str, Type] = {}
            for field, inner in (schema.get("properties") or {}).items():
                escaped = escape(field)
                kind = type_of(inner, bool(inner.get(EMBEDDED)), f"{name}.{escaped}") if escaped else None
                if kind is not None and escaped is not None:
                    fields[escaped] = kind
            return Type("object", name, (), fields)
        case "string":
            formats = {"byte": types.BYTES, "duration": types.DURATION} | dict.fromkeys(
                ("date", "date-time"), types.TIMESTAMP
            )
            return formats.get(schema.get("format") or "", types.STRING)
        case "boolean":
            return types.BOOL
        case "number":
            return types.DOUBLE
        case "integer":
            return types.INT
    return None


_REQUEST = 3 * 1024 * 1024
"""The largest request in bytes: what bounds lists, maps and texts that have no limit of their own."""
_FORMAT_LENGTHS = {"duration": 32, "date": 12, "date-time": 32}
_LEAST = {"duration": 3, "date": 12, "date-time": 21}


def extent_of(schema: Schema, root: bool) -> Extent | None:
    """How large values of a schema can be, None where rules do not see them."""
    if schema.get(INT_OR_STRING):
        return Extent(schema["maxLength"] * 4 if "maxLength" in schema else _REQUEST - 2, 1)
    if root:
        given = ((schema.get("properties") or {}).get("metadata") or {}).get("properties") or {}
        lengths = {n: min(given.get(n, {}).get("maxLength", m), m) for n, m in (("name", 253), ("generateName", 252))}
        meta = {n: {**_TEXT, "maxLength": m} for n, m in lengths.items()}
        properties = {**(schema.get("properties") or {}), **_META, "metadata": {"type": "object", "properties": meta}}
        schema = {**schema, "properties": properties}
    match schema.get("type"):
        case "array":
            items = schema.get("items")
            element = extent_of(items, bool(items.get(EMBEDDED))) if items else None
            if element is None:
                return None
            return Extent(schema.get("maxItems", (_REQUEST - 2) // (element.least + 1)), 2, {}, element)
        case "object":
            additional = schema.get("additionalProperties")
            if isinstance(additional, Mapping):
                element = extent_of(additional, bool(additional.get(EMBEDDED)))
                if element is None:
                    return None
                return Extent(schema.get("maxProperties", (_REQUEST - 2) // (element.least + 6)), 2, {}, element)
            return _object_extent(schema)
        case "string":
            return _text_extent(schema)
        case "boolean":
            return Extent(0, 4)
        case "number" | "integer":
            return Extent(0, 1)
    return None


def _object_extent(schema: Schema) -> Extent:
    fields: dict[str, Extent] = {}
    least, needed = 2, schema.get("required") or ()
    for name, inner in (schema.get("properties") or {}).items():
        found = extent_of(inner, bool(inner.get(EMBEDDED)))
        if found is None:
            continue
        escaped = escape(name)
        if escaped is not None:
            fields[escaped] = found
        if name in needed and inner.get("default") is None:
            least += len(name.encode()) + found.least + 4
    return Extent(0, least, fields)


def _text_extent(schema: Schema) -> Extent:
    form = schema.get("format") or ""
    if form in _FORMAT_LENGTHS:
        return Extent(_FORMAT_LENGTHS[form], _LEAST[form])
    if "maxLength" in schema:
        return Extent(schema["maxLength"] * (1 if form == "byte" else 4), 2)
    if schema.get("enum") and form != "byte":
        return Extent(max((len(e.encode()) for e in schema["enum"] if isinstance(e, str)), default=0), 2)
    return Extent(_REQUEST - 2, 2)


def times_at_most(least: int) -> int:
    """How many values of at least so many bytes a request can have."""
    return _REQUEST // (least + 1)


class View(Map):
    """A map or an object of a resource, of which values are made when they are asked for."""

    __slots__ = ("_known", "_raw", "_rest")

    def __init__(self, raw: Mapping[str, Any], known: Mapping[str, Wrap] | None, rest: Wrap | None) -> None:
        self._raw = raw
        self._known = known
        self._rest = rest

    def _wrap(self, name: str) -> Wrap | None:
        return self._known.get(name) if self._known is not None else self._rest

    def find(self, key: Any) -> Any:
        """The value of a field or key, or MISSING."""
        if not isinstance(key, str):
            raise no_overload()
        name = unescape(key) if self._known is not None else key
        value = self._raw.get(name, MISSING) if name is not None else MISSING
        if value is MISSING or name is None or (value is None and self._known is not None):
            return MISSING
        wrap = self._wrap(name)
        return MISSING if wrap is None else wrap(value)

    def __iter__(self) -> Iterator[str]:
        """The keys that rules see."""
        for name in self._raw:
            if self._wrap(name) is not None:
                yield (escape(name) or name) if self._known is not None else name

    def __len__(self) -> int:
        return len(self._raw)

    def same(self, other: Any) -> bool:
        """Whether the other one has equal fields; of those that rules do not see the data is compared."""
        if not isinstance(other, Map):
            raise no_overload()
        if len(self) != len(other):
            return False
        for name, value in self._raw.items():
            if self._wrap(name) is None:
                if not isinstance(other, View):
                    raise no_overload()
                if name in other._raw and other._raw[name] != value:
                    return False
                continue
            one, two = self.find(name), other.find(name)
            if (one is MISSING) != (two is MISSING):
                return False
            if one is not MISSING and not equal(one, two):
                return False
        return True


def wrapper(schema: Schema) -> Wrap:
    """The function that makes values of data of a schema. What it makes raises EvaluationError for data that does not
    fit."""
    inner = _wrapper(schema)
    nullable = bool(schema.get("nullable"))

    def wrap(raw: Any) -> Any:
        if raw is not None:
            return inner(raw)
        if nullable:
            return None
        raise EvaluationError("invalid data, got null for schema with nullable=false")

    return wrap


def _wrapper(schema: Schema) -> Wrap:
    if schema.get(INT_OR_STRING):
        return _plain(str, int, text="invalid data, expected XIntOrString value to be either a string or integer")
    match schema.get("type"):
        case "object":
            return _object(schema)
        case "array":
            return _array(schema)
        case "string":
            return _string(schema.get("format") or "")
        case "number":
            return lambda raw: float(raw) if isinstance(raw, int | float) else _misfit("float")
        case "integer":
            return _plain(int, text="invalid data, expected int")
        case "boolean":
            return _plain(bool, text="invalid data, expected bool")
    return _itself


def _itself(raw: Any) -> Any:
    return raw


def _misfit(wanted: str) -> Any:
    raise EvaluationError(f"invalid data, expected {wanted}")


def _plain(*kinds: type, text: str) -> Wrap:
    def wrap(raw: Any) -> Any:
        if type(raw) not in kinds:
            raise EvaluationError(text)
        return raw

    return wrap


def _object(schema: Schema) -> Wrap:
    schema = visible(schema, bool(schema.get(EMBEDDED)))
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    known = {name: wrapper(s) for name, s in properties.items() if _seen(s)} if properties else None
    rest = wrapper(additional) if isinstance(additional, Mapping) and known is None else None

    def wrap(raw: Any) -> Any:
        return (
            View(raw, known, rest)
            if isinstance(raw, dict)
            else _misfit("a map for the provided schema with type=object")
        )

    return wrap


def _seen(schema: Schema) -> bool:
    """Whether rules see values of the schema: not of data of which only is said that it is kept."""
    return bool(schema.get("type") or schema.get(INT_OR_STRING) or schema.get(PRESERVE))


def _array(schema: Schema) -> Wrap:
    item = wrapper(schema.get("items") or {})
    kind = schema.get("x-kubernetes-list-type") or ""
    keys = tuple(escape(k) or k for k in schema.get("x-kubernetes-list-map-keys") or ())
    kind = kind if kind in ("set", "map") else ""

    def wrap(raw: Any) -> Any:
        return (
            Items(raw, item, kind, keys)
            if isinstance(raw, list)
            else _misfit("an array for the provided schema with type=array")
        )

    return wrap


def _string(form: str) -> Wrap:
    if form == "byte":
        return _bytes
    read, text = {
        "duration": (times.read_long_duration, "Invalid duration {0}: unable to parse {0} as duration"),
        "date": (times.read_date, "Invalid date formatted string {0}"),
        "date-time": (times.read_timestamp, "Invalid date-time formatted string {0}"),
    }.get(form, (_itself, ""))

    def wrap(raw: Any) -> Any:
        found = read(raw) if isinstance(raw, str) else None
        if found is None:
            raise EvaluationError(text.format(raw) if isinstance(raw, str) else "invalid data, expected string")
        return found

    return wrap


def _bytes(raw: Any) -> bytes:
    try:
        return base64.b64decode(raw, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise EvaluationError(f"Invalid byte formatted string {raw}") from None
