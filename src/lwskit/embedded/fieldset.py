"""Sets of field paths: of an object, of the difference of two, and as managed fields store them. Pure.

A path is a tuple of path elements as FieldsV1 writes them: `f:name`, `k:{"name":"a"}`, `v:"x"`.
Source: API reference, FieldsV1; Kubernetes documentation, "Server-Side Apply".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from lwskit.embedded.structure import Node

Path = tuple[str, ...]
Paths = set[Path]
_MISSING: Any = object()


def of_object(node: Node, value: Any) -> Paths:
    """The fields that an object sets: its leaves, the items of its lists, the entries of its maps."""
    out: Paths = set()
    _collect(node, value, (), out)
    return out


def _collect(node: Node, value: Any, path: Path, out: Paths) -> None:
    shape = node.shape
    if shape == "deduced":
        shape = "map" if isinstance(value, dict) else "leaf"
    if shape == "leaf":
        out.add(path)
    elif shape == "map":
        if not isinstance(value, dict):
            return
        for name, item in value.items():
            child = node.child(name)
            place = (*path, f"f:{name}")
            if child is not None:
                _collect(child, item, place, out)
            if item is None or item == {} or node.declared(name) is None:
                out.add(place)
    elif isinstance(value, list):
        for key, items in _grouped(node, value).items():
            place = (*path, key)
            out.add(place)
            # Of items that stand there twice only the place is known.
            if node.element is not None and len(items) == 1:
                _collect(node.element, items[0], place, out)


def _grouped(node: Node, items: Any) -> dict[str, list[Any]]:
    """The items of a keyed list or a set by their path element, in order; usually one each."""
    out: dict[str, list[Any]] = {}
    for item in items if isinstance(items, list) else ():
        out.setdefault(node.item_key(item), []).append(item)
    return out


@dataclass(slots=True)
class Difference:
    """The fields that only the new object has, that both have with other values, that only the old one has."""

    added: Paths = field(default_factory=set)
    modified: Paths = field(default_factory=set)
    removed: Paths = field(default_factory=set)

    @property
    def empty(self) -> bool:
        """Whether there is no difference."""
        return not (self.added or self.modified or self.removed)

    def without(self, ignored: Iterable[Path]) -> Difference:
        """The difference without anything at or below these paths."""
        ignored = tuple(ignored)
        if not ignored:
            return self
        return Difference(*(drop_below(s, ignored) for s in (self.added, self.modified, self.removed)))


def drop_below(paths: Paths, ignored: tuple[Path, ...]) -> Paths:
    """The paths that are neither one of these nor below one."""
    return {p for p in paths if not any(p[: len(i)] == i for i in ignored)}


def compare(node: Node, old: Any, new: Any) -> Difference:
    """What differs between two objects of one type."""
    out = Difference()
    _compare(node, old, new, (), out)
    return out


def _compare(node: Node, old: Any, new: Any, path: Path, out: Difference) -> None:
    if old is new or (old is not _MISSING and new is not _MISSING and old == new and type(old) is type(new)):
        return
    if node.shape == "deduced":
        _compare_deduced(node, old, new, path, out)
    else:
        _compare_as(node.shape, node, old, new, path, out)


def _compare_deduced(node: Node, old: Any, new: Any, path: Path, out: Difference) -> None:
    """Data without a type: what was a map loses its fields when it becomes something else, and the other way round."""
    known = [v for v in (old, new) if v is not _MISSING]
    shapes = ["map" if isinstance(v, dict) else "leaf" for v in known]
    if None in known and any(isinstance(v, dict) for v in known):
        shapes = ["map"]
    for shape in dict.fromkeys(shapes):
        _compare_as(shape, node, old, new, path, out)


def _compare_as(shape: str, node: Node, old: Any, new: Any, path: Path, out: Difference) -> None:
    if shape == "leaf" or (_is_empty(old) and _is_empty(new)):
        _mark(old, new, path, out)
        if old is not _MISSING and new is not _MISSING:
            out.modified.add(path)
        return
    if shape == "map":
        before = old if isinstance(old, dict) else {}
        after = new if isinstance(new, dict) else {}
        for name in before.keys() | after.keys():
            child = node.child(name)
            if child is not None:
                _compare(child, before.get(name, _MISSING), after.get(name, _MISSING), (*path, f"f:{name}"), out)
    else:
        _compare_lists(node, old, new, path, out)
    _mark(old, new, path, out)


def _compare_lists(node: Node, old: Any, new: Any, path: Path, out: Difference) -> None:
    before, after = _grouped(node, old), _grouped(node, new)
    for key in before.keys() | after.keys():
        place = (*path, key)
        ones, twos = before.get(key, []), after.get(key, [])
        one, two = ones[0] if ones else _MISSING, twos[0] if twos else _MISSING
        if len(ones) <= 1 and len(twos) <= 1:
            if node.element is not None:
                _compare(node.element, one, two, place, out)
            else:
                _mark(one, two, place, out)
        elif len(ones) > 1 and len(twos) > 1:
            if ones != twos:
                out.modified.add(place)
        elif len(ones) > 1:
            if twos and node.element is not None:
                _compare(node.element, _MISSING, two, place, out)
            out.removed.add(place)
        else:
            if ones and node.element is not None:
                _compare(node.element, one, _MISSING, place, out)
            out.added.add(place)


def _mark(old: Any, new: Any, path: Path, out: Difference) -> None:
    """Note a place that only one side has."""
    if old is _MISSING:
        out.added.add(path)
    elif new is _MISSING:
        out.removed.add(path)


def _is_empty(value: Any) -> bool:
    return value is _MISSING or value is None or value == {} or value == []


def members(node: Node, paths: Paths) -> Paths:
    """The paths, and every declared field above one of them.

    So that taking a field away with everything in it also takes the empty rest.
    """
    out = set(paths)
    for path in paths:
        current: Node | None = node
        for i, element in enumerate(path[:-1]):
            if current is None:
                break
            if element.startswith("f:"):
                name = element[2:]
                declared = current.declared(name)
                if declared is not None:
                    out.add(path[: i + 1])
                current = declared or current.element
            else:
                current = current.element
    return out


def remove(node: Node, value: Any, paths: Paths) -> Any:
    """The value without the fields and items at these paths; what gets empty is null, as in a real server."""
    tree = encode(paths)
    return _remove(node, value, tree)


def _remove(node: Node, value: Any, tree: dict[str, Any]) -> Any:
    shape = node.shape
    if shape == "deduced":
        shape = "map" if isinstance(value, dict) else "leaf"
    if shape == "map" and isinstance(value, dict):
        out: dict[str, Any] = {}
        for name, item in value.items():
            below = tree.get(f"f:{name}")
            if below is None:
                out[name] = item
            elif not _is_member(below):
                child = node.child(name)
                out[name] = _remove(child, item, below) if child is not None else item
        return out or None
    if shape in ("keyed", "set") and isinstance(value, list):
        items = []
        for item in value:
            below = tree.get(node.item_key(item))
            if below is None:
                items.append(item)
            elif not _is_member(below):
                items.append(_remove(node.element, item, below) if node.element is not None else item)
        return items or None
    return value


def _is_member(below: dict[str, Any]) -> bool:
    return not below or "." in below


def encode(paths: Paths) -> dict[str, Any]:
    """The paths as FieldsV1."""
    root: dict[str, Any] = {}
    for path in sorted(paths):
        node = root
        for element in path:
            node = node.setdefault(element, {})
    for path in paths:
        node = root
        for element in path:
            node = node[element]
        if node:
            node["."] = {}
    return root


def decode(fields: dict[str, Any] | None) -> Paths:
    """The paths that FieldsV1 names."""
    out: Paths = set()
    _decode(fields or {}, (), out)
    return out


def _decode(fields: dict[str, Any], path: Path, out: Paths) -> None:
    for element, below in fields.items():
        if element == ".":
            out.add(path)
        elif below:
            _decode(below, (*path, element), out)
        else:
            out.add((*path, element))


def text(path: Path) -> str:
    """A path as messages write it: `.spec.containers[name="a"].image`."""
    parts = []
    for element in path:
        kind, rest = element[:1], element[2:]
        if kind == "f":
            parts.append(f".{rest}")
        elif kind == "v":
            parts.append(f"[={rest}]")
        else:
            pairs = ",".join(f"{k}={orjson.dumps(v).decode()}" for k, v in sorted(orjson.loads(rest).items()))
            parts.append(f"[{pairs}]")
    return "".join(parts)
