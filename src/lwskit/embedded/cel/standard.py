"""The functions and operators of the language itself, and those of optional values. Pure.

Source: the CEL language definition, "List of Standard Definitions"; its proposal 246, on optional values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from lwskit.embedded.cel import regex, times
from lwskit.embedded.cel.functions import define
from lwskit.embedded.cel.values import (
    MISSING,
    NONE,
    Duration,
    EvaluationError,
    Items,
    Map,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    Uint,
    checked,
    checked_unsigned,
    compare,
    equal,
    general_text,
    is_list,
    is_number,
    no_overload,
    shown,
    type_name,
)

_NUMBERS = ("int", "uint", "double")
_ORDERED = (
    *(f"({a}, {a}) -> bool" for a in ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")),
    *(f"({a}, {b}) -> bool" for a in _NUMBERS for b in _NUMBERS if a != b),
)


def _unreachable(*_: Any) -> Any:
    raise AssertionError("the logical operators are evaluated elsewhere")


define("_?_:_", "(bool, A, A) -> A", operator=True)(_unreachable)
define("_&&_", "(bool, bool) -> bool", operator=True)(_unreachable)
define("_||_", "(bool, bool) -> bool", operator=True)(_unreachable)
define("@not_strictly_false", "(bool) -> bool", operator=True)(_unreachable)
define("_==_", "(A, A) -> bool", operator=True)(equal)
define("_!=_", "(A, A) -> bool", operator=True)(lambda a, b: not equal(a, b))
define("_<_", *_ORDERED, operator=True)(lambda a, b: compare(a, b) < 0)
define("_<=_", *_ORDERED, operator=True)(lambda a, b: compare(a, b) <= 0)
define("_>_", *_ORDERED, operator=True)(lambda a, b: compare(a, b) > 0)
define("_>=_", *_ORDERED, operator=True)(lambda a, b: compare(a, b) >= 0)


@define("!_", "(bool) -> bool", operator=True)
def _not(value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_overload()
    return not value


@define(
    "_+_",
    "(bytes, bytes) -> bytes",
    "(double, double) -> double",
    "(duration, duration) -> duration",
    "(duration, timestamp) -> timestamp",
    "(timestamp, duration) -> timestamp",
    "(int, int) -> int",
    "(list(A), list(A)) -> list(A)",
    "(string, string) -> string",
    "(uint, uint) -> uint",
    operator=True,
)
def add(one: Any, two: Any) -> Any:
    """The sum of two values, or one after the other."""
    if is_list(one) and is_list(two):
        return one.joined(two) if isinstance(one, Items) else [*one, *two]
    if isinstance(one, Duration) and isinstance(two, Timestamp):
        one, two = two, one
    if isinstance(one, Timestamp) and isinstance(two, Duration):
        return times.moment(one.nanoseconds + two.nanoseconds, one.ahead)
    _alike("_+_", one, two, str, bytes, Duration, list, Items, Timestamp)
    if isinstance(one, Duration):
        return times.length(one.nanoseconds + two.nanoseconds)
    return _whole(one, one + two)


def _alike(operator: str, one: Any, two: Any, *more: type) -> None:
    """Refuse operands of different types, and those of a type that does not have the operator."""
    if not isinstance(one, (int, float, *more)) or isinstance(one, bool):
        # Texts and times have functions of their own, and are not asked by name.
        raise no_overload() if isinstance(one, str | Timestamp | Duration) else no_overload(operator)
    if (
        type(one) is not type(two)
        or isinstance(one, list | Items)
        or (operator == "_+_" and isinstance(one, Timestamp))
    ):
        raise no_overload()


def _whole(like: Any, value: Any) -> Any:
    """A result of the type of an operand, if it has room for it."""
    if isinstance(like, Uint):
        return checked_unsigned(value)
    return checked(value) if isinstance(like, int) else value


@define(
    "_-_",
    "(double, double) -> double",
    "(duration, duration) -> duration",
    "(int, int) -> int",
    "(timestamp, duration) -> timestamp",
    "(timestamp, timestamp) -> duration",
    "(uint, uint) -> uint",
    operator=True,
)
def _subtract(one: Any, two: Any) -> Any:
    if isinstance(one, Timestamp) and isinstance(two, Duration):
        return times.moment(one.nanoseconds - two.nanoseconds, one.ahead)
    _alike("_-_", one, two, Duration, Timestamp)
    if isinstance(one, Duration | Timestamp):
        return times.length(one.nanoseconds - two.nanoseconds)
    return _whole(one, int(one) - int(two) if isinstance(one, int) else one - two)


_ARITHMETIC = tuple(f"({a}, {a}) -> {a}" for a in ("double", "int", "uint"))


@define("_*_", *_ARITHMETIC, operator=True)
def _multiply(one: Any, two: Any) -> Any:
    _alike("_*_", one, two)
    return _whole(one, one * two)


@define("_/_", *_ARITHMETIC, operator=True)
def _divide(one: Any, two: Any) -> Any:
    _alike("_/_", one, two)
    if isinstance(one, float):
        if two:
            return one / two
        return math.nan if not one or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, two)
    if two == 0:
        raise EvaluationError("division by zero")
    quotient = abs(int(one)) // abs(int(two))
    return _whole(one, quotient if (one < 0) == (two < 0) else -quotient)


@define("_%_", "(int, int) -> int", "(uint, uint) -> uint", operator=True)
def _modulo(one: Any, two: Any) -> Any:
    _alike("_%_", one, two)
    if isinstance(one, float):
        raise no_overload()
    if two == 0:
        raise EvaluationError("modulus by zero")
    if two == -1 and one == -(2**63):
        raise EvaluationError("integer overflow")
    return _whole(one, int(math.copysign(1, one)) * (abs(int(one)) % abs(int(two))))


@define("-_", "(double) -> double", "(int) -> int", operator=True)
def _negate(value: Any) -> Any:
    if not is_number(value) or isinstance(value, Uint):
        raise no_overload()
    return _whole(value, -value)


@define("_[_]", "(list(A), int) -> A", "(map(A, B), A) -> B", operator=True)
@define("_[_]", "(optional(list(A)), int) -> optional(A)", "(optional(map(A, B)), A) -> optional(B)", operator=True)
def index(container: Any, key: Any) -> Any:
    """An item of a list or a map. Raises EvaluationError where there is none."""
    if isinstance(container, Optional):
        return optional_index(container, key)
    if is_list(container):
        place = _place(key)
        if 0 <= place < len(container):
            return container[place]
        raise EvaluationError(f"index out of bounds: {place}")
    if isinstance(container, Map):
        found = container.find(key)
        if found is MISSING:
            raise EvaluationError(f"no such key: {shown(key)}")
        return found
    raise no_overload()


def _place(key: Any) -> int:
    if not is_number(key):
        raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
    if isinstance(key, float) and not key.is_integer():
        raise EvaluationError(f"unsupported index value {shown(key)} in list")
    return int(key)


@define("_[?_]", "(list(A), int) -> optional(A)", "(optional(list(A)), int) -> optional(A)", operator=True)
@define("_[?_]", "(map(A, B), A) -> optional(B)", "(optional(map(A, B)), A) -> optional(B)", operator=True)
def optional_index(container: Any, key: Any) -> Optional:
    """An item of a list or a map, if there is one."""
    if isinstance(container, Optional):
        return optional_index(container.value, key) if container.present else NONE
    if is_list(container):
        place = _place(key)
        return Optional(container[place]) if 0 <= place < len(container) else NONE
    if isinstance(container, Map):
        return Optional(container.find(key))
    raise no_overload()


@define("@in", "(A, list(A)) -> bool", "(A, map(A, B)) -> bool", operator=True)
def _in(value: Any, container: Any) -> bool:
    if isinstance(container, Map):
        return container.find(value) is not MISSING
    if not is_list(container):
        raise no_overload()
    return any(equal(item, value) for item in container)


_SIZED = tuple(f"({a}) -> int" for a in ("bytes", "list(A)", "map(A, B)", "string"))


@define("size", *_SIZED, operator=True)
@define("size", *_SIZED, member=True)
def _size(value: Any) -> int:
    if not isinstance(value, str | bytes | list | Items | Map):
        raise no_overload("size")
    return len(value)


@define("type", "(A) -> type(A)", operator=True)
def _type(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


define("dyn", "(A) -> dyn")(lambda value: value)


def _failed(value: Any, wanted: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


@define("bool", "(bool) -> bool", "(string) -> bool")
def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise _failed(value, "bool")


@define("bytes", "(bytes) -> bytes", "(string) -> bytes")
def _to_bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else value


_FRACTION = re.compile(
    r"[+-]?(\d+(_?\d+)*\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)|nan", re.ASCII | re.IGNORECASE
)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)


@define("double", "(double) -> double", "(int) -> double", "(string) -> double", "(uint) -> double")
def _to_double(value: Any) -> float:
    if isinstance(value, str) and not _FRACTION.fullmatch(value):
        raise _failed(value, "double")
    return float(value)


@define("duration", "(duration) -> duration", "(string) -> duration")
def _to_duration(value: Any) -> Duration:
    found = times.read_duration(value) if isinstance(value, str) else value
    if found is None:
        raise _failed(value, "google.protobuf.Duration")
    return found


@define("timestamp", "(timestamp) -> timestamp", "(int) -> timestamp", "(string) -> timestamp")
def _to_timestamp(value: Any) -> Timestamp:
    if isinstance(value, int):
        return times.moment(value * times.SECOND)
    found = times.read_timestamp(value) if isinstance(value, str) else value
    if found is None:
        raise _failed(value, "google.protobuf.Timestamp")
    return found


def _integral(value: float) -> int:
    if math.isnan(value) or math.isinf(value):
        raise EvaluationError("integer overflow")
    return int(value)


@define("int", *(f"({a}) -> int" for a in ("int", "double", "duration", "string", "timestamp", "uint")))
def _to_int(value: Any) -> int:
    match value:
        case float():
            if not -(2**63) < value < 2**63:
                raise EvaluationError("integer overflow")
            return _integral(value)
        case Duration():
            return value.nanoseconds
        case Timestamp():
            return value.nanoseconds // times.SECOND
        case str():
            if not _WHOLE.fullmatch(value) or not -(2**63) <= int(value) < 2**63:
                raise _failed(value, "int")
    return checked(int(value))


@define("uint", "(uint) -> uint", "(double) -> uint", "(int) -> uint", "(string) -> uint")
def _to_uint(value: Any) -> Uint:
    if isinstance(value, str):
        if not value.isascii() or not value.isdigit() or int(value) >= 2**64:
            raise _failed(value, "uint")
        return Uint(int(value))
    if isinstance(value, float) and (math.isnan(value) or not 0 <= value < 2**64):
        raise EvaluationError("unsigned integer overflow")
    return checked_unsigned(int(value))


@define(
    "string",
    *(f"({a}) -> string" for a in ("string", "bool", "bytes", "double", "duration", "int", "timestamp", "uint")),
)
def to_text(value: Any) -> str:
    """The value as text."""
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
        case float():
            return general_text(value, 6)
        case Duration():
            return times.duration_text(value)
        case Timestamp():
            return times.timestamp_text(value)
        case TypeValue():
            return value.name
    return str(value)


_TWO_TEXTS = "(string, string) -> bool"
define("contains", _TWO_TEXTS, member=True)(lambda text, part: part in text)
define("startsWith", _TWO_TEXTS, member=True)(lambda text, part: text.startswith(part))
define("endsWith", _TWO_TEXTS, member=True)(lambda text, part: text.endswith(part))
define("matches", _TWO_TEXTS)(regex.matches)
define("matches", _TWO_TEXTS, member=True)(regex.matches)


def _define_parts() -> None:
    def part(name: str, read: Callable[[Timestamp, str], int]) -> None:
        define(name, "(timestamp, string) -> int", member=True)(read)
        define(name, "(timestamp) -> int", member=True)(lambda t: read(t, "UTC"))

    for name, reader in times.PARTS.items():
        part(name, reader)
    for name, unit in times.UNITS.items():
        define(name, "(duration) -> int", member=True)(lambda d, unit=unit: times.in_units(d, unit))


_define_parts()


# -- optional values ---------------------------------------------------------------------------------------------------

define("optional.of", "(A) -> optional(A)")(Optional)
define("optional.none", "() -> optional(A)")(lambda: NONE)
define("hasValue", "(optional(A)) -> bool", member=True)(lambda o: o.present)
define("or", "(optional(A), optional(A)) -> optional(A)", member=True)(_unreachable)
define("orValue", "(optional(A), A) -> A", member=True)(_unreachable)
define("last", "(list(A)) -> optional(A)", member=True)(lambda items: Optional(items[-1]) if len(items) else NONE)
define("first", "(list(A)) -> optional(A)", member=True)(lambda items: Optional(items[0]) if len(items) else NONE)


@define("optional.ofNonZeroValue", "(A) -> optional(A)")
def _of_non_zero(value: Any) -> Optional:
    empty = not value if isinstance(value, bool | int | float | str | bytes | list | Items | Map) else value is None
    if isinstance(value, Duration):
        empty = value.nanoseconds == 0
    elif isinstance(value, Optional):
        empty = not value.present
    elif isinstance(value, Opaque):
        empty = False
    return NONE if empty else Optional(value)


@define("value", "(optional(A)) -> A", member=True)
def _value(held: Optional) -> Any:
    if not held.present:
        raise EvaluationError("optional.none() dereference")
    return held.value


@define("optional.unwrap", "(list(optional(A))) -> list(A)")
@define("unwrapOpt", "(list(optional(A))) -> list(A)", member=True)
def _unwrap(items: Any) -> list[Any]:
    found = list(items)
    if not all(isinstance(i, Optional) for i in found):
        raise no_overload()
    return [i.value for i in found if i.present]
