"""Resource quantities: reading, comparing and the one canonical spelling that an API server writes. Pure.

Kubernetes API conventions: Quantity. A quantity is a signed decimal number with an optional suffix: decimal (`m`, `k`,
`M`…), binary (`Ki`, `Mi`…) or an exponent (`e3`). The canonical spelling keeps the suffix family, has no fraction and
the greatest suffix that leaves none; servers also keep a few spellings that come close to it.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, NamedTuple

QuantityFormat = Literal["decimal", "binary", "exponent"]
"""The family of a quantity's suffix, kept by its canonical spelling."""

_NUMBER = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([^0-9.].*)?", re.DOTALL | re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,4})", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_BY_POWER: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_BINARY_BY_POWER: Final = {power: suffix for suffix, power in _BINARY.items()} | {0: ""}
_NANO: Final = Fraction(1, 10**9)
_MAX: Final = Fraction(2**63 - 1)
_EXACT_DIGITS: Final = 18


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


class _Read(NamedTuple):
    value: Fraction
    form: QuantityFormat
    as_given: bool  # a server writes it as it was written


@lru_cache(maxsize=4096)
def _read(text: str) -> _Read:
    match = _NUMBER.fullmatch(text)
    if match is None or not text:
        raise _fail(text)
    sign, whole, part, suffix = match[1], match[2] or "0", match[3] or "", match[4] or ""
    digits = whole + part
    number = Fraction(int(digits), 10 ** len(part))
    if suffix in _BINARY:
        power = _BINARY[suffix]
        value, form = number * 1024**power, "binary"
        exact = not part and len(whole) + 3 * power <= 14
        as_given = exact and int(digits) % 8 != 0
    else:
        if suffix in _DECIMAL:
            power, form = _DECIMAL[suffix], "decimal"
        elif exponent := _EXPONENT.fullmatch(suffix):
            power, form = int(exponent[1]), "exponent"
        else:
            raise _fail(text)
        value = number * Fraction(10) ** power
        scale = power - len(part)
        exact = len(digits) <= _EXACT_DIGITS and scale >= -9
        # What looks canonical is kept, so a sign or a fraction in thousandths stays.
        as_given = exact and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    if not exact:
        value = _ceil_to(value, _NANO)
        if form == "binary":
            value = min(value, _MAX)
            form = "decimal" if value < 1 else form
    return _Read(-value if sign == "-" else value, form, as_given)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    raise _fail(value)


def parse(value: str | int | float) -> Fraction:
    """The exact value of a quantity. Raises QuantityError for what is none. Kubernetes API conventions: Quantity."""
    return _read(_text(value)).value


def equal(a: str | int | float, b: str | int | float) -> bool:
    """True if two quantities have the same value, however they are spelled. Raises QuantityError."""
    return parse(a) == parse(b)


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    value, form, as_given = _read(text)
    if as_given:
        return text
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
