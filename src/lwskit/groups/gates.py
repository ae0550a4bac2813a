"""The scheduling gate of leaders: which of them wait for their turn, how that shows on a pod, and when it ends. Pure.

Specification: 10 §8.7, 20 §10.5, 30 §5 step 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lwskit.api import names
from lwskit.groups.identity import has_hash_identity, is_leader
from lwskit.runtime.objects import Obj, annotations_of, is_deleting, labels_of, uid_of

_GATED_LEVELS = frozenset((names.LEVEL_REPLICA, names.LEVEL_REPLICA_LEGACY, names.LEVEL_ROLE))
"""What these schedule together is made once the leader exists, and the leader waits for that."""


def is_to_wait(pod: Mapping[str, Any]) -> bool:
    """Whether a new pod gets the gate: Hash leaders, and leaders whose group or roles are scheduled together."""
    if not is_leader(pod):
        return False
    level = annotations_of(pod).get(names.WORKLOAD_AWARE_SCHEDULING_ANNOTATION)
    return level in _GATED_LEVELS or has_hash_identity(pod)


def is_gated(pod: Mapping[str, Any]) -> bool:
    """Whether the pod has the gate."""
    found = (pod.get("spec") or {}).get("schedulingGates") or ()
    return any(gate.get("name") == names.GROUP_REPLACEMENT_GATE for gate in found)


def is_unclaimed(pod: Mapping[str, Any]) -> bool:
    """Whether the pod is without the gate but has the deletion cost that came with it."""
    return annotations_of(pod).get(names.POD_DELETION_COST_ANNOTATION) == names.GATED_DELETION_COST and not is_gated(
        pod
    )


def with_gate(pod: Obj) -> Obj:
    """The pod with the gate behind those that it has; a Hash leader also with the cost that has it removed first.

    A cost that somebody else set stays. A pod that has the gate is returned as it is.
    """
    if is_gated(pod):
        return pod
    spec = pod["spec"]
    gates = [*(spec.get("schedulingGates") or ()), {"name": names.GROUP_REPLACEMENT_GATE}]
    made = {**pod, "spec": {**spec, "schedulingGates": gates}}
    notes = annotations_of(pod)
    if has_hash_identity(pod) and names.POD_DELETION_COST_ANNOTATION not in notes:
        notes = {**notes, names.POD_DELETION_COST_ANNOTATION: names.GATED_DELETION_COST}
        made["metadata"] = {**pod["metadata"], "annotations": notes}
    return made


def without_gate(pod: Obj) -> Obj | None:
    """The pod without the gate and with those of others, a copy; None if it has none."""
    if not is_gated(pod):
        return None
    rest = [gate for gate in pod["spec"]["schedulingGates"] if gate.get("name") != names.GROUP_REPLACEMENT_GATE]
    spec = {field: value for field, value in pod["spec"].items() if field != "schedulingGates"}
    return {**pod, "spec": {**spec, "schedulingGates": rest} if rest else spec}


def waits_for(leader: Obj, pods: Iterable[Obj]) -> int:
    """How many groups have to be gone before a gated leader may be scheduled, 0 if it may be now.

    `pods` are all pods of the set. A group that has pods and no living leader still takes its place; the oldest gated
    leaders have the places that are free. Specification: 20 §10.5.
    """
    groups: dict[str, bool] = {}
    gated = []
    for pod in pods:
        leads = is_leader(pod)
        group = labels_of(pod).get(names.GROUP_INDEX_LABEL) or pod["metadata"]["name"]
        exhausted = annotations_of(pod).get(names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION) == "true"
        groups[group] = groups.get(group, False) or (leads and not is_deleting(pod) and not exhausted)
        if leads and is_gated(pod) and not is_deleting(pod):
            gated.append(_place(pod))
    blocked = sum(not alive for alive in groups.values())
    rank = sum(other < _place(leader) for other in gated)
    return blocked if rank >= len(gated) - blocked and blocked else 0


def _place(leader: Obj) -> tuple[str, str, str]:
    return leader["metadata"].get("creationTimestamp", ""), leader["metadata"]["name"], uid_of(leader)
