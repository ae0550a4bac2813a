"""YAML and JSON as kubectl takes them apart: documents as JSON data, and where in the text each part stands. Pure.

What begins with { is JSON, one object after another, for as long as it is; the rest is YAML, in parts between lines of
---, of each of which only the first document is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from lwskit.lint import json_source, scalars
from lwskit.lint.places import Document, Lines, Note, Part, SourceError, locate

__all__ = ["Document", "Note", "Part", "SourceError", "documents", "locate"]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LARGEST: Final = 1_000_000
"""Parts that a document may have more than its text has characters, once its anchors are written out."""
_SEPARATOR = re.compile(r"^---([^\n]*)(?:\n|\Z)", re.MULTILINE)
_OTHER_BREAK = re.compile("[\x85\u2028\u2029]")
"""Line ends of YAML that editors do not count."""
_TO_NEXT_LINE = re.compile(r"[^\S\n]*\n?")
_BOM: Final = "\ufeff"
_NOT_JSON: Final = "this begins like JSON and is none, so it is read as YAML, which kubectl before 1.33 refuses"
_NOT_READ: Final = "nothing from here on is read: kubectl takes one document between lines of ---"


def documents(text: str) -> Iterator[Document | Note]:
    """The documents of a text that are not empty, and what is odd about it. Raises SourceError, also after some."""
    lines = Lines(text)
    try:
        yield from _documents(text, lines)
    except RecursionError as error:
        raise SourceError("it is nested too deeply") from error


def _documents(text: str, lines: Lines) -> Iterator[Document | Note]:
    start, wrong = len(text) - len(text.removeprefix(_BOM)), None
    if text[start:].lstrip().startswith("{"):
        count = 0
        while True:
            try:
                document, end = json_source.read(text, lines, start)
            except SourceError as error:
                if count > 1:
                    raise
                wrong = error
                break
            if document is None:
                return
            count, start = count + 1, end
            if document.data is not None:
                yield document
        space = _TO_NEXT_LINE.match(text, start)
        start = space.end() if space else start
    for begin, end in _parts(text, lines, start):
        try:
            yield from _yaml(text[begin:end], lines, begin)
        except SourceError as error:
            raise wrong or error from error
        if wrong is not None:
            yield Note(_NOT_JSON, wrong.line, wrong.column)
            wrong = None


def _parts(text: str, lines: Lines, start: int) -> Iterator[tuple[int, int]]:
    """Begin and end of what stands between lines of ---."""
    for found in _SEPARATOR.finditer(text, start):
        more = found[1].strip()
        if start < found.start():
            yield start, found.start()
        if more and not more.startswith("#"):
            raise lines.error("--- must stand alone on its line", found.start())
        start = found.end()
    yield start, len(text)


def _yaml(part: str, lines: Lines, offset: int) -> Iterator[Document | Note]:
    """The document of a part that begins at an offset of the text."""
    if part.startswith(_BOM):
        part, offset = part[1:], offset + 1
    builder = _Builder(part, lines, offset)
    try:
        try:
            found = builder.document()
        except yaml.YAMLError as error:
            raise builder.error(error) from error
        if found is None:
            return
        if found.data is not None:
            yield found
        if (more := builder.more()) is not None:
            yield Note(_NOT_READ, *more)
    finally:
        builder.close()


class _Builder:
    """Makes data and places of what a YAML reader tells; what an anchor names is made once."""

    def __init__(self, text: str, lines: Lines, offset: int) -> None:
        self._lines = lines
        self._offset = offset
        self._first = lines.place(offset)[0]
        self._exact = _OTHER_BREAK.search(text) is not None or lines.place(offset)[1] > 1
        self._limit = _LARGEST + len(text)
        self._doubled: list[tuple[str, int, int]] = []
        self._anchors: dict[str, tuple[Any, Part] | None] = {}
        self._loader: Any = None
        self._text = text

    def document(self) -> Document | None:
        """The first document; None if there is none. Raises SourceError, and the errors of the YAML reader."""
        self._loader = _LOADER(self._text)
        self._loader.get_event()
        if self._loader.check_event(yaml.StreamEndEvent):
            return None
        self._loader.get_event()
        data, root = self._build(self._loader.get_event(), None, "")
        self._loader.get_event()
        return Document(data, root, tuple(self._doubled))

    def more(self) -> tuple[int, int] | None:
        """Where text stands behind the document, if it does."""
        try:
            if self._loader.check_event(yaml.StreamEndEvent):
                return None
            return self._place(self._loader.peek_event())
        except yaml.YAMLError as error:
            found = self.error(error)
            return found.line, found.column

    def close(self) -> None:
        """Let go of the reader."""
        if self._loader is not None:
            self._loader.dispose()

    def error(self, error: yaml.YAMLError) -> SourceError:
        """What the YAML reader found wrong, with its place in the whole text."""
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
        if mark is None:
            before = self._text.encode()[: getattr(error, "position", 0)].decode(errors="ignore")
            return self._lines.error(problem, self._offset + len(before))
        return SourceError(problem, *self._at(mark))

    def _place(self, event: Any) -> tuple[int, int]:
        return self._at(event.start_mark)

    def _at(self, mark: Any) -> tuple[int, int]:
        if self._exact:
            return self._lines.place(self._offset + mark.index)
        return self._first + mark.line, mark.column + 1

    def _fault(self, event: Any, message: str) -> SourceError:
        return SourceError(message, *self._place(event))

    def _build(self, event: Any, at: tuple[int, int] | None, path: str) -> tuple[Any, Part]:
        """Data and places of what begins with an event; `at` is where it is said to stand, if not where it begins."""
        place = at or self._place(event)
        if isinstance(event, yaml.AliasEvent):
            data, part = self._named(event)
            return data, Part(*place, part.fields, part.items, part.count)
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            made = self._scalar(event), Part(*place)
        elif isinstance(event, yaml.SequenceStartEvent):
            made = self._sequence(place, path)
        else:
            made = self._mapping(place, path)
        if made[1].count > self._limit:
            raise self._fault(event, f"with its anchors written out it has more than {_LARGEST} parts")
        # A name given anew within stays with what it was given to.
        if anchor is not None and self._anchors[anchor] is None:
            self._anchors[anchor] = made
        return made

    def _named(self, event: Any) -> tuple[Any, Part]:
        if event.anchor not in self._anchors:
            raise self._fault(event, "found undefined alias")
        found = self._anchors[event.anchor]
        if found is None:
            raise self._fault(event, "an anchor stands within what it names")
        return found

    def _scalar(self, event: Any) -> Any:
        try:
            value = scalars.value(event.value, event.tag, event.implicit[0])
        except ValueError as error:
            raise self._fault(event, f"{event.value!r} cannot be read: {error}") from error
        if isinstance(value, float) and not math.isfinite(value):
            raise self._fault(event, f"{event.value} is a number that JSON cannot say")
        return value

    def _sequence(self, place: tuple[int, int], path: str) -> tuple[Any, Part]:
        data: list[Any] = []
        parts: list[Part] = []
        while not isinstance(event := self._loader.get_event(), yaml.SequenceEndEvent):
            item, part = self._build(event, None, f"{path}[{len(data)}]")
            data.append(item)
            parts.append(part)
        return data, Part(*place, items=tuple(parts), count=1 + sum(part.count for part in parts))

    def _mapping(self, place: tuple[int, int], path: str) -> tuple[Any, Part]:
        data: dict[str, Any] = {}
        parts: dict[str, Part] = {}
        written: set[str] = set()
        while not isinstance(event := self._loader.get_event(), yaml.MappingEndEvent):
            if _is_merge(event):
                self._merge(data, parts, path)
                continue
            key = self._key(event)
            where, at = f"{path}.{key}" if path else key, self._place(event)
            if key in written:
                self._doubled.append((where, *at))
            written.add(key)
            data[key], parts[key] = self._build(self._loader.get_event(), at, where)
        return data, Part(*place, fields=parts, count=1 + sum(part.count for part in parts.values()))

    def _merge(self, data: dict[str, Any], parts: dict[str, Part], path: str) -> None:
        """Bring in what `<<` names, in place of fields written before it; of several mappings the first wins."""
        event = self._loader.get_event()
        found, part = self._build(event, None, path)
        several = isinstance(event, yaml.SequenceStartEvent)
        sources = list(zip(found, part.items, strict=True)) if several else [(found, part)]
        if not all(isinstance(source, dict) for source, _ in sources):
            raise self._fault(event, "<< needs a mapping, or a list of mappings")
        for source, places in reversed(sources):
            data |= source
            parts |= places.fields

    def _key(self, event: Any) -> str:
        if isinstance(event, yaml.AliasEvent):
            found, _ = self._named(event)
            if not isinstance(found, dict | list | None):
                return scalars.name(found)
        elif isinstance(event, yaml.ScalarEvent):
            try:
                key = scalars.key(event.value, event.tag, event.implicit[0])
            except ValueError as error:
                raise self._fault(event, str(error)) from error
            if event.anchor is not None:
                self._anchors[event.anchor] = self._scalar(event), Part(*self._place(event))
            return key
        raise self._fault(event, "the name of a field must be a text")


def _is_merge(event: Any) -> bool:
    if not isinstance(event, yaml.ScalarEvent) or event.value != "<<":
        return False
    return event.tag == scalars.MERGE or event.implicit[0]
