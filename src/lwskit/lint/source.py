"""YAML and JSON with the place of every field: documents as JSON data, and where in the text each part stands. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import yaml

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_REPLACED: Final = tuple(f"tag:yaml.org,2002:{name}" for name in ("timestamp", "int", "float"))
_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_MERGE: Final = "tag:yaml.org,2002:merge"
_LARGEST: Final = 1_000_000
"""Parts that a document may have once its anchors are written out."""
_TABS = re.compile(r"^[ \t]*\t[ \t]*", re.MULTILINE)
_PAIR = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
_STEP = re.compile(r"\[(?P<index>\d+)\]")


class SourceError(Exception):
    """A text that is no YAML: one sentence, and where it went wrong (from 1; 0 is not known)."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class _Loader(_BASE):
    """Reads numbers, and what looks like a date or a time, as the tools do that manifests are written for."""

    yaml_implicit_resolvers: ClassVar[Any] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
        for first, resolvers in _BASE.yaml_implicit_resolvers.items()
    }


for _tag, _form, _first in (("int", _INTEGER, "-+0123456789"), ("float", _FLOAT, "-+.0123456789")):
    _whole = re.compile(f"(?:{_form.pattern})\\Z")
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _whole, list(_first))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a document: its place (of its key where it has one), its fields or items, and how many parts it is."""

    line: int
    column: int
    fields: dict[str, Part] = field(default_factory=dict)
    items: tuple[Part, ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its data as JSON has it, the places of its parts, and its doubled keys as (path, line, column)."""

    data: Any
    root: Part
    doubled: tuple[tuple[str, int, int], ...] = ()


def documents(text: str) -> Iterator[Document]:
    """The documents of a text that are not empty. Raises SourceError, also after some documents."""
    loader = _Loader(_as_yaml(text))
    try:
        while loader.check_node():
            node = loader.get_node()
            builder = _Builder(loader)
            data, root = builder.build(node, node, "")
            if data is not None:
                yield Document(data, root, tuple(builder.doubled))
    except yaml.YAMLError as error:
        raise _source_error(error) from error
    except RecursionError as error:
        raise SourceError("it is nested too deeply") from error
    finally:
        loader.dispose()


def _as_yaml(text: str) -> str:
    """JSON in a form that a YAML reader takes: no tabs before what stands on a line, no pairs of surrogates."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    spaced = _TABS.sub(lambda found: found[0].replace("\t", " "), text)
    return _PAIR.sub(lambda found: f"\\U{_joined(found[1], found[2]):08x}", spaced)


def _joined(high: str, low: str) -> int:
    return 0x10000 + (int(high, 16) - 0xD800) * 0x400 + (int(low, 16) - 0xDC00)


def _source_error(error: yaml.YAMLError) -> SourceError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    return SourceError(problem, mark.line + 1, mark.column + 1) if mark else SourceError(problem)


class _Builder:
    """Makes data and places of a document's nodes; what an anchor names is made once."""

    def __init__(self, loader: Any) -> None:
        self.doubled: list[tuple[str, int, int]] = []
        self._loader = loader
        self._made: dict[int, tuple[Any, Part]] = {}
        self._open: set[int] = set()

    def build(self, node: Any, at: Any, path: str) -> tuple[Any, Part]:
        """Data and places of a node; `at` is the node at whose beginning it is said to stand."""
        known = self._made.get(id(node))
        if known is not None:
            data, part = known
            return data, Part(at.start_mark.line + 1, at.start_mark.column + 1, part.fields, part.items, part.count)
        if id(node) in self._open:
            raise _fault(node, "an anchor stands within what it names")
        self._open.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            made = self._scalar(node), Part(*_position(at))
        elif isinstance(node, yaml.SequenceNode):
            made = self._sequence(node, at, path)
        else:
            made = self._mapping(node, at, path)
        self._open.discard(id(node))
        if made[1].count > _LARGEST:
            raise _fault(node, f"with its anchors written out it has more than {_LARGEST} parts")
        self._made[id(node)] = made
        return made

    def _scalar(self, node: Any) -> Any:
        try:
            value = self._loader.construct_object(node, deep=True)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise _fault(node, f"{node.value!r} cannot be read: {error}") from error
        if isinstance(value, float) and not math.isfinite(value):
            raise _fault(node, f"{node.value} is a number that JSON cannot say")
        if value is not None and not isinstance(value, str | bool | int | float):
            raise _fault(node, f"{node.tag} is something that JSON cannot say")
        return value

    def _sequence(self, node: Any, at: Any, path: str) -> tuple[Any, Part]:
        if not node.tag.endswith(":seq"):
            raise _fault(node, f"{node.tag} is something that JSON cannot say")
        made = [self.build(item, item, f"{path}[{i}]") for i, item in enumerate(node.value)]
        part = Part(*_position(at), items=tuple(p for _, p in made), count=1 + sum(p.count for _, p in made))
        return [data for data, _ in made], part

    def _mapping(self, node: Any, at: Any, path: str) -> tuple[Any, Part]:
        if not node.tag.endswith(":map"):
            raise _fault(node, f"{node.tag} is something that JSON cannot say")
        data: dict[str, Any] = {}
        parts: dict[str, Part] = {}
        merged: list[tuple[Any, Part]] = []
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                merged += self._merged(value_node, path)
                continue
            key = self._key(key_node)
            where = f"{path}.{key}" if path else key
            if key in data:
                self.doubled.append((where, *_position(key_node)))
            data[key], parts[key] = self.build(value_node, key_node, where)
        for more, part in merged:
            for key, value in more.items():
                if key not in data:
                    data[key], parts[key] = value, part.fields[key]
        return data, Part(*_position(at), fields=parts, count=1 + sum(p.count for p in parts.values()))

    def _merged(self, node: Any, path: str) -> list[tuple[Any, Part]]:
        """What `<<` brings in, of several mappings the first wins."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        if not all(isinstance(source, yaml.MappingNode) for source in sources):
            raise _fault(node, "<< needs a mapping, or a list of mappings")
        return [self.build(source, source, path) for source in sources]

    def _key(self, node: Any) -> str:
        """A field's name: what is no text is written as JSON writes it."""
        if not isinstance(node, yaml.ScalarNode):
            raise _fault(node, "the name of a field must be a text")
        value = self._scalar(node)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "null" if value is None else str(value)


def _position(node: Any) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _fault(node: Any, message: str) -> SourceError:
    return SourceError(message, *_position(node))


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
        found = _field(part, rest)
        if found is None:
            return part
        part, rest = part.fields[found[0]], rest[found[1] :].lstrip(".")
    return part


def _field(part: Part, rest: str) -> tuple[str, int] | None:
    """The longest field of a part that a path begins with, and how much of the path that is."""
    best: tuple[str, int] | None = None
    for name in part.fields:
        for text in (name, f"[{name}]"):
            if not rest.startswith(text) or (len(rest) > len(text) and rest[len(text)] not in ".["):
                continue
            if best is None or len(text) > best[1]:
                best = name, len(text)
    return best
