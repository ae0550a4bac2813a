"""Expressions as trees: what the parser makes of a text, with the places of its parts. Pure.

The parser is that of cel-expr-python, the CEL project's own for Python. It writes trees in the binary form of the
language's published message types (`ParsedExpr` of syntax.proto), which is read here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from lwskit.embedded.cel.values import Uint


class CompileError(Exception):
    """A text that is no valid expression; the text says where and why, in lines as the CEL tools print them."""


@dataclass(slots=True, eq=False)
class Node:
    """One part of an expression; `id` tells its place."""

    id: int


@dataclass(slots=True, eq=False)
class Literal(Node):
    """A constant."""

    value: Any


@dataclass(slots=True, eq=False)
class Name(Node):
    """A variable."""

    name: str


@dataclass(slots=True, eq=False)
class Select(Node):
    """A field of an operand; with `test` whether it is there."""

    operand: Node
    name: str
    test: bool = False


@dataclass(slots=True, eq=False)
class Call(Node):
    """A function or operator, with a target in front of the dot or without."""

    function: str
    arguments: list[Node]
    target: Node | None = None


@dataclass(slots=True, eq=False)
class ListNode(Node):
    """A list that is written out; `optional` are the places of elements that may be missing."""

    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Entry(Node):
    """An entry of a map or a field of a message that is written out."""

    key: Node | str
    value: Node
    optional: bool = False


@dataclass(slots=True, eq=False)
class MapNode(Node):
    """A map that is written out, or a message where `message` names its type."""

    entries: list[Entry]
    message: str = ""


@dataclass(slots=True, eq=False)
class Fold(Node):
    """A comprehension: what the macros over lists and maps become."""

    range: Node
    variable: str
    second: str
    accumulator: str
    start: Node
    condition: Node
    step: Node
    result: Node


@dataclass(slots=True)
class Source:
    """The text of an expression and the places of its parts."""

    text: str
    positions: dict[int, int] = field(default_factory=dict)

    def error(self, place: int, message: str) -> str:
        """A message about the part with that number, with its line and a mark below it."""
        offset = self.positions.get(place, 0)
        before = self.text[:offset]
        line = before.count("\n") + 1
        column = offset - (before.rfind("\n") + 1)
        shown = self.text.split("\n")[line - 1].replace("\t", " ")
        marks = "".join("\uff0e" if ord(c) > 127 else "." for c in shown[:column])
        wide = column < len(shown) and ord(shown[column]) > 127
        return f"ERROR: <input>:{line}:{column + 1}: {message}\n | {shown}\n | {marks}{chr(0xFF3E) if wide else '^'}"


@cache
def _environment() -> Any:
    """The parser; imported when the first expression is there."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional

    return cel.NewEnv(extensions=[ext_optional.ExtOptional()])


_TEXTS = (
    ("has() argument must be a field selection", "invalid argument to has() macro"),
    *(
        (f"{name}() variable name must be a simple identifier", "argument must be a simple name")
        for name in ("all", "exists", "exists_one")
    ),
    *(
        (f"{name}() variable name must be a simple identifier", "argument is not an identifier")
        for name in ("map", "filter")
    ),
)
"""What the parser says of macros, and what a real server does."""


def parse(text: str) -> tuple[Node, Source]:
    """The tree of an expression and its source. Raises CompileError for a text that is none."""
    try:
        raw: bytes = _environment().compile(text, disable_check=True).serialize()
    except RuntimeError as e:
        message = str(e).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
        for said, meant in _TEXTS:
            message = message.replace(said, meant)
        raise CompileError(message) from e
    parsed = next(v for n, v in _fields(raw) if n == 2)
    expression, info = b"", b""
    for number, value in _fields(parsed):
        if number == 2:
            expression = value
        elif number == 3:
            info = value
    source = Source(text)
    for number, value in _fields(info):
        if number == 4:
            entry = dict(_fields(value))
            source.positions[entry.get(1, 0)] = entry.get(2, 0)
    return _node(expression), source


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(raw: bytes) -> Iterator[tuple[int, Any]]:
    """The numbers and values of a message's fields: numbers for varints, bytes for everything else."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        match tag & 7:
            case 0:
                value, at = _varint(raw, at)
                yield tag >> 3, value
            case 1:
                yield tag >> 3, raw[at : at + 8]
                at += 8
            case _:
                size, at = _varint(raw, at)
                yield tag >> 3, raw[at : at + size]
                at += size


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _literal(raw: bytes) -> Any:
    for number, value in _fields(raw):
        match number:
            case 1:
                return None
            case 2:
                return bool(value)
            case 3:
                return _signed(value)
            case 4:
                return Uint(value)
            case 5:
                return struct.unpack("<d", value)[0]
            case 6:
                return value.decode()
            case _:
                return value
    return None


def _node(raw: bytes) -> Node:
    place, kind, body = 0, 0, b""
    for number, value in _fields(raw):
        if number == 2:
            place = value
        else:
            kind, body = number, value
    match kind:
        case 3:
            return Literal(place, _literal(body))
        case 4:
            return Name(place, dict(_fields(body)).get(1, b"").decode())
        case 5:
            found = dict(_fields(body))
            return Select(place, _node(found[1]), found[2].decode(), bool(found.get(3)))
        case 6:
            return _call(place, body)
        case 7:
            return _list(place, body)
        case 8:
            return _map(place, body)
        case _:
            return _fold(place, body)


def _call(place: int, raw: bytes) -> Call:
    call = Call(place, "", [])
    for number, value in _fields(raw):
        if number == 1:
            call.target = _node(value)
        elif number == 2:
            call.function = value.decode()
        else:
            call.arguments.append(_node(value))
    return call


def _list(place: int, raw: bytes) -> ListNode:
    elements: list[Node] = []
    optional: set[int] = set()
    for number, value in _fields(raw):
        if number == 1:
            elements.append(_node(value))
        elif isinstance(value, int):
            optional.add(value)
        else:
            at = 0
            while at < len(value):
                one, at = _varint(value, at)
                optional.add(one)
    return ListNode(place, elements, frozenset(optional))


def _map(place: int, raw: bytes) -> MapNode:
    made = MapNode(place, [])
    for number, value in _fields(raw):
        if number == 1:
            made.message = value.decode()
            continue
        found = dict(_fields(value))
        key = found[2].decode() if 2 in found else _node(found[3])
        made.entries.append(Entry(found.get(1, 0), key, _node(found[4]), bool(found.get(5))))
    return made


def _fold(place: int, raw: bytes) -> Fold:
    found = dict(_fields(raw))
    texts = [found.get(n, b"").decode() for n in (1, 8, 3)]
    parts = [_node(found[n]) for n in (2, 4, 5, 6, 7)]
    return Fold(place, parts[0], *texts, *parts[1:])
