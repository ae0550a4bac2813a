"""The scheduling gate of leaders: which of them wait for their turn, and how that shows on a pod. Pure.

Specification: 10 §8.7, 30 §5 step 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.api import names
from lwskit.groups.identity import has_hash_identity, is_leader
from lwskit.runtime.objects import Obj, annotations_of

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
    return any(gate.get("name") == names.GROUP_REPLACEMENT_GATE for gate in pod["spec"].get("schedulingGates") or ())


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
