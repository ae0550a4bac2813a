"""What the LeaderWorkerSet reconciler decides for a set in Ordinal mode. Pure.

Specification: 20 §2, in its order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lwskit.api import names
from lwskit.groups import budget, counters, revisions, rollout, services, spec, status, templates
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError, Groups, LeaderState, SetSnapshot
from lwskit.groups.ports import Capability, LeaderBackend
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import CONTROLLER_REVISION, SERVICE
from lwskit.runtime.objects import Obj, ObjectRef, controller_of, is_deleting, is_of, key_of, ref_of, uid_of
from lwskit.runtime.plan import (
    AnswerOf,
    AnyAction,
    Apply,
    Create,
    Decision,
    Delete,
    Emit,
    Event,
    Modify,
    NeedFresh,
    OnError,
    Plan,
    UpdateStatus,
)
from lwskit.runtime.request import Result

REQUIRED = frozenset({Capability.ORDINALS, Capability.PARTITION})
"""What a leader workload must be able to do in Ordinal mode."""

_DELETION_DELAY = 5.0
_MOMENT = 0.001
"""Seconds that are not worth another decision."""
_REVISION = "revision"


def check(leaders: LeaderBackend) -> None:
    """Refuse a backend that cannot serve Ordinal mode. Raises ConfigurationError that names what it lacks."""
    lacking = sorted(c.value for c in REQUIRED - leaders.capabilities)
    if lacking:
        raise ConfigurationError(
            f"backend of kind {leaders.kind.qualified} cannot lead sets in Ordinal mode, for it lacks "
            f"{', '.join(lacking)}; choose one that has it"
        )
    if leaders.write != "apply":
        raise ConfigurationError(
            f"backend of kind {leaders.kind.qualified} cannot lead sets in Ordinal mode, for it would only "
            f"{leaders.write} its objects and a rollout changes them; choose one that applies them"
        )


@dataclass(frozen=True, slots=True)
class _Revision:
    """The revision to go by: its key, how events refer to it, what creates it, and whether the template changed."""

    key: str
    reference: ObjectRef | AnswerOf
    create: Create | None = None
    changed: bool = False


def decide(snapshot: SetSnapshot, leaders: LeaderBackend) -> Decision:
    """The plan for a set: its revision, leaders, shared Service, status, and what a finished rollout leaves behind.

    Raises DecisionError where the set or its leader workload says something that cannot be acted on.
    """
    lws = snapshot.lws
    if lws is None:
        return Plan(note="the set is gone")
    if is_deleting(lws):
        return Plan(note="the set is being deleted; what it owns goes with it")
    if spec.identity(lws) != names.IDENTITY_ORDINAL:
        return Plan((_unserved(lws),), note="the set's groups have no ordinals")
    now = leaders.observe(snapshot.workload) if snapshot.workload is not None else None
    if now is not None and now.deleting:
        wait = Result(after=_DELETION_DELAY, reason="the leader workload is being deleted")
        return Plan(result=wait, note="the leader workload is being deleted; a new one is made after that")

    if snapshot.workload is not None and _is_of_an_earlier_set(snapshot.workload, lws):
        wait = Result(after=_DELETION_DELAY, reason="the leader workload is that of an earlier set of this name")
        return Plan(result=wait, note="the leader workload of an earlier set has to go first")
    if now is None and snapshot.led_by:
        return _left_alone(snapshot, lws, leaders)
    where = (leaders.kind, key_of(lws))
    if now is None and lws.get("status") and where not in snapshot.live:
        # One that lost its label is in no cache, and making it anew would take down whatever it leads.
        return NeedFresh((where,), "leaders of a set that had some are made anew only if they are really gone")

    mine = revisions.own(lws, snapshot.revisions)
    revision = _revision(lws, now, mine)
    ordinals = leaders.ordinals(snapshot.workload) if snapshot.workload is not None else range(0)
    groups = snapshot.state.groups(revision.key, alone=spec.size(lws) == 1).arranged(ordinals)
    target = _target(snapshot, lws, now, groups.first(len(ordinals)), revision.changed)

    actions: list[AnyAction] = [revision.create] if revision.create else []
    actions += _reclaimed(lws, target, ordinals)
    actions.append(_apply(lws, leaders, now, target, revision, ordinals))
    actions += _shared_service(snapshot, lws)
    counts = status.count(groups, spec.replicas(lws), spec.partition(lws))
    if now is None:
        # The first status comes with the leaders: what is written only after them may find all of them ready.
        actions += [] if lws.get("status") else _status(snapshot, lws, 0, counts)[0]
        return _counted(snapshot, lws, leaders, target, "", Plan(tuple(actions), note=target.why))
    if snapshot.state.strays:
        reason = (
            f"label {names.GROUP_INDEX_LABEL} of leader pod {snapshot.state.strays[0]} does not say which group it is"
        )
        plan = Plan(tuple(actions), Result(requeue=True, reason=reason), reason)
        return _counted(snapshot, lws, leaders, target, "", plan)
    if not snapshot.known:
        return _counted(snapshot, lws, leaders, target, "", Plan(tuple(actions), note=target.why))
    written, result = _status(snapshot, lws, now.status_replicas, counts)
    actions += written
    # As long as surge leaders end the StatefulSet makes lost leaders of the older template, whose revision they need.
    done = counts.update_done and snapshot.healthy and now.settled
    if done:
        actions += [_truncate(lws, r) for r in revisions.superseded(mine, revision.key)]
    plan = Plan(tuple(actions), result, target.why)
    return _counted(snapshot, lws, leaders, target, revision.key if done else "", plan)


def _is_of_an_earlier_set(workload: Obj, lws: Obj) -> bool:
    """Whether a workload belongs to a set of this name that is gone, so that the collector is about to remove it."""
    owner = controller_of(workload)
    return owner is not None and is_of(owner, LEADER_WORKER_SET) and owner["uid"] != uid_of(lws)


def _counted(
    snapshot: SetSnapshot, lws: Obj, leaders: LeaderBackend, target: rollout.Target, current: str, plan: Plan
) -> Plan:
    """The plan, and after it the restart counters of groups that are gone for good are dropped (20 §12.5).

    `current` is the key of the only revision that is left, empty while there may be others. Dropping comes last, so
    that the status is written before the set changes. Counters that cannot be read hold up nothing else.
    """
    limit = max(target.replicas, spec.replicas(lws))
    kept = leaders.ordinals(snapshot.workload) if snapshot.workload is not None else range(0)

    def gone(live: Obj) -> Collection[str]:
        return counters.gone_for_good(live, limit, kept, current)

    try:
        lost = gone(lws)
    except DecisionError as error:
        said = budget.unreadable(lws, error)
        return Plan((*plan.actions, *said.actions), said.result, said.note)
    if not lost:
        return plan
    drop = Modify(
        why=f"restarts of {', '.join(sorted(lost))} count no longer: the groups are gone",
        kind=LEADER_WORKER_SET,
        key=key_of(lws),
        change=counters.dropped(gone, uid_of(lws)),
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
    )
    return Plan((*plan.actions, drop), plan.result, plan.note)


def _left_alone(snapshot: SetSnapshot, lws: Obj, leaders: LeaderBackend) -> Plan:
    """Nothing but a condition for a set whose leaders something else makes: two of them would fight for its pods."""
    served = leaders.kind.qualified
    message = (
        f"The leaders of this set are made by a {snapshot.led_by}, and this manager makes leaders with {served}: it "
        f"leaves the set alone; run a manager for {snapshot.led_by}, or delete that object and its pods"
    )
    stored = (lws.get("status") or {}).get("conditions") or []
    said = status.Requested(names.CONDITION_DEGRADED, True, names.REASON_OTHER_LEADER_WORKLOAD, message)
    generation = lws["metadata"].get("generation", 0)
    conditions = status.merge(stored, [said], generation, status.stamp(snapshot.now))
    note = f"the set is led by a {snapshot.led_by}, not by {served}"
    if conditions == stored:
        return Plan(note=note)
    write = UpdateStatus(
        why=note,
        kind=LEADER_WORKER_SET,
        obj={**lws, "status": {**(lws.get("status") or {}), "conditions": conditions}},
        on_success=_event(lws, names.REASON_OTHER_LEADER_WORKLOAD, names.ACTION_UPDATE, message, type="Warning"),
        errors={"Conflict": OnError.REQUEUE},
    )
    return Plan((write,), note=note)


def _unserved(lws: Obj) -> Emit:
    note = (
        f"groupIdentity {spec.identity(lws)} is not served by this manager, so nothing is made for this set; "
        f"create it with groupIdentity {names.IDENTITY_ORDINAL}"
    )
    event = _event(lws, "UnsupportedGroupIdentity", names.ACTION_CREATE, note, type="Warning")
    return Emit(why="a set that nothing is done for has to say so", event=event)


def _revision(lws: Obj, now: LeaderState | None, mine: list[Obj]) -> _Revision:
    """The current revision: that of the leader workload, or a new one (specification: 20 §3.3, §3.4)."""
    data = revisions.record(lws)
    key = now.revision if now is not None else ""
    base = revisions.choose(mine, key) if key else None
    if base is None and not key and not lws.get("status"):
        # A first attempt that failed half-way has left its revision behind.
        base = revisions.recorded_as(mine, data)
        if base is not None:
            return _existing(base)
    if base is None:
        cause = "missing revision with key {} for existing" if key else "revision with key {} for a newly created"
        return _created(lws, revisions.new_revision(lws, mine, data, key), f"Creating {cause} LeaderWorkerSet")
    if now is None or revisions.says_the_same(base, data):
        return _existing(base)
    newest = max(mine, key=revisions.number_of)
    if revisions.recorded_as([newest], data) is not None:
        # The template changed and was recorded, but the leader workload could not be written since.
        return _existing(newest, changed=True)
    return _created(lws, revisions.new_revision(lws, mine, data), "Creating revision with key {} for updated LWS", True)


def _existing(revision: Obj, *, changed: bool = False) -> _Revision:
    return _Revision(revisions.revision_key(revision), ref_of(revision, CONTROLLER_REVISION), changed=changed)


def _created(lws: Obj, revision: Obj, note: str, changed: bool = False) -> _Revision:
    key = revisions.revision_key(revision)
    answer = AnswerOf(_REVISION, CONTROLLER_REVISION)
    create = Create(
        why="the template changed, so it is recorded as a new revision" if changed else "the set has no revision yet",
        name=_REVISION,
        kind=CONTROLLER_REVISION,
        obj=revision,
        on_success=_event(lws, names.EVENT_CREATING_REVISION, names.ACTION_CREATE, note.format(key), related=answer),
        errors={"AlreadyExists": OnError.REQUEUE},
    )
    return _Revision(key, answer, create, changed)


def _target(snapshot: SetSnapshot, lws: Obj, now: LeaderState | None, asked: Groups, changed: bool) -> rollout.Target:
    settings = rollout.Settings.of(lws)
    found = rollout.target(now, asked, settings, new_revision=changed)
    if not snapshot.healthy:
        return rollout.held(found, now, settings, rollout.BROKEN_WATCH)
    return found if snapshot.known else rollout.held(found, now, settings, rollout.UNKNOWN_LEADERS)


def _reclaimed(lws: Obj, target: rollout.Target, ordinals: Sequence[int]) -> list[AnyAction]:
    gone, name = _at(ordinals, target.reclaimed), lws["metadata"]["name"]
    if not gone:
        return []
    note = f"deleting surge replicas from {name}-{gone[0]} to {name}-{gone[-1]}"
    if len(gone) == 1:
        note = f"deleting surge replica {name}-{gone[0]}"
    event = _event(lws, names.EVENT_GROUPS_PROGRESSING, names.ACTION_DELETE, note)
    return [Emit(why="fewer groups are needed than there are", event=event)]


def _at(ordinals: Sequence[int], places: range) -> Sequence[int]:
    """The ordinals at these places of the row of leaders."""
    counted = isinstance(ordinals, range) and not ordinals.start
    return places if counted else [*ordinals][places.start : places.stop]


def _apply(
    lws: Obj,
    leaders: LeaderBackend,
    now: LeaderState | None,
    target: rollout.Target,
    revision: _Revision,
    ordinals: Sequence[int],
) -> Apply:
    name = lws["metadata"]["name"]
    plan = templates.leader_plan(lws, revision.key, partition=target.partition, replicas=target.replicas)
    verb, reason, action = "create", names.EVENT_FAILED_CREATE, names.ACTION_CREATE
    if now is not None:
        verb, reason, action = "update", names.EVENT_FAILED_UPDATE, names.ACTION_UPDATE
    failed = _event(lws, reason, action, f"Failed to {verb} leader statefulset {name}: {{error}}", type="Warning")
    return Apply(
        why=f"{target.replicas} leaders, update from group {target.partition} on: {target.why}",
        kind=leaders.kind,
        obj=leaders.render(plan),
        manager=names.FIELD_MANAGER,
        on_success=_progress_event(lws, now, target, revision, ordinals),
        on_failure=failed,
    )


def _progress_event(
    lws: Obj, now: LeaderState | None, target: rollout.Target, revision: _Revision, ordinals: Sequence[int]
) -> Event | None:
    related, create, update = revision.reference, names.ACTION_CREATE, names.ACTION_UPDATE
    if now is None:
        note = f"Created leader statefulset {lws['metadata']['name']}"
        return _event(lws, names.EVENT_GROUPS_PROGRESSING, create, note, related=related)
    if revision.changed or target.partition >= now.partition:
        return None
    first, last = target.partition, now.partition - 1
    if named := _at(ordinals, range(first, last + 1)):
        first, last = named[0], named[-1]
    note = f"Updating replica {first}" if first == last else f"Updating replicas {first} to {last} (inclusive)"
    return _event(lws, names.EVENT_GROUPS_UPDATING, update, note, related=related)


def _shared_service(snapshot: SetSnapshot, lws: Obj) -> list[AnyAction]:
    if snapshot.shared_service is not None or spec.subdomain_policy(lws) != names.SUBDOMAIN_SHARED:
        return []
    note = "Failed to create headless service for error: {error}"
    return [
        Create(
            why="the pods of the set find each other through one Service, which does not exist",
            kind=SERVICE,
            obj=services.shared_service(lws),
            on_failure=_event(lws, names.EVENT_FAILED_CREATE, names.ACTION_CREATE, note, type="Warning"),
            errors={"AlreadyExists": OnError.IGNORE},
        )
    ]


def _status(snapshot: SetSnapshot, lws: Obj, created: int, counts: status.Counts) -> tuple[list[AnyAction], Result]:
    """What writes the status if it is another one, and when to come back where that has to wait."""
    old: Mapping[str, Any] = lws.get("status") or {}
    stored = old.get("conditions") or []
    wanted = status.requested(counts, stored)
    generation = lws["metadata"].get("generation", 0)
    conditions = status.merge(stored, wanted, generation, status.stamp(snapshot.now))
    new = status.new_status(lws, counts, created, conditions)
    if new == old:
        return [], Result()
    wait = status.pause(old, new, spec.replicas(lws)) - snapshot.status_age
    if wait > _MOMENT:
        return [], Result(after=wait, reason="the status was written a moment ago and would only count otherwise")
    headline = status.headline(wanted)
    event = _event(lws, headline.reason, names.ACTION_UPDATE, status.note(wanted, counts))
    write = UpdateStatus(
        why=f"{counts.ready} of {counts.replicas} groups are ready, {counts.updated} are updated",
        kind=LEADER_WORKER_SET,
        obj={**lws, "status": new},
        on_success=event if conditions != stored else None,
        errors={"Conflict": OnError.REQUEUE},
    )
    return [write], Result()


def _truncate(lws: Obj, revision: Obj) -> Delete:
    return Delete(
        why=f"the rollout is done, so nothing of revision {revisions.revision_key(revision)} is left",
        kind=CONTROLLER_REVISION,
        key=key_of(revision),
        uid=uid_of(revision),
        errors={"NotFound": OnError.IGNORE},
    )


def _event(
    lws: Obj,
    reason: str,
    action: str,
    note: str,
    *,
    type: str = "Normal",
    related: ObjectRef | AnswerOf | None = None,
) -> Event:
    return Event(ref_of(lws, LEADER_WORKER_SET), reason, action, note, type, related)
