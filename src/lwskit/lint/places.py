"""Where in a text the parts of its documents stand, and what of a text cannot be read. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_BREAK = re.compile(r"\r\n?|\n")
"""Line ends as editors count them; YAML knows more."""
_STEP = re.compile(r"\[(?P<index>\d+)\]")


class SourceError(Exception):
    """A text that cannot be read: one sentence, and where it went wrong (from 1; 0 is not known)."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(slots=True)
class Part:
    """A part of a document: its place (of its key where it has one), its fields or items, and how many parts it is."""

    line: int
    column: int
    fields: dict[str, Part] = field(default_factory=dict)
    items: tuple[Part, ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a text that is no field's fault: a sentence and its place."""

    message: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its data as JSON has it, the places of its parts, and its doubled keys as (path, line, column)."""

    data: Any
    root: Part
    doubled: tuple[tuple[str, int, int], ...] = ()


class Lines:
    """The lines of a text: from an offset to line and column, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in _BREAK.finditer(text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a character."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def error(self, message: str, offset: int) -> SourceError:
        """An error at a character."""
        return SourceError(message, *self.place(offset))


def locate(part: Part, path: str) -> Part:
    """The part at a path such as `spec.items[0].name`, or the innermost part around it that is there.

    Names of fields may have dots in them (`metadata.annotations.example.com/a`) or stand in brackets
    (`labels[example.com/a]`).
    """
    rest = path.lstrip(".")
    while rest:
        index = _STEP.match(rest)
        if index and part.items:
            number = int(index["index"])
            if number >= len(part.items):
                return part
            part, rest = part.items[number], rest[index.end() :].lstrip(".")
            continue
        found = _field(part.fields, rest)
        if found is None:
            return part
        name, length = found
        part, rest = part.fields[name], rest[length:].lstrip(".")
    return part


def _field(fields: Mapping[str, Part], rest: str) -> tuple[str, int] | None:
    """The longest field that a path begins with, and how much of the path that is."""
    end = len(rest)
    while end > 0:
        name = rest[:end]
        if name in fields:
            return name, end
        if name[0] == "[" and name[-1] == "]" and name[1:-1] in fields:
            return name[1:-1], end
        end = max(rest.rfind(".", 0, end), rest.rfind("[", 0, end))
    return None
