"""Who a pod is in its set: group key, group index, worker index, sub-group. What admission writes into pods. Pure.

Specification: 10 §8.1–§8.6.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from lwskit.api import names
from lwskit.groups.model import DecisionError
from lwskit.groups.placement import with_exclusive_terms
from lwskit.runtime.objects import Obj, annotations_of, labels_of

_DIGITS = 19
"""From so many digits on a number is too large for whatever it should mean."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBERED = re.compile(r"(.*)-([0-9]+)", re.DOTALL | re.ASCII)


def group_key(first: str, second: str) -> str:
    """40 hexadecimal digits that stand for a pair of names: SHA-1 of `first/second`."""
    return hashlib.sha1(f"{first}/{second}".encode(), usedforsecurity=False).hexdigest()


def parse_ordinal(name: str) -> tuple[str, int]:
    """A pod name's parent and ordinal: `("llm-0", 3)` for `llm-0-3`.

    The ordinal is -1 if there is none or it does not fit in 32 bits; the parent is empty if there is none.
    """
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return "", -1
    digits = match[2].lstrip("0")
    ordinal = int(digits or 0) if len(digits) < _DIGITS else names.INT32_MAX + 1
    return match[1], ordinal if ordinal <= names.INT32_MAX else -1


def subgroup_index(size: int, subgroup_size: int, worker_index: int) -> int:
    """Which sub-group a worker belongs to. The leader counts as a member unless it is the one pod too many."""
    if (size - 1) % subgroup_size == 0 and size % subgroup_size != 0:
        return (worker_index - 1) // subgroup_size
    return worker_index // subgroup_size


def is_leader(pod: Mapping[str, Any]) -> bool:
    """Whether the pod's worker-index label is that of a leader."""
    return labels_of(pod).get(names.WORKER_INDEX_LABEL) == names.LEADER_INDEX


def group_size(pod: Mapping[str, Any]) -> int:
    """Pods of the pod's group, from its size annotation. Raises DecisionError if that is missing or no integer."""
    text = annotations_of(pod).get(names.SIZE_ANNOTATION)
    if text is None:
        raise DecisionError(f"size annotation is unexpectedly missing for pod {_name(pod)}")
    return _integer(pod, names.SIZE_ANNOTATION, text)


def identified(pod: Obj, namespace: str) -> Obj:
    """The pod with its identity: labels, subdomain and exclusive terms; a copy where anything changes.

    `namespace` is that of the admission request. A pod without the set's name label is returned as it is.
    Raises DecisionError with the sentence that admission denies the pod with.
    """
    if names.NAME_LABEL not in labels_of(pod):
        return pod
    size = group_size(pod)
    return _leader(pod, namespace) if is_leader(pod) else _worker(pod, size)


def _leader(pod: Obj, namespace: str) -> Obj:
    name = _name(pod)
    notes = annotations_of(pod)
    _, ordinal = parse_ordinal(name)
    if ordinal < 0:
        raise DecisionError(f"parsing pod ordinal for pod {name}")
    key = group_key(namespace, name)
    pod = _labelled(pod, {names.GROUP_INDEX_LABEL: str(ordinal), names.GROUP_KEY_LABEL: key})
    if notes.get(names.SUBDOMAIN_POLICY_ANNOTATION) == names.SUBDOMAIN_UNIQUE_PER_REPLICA:
        pod = {**pod, "spec": {**pod["spec"], "subdomain": name}}
    topology = notes.get(names.EXCLUSIVE_TOPOLOGY_ANNOTATION)
    if topology is not None:
        pod = with_exclusive_terms(pod, names.GROUP_KEY_LABEL, key, topology)
    excluded = notes.get(names.SUBGROUP_POLICY_TYPE_ANNOTATION) == names.SUBGROUP_LEADER_EXCLUDED
    return pod if excluded else _in_subgroup(pod, name, 0)


def _worker(pod: Obj, size: int) -> Obj:
    name = _name(pod)
    _, ordinal = parse_ordinal(name)
    if ordinal < 0:
        raise DecisionError(f"parsing pod ordinal for pod {name}")
    pod = _labelled(pod, {names.WORKER_INDEX_LABEL: str(ordinal)})
    notes = annotations_of(pod)
    text = notes.get(names.SUBGROUP_SIZE_ANNOTATION)
    if text is None:
        return pod
    subgroup_size = _integer(pod, names.SUBGROUP_SIZE_ANNOTATION, text)
    leader = notes.get(names.LEADER_NAME_ANNOTATION, "")
    return _in_subgroup(pod, leader, subgroup_index(size, subgroup_size, ordinal))


def _in_subgroup(pod: Obj, leader: str, index: int) -> Obj:
    """The pod with the labels and terms of its sub-group, unless its set has none or it already has a place in one."""
    notes = annotations_of(pod)
    if names.SUBGROUP_SIZE_ANNOTATION not in notes or labels_of(pod).get(names.SUBGROUP_INDEX_LABEL):
        return pod
    key = group_key(leader, str(index))
    pod = _labelled(pod, {names.SUBGROUP_INDEX_LABEL: str(index), names.SUBGROUP_KEY_LABEL: key})
    topology = notes.get(names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION)
    return pod if topology is None else with_exclusive_terms(pod, names.SUBGROUP_KEY_LABEL, key, topology)


def _labelled(pod: Obj, labels: Mapping[str, str]) -> Obj:
    return {**pod, "metadata": {**pod["metadata"], "labels": {**labels_of(pod), **labels}}}


def _name(pod: Mapping[str, Any]) -> str:
    return pod["metadata"].get("name") or pod["metadata"].get("generateName", "")


def _integer(pod: Mapping[str, Any], annotation: str, text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise DecisionError(f"annotation {annotation} of pod {_name(pod)} is {text!r}: invalid syntax, not an integer")
    if len(text) > _DIGITS:
        raise DecisionError(f"annotation {annotation} of pod {_name(pod)} is {text[:20]!r}…: value out of range")
    number = int(text)
    if annotation == names.SUBGROUP_SIZE_ANNOTATION and number < 1:
        raise DecisionError(f"annotation {annotation} of pod {_name(pod)} is {text!r}; it must be at least 1")
    return number
