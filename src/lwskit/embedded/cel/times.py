"""Moments and lengths of time: reading and writing them, and their parts. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from lwskit.embedded.cel.values import Duration, EvaluationError, Timestamp, plain_text

SECOND = 10**9
_SHORT = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PIECE = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_EARLIEST, _LATEST = -62135596800 * SECOND, 253402300799 * SECOND + SECOND - 1
_MOMENT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:(Z)|([+-])(\d\d):(\d\d))", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def length(nanoseconds: int) -> Duration:
    """A length of time. Raises EvaluationError for one of more than 64 bits."""
    if not -(2**63) <= nanoseconds < 2**63:
        raise EvaluationError("duration overflow")
    return Duration(nanoseconds)


def moment(nanoseconds: int, ahead: int = 0) -> Timestamp:
    """A moment of the years 1 to 9999. Raises EvaluationError for another one."""
    if not _EARLIEST <= nanoseconds <= _LATEST:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds, ahead)


def read_duration(text: str) -> Duration | None:
    """A length such as `1h2m3.5s`, or None."""
    sign, rest = (-1 if text[:1] == "-" else 1), text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    total = at = 0
    while at < len(rest):
        found = _PIECE.match(rest, at)
        if found is None:
            return None
        whole, _, fraction = found[1].partition(".")
        unit = _SHORT[found[2]]
        total += int(whole or 0) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        at = found.end()
    total *= sign
    return Duration(total) if rest and -(2**63) <= total < 2**63 else None


_LONG = re.compile(r"(\d+)\s*([A-Za-zµ]+)")
_WORDS = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 10**3),
    (("ms", "milli"), 10**6),
    (("s", "sec"), SECOND),
    (("m", "min"), 60 * SECOND),
    (("h", "hr", "hour"), 3600 * SECOND),
    (("d", "day"), 86400 * SECOND),
    (("w", "wk", "week"), 7 * 86400 * SECOND),
)


def read_long_duration(text: str) -> Duration | None:
    """A length as fields of the format `duration` have it: with words such as `2 days` too."""
    found = read_duration(text)
    if found is not None:
        return found
    total, known = 0, False
    for number, word in _LONG.findall(text):
        unit = word.lower()
        for names, factor in _WORDS:
            if unit in names or unit.startswith(names[-1]):
                total, known = total + int(number) * factor, True
    return Duration(total) if known else None


def read_timestamp(text: str) -> Timestamp | None:
    """A moment in the form of RFC 3339, or None."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(g) for g in found.groups()[:6])
    try:
        local = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    ahead = 0
    if found[9]:
        if int(found[10]) > 23 or int(found[11]) > 59:
            return None
        ahead = (int(found[10]) * 3600 + int(found[11]) * 60) * (-1 if found[9] == "-" else 1)
    seconds = (local - _EPOCH) // timedelta(seconds=1) - ahead
    return Timestamp(seconds * SECOND + int(f"{found[7] or 0:0<9}"[:9]), ahead)


def read_date(text: str) -> Timestamp | None:
    """A day as the moment at which it begins, or None."""
    return read_timestamp(f"{text}T00:00:00Z") if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) else None


def duration_text(value: Duration) -> str:
    """A length in seconds."""
    whole, rest = divmod(abs(value.nanoseconds), SECOND)
    sign = "-" if value.nanoseconds < 0 else ""
    if not rest:
        return f"{sign}{whole}s"
    # A fraction of 64 bits, as the real one counts seconds, in its shortest form.
    text = repr(whole + rest / 1e9)
    if "e" in text:
        mantissa, _, power = text.partition("e")
        text = plain_text(mantissa.replace(".", ""), int(power))
    return f"{sign}{text}s"


def timestamp_text(value: Timestamp) -> str:
    """A moment in the form of RFC 3339, in the zone in which it was told."""
    seconds, rest = divmod(value.nanoseconds, SECOND)
    day = _EPOCH + timedelta(seconds=seconds + value.ahead)
    fraction = f"{rest:09d}".rstrip("0")
    zone = "Z"
    if value.ahead:
        hours, minutes = divmod(abs(value.ahead) // 60, 60)
        zone = f"{'-' if value.ahead < 0 else '+'}{hours:02d}:{minutes:02d}"
    return f"{day.year:04d}-{day:%m-%dT%H:%M:%S}{'.' + fraction if fraction else ''}{zone}"


def _local(value: Timestamp, zone: str) -> datetime:
    place: timezone | ZoneInfo
    hours, colon, minutes = zone.partition(":")
    if colon:
        for part in (hours, minutes):
            if not re.fullmatch(r"[+-]?\d+", part, re.ASCII):
                raise EvaluationError(f'strconv.Atoi: parsing "{part}": invalid syntax')
        ahead = int(hours) * 60 + (-int(minutes) if zone[0] == "-" else int(minutes))
        place = timezone(timedelta(minutes=max(-1439, min(1439, ahead))))
    else:
        try:
            place = ZoneInfo(zone or "UTC")
        except (KeyError, ValueError, OSError):
            raise EvaluationError(f"unknown time zone {zone}") from None
    return (_EPOCH + timedelta(microseconds=value.nanoseconds // 1000)).astimezone(place)


PARTS: dict[str, Callable[[Timestamp, str], int]] = {
    "getFullYear": lambda t, z: _local(t, z).year,
    "getMonth": lambda t, z: _local(t, z).month - 1,
    "getDayOfYear": lambda t, z: _local(t, z).timetuple().tm_yday - 1,
    "getDayOfMonth": lambda t, z: _local(t, z).day - 1,
    "getDate": lambda t, z: _local(t, z).day,
    "getDayOfWeek": lambda t, z: _local(t, z).isoweekday() % 7,
    "getHours": lambda t, z: _local(t, z).hour,
    "getMinutes": lambda t, z: _local(t, z).minute,
    "getSeconds": lambda t, z: _local(t, z).second,
    "getMilliseconds": lambda t, z: _local(t, z).microsecond // 1000,
}
"""The parts of a moment in a zone, by the names of the functions that tell them."""
UNITS = {
    "getHours": 3600 * SECOND,
    "getMinutes": 60 * SECOND,
    "getSeconds": SECOND,
    "getMilliseconds": 10**6,
}
"""The units in which a length can be asked for."""


def in_units(value: Duration, unit: int) -> int:
    """A length in whole units, toward zero."""
    whole = abs(value.nanoseconds) // unit
    return -whole if value.nanoseconds < 0 else whole
