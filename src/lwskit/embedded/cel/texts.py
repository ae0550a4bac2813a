"""Functions over texts. Pure.

Sources: cel-go's documentation of its strings extension (version 2); Kubernetes documentation, "Common Expression
Language in Kubernetes".
"""

from __future__ import annotations

import json
import math
from typing import Any

from lwskit.embedded.cel import regex, times
from lwskit.embedded.cel.functions import define
from lwskit.embedded.cel.standard import to_text
from lwskit.embedded.cel.values import (
    Duration,
    EvaluationError,
    Map,
    Timestamp,
    TypeValue,
    Uint,
    is_list,
    type_name,
)


def _within(text: str, place: int) -> int:
    if not 0 <= place <= len(text):
        raise EvaluationError(f"index out of range: {place}")
    return place


@define("charAt", "(string, int) -> string", member=True)
def _char_at(text: str, place: int) -> str:
    return text[_within(text, place) : place + 1]


@define("indexOf", "(string, string) -> int", "(string, string, int) -> int", member=True)
def _index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    if not part:
        return min(start, len(text))
    return text.find(part, start)


@define("lastIndexOf", "(string, string) -> int", "(string, string, int) -> int", member=True)
def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    if not part:
        return min(start, len(text))
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


_LOWER = {c: c + 32 for c in range(65, 91)}
_UPPER = {c + 32: c for c in _LOWER}
define("lowerAscii", "(string) -> string", member=True)(lambda text: text.translate(_LOWER))
define("upperAscii", "(string) -> string", member=True)(lambda text: text.translate(_UPPER))
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
define("trim", "(string) -> string", member=True)(lambda text: text.strip(_SPACE))


@define("replace", "(string, string, string) -> string", "(string, string, string, int) -> string", member=True)
def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, max(count, -1))


@define("split", "(string, string) -> list(string)", "(string, string, int) -> list(string)", member=True)
def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if count < 0 or count >= len(parts) else [*parts[: count - 1], "".join(parts[count - 1 :])]
    return text.split(separator, count - 1 if count > 0 else -1)


@define("substring", "(string, int) -> string", "(string, int, int) -> string", member=True)
def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        return text[_within(text, start) :]
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return text[_within(text, start) : _within(text, end)]


@define("join", "(list(string)) -> string", "(list(string), string) -> string", member=True)
def _join(items: Any, separator: str = "") -> str:
    parts = list(items)
    for part in parts:
        if not isinstance(part, str):
            raise EvaluationError(f"join: invalid input: {part}")
    return separator.join(parts)


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"} | {
    "\\": "\\\\",
    '"': '\\"',
}


@define("strings.quote", "(string) -> string")
def quote(text: str) -> str:
    """The text as a literal."""
    return '"' + "".join(_ESCAPES.get(c, c) for c in text) + '"'


@define("find", "(string, string) -> string", member=True)
def _find(text: str, pattern: str) -> str:
    found = regex.finder(pattern).search(text)
    return found[0] if found else ""


@define("findAll", "(string, string) -> list(string)", "(string, string, int) -> list(string)", member=True)
def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    found: list[str] = []
    end = -1
    for one in regex.finder(pattern).finditer(text):
        if one.start() == one.end() == end:
            continue  # Nothing directly after a match is none.
        found.append(one[0])
        end = one.end()
    return found if count < 0 else found[:count]


# -- format ------------------------------------------------------------------------------------------------------------


@define("format", "(string, list(dyn)) -> string", member=True)
def _format(text: str, arguments: Any) -> str:
    out: list[str] = []
    at = used = 0
    while at < len(text):
        mark = text.find("%", at)
        if mark < 0:
            mark = len(text)
        out.append(text[at:mark])
        at = mark
        if at >= len(text):
            break
        if text.startswith("%%", at):
            out.append("%")
            at += 2
            continue
        if used >= len(arguments):
            raise EvaluationError(f"index {used} out of range")
        at += 1
        if at >= len(text):
            raise EvaluationError("unexpected end of string")
        precision, at = _precision(text, at)
        out.append(_clause(text[at], arguments[used], precision))
        at += 1
        used += 1
    return "".join(out)


