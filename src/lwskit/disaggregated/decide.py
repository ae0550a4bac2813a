"""One pass over a DisaggregatedSet: from what is seen of it to what is to be done. Pure.

Specification: 50 §5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import (
    children,
    revision,
    rollout,
    scaler_status,
    scaling,
    slices,
    spec,
    status,
    steady,
)
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.disaggregated.model import Child, Pass, SlicePlan, Snapshot
from lwskit.disaggregated.scaling import Scaling
from lwskit.disaggregated.scene import Scene
from lwskit.disaggregated.spec import SetSpec
from lwskit.disaggregated.status import Row
from lwskit.disaggregated.subroles import division, report
from lwskit.groups.model import DecisionError
from lwskit.groups.status import MOMENT, stamp
from lwskit.runtime.objects import Obj, generation_of, is_controlled_by, is_deleting, key_of, labels_of, uid_of
from lwskit.runtime.plan import Create, NeedFresh, OnError, Patch, Plan, UpdateStatus
from lwskit.runtime.request import DONE, Result


class Named(NamedTuple):
    """Objects of which a pass needs to know whether somebody has them, whatever their labels say."""

    children: tuple[str, ...] = ()
    scalers: tuple[str, ...] = ()


def named(ds: Obj | None, labelled: Sequence[Obj]) -> Named:
    """The names that a set's children and scalers are to have.

    `labelled` are the LeaderWorkerSets with the set's name in their label. None for a set that cannot be read or whose
    revision cannot be told: `decide` says why.
    """
    if ds is None:
        return Named()
    try:
        found = spec.read(ds)
    except DecisionError:
        return Named()
    current = revision.resolve(ds, owned(ds, labelled)).revision
    return Named(tuple(children.names_of(found, current)) if current else (), tuple(scaling.names_of(found)))


def owned(ds: Obj, objects: Sequence[Obj]) -> tuple[Child, ...]:
    """The set's own children: controlled by this very set, and of some slice (50 §5, §18)."""
    uid = uid_of(ds)
    return tuple(
        Child.of(obj)
        for obj in objects
        if names.SLICE_LABEL in labels_of(obj) and is_controlled_by(obj, DISAGGREGATED_SET, uid)
    )


def decide(snapshot: Snapshot) -> Pass:
    """What to do about a set. Raises DecisionError for one that cannot be read, or is marked in an unknown way.

    Nothing is done about a set that is being deleted: what it owns is collected with it, and would be made in vain.
    """
    ds = snapshot.ds
    if ds is None or is_deleting(ds):
        return Pass()
    found, own = spec.read(ds), owned(ds, snapshot.children)
    resolved = revision.resolve(ds, own)
    if resolved.error:
        raise DecisionError(resolved.error)
    if resolved.must_mark:
        return Pass(before=Plan((_mark(ds),)), stop=True)
    current = resolved.revision
    staying = [child for child in own if not child.is_terminating and not slices.is_removed(child, found.slices)]
    scaled = scaling.decide(ds, found, staying, snapshot.scalers)
    before = Plan((*slices.removals(ds, own, found.slices), *scaled.actions))
    waits = bool(scaled.targets.unresolved)
    plans = () if waits else _slices(snapshot, ds, found, own, current, scaled)
    rows = status.rows(found, scaled.targets, own, current, snapshot.partitions)
    conditions = _conditions(snapshot, ds, found, own, status.requested(rows, scaled.targets))
    if not snapshot.looked and _had_groups(ds) and _makes(before, *(part.plan for part in plans)):
        mine = (DISAGGREGATED_SET, key_of(ds))
        return Pass(look=NeedFresh((mine,), "what a set had is made again only if the set is there"))
    result = _wait(f"without a count: {_listed(scaled)}") if waits else DONE
    told = _told(snapshot, ds, status.update(ds, rows, conditions), result)
    return Pass(before, False, plans, _scalers(snapshot, found, scaled, rows), told, "; ".join(scaled.faults))


