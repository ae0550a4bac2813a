"""The restart budget: what a group that failed may still do, and what becomes of one that has used it up. Pure.

Specification: 20 §12. A group without a restart left is terminated and kept: its leader is marked, a finalizer keeps
its pods, and because the leader stays nobody makes another one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from lwskit.api import names
from lwskit.groups import backoff, counters, ownership, spec
from lwskit.groups.identity import is_leader
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError, MemberSnapshot
from lwskit.groups.ports import LeaderBackend
from lwskit.runtime.finalizers import FOREGROUND, add_finalizer, has_finalizer, remove_finalizer
from lwskit.runtime.kinds import NAMESPACE, POD
from lwskit.runtime.objects import (
    Key,
    Obj,
    annotations_of,
    controller_of,
    is_deleting,
    key_of,
    labels_of,
    ref_of,
    uid_of,
)
from lwskit.runtime.plan import AnyAction, Decision, Delete, Emit, Event, Modify, NeedFresh, OnError, Patch, Plan
from lwskit.runtime.request import Result

_GONE_IS_FINE = {"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE}


@dataclass(frozen=True, slots=True)
class Hold:
    """A recreation that waits: for how many seconds, and what is to be written down about it."""

    after: float
    actions: tuple[AnyAction, ...] = ()


NO_HOLD = Hold(0.0)
"""Nothing waits."""


def is_exhausted(leader: Obj) -> bool:
    """Whether a leader's group is marked as having no restart left."""
    return annotations_of(leader).get(names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION) == "true"


def is_kept(pod: Obj) -> bool:
    """Whether the budget's finalizer keeps a pod."""
    return has_finalizer(pod, names.GROUP_RESTART_BUDGET_FINALIZER)


def cause_of_pending(leader: Obj) -> str:
    """Name of the pod whose failure a leader's pending recreation follows from, empty if none is pending."""
    return annotations_of(leader).get(names.GROUP_RECREATE_PENDING_ANNOTATION, "")


def limit_of(lws: Obj) -> int | None:
    """`spec.leaderWorkerTemplate.maxGroupRestarts`, None for no limit."""
    return spec.template_of(lws).get("maxGroupRestarts")


def counts_restarts(lws: Obj) -> bool:
    """Whether restarts of the set's groups are counted: they are limited, or come with a back-off."""
    return limit_of(lws) is not None or backoff.settings(lws) is not None


def decide(snapshot: MemberSnapshot, lws: Obj, leader: Obj, failed: Obj) -> Decision | Hold | tuple[AnyAction, ...]:
    """What the budget says to a group's recreation: no, not yet, or yes with what has to be written before it.

    `lws` and `leader` were read live, the leader is not being deleted. Specification: 20 §12.2.
    """
    if is_exhausted(leader):
        return terminate(snapshot, lws, leader)
    if not counts_restarts(lws):
        return ()
    try:
        count = counters.read(lws).get(counters.key_of_group(leader), 0)
    except DecisionError as error:
        return unreadable(lws, error)
    if counters.is_counted(lws, leader):
        # An earlier try counted it and failed to delete the leader.
        return ()
    limit = limit_of(lws)
    if limit is not None and count >= limit:
        return terminate(snapshot, lws, leader)
    left = backoff.remaining(lws, leader, count, snapshot.now)
    if left > 0:
        pending = bool(cause_of_pending(leader))
        return Hold(left, () if pending else (_put_on_hold(lws, leader, failed, count, left),))
    return (_count(lws, leader, count + 1),)


def waits(snapshot: MemberSnapshot, lws: Obj, leader: Obj) -> Hold | None:
    """The hold of a pending recreation as far as the cache knows it: to do nothing needs no live look."""
    if not cause_of_pending(leader) or is_exhausted(leader) or counters.is_counted(lws, leader):
        return None
    try:
        count = counters.read(lws).get(counters.key_of_group(leader), 0)
    except DecisionError:
        return None
    limit = limit_of(lws)
    left = backoff.remaining(lws, leader, count, snapshot.now)
    return Hold(left) if left > 0 and (limit is None or count < limit) else None


def unreadable(lws: Obj, error: DecisionError) -> Plan:
    """The failed reconcile of a set whose counters cannot be read: it says so on the set."""
    event = _event(lws, None, names.EVENT_RESTART_COUNTS_UNREADABLE, names.ACTION_UPDATE, str(error), "Warning")
    why = "restarts that cannot be counted are not made"
    return Plan((Emit(why=why, event=event),), Result(error=error), str(error))


