"""What the LeaderWorkerSet reconciler decides for a set in Hash mode. Pure.

Specification: 30 §3, §12, in their order.
"""

from __future__ import annotations

from dataclasses import dataclass

from lwskit.api import names
from lwskit.groups import hashbudget, revisions, setparts, spec, status, templates
from lwskit.groups.model import LeaderState, SetSnapshot
from lwskit.groups.poolstate import PoolState
from lwskit.groups.ports import Capability, LeaderBackend
from lwskit.runtime.objects import Obj, generation_of
from lwskit.runtime.plan import AnyAction, Apply, Decision, Plan
from lwskit.runtime.request import Result

REQUIRED = frozenset({Capability.READINESS_PACED, Capability.RANKED_SCALE_DOWN})
"""What a leader workload must be able to do in Hash mode."""


def check(leaders: LeaderBackend) -> None:
    """Refuse a backend that cannot serve Hash mode. Raises ConfigurationError that names what it lacks."""
    setparts.check(leaders, REQUIRED, names.IDENTITY_HASH)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many groups are in which state (specification: 30 §12)."""

    wanted: int
    created: int
    """Leaders that the leader workload counts: none that is being deleted, but those at their gate."""
    ready: int
    updated: int
    """Leaders of the current revision."""
    old: int
    """Leaders of other revisions that are there to stay."""
    ready_sound: int
    """Ready ones, without those that have no restart left."""
    degraded: int
    """Groups that have no restart left."""
    observed: bool
    """Whether the leader workload's status is about what it was last asked for, and that is what the set wants."""
    complete: bool
    """Whether there are as many leaders of the current revision as are wanted."""

    @property
    def updating(self) -> bool:
        """Whether leaders of an older template are left."""
        return self.old > 0 or self.updated < self.created

    @property
    def available(self) -> bool:
        """Whether all groups that are wanted are ready, and none else is there."""
        numbers = (self.created, self.ready_sound, self.updated)
        settled = self.observed and self.complete and not self.old and not self.degraded
        return settled and all(number == self.wanted for number in numbers)

    @property
    def progressing(self) -> bool:
        """Whether anything is still going to happen by itself."""
        if self.updating and not self.degraded:
            return True
        return self.ready_sound + self.degraded < max(self.wanted, self.created)

    def conditions(self, lws: Obj) -> list[status.Requested]:
        """The conditions that the counts ask for."""
        return status.requested_of_pool(
            updating=self.updating,
            available=self.available,
            progressing=self.progressing,
            degraded=self.degraded > 0,
            stored=(lws.get("status") or {}).get("conditions") or (),
        )

    def shown(self) -> status.Shown:
        """The numbers for the status."""
        return status.Shown(self.wanted, self.created, self.ready, self.updated)


def count(now: LeaderState | None, pool: PoolState, replicas: int, revision: str) -> Counts:
    """Count the groups of a set that wants `replicas` groups of the revision with that key.

    The leader workload counts by its own templates, and until it has looked at the last one its numbers are of the one
    before: what it says are updated are then no more than the leaders of the revision.
    """
    own = pool.of(revision)
    if now is None:
        return Counts(replicas, 0, 0, 0, pool.others(revision), 0, pool.degraded, False, False)
    looked = now.observed_generation >= now.generation and now.revision == revision
    return Counts(
        wanted=replicas,
        created=now.status_replicas,
        ready=now.status_ready,
        updated=now.status_updated if looked else min(now.status_updated, own.staying),
        old=pool.others(revision),
        ready_sound=max(0, now.status_ready - pool.degraded_ready),
        degraded=pool.degraded,
        observed=looked and now.replicas == replicas,
        complete=not pool.leaders or own.leaders >= replicas,
    )


def decide(snapshot: SetSnapshot, leaders: LeaderBackend) -> Decision:
    """The plan for a set: its revision, leaders, shared Service, status, and what a finished rollout leaves behind.

    The rollout itself is the leader workload's: it goes on as groups get ready. Raises DecisionError where the set says
    something that cannot be acted on.
    """
    lws = snapshot.lws
    if lws is None:
        return Plan(note="the set is gone")
    now = leaders.observe(snapshot.workload) if snapshot.workload is not None else None
    idle = setparts.nothing_to_do(snapshot, lws, now, leaders)
    if idle is not None:
        return idle
    mine = revisions.own(lws, snapshot.revisions)
    revision = setparts.revision(lws, now, mine)
    actions: list[AnyAction] = [revision.create] if revision.create else []
    actions.append(_apply(lws, leaders, now, revision))
    actions += setparts.shared_service(snapshot, lws)
    counts = count(now, snapshot.pool, spec.replicas(lws), revision.key)
    written, result = _status(snapshot, lws, now, counts)
    actions += written
    done = counts.available and snapshot.healthy
    if done:
        actions += [setparts.truncate(r) for r in revisions.superseded(mine, revision.key)]
    plan = Plan(tuple(actions), result, _told(counts))
    return hashbudget.pruned(snapshot, lws, now, plan, revision.key if done else "")


def _status(snapshot: SetSnapshot, lws: Obj, now: LeaderState | None, counts: Counts) -> tuple[list[AnyAction], Result]:
    old = lws.get("status")
    if old and (now is None or (not now.observed_generation and old.get("observedGeneration") == generation_of(lws))):
        # The first status comes with the leaders; later ones when the new workload says something of itself.
        return [], Result()
    return setparts.status_written(snapshot, lws, counts.conditions(lws), counts.shown())


def _apply(lws: Obj, leaders: LeaderBackend, now: LeaderState | None, revision: setparts.Revision) -> Apply:
    name, kind = lws["metadata"]["name"], leaders.kind.kind.lower()
    verb, reason, action, done = "update", names.EVENT_FAILED_UPDATE, names.ACTION_UPDATE, None
    if now is None:
        verb, reason, action = "create", names.EVENT_FAILED_CREATE, names.ACTION_CREATE
        note = f"Created leader {kind} {name}"
        done = setparts.event(lws, names.EVENT_GROUPS_PROGRESSING, action, note, related=revision.reference)
    note = f"Failed to {verb} leader {kind} {name}: {{error}}"
    return Apply(
        why=f"{spec.replicas(lws)} leaders of revision {revision.key}",
        kind=leaders.kind,
        obj=leaders.render(templates.hashed_leader_plan(lws, revision.key)),
        manager=names.FIELD_MANAGER,
        on_success=done,
        on_failure=setparts.event(lws, reason, action, note, type="Warning"),
    )


def _told(counts: Counts) -> str:
    if counts.available:
        return "all groups are ready"
    if counts.updating:
        return f"{counts.old} leaders of older revisions are left"
    return f"{counts.ready} of {counts.wanted} groups are ready"
