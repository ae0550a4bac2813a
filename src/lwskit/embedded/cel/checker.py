"""Types of the parts of an expression, and what does not fit in it. Pure.

Sources: the CEL language definition, "Gradual type checking" and "Name resolution"; Kubernetes documentation, "Common
Expression Language in Kubernetes", on type checking.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from lwskit.embedded.cel import types
from lwskit.embedded.cel.functions import FUNCTIONS, Overload
from lwskit.embedded.cel.tree import Call, Fold, ListNode, Literal, MapNode, Name, Node, Select, Source
from lwskit.embedded.cel.types import DYN, ERROR, Bindings, Type
from lwskit.embedded.cel.values import TypeValue, Uint

_A, _B = types.parameter("A"), types.parameter("B")
_KINDS = {
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "google.protobuf.Duration": types.DURATION,
    "int": types.INT,
    "list": types.list_of(_A),
    "map": types.map_of(_A, _B),
    "null_type": types.NULL,
    "string": types.STRING,
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "type": types.TYPE,
    "uint": types.UINT,
    "optional_type": types.optional(_A),
    "net.IP": types.opaque("net.IP"),
    "net.CIDR": types.opaque("net.CIDR"),
}
TYPE_NAMES: dict[str, Type] = {name: Type("type", "", (kind,)) for name, kind in _KINDS.items()}
"""The types that have a name in expressions."""
_LITERALS: dict[type, Type] = {
    bool: types.BOOL,
    bytes: types.BYTES,
    float: types.DOUBLE,
    int: types.INT,
    str: types.STRING,
    Uint: types.UINT,
    type(None): types.NULL,
}
_KEYWORDS = (
    "true false null in as break const continue else for function if import let loop package namespace return var "
    "void while"
)
KEYWORDS = frozenset(_KEYWORDS.split())
"""Words that the language keeps for itself; fields that are called so are written `__word__`, or plainly."""


class Checker:
    """Checks one expression. After `check`, `types` has the type of each part, `overloads` which functions a call may
    mean, `constants` what names of types stand for, and `used` the variables."""

    def __init__(self, source: Source, variables: Mapping[str, Type]) -> None:
        self._source = source
        self._scopes: list[Mapping[str, Type]] = [variables]
        self._outer = variables
        self._bindings = Bindings()
        self._free = 0
        self._errors: list[tuple[int, str]] = []
        self.types: dict[Node, Type] = {}
        self.overloads: dict[Node, list[Overload]] = {}
        self.constants: dict[Node, TypeValue] = {}
        self.used: set[str] = set()

    def check(self, node: Node) -> Type:
        """The type of the expression."""
        self._check(node)
        self.types = {n: self._bindings.resolve(t, free=False) for n, t in self.types.items()}
        return self.types[node]

    def report(self, place: int, message: str) -> None:
        """Note an error at a part of the expression."""
        self._errors.append((place, message))

    @property
    def errors(self) -> str:
        """The errors with their places, in the order of the text; empty if there are none."""
        found = sorted(self._errors, key=lambda e: self._source.positions.get(e[0], 0))
        return "\n".join(self._source.error(place, message) for place, message in found)

    # -- parts -------------------------------------------------------------------------------------------------------

    def _check(self, node: Node) -> Type:
        match node:
            case Literal():
                found = _LITERALS[type(node.value)]
                if found == types.DOUBLE and math.isinf(node.value):
                    self.report(node.id, "invalid double literal")
            case Name():
                found = self._variable(node, node.name)
                if found is None:
                    self.report(node.id, f"undeclared reference to '{node.name}' (in container '')")
                    found = ERROR
            case Select():
                found = self._select(node)
            case Call():
                found = self._call(node)
            case ListNode():
                found = self._list(node)
            case MapNode():
                found = self._message(node) if node.message else self._map(node)
            case Fold():
                found = self._fold(node)
            case _:
                raise AssertionError(node)
        self.types[node] = found
        return found

    def _fresh(self) -> Type:
        self._free += 1
        return types.parameter(f"_var{self._free}")

    def _variable(self, node: Node, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                if scope is self._outer:
                    self.used.add(name)
                return scope[name]
        found = TYPE_NAMES.get(name)
        if found is not None:
            self.constants[node] = TypeValue(name)
        return found

    def _qualified(self, node: Node) -> str:
        """The names with dots between them that a part consists of, or an empty text."""
        if isinstance(node, Name):
            return node.name
        if isinstance(node, Select) and not node.test:
            before = self._qualified(node.operand)
            return f"{before}.{node.name}" if before else ""
        return ""

    def _select(self, node: Select) -> Type:
        name = self._qualified(node)
        if name in TYPE_NAMES and not self._local(name.partition(".")[0]):
            self.constants[node] = TypeValue(name)
            return TYPE_NAMES[name]
        found = self._field(node, node.operand, node.name, False)
        return types.BOOL if node.test else self._bindings.resolve(found)

    def _local(self, name: str) -> bool:
        return any(name in scope for scope in self._scopes)

    def _field(self, node: Node, operand: Node, name: str, optional: bool) -> Type:
        given = self._bindings.resolve(self._check(operand))
        target, is_optional = types.unwrapped(given)
        found = ERROR
        match target.kind:
            case "map":
                found = target.parameters[1]
            case "object":
                found = target.fields.get(name) or target.fields.get(f"__{name}__" if name in KEYWORDS else "")
                if found is None:
                    found = ERROR
                    self.report(node.id, f"undefined field '{name}'")
            case "param":
                self._bindings.assignable(DYN, target)
                found = DYN
            case _:
                if not types.loose(target):
                    self.report(node.id, f"type '{target}' does not support field selection")
                found = DYN
        return types.optional(found) if is_optional or optional else found

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            field = node.arguments[1]
            name = field.value if isinstance(field, Literal) else ""
            return self._bindings.resolve(self._field(node, node.arguments[0], name, True))
        arguments = [self._check(a) for a in node.arguments]
        if node.target is not None:
            prefix = self._qualified(node.target)
            full = f"{prefix}.{node.function}" if prefix else ""
            if full in FUNCTIONS:
                node.function, node.target = full, None
            else:
                arguments.insert(0, self._check(node.target))
        overloads = FUNCTIONS.get(node.function)
        if overloads is None:
            self.report(node.id, f"undeclared reference to '{node.function}' (in container '')")
            return ERROR
        return self._resolve(node, overloads, arguments)

    def _resolve(self, node: Call, overloads: list[Overload], arguments: list[Type]) -> Type:
        member = node.target is not None
        if node.function in ("_&&_", "_||_"):
            wrong = False
            for part, given in zip(node.arguments, arguments, strict=True):
                if not self._bindings.assignable(given, types.BOOL):
                    self.report(part.id, f"expected type 'bool' but found '{given}'")
                    wrong = True
            return ERROR if wrong else types.BOOL
        result: Type | None = None
        fitting: list[Overload] = []
        for one in overloads:
            if one.member != member:
                continue
            fresh = Bindings({p: self._fresh() for p in one.parameters})
            wanted = [fresh.resolve(a) for a in one.arguments]
            if not self._bindings.all_assignable(arguments, wanted):
                continue
            fitting.append(one)
            found = self._bindings.resolve(fresh.resolve(one.result))
            if result is None:
                result = found
            elif result.kind != "dyn" and found != result:
                result = DYN
        if result is None:
            self.report(
                node.id,
                f"found no matching overload for '{node.function}' applied to '{self._call_text(arguments, member)}'",
            )
            return ERROR
        self.overloads[node] = fitting
        return result

    def _call_text(self, arguments: list[Type], member: bool) -> str:
        shown = [str(self._bindings.resolve(a, free=False)) for a in arguments]
        return f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"

    def _join(self, node: Node, before: Type | None, given: Type) -> Type:
        if before is None:
            return given
        if self._bindings.assignable(before, given):
            return types.general(before, given)
        return DYN

    def _present(self, node: Node, given: Type, optional: bool) -> Type:
        """The type of an element that may be written as missing."""
        if not optional:
            return given
        inner, is_optional = types.unwrapped(given)
        if not is_optional and given.kind != "dyn":
            self.report(node.id, f"expected type '{types.optional(given)}' but found '{given}'")
        return inner

    def _list(self, node: ListNode) -> Type:
        found: Type | None = None
        for i, element in enumerate(node.elements):
            found = self._join(element, found, self._present(element, self._check(element), i in node.optional))
        return types.list_of(found if found is not None else self._fresh())

    def _map(self, node: MapNode) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            assert isinstance(entry.key, Node)
            key = self._join(entry.key, key, self._check(entry.key))
            given = self._present(entry.value, self._check(entry.value), entry.optional)
            value = self._join(entry.value, value, given)
        return types.map_of(key or self._fresh(), value or self._fresh())

    def _message(self, node: MapNode) -> Type:
        if node.message.startswith("google.protobuf."):
            text = f"the embedded API server has no messages such as {node.message} in expressions"
        else:
            text = f"undeclared reference to '{node.message}' (in container '')"
        self._source.positions[node.id] = self._source.text.find("{", self._source.positions.get(node.id, 0))
        self.report(node.id, text)
        for entry in node.entries:
            self._check(entry.value)
        return ERROR

    def _fold(self, node: Fold) -> Type:
        self._check(node.range)
        accumulated = self._check(node.start)
        given = self._bindings.resolve(self.types[node.range])
        first = second = ERROR
        match given.kind:
            case "list":
                first = given.parameters[0]
                if node.second:
                    first, second = types.INT, first
            case "map":
                first, second = given.parameters
            case "dyn" | "!error!" | "param":
                self._bindings.assignable(DYN, given)
                first = second = DYN
            case _:
                text = (
                    f"expression of type '{given}' cannot be range of a comprehension (must be list, map, or dynamic)"
                )
                self.report(node.range.id, text)
        self._scopes.append({node.accumulator: accumulated})
        self._scopes.append({node.variable: first} | ({node.second: second} if node.second else {}))
        self._check(node.condition)
        self._assert(node.condition, types.BOOL)
        self._check(node.step)
        self._assert(node.step, accumulated)
        self._scopes.pop()
        result = self._check(node.result)
        self._scopes.pop()
        return self._bindings.resolve(result)

    def _assert(self, node: Node, wanted: Type) -> None:
        given = self.types[node]
        if not self._bindings.assignable(wanted, given):
            self.report(node.id, f"expected type '{wanted}' but found '{given}'")


def inside(node: Node) -> list[Node]:
    """The parts that a part is made of."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [*([node.target] if node.target is not None else ()), *node.arguments]
        case ListNode():
            return node.elements
        case MapNode():
            return [p for e in node.entries for p in (e.key, e.value) if isinstance(p, Node)]
        case Fold():
            return [node.range, node.start, node.condition, node.step, node.result]
    return []


def parts(node: Node) -> Iterator[Node]:
    """All parts of an expression, outer ones first."""
    yield node
    for one in inside(node):
        yield from parts(one)
