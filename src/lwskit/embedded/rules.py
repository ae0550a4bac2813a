"""Validation rules of custom resources (`x-kubernetes-validations`): compiled once, evaluated for each object. Pure.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", on validation rules,
transition rules, messages, and ratcheting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from lwskit.embedded.cel import types
from lwskit.embedded.cel.expression import Expression, ProgramError, compile_text
from lwskit.embedded.cel.tree import CompileError
from lwskit.embedded.cel.values import NONE, EvaluationError, Optional
from lwskit.embedded.failures import FieldError, duplicate, forbidden_field, invalid_value, required
from lwskit.embedded.rule_values import type_of, visible, wrapper
from lwskit.embedded.schema import EMBEDDED, RULES, Schema, has_rules

_LONGEST_MESSAGE = 5 * 1024
_BLOCKING = frozenset(f"FieldValue{kind}" for kind in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"))
_NOT_CHECKED = FieldError(
    "FieldValueInvalid",
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)


class RuleError(Exception):
    """A rule that cannot be used: `member` is the part of it, and the text is what is wrong.

    `unread` is whether it is not known what the rule reads.
    """

    def __init__(self, member: str, text: str, *, unread: bool = False) -> None:
        super().__init__(text)
        self.member = member
        self.unread = unread


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, compiled."""

    source: Mapping[str, Any]
    test: Expression
    message: Expression | None
    path: str

    @property
    def transition(self) -> bool:
        """Whether the rule compares with the value before."""
        return "oldSelf" in self.test.uses

    @property
    def lenient(self) -> bool:
        """Whether it is evaluated also where there is no value before."""
        return bool(self.source.get("optionalOldSelf"))

    @property
    def name(self) -> str:
        """What errors call the rule: its message, or else its text."""
        return str(self.source.get("message") or self.source["rule"]).strip()


def compile_rule(rule: Mapping[str, Any], kind: types.Type, schema: Schema) -> Rule:
    """Compile a rule on values of a type. Raises RuleError with what is wrong with it."""
    variables = {"self": kind, "oldSelf": types.optional(kind) if rule.get("optionalOldSelf") else kind}
    try:
        test = compile_text(rule["rule"], variables)
    except CompileError as e:
        raise RuleError("rule", f"{_step(e)} failed: {e}", unread=not isinstance(e, ProgramError)) from e
    if test.type != types.BOOL:
        raise RuleError("rule", "cel expression must evaluate to a bool", unread=True)
    message = None
    if rule.get("messageExpression"):
        try:
            message = compile_text(rule["messageExpression"], variables)
        except CompileError as e:
            step = _step(e).removeprefix("program ")
            raise RuleError("messageExpression", f"messageExpression {step} failed: {e}") from e
        if message.type != types.STRING:
            raise RuleError("messageExpression", "messageExpression must evaluate to a string")
    path = normal_path(rule["fieldPath"], schema) if rule.get("fieldPath") else ""
    return Rule(rule, test, message, path or "")


def _step(error: CompileError) -> str:
    return "program instantiation" if isinstance(error, ProgramError) else "compilation"


@dataclass(slots=True)
class Node:
    """The rules of one place of a schema, and the places below it that have some."""

    schema: Schema
    wrap: Callable[[Any], Any]
    rules: list[Rule] = field(default_factory=list)
    items: Node | None = None
    additional: Node | None = None
    properties: dict[str, Node] = field(default_factory=dict)

    @property
    def keys(self) -> Sequence[str]:
        """The keys of a list whose items are compared with those before."""
        if self.schema.get("x-kubernetes-list-type") != "map":
            return ()
        return self.schema.get("x-kubernetes-list-map-keys") or ()


def build(schema: Schema, root: bool = True) -> Node | None:
    """The rules of a schema, compiled; None if there are none. Raises RuleError for one that cannot be used."""
    if not has_rules(schema):
        return None
    node = Node(schema, wrapper(visible(schema, root)))
    if schema.get(RULES):
        kind = type_of(schema, root, "selfType")
        for rule in schema[RULES]:
            if kind is not None and rule.get("rule", "").strip():
                node.rules.append(compile_rule(rule, kind, schema))
    node.items = _below(schema.get("items"))
    node.additional = _below(schema.get("additionalProperties"))
    for name, inner in (schema.get("properties") or {}).items():
        found = _below(inner)
        if found is not None:
            node.properties[name] = found
    return node


def _below(schema: Any) -> Node | None:
    return build(schema, bool(schema.get(EMBEDDED))) if isinstance(schema, Mapping) else None


# -- evaluation --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """A value, and the one in its place before, as far as that can be told: of unchanged values errors are forgiven."""

    new: Any
    old: Any

    @property
    def same(self) -> bool:
        """Whether nothing changed."""
        return self.old is not None and self.new == self.old


class Rules:
    """All rules of one version of a custom resource."""

    def __init__(self, root: Node) -> None:
        self._root = root

    def errors(
        self,
        obj: Mapping[str, Any],
        old: Mapping[str, Any] | None,
        before: Iterable[FieldError],
        warn: Callable[[str], None],
    ) -> list[FieldError]:
        """The broken rules of an object. `before` are the errors of its schema, some of which keep rules from being
        evaluated; `warn` is told of errors that are forgiven, since nothing changed there."""
        if any(e.reason in _BLOCKING for e in before):
            return [_NOT_CHECKED]
        # The object as a whole never counts as unchanged: its metadata is not compared.
        change = Change(obj, None) if old is not None else None
        return list(_check(self._root, "", obj, old, change, None, warn))


