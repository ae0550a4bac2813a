"""Values of CEL expressions: what Python's own types do not say, equality and order. Pure.

Booleans, whole numbers of 64 bits, fractions, texts, bytes and null are Python's own; lists are Python's or `Items`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

LOWEST, HIGHEST, HIGHEST_UNSIGNED = -(2**63), 2**63 - 1, 2**64 - 1
MISSING: Any = object()
"""What a map has under a key that it does not have."""


class EvaluationError(Exception):
    """An expression has no value; the text says why, in the words of the CEL tools."""


def no_overload(*what: str) -> EvaluationError:
    """An operation that the types of its operands do not have."""
    return EvaluationError(": ".join(("no such overload", *what)))


class Uint(int):
    """A whole number without a sign."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in nanoseconds."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A moment, in nanoseconds since 1970, and the seconds by which the clock that told it was ahead of UTC."""

    nanoseconds: int
    ahead: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing: `value` is MISSING then."""

    value: Any = MISSING

    @property
    def present(self) -> bool:
        """Whether there is a value."""
        return self.value is not MISSING


NONE = Optional()


class Opaque(ABC):
    """A value of a library's type; such values are equal if their `identity` is."""

    __slots__ = ()
    type_name = ""

    @property
    @abstractmethod
    def identity(self) -> Any:
        """What makes two of them the same."""


class Map:
    """A map that keeps the order of its entries."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[Any, Any]] = ()) -> None:
        self._entries = {_mark(k): (k, v) for k, v in entries}

    def find(self, key: Any) -> Any:
        """The value of a key, or MISSING."""
        found = self._entries.get(_mark(key))
        return MISSING if found is None else found[1]

    def __iter__(self) -> Iterator[Any]:
        """The keys."""
        return (k for k, _ in self._entries.values())

    def put(self, key: Any, value: Any) -> None:
        """Add an entry, in place. Raises EvaluationError for a key that is there."""
        mark = _mark(key)
        if mark in self._entries:
            raise EvaluationError(f"insert failed: key {shown(key)} already exists")
        self._entries[mark] = (key, value)

    def __len__(self) -> int:
        return len(self._entries)

    def same(self, other: Any) -> bool:
        """Whether the other value is a map with equal entries."""
        if not isinstance(other, Map) or len(self) != len(other):
            return False
        for key in self:
            found = other.find(key)
            if found is MISSING or not equal(self.find(key), found):
                return False
        return True


def _mark(key: Any) -> Any:
    """A key as Python compares it: equal numbers of any type are one key, but true is not 1."""
    if isinstance(key, bool):
        return (bool, key)
    if isinstance(key, str | int | float):
        return key
    raise no_overload()


class Items(Sequence[Any]):
    """A list of an object: its items become values when they are asked for.

    `kind` is `set` or `map` for lists that are compared and joined as such, with `keys` for the latter.
    """

    __slots__ = ("_made", "_raw", "_wrap", "_wrapped", "keys", "kind")

    def __init__(
        self, raw: Sequence[Any], wrap: Callable[[Any], Any], kind: str = "", keys: tuple[str, ...] = ()
    ) -> None:
        self._raw = raw
        self._wrap = wrap
        self._wrapped: list[Any] | None = None
        self.kind = kind
        self.keys = keys

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index] if self._wrapped is not None else self._wrap(self._raw[index])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def _all(self) -> list[Any]:
        if self._wrapped is None:
            self._wrapped = [self._wrap(r) for r in self._raw]
        return self._wrapped

    def same(self, other: Any) -> bool:
        """Whether the other value is a list with the same items, in the sense of this list's kind."""
        if not is_list(other):
            raise no_overload()
        if len(self) != len(other):
            return False
        if not self.kind:
            return all(equal(a, b) for a, b in zip(self, other, strict=True))
        own = {self._identity(v): v for v in self}
        seen = set()
        for value in other:
            mark = self._identity(value)
            if mark not in own or (self.kind == "map" and not equal(own[mark], value)):
                return False
            seen.add(mark)
        return len(seen) == len(own)

    def joined(self, other: Sequence[Any]) -> Sequence[Any]:
        """This list and another one: of sets and of lists with keys what is there already is not added again."""
        if not self.kind:
            return [*self, *other]
        found = {self._identity(v): v for v in self}
        for value in other:
            mark = self._identity(value)
            if self.kind == "map" or mark not in found:
                found[mark] = value
        return Items(list(found.values()), _itself, self.kind, self.keys)

    def _identity(self, value: Any) -> Any:
        if self.kind == "map":
            return tuple(_scalar(value.find(k)) if isinstance(value, Map) else None for k in self.keys)
        if is_list(value) or isinstance(value, Map):
            raise EvaluationError("listSet operations are only supported on lists of scalar values")
        return _scalar(value)


