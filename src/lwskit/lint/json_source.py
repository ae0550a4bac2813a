"""JSON with the places of its parts, one value after another as in a stream. Pure."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from lwskit.lint.places import Document, Lines, Part, SourceError
from lwskit.lint.scalars import number

_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(?P<mark>[{}\[\],:])"
    r'|"(?P<text>[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*)"'
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<word>true|false|null)|(?P<end>\Z))"
)
_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_SHOWN: Final = 10
"""Characters of what was found instead that a message has."""


def read(text: str, lines: Lines, start: int) -> tuple[Document | None, int]:
    """The value that begins at or after an offset, and the offset behind it; None where only space is left.

    Raises SourceError for what is no JSON. Half a pair of surrogates is a replacement character, as servers read it.
    """
    reader = _Reader(text, lines, start)
    if reader.ended:
        return None, len(text)
    data, root = reader.value("", None)
    return Document(data, root, tuple(reader.doubled)), reader.behind


class _Reader:
    def __init__(self, text: str, lines: Lines, start: int) -> None:
        self.doubled: list[tuple[str, int, int]] = []
        self.behind = start
        self._text = text
        self._lines = lines
        self._next(start)

    @property
    def ended(self) -> bool:
        return self._kind == "end"

    def value(self, path: str, at: tuple[int, int] | None) -> tuple[Any, Part]:
        """A value and its places; `at` is where its key stands. The token behind it is not looked at."""
        place = at or self._lines.place(self._at)
        if self._kind == "text":
            data: Any = self._string()
        elif self._kind == "number":
            data = number(self._token)
            if isinstance(data, float) and not math.isfinite(data):
                raise self._error(f"{self._token} is too large a number")
        elif self._kind == "word":
            data = _WORDS[self._token]
        elif self._token == "{":
            return self._object(path, place)
        elif self._token == "[":
            return self._array(path, place)
        else:
            raise self._wanted("a value")
        return data, Part(*place)

    def _next(self, at: int) -> None:
        found = _TOKEN.match(self._text, at)
        if found is None:
            space = _SPACE.match(self._text, at)
            self._at = space.end() if space else at
            self._kind, self._token = "none", self._text[self._at : self._at + _SHOWN].split("\n")[0]
            return
        self._kind = found.lastgroup or "end"
        self._token: str = found[self._kind]
        self._at = found.start(self._kind) - (self._kind == "text")
        self.behind = found.end()

    def _advance(self) -> None:
        self._next(self.behind)

    def _string(self) -> str:
        if "\\" not in self._token:
            return self._token
        try:
            return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", json.loads(f'"{self._token}"'))
        except ValueError as error:
            raise self._error("this text has an escape that JSON does not know") from error

    def _object(self, path: str, place: tuple[int, int]) -> tuple[Any, Part]:
        data: dict[str, Any] = {}
        fields: dict[str, Part] = {}
        self._advance()
        while self._token != "}" or self._kind != "mark":
            if data:
                self._skip(",", "a comma or }")
            if self._kind != "text":
                raise self._wanted("the name of a field, in double quotes")
            key, at = self._string(), self._lines.place(self._at)
            where = f"{path}.{key}" if path else key
            if key in data:
                self.doubled.append((where, *at))
            self._advance()
            self._skip(":", "a colon")
            data[key], fields[key] = self.value(where, at)
            self._advance()
        return data, Part(*place, fields=fields, count=1 + sum(part.count for part in fields.values()))

    def _array(self, path: str, place: tuple[int, int]) -> tuple[Any, Part]:
        data: list[Any] = []
        items: list[Part] = []
        self._advance()
        while self._token != "]" or self._kind != "mark":
            if data:
                self._skip(",", "a comma or ]")
            item, part = self.value(f"{path}[{len(data)}]", None)
            data.append(item)
            items.append(part)
            self._advance()
        return data, Part(*place, items=tuple(items), count=1 + sum(part.count for part in items))

    def _skip(self, mark: str, wanted: str) -> None:
        if self._kind != "mark" or self._token != mark:
            raise self._wanted(wanted)
        self._advance()

    def _wanted(self, what: str) -> SourceError:
        if self.ended:
            return self._error(f"the text ends where {what} should be")
        return self._error(f"here should be {what}, not {self._token[:_SHOWN]!r}")

    def _error(self, message: str) -> SourceError:
        return self._lines.error(message, self._at)
