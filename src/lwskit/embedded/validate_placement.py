"""Rules of where pods may run: affinity, spreading, tolerations and gates. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lwskit.embedded import names
from lwskit.embedded.failures import FieldError, duplicate, invalid_value, not_supported, required
from lwskit.embedded.validate_values import chosen, label_keys, requirement, selector

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION = ("Honor", "Ignore")
_WEIGHT = "must be in the range 1-100"


def affinity(found: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    """The broken rules of a pod's affinity."""
    nodes = found.get("nodeAffinity") or {}
    at = f"{where}.nodeAffinity"
    if nodes.get(_REQUIRED) is not None:
        terms = nodes[_REQUIRED].get("nodeSelectorTerms") or []
        field = f"{at}.{_REQUIRED}.nodeSelectorTerms"
        if not terms:
            yield required(field, "must have at least one node selector term")
        for i, term in enumerate(terms):
            yield from _node_term(term, f"{field}[{i}]", values=True)
    for i, term in enumerate(nodes.get(_PREFERRED) or ()):
        field = f"{at}.{_PREFERRED}[{i}]"
        yield from _weight(term, field)
        yield from _node_term(term.get("preference") or {}, f"{field}.preference", values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = found.get(kind) or {}
        for i, term in enumerate(pods.get(_REQUIRED) or ()):
            yield from _pod_term(term, f"{where}.{kind}.{_REQUIRED}[{i}]")
        for i, term in enumerate(pods.get(_PREFERRED) or ()):
            field = f"{where}.{kind}.{_PREFERRED}[{i}]"
            yield from _weight(term, field)
            yield from _pod_term(term.get("podAffinityTerm") or {}, f"{field}.podAffinityTerm")


def _weight(term: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    if not 1 <= term.get("weight", 0) <= 100:
        yield invalid_value(f"{where}.weight", term.get("weight", 0), _WEIGHT)


def _node_term(term: Mapping[str, Any], where: str, *, values: bool) -> Iterator[FieldError]:
    for i, expression in enumerate(term.get("matchExpressions") or ()):
        yield from requirement(expression, f"{where}.matchExpressions[{i}]", values=values)
    for i, expression in enumerate(term.get("matchFields") or ()):
        yield from _field(expression, f"{where}.matchFields[{i}]")


def _field(found: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    """A node can be chosen by one field, its name, and by one name at a time."""
    operator, key, values = found.get("operator", ""), found.get("key", ""), found.get("values") or []
    if operator not in ("In", "NotIn"):
        yield invalid_value(f"{where}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{where}.values", text)
    if key != "metadata.name":
        yield invalid_value(f"{where}.key", key, "not a valid field selector key")
        return
    for i, value in enumerate(values):
        for text in names.subdomain(value):
            yield invalid_value(f"{where}.values[{i}]", value, text)


def _pod_term(term: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from selector(term.get(name), f"{where}.{name}")
    for name in term.get("namespaces") or ():
        for text in names.label(name):
            yield invalid_value(f"{where}.namespace", name, text)
    same, other = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    yield from label_keys(same, other, term.get("labelSelector"), where, "matchLabelKeys")
    yield from label_keys(other, (), term.get("labelSelector"), where, "mismatchLabelKeys")
    key = term.get("topologyKey", "")
    if not key:
        yield required(f"{where}.topologyKey", "can not be empty")
    for text in names.qualified(key):
        yield invalid_value(f"{where}.topologyKey", key, text)


def spreading(constraints: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    """The broken rules of how pods are spread."""
    pairs = [(c.get("topologyKey"), c.get("whenUnsatisfiable")) for c in constraints]
    last = {pair: i for i, pair in enumerate(pairs)}
    for i, spread in enumerate(constraints):
        where, pair, domains = f"{field}[{i}]", pairs[i], spread.get("minDomains")
        if spread.get("maxSkew", 0) <= 0:
            yield invalid_value(f"{where}.maxSkew", spread.get("maxSkew", 0), "must be greater than zero")
        if not spread.get("topologyKey"):
            yield required(f"{where}.topologyKey", "can not be empty")
        yield from chosen(pair[1], f"{where}.whenUnsatisfiable", _UNSATISFIABLE)
        if last[pair] > i:
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")
        if domains is not None and domains <= 0:
            yield invalid_value(f"{where}.minDomains", domains, "must be greater than zero")
        if domains is not None and pair[1] != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {pair[1]}"
            yield invalid_value(f"{where}.minDomains", domains, text)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if spread.get(name) is not None:
                yield from chosen(spread[name], f"{where}.{name}", _INCLUSION)
        keys = spread.get("matchLabelKeys") or ()
        yield from label_keys(keys, (), spread.get("labelSelector"), where, "matchLabelKeys")
        yield from selector(spread.get("labelSelector"), f"{where}.labelSelector")


def tolerations(found: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    """The broken rules of tolerations."""
    for i, toleration in enumerate(found):
        where = f"{field}[{i}]"
        key, operator, effect = (toleration.get(name, "") for name in ("key", "operator", "effect"))
        value = toleration.get("value", "")
        for text in names.qualified(key) if key else ():
            yield invalid_value(f"{where}.key", key, text)
        if not key and operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid_value(f"{where}.operator", operator, text)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid_value(f"{where}.effect", effect, text)
        if operator in ("Equal", ""):
            texts = names.label_value(value)
            if texts:
                yield invalid_value(f"{where}.operator", value, ";".join(texts))
        elif operator == "Exists":
            if value:
                yield invalid_value(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            # Whether one may compare is a feature of its own, which is not on; it is named all the same.
            more = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
            yield not_supported(f"{where}.operator", operator, ("Equal", "Exists", *more))
        if effect:
            yield from chosen(effect, f"{where}.effect", _EFFECTS)


def gates(found: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """The broken rules of what a pod must wait for, to be ready and to be scheduled."""
    for i, gate in enumerate(found.get("readinessGates") or ()):
        for text in names.qualified(gate.get("conditionType", "")):
            yield invalid_value(f"{field}.readinessGates[{i}].conditionType", gate.get("conditionType", ""), text)
    seen: set[str] = set()
    for i, gate in enumerate(found.get("schedulingGates") or ()):
        name = gate.get("name", "")
        for text in names.qualified(name):
            yield invalid_value(f"{field}.schedulingGates[{i}]", name, text)
        if name in seen:
            yield duplicate(f"{field}.schedulingGates[{i}]", name)
        seen.add(name)
