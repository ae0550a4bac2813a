"""Expressions ready to be evaluated: parsed, checked and compiled. Pure.

Source: Kubernetes documentation, "Common Expression Language in Kubernetes".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lwskit.embedded.cel import addresses, cost, kubernetes, lists, regex, texts, times
from lwskit.embedded.cel.checker import Checker, inside, parts
from lwskit.embedded.cel.cost import Extent
from lwskit.embedded.cel.evaluate import Compiler
from lwskit.embedded.cel.macros import Expander
from lwskit.embedded.cel.tree import Call, CompileError, ListNode, Literal, MapNode, Node, parse
from lwskit.embedded.cel.types import Type, loose, unwrapped
from lwskit.embedded.cel.values import EvaluationError

LIBRARIES = (addresses, kubernetes, lists, texts)
"""Modules whose functions expressions have, besides those of the language."""
_DEEPEST = 250


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression: what it is of, the variables it reads, and the function of them that it is.

    `run` raises EvaluationError when there is no value.
    """

    text: str
    type: Type
    uses: frozenset[str]
    run: Callable[[dict[str, Any]], Any]
    tree: Node
    checked: Checker

    def most(self, extent: Extent) -> int:
        """The highest cost on values of that extent."""
        return cost.most(self.tree, self.checked, extent)


def compile_text(text: str, variables: Mapping[str, Type]) -> Expression:
    """Compile an expression over variables of these types. Raises CompileError with what is wrong with it."""
    tree, source = parse(text)
    tree = Expander(source).expand(tree)
    if _depth(tree) > _DEEPEST:
        raise CompileError(source.error(tree.id, f"expression recursion limit exceeded: {_DEEPEST}"))
    checker = Checker(source, variables)
    kind = checker.check(tree)
    if not checker.errors:
        _check_literals(tree, checker)
    if checker.errors:
        raise CompileError(checker.errors)
    compiler = Compiler(checker)
    for node in parts(tree):
        if isinstance(node, Call):
            _check_constants(node, compiler)
    return Expression(text, kind, frozenset(checker.used), compiler.compile(tree), tree, checker)


class ProgramError(CompileError):
    """An expression that is well formed, but in which a constant part has no value."""


_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})


def _check_constants(node: Call, compiler: Compiler) -> None:
    first = node.arguments[0] if len(node.arguments) == 1 else None
    if not isinstance(first, Literal):
        return
    if node.function in _CONVERSIONS and node.target is None:
        try:
            compiler.compile(node)({})
        except EvaluationError as e:
            raise ProgramError(str(e)) from e
    elif node.function in ("find", "findAll") and regex.problem(first.value):
        raise ProgramError(regex.problem(first.value))


def _depth(tree: Node) -> int:
    level, depth = [tree], 0
    while level and depth <= _DEEPEST + 1:
        depth += 1
        level = [inner for node in level for inner in inside(node)]
    return depth


def _check_literals(node: Node, checker: Checker, mixed: bool = False) -> None:
    """Report constants that cannot be what the function that they are given to wants, and lists and maps of several
    types where these may not be `mixed`."""
    mixed = mixed or (isinstance(node, Call) and node.function == "format")
    for inner in inside(node):
        _check_literals(inner, checker, mixed)
    if isinstance(node, Call) and node.arguments:
        first = node.arguments[0]
        value = first.value if isinstance(first, Literal) else None
        if isinstance(value, str) and (
            (node.function == "duration" and times.read_duration(value) is None)
            or (node.function == "timestamp" and times.read_timestamp(value) is None)
            or (node.function == "matches" and node.target is not None and regex.problem(value))
        ):
            checker.report(first.id, f"invalid {node.function} argument")
        elif (
            isinstance(value, str)
            and node.function in ("find", "findAll")
            and not regex.problem(value)
            and regex.unsupported(value)
        ):
            checker.report(first.id, regex.unsupported_text(value))
        elif node.function == "format" and isinstance(node.target, Literal):
            _check_format(node, checker)
    elif mixed:
        return
    elif isinstance(node, ListNode):
        kinds = [checker.types[e] for e in node.elements]
        kinds = [unwrapped(k)[0] if i in node.optional else k for i, k in enumerate(kinds)]
        _alike(checker, node.elements, kinds, whole=True)
    elif isinstance(node, MapNode):
        keys = [e.key for e in node.entries if isinstance(e.key, Node)]
        _alike(checker, keys, [checker.types[k] for k in keys])
        values = [checker.types[e.value] for e in node.entries]
        values = [unwrapped(k)[0] if e.optional else k for e, k in zip(node.entries, values, strict=True)]
        _alike(checker, [e.value for e in node.entries], values)


def _alike(checker: Checker, nodes: list[Node], kinds: list[Type], *, whole: bool = False) -> None:
    for node, kind in zip(nodes[1:], kinds[1:], strict=True):
        if kind != kinds[0]:
            checker.report(node.id, f"expected type '{kinds[0]}' but found '{kind}'")
            if whole:
                return


_CLAUSES = {
    "d": (("int", "uint"), "decimal clause can only be used on integers"),
    "f": (("double",), "fixed-point clause can only be used on doubles"),
    "e": (("double",), "scientific clause can only be used on doubles"),
    "b": (("int", "uint", "bool"), "only integers and bools can be formatted as binary"),
    "o": (("int", "uint"), "octal clause can only be used on integers"),
    "x": (
        ("int", "uint", "string", "bytes"),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
}


def _check_format(node: Call, checker: Checker) -> None:
    """Report what is wrong with a format that is written out with its arguments."""
    given = node.arguments[0]
    target = node.target
    assert isinstance(target, Literal)
    if not isinstance(given, ListNode):
        return
    text, at, used = target.value, 0, 0
    while (at := text.find("%", at)) >= 0:
        if text.startswith("%%", at):
            at += 2
            continue
        if used >= len(given.elements):
            checker.report(node.id, f"index {used} out of range")
            return
        at += 1
        while at < len(text) and text[at] in ".0123456789":
            at += 1
        verb = text[at : at + 1]
        if not verb:
            checker.report(node.id, "unexpected end of string")
            return
        element = given.elements[used]
        kind = checker.types[element]
        allowed = _CLAUSES.get(verb.lower() if verb == "X" else verb)
        if allowed is None and verb != "s":
            checker.report(node.id, f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
            return
        fits = allowed is None or loose(kind) or kind.kind in allowed[0]
        if allowed is not None and not fits and not (kind.kind == "string" and verb in "fe" and _special(element)):
            checker.report(element.id, f"error during formatting: {allowed[1]}, was given {kind}")
            return
        used += 1
    if used < len(given.elements):
        text = f"too many arguments supplied to string.format (expected {used}, got {len(given.elements)})"
        checker.report(node.id, text)


def _special(node: Node) -> bool:
    return isinstance(node, Literal) and node.value in ("NaN", "Infinity", "-Infinity")
