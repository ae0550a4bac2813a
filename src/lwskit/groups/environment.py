"""The environment variables that tell a container where its leader is, how large its group is and who it is. Pure.

Specification: 10 §9; 50 §3 for those of a DisaggregatedSet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lwskit.api import disaggregated_names, names
from lwskit.groups.identity import is_leader, pod_name
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import Obj, annotations_of, labels_of

_OF_DISAGGREGATED_SET: Final = (
    (disaggregated_names.ENV_NAME, disaggregated_names.NAME_LABEL),
    (disaggregated_names.ENV_ROLE, disaggregated_names.ROLE_LABEL),
    (disaggregated_names.ENV_SLICE, disaggregated_names.SLICE_LABEL),
    (disaggregated_names.ENV_REVISION, disaggregated_names.REVISION_LABEL),
)
"""Variables, and the labels that have their values."""


def with_environment(pod: Obj, namespace: str) -> Obj:
    """The pod with the set's variables first in every container and init container; a copy.

    `namespace` is that of the admission request. A pod without the set's name label is returned as it is.
    Raises DecisionError with the sentence that admission denies the pod with.
    """
    if names.NAME_LABEL not in labels_of(pod):
        return pod
    ours = variables(pod, namespace)
    spec = dict(pod["spec"])
    for field in ("containers", "initContainers"):
        if spec.get(field):
            spec[field] = [{**c, "env": merged(ours, c.get("env") or ())} for c in spec[field]]
    return {**pod, "spec": spec}


def variables(pod: Mapping[str, Any], namespace: str) -> list[Obj]:
    """The variables of a pod, in the order in which containers get them."""
    labels, notes = labels_of(pod), annotations_of(pod)
    values = (
        (names.ENV_LEADER_ADDRESS, leader_address(pod, namespace)),
        (
            names.ENV_GROUP_SIZE,
            _required(pod, notes, names.SIZE_ANNOTATION, "size annotation", namespace),
        ),
        (
            names.ENV_WORKER_INDEX,
            _required(pod, labels, names.WORKER_INDEX_LABEL, "worker index label", namespace),
        ),
    )
    return [{"name": name, "value": value} for name, value in (*values, *_of_disaggregated_set(labels))]


def _of_disaggregated_set(labels: Mapping[str, str]) -> list[tuple[str, str]]:
    """The variables of pods whose set is a role of a DisaggregatedSet; of others none."""
    if disaggregated_names.NAME_LABEL not in labels:
        return []
    return [(name, labels[label]) for name, label in _OF_DISAGGREGATED_SET if label in labels]


def leader_address(pod: Mapping[str, Any], namespace: str) -> str:
    """Where the leader of a pod's group is reached: host, subdomain and namespace, without the cluster's suffix."""
    told = annotations_of(pod).get(names.LEADER_ADDRESS_ANNOTATION)
    if told:
        return told
    labels, spec = labels_of(pod), pod["spec"]
    host = spec.get("hostname") if is_leader(pod) else ""
    if not host:
        if not labels.get(names.GROUP_INDEX_LABEL):
            raise DecisionError(f"no group index label found for pod {pod_name(pod)}")
        name = _required(pod, labels, names.NAME_LABEL, "name label", namespace)
        host = f"{name}-{labels[names.GROUP_INDEX_LABEL]}"
    return f"{host}.{spec.get('subdomain') or ''}.{namespace}"


def merged(ours: Sequence[Obj], env: Sequence[Obj]) -> list[Obj]:
    """Our variables, then the container's own in their order; of several with one name the first stays.

    Ours come first, so that those of the user may refer to them.
    """
    if not env:
        return [*ours]
    found: dict[str, Obj] = {}
    for entry in (*ours, *env):
        found.setdefault(entry["name"], entry)
    return list(found.values())


def _required(pod: Mapping[str, Any], where: Mapping[str, str], key: str, what: str, namespace: str) -> str:
    value = where.get(key)
    if value is None:
        name = f"{namespace}/{pod_name(pod)}"
        raise DecisionError(f"Failure constructing environment variables, no {what} found for pod {name}")
    return value
