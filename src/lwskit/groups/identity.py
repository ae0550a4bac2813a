"""Who a pod is in its set: group key, group index, worker index, sub-group. What admission writes into pods. Pure.

Specification: 10 §8.1–§8.6, 30 §5.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from lwskit.api import names
from lwskit.groups.model import DecisionError
from lwskit.groups.placement import with_exclusive_terms
from lwskit.groups.ports import Draw
from lwskit.runtime.objects import Obj, annotations_of, labels_of

_DIGITS = 19
"""From so many digits on a number is too large for whatever it should mean."""
_KEY = re.compile(r"[0-9a-f]{40}")
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
        return max(worker_index - 1, 0) // subgroup_size
    return worker_index // subgroup_size


def subgroup_of(size: int, subgroup_size: int, worker_index: int) -> range:
    """The worker indices of a pod's sub-group, without a leader that is the one pod too many."""
    index = subgroup_index(size, subgroup_size, worker_index)
    first = index * subgroup_size
    if (size - 1) % subgroup_size == 0 and size % subgroup_size != 0:
        first += 1
    return range(first, min(first + subgroup_size, max(size, worker_index + 1)))


def is_leader(pod: Mapping[str, Any]) -> bool:
    """Whether the pod's worker-index label is that of a leader."""
    return labels_of(pod).get(names.WORKER_INDEX_LABEL) == names.LEADER_INDEX


def has_hash_identity(pod: Mapping[str, Any]) -> bool:
    """Whether the pod's group is known by a key that nothing but its leader's admission decides."""
    return annotations_of(pod).get(names.GROUP_IDENTITY_ANNOTATION) == names.IDENTITY_HASH


def pod_name(pod: Mapping[str, Any]) -> str:
    """The pod's name, or what its name will begin with."""
    return pod["metadata"].get("name") or pod["metadata"].get("generateName") or ""


def group_size(pod: Mapping[str, Any]) -> int:
    """Pods of the pod's group, from its size annotation. Raises DecisionError if that is missing or no integer."""
    notes = annotations_of(pod)
    if names.SIZE_ANNOTATION not in notes:
        raise DecisionError(f"size annotation is unexpectedly missing for pod {pod_name(pod)}")
    return stated_integer(pod, "annotation", names.SIZE_ANNOTATION, notes)


def identified(pod: Obj, namespace: str, draw: Draw) -> Obj:
    """The pod with its identity: labels, host name, subdomain and exclusive terms; a copy where anything changes.

    `namespace` is that of the admission request; `draw` gives the random characters of a Hash group's key. A pod
    without the set's name label is returned as it is, and one that went through this before keeps what it got.
    Raises DecisionError with the sentence that admission denies the pod with.
    """
    if names.NAME_LABEL not in labels_of(pod):
        return pod
    size = group_size(pod)
    if not is_leader(pod):
        return _worker(pod, size)
    if has_hash_identity(pod):
        return _leader(*_named_by_key(pod, namespace, draw))
    name, ordinal = _numbered(pod)
    key = group_key(namespace, name)
    pod = _labelled(pod, {names.GROUP_INDEX_LABEL: str(ordinal), names.GROUP_KEY_LABEL: key})
    return _leader(pod, key, name, name)


def _numbered(pod: Mapping[str, Any]) -> tuple[str, int]:
    """The pod's name and its ordinal; a name that is still to be drawn has none."""
    name = pod["metadata"].get("name") or ""
    _, ordinal = parse_ordinal(name)
    if ordinal < 0:
        raise DecisionError(f"parsing pod ordinal for pod {pod_name(pod)}")
    return name, ordinal


def _named_by_key(pod: Obj, namespace: str, draw: Draw) -> tuple[Obj, str, str, str]:
    """A Hash leader with its key and a host name made of it; then key, host name and what its sub-group key is of."""
    key = _key_from_before(pod) or group_key(namespace, draw(names.HASH_KEY_SOURCE))
    pod = _labelled(pod, {names.GROUP_INDEX_LABEL: key, names.GROUP_KEY_LABEL: key})
    host = pod["spec"].get("hostname")
    if not host:
        host = f"{labels_of(pod)[names.NAME_LABEL]}-{key[: names.HASH_KEY_PREFIX]}"
        pod = {**pod, "spec": {**pod["spec"], "hostname": host}}
    return pod, key, host, key


