"""What follows when a pod of a group is lost or restarts: the policies, and the deletion of the leader. Pure.

Specification: 20 §11.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lwskit.api import names
from lwskit.groups import budget, counters, ownership, spec
from lwskit.groups.identity import has_hash_identity, is_leader
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import MemberSnapshot
from lwskit.groups.pool import has_ended
from lwskit.runtime.kinds import POD, Kind
from lwskit.runtime.objects import (
    Key,
    Obj,
    annotations_of,
    controller_of,
    is_deleting,
    is_of,
    key_of,
    labels_of,
    ref_of,
    uid_of,
)
from lwskit.runtime.plan import Decision, Delete, Event, NeedFresh, OnError, Plan

POD_LOST, CONTAINER_RESTART, AFTER_BACKOFF = "pod_lost", "container_restart", "after_backoff"
CAUSES = (POD_LOST, CONTAINER_RESTART, AFTER_BACKOFF)
"""Why a group is restarted: a pod of it was deleted, a container of it restarted, or either happened
earlier and the group's back-off is over."""
_NOTE = re.compile(r"Worker pod (?P<pod>\S+) failed, deleted leader pod \S+ to recreate group (?P<group>[0-9]+)")
_NOTE_OF_KEY = re.compile(
    r"(?:Worker pod (?P<pod>\S+) failed, deleted leader pod (?P<leader>\S+) to recreate"
    r"|Leader pod (?P<over>\S+) failed, deleted it to replace) group [0-9a-f]{40}"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the restart policy makes of a pod: a decision that ends the reconcile, or none and the reconcile goes on.

    With `hold` the group's recreation waits: its actions go first, and whatever else is done, the reconcile comes back
    when its time is over.
    """

    decision: Decision | None
    note: str
    hold: budget.Hold = budget.NO_HOLD


def recreates(lws: Obj) -> bool:
    """Whether the loss of one pod recreates its whole group."""
    return spec.restart_policy(lws) in (names.RESTART_RECREATE_GROUP, names.RESTART_RECREATE_GROUP_AFTER_START)


def after_start(lws: Obj) -> bool:
    """Whether a group is recreated only once all its pods have started: by the policy, or by the older annotation."""
    policy = spec.restart_policy(lws)
    return policy == names.RESTART_RECREATE_GROUP_AFTER_START or (
        policy == names.RESTART_RECREATE_GROUP and names.RECREATE_AFTER_START_ANNOTATION in annotations_of(lws)
    )


def restarted(pod: Mapping[str, Any]) -> bool:
    """Whether a container or init container of a living pod has restarted."""
    status = pod.get("status") or {}
    if status.get("phase") not in ("Running", "Pending"):
        return False
    seen = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return any(container.get("restartCount", 0) > 0 for container in seen)


def starting(pods: Sequence[Mapping[str, Any]], size: int) -> bool:
    """Whether a group of that size is not complete and started yet."""
    return len(pods) != size or any((p.get("status") or {}).get("phase") == "Pending" for p in pods)


def size_told(pod: Mapping[str, Any], lws: Obj) -> int:
    """The size of a pod's group: what the pod's annotation says, else the live set."""
    text = annotations_of(pod).get(names.SIZE_ANNOTATION, "")
    return int(text) if spec.is_count(text) else spec.size(lws)


def is_over(leader: Obj) -> bool:
    """Whether a leader in Hash mode has ended: a ReplicaSet makes another one, and nobody removes this one."""
    return has_hash_identity(leader) and has_ended(leader) and not is_deleting(leader)


def judge(snapshot: MemberSnapshot, pod: Obj, lws: Obj, workers: Kind) -> Verdict:
    """Apply a set's restart policy, and the budget that comes with it, to one of its pods.

    `pod` and `lws` are those of the snapshot, `workers` is the kind of the workload of workers. The leader and the set
    are asked for fresh before a leader is deleted, and the owner of a lost worker if the cache lacks it: what the cache
    has not seen yet must not hide a loss. Raises DecisionError for a worker that tells no leader.
    """
    over = is_leader(pod) and is_over(pod)
    lost = snapshot.deleted or is_deleting(pod) or over
    if not recreates(lws):
        return Verdict(None, "the restart policy recreates no groups")
    leader = snapshot.leader
    pending = _unfinished(lws, leader) if leader is not None else ""
    if not (lost or restarted(pod) or pending):
        return Verdict(None, "no pod was lost or restarted")
    if not pending and not over and after_start(lws) and starting(snapshot.group_pods, size_told(pod, lws)):
        return Verdict(None, "the group has not started yet, so the policy leaves it alone")
    if leader is None:
        ownership.leader_name(pod)
        return Verdict(Plan(note="the group's leader is gone already"), "")
    if is_leader(pod):
        if uid_of(pod) != uid_of(leader):
            return Verdict(Plan(note="the leader has been replaced already"), "")
    elif ownership.revision_key(pod) != ownership.revision_key(leader):
        return Verdict(None, "the pod is of another revision than its leader: the group has been replaced")
    if is_deleting(leader):
        return Verdict(Plan(note=f"group of {leader['metadata']['name']} is being removed already"), "")
    if not is_leader(pod) and not ownership.belongs_to(pod, leader, snapshot.owner):
        missing = _unseen_owner(snapshot, pod, workers)
        if missing is not None:
            return Verdict(NeedFresh((missing,), "the owner of a lost worker is not in the cache yet"), "")
        return Verdict(None, "the pod belongs to an earlier group of this name")
    hold = budget.waits(snapshot, lws, leader)
    if hold is not None:
        return _held(hold)
    keys = ((POD, key_of(leader)), (LEADER_WORKER_SET, key_of(lws)))
    if not snapshot.live.issuperset(keys):
        return Verdict(NeedFresh(keys, "a leader is deleted only if it is still the one that was seen"), "")
    allowed = budget.decide(snapshot, lws, leader, pod)
    if isinstance(allowed, budget.Hold):
        return _held(allowed)
    if isinstance(allowed, tuple):
        what = "failed earlier" if pending else "was lost" if lost else "had a container restart"
        return Verdict(Plan((*allowed, _recreate(lws, leader, pending or pod["metadata"]["name"], what))), "")
    return Verdict(allowed, "")


def cause(snapshot: MemberSnapshot, decision: Decision) -> str:
    """Which of `CAUSES` a decision restarts the pod's group for, empty if it restarts none."""
    actions = decision.actions if isinstance(decision, Plan) else ()
    reasons = {action.on_success.reason for action in actions if isinstance(action, Delete) and action.on_success}
    if names.EVENT_RECREATE_GROUP not in reasons or snapshot.pod is None:
        return ""
    if snapshot.leader is not None and budget.cause_of_pending(snapshot.leader):
        return AFTER_BACKOFF
    restarts = any(restarted(pod) for pod in (snapshot.pod, *snapshot.group_pods))
    lost = snapshot.deleted or is_deleting(snapshot.pod) or is_over(snapshot.pod)
    return POD_LOST if lost or not restarts else CONTAINER_RESTART


def _unfinished(lws: Obj, leader: Obj) -> str:
    """The name of the pod whose failure a restart follows from that waits, or that was counted and not made.

    The latter is what a manager leaves that ends between the two; which pod it was nothing tells any more, so it is the
    leader, whose deletion is all that is left to do.
    """
    counted = budget.counts_restarts(lws) and counters.is_counted(lws, leader)
    return budget.cause_of_pending(leader) or (leader["metadata"]["name"] if counted else "")


@dataclass(frozen=True, slots=True)
class Recreation:
    """What the event of a recreation tells: the group, and the pod whose failure it followed from."""

    group: int
    pod: str


def told(note: str) -> Recreation | None:
    """What the note of an event about a recreation tells, None for any other text."""
    found = _NOTE.fullmatch(note)
    return Recreation(int(found["group"]), found["pod"]) if found else None


def told_of_key(note: str) -> tuple[str, str] | None:
    """The pod that failed and the leader that was deleted, as the note of an event about a recreation in Hash mode
    tells them; None for any other text."""
    found = _NOTE_OF_KEY.fullmatch(note)
    if found is None:
        return None
    return (found["over"], found["over"]) if found["over"] else (found["pod"], found["leader"])


def _held(hold: budget.Hold) -> Verdict:
    return Verdict(None, f"the group is recreated once it has lived {hold.after:g} s longer", hold)


def _unseen_owner(snapshot: MemberSnapshot, pod: Obj, workers: Kind) -> tuple[Kind, Key] | None:
    """The pod's owner if it is a workload of workers that is in no cache and was not read live either."""
    reference = controller_of(pod)
    if reference is None or not is_of(reference, workers):
        return None
    if snapshot.owner is not None and uid_of(snapshot.owner) == reference["uid"]:
        return None
    wanted = (workers, Key(key_of(pod).namespace, reference["name"]))
    return None if wanted in snapshot.live else wanted


def _recreate(lws: Obj, leader: Obj, name: str, what: str) -> Delete:
    """The deletion of the leader because of what happened to the pod with that name."""
    cause = leader["metadata"]["name"]
    index = labels_of(leader).get(names.GROUP_INDEX_LABEL, "")
    return Delete(
        why=f"pod {name} {what}, so group {index} restarts as a whole: its leader goes, and all its pods with it",
        kind=POD,
        key=key_of(leader),
        uid=uid_of(leader),
        propagation="Foreground",
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
        on_success=Event(
            regarding=ref_of(lws, LEADER_WORKER_SET),
            reason=names.EVENT_RECREATE_GROUP,
            action=names.ACTION_DELETE,
            note=f"Worker pod {name} failed, deleted leader pod {cause} to recreate group {index}",
            related=ref_of(leader, POD),
        ),
    )
