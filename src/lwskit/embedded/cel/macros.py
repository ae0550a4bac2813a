"""Macros that the parser leaves as calls: those over keys and values at once, and `sortBy`. Pure.

Source: cel-go's documentation of its comprehensions and lists extensions.
"""

from __future__ import annotations

from lwskit.embedded.cel.tree import (
    Call,
    CompileError,
    Entry,
    Fold,
    ListNode,
    Literal,
    MapNode,
    Name,
    Node,
    Select,
    Source,
)

ACCUMULATOR = "@result"
_SORTED = "@__sortBy_input__"
_SHARED = {"all", "exists", "existsOne", "exists_one", "transformList", "transformMap", "transformMapEntry"}


class Expander:
    """Expands the macros of one expression. Raises CompileError for one that is used wrongly."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._last = max(source.positions, default=0)

    def expand(self, node: Node) -> Node:
        """The tree without macros."""
        match node:
            case Select():
                node.operand = self.expand(node.operand)
            case Call():
                node.target = self.expand(node.target) if node.target is not None else None
                node.arguments = [self.expand(a) for a in node.arguments]
                return self._call(node)
            case ListNode():
                node.elements = [self.expand(e) for e in node.elements]
            case MapNode():
                for entry in node.entries:
                    self._entry(entry)
            case Fold():
                for name in ("range", "start", "condition", "step", "result"):
                    setattr(node, name, self.expand(getattr(node, name)))
        return node

    def _entry(self, entry: Entry) -> None:
        if isinstance(entry.key, Node):
            entry.key = self.expand(entry.key)
        entry.value = self.expand(entry.value)

    def _new(self, call: Call) -> int:
        """The number of a new part that stands where the macro does."""
        self._last += 1
        self._source.positions[self._last] = self._source.positions.get(call.id, 0)
        return self._last

    def _call(self, call: Call) -> Node:
        arguments, target = call.arguments, call.target
        if target is None:
            return call
        if call.function == "sortBy" and len(arguments) == 2:
            return self._sort_by(call, target)
        transforms = call.function.startswith("transform")
        if call.function not in _SHARED or len(arguments) not in ((3, 4) if transforms else (3,)):
            return call
        one, two = self._variable(arguments[0]), self._variable(arguments[1])
        if one == two:
            raise CompileError(self._source.error(arguments[1].id, f"duplicate variable name: {one}"))
        if transforms:
            return self._transform(call, target, one, two)
        if call.function in ("existsOne", "exists_one"):
            return self._exists_one(call, target, one, two, arguments[2])
        every = call.function == "all"
        known: Node = self._name(call)
        if not every:
            known = Call(self._new(call), "!_", [known])
        return Fold(
            call.id,
            target,
            one,
            two,
            ACCUMULATOR,
            Literal(self._new(call), every),
            Call(self._new(call), "@not_strictly_false", [known]),
            Call(self._new(call), "_&&_" if every else "_||_", [self._name(call), arguments[2]]),
            self._name(call),
        )

    def _name(self, call: Call) -> Name:
        return Name(self._new(call), ACCUMULATOR)

    def _variable(self, node: Node, wrong: str = "argument must be a simple name") -> str:
        if not isinstance(node, Name):
            raise CompileError(self._source.error(node.id, wrong))
        return node.name

    def _exists_one(self, call: Call, target: Node, one: str, two: str, test: Node) -> Fold:
        counted = Call(self._new(call), "_+_", [self._name(call), Literal(self._new(call), 1)])
        step = Call(self._new(call), "_?_:_", [test, counted, self._name(call)])
        result = Call(self._new(call), "_==_", [self._name(call), Literal(self._new(call), 1)])
        start, always = Literal(self._new(call), 0), Literal(self._new(call), True)
        return Fold(call.id, target, one, two, ACCUMULATOR, start, always, step, result)

    def _transform(self, call: Call, target: Node, one: str, two: str) -> Fold:
        *conditions, value = call.arguments[2:]
        start: Node = MapNode(self._new(call), [])
        match call.function:
            case "transformList":
                start = ListNode(self._new(call), [])
                added = Call(self._new(call), "_+_", [self._name(call), ListNode(self._new(call), [value])])
            case "transformMap":
                key = Name(self._new(call), one)
                added = Call(self._new(call), "cel.@mapInsert", [self._name(call), key, value])
            case _:
                added = Call(self._new(call), "cel.@mapInsert", [self._name(call), value])
        step = Call(self._new(call), "_?_:_", [conditions[0], added, self._name(call)]) if conditions else added
        always = Literal(self._new(call), True)
        return Fold(call.id, target, one, two, ACCUMULATOR, start, always, step, self._name(call))

    def _sort_by(self, call: Call, target: Node) -> Fold:
        variable = self._variable(call.arguments[0], "argument is not an identifier")
        made = ListNode(self._new(call), [call.arguments[1]])
        keys = Fold(
            self._new(call),
            Name(self._new(call), _SORTED),
            variable,
            "",
            ACCUMULATOR,
            ListNode(self._new(call), []),
            Literal(self._new(call), True),
            Call(self._new(call), "_+_", [self._name(call), made]),
            self._name(call),
        )
        ordered = Call(self._new(call), "@sortByAssociatedKeys", [keys], Name(self._new(call), _SORTED))
        nothing, never = ListNode(self._new(call), []), Literal(self._new(call), False)
        return Fold(call.id, nothing, "#unused", "", _SORTED, target, never, Name(self._new(call), _SORTED), ordered)
