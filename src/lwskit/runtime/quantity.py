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
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,3})", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_BY_POWER: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_BINARY_BY_POWER: Final = {power: suffix for suffix, power in _BINARY.items()} | {0: ""}
_NANO: Final = -9
"""The power of ten of the finest step."""
_MAX: Final = Fraction(2**63 - 1)
_MAX_DIGITS: Final = 19
_EXACT_DIGITS: Final = 18
_LONGEST: Final = 256
"""Characters of a text from which on it is no quantity: reading it should take no time to speak of."""
_SHOWN: Final = 60


class QuantityError(ValueError):
    """Text that is not a quantity; the message names the text and the form that is allowed."""


def _fail(text: object) -> QuantityError:
    shown = repr(text) if not isinstance(text, str) or len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"
    return QuantityError(
        f"{shown} is not a quantity: a number with an optional suffix out of "
        "n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3"
    )


class _Parts(NamedTuple):
    """A text taken apart: digits without a point, of which `places` are behind it, and what the suffix says."""

    negative: bool
    digits: str
    places: int
    power: int
    form: QuantityFormat


def _parts(text: str) -> _Parts:
    match = _NUMBER.fullmatch(text) if 0 < len(text) <= _LONGEST else None
    if match is None:
        raise _fail(text)
    sign, whole, part, suffix = match[1], match[2] or "0", match[3] or "", match[4] or ""
    if suffix in _DECIMAL:
        power, form = _DECIMAL[suffix], "decimal"
    elif suffix in _BINARY:
        power, form = _BINARY[suffix], "binary"
    elif exponent := _EXPONENT.fullmatch(suffix):
        power, form = int(exponent[1]), "exponent"
    else:
        raise _fail(text)
    return _Parts(sign == "-", whole + part, len(part), power, form)


def _is_kept(parts: _Parts) -> bool:
    """Whether a server writes the text as it is: what looks canonical, so a sign or a fraction in thousandths stays."""
    digits = parts.digits
    if parts.form == "binary":
        short = not parts.places and len(digits) + 3 * parts.power <= 14
        return short and int(digits) % 8 != 0
    scale = parts.power - parts.places
    short = len(digits) <= _EXACT_DIGITS and scale >= _NANO
    return short and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _rounded(digits: str, scale: int) -> tuple[str, int]:
    """A number of these digits times a power of ten without zeros at its end, and rounded up to 10⁻⁹ if it is finer."""
    stripped = digits.rstrip("0")
    scale += len(digits) - len(stripped)
    if stripped and scale < _NANO:
        dropped = _NANO - scale
        rest = stripped[:-dropped]
        return _rounded(str(int(rest or 0) + 1), _NANO)
    return stripped.lstrip("0"), scale


def _binary(parts: _Parts) -> Fraction:
    """The value of a binary quantity without its sign: bounded, and no finer than 10⁻⁹."""
    if len(parts.digits.lstrip("0")) - parts.places > _MAX_DIGITS:
        return _MAX
    value = Fraction(int(parts.digits), 10**parts.places) * 1024**parts.power
    if parts.places or len(parts.digits) + 3 * parts.power > 14:
        value = min(Fraction(-(-value * 10**9 // 1), 10**9), _MAX)
    return value


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    raise _fail(value)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Fraction:
    parts = _parts(text)
    if parts.form == "binary":
        value = _binary(parts)
    else:
        digits, scale = _rounded(parts.digits, parts.power - parts.places)
        number = int(digits or 0)
        value = Fraction(number * 10**scale) if scale >= 0 else Fraction(number, 10**-scale)
    return -value if parts.negative else value


def parse(value: str | int | float) -> Fraction:
    """The exact value of a quantity. Raises QuantityError for what is none. Kubernetes API conventions: Quantity.

    Texts of more than 256 characters and exponents of more than three digits are no quantities.
    """
    return _parse(_text(value))


def equal(a: str | int | float, b: str | int | float) -> bool:
    """True if two quantities have the same value, however they are spelled. Raises QuantityError."""
    return parse(a) == parse(b)


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    parts = _parts(text)
    if _is_kept(parts):
        return text
    sign, form = "-" if parts.negative else "", parts.form
    if form == "binary":
        value = _binary(parts)
        if value >= 1024 and value.denominator == 1:
            number, power = value.numerator, 0
            while number % 1024 == 0 and power < 6:
                number, power = number // 1024, power + 1
            return f"{sign}{number}{_BINARY_BY_POWER[power]}"
        form = "decimal"
        digits, scale = _rounded(str(int(value * 10**9)), _NANO)
    else:
        digits, scale = _rounded(parts.digits, parts.power - parts.places)
    if not digits:
        return "0"
    power = scale - scale % 3
    if form == "decimal":
        power = min(power, 18)
    digits += "0" * (scale - power)
    if form == "exponent":
        return f"{sign}{digits}e{power}" if power else f"{sign}{digits}"
    return f"{sign}{digits}{_DECIMAL_BY_POWER[power]}"


def canonical(value: str | int | float) -> str:
    """A quantity as an API server writes it: `1000m` → `1`, `1024Mi` → `1Gi`, `0.5` → `500m`, `1.5Gi` → `1536Mi`.

    The value is never changed for want of a suffix: where servers, which know none above E, make 1 of `1000E`, it
    stays. Raises QuantityError for what is no quantity. Kubernetes API conventions: Quantity.
    """
    return _canonical(_text(value))
