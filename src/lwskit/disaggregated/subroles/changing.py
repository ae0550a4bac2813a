"""The write of new sub-role counts to a child: at once where all grow, else over a stored plan. Pure.

Specification: 50 §13. Counts, `spec.replicas` and what else belongs to them change together in one patch that fails if
the child is not as it was seen; after it nothing more is decided in the same pass.
"""

from __future__ import annotations

from collections.abc import Mapping

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated import scale
from lwskit.disaggregated.model import NO_WRITE, Child, Write
from lwskit.disaggregated.scene import Scene
from lwskit.disaggregated.subroles import labels, moving, tally, victims
from lwskit.disaggregated.subroles.groups import Partition
from lwskit.disaggregated.subroles.moving import Moves
from lwskit.disaggregated.subroles.tally import Counts
from lwskit.groups.model import DecisionError
from lwskit.runtime.plan import AnyAction, Patch

_Notes = Mapping[str, str | None]


def to(scene: Scene, child: Child, wanted: Counts) -> Write:
    """Bring a child, whose present counts are issued and which has no plan, to these counts.

    A sub-role that is not in `wanted` is to have none. Raises DecisionError for annotations that cannot be read, and
    for more groups than a child may have.
    """
    counts = tally.issued(child)
    if counts is None:
        return Write(pending=f"the groups of LeaderWorkerSet {child.name} are not divided among sub-roles yet")
    if dict(counts) == dict(wanted):
        return NO_WRITE
    if (total := sum(wanted.values())) > base.MAX_REPLICAS:
        # A plan of it would be stored, never be done, and be in the way of every later one.
        raise DecisionError(
            f"the sub-roles of LeaderWorkerSet {child.name} ask for {total} groups, and it may have "
            f"{base.MAX_REPLICAS} at most; ask for fewer in role {child.role}"
        )
    if all(wanted.get(name, 0) >= count for name, count in counts.items()):
        return _issue(scene, child, wanted)
    if _is_step(scene):
        partition = scene.partitions.get(child.uid)
        if partition is None or _blocked(_moves(scene, child, partition, wanted), partition, counts, wanted):
            # Nothing is promised that could not be kept: the rest of the step does not wait for it.
            return NO_WRITE
    text = tally.written(wanted)
    why = f"its sub-roles are to change from {tally.written(counts)} to {text}"
    return Write(
        (patch(child, {names.SUBROLE_PLAN_ANNOTATION: text}, why),),
        f"the groups of LeaderWorkerSet {child.name} are to change their sub-roles first",
    )


def finish(scene: Scene, child: Child, counts: Counts, wanted: Counts) -> Write:
    """The next step of a stored plan, from the issued counts to those wanted."""
    partition = scene.partitions.get(child.uid)
    if partition is None or not scene.readiness_of(child).known:
        return Write(pending=f"the groups of LeaderWorkerSet {child.name} cannot be told yet")
    if dict(counts) == dict(wanted):
        return _drop(child, "it has the counts that were planned")
    if sum(wanted.values()) > base.MAX_REPLICAS:
        return _drop(child, f"no LeaderWorkerSet may have {sum(wanted.values())} groups")
    moves = _moves(scene, child, partition, wanted)
    blocked = _blocked(moves, partition, counts, wanted)
    if blocked and _is_step(scene):
        return _drop(child, f"it cannot be kept any more: {moves.hole}")
    labels = _labels(child, moves, is_held=bool(blocked))
    if labels or blocked:
        return Write(tuple(labels), blocked or f"the groups of LeaderWorkerSet {child.name} change their sub-roles")
    # What ends does so in one pass with the other roles of its revision: the step of the rollout issues it.
    return NO_WRITE if _ends(scene, child, wanted) else _issue(scene, child, wanted)


def resume(scene: Scene, child: Child, planned: Counts, wanted: Counts) -> Write:
    """What a step does about a child whose stored plan is not gone on with before it: it is done, or given up."""
    if not _ends(scene, child, planned):
        return Write(pending=f"the groups of LeaderWorkerSet {child.name} still change their sub-roles")
    return _drop(child, "some of its groups stay") if any(wanted.values()) else _issue(scene, child, wanted)


def _ends(scene: Scene, child: Child, planned: Counts) -> bool:
    """Whether a plan ends a child of an old revision: no group stays."""
    return not any(planned.values()) and any(one.uid == child.uid for one in scene.old)


def _is_step(scene: Scene) -> bool:
    """Whether a change is a step of a rollout: then the planner vouches for it, and decides anew where it fails."""
    return bool(scene.old)


def _moves(scene: Scene, child: Child, partition: Partition, wanted: Counts) -> Moves:
    return moving.find(partition, child.replicas, wanted, scene.now, unready_stay=_is_step(scene))


def _blocked(moves: Moves, partition: Partition, counts: Counts, wanted: Counts) -> str:
    """Why groups that would have to change their sub-role must not do so yet, empty if none has to or all may."""
    if not moves.moving or not moves.hole:
        return ""
    if moves.unready_stay and moving.is_harmless(moves, partition, counts, wanted):
        return ""
    return f"groups change their sub-role only while all that stay are ready: {moves.hole}"


def _labels(child: Child, moves: Moves, *, is_held: bool) -> list[AnyAction]:
    """What to write on pods: new sub-roles before any is taken away, so that none has too few in between."""
    found: list[AnyAction] = []
    held = {group.uid for group in moves.moving} if is_held else set[str]()
    for group in moves.staying:
        if group.uid not in held:
            subrole = moves.assigned[group.uid]
            found += labels.due(group, subrole, f"group {group.name} is to be one of sub-role {subrole}")
    if is_held or found:
        return found
    why = f"its sub-role has one group too many, and LeaderWorkerSet {child.name} is to be scaled down"
    marked = [
        labels.patched(group.leader, {"annotations": victims.marking(group.leader)}, why) for group in moves.marks
    ]
    return [*marked] or labels.cleared(moves.going, f"it goes when LeaderWorkerSet {child.name} is scaled down")


def _drop(child: Child, why: str) -> Write:
    action = patch(child, {names.SUBROLE_PLAN_ANNOTATION: None}, f"the planned change of sub-roles is over: {why}")
    return Write((action,), f"the planned change of LeaderWorkerSet {child.name} is over")


def _issue(scene: Scene, child: Child, counts: Counts) -> Write:
    """The patch that makes these the issued counts, and their sum the replicas; with it a stored plan is done."""
    found = scale.to(
        child,
        sum(counts.values()),
        readiness=scene.readiness_of(child),
        why=f"its sub-roles are to have {tally.written(counts)}",
        event_ref=scene.ref if scene.old else None,
        notes={
            names.SUBROLE_REPLICAS_ANNOTATION: tally.written(counts),
            names.SUBROLE_PLAN_ANNOTATION: None,
        },
    )
    return Write(found.actions, found.pending or f"LeaderWorkerSet {child.name} has just been given new counts")


def patch(child: Child, notes: _Notes, why: str) -> Patch:
    """A patch of a child's annotations that fails if the child is not as it was seen."""
    return scale.guarded(child, {"metadata": {"annotations": dict(notes)}}, f"LeaderWorkerSet {child.name}: {why}")
