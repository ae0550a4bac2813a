"""Whose turn it is: what is decided about a leader that waits at its gate. Pure.

Specification: 20 §10.5 (Ordinal), 30 §7 (Hash).
"""

from __future__ import annotations

from dataclasses import dataclass

from lwskit.api import names
from lwskit.groups import gates, hashbudget, spec
from lwskit.groups.identity import has_hash_identity
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import MemberSnapshot
from lwskit.groups.pool import facts_of
from lwskit.groups.poolstate import LeaderFacts, PoolState
from lwskit.groups.ports import LeaderBackend
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, annotations_of, key_of, ref_of, uid_of
from lwskit.runtime.plan import AnyAction, Emit, Event, Modify, OnError, Patch


@dataclass(frozen=True, slots=True)
class Turn:
    """Whether a leader may be scheduled now, what is done about it, and why not if it may not."""

    admitted: bool
    actions: tuple[AnyAction, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a leader in Hash mode stands: admitted, or why not; `blocked` groups have to be gone before, if any."""

    admitted: bool
    why: str = ""
    blocked: int = 0


def of(snapshot: MemberSnapshot, lws: Obj, leader: Obj, leaders: LeaderBackend) -> Turn:
    """What to do about a gated leader.

    Where the set's restart counters cannot be read, it keeps its deletion cost until it takes over a count
    (`interfered.ungated`).
    """
    if not has_hash_identity(leader):
        blocked = gates.waits_for(leader, snapshot.set_pods)
        return _deferred(lws, leader, blocked, told=False) if blocked else Turn(True, (_lifted(lws, leader),))
    found = _standing(snapshot, lws, leader, leaders)
    if found.admitted:
        claimed = hashbudget.claim(snapshot, lws, leader)
        return Turn(True, (*(claimed or ()), _admitted(lws, leader, settled=claimed is not None)))
    return _deferred(lws, leader, found.blocked, told=snapshot.told) if found.blocked else Turn(False, (), found.why)


def _standing(snapshot: MemberSnapshot, lws: Obj, leader: Obj, leaders: LeaderBackend) -> Standing:
    return standing(
        snapshot.pool,
        facts_of(leader),
        desired=leaders.observe(snapshot.workload).revision if snapshot.workload is not None else "",
        replicas=spec.replicas(lws),
        immediate=spec.replacement_policy(lws) == names.REPLACEMENT_IMMEDIATE,
    )


def standing(pool: PoolState, leader: LeaderFacts, *, desired: str, replicas: int, immediate: bool) -> Standing:
    """Whether a gated leader may be scheduled, of a set that wants `replicas` groups.

    `desired` is the leader workload's revision, empty if it is not known; `immediate` is the replacement policy. Each
    group that is torn down keeps one leader waiting, the youngest first; under Immediate only those do which stay:
    because they have no restart left, or because their leader has ended and its recreation waits. No more leaders than
    are wanted are let in of what one ReplicaSet has made; where one revision has two of them, a rollout goes on between
    the two. Specification: 30 §7.
    """
    revision, place = leader.revision, leader.place
    if desired and revision and desired != revision:
        return Standing(False, f"the leader is of revision {revision}, and revision {desired} replaces it")
    line = pool.line(revision, leader.maker)
    rank = line.rank(place)
    if rank is None:
        return Standing(False, "the leader is not known to wait yet")
    before = line.taken + rank
    if before >= replicas:
        return Standing(False, f"{replicas} groups are wanted, and there are {before} before this one")
    blocked = pool.degraded + pool.ended if immediate else pool.torn_down
    if not blocked:
        return Standing(True)
    overall = pool.rank_among_all(revision, place, desired)
    if overall is None or overall >= pool.waiting - blocked:
        return Standing(False, f"{blocked} groups are not gone yet", blocked)
    return Standing(True)


def _deferred(lws: Obj, leader: Obj, blocked: int, *, told: bool) -> Turn:
    name = leader["metadata"]["name"]
    note = f"Leader pod {name} waits for {blocked} terminating group(s) to be removed before scheduling"
    if told:
        return Turn(False, (), note)
    event = _event(lws, leader, names.EVENT_GROUP_REPLACEMENT_DEFERRED, note)
    return Turn(False, (Emit(why="a leader that is not scheduled says what it waits for", event=event),), note)


def _lifted(lws: Obj, leader: Obj) -> Modify:
    """Lift the gate of a leader in Ordinal mode (specification: 20 §10.5)."""
    uid = uid_of(leader)
    return Modify(
        why=_why(leader),
        kind=POD,
        key=key_of(leader),
        change=lambda fresh: gates.without_gate(fresh) if uid_of(fresh) == uid else None,
        on_success=_admission(lws, leader),
        errors={"NotFound": OnError.REQUEUE, "Conflict": OnError.REQUEUE},
    )


def _admitted(lws: Obj, leader: Obj, *, settled: bool) -> Patch:
    """Lift the gate of a leader in Hash mode, and take away the deletion cost that came with it: one request, for every
    group has a gate. The gates of others stay (specification: 30 §7 item 6)."""
    body: Obj = {"spec": {"schedulingGates": [{"$patch": "delete", "name": names.GROUP_REPLACEMENT_GATE}]}}
    if settled and annotations_of(leader).get(names.POD_DELETION_COST_ANNOTATION) == names.GATED_DELETION_COST:
        body["metadata"] = {"annotations": {names.POD_DELETION_COST_ANNOTATION: None}}
    return Patch(
        why=_why(leader),
        kind=POD,
        key=key_of(leader),
        uid=uid_of(leader),
        body=body,
        strategic=True,
        on_success=_admission(lws, leader),
        errors={"NotFound": OnError.REQUEUE, "Conflict": OnError.REQUEUE},
    )


def _why(leader: Obj) -> str:
    return f"no group is in the way of leader pod {leader['metadata']['name']} any more"


def _admission(lws: Obj, leader: Obj) -> Event:
    note = f"Leader pod {leader['metadata']['name']} admitted for scheduling"
    return _event(lws, leader, names.EVENT_GROUP_REPLACEMENT_ADMITTED, note)


def _event(lws: Obj, leader: Obj, reason: str, note: str) -> Event:
    return Event(ref_of(lws, LEADER_WORKER_SET), reason, names.ACTION_UPDATE, note, "Normal", ref_of(leader, POD))
