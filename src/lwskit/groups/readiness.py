"""The condition of a leader that says whether its workers are there: its pod is ready no sooner than the group. Pure.

Specification: 30 §9.
"""

from __future__ import annotations

from datetime import datetime

from lwskit.api import names
from lwskit.groups import status
from lwskit.groups.identity import has_hash_identity
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, condition_of, key_of, uid_of
from lwskit.runtime.plan import AnyAction, OnError, Patch


def waits_for_group(leader: Obj) -> bool:
    """Whether a leader in Hash mode has the readiness gate: those of groups of one pod have none."""
    if not has_hash_identity(leader):
        return False
    gates = (leader.get("spec") or {}).get("readinessGates") or ()
    return any(gate.get("conditionType") == names.GROUP_READY_GATE for gate in gates)


def written(leader: Obj, ready: bool, now: datetime) -> list[AnyAction]:
    """What has the leader's condition say whether its workers are ready; nothing where it says so already.

    One entry of the conditions is patched by its type: the kubelet writes the others.
    """
    if not waits_for_group(leader):
        return []
    stored = condition_of(leader, names.GROUP_READY_GATE)
    if stored is not None and stored.get("status") == str(ready):
        return []
    condition = {
        "type": names.GROUP_READY_GATE,
        "status": str(ready),
        "reason": names.REASON_WORKERS_READY if ready else names.REASON_WORKERS_NOT_READY,
        "lastTransitionTime": status.stamp(now),
    }
    name = leader["metadata"]["name"]
    return [
        Patch(
            why=f"the workers of leader pod {name} are {'all' if ready else 'not all'} ready",
            kind=POD,
            key=key_of(leader),
            uid=uid_of(leader),
            subresource="status",
            strategic=True,
            body={"status": {"conditions": [condition]}},
            errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
        )
    ]
