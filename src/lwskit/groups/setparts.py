"""What the decisions about sets share, whatever tells their groups apart: revision, Service, status. Pure.

Specification: 20 §3, §4, §8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lwskit.api import names
from lwskit.groups import revisions, services, spec, status
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import LeaderState, SetSnapshot
from lwskit.groups.ports import Capability, LeaderBackend
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import CONTROLLER_REVISION, SERVICE
from lwskit.runtime.objects import Obj, ObjectRef, controller_of, is_deleting, is_of, key_of, ref_of, uid_of
from lwskit.runtime.plan import (
    AnswerOf,
    AnyAction,
    Create,
    Decision,
    Delete,
    Event,
    NeedFresh,
    OnError,
    Plan,
    UpdateStatus,
)
from lwskit.runtime.request import Result

_DELETION_DELAY = 5.0
_REVISION = "revision"


@dataclass(frozen=True, slots=True)
class Revision:
    """The revision to go by: its key, how events refer to it, what creates it, and whether the template changed."""

    key: str
    reference: ObjectRef | AnswerOf
    create: Create | None = None
    changed: bool = False


def check(leaders: LeaderBackend, required: frozenset[Capability], mode: str) -> None:
    """Refuse a backend that cannot serve sets in that mode. Raises ConfigurationError that names what it lacks."""
    lacking = sorted(c.value for c in required - leaders.capabilities)
    if lacking:
        raise ConfigurationError(
            f"backend of kind {leaders.kind.qualified} cannot lead sets in {mode} mode, for it lacks "
            f"{', '.join(lacking)}; choose one that has it"
        )
    if leaders.write != "apply":
        raise ConfigurationError(
            f"backend of kind {leaders.kind.qualified} cannot lead sets in {mode} mode, for it would only "
            f"{leaders.write} its objects and a rollout changes them; choose one that applies them"
        )


def nothing_to_do(snapshot: SetSnapshot, lws: Obj, now: LeaderState | None, leaders: LeaderBackend) -> Decision | None:
    """The decision about a set that is not to be touched now, None for one that is. `now` is its leader workload."""
    if is_deleting(lws):
        return Plan(note="the set is being deleted; what it owns goes with it")
    if now is not None and now.deleting:
        wait = Result(after=_DELETION_DELAY, reason="the leader workload is being deleted")
        return Plan(result=wait, note="the leader workload is being deleted; a new one is made after that")
    if snapshot.workload is not None and is_of_an_earlier_set(snapshot.workload, lws):
        wait = Result(after=_DELETION_DELAY, reason="the leader workload is that of an earlier set of this name")
        return Plan(result=wait, note="the leader workload of an earlier set has to go first")
    mine = (LEADER_WORKER_SET, key_of(lws))
    if snapshot.workload is not None and controller_of(snapshot.workload) is None and mine not in snapshot.live:
        # Deleted with its dependents orphaned, the set may be gone: an owner that is gone would have them collected.
        return NeedFresh((mine,), "a leader workload without an owner is taken back only by a set that is there")
    if now is None and snapshot.led_by:
        return left_alone(snapshot, lws, leaders)
    where = (leaders.kind, key_of(lws))
    if now is None and lws.get("status") and where not in snapshot.live:
        # One that lost its label is in no cache, and making it anew would take down whatever it leads. And it may have
        # gone with its set: what is made for one that is gone is removed at once, and so on without end.
        return NeedFresh(
            (where, mine), "leaders of a set that had some are made anew only if they are really gone, and it is not"
        )
    return None


def is_of_an_earlier_set(workload: Obj, lws: Obj) -> bool:
    """Whether a workload belongs to a set of this name that is gone, so that the collector is about to remove it."""
    owner = controller_of(workload)
    return owner is not None and is_of(owner, LEADER_WORKER_SET) and owner["uid"] != uid_of(lws)


def revision(lws: Obj, now: LeaderState | None, mine: list[Obj]) -> Revision:
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


def _existing(revision: Obj, *, changed: bool = False) -> Revision:
    return Revision(revisions.revision_key(revision), ref_of(revision, CONTROLLER_REVISION), changed=changed)


def _created(lws: Obj, revision: Obj, note: str, changed: bool = False) -> Revision:
    key = revisions.revision_key(revision)
    answer = AnswerOf(_REVISION, CONTROLLER_REVISION)
    create = Create(
        why="the template changed, so it is recorded as a new revision" if changed else "the set has no revision yet",
        name=_REVISION,
        kind=CONTROLLER_REVISION,
        obj=revision,
        on_success=event(lws, names.EVENT_CREATING_REVISION, names.ACTION_CREATE, note.format(key), related=answer),
        errors={"AlreadyExists": OnError.REQUEUE},
    )
    return Revision(key, answer, create, changed)


def shared_service(snapshot: SetSnapshot, lws: Obj) -> list[AnyAction]:
    """What makes the Service of a set whose pods share one, if it does not exist."""
    if snapshot.shared_service is not None or spec.subdomain_policy(lws) != names.SUBDOMAIN_SHARED:
        return []
    note = "Failed to create headless service for error: {error}"
    return [
        Create(
            why="the pods of the set find each other through one Service, which does not exist",
            kind=SERVICE,
            obj=services.shared_service(lws),
            on_failure=event(lws, names.EVENT_FAILED_CREATE, names.ACTION_CREATE, note, type="Warning"),
            errors={"AlreadyExists": OnError.IGNORE},
        )
    ]


def status_written(
    snapshot: SetSnapshot, lws: Obj, wanted: Sequence[status.Requested], shown: status.Shown
) -> tuple[list[AnyAction], Result]:
    """What writes the status if it is another one, and when to come back where that has to wait."""
    old: Mapping[str, Any] = lws.get("status") or {}
    stored = old.get("conditions") or []
    generation = lws["metadata"].get("generation", 0)
    conditions = status.merge(stored, wanted, generation, status.stamp(snapshot.now))
    new = status.new_status(lws, shown, conditions)
    if new == old:
        return [], Result()
    wait = status.pause(old, new, spec.replicas(lws)) - snapshot.status_age
    if wait > status.MOMENT:
        return [], Result(after=wait, reason="the status was written a moment ago and would only count otherwise")
    headline = status.headline(wanted)
    changed = event(lws, headline.reason, names.ACTION_UPDATE, status.note(wanted, shown))
    write = UpdateStatus(
        why=f"{shown.ready} of {shown.wanted} groups are ready, {shown.updated} are updated",
        kind=LEADER_WORKER_SET,
        obj={**lws, "status": new},
        on_success=changed if conditions != stored else None,
        errors={"Conflict": OnError.REQUEUE},
    )
    return [write], Result()


def left_alone(snapshot: SetSnapshot, lws: Obj, leaders: LeaderBackend) -> Plan:
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
        on_success=event(lws, names.REASON_OTHER_LEADER_WORKLOAD, names.ACTION_UPDATE, message, type="Warning"),
        errors={"Conflict": OnError.REQUEUE},
    )
    return Plan((write,), note=note)


def truncate(revision: Obj) -> Delete:
    """The deletion of a revision that nothing is of any more."""
    return Delete(
        why=f"the rollout is done, so nothing of revision {revisions.revision_key(revision)} is left",
        kind=CONTROLLER_REVISION,
        key=key_of(revision),
        uid=uid_of(revision),
        errors={"NotFound": OnError.IGNORE},
    )


def event(
    lws: Obj,
    reason: str,
    action: str,
    note: str,
    *,
    type: str = "Normal",
    related: ObjectRef | AnswerOf | None = None,
) -> Event:
    """An event on the set."""
    return Event(ref_of(lws, LEADER_WORKER_SET), reason, action, note, type, related)
