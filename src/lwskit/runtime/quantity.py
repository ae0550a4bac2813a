"""Resource quantities: reading, comparing and the one canonical spelling that an API server writes. Pure.

Kubernetes API conventions: Quantity. A quantity is a signed decimal number with an optional suffix: decimal (`m`, `k`,
`M`…), binary (`Ki`, `Mi`…) or an exponent (`e3`). The canonical spelling keeps the suffix family, has no fraction and
the greatest suffix that leaves none.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

QuantityFormat = Literal["decimal", "binary", "exponent"]
"""The family of a quantity's suffix, kept by its canonical spelling."""

_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,9})")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_BY_POWER: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_BINARY_BY_POWER: Final = {power: suffix for suffix, power in _BINARY.items()} | {0: ""}
_NANO: Final = Fraction(1, 10**9)
_MAX: Final = Fraction(2**63 - 1)
_FAST_DIGITS: Final = 18


class QuantityError(ValueError):
    """Text that is not a quantity; the message names the text and the form that is allowed."""


def _fail(text: object) -> QuantityError:
    return QuantityError(
        f"{text!r} is not a quantity: a number with an optional suffix out of "
        "n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3"
    )


def _ceil_to(value: Fraction, step: Fraction) -> Fraction:
    """`value` ≥ 0 rounded up to a multiple of `step`."""
    return -(-value // step) * step


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[Fraction, QuantityFormat]:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise _fail(text)
    sign, whole, part, suffix = match[1], match[2], match[3] or "", match[4]
    if not whole and not part:
        raise _fail(text)
    digits = len(whole.lstrip("0")) + len(part)
    value = Fraction(int((whole + part) or "0"), 10 ** len(part))
    if suffix in _BINARY:
        form: QuantityFormat = "binary"
        value *= 1024 ** _BINARY[suffix]
        exact = value.denominator == 1 and value <= _MAX
    elif suffix in _DECIMAL:
        form = "decimal"
        power = _DECIMAL[suffix]
        value *= Fraction(10) ** power
        exact = digits <= _FAST_DIGITS and power - len(part) >= -9
    else:
        exponent = _EXPONENT.fullmatch(suffix)
        if exponent is None or abs(int(exponent[1])) > 1000:
            raise _fail(text)
        form = "exponent"
        power = int(exponent[1])
        value *= Fraction(10) ** power
        exact = digits <= _FAST_DIGITS and power - len(part) >= -9
    if not exact:
        # Finer than a billionth is rounded away from zero, and what no 64-bit number holds is capped.
        value = min(_ceil_to(value, _NANO), _MAX)
    return (-value if sign == "-" else value), form


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    raise _fail(value)


def parse(value: str | int | float) -> Fraction:
    """The exact value of a quantity. Raises QuantityError for what is none. Kubernetes API conventions: Quantity."""
    return _read(_text(value))[0]


def equal(a: str | int | float, b: str | int | float) -> bool:
    """True if two quantities have the same value, however they are spelled. Raises QuantityError."""
    return parse(a) == parse(b)


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    value, form = _read(text)
    if value == 0:
        return "0"
    if form == "binary" and (abs(value) < 1024 or value.denominator != 1):
        form = "decimal"
    if form == "binary":
        number, power = value.numerator, 0
        while number % 1024 == 0 and power < 6:
            number, power = number // 1024, power + 1
        return f"{number}{_BINARY_BY_POWER[power]}"
    power = -9
    number = int(value * 10**9)
    while number % 1000 == 0 and (form == "exponent" or power < 18):
        number, power = number // 1000, power + 3
    if form == "exponent":
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_DECIMAL_BY_POWER[power]}"


def canonical(value: str | int | float) -> str:
    """A quantity as an API server writes it: `1000m` → `1`, `1024Mi` → `1Gi`, `0.5` → `500m`, `1.5Gi` → `1536Mi`.

    Raises QuantityError for what is no quantity. Kubernetes API conventions: Quantity.
    """
    return _canonical(_text(value))
