"""What a YAML scalar is to kubectl, which reads YAML 1.1 with rules of its own and makes JSON of it. Pure."""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from decimal import Decimal
from typing import Any, Final

_STANDARD: Final = "tag:yaml.org,2002:"
MERGE: Final = f"{_STANDARD}merge"
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_BEYOND: Final = {
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_FIRST: Final = frozenset("yYnNtTfFoO~.+-0123456789")
"""How scalars begin that may be no text."""
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>0|[1-9][0-9]*))"
    r"|0b(?P<inner>[-+])(?P<late>[01]+)"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_GROUPED = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12][0-9]|3[01])"
    r"(?:[Tt]\d\d?:\d\d?:\d\d?(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)| +\d\d?:\d\d?:\d\d?(?:\.\d+)?)?",
    re.ASCII,
)
_BASES: Final = {"x": 16, "b": 2, "late": 2, "o": 8, "d": 10}
_DIGITS: Final = 25
"""Characters that no decimal integer of 64 bits has."""
_LONGEST: Final = 128
"""Digits, with leading zeros, of an integer that is still looked at."""
_SINGLE_DIGITS: Final = 9
"""Digits that tell all floats of 32 bits apart."""
_PLAIN_EXPONENT: Final = range(-4, 6)
"""Exponents of floats that are written without one."""
_LARGEST_WHOLE: Final = 1e21
"""From here on JSON has an exponent."""


def value(text: str, tag: str | None, implicit: bool) -> Any:
    """What a scalar is as JSON data, or a float that JSON cannot say; `implicit` without tag is a plain one.

    A tag other than those of JSON's types and binary leaves a text. Raises ValueError where the tag does not fit.
    """
    return _as_json(_read(text, tag, implicit))


def key(text: str, tag: str | None, implicit: bool) -> str:
    """The name of a field: what is no text is written as kubectl writes it. Raises ValueError for what is no name."""
    return name(_read(text, tag, implicit))


def name(found: str | bool | float | None) -> str:
    """What a value is called as the name of a field. Raises ValueError for what is no name."""
    if isinstance(found, str):
        return found
    if found is None:
        raise ValueError("the name of a field must not be null; write it in quotes")
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, float):
        return _single(found)
    if found >= 2**63:
        raise ValueError("the name of a field must not be so large a number; write it in quotes")
    return str(found)


def number(text: str) -> int | float:
    """A number of JSON as it arrives at a server: exact with 64 bits, else a float, and a whole float as an integer."""
    exact = len(text) < _DIGITS and not any(c in text for c in ".eE")
    return _as_json(int(text) if exact else float(text))


def _as_json(found: Any) -> Any:
    if isinstance(found, int) and not -(2**63) <= found < 2**63:
        found = float(found)
    if isinstance(found, float) and abs(found) < _LARGEST_WHOLE and found.is_integer():
        return int(Decimal(repr(found)))
    return found


_FITTING: Final[dict[str, tuple[type, ...]]] = {
    "str": (),
    "timestamp": (),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "null": (type(None),),
}


def _read(text: str, tag: str | None, implicit: bool) -> Any:
    if tag is None:
        return _plain(text) if implicit else text
    kind = tag.removeprefix(_STANDARD)
    if kind == tag or kind not in _FITTING:
        return _decoded(text) if tag == f"{_STANDARD}binary" else text
    if kind == "str" or (kind == "timestamp" and _TIMESTAMP.fullmatch(text)):
        return text
    found = _plain(text)
    if not isinstance(found, _FITTING[kind]) or (isinstance(found, bool) and kind != "bool"):
        raise ValueError(f"it is no {kind}")
    return float(found) if kind == "float" else found


def _plain(text: str) -> Any:
    if text and text[0] not in _FIRST:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if text in _BEYOND:
        return _BEYOND[text]
    if text[0].isalpha() or text[0] == "~":
        return text
    if text[0] == ".":
        return _finite(text, text.replace("_", "") if _GROUPED.fullmatch(text) else text)
    plain = text.replace("_", "")
    whole = _INTEGER.fullmatch(plain)
    if whole is not None:
        base = whole.lastgroup or "d"
        if len(whole[base]) <= _LONGEST:
            found = int(whole[base], _BASES[base])
            if "-" in (whole["sign"], whole["inner"]):
                found = -found
            if -(2**63) <= found < (2**63 if whole["sign"] else 2**64):
                return found
    return _finite(text, plain)


def _finite(text: str, plain: str) -> Any:
    if _FLOAT.fullmatch(plain):
        found = float(plain)
        if math.isfinite(found):
            return found
    return text


def _decoded(text: str) -> str:
    try:
        raw = base64.b64decode("".join(text.split("\n")), validate=True)
    except binascii.Error as error:
        raise ValueError("it is no base64") from error
    return raw.decode(errors="replace")


def _single(found: float) -> str:
    """A float as its shortest form with 32 bits."""
    try:
        (single,) = struct.unpack("f", struct.pack("f", found))
    except OverflowError:
        single = math.copysign(math.inf, found)
    if not math.isfinite(single):
        return ".nan" if math.isnan(single) else ".inf" if single > 0 else "-.inf"
    shown = ""
    for digits in range(_SINGLE_DIGITS):
        shown = f"{single:.{digits}e}"
        if struct.pack("f", float(shown)) == struct.pack("f", single):
            break
    mantissa, _, exponent = shown.partition("e")
    if int(exponent) not in _PLAIN_EXPONENT:
        return shown
    places = max(0, len(mantissa.lstrip("-").replace(".", "")) - 1 - int(exponent))
    return f"{float(shown):.{places}f}"
