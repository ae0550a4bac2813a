"""Checked expressions as functions of their variables. Pure.

Each part of an expression becomes a Python function, once, when the expression is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lwskit.embedded.cel import types
from lwskit.embedded.cel.checker import Checker
from lwskit.embedded.cel.functions import FUNCTIONS, OPERATORS, Overload
from lwskit.embedded.cel.tree import Call, Entry, Fold, ListNode, Literal, MapNode, Name, Node, Select
from lwskit.embedded.cel.values import (
    MISSING,
    NONE,
    EvaluationError,
    Map,
    Optional,
    is_list,
    no_overload,
    shown,
    type_name,
)

Scope = dict[str, Any]
Part = Callable[[Scope], Any]


class Compiler:
    """Makes the function of a checked expression."""

    def __init__(self, checked: Checker) -> None:
        self._checked = checked

    def compile(self, node: Node) -> Part:
        """The function of one part."""
        constant = self._checked.constants.get(node)
        if constant is not None:
            return lambda scope: constant
        match node:
            case Literal():
                value = node.value
                return lambda scope: value
            case Name():
                return _variable(node.name)
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

    def _select(self, node: Select) -> Part:
        operand, name = self.compile(node.operand), node.name
        if node.test:
            return lambda scope: _has(operand(scope), name)
        return lambda scope: _field(operand(scope), name)

    def _call(self, node: Call) -> Part:
        parts = [self.compile(a) for a in ([node.target] if node.target is not None else []) + node.arguments]
        match node.function:
            case "_&&_":
                return _either(parts[0], parts[1], False)
            case "_||_":
                return _either(parts[0], parts[1], True)
            case "_?_:_":
                return _choice(*parts)
            case "@not_strictly_false":
                return parts[0]
            case "_?._":
                return _optional_field(parts[0], parts[1])
            case "or" if node.target is not None:
                return lambda scope: (
                    held if (held := _optional(parts[0](scope))).present else _optional(parts[1](scope))
                )
            case "orValue" if node.target is not None:
                return lambda scope: held.value if (held := _optional(parts[0](scope))).present else parts[1](scope)
        return self._function(node, parts)

    def _function(self, node: Call, parts: list[Part]) -> Part:
        fitting = self._checked.overloads[node]
        name = node.function
        given = [self._checked.types[a] for a in ([node.target] if node.target is not None else []) + node.arguments]
        if name in OPERATORS or (len(fitting) == 1 and all(_known(g) for g in given)):
            run = fitting[0].run
            match parts:
                case [one]:
                    return lambda scope: run(one(scope))
                case [one, two]:
                    return lambda scope: run(one(scope), two(scope))
            return lambda scope: run(*[p(scope) for p in parts])
        choices = [o for o in FUNCTIONS[name] if o.member == (node.target is not None)]
        return lambda scope: _dispatch(name, choices, [p(scope) for p in parts])

    def _list(self, node: ListNode) -> Part:
        elements = [self.compile(e) for e in node.elements]
        optional = node.optional
        if not optional:
            return lambda scope: [e(scope) for e in elements]

        def made(scope: Scope) -> list[Any]:
            out: list[Any] = []
            for i, element in enumerate(elements):
                value = element(scope)
                if i not in optional:
                    out.append(value)
                elif _held(value, "list element").present:
                    out.append(value.value)
            return out

        return made

    def _map(self, node: MapNode) -> Part:
        entries = [self._entry(e) for e in node.entries]

        def made(scope: Scope) -> Map:
            found: list[tuple[Any, Any]] = []
            for key, value, optional in entries:
                name, given = key(scope), value(scope)
                if optional:
                    if not _held(given, f"entry '{shown(name)}'").present:
                        continue
                    given = given.value
                found.append((name, given))
            return Map(found)

        return made

    def _entry(self, entry: Entry) -> tuple[Part, Part, bool]:
        assert isinstance(entry.key, Node)
        return self.compile(entry.key), self.compile(entry.value), entry.optional

    # -- comprehensions ----------------------------------------------------------------------------------------------

    def _fold(self, node: Fold) -> Part:
        items, result = self.compile(node.range), self.compile(node.result)
        start = self.compile(node.start)
        collect = self._collector(node)
        if collect is not None:
            return _collected(node, items, result, collect)
        condition = (
            None if isinstance(node.condition, Literal) and node.condition.value else self.compile(node.condition)
        )
        step = self.compile(node.step)
        name = node.accumulator
        stop = _stop_value(node)

        def folded(scope: Scope) -> Any:
            found = items(scope)
            inner = {**scope, name: start(scope)}
            failed: EvaluationError | None = None
            for _ in _bound(node, inner, found):
                if condition is not None and stop is None and condition(inner) is False:
                    break
                try:
                    value = step(inner)
                except EvaluationError as e:
                    if stop is None:
                        raise
                    # An item that decides makes this error not matter.
                    failed = failed or e
                    continue
                inner[name] = value
                if value is stop and stop is not None:
                    failed = None
                    break
            if failed is not None:
                raise failed
            return result(inner)

        return folded

    def _collector(self, node: Fold) -> tuple[Part | None, Part, bool] | None:
        """What `map`, `filter` and the like add at each item: the test, the value, whether a list grows; or None."""
        empty = isinstance(node.start, ListNode) and not node.start.elements
        empty = empty or (isinstance(node.start, MapNode) and not node.start.entries)
        if not empty or not isinstance(node.condition, Literal) or not node.condition.value:
            return None
        step, test = node.step, None
        if isinstance(step, Call) and step.function == "_?_:_" and _is(step.arguments[2], node.accumulator):
            test, step = self.compile(step.arguments[0]), step.arguments[1]
        if not isinstance(step, Call) or not step.arguments or not _is(step.arguments[0], node.accumulator):
            return None
        if step.function == "_+_":
            added = step.arguments[1]
            if isinstance(added, ListNode) and len(added.elements) == 1 and not added.optional:
                return test, self.compile(added.elements[0]), True
        elif step.function == "cel.@mapInsert":
            values = [self.compile(a) for a in step.arguments[1:]]
            if len(values) == 2:
                key, value = values
                return test, lambda scope: Map([(key(scope), value(scope))]), False
            return test, values[0], False
        return None


def _is(node: Node, name: str) -> bool:
    return isinstance(node, Name) and node.name == name


def _known(kind: types.Type) -> bool:
    """Whether nothing in the type is dynamic."""
    return kind.kind != "dyn" and all(_known(p) for p in kind.parameters)


def _variable(name: str) -> Part:
    def read(scope: Scope) -> Any:
        value = scope[name]
        if isinstance(value, EvaluationError):
            raise value
        return value

    return read


def _field(value: Any, name: str) -> Any:
    if isinstance(value, Map):
        found = value.find(name)
        if found is MISSING:
            raise EvaluationError(f"no such key: {name}")
        return found
    if isinstance(value, Optional):
        return _field_of_optional(value, name)
    if is_list(value):
        raise EvaluationError("unsupported index type 'string' in list")
    raise EvaluationError(f"no such key: {name}")


def _field_of_optional(value: Optional, name: str) -> Optional:
    if not value.present:
        return NONE
    return Optional(value.value.find(name)) if isinstance(value.value, Map) else NONE


def _has(value: Any, name: str) -> bool:
    if isinstance(value, Map):
        return value.find(name) is not MISSING
    if isinstance(value, Optional):
        return _field_of_optional(value, name).present
    return False


def _optional_field(operand: Part, name: Part) -> Part:
    def read(scope: Scope) -> Optional:
        value = operand(scope)
        return _field_of_optional(value if isinstance(value, Optional) else Optional(value), name(scope))

    return read


def _optional(value: Any) -> Optional:
    if not isinstance(value, Optional):
        raise no_overload()
    return value


def _held(value: Any, what: str) -> Optional:
    if not isinstance(value, Optional):
        raise EvaluationError(f"cannot initialize optional {what} from non-optional value {shown(value)}")
    return value


def _choice(test: Part, one: Part, two: Part) -> Part:
    def chosen(scope: Scope) -> Any:
        value = test(scope)
        if value is True:
            return one(scope)
        if value is False:
            return two(scope)
        raise no_overload()

    return chosen


def _either(one: Part, two: Part, deciding: bool) -> Part:
    """And (`deciding` is false) and or (true): an operand that decides makes an error of the other one not matter."""

    def decided(scope: Scope) -> bool:
        try:
            left = one(scope)
        except EvaluationError as e:
            with suppress(EvaluationError):
                if two(scope) is deciding:
                    return deciding
            raise e from None
        if left is deciding:
            return deciding
        right = two(scope)
        if right is deciding:
            return deciding
        if isinstance(left, bool) and isinstance(right, bool):
            return not deciding
        raise no_overload()

    return decided


_UNNAMED = frozenset({"contains", "endsWith", "find", "findAll", "matches", "startsWith"})
"""Functions that are not named in errors, though they are no operators."""


def _dispatch(name: str, choices: list[Overload], values: list[Any]) -> Any:
    for one in choices:
        if one.accepts(values):
            return one.run(*values)
    if name in _UNNAMED:
        raise no_overload()
    raise EvaluationError(f"no such overload: {name}({', '.join(type_name(v) for v in values)})")


def _stop_value(node: Fold) -> bool | None:
    """The value at which `all` and `exists` are decided, or None for other comprehensions."""
    condition = node.condition
    if not isinstance(condition, Call) or condition.function != "@not_strictly_false":
        return None
    if not isinstance(node.step, Call) or node.step.function not in ("_&&_", "_||_"):
        return None
    return node.step.function == "_||_"


def _bound(node: Fold, inner: Scope, items: Any) -> Any:
    """Sets the variables to each item in turn."""
    one, two = node.variable, node.second
    if is_list(items):
        if two:
            for inner[one], inner[two] in enumerate(items):
                yield
        else:
            for inner[one] in items:
                yield
    elif isinstance(items, Map):
        for inner[one] in items:
            if two:
                inner[two] = items.find(inner[one])
            yield
    else:
        raise no_overload()


def _collected(node: Fold, items: Part, result: Part, collect: tuple[Part | None, Part, bool]) -> Part:
    test, value, grows = collect
    name = node.accumulator

    def collected(scope: Scope) -> Any:
        inner = dict(scope)
        made: Any = [] if grows else Map()
        for _ in _bound(node, inner, items(scope)):
            if test is not None:
                wanted = test(inner)
                if not isinstance(wanted, bool):
                    raise no_overload()
                if not wanted:
                    continue
            found = value(inner)
            if grows:
                made.append(found)
            else:
                for key in found:
                    made.put(key, found.find(key))
        return result({**scope, name: made})

    return collected
