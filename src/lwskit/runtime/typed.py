"""How a typed API server reads and writes an object: a table of types and an encoder over plain dicts. Pure.

A table is JSON that a tool of the repository writes from the types of the Kubernetes API:

    {"source": "…", "kinds": {"v1/Pod": "core.v1.Pod", …},
     "types": {"core.v1.PodSpec": {"atomic": 1, "fields": {"containers": {…}, …}}, …}}

The fields of a type stand in the order of its declaration, in which a typed server writes them.

`atomic` marks a struct that server-side apply replaces as a whole. The keys of a field:

    t  type: string bool int32 int64 float64 bytes quantity intorstring time microtime duration any, a struct's name,
       `[]T` a list, `map:T` a map from strings, `*T` a pointer
    e  1: left out when empty (false, 0, "", no pointer, empty list or map; a struct is never empty)
    z  1: left out when it is the zero value, structs too
    r  1: required by the schema
    l  list type of server-side apply: atomic, set or map; k: the keys of a map list
    a  "atomic": a map or struct that server-side apply replaces as a whole
    s  patch strategy of a strategic merge patch, m: its merge key
    d  the default that the type's declaration names, c: the same where it names a constant
    n  the field's number in the binary encoding, behind those of the messages around it that JSON flattens: "2.1"
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from lwskit.runtime import quantity

Shape = Literal["scalar", "struct", "list", "map", "any"]
"""The JSON form of a type."""

_MISSING: Final = object()
_RANGES: Final = {"int32": 2**31, "int64": 2**63}
_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_ZEROS: Final[dict[str, Any]] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "float64": 0,
    "quantity": "0",
    "intorstring": 0,
    "duration": "0s",
    "bytes": None,
    "time": None,
    "microtime": None,
    "any": None,
}


class DecodeError(ValueError):
    """A value that its type cannot hold. `path` is where (`spec.containers[0].name`), the message says what instead."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path or 'object'}: {message}")
        self.path = path


class MissingError(DecodeError):
    """A field without which an object is not to be read is not there; `path` is the field's."""


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A type as a field or element names it. `name` is the scalar's or struct's; `element` is a list's or map's."""

    shape: Shape
    name: str
    element: TypeRef | None = None
    pointer: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct; the meaning of the parts is in the module's description."""

    name: str
    type: TypeRef
    omit_empty: bool = False
    omit_zero: bool = False
    required: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    atomic: bool = False
    patch_strategy: tuple[str, ...] = ()
    merge_key: str = ""
    default: Any = None
    number: str = ""


@lru_cache(maxsize=4096)
def _parse_type(text: str) -> TypeRef:
    pointer = text.startswith("*")
    body = text[1:] if pointer else text
    if body.startswith("[]"):
        return TypeRef("list", "", _parse_type(body[2:]), pointer)
    if body.startswith("map:"):
        return TypeRef("map", "", _parse_type(body[4:]), pointer)
    if body == "any":
        return TypeRef("any", body, None, pointer)
    return TypeRef("scalar" if body in _ZEROS else "struct", body, None, pointer)


