"""Errors of validation: a field's path, what is wrong with it, and the texts that clients see.

Specification: 10 §6.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, cast

ENOUGH: Final = 100
"""Errors of one object that anybody reads: of a list with more faults than these the rest is not looked at."""
_SHOWN: Final = 1024
_END: Final = object()
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


class ErrorKind(Enum):
    """What is wrong with a field; the values are how texts begin."""

    INVALID = "Invalid value"
    FORBIDDEN = "Forbidden"
    REQUIRED = "Required value"
    NOT_SUPPORTED = "Unsupported value"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"
    DUPLICATE = "Duplicate value"


_SHOWING = (ErrorKind.INVALID, ErrorKind.NOT_SUPPORTED, ErrorKind.TOO_MANY, ErrorKind.DUPLICATE)
"""Kinds whose texts have the value."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault of one field. `value` is what was found, or how many; most kinds' texts have it."""

    path: str
    kind: ErrorKind
    detail: str
    value: Any = None

    def __str__(self) -> str:
        text = f"{self.path}: {self.kind.value}"
        if self.kind in _SHOWING:
            text += f": {shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text


def shown(value: Any) -> str:
    """A value as it stands in an error: JSON, of which no more than 1024 characters."""
    text = ""
    for part in _json(value):
        text += part
        if len(text) > _SHOWN:
            return f"{text[:_SHOWN]}…"
    return text


def _json(value: Any) -> Iterator[str]:
    """The JSON of a value piece by piece, so that only what is shown is written of megabytes or a thousand levels."""
    open_: list[tuple[Iterator[Any], str]] = []
    while True:
        begins = isinstance(value, dict | list)
        if begins:
            entries, ends = (value.items(), "{}") if isinstance(value, dict) else (value, "[]")
            open_.append((iter(entries), ends))
            yield ends[0]
        else:
            yield _ENCODER.encode(value[: _SHOWN + 1] if isinstance(value, str) else value)
        while open_:
            entries, ends = open_[-1]
            entry = next(entries, _END)
            if entry is not _END:
                break
            open_.pop()
            begins = False
            yield ends[1]
        else:
            return
        comma = "" if begins else ","
        if ends == "{}":
            key, value = cast("tuple[str, Any]", entry)
            yield f"{comma}{_ENCODER.encode(key[:_SHOWN])}:"
        else:
            value = entry
            yield comma


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """A field whose value is not allowed."""
    return FieldError(path, ErrorKind.INVALID, detail, value)


def forbidden(path: str, detail: str) -> FieldError:
    """A field that must not be set or changed."""
    return FieldError(path, ErrorKind.FORBIDDEN, detail)


def required(path: str, detail: str) -> FieldError:
    """A field that must be set."""
    return FieldError(path, ErrorKind.REQUIRED, detail)


def too_many(path: str, count: int, limit: int) -> FieldError:
    """A list that has more entries than it may have."""
    return FieldError(path, ErrorKind.TOO_MANY, f"must have at most {limit} {'item' if limit == 1 else 'items'}", count)


def duplicate(path: str, value: Any) -> FieldError:
    """A value that must differ from those of other entries, and does not."""
    return FieldError(path, ErrorKind.DUPLICATE, "", value)


def not_supported(path: str, value: Any, supported: Sequence[str]) -> FieldError:
    """A field whose value is none of an enumeration."""
    choices = ", ".join(shown(choice) for choice in supported)
    return FieldError(path, ErrorKind.NOT_SUPPORTED, f"supported values: {choices}", value)


def aggregate(errors: Iterable[FieldError]) -> str:
    """The text of all errors: one as it is, several in brackets, equal ones once; empty without errors.

    Of more than a hundred the rest is only mentioned. Specification: 10 §6.1.
    """
    texts: dict[str, None] = {}
    for error in errors:
        text = str(error)
        if len(texts) == ENOUGH and text not in texts:
            return f"[{', '.join(texts)}, and more]"
        texts[text] = None
    return next(iter(texts)) if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""