@lru_cache(maxsize=32)
def compiled(text: bytes) -> Rules | None:
    """The rules of a schema, by its text: tests install the same definitions again and again."""
    node = build(orjson.loads(text))
    return Rules(node) if node is not None else None


def _check(
    node: Node,
    path: str,
    value: Any,
    old: Any,
    change: Change | None,
    above: Change | None,
    warn: Callable[[str], None],
) -> Iterator[FieldError]:
    if value is None:
        return
    if node.rules:
        unchanged = change if change is not None else above
        for error, forgivable in _broken(node, path, value, old):
            if forgivable and unchanged is not None and unchanged.same:
                warn(str(error))
            else:
                yield error
    near = change if change is not None else above
    if isinstance(value, list):
        if node.items is None:
            return
        before = _Keyed(node.keys, old) if node.keys and isinstance(old, list) else None
        for i, item in enumerate(value):
            past = before.get(item) if before is not None else None
            step = Change(item, past) if change is not None and past is not None else None
            yield from _check(node.items, f"{path}[{i}]", item, past, step, near, warn)
    elif isinstance(value, dict):
        past_map = old if isinstance(old, dict) else {}
        for name, item in value.items():
            inner, where = node.properties.get(name), f"{path}.{name}" if path else name
            if inner is None and node.additional is not None:
                inner, where = node.additional, f"{path}[{name}]"
            if inner is not None:
                past = past_map.get(name)
                step = Change(item, past) if change is not None and name in past_map else None
                yield from _check(inner, where, item, past, step, near, warn)


class _Keyed:
    """The items of a list by their keys."""

    def __init__(self, keys: Sequence[str], items: list[Any]) -> None:
        self._keys = keys
        self._found: dict[bytes, Any] = {}
        for item in items:
            self._found.setdefault(self._mark(item), item)

    def _mark(self, item: Any) -> bytes:
        return orjson.dumps([item.get(k) for k in self._keys] if isinstance(item, dict) else None)

    def get(self, item: Any) -> Any:
        """The item with the keys of another one, or None."""
        if not isinstance(item, dict) or any(k not in item for k in self._keys):
            return None
        return self._found.get(self._mark(item))


def _broken(node: Node, path: str, value: Any, old: Any) -> Iterator[tuple[FieldError, bool]]:
    """The broken rules of one place, and whether they are forgiven where nothing changed."""
    scope: dict[str, Any] = {"self": _wrapped(node, value)}
    if old is not None:
        scope["oldSelf"] = _wrapped(node, old)
    lenient = {**scope, "oldSelf": Optional(scope["oldSelf"]) if old is not None else NONE}
    kind = node.schema.get("type") or ""
    for rule in node.rules:
        if rule.transition and old is None and not rule.lenient:
            continue
        variables = lenient if rule.lenient else scope
        try:
            if rule.test.run(variables) is True:
                continue
        except EvaluationError as e:
            yield invalid_value(path or "<nil>", kind, _failed(str(e), rule)), False
            continue
        where = f"{path}.{rule.path}" if rule.path and path else rule.path or path
        error = _error(where or "<nil>", value, _message(rule, variables), rule.source.get("reason"))
        yield error, not rule.transition


def _wrapped(node: Node, value: Any) -> Any:
    try:
        return node.wrap(value)
    except EvaluationError as e:
        return e


def _failed(text: str, rule: Rule) -> str:
    if text.startswith("no such overload"):
        return (
            f"'{text}': call arguments did not match a supported operator, function or macro signature for rule: "
            f"{rule.name}"
        )
    return f"{text} evaluating rule: {rule.name}"


def _message(rule: Rule, variables: dict[str, Any]) -> str:
    if rule.message is not None:
        try:
            text = rule.message.run(variables)
        except EvaluationError:
            text = ""
        text = text.strip() if isinstance(text, str) else ""
        if text and len(text.encode()) <= _LONGEST_MESSAGE and "\n" not in text:
            return text
    message = rule.source.get("message")
    return message.strip() if message else f"failed rule: {rule.name}"


def _error(where: str, value: Any, detail: str, reason: str | None) -> FieldError:
    plain = not isinstance(value, dict | list)
    match reason:
        case "FieldValueForbidden":
            return forbidden_field(where, detail)
        case "FieldValueRequired":
            return required(where, detail)
        case "FieldValueDuplicate":
            return duplicate(where, value) if plain else FieldError(reason, where, "Duplicate value")
    return (
        invalid_value(where, value, detail)
        if plain
        else FieldError("FieldValueInvalid", where, f"Invalid value: {detail}")
    )


# -- paths -------------------------------------------------------------------------------------------------------------

_STEP = re.compile(r"\.([^.\[\]']+)|\['((?:[^'\\]|\\.)*)'\]")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def normal_path(path: str, schema: Schema) -> str | None:
    """The path that a rule blames, as errors write it; None if it is no path of fields of the schema."""
    made, at = "", 0
    current: Any = schema
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return None
        name = found[1] if found[1] is not None else _unquoted(found[2])
        if name is None:
            return None
        properties, additional = current.get("properties"), current.get("additionalProperties")
        if properties:
            if name not in properties:
                return None
            made, current = f"{made}.{name}" if made else name, properties[name]
        elif isinstance(additional, Mapping):
            made, current = f"{made}[{name}]", additional
        else:
            return None
        at = found.end()
    return made


def _unquoted(text: str) -> str | None:
    wrong = re.search(r"\\[^abfnrtv'\\]", text)
    return None if wrong else re.sub(r"\\(.)", lambda m: _ESCAPES[m[1]], text)