def _mark(ds: Obj) -> Patch:
    """Nothing is made before the mark is there: children without it would be taken for those of an older program."""
    return Patch(
        kind=DISAGGREGATED_SET,
        key=key_of(ds),
        uid=uid_of(ds),
        body={"metadata": {"annotations": {names.REVISION_HASH_VERSION_ANNOTATION: names.HASH_VERSION}}},
        why="how the revisions of the set are hashed is noted before anything is made of them",
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
    )


def _had_groups(ds: Obj) -> bool:
    """Whether the set as it is has had groups: what is missing now has been removed, perhaps with the set itself."""
    told = ds.get("status") or {}
    had = any(row.get("replicas") for row in told.get("roleStatuses") or ())
    return had and told.get("observedGeneration") == generation_of(ds)


def _makes(*plans: Plan) -> bool:
    return any(isinstance(action, Create) for plan in plans for action in plan.actions)


def _slices(
    snapshot: Snapshot, ds: Obj, found: SetSpec, own: Sequence[Child], current: str, scaled: Scaling
) -> tuple[SlicePlan, ...]:
    by_slice: dict[int | None, list[Child]] = {}
    for child in own:
        by_slice.setdefault(child.slice, []).append(child)
    by_name = {obj["metadata"]["name"]: obj for obj in snapshot.children}
    return tuple(
        _slice(
            Scene(
                ds,
                found,
                current,
                number,
                scaled.targets,
                tuple(by_slice.get(number, ())),
                by_name,
                snapshot.readiness,
                snapshot.partitions,
                snapshot.now,
            )
        )
        for number in range(found.slices)
    )


def _slice(scene: Scene) -> SlicePlan:
    try:
        return _rolled(scene) if scene.old else steady.decide(scene)
    except DecisionError as error:
        return SlicePlan(scene.slice, Plan(), str(error))


def _rolled(scene: Scene) -> SlicePlan:
    """A step of the rollout, for which the children of all revisions must be divided as their roles are."""
    prepared = division.prepare(scene)
    if prepared.pending:
        return SlicePlan(scene.slice, Plan(prepared.actions, _wait(prepared.pending), prepared.pending))
    found = rollout.decide(scene)
    return replace(found, plan=replace(found.plan, actions=(*prepared.actions, *found.plan.actions)))


def _scalers(snapshot: Snapshot, found: SetSpec, scaled: Scaling, rows: Sequence[Row]) -> Plan:
    replicas = {row.part: row.replicas for row in rows}
    return Plan(scaler_status.actions(found.name, scaled.held, replicas, _stamp(snapshot)))


def _told(snapshot: Snapshot, ds: Obj, write: UpdateStatus | None, result: Result) -> Plan:
    """The write of the status, now or, where it only counts and the last one is a moment ago, later."""
    if write is None:
        return Plan((), result)
    left = status.pause(ds.get("status") or {}, write.obj["status"]) - snapshot.status_age
    if left <= MOMENT:
        return Plan((write,), result)
    late = Result(after=left, reason="the status was written a moment ago and would only count otherwise")
    return Plan((), late if not result.after or result.after > left else result)


def _conditions(
    snapshot: Snapshot, ds: Obj, found: SetSpec, own: Sequence[Child], request: status.Requested
) -> list[Obj]:
    stored, generation, now = (ds.get("status") or {}).get("conditions") or (), generation_of(ds), _stamp(snapshot)
    conditions = status.merged(stored, request, generation, now)
    known = {role.name: frozenset(sub.name for sub in role.subroles) for role in found.roles if role.subroles}
    assignment = report.assignment(own, snapshot.partitions, known)
    return status.with_assignment(conditions, assignment, generation, now)


def _listed(scaled: Scaling) -> str:
    return ", ".join(str(part) for part in scaled.targets.unresolved)


def _wait(why: str) -> Result:
    return Result(after=names.WAIT_SECONDS, reason=why)


def _stamp(snapshot: Snapshot) -> str:
    if snapshot.now is None:
        raise ValueError("a pass that writes a status is given the time")
    return stamp(snapshot.now)