def _integer(value: Any, path: str, limit: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DecodeError(path, f"must be an integer, not {_shown(value)}")
    if not -limit <= value < limit:
        raise DecodeError(path, f"{value} is out of range")
    return value


def _shown(value: Any) -> str:
    """A value as it stands in a message: JSON, cut."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


def _instant(value: str, path: str, spec: Literal["seconds", "microseconds"]) -> str:
    if spec == "seconds" and _SECONDS.fullmatch(value):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise DecodeError(path, f"must be a time such as 2026-01-31T12:00:00Z, not {_shown(value)}") from None
    if moment.tzinfo is None:
        raise DecodeError(path, f"must be a time with its zone such as 2026-01-31T12:00:00Z, not {_shown(value)}")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat("T", spec) + "Z"


def _scalar(kind: str, value: Any, path: str) -> Any:
    if kind == "bool":
        if not isinstance(value, bool):
            raise DecodeError(path, f"must be true or false, not {_shown(value)}")
        return value
    if kind in _RANGES:
        return _integer(value, path, _RANGES[kind])
    if kind == "float64":
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise DecodeError(path, f"must be a number, not {_shown(value)}")
        return value
    if kind == "quantity":
        try:
            return quantity.canonical(value)
        except quantity.QuantityError as error:
            raise DecodeError(path, str(error)) from None
    if kind == "intorstring" and not isinstance(value, str):
        return _integer(value, path, 2**31)
    if not isinstance(value, str):
        raise DecodeError(path, f"must be a string, not {_shown(value)}")
    if kind == "time":
        return _instant(value, path, "seconds")
    if kind == "microtime":
        return _instant(value, path, "microseconds")
    if kind == "bytes":
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise DecodeError(path, "must be base64") from None
    return value


class TypeTable:
    """The types of a table, for encoding objects and for asking about their fields. Never changed after it is made."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        """Take a table as decoded from JSON; it is read as needed, so a large table costs little."""
        self.source: str = data.get("source", "")
        self.kinds: Mapping[str, str] = data.get("kinds", {})
        self._types: Mapping[str, Mapping[str, Any]] = data["types"]
        self._fields: dict[str, dict[str, Field]] = {}

    def extended(self, types: Mapping[str, Any], kinds: Mapping[str, str] | None = None) -> TypeTable:
        """A new table with further types (in the table's format) and kinds, which may refer to those of this one."""
        return TypeTable(
            {"source": self.source, "kinds": {**self.kinds, **(kinds or {})}, "types": {**self._types, **types}}
        )

    def __contains__(self, type_name: str) -> bool:
        return type_name in self._types

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def kind_type(self, api_version: str, kind: str) -> str | None:
        """The name of the struct of a kind (`apps/v1`, `StatefulSet`), or None if the table has no such kind."""
        return self.kinds.get(f"{api_version}/{kind}")

    def atomic(self, type_name: str) -> bool:
        """True if server-side apply replaces values of this struct as a whole."""
        return bool(self._types[type_name].get("atomic"))

    def fields(self, type_name: str) -> Mapping[str, Field]:
        """The fields of a struct by JSON name. Raises KeyError for a type that the table does not have."""
        fields = self._fields.get(type_name)
        if fields is None:
            fields = {name: self._field(name, raw) for name, raw in self._types[type_name]["fields"].items()}
            self._fields[type_name] = fields
        return fields

    def _field(self, name: str, raw: Mapping[str, Any]) -> Field:
        ref = _parse_type(raw["t"])
        return Field(
            name,
            ref,
            omit_empty=bool(raw.get("e")),
            omit_zero=bool(raw.get("z")),
            required=bool(raw.get("r")),
            list_type=raw.get("l", ""),
            list_keys=tuple(raw.get("k", ())),
            atomic=raw.get("a") == "atomic" or (ref.shape == "struct" and self.atomic(ref.name)),
            patch_strategy=tuple(s for s in raw.get("s", "").split(",") if s),
            merge_key=raw.get("m", ""),
            default=raw.get("d", raw.get("c")),
            number=raw.get("n", ""),
        )

    def encode(self, type_name: str, value: Mapping[str, Any] | None, path: str = "") -> dict[str, Any]:
        """An object of a struct type as a typed server decodes and encodes it again; the argument is not changed.

        Unknown fields are dropped, empty fields are dropped or written as each field's rule says, quantities and
        times are canonical. Fields come in the table's order, the keys of maps sorted. None reads as the empty object.
        `path` is put before paths in errors.
        Raises DecodeError for a value of another type, KeyError for a type that the table does not have.
        """
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            raise DecodeError(path, f"must be an object, not {_shown(value)}")
        out: dict[str, Any] = {}
        prefix = f"{path}." if path else ""
        for name, field in self.fields(type_name).items():
            given = value.get(name, _MISSING)
            ref = field.type
            if given is _MISSING or given is None:
                # The zero value of what is left out when zero, or when empty and can be empty, is not written.
                if field.omit_zero or (field.omit_empty and self._can_be_empty(ref)):
                    continue
                out[name] = self._zero(ref)
                continue
            encoded = self._encode(ref, given, prefix + name)
            if not ref.pointer:
                if field.omit_empty and self._can_be_empty(ref) and not encoded:
                    continue
                if field.omit_zero and encoded == self._zero(ref):
                    continue
            out[name] = encoded
        return out

    def _encode(self, ref: TypeRef, value: Any, path: str) -> Any:
        if value is None:
            return self._zero(ref)
        match ref.shape:
            case "scalar":
                return _scalar(ref.name, value, path)
            case "struct":
                return self.encode(ref.name, value, path)
            case "any":
                return value
            case "list":
                if not isinstance(value, list):
                    raise DecodeError(path, f"must be a list, not {_shown(value)}")
                assert ref.element is not None
                return [self._encode(ref.element, item, f"{path}[{i}]") for i, item in enumerate(value)]
            case "map":
                if not isinstance(value, Mapping):
                    raise DecodeError(path, f"must be an object, not {_shown(value)}")
                assert ref.element is not None
                element = ref.element
                if element.name == "bytes":
                    # Nothing is written as empty data here, as a real server does it.
                    value = {key: "" if item is None else item for key, item in value.items()}
                return {str(key): self._encode(element, value[key], f"{path}[{key}]") for key in sorted(value)}

    def _can_be_empty(self, ref: TypeRef) -> bool:
        # Structs are never empty, and neither are the scalars that are structs underneath.
        if ref.pointer or ref.shape in ("list", "map", "any"):
            return True
        return ref.shape == "scalar" and ref.name not in ("quantity", "intorstring", "time", "microtime", "duration")

    def _zero(self, ref: TypeRef) -> Any:
        if ref.pointer or ref.shape in ("list", "map", "any"):
            return None
        return self.encode(ref.name, None) if ref.shape == "struct" else _ZEROS[ref.name]

    def conform(
        self, type_name: str, value: Any, path: str = "", needed: Mapping[str, Sequence[str]] = MappingProxyType({})
    ) -> dict[str, Any]:
        """An object of a struct type as it is, for those who read it without looking at the type of each value.

        Other than `encode` it keeps unknown and empty fields, and quantities and times as they are spelled. Null in a
        field counts as its absence, and `2.0` is a whole number. The argument is not changed; `path` is put before
        paths in errors, and `needed` has by type the fields that may not be absent. Raises DecodeError for a value of
        another type, MissingError for one that is absent, KeyError for a type that the table does not have.
        """
        return self._conform(TypeRef("struct", type_name), value, path, needed)

    def _conform(self, ref: TypeRef, value: Any, path: str, needed: Mapping[str, Sequence[str]]) -> Any:
        match ref.shape:
            case "any":
                return value
            case "scalar":
                read = _scalar(ref.name, value, path)
                return read if isinstance(read, int) else value
            case "list":
                if not isinstance(value, list):
                    raise DecodeError(path, f"must be a list, not {_shown(value)}")
                assert ref.element is not None
                return [self._conform(ref.element, item, f"{path}[{i}]", needed) for i, item in enumerate(value)]
        if not isinstance(value, Mapping):
            raise DecodeError(path, f"must be an object, not {_shown(value)}")
        out: dict[str, Any] = {}
        if ref.element is not None:
            for key, item in value.items():
                if item is not None:
                    out[key] = self._conform(ref.element, item, f"{path}[{key}]", needed)
            return out
        fields, prefix = self.fields(ref.name), f"{path}." if path else ""
        for key, item in value.items():
            field = fields.get(key)
            if field is None:
                out[key] = item
            elif item is not None:
                out[key] = self._conform(field.type, item, prefix + key, needed)
        for key in needed.get(ref.name, ()):
            if key not in out:
                raise MissingError(prefix + key, "must not be missing")
        return out

    def unknown(self, type_name: str, value: Any, path: str = "") -> list[str]:
        """The paths of fields of an object that its type does not have, in the object's order.

        `path` is put before them. A value of a wrong form has none. Raises KeyError for an unknown type.
        """
        found: list[str] = []
        self._unknown(TypeRef("struct", type_name), value, path, found.append)
        return found

    def _unknown(self, ref: TypeRef, value: Any, path: str, report: Callable[[str], None]) -> None:
        if ref.shape == "struct" and isinstance(value, Mapping):
            fields = self.fields(ref.name)
            for name, item in value.items():
                where = f"{path}.{name}" if path else str(name)
                if name not in fields:
                    report(where)
                else:
                    self._unknown(fields[name].type, item, where, report)
        elif ref.shape == "list" and isinstance(value, list) and ref.element is not None:
            for i, item in enumerate(value):
                self._unknown(ref.element, item, f"{path}[{i}]", report)
        elif ref.shape == "map" and isinstance(value, Mapping) and ref.element is not None:
            for key, item in value.items():
                self._unknown(ref.element, item, f"{path}[{key}]", report)


def load(source: bytes | str | Path) -> TypeTable:
    """A table from its JSON bytes or from the file at a path. Raises OSError and ValueError as reading does."""
    raw = source if isinstance(source, bytes) else Path(source).read_bytes()
    return TypeTable(json.loads(raw))


@lru_cache(maxsize=8)
def load_resource(package: str, name: str) -> TypeTable:
    """The table that lies as file `name` in an installed package; read once. Raises FileNotFoundError."""
    return load(resources.files(package).joinpath(name).read_bytes())
