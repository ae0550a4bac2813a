"""What the LeaderWorkerSet reconciler decides for a set in Ordinal mode. Pure.

Specification: 20 §2, in its order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lwskit.api import names
from lwskit.groups import budget, counters, ownership, revisions, rollout, setparts, spec, status, templates
from lwskit.groups.identity import parse_ordinal
from lwskit.groups.model import Groups, LeaderState, SetSnapshot
from lwskit.groups.ports import Capability, LeaderBackend
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, controller_of, key_of
from lwskit.runtime.plan import (
    AnyAction,
    Apply,
    Decision,
    Emit,
    Event,
    NeedFresh,
    Plan,
)
from lwskit.runtime.request import Result

REQUIRED = frozenset({Capability.ORDINALS, Capability.PARTITION})
"""What a leader workload must be able to do in Ordinal mode."""

_MOMENT = 0.001
"""Seconds that are not worth another decision."""
_REVISION = "revision"


def check(leaders: LeaderBackend) -> None:
    """Refuse a backend that cannot serve Ordinal mode. Raises ConfigurationError that names what it lacks."""
    setparts.check(leaders, REQUIRED, names.IDENTITY_ORDINAL)


def decide(snapshot: SetSnapshot, leaders: LeaderBackend) -> Decision:
    """The plan for a set: its revision, leaders, shared Service, status, and what a finished rollout leaves behind.

    Raises DecisionError where the set or its leader workload says something that cannot be acted on.
    """
    lws = snapshot.lws
    if lws is None:
        return Plan(note="the set is gone")
    if spec.is_hashed(lws):
        return Plan(note="the set's groups have no ordinals")
    now = leaders.observe(snapshot.workload) if snapshot.workload is not None else None
    idle = setparts.nothing_to_do(snapshot, lws, now, leaders)
    if idle is not None:
        return idle

    mine = revisions.own(lws, snapshot.revisions)
    revision = setparts.revision(lws, now, mine)
    ordinals = leaders.ordinals(snapshot.workload) if snapshot.workload is not None else range(0)
    standing = _standing(snapshot, lws, revision.key) if now is None else {}
    if (unsure := _unsure(snapshot, standing)) is not None:
        return unsure
    groups = snapshot.state.groups(revision.key, alone=spec.size(lws) == 1).arranged(ordinals)
    target = _target(snapshot, lws, now, groups.first(len(ordinals)), revision.changed)
    if any(controller_of(leader) is None for leader in standing.values()):
        outdated = any(ownership.revision_key(leader) != revision.key for leader in standing.values())
        target = rollout.adopted(rollout.Settings.of(lws), 1 + max(standing), outdated=outdated)

    actions: list[AnyAction] = [revision.create] if revision.create else []
    actions += _reclaimed(lws, target, ordinals)
    actions.append(_apply(lws, leaders, now, target, revision, ordinals))
    actions += setparts.shared_service(snapshot, lws)
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
        actions += [setparts.truncate(r) for r in revisions.superseded(mine, revision.key)]
    plan = Plan(tuple(actions), result, target.why)
    return _counted(snapshot, lws, leaders, target, revision.key if done else "", plan)


def _counted(
    snapshot: SetSnapshot, lws: Obj, leaders: LeaderBackend, target: rollout.Target, current: str, plan: Plan
) -> Plan:
    """The plan, and after it the restart counters of groups that are gone for good are dropped (20 §12.5).

    `current` is the key of the only revision that is left, empty while there may be others.
    """
    limit = max(target.replicas, spec.replicas(lws))
    kept = leaders.ordinals(snapshot.workload) if snapshot.workload is not None else range(0)

    def gone(live: Obj) -> Collection[str]:
        return counters.gone_for_good(live, limit, kept, current)

    return budget.uncounted(plan, lws, gone, "the groups are gone")


def _target(snapshot: SetSnapshot, lws: Obj, now: LeaderState | None, asked: Groups, changed: bool) -> rollout.Target:
    settings = rollout.Settings.of(lws)
    try:
        found = rollout.target(now, asked, settings, new_revision=changed)
    except rollout.UnrecordedReplicas:
        assert now is not None
        return rollout.unrecorded(now, settings)
    if not snapshot.healthy:
        return rollout.held(found, now, settings, rollout.BROKEN_WATCH)
    return found if snapshot.known else rollout.held(found, now, settings, rollout.UNKNOWN_LEADERS)


def _standing(snapshot: SetSnapshot, lws: Obj, key: str) -> dict[int, Obj]:
    """The leaders by ordinal that a leader workload which is made now may take over in the middle of a rollout: those
    of another revision and surge. Others are as the set wants them."""
    found: dict[int, Obj] = {}
    for leader in snapshot.left:
        parent, ordinal = parse_ordinal(leader["metadata"]["name"])
        if parent != lws["metadata"]["name"]:
            continue
        if ordinal >= spec.replicas(lws) or ownership.revision_key(leader) != key:
            found[ordinal] = leader
    return found


def _unsure(snapshot: SetSnapshot, standing: Mapping[int, Obj]) -> NeedFresh | None:
    """What to read live to know whether leaders of a workload that is gone are left behind or go after it, None if that
    is known: who deletes it without them takes their owner away before it goes, but the news come in no order."""
    keys = [(POD, key_of(leader)) for leader in standing.values()]
    if any(controller_of(leader) is None for leader in standing.values()) or not snapshot.live.isdisjoint(keys):
        return None
    return (
        NeedFresh(tuple(keys[:1]), "leaders in a rollout are left behind or go with their workload") if keys else None
    )


def _reclaimed(lws: Obj, target: rollout.Target, ordinals: Sequence[int]) -> list[AnyAction]:
    gone, name = _at(ordinals, target.reclaimed), lws["metadata"]["name"]
    if not gone:
        return []
    note = f"deleting surge replicas from {name}-{gone[0]} to {name}-{gone[-1]}"
    if len(gone) == 1:
        note = f"deleting surge replica {name}-{gone[0]}"
    event = setparts.event(lws, names.EVENT_GROUPS_PROGRESSING, names.ACTION_DELETE, note)
    return [Emit(why="fewer groups are needed than there are", event=event)]


def _status(snapshot: SetSnapshot, lws: Obj, created: int, counts: status.Counts) -> tuple[list[AnyAction], Result]:
    wanted = status.requested(counts, (lws.get("status") or {}).get("conditions") or [])
    return setparts.status_written(snapshot, lws, wanted, status.Shown.of(counts, created))


def _at(ordinals: Sequence[int], places: range) -> Sequence[int]:
    """The ordinals at these places of the row of leaders."""
    counted = isinstance(ordinals, range) and not ordinals.start
    return places if counted else [*ordinals][places.start : places.stop]


def _apply(
    lws: Obj,
    leaders: LeaderBackend,
    now: LeaderState | None,
    target: rollout.Target,
    revision: setparts.Revision,
    ordinals: Sequence[int],
) -> Apply:
    name = lws["metadata"]["name"]
    plan = templates.leader_plan(lws, revision.key, partition=target.partition, replicas=target.replicas)
    verb, reason, action = "create", names.EVENT_FAILED_CREATE, names.ACTION_CREATE
    if now is not None:
        verb, reason, action = "update", names.EVENT_FAILED_UPDATE, names.ACTION_UPDATE
    failed = setparts.event(
        lws, reason, action, f"Failed to {verb} leader statefulset {name}: {{error}}", type="Warning"
    )
    return Apply(
        why=f"{target.replicas} leaders, update from group {target.partition} on: {target.why}",
        kind=leaders.kind,
        obj=leaders.render(plan),
        manager=names.FIELD_MANAGER,
        on_success=_progress_event(lws, now, target, revision, ordinals),
        on_failure=failed,
    )


def _progress_event(
    lws: Obj, now: LeaderState | None, target: rollout.Target, revision: setparts.Revision, ordinals: Sequence[int]
) -> Event | None:
    related, create, update = revision.reference, names.ACTION_CREATE, names.ACTION_UPDATE
    if now is None:
        note = f"Created leader statefulset {lws['metadata']['name']}"
        return setparts.event(lws, names.EVENT_GROUPS_PROGRESSING, create, note, related=related)
    if revision.changed or target.partition >= now.partition:
        return None
    first, last = target.partition, now.partition - 1
    if named := _at(ordinals, range(first, last + 1)):
        first, last = named[0], named[-1]
    note = f"Updating replica {first}" if first == last else f"Updating replicas {first} to {last} (inclusive)"
    return setparts.event(lws, names.EVENT_GROUPS_UPDATING, update, note, related=related)
