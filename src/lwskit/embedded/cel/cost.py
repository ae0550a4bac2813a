"""What evaluating an expression may cost at most, before it is known on what: in the units of Kubernetes' limits. Pure.

Sources: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", on the resources that
validation rules use; what a real API server says of expressions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lwskit.embedded.cel.checker import Checker
from lwskit.embedded.cel.functions import Overload
from lwskit.embedded.cel.macros import ACCUMULATOR
from lwskit.embedded.cel.tree import Call, Fold, ListNode, Literal, MapNode, Name, Node, Select
from lwskit.embedded.cel.types import Type, unwrapped

MOST = 2**64 - 1
_STRING, _REGEX = 0.1, 0.25
_SCALARS = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_COUNTED = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})
_SCANNED = frozenset({"lowerAscii", "upperAscii", "substring", "trim"})
_READ = frozenset({"cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"})
_ONE_UNIT = frozenset({"kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR"})


@dataclass(frozen=True, slots=True)
class Extent:
    """How large a value can be: `most` elements or characters, `least` bytes when written; and what is in it."""

    most: int
    least: int
    fields: Mapping[str, Extent] = field(default_factory=dict)
    element: Extent | None = None


class Span(NamedTuple):
    """A least and a most: of a size or of a cost."""

    least: int
    most: int

    def plus(self, other: Span) -> Span:
        """The sum."""
        return Span(min(self.least + other.least, MOST), min(self.most + other.most, MOST))

    def times(self, other: Span) -> Span:
        """The product."""
        return Span(min(self.least * other.least, MOST), min(self.most * other.most, MOST))

    def by(self, factor: float) -> Span:
        """The cost of so much a unit."""
        return Span(_scaled(self.least, factor), _scaled(self.most, factor))

    def or_(self, other: Span) -> Span:
        """What both are within."""
        return Span(min(self.least, other.least), max(self.most, other.most))


def _scaled(value: int, factor: float) -> int:
    found = float(value) * factor
    return MOST if found >= 2.0**64 else math.ceil(found)


_NOTHING, _ONE, _UNKNOWN = Span(0, 0), Span(1, 1), Span(0, MOST)


class _Entry(NamedTuple):
    """How large keys and values of a list or a map are."""

    kind: str
    key: Span
    value: Span

    def or_(self, other: _Entry | None) -> _Entry | None:
        return _Entry(self.kind, self.key.or_(other.key), self.value.or_(other.value)) if other is not None else None


class _Local(NamedTuple):
    path: tuple[str, ...]
    size: Span | None
    entry: _Entry | None


class _Sized(NamedTuple):
    """An operand as functions look at it."""

    path: tuple[str, ...]
    type: Type
    node: Node | None
    size: Span | None


def most(tree: Node, checked: Checker, root: Extent) -> int:
    """The highest cost of a checked expression on values of that extent."""
    return _Estimate(checked, root).cost(tree).most


class _Estimate:
    def __init__(self, checked: Checker, root: Extent) -> None:
        self._checked = checked
        self._root = root
        self._paths: dict[Node, tuple[str, ...]] = {}
        self._locals: dict[str, list[_Local]] = {}
        self._sizes: dict[Node, Span] = {}
        self._entries: dict[Node, _Entry] = {}

    # -- sizes ---------------------------------------------------------------------------------------------------------

    def _path(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, Name) and self._locals.get(node.name):
            return self._locals[node.name][-1].path
        return self._paths.get(node, ())

    def _at(self, path: Sequence[str]) -> Span | None:
        """The size of what is at a path of the rule's value, if that is known."""
        if not path:
            return None
        current: Extent | None = self._root
        for name in path[1:]:
            if name in ("@items", "@values"):
                current = current.element
            elif name == "@keys":
                return Span(0, 0) if current.element is not None else None
            else:
                current = current.fields.get(name)
            if current is None:
                return None
        return Span(0, current.most)

    def _size(self, node: Node) -> Span | None:
        found = self._sizes.get(node)
        if found is not None:
            return found
        match node:
            case Literal():
                length = len(node.value) if isinstance(node.value, str | bytes) else 1
                return Span(length, length)
            case ListNode():
                return Span(len(node.elements), len(node.elements))
            case MapNode():
                return Span(len(node.entries), len(node.entries))
        found = self._at(self._path(node))
        if found is not None:
            self._sizes[node] = found
            return found
        if unwrapped(self._checked.types[node])[0].kind in _SCALARS:
            return _ONE
        if isinstance(node, Name) and self._locals.get(node.name):
            return self._locals[node.name][-1].size
        return None

    def _known(self, node: Node) -> Span:
        return self._size(node) or _UNKNOWN

    def _entry(self, node: Node) -> _Entry | None:
        found = self._entries.get(node)
        if found is None and isinstance(node, Name) and self._locals.get(node.name):
            return self._locals[node.name][-1].entry
        return found

    def _set(self, node: Node, size: Span | None, entry: _Entry | None = None) -> None:
        if size is not None:
            self._sizes[node] = size
        if entry is not None:
            self._entries[node] = entry

    def _operand(self, node: Node) -> _Sized:
        path = self._path(node)
        if path and path[0] == ACCUMULATOR:
            path = ()
        return _Sized(path, self._checked.types[node], node, self._size(node))

    def _of(self, operand: _Sized) -> Span:
        return operand.size or self._at(operand.path) or _UNKNOWN

    # -- costs ---------------------------------------------------------------------------------------------------------

    def cost(self, node: Node) -> Span:
        """The cost of a part."""
        match node:
            case Literal():
                return _NOTHING
            case Name():
                own = self._locals.get(node.name)
                self._paths[node] = own[-1].path if own else (node.name,)
                return _ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Fold():
                return self._fold(node)
        raise AssertionError(node)

    def _select(self, node: Select) -> Span:
        if node in self._checked.constants:
            self._paths[node] = (node.name,)
            return _ONE
        total = self.cost(node.operand)
        if node.test:
            return total
        if self._checked.types[node.operand].kind in ("map", "object", "param"):
            total = total.plus(_ONE)
        self._paths[node] = (*self._path(node.operand), node.name)
        return total

    def _list(self, node: ListNode) -> Span:
        total, item = Span(10, 10), Span(MOST if node.elements else 0, 0)
        for element in node.elements:
            total = total.plus(self.cost(element))
            item = item.or_(self._known(element))
        self._set(node, None, _Entry("list", _ONE, item))
        return total

    def _map(self, node: MapNode) -> Span:
        total = Span(30, 30)
        key = value = Span(MOST if node.entries else 0, 0)
        for entry in node.entries:
            assert isinstance(entry.key, Node)
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key, value = key.or_(self._known(entry.key)), value.or_(self._known(entry.value))
        self._set(node, None, _Entry("map", key, value))
        return total

    def _fold(self, node: Fold) -> Span:
        total = self.cost(node.range).plus(self.cost(node.start))
        self._push(node.accumulator, _Local(self._path(node.start), self._size(node.start), self._entry(node.start)))
        if _is_name(node):
            total = total.plus(self.cost(node.result))
            self._locals[node.accumulator].pop()
            self._set(node, self._size(node.result), self._entry(node.result))
            return total
        names = self._variables(node)
        each = self.cost(node.condition).plus(self.cost(node.step))
        for name in names:
            self._locals[name].pop()
        total = total.plus(self.cost(node.result))
        self._locals[node.accumulator].pop()
        count = self._known(node.range)
        total = total.plus(count.times(each))
        if isinstance(node.start, Literal):
            self._set(node, self._size(node.start))
        elif isinstance(node.start, ListNode | MapNode):
            self._set(node, count, self._entry(node.step))
        return total

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _variables(self, node: Fold) -> list[str]:
        entry, path = self._entry(node.range), self._path(node.range)
        kind = entry.kind if entry is not None else self._checked.types[node.range].kind
        key, value = (entry.key, entry.value) if entry is not None else (None, None)
        if node.second:
            self._push(node.variable, _Local((*path, "@indices" if kind == "list" else "@keys"), key, None))
            self._push(node.second, _Local((*path, "@items" if kind == "list" else "@values"), value, None))
            return [node.variable, node.second]
        listed = kind == "list"
        self._push(node.variable, _Local((*path, "@items" if listed else "@keys"), value if listed else key, None))
        return [node.variable]

    def _call(self, node: Call) -> Span:
        if node.function == "dyn":
            total = self.cost(node.arguments[0]).plus(_ONE)
            self._set(node, self._size(node.arguments[0]), self._entry(node.arguments[0]))
            return total
        if node.function == "_?._":
            return self._finish(node, self.cost(node.arguments[0]).plus(_ONE), None)
        costs = [self.cost(a) for a in node.arguments]
        arguments = [self._operand(a) for a in node.arguments]
        spent = _NOTHING
        for one in costs:
            spent = spent.plus(one)
        target: _Sized | None = None
        total = _NOTHING
        if node.target is not None:
            total = self.cost(node.target)
            target = self._operand(node.target)
        if node.function in ("_&&_", "_||_"):
            return self._finish(node, Span(costs[0].least, costs[0].plus(costs[1]).most), None)
        if node.function == "_?_:_":
            size = (arguments[1].size or _UNKNOWN).or_(arguments[2].size or _UNKNOWN)
            one, two = self._entry(node.arguments[1]), self._entry(node.arguments[2])
            self._set(node, None, one.or_(two) if one is not None else None)
            return self._finish(node, costs[0].plus(costs[1].or_(costs[2])), size)
        found, result = Span(MOST, 0), None
        for overload in self._checked.overloads.get(node, ()):
            own, size = self._function(node, overload, target, arguments)
            found = found.or_(own.plus(spent))
            if size is not None:
                result = size if result is None else result.or_(size)
            if node.function == "_[_]" and overload.arguments[0].kind in ("list", "map"):
                entry = self._entry(node.arguments[0])
                result = entry.value if entry is not None else None
                last = "@items" if overload.arguments[0].kind == "list" else "@values"
                self._paths[node] = (*self._path(node.arguments[0]), last)
            if result is None:
                result = self._size(node)
        self._set(node, result)
        return total.plus(found)

    def _finish(self, node: Call, total: Span, size: Span | None) -> Span:
        self._set(node, size if size is not None else self._size(node))
        return total

    def _function(
        self, node: Call, overload: Overload, target: _Sized | None, arguments: list[_Sized]
    ) -> tuple[Span, Span | None]:
        """What a function costs besides its operands, and how large its result is, where that is known."""
        found = self._library(overload.function, target, arguments)
        if found is not None:
            return found
        first = overload.arguments[0].kind if overload.arguments else ""
        sizes = [a.size or _UNKNOWN for a in arguments]
        match overload.function:
            case "format" if target is not None:
                return (target.size or _UNKNOWN).by(_STRING), None
            case "bytes" if first == "string":
                return sizes[0].by(_STRING), Span(sizes[0].least, sizes[0].most * 4 % 2**64)
            case "string" if first == "bytes":
                return sizes[0].by(_STRING), Span(sizes[0].least // 4, sizes[0].most)
            case "strings.quote":
                return sizes[0].by(_STRING), Span(sizes[0].least + 2, (sizes[0].most * 2 + 2) % 2**64)
            case "startsWith" | "endsWith":
                return sizes[0].by(_STRING), None
            case "@in" if overload.arguments[1].kind == "list":
                return sizes[1].by(1), None
            case "matches":
                text, pattern = [(target or arguments[0]).size or _UNKNOWN, sizes[-1]]
                return text.plus(_ONE).by(_STRING).times(pattern.by(_REGEX)), None
            case "contains" if target is not None:
                return (target.size or _UNKNOWN).by(_STRING).times(sizes[0].by(_STRING)), None
            case "_+_" if first in ("string", "bytes", "list"):
                return self._sum(node, first, sizes)
            case "_==_" | "_!=_":
                return _smaller(sizes), None
            case "_<_" | "_<=_" | "_>_" | "_>=_" if first in ("string", "bytes"):
                return _smaller(sizes), None
        return _ONE, None

    def _sum(self, node: Call, kind: str, sizes: list[Span]) -> tuple[Span, Span]:
        size = sizes[0].plus(sizes[1])
        one, two = self._entry(node.arguments[0]), self._entry(node.arguments[1])
        self._set(node, None, one.or_(two) if one is not None else None)
        return (_ONE if kind == "list" else size.by(_STRING)), size

    def _library(
        self, function: str, target: _Sized | None, arguments: list[_Sized]
    ) -> tuple[Span, Span | None] | None:
        """The same for functions of libraries."""
        if function in _READ and arguments:
            return self._of(arguments[0]).by(_STRING), None
        if target is None:
            return self._plain(function, arguments)
        size = self._of(target)
        match function:
            case _ if function in _COUNTED:
                return self._counted(target, size), None
            case _ if function in _SCANNED:
                return size.by(_STRING), size
            case "replace":
                return size.by(2 * _STRING), _replaced(size, self._of(arguments[0]), self._of(arguments[1]))
            case "split":
                most_parts = _whole(arguments[1].node, size.most) if len(arguments) > 1 else size.most
                return size.by(2 * _STRING), Span(0, most_parts)
            case "join":
                found = self._joined(target, size, arguments)
                return found.by(_STRING), found
            case "find" | "findAll":
                pattern = self._of(arguments[0]).by(_REGEX)
                return size.plus(_ONE).by(_STRING).times(pattern), Span(0, size.most)
            case "containsIP" | "containsCIDR":
                return self._contained(function, arguments[0]), None
            case "validate":
                return self._of(arguments[0]).by(_STRING).by(128 * _REGEX), None
            case "slice":
                length = (_whole(arguments[1].node, size.most) - _whole(arguments[0].node, 0)) % 2**64
                return _made(1, Span(length, length))
            case "reverse":
                return _made(1, size)
            case "flatten":
                return _made(float(_whole(arguments[0].node, MOST)) if arguments else 1, size)
            case "distinct":
                return _made(2, size.times(size))
            case "sort" | "@sortByAssociatedKeys":
                keys = arguments[0] if arguments else target
                text = keys.type.parameters and keys.type.parameters[0].kind in ("string", "bytes")
                return _made(2.1 if text else 2, self._of(keys).times(self._of(keys)))
        return None

    def _plain(self, function: str, arguments: list[_Sized]) -> tuple[Span, Span | None] | None:
        match function:
            case "url":
                size = self._of(arguments[0])
                return size.by(_STRING), size
            case "ip":
                return self._of(arguments[0]).by(_STRING), None
            case "ip.isCanonical":
                return self._of(arguments[0]).by(2 * _STRING), None
            case "sets.contains" | "sets.intersects" | "sets.equivalent":
                pairs = self._of(arguments[0]).times(self._of(arguments[1]))
                return pairs.by(2 if function.endswith("equivalent") else 1).plus(_ONE), None
            case "lists.range":
                length = _whole(arguments[0].node, MOST)
                return _made(1, Span(length, length))
            case "_==_" if arguments[0].type == arguments[1].type and arguments[0].type.name in _ONE_UNIT:
                return _ONE, None
        return None

    def _element(self, target: _Sized) -> Span | None:
        """The size of the items of a list."""
        if not target.type.parameters:
            return None
        return (self._at((*target.path, "@items")) if target.path else None) or _UNKNOWN

    def _counted(self, target: _Sized, size: Span) -> Span:
        inner = target.type.parameters[0].kind if target.type.parameters else ""
        if not inner:
            return size.by(_STRING)
        each = _ONE
        if inner in ("string", "bytes"):
            each = each.plus((self._element(target) or _UNKNOWN).by(_STRING))
        return size.times(each)

    def _joined(self, target: _Sized, size: Span, arguments: list[_Sized]) -> Span:
        found = size.times(self._element(target) or _NOTHING) if target.type.parameters else _NOTHING
        if arguments:
            between = Span(max(size.least - 1, 0), max(size.most - 1, 0))
            found = found.plus(self._of(arguments[0]).times(between))
        return found

    def _contained(self, function: str, other: _Sized) -> Span:
        address = Span(4, 16)
        found = address.plus(address).by(_STRING)
        if function == "containsCIDR":
            found = found.plus(address.by(_STRING)).plus(_ONE)
        return found.plus(self._of(other).by(_STRING)) if other.type.kind == "string" else found


def _is_name(node: Fold) -> bool:
    """Whether it only gives a value a name."""
    nothing = isinstance(node.range, ListNode) and not node.range.elements
    never = isinstance(node.condition, Literal) and node.condition.value is False
    return nothing and never and node.accumulator != ACCUMULATOR


def _smaller(sizes: list[Span]) -> Span:
    limit = min(sizes[0].most, sizes[1].most)
    return Span(1 if limit else 0, limit).by(_STRING)


def _made(factor: float, size: Span) -> tuple[Span, Span]:
    """A list of that size."""
    return size.by(factor).plus(Span(11, 11)), size


def _whole(node: Any, otherwise: int) -> int:
    """A whole number that is written out."""
    if isinstance(node, Literal) and type(node.value) is int:
        return max(node.value, 0)
    return otherwise


def _replaced(size: Span, old: Span, new: Span) -> Span:
    """The size of a text in which others are replaced."""
    kept_most = kept_least = 0
    if old.least == 0:
        most_times, kept_most = min(size.most + 1, MOST), size.most
    elif new.most <= old.least:
        most_times, kept_most = 0, size.most
    else:
        most_times = math.ceil(size.most / old.least)
    if old.most == 0:
        least_times, kept_least = min(size.least + 1, MOST), size.least
    elif old.most <= new.least:
        least_times, kept_least = 0, size.least
    else:
        least_times = math.ceil(size.least / old.most)
    return Span(least_times, most_times).times(new).plus(Span(kept_least, kept_most))
