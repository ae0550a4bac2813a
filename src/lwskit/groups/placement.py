"""Exclusive placement: a group, or a sub-group, has a topology domain for itself. Pure.

Specification: 10 §8.9, 20 §10.2 item 19.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import Obj, labels_of

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def with_exclusive_terms(pod: Obj, label: str, value: str, topology: str) -> Obj:
    """The pod with terms that draw it to pods whose `label` has `value` and keep it from those with another value.

    Unchanged if it already has a required affinity and a required anti-affinity term for that topology key.
    """
    affinity = pod["spec"].get("affinity") or {}
    near, far = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    if _mentions(near, topology) and _mentions(far, topology):
        return pod
    same = {"key": label, "operator": "In", "values": [value]}
    others = [{"key": label, "operator": "Exists"}, {"key": label, "operator": "NotIn", "values": [value]}]
    changed = {
        **affinity,
        "podAffinity": _with_term(near, [same], topology),
        "podAntiAffinity": _with_term(far, others, topology),
    }
    return {**pod, "spec": {**pod["spec"], "affinity": changed}}


def topology_value(node: Mapping[str, Any] | None, node_name: str, topology: str) -> str:
    """The domain that a leader's node lies in. Raises DecisionError if the node is unknown or has no such label."""
    if node is None:
        raise DecisionError(f'getting node "{node_name}": nodes "{node_name}" not found')
    value = labels_of(node).get(topology)
    if value is None:
        raise DecisionError(f"node does not have topology label: {topology}")
    return value


def _mentions(affinity: Mapping[str, Any], topology: str) -> bool:
    return any(term.get("topologyKey") == topology for term in affinity.get(_REQUIRED) or ())


def _with_term(affinity: Mapping[str, Any], expressions: Sequence[Obj], topology: str) -> Obj:
    term = {"labelSelector": {"matchExpressions": list(expressions)}, "topologyKey": topology}
    return {**affinity, _REQUIRED: [*(affinity.get(_REQUIRED) or ()), term]}