def uncounted(plan: Plan, lws: Obj, gone: Callable[[Obj], Collection[str]], because: str) -> Plan:
    """The plan, and after it the dropping of those of a set's restart counters that `gone` names (20 §12.5).

    Dropping comes last, so that the status is written before the set changes. Counters that cannot be read hold up
    nothing else.
    """
    try:
        lost = gone(lws)
    except DecisionError as error:
        said = unreadable(lws, error)
        return Plan((*plan.actions, *said.actions), said.result, said.note)
    if not lost:
        return plan
    drop = Modify(
        why=f"restarts of {', '.join(sorted(lost))} count no longer: {because}",
        kind=LEADER_WORKER_SET,
        key=key_of(lws),
        change=counters.dropped(gone, uid_of(lws)),
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
    )
    return Plan((*plan.actions, drop), plan.result, plan.note)


# Termination ----------------------------------------------------------------------------------------------------------


def terminate(snapshot: MemberSnapshot, lws: Obj, leader: Obj) -> Plan:
    """Mark the group, keep its pods, delete its leader in the foreground (specification: 20 §12.3).

    What is done already is left out, so that an interrupted termination is finished.
    """
    name, index = leader["metadata"]["name"], _index(leader)
    actions: list[AnyAction] = []
    if not (is_exhausted(leader) and is_kept(leader)):
        why = f"group {index} has no restart left: its leader {name} is marked and kept"
        actions.append(_modify(leader, why, _marked))
    for worker in _workers(snapshot, leader):
        if not is_deleting(worker) and not is_kept(worker) and _is_of(worker, leader, snapshot):
            why = f"pod {worker['metadata']['name']} of a group without a restart left is kept"
            actions.append(_modify(worker, why, _kept))
    if not is_deleting(leader):
        actions.append(_stop(lws, leader))
    return Plan(tuple(actions), note=f"group {index} has no restart left; automatic recovery is stopped")


def _stop(lws: Obj, leader: Obj) -> Delete:
    index = _index(leader)
    note = f"Restart budget exhausted; terminated group {index} and stopped automatic recovery"
    return Delete(
        why=f"group {index} has no restart left: its pods are stopped and stay as they are",
        kind=POD,
        key=key_of(leader),
        uid=uid_of(leader),
        propagation="Foreground",
        errors=_GONE_IS_FINE,
        on_success=_event(lws, leader, names.EVENT_RESTART_BUDGET_EXCEEDED, names.ACTION_DELETE, note, "Warning"),
    )


def _marked(leader: Obj) -> Obj | None:
    """The leader with mark and finalizer. A request for recovery from before the mark does not count."""
    if is_deleting(leader):
        return None
    notes = annotations_of(leader)
    marked = copy.deepcopy(leader)
    if not is_exhausted(leader):
        kept = {key: value for key, value in notes.items() if key != names.RECOVER_ANNOTATION}
        marked["metadata"]["annotations"] = {**kept, names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION: "true"}
    add_finalizer(marked, names.GROUP_RESTART_BUDGET_FINALIZER)
    return marked


def _kept(pod: Obj) -> Obj | None:
    if is_deleting(pod):
        return None
    kept = copy.deepcopy(pod)
    return kept if add_finalizer(kept, names.GROUP_RESTART_BUDGET_FINALIZER) else None


# Marked leaders -------------------------------------------------------------------------------------------------------


def reconcile_marked(
    snapshot: MemberSnapshot, lws: Obj, leader: Obj, leaders: LeaderBackend, released: Unwanted
) -> Decision:
    """What becomes of a group that was marked: it is let go, recovered, kept, or terminated to the end (20 §12.4).

    `released` says whether it is to be let go because nobody wants it any more.
    """
    name, index = leader["metadata"]["name"], _index(leader)
    found = released(snapshot, lws, leader, leaders)
    unwanted = found.why
    recovers = is_deleting(leader) and annotations_of(leader).get(names.RECOVER_ANNOTATION) == "true"
    if is_deleting(leader) and not unwanted and not recovers:
        return Plan(
            note=f"group {index} has no restart left and waits for annotation {names.RECOVER_ANNOTATION}=true on {name}"
        )
    workload = (leaders.kind, Key(key_of(lws).namespace, lws["metadata"]["name"]))
    keys = ((POD, key_of(leader)), (LEADER_WORKER_SET, key_of(lws)), workload)
    if not snapshot.live.issuperset(keys):
        return NeedFresh(keys, "a group without a restart left is touched only as it is now")
    if unwanted and not found.with_count:
        return Plan(release(snapshot, leader, unwanted), note=unwanted)
    if not unwanted and not recovers:
        return terminate(snapshot, lws, leader)
    try:
        counters.read(lws)
    except DecisionError as error:
        return unreadable(lws, error)
    key = counters.key_of_group(leader)
    why = unwanted or f"group {index} was asked to recover"
    reset = Modify(
        why=f"{why}: its restarts are counted from 0 again" if recovers else f"{why}, nor are its restarts",
        kind=LEADER_WORKER_SET,
        key=key_of(lws),
        change=counters.dropped(lambda live: [key], uid_of(lws)),
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
    )
    return Plan((reset, *release(snapshot, leader, why)), note=why)


