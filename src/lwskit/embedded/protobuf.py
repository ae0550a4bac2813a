"""Request bodies in the binary encoding, which kubectl's generators and Go programs use for built-in kinds. Pure.

Sources: Protocol Buffers documentation, "Encoding"; Kubernetes documentation, "API Concepts", on protobuf.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.typed import Field, TypeRef, TypeTable

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ANYWHERE = {"DeleteOptions": "meta.v1.DeleteOptions"}

Numbers = dict[int, "Field | Numbers"]


class Decoder:
    """Turns binary objects into JSON ones, by the field numbers in the table of types."""

    def __init__(self, types: TypeTable) -> None:
        self._types = types
        self._numbers: dict[str, Numbers] = {}

    def body(self, raw: bytes) -> bytes:
        """The JSON of a binary request body. Raises InvalidRequest when it cannot be read."""
        if not raw.startswith(_MAGIC):
            raise InvalidRequest(
                "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
            )
        try:
            return orjson.dumps(self._unknown(raw[len(_MAGIC) :]))
        except (IndexError, struct.error, UnicodeDecodeError, ValueError, KeyError) as e:
            raise InvalidRequest(f"the protobuf body cannot be decoded: {e}") from e

    def _unknown(self, raw: bytes) -> Any:
        """The envelope: which kind, and the object's bytes."""
        api_version = kind = ""
        content = b""
        for number, value in _fields(raw):
            if number == 1:
                for inner, text in _fields(value):
                    if inner == 1:
                        api_version = text.decode()
                    elif inner == 2:
                        kind = text.decode()
            elif number == 2:
                content = value
        name = self._types.kind_type(api_version, kind) or _ANYWHERE.get(kind)
        if name is None or name not in self._types:
            raise InvalidRequest(f"no kind {kind!r} of {api_version!r} is known in protobuf; send it as JSON")
        return {"apiVersion": api_version, "kind": kind} | self._struct(name, content)

    def _table(self, type_name: str) -> Numbers:
        found = self._numbers.get(type_name)
        if found is None:
            found = self._numbers[type_name] = {}
            for field in self._types.fields(type_name).values():
                if not field.number:
                    continue
                *around, last = (int(n) for n in field.number.split("."))
                inner = found
                for number in around:
                    step = inner.setdefault(number, {})
                    assert isinstance(step, dict)
                    inner = step
                inner[last] = field
        return found

    def _struct(self, type_name: str, raw: bytes) -> dict[str, Any]:
        out: dict[str, Any] = {}
        self._into(self._table(type_name), raw, out)
        return out

    def _into(self, numbers: Numbers, raw: bytes, out: dict[str, Any]) -> None:
        for number, value in _fields(raw):
            field = numbers.get(number)
            if isinstance(field, dict):
                self._into(field, value, out)
            elif field is not None:
                ref = field.type
                if ref.shape == "list":
                    assert ref.element is not None
                    out.setdefault(field.name, []).append(self._value(ref.element, value))
                elif ref.shape == "map":
                    assert ref.element is not None
                    self._entry(ref.element, value, out.setdefault(field.name, {}))
                else:
                    out[field.name] = self._value(ref, value)

    def _entry(self, element: TypeRef, raw: bytes, out: dict[str, Any]) -> None:
        key, value = "", b""
        for number, part in _fields(raw):
            if number == 1:
                key = part.decode()
            elif number == 2:
                value = part
        if element.shape == "list" and element.element is not None:
            out[key] = [self._value(element.element, item) for number, item in _fields(value) if number == 1]
        else:
            out[key] = self._value(element, value)

    def _value(self, ref: TypeRef, value: Any) -> Any:
        if ref.shape == "struct":
            return self._struct(ref.name, value)
        match ref.name:
            case "string":
                return value.decode()
            case "bool":
                return bool(value)
            case "int32" | "int64":
                return value - (1 << 64) if value >= 1 << 63 else value
            case "float64":
                return struct.unpack("<d", value)[0]
            case "bytes":
                return base64.b64encode(value).decode()
            case "quantity":
                return next((text.decode() for number, text in _fields(value) if number == 1), "0")
            case "intorstring":
                return self._int_or_string(value)
            case "time" | "microtime":
                return self._moment(value, ref.name)
            case _:
                raw = next((text for number, text in _fields(value) if number == 1), b"")
                if raw.startswith(_MAGIC):
                    return self._unknown(raw[len(_MAGIC) :])
                return orjson.loads(raw) if raw else None

    def _int_or_string(self, raw: bytes) -> int | str:
        found = dict(_fields(raw))
        if found.get(1):
            return found.get(3, b"").decode()
        number = found.get(2, 0)
        return number - (1 << 64) if number >= 1 << 63 else number

    def _moment(self, raw: bytes, kind: str) -> str | None:
        found = dict(_fields(raw))
        if not found:
            return None
        seconds, nanos = found.get(1, 0), found.get(2, 0)
        seconds = seconds - (1 << 64) if seconds >= 1 << 63 else seconds
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ" if kind == "time" else "%Y-%m-%dT%H:%M:%S.%fZ")


def _fields(raw: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: integers, or bytes for everything else. Raises IndexError and ValueError."""
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(raw, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(raw, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} is not supported")
        if at + size > len(raw):
            raise ValueError("a field is longer than the message")
        yield number, raw[at : at + size]
        at += size


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