def _precision(text: str, at: int) -> tuple[int, int]:
    if text[at] != ".":
        return 6, at
    end = at + 1
    while end < len(text) and text[end] in "0123456789":
        end += 1
    wrong = "could not parse formatting clause: error while parsing precision: "
    if end == len(text):
        raise EvaluationError(f"{wrong}could not find end of precision specifier")
    if end == at + 1:
        raise EvaluationError(
            f'{wrong}error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
        )
    if end - at > 7:
        raise EvaluationError(f"{wrong}the embedded API server writes no numbers with {text[at + 1 : end]} places")
    return int(text[at + 1 : end]), end


def _wrong(text: str) -> EvaluationError:
    return EvaluationError(f"error during formatting: {text}")


def _clause(verb: str, value: Any, precision: int) -> str:
    kind = type_name(value)
    match verb:
        case "s":
            return _plain(value)
        case "d":
            if kind in ("int", "uint"):
                return str(int(value))
            raise _wrong(f"decimal clause can only be used on integers, was given {kind}")
        case "f" | "e":
            word = "fixed-point" if verb == "f" else "scientific"
            if value in ("NaN", "Infinity", "-Infinity") and isinstance(value, str):
                value = float(value)
            if not isinstance(value, float):
                raise _wrong(f"{word} clause can only be used on doubles, was given {kind}")
            return _number(value, precision, verb)
        case "b" | "o" | "x" | "X":
            return _based(verb, value, kind)
    raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _number(value: float, precision: int, verb: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if verb == "f":
        return f"{value:,.{precision}f}"
    # Of the exponential form the precision is the width of the text.
    mantissa, _, power = f"{value:e}".partition("e")
    raised = f"{'⁻' if power[0] == '-' else ''}{power[1:].translate(_RAISED)}"
    return f"{mantissa}×10{raised}".rjust(precision)


def _based(verb: str, value: Any, kind: str) -> str:
    if kind in ("int", "uint"):
        return format(int(value), verb)
    if verb == "b" and kind == "bool":
        return "1" if value else "0"
    if verb in "xX" and kind in ("string", "bytes"):
        text = (value.encode() if isinstance(value, str) else value).hex()
        return text.upper() if verb == "X" else text
    allowed = {
        "b": "only integers and bools can be formatted as binary",
        "o": "octal clause can only be used on integers",
        "x": "only integers, byte buffers, and strings can be formatted as hex",
    }[verb.lower()]
    raise _wrong(f"{allowed}, was given {kind}")


def _plain(value: Any) -> str:
    if is_list(value):
        return f"[{', '.join(_quoted(v) for v in value)}]"
    if isinstance(value, Map):
        pairs = sorted(((_key(k), _quoted(value.find(k))) for k in value), key=lambda pair: pair[0])
        return "{" + ", ".join(f"{k}:{v}" for k, v in pairs) + "}"
    if value is None:
        return "null"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            said = "invalid UTF-8 in bytes, cannot convert to string"
            raise _wrong(f'could not convert argument "{said}" to string') from None
    if isinstance(value, bool | int | float | str | bytes | Timestamp | Duration | TypeValue):
        return to_text(value)
    allowed = "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
    raise _wrong(f"string clause can only be used on {allowed}, was given {type_name(value)}")


def _key(key: Any) -> str:
    if not isinstance(key, str | bool | int):
        raise _wrong(f"no formatting function for map key of type {type_name(key)}")
    return _quoted(key)


def _quoted(value: Any) -> str:
    """A value within a list or a map, as a literal."""
    match value:
        case str():
            return quote(value)
        case bytes():
            return f'b"{_plain(value)}"'
        case float():
            return _fixed(value)
        case Uint():
            return f"{int(value)}"
        case Timestamp():
            return f"timestamp({json.dumps(times.timestamp_text(value))})"
        case Duration():
            return f"duration({json.dumps(times.duration_text(value))})"
    return _plain(value)


def _fixed(value: float) -> str:
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"+Inf"' if value > 0 else '"-Inf"'
    return f"{value:.6f}"