@dataclass(frozen=True, slots=True)
class Release:
    """Why a marked group is not wanted any more, empty if it is; and whether its count of restarts goes with it."""

    why: str = ""
    with_count: bool = False


WANTED = Release()
Unwanted = Callable[[MemberSnapshot, Obj, Obj, LeaderBackend], Release]
"""Tells for the set and a marked leader of it whether its group is still wanted."""


def unwanted(snapshot: MemberSnapshot, lws: Obj, leader: Obj, leaders: LeaderBackend) -> Release:
    """Why a marked group of a set in Ordinal mode is not wanted any more."""
    return Release(_reason(lws, leader, snapshot.workload, leaders))


def _reason(lws: Obj, leader: Obj, workload: Obj | None, leaders: LeaderBackend) -> str:
    if workload is None:
        return ""
    text, name = _index(leader), leader["metadata"]["name"]
    owner = controller_of(leader)
    if owner is not None and owner["uid"] != uid_of(workload) and is_older(leader, lws):
        return f"leader {name} is of an earlier set of this name"
    if owner is not None and owner["uid"] == uid_of(workload) and _is_held_up(workload):
        return f"the leader workload is being deleted and waits for leader {name}"
    if not (text.isascii() and text.isdigit()):
        return ""
    now = leaders.observe(workload)
    ordinals = leaders.ordinals(workload)
    if int(text) not in ordinals:
        return f"group {text} is not wanted any more"
    if now.revision in ("", ownership.revision_key(leader)) or ordinals.index(int(text)) < now.partition:
        return ""
    return f"group {text} is updated to revision {now.revision}"


def _is_held_up(workload: Obj) -> bool:
    """Whether a workload goes only once its pods are gone. Deleted otherwise it goes at once, and kept groups stay."""
    return is_deleting(workload) and has_finalizer(workload, FOREGROUND)


def is_older(pod: Obj, lws: Obj) -> bool:
    """Whether a pod was made before the set. Times are whole seconds in one format, so texts compare like them."""
    return pod["metadata"].get("creationTimestamp", "") < lws["metadata"].get("creationTimestamp", "")


# Release --------------------------------------------------------------------------------------------------------------


def release_all(snapshot: MemberSnapshot, pod: Obj, why: str) -> Decision:
    """Let go of a pod whose set or namespace is gone or going: of a leader's group, of a worker alone (20 §10.2)."""
    if is_leader(pod):
        actions = release(snapshot, pod, why)
    else:
        actions = (_modify(pod, why, _released),) if is_kept(pod) and not snapshot.deleted else ()
    if not actions:
        return Plan(note=why)
    namespace = key_of(pod).namespace
    keys = ((LEADER_WORKER_SET, Key(namespace, ownership.set_name(pod))), (NAMESPACE, Key("", namespace)))
    if not snapshot.live.issuperset(keys):
        return NeedFresh(keys, "pods are let go only if their set or namespace is really going")
    return Plan(actions, note=why)


def release_unmarked(snapshot: MemberSnapshot, leader: Obj) -> Decision | None:
    """Let go of a leader that is kept and not marked; None if it is not kept. Someone has removed the mark by hand."""
    if snapshot.deleted or not is_kept(leader):
        return None
    key = (POD, key_of(leader))
    if key not in snapshot.live:
        return NeedFresh((key,), "a kept leader is let go only if it has no mark")
    why = f"leader {leader['metadata']['name']} is kept and has no mark any more"
    return Plan(release(snapshot, leader, why), note=why)


