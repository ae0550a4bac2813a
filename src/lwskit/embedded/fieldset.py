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
        for item in value:
            place = (*path, node.item_key(item))
            out.add(place)
            if node.element is not None:
                _collect(node.element, item, place, out)


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
    shape = node.shape
    if shape == "deduced":
        known = old if old not in (_MISSING, None) else new
        both = isinstance(old, dict) and isinstance(new, dict)
        shape = (
            "map"
            if both or (isinstance(known, dict) and (old in (_MISSING, None) or new in (_MISSING, None)))
            else "leaf"
        )
    empty = _is_empty(old) and _is_empty(new)
    if shape == "leaf" or empty or not (_fits(shape, old) and _fits(shape, new)):
        if old is _MISSING:
            out.added.add(path)
        elif new is _MISSING:
            out.removed.add(path)
        else:
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
        before = {node.item_key(i): i for i in old} if isinstance(old, list) else {}
        after = {node.item_key(i): i for i in new} if isinstance(new, list) else {}
        for key in before.keys() | after.keys():
            place = (*path, key)
            one, two = before.get(key, _MISSING), after.get(key, _MISSING)
            if node.element is not None:
                _compare(node.element, one, two, place, out)
            elif one is _MISSING:
                out.added.add(place)
            elif two is _MISSING:
                out.removed.add(place)
    if old is _MISSING:
        out.added.add(path)
    elif new is _MISSING:
        out.removed.add(path)


def _is_empty(value: Any) -> bool:
    return value is _MISSING or value is None or value == {} or value == []


def _fits(shape: str, value: Any) -> bool:
    return value is _MISSING or value is None or isinstance(value, dict if shape == "map" else list)


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
