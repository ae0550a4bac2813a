"""The table of functions: which there are, for which types, and what they do. Pure.

Libraries add to it with `define`; a signature is written as `(string, list(T)) -> int`, where a single capital letter
is any type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lwskit.embedded.cel import types
from lwskit.embedded.cel.types import Type
from lwskit.embedded.cel.values import (
    Duration,
    Map,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    is_list,
)

Run = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """A function for arguments of certain types; of a `member` the first argument stands before the dot."""

    function: str
    member: bool
    arguments: tuple[Type, ...]
    result: Type
    run: Run
    parameters: frozenset[Type]

    def accepts(self, values: Sequence[Any]) -> bool:
        """Whether the values are of these types, as far as their own types say."""
        return len(values) == len(self.arguments) and all(map(_is_of, values, self.arguments))


FUNCTIONS: dict[str, list[Overload]] = {}
OPERATORS: set[str] = set()
"""Functions whose refusal of values does not name them: operators, and what every type answers by itself."""


def define(name: str, *signatures: str, member: bool = False, operator: bool = False) -> Callable[[Run], Run]:
    """Make a Python function a function of the language, for these signatures."""

    def add(run: Run) -> Run:
        if operator:
            OPERATORS.add(name)
        for text in signatures:
            *arguments, result = signature(text)
            parameters = frozenset(p for a in (*arguments, result) for p in _parameters(a))
            made = Overload(name, member, tuple(arguments), result, run, parameters)
            FUNCTIONS.setdefault(name, []).append(made)
        return run

    return add


def _parameters(kind: Type) -> Iterable[Type]:
    if kind.kind == "param":
        yield kind
    for inner in kind.parameters:
        yield from _parameters(inner)


_PLAIN = {
    str(t): t
    for t in (
        types.BOOL,
        types.BYTES,
        types.DOUBLE,
        types.INT,
        types.STRING,
        types.UINT,
        types.NULL,
        types.DYN,
        types.DURATION,
        types.TIMESTAMP,
    )
}
_TOKEN = re.compile(r"[\w.@]+|[(),]|->")


def signature(text: str) -> list[Type]:
    """The types of a signature: of its arguments, and last of its result."""
    tokens = _TOKEN.findall(text)
    made: list[Type] = []
    at = 1
    while tokens[at] != ")":
        kind, at = _read(tokens, at)
        made.append(kind)
        at += tokens[at] == ","
    made.append(_read(tokens, at + 2)[0])
    return made


def _read(tokens: list[str], at: int) -> tuple[Type, int]:
    name = tokens[at]
    at += 1
    inner: list[Type] = []
    if at < len(tokens) and tokens[at] == "(":
        while tokens[at] != ")":
            kind, at = _read(tokens, at + 1)
            inner.append(kind)
        at += 1
    match name:
        case "list" | "map" | "type":
            return Type(name, "", tuple(inner)), at
        case "optional":
            return types.optional(*inner), at
    if len(name) == 1:
        return types.parameter(name), at
    return _PLAIN.get(name) or types.opaque(name), at


_CLASSES: dict[str, type] = {
    "bool": bool,
    "bytes": bytes,
    "double": float,
    "string": str,
    "uint": Uint,
    "null": type(None),
    "duration": Duration,
    "timestamp": Timestamp,
    "map": Map,
    "type": TypeValue,
}


def _is_of(value: Any, kind: Type) -> bool:
    match kind.kind:
        case "dyn" | "param":
            return True
        case "int":
            return type(value) is int
        case "list":
            return is_list(value)
        case "opaque":
            if kind.name == "optional_type":
                return isinstance(value, Optional)
            return isinstance(value, Opaque) and value.type_name == kind.name
    return isinstance(value, _CLASSES[kind.kind])