def _key_from_before(pod: Mapping[str, Any]) -> str:
    """The key that an earlier admission gave the pod; empty for labels of a template, which every group would share.

    Only admission adds the gate, so a pod that has it was here before: another key would part it from the host name
    and the terms that are made of the first.
    """
    labels = labels_of(pod)
    key = labels.get(names.GROUP_KEY_LABEL, "")
    again = _KEY.fullmatch(key) and labels.get(names.GROUP_INDEX_LABEL) == key
    gates = pod["spec"].get("schedulingGates") or ()
    return key if again and any(gate.get("name") == names.GROUP_REPLACEMENT_GATE for gate in gates) else ""


def _leader(pod: Obj, key: str, host: str, source: str) -> Obj:
    """A leader whose group is known; `source` is what the key of its sub-group is made of."""
    notes = annotations_of(pod)
    if notes.get(names.SUBDOMAIN_POLICY_ANNOTATION) == names.SUBDOMAIN_UNIQUE_PER_REPLICA:
        pod = {**pod, "spec": {**pod["spec"], "subdomain": host}}
    topology = notes.get(names.EXCLUSIVE_TOPOLOGY_ANNOTATION)
    if topology is not None:
        pod = with_exclusive_terms(pod, names.GROUP_KEY_LABEL, key, topology)
    excluded = notes.get(names.SUBGROUP_POLICY_TYPE_ANNOTATION) == names.SUBGROUP_LEADER_EXCLUDED
    if excluded or not _needs_subgroup(pod):
        return pod
    return _in_subgroup(pod, source, 0)


def _worker(pod: Obj, size: int) -> Obj:
    _, ordinal = _numbered(pod)
    pod = _labelled(pod, {names.WORKER_INDEX_LABEL: str(ordinal)})
    if not _needs_subgroup(pod):
        return pod
    notes = annotations_of(pod)
    subgroup_size = stated_integer(pod, "annotation", names.SUBGROUP_SIZE_ANNOTATION, notes)
    if has_hash_identity(pod):
        source = labels_of(pod).get(names.GROUP_KEY_LABEL, "")
    else:
        source = notes.get(names.LEADER_NAME_ANNOTATION, "")
    return _in_subgroup(pod, source, subgroup_index(size, subgroup_size, ordinal))


def _needs_subgroup(pod: Mapping[str, Any]) -> bool:
    """Whether the pod's set has sub-groups and the pod no place in one yet."""
    return names.SUBGROUP_SIZE_ANNOTATION in annotations_of(pod) and not labels_of(pod).get(names.SUBGROUP_INDEX_LABEL)


def _in_subgroup(pod: Obj, source: str, index: int) -> Obj:
    """The pod with the labels and terms of a sub-group."""
    key = group_key(source, str(index))
    pod = _labelled(pod, {names.SUBGROUP_INDEX_LABEL: str(index), names.SUBGROUP_KEY_LABEL: key})
    topology = annotations_of(pod).get(names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION)
    return pod if topology is None else with_exclusive_terms(pod, names.SUBGROUP_KEY_LABEL, key, topology)


def _labelled(pod: Obj, labels: Mapping[str, str]) -> Obj:
    return {**pod, "metadata": {**pod["metadata"], "labels": {**labels_of(pod), **labels}}}


def stated_integer(pod: Mapping[str, Any], where: str, key: str, texts: Mapping[str, str]) -> int:
    """The integer that a label or annotation (`where`) of the pod states; a sub-group has at least one pod.

    Raises DecisionError for any other text.
    """
    text = texts.get(key, "")
    if _INTEGER.fullmatch(text) is None:
        raise DecisionError(f"{where} {key} of pod {pod_name(pod)} is {text!r}: invalid syntax, not an integer")
    if len(text) > _DIGITS or abs(int(text)) > names.INT32_MAX:
        raise DecisionError(f"{where} {key} of pod {pod_name(pod)} is {text[:20]!r}…: value out of range")
    number = int(text)
    if key == names.SUBGROUP_SIZE_ANNOTATION and number < 1:
        raise DecisionError(f"{where} {key} of pod {pod_name(pod)} is {text!r}; it must be at least 1")
    return number