def release_stray(snapshot: MemberSnapshot, worker: Obj) -> Decision | None:
    """Let go of a worker that is kept although no marked leader is there any more; None if there is nothing to let go.

    Someone has removed the leader's finalizer by hand, or the release of its group was interrupted.
    """
    leader = snapshot.leader
    if snapshot.deleted or not is_kept(worker) or (leader is not None and is_exhausted(leader)):
        return None
    key = (POD, Key(key_of(worker).namespace, ownership.leader_name(worker)))
    if key not in snapshot.live:
        return NeedFresh((key,), "a kept worker is let go only if its leader is not kept")
    why = f"pod {worker['metadata']['name']} is kept for a leader that is not there any more"
    return Plan((_modify(worker, why, _released),), note=why)


def release(snapshot: MemberSnapshot, leader: Obj, why: str) -> tuple[AnyAction, ...]:
    """Take the finalizer off a group's pods: workers first, so that they are gone before the next leader comes."""
    pods = [*(p for p in _workers(snapshot, leader) if is_kept(p)), *([leader] if is_kept(leader) else ())]
    return tuple(_modify(pod, f"{why}: pod {pod['metadata']['name']} is let go", _released) for pod in pods)


def _released(pod: Obj) -> Obj | None:
    released = copy.deepcopy(pod)
    if not remove_finalizer(released, names.GROUP_RESTART_BUDGET_FINALIZER):
        return None
    ours = (names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION, names.RECOVER_ANNOTATION)
    notes = {key: value for key, value in annotations_of(pod).items() if key not in ours}
    released["metadata"]["annotations"] = notes
    if not notes:
        del released["metadata"]["annotations"]
    return released


# Parts ----------------------------------------------------------------------------------------------------------------


def _count(lws: Obj, leader: Obj, count: int) -> Modify:
    index = _index(leader)
    note = f"Failed to count restart {count} of group {index}, so it is not restarted: {{error}}"
    return Modify(
        why=f"restart {count} of group {index} is counted before it happens",
        kind=LEADER_WORKER_SET,
        key=key_of(lws),
        change=counters.raised(leader, count, uid_of(lws)),
        errors={"NotFound": OnError.REQUEUE, "Conflict": OnError.REQUEUE},
        on_failure=_event(lws, leader, names.EVENT_FAILED_UPDATE, names.ACTION_UPDATE, note, "Warning"),
    )


def _put_on_hold(lws: Obj, leader: Obj, failed: Obj, count: int, left: float) -> Patch:
    name, index = failed["metadata"]["name"], _index(leader)
    note = f"Pod {name} failed, group {index} is recreated in {max(1, round(left))}s, after {count} restarts so far"
    return Patch(
        why=f"pod {name} failed too soon after the last restart of group {index}, which waits for {left:g} s",
        kind=POD,
        key=key_of(leader),
        uid=uid_of(leader),
        body={"metadata": {"annotations": {names.GROUP_RECREATE_PENDING_ANNOTATION: name}}},
        errors={"NotFound": OnError.REQUEUE, "Conflict": OnError.REQUEUE},
        on_success=_event(lws, leader, names.EVENT_GROUP_RESTART_BACKOFF, names.ACTION_UPDATE, note, "Warning"),
    )


def _modify(pod: Obj, why: str, change: Callable[[Obj], Obj | None]) -> Modify:
    """A change of this very pod, not of a successor."""
    uid = uid_of(pod)
    return Modify(
        why=why,
        kind=POD,
        key=key_of(pod),
        change=lambda fresh: change(fresh) if uid_of(fresh) == uid else None,
        errors=_GONE_IS_FINE,
    )


def _workers(snapshot: MemberSnapshot, leader: Obj) -> Sequence[Obj]:
    return [p for p in snapshot.group_pods if uid_of(p) != uid_of(leader) and not is_leader(p)]


def _is_of(worker: Obj, leader: Obj, snapshot: MemberSnapshot) -> bool:
    """Whether a worker is of the leader's group and revision."""
    return ownership.revision_key(worker) == ownership.revision_key(leader) and any(
        ownership.belongs_to(worker, leader, owner) for owner in (snapshot.workers, snapshot.owner)
    )


def _index(leader: Obj) -> str:
    return labels_of(leader).get(names.GROUP_INDEX_LABEL, "")


def _event(lws: Obj, leader: Obj | None, reason: str, action: str, note: str, type: str) -> Event:
    related = ref_of(leader, POD) if leader is not None else None
    return Event(ref_of(lws, LEADER_WORKER_SET), reason, action, note, type, related)
