"""What makes the validation rules of a CustomResourceDefinition unusable, in the words of a real server. Pure.

Source: Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", on validation rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

from lwskit.embedded import rules
from lwskit.embedded.cel.cost import MOST, Extent
from lwskit.embedded.cel.types import Type
from lwskit.embedded.failures import FieldError, forbidden_field, invalid_value, not_supported, required, shown
from lwskit.embedded.rule_values import escape, extent_of, times_at_most, type_of
from lwskit.embedded.schema import EMBEDDED, RULES, Schema

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_RULE_LIMIT, _ALL_LIMIT = 10_000_000, 100_000_000
"""What one expression may cost, and all of a definition together."""
_LINES = re.compile(r"[\n\r]")


def errors(schema: Schema, where: str) -> list[FieldError]:
    """The errors of all rules of a schema; `where` is its path."""
    return list(_errors(orjson.dumps(schema), where))


@lru_cache(maxsize=32)
def _errors(text: bytes, where: str) -> tuple[FieldError, ...]:
    schema = orjson.loads(text)
    nested = list(_nested(schema, where))
    if nested:
        return tuple(nested)
    found = _Found()
    _visit(schema, where, None, True, "", 1, found)
    return (*found.plain, *found.expressions, *_too_much(found, where))


class _Found:
    """Errors of what stands in rules, and of expressions, which are only compiled where there are no others."""

    def __init__(self) -> None:
        self.plain: list[FieldError] = []
        self.expressions: list[FieldError] = []
        self.costs: list[tuple[int, str]] = []
        """What each expression may cost, and its path."""


def _nested(schema: Any, where: str) -> Iterator[FieldError]:
    """Rules where there may be none: in the alternatives of a schema."""
    if not isinstance(schema, Mapping):
        return
    for name in ("allOf", "anyOf", "oneOf"):
        for i, inner in enumerate(schema.get(name) or ()):
            yield from _any_rule(inner, f"{where}.{name}[{i}]")
    if schema.get("not"):
        yield from _any_rule(schema["not"], f"{where}.not")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _nested(inner, f"{where}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        yield from _nested(schema.get(name), f"{where}.{name}")


def _any_rule(schema: Any, where: str) -> Iterator[FieldError]:
    if not isinstance(schema, Mapping):
        return
    if schema.get(RULES):
        yield forbidden_field(f"{where}.{RULES}", "must be empty to be structural")
    for name in ("allOf", "anyOf", "oneOf"):
        for i, inner in enumerate(schema.get(name) or ()):
            yield from _any_rule(inner, f"{where}.{name}[{i}]")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _any_rule(inner, f"{where}.properties[{name}]")
    for name in ("items", "additionalProperties", "not"):
        yield from _any_rule(schema.get(name), f"{where}.{name}")


def _visit(
    schema: Schema, where: str, kind: Type | None, root: bool, loose: str, count: int | None, found: _Found
) -> None:
    """The errors of a schema and all below it, those below first.

    `kind` is its type where a schema around it has rules; `loose` is the path of the list around it whose items cannot
    be compared with those before. `count` is how many such values there can be, None where no schema says it.
    """
    listed = schema.get(RULES)
    if kind is None and listed:
        kind = type_of(schema, root, "selfType")
    below = kind.parameters[-1] if kind is not None and kind.parameters else None
    additional, items = schema.get("additionalProperties"), schema.get("items")
    inside = _counted(schema, count)
    if isinstance(additional, Mapping):
        _visit(additional, f"{where}.additionalProperties", below, bool(additional.get(EMBEDDED)), loose, inside, found)
    for name, inner in (schema.get("properties") or {}).items():
        field = kind.fields.get(escape(name) or "") if kind is not None else None
        _visit(inner, f"{where}.properties[{name}]", field, bool(inner.get(EMBEDDED)), loose, inside, found)
    if isinstance(items, Mapping):
        apart = loose or ("" if schema.get("x-kubernetes-list-type") == "map" else where)
        _visit(items, f"{where}.items", below, bool(items.get(EMBEDDED)), apart, inside, found)
    if not listed:
        return
    for i, rule in enumerate(listed):
        found.plain.extend(_plain(rule, f"{where}.{RULES}[{i}]", schema))
    if found.plain:
        return
    if kind is None:
        text = "Internal error: internal error: failed to construct type information for x-kubernetes-validations rules"
        text += ": unable to convert structural schema to CEL declarations"
        found.expressions.append(FieldError("InternalError", f"{where}.{RULES}", text))
        return
    extent = extent_of(schema, root)
    assert extent is not None
    often = count if count is not None else times_at_most(extent.least)
    for i, rule in enumerate(listed):
        found.expressions.extend(_expression(rule, f"{where}.{RULES}[{i}]", kind, schema, loose, extent, often, found))


def _plain(rule: Mapping[str, Any], where: str, schema: Schema) -> Iterator[FieldError]:
    """What is wrong with a rule besides its expressions."""
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    short = message.strip()
    if not text:
        yield required(f"{where}.rule", "rule is not specified")
    elif message and not short:
        yield invalid_value(f"{where}.message", message, "must be non-empty if specified")
    elif _LINES.search(short):
        yield invalid_value(f"{where}.message", message, "must not contain line breaks")
    elif _LINES.search(text) and not short:
        yield required(f"{where}.message", "message must be specified if rule contains line breaks")
    if rule.get("messageExpression") and not rule["messageExpression"].strip():
        yield required(f"{where}.messageExpression", "messageExpression must be non-empty if specified")
    reason, path = rule.get("reason"), rule.get("fieldPath") or ""
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{where}.reason", reason, _REASONS)
    if path and not path.strip():
        yield invalid_value(f"{where}.fieldPath", path, "must be non-empty if specified")
    if _LINES.search(path):
        yield invalid_value(f"{where}.fieldPath", path, "must not contain line breaks")
    if path and rules.normal_path(path, schema) is None:
        yield invalid_value(f"{where}.fieldPath", path, "must be a valid path")


_MEMBERS = ("rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf")
_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def _shown(rule: Mapping[str, Any]) -> str:
    """A rule as refusals print it: with all its members."""
    made = {m[0].upper() + m[1:]: rule.get(m, None if m in ("reason", "optionalOldSelf") else "") for m in _MEMBERS}
    return re.sub("[<>&]", lambda m: _HTML[m[0]], shown(made))


def _expression(
    rule: Mapping[str, Any],
    where: str,
    kind: Type,
    schema: Schema,
    loose: str,
    extent: Extent,
    often: int,
    found: _Found,
) -> Iterator[FieldError]:
    try:
        made = rules.compile_rule(rule, kind, schema)
    except rules.RuleError as e:
        text = f"Invalid value: {_shown(rule)}: {e}"
        yield FieldError("FieldValueInvalid", f"{where}.{e.member}", text)
        if e.unread:
            yield from _without_old(rule, where)
        return
    yield from _cost(min(made.test.most(extent) * often, MOST), f"{where}.rule", "estimated rule cost", found)
    if made.message is not None:
        place = f"{where}.messageExpression"
        yield from _cost(made.message.most(extent), place, "estimated messageExpression cost", found)
    if not made.transition:
        yield from _without_old(rule, where)
    elif loose:
        text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {loose}"
        yield invalid_value(f"{where}.rule", rule["rule"], text)


def _without_old(rule: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    """What is wrong with a rule that does not read the value before."""
    given = rule.get("optionalOldSelf")
    if given is not None:
        yield invalid_value(f"{where}.optionalOldSelf", given, "may not be set if oldSelf is not used in rule")


# -- what rules may cost -----------------------------------------------------------------------------------------------


def _counted(schema: Schema, count: int | None) -> int | None:
    """How many values there can be in values of a schema of which there can be `count`."""
    own: int | None = 1
    if schema.get("type") == "array":
        own = schema.get("maxItems")
    elif schema.get("type") == "object" and "additionalProperties" in schema:
        own = schema.get("maxProperties")
    return None if own is None or count is None else min(own * count, MOST)


def _cost(amount: int, where: str, what: str, found: _Found) -> Iterator[FieldError]:
    found.costs.append((amount, where))
    if amount > _RULE_LIMIT:
        yield forbidden_field(where, _exceeded(what, amount, _RULE_LIMIT))


def _exceeded(what: str, amount: int, limit: int) -> str:
    times = amount / limit
    shown_times = "more than 100x" if times > 100 else f"{times:f}x" if times < 1.5 else f"{times:.1f}x"
    return (
        f"{what} exceeds budget by factor of {shown_times} (try simplifying the rule, or adding maxItems, "
        "maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )


def _too_much(found: _Found, where: str) -> Iterator[FieldError]:
    """The errors of rules that cost too much together."""
    total = min(sum(amount for amount, _ in found.costs), MOST)
    if total <= _ALL_LIMIT:
        return
    for amount, place in sorted(found.costs, key=lambda one: -one[0])[:4]:
        if amount >= _ALL_LIMIT // 100:
            text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            yield forbidden_field(place, text)
    what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    yield forbidden_field(where, _exceeded(what, total, _ALL_LIMIT))