def _itself(value: Any) -> Any:
    return value


def _scalar(value: Any) -> Any:
    return None if value is MISSING else (type(value), value)


def is_list(value: Any) -> bool:
    """Whether the value is a list."""
    return isinstance(value, list | Items)


_NAMES = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    Items: "list",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    Optional: "optional_type",
}


def type_name(value: Any) -> str:
    """The name of a value's type."""
    if isinstance(value, Opaque):
        return value.type_name
    return _NAMES.get(type(value), "map")


def is_number(value: Any) -> bool:
    """Whether the value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(one: Any, two: Any) -> bool:
    """Whether two values are equal: numbers by their value, values of different types never."""
    if is_number(one) and is_number(two):
        return one == two
    if one is None or two is None:
        return one is two
    if isinstance(one, Map | Items):
        return one.same(two)
    if isinstance(one, list):
        return is_list(two) and len(one) == len(two) and all(equal(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, Optional) and isinstance(two, Optional):
        return one.present == two.present and (not one.present or equal(one.value, two.value))
    if isinstance(one, Opaque):
        return type(one) is type(two) and one.identity == two.identity
    return type(one) is type(two) and one == two


def compare(one: Any, two: Any) -> int:
    """-1, 0 or 1 for the order of two values. Raises EvaluationError for values without one."""
    if is_number(one) and is_number(two):
        if (isinstance(one, float) and math.isnan(one)) or (isinstance(two, float) and math.isnan(two)):
            raise EvaluationError("NaN values cannot be ordered")
    elif type(one) is not type(two) or not isinstance(one, str | bytes | bool | Duration | Timestamp):
        raise no_overload()
    first: Any = one.nanoseconds if isinstance(one, Duration | Timestamp) else one
    second: Any = two.nanoseconds if isinstance(two, Duration | Timestamp) else two
    return (first > second) - (first < second)


def checked(value: int) -> int:
    """The number, if it has 64 bits. Raises EvaluationError if it has more."""
    if LOWEST <= value <= HIGHEST:
        return value
    raise EvaluationError("integer overflow")


def checked_unsigned(value: int) -> Uint:
    """The same for numbers without a sign."""
    if 0 <= value <= HIGHEST_UNSIGNED:
        return Uint(value)
    raise EvaluationError("unsigned integer overflow")


def shown(value: Any) -> str:
    """A value in the text of an error."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return general_text(value)
        case None:
            return "null"
    return str(value)


def general_text(value: float, digits: int = 21) -> str:
    """A fraction in its shortest form, with an exponent where that is below -4 or not below `digits`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    sign = "-" if text.startswith("-") else ""
    mantissa, _, exponent = text.removeprefix("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    power = int(exponent or 0) + len(whole) - 1
    figures = (whole + fraction).strip("0") if fraction != "0" or whole != "0" else ""
    if whole == "0":
        power = int(exponent or 0) - (len(fraction) - len(fraction.lstrip("0")) + 1)
    if not figures:
        return f"{sign}0"
    if power < -4 or power >= digits:
        rest = f".{figures[1:]}" if len(figures) > 1 else ""
        return f"{sign}{figures[0]}{rest}e{'-' if power < 0 else '+'}{abs(power):02d}"
    return sign + plain_text(figures, power)


def plain_text(figures: str, power: int) -> str:
    """Figures of which the first has the value 10^power, without an exponent."""
    if power < 0:
        return "0." + "0" * (-power - 1) + figures
    if power + 1 >= len(figures):
        return figures + "0" * (power + 1 - len(figures))
    return f"{figures[: power + 1]}.{figures[power + 1 :]}"
