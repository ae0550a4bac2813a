"""Sub-roles: what is seen to for the children of a slice before anything else is decided about them. Pure.

Specification: 50 §13.
"""

from __future__ import annotations

from collections.abc import Sequence

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.model import NO_WRITE, Child, Write
from lwskit.disaggregated.scene import Scene
from lwskit.disaggregated.spec import Role
from lwskit.disaggregated.subroles import changing, labels, tally, victims
from lwskit.disaggregated.subroles.assignment import Place, assign
from lwskit.disaggregated.subroles.groups import NO_PARTITION, LabelledGroup, Partition
from lwskit.disaggregated.subroles.tally import Counts
from lwskit.runtime.objects import annotations_of, uid_of
from lwskit.runtime.plan import AnyAction, Emit, Event, OnError, Patch

OWN_ANNOTATIONS = (
    names.SUBROLE_REPLICAS_ANNOTATION,
    names.INITIAL_SUBROLE_REPLICAS_ANNOTATION,
    names.SUBROLE_PLAN_ANNOTATION,
)
"""What a child notes about sub-roles."""


def prepare(scene: Scene) -> Write:
    """What all children of a slice need because of sub-roles, before a step of its rollout is decided.

    It is pending also while groups that are ready have no label yet: for the planner they would serve nobody.
    Raises DecisionError for annotations that cannot be read, which keeps the slice from going on.
    """
    actions: list[AnyAction] = []
    pending = ""
    for child in (*scene.current.values(), *scene.old):
        found = prepare_child(scene, child)
        actions += found.actions
        pending = pending or found.pending or _unlabelled(scene, child, found)
    return Write(tuple(actions), pending)


def _unlabelled(scene: Scene, child: Child, write: Write) -> str:
    """The sentence about groups that are ready, and count for their sub-role only after this write; empty without."""
    partition = scene.partitions.get(child.uid, NO_PARTITION)
    due = {action.uid for action in write.actions if isinstance(action, Patch) and labels.gives(action)}
    found = [g.name for g in partition.alive if g.ready and not due.isdisjoint(map(uid_of, (g.leader, *g.workers)))]
    return f"group {found[0]} is ready, and gets its sub-role first" if found else ""


def prepare_child(scene: Scene, child: Child) -> Write:
    """What one child needs because of sub-roles, before anything else is decided about it.

    That of a role which has sub-roles since recently is divided, that of one which has none any more is no longer; a
    change that was begun is gone on with; groups get their labels. Raises DecisionError for annotations that cannot be
    read.
    """
    role = scene.spec.role(child.role)
    if role is not None and not role.subroles:
        return _united(scene, child)
    issued = tally.issued(child)
    if issued is None:
        return _divided(scene, child, role) if role is not None else NO_WRITE
    if tally.initial(child) is None or child.initial is None:
        return _remembered(scene, child, issued)
    planned = tally.planned(child)
    if planned is not None:
        return changing.finish(scene, child, issued, planned)
    partition = scene.partitions.get(child.uid)
    return Write(tuple(_assigned(child, partition, issued))) if partition is not None else NO_WRITE


def counts(scene: Scene, child: Child) -> Counts:
    """How a child's groups divide over parts, by sub-role, as `tally.of` has it."""
    return tally.of(child, scene.spec.role(child.role))


def initial(scene: Scene, child: Child) -> Counts:
    """What a child's rollout goes by, over the same parts, as `tally.initial_of` has it."""
    return tally.initial_of(child, scene.spec.role(child.role))


def is_divided(scene: Scene, child: Child) -> bool:
    """Whether a child's groups are divided among sub-roles, so that its size is changed with `change` only."""
    role = scene.spec.role(child.role)
    return bool(role.subroles) if role is not None else names.SUBROLE_REPLICAS_ANNOTATION in annotations_of(child.obj)


def change(scene: Scene, child: Child, wanted: Counts) -> Write:
    """Bring a divided child to these counts by sub-role. Raises DecisionError for annotations that cannot be read."""
    planned = tally.planned(child)
    if planned is not None:
        return changing.resume(scene, child, planned, wanted)
    return changing.to(scene, child, wanted)


def keep_initial(child: Child, wanted: Counts) -> Write:
    """Have a divided child of the set's revision note what its rollout goes by.

    Raises DecisionError for annotations that cannot be read.
    """
    found = tally.initial(child)
    if found is not None and dict(found) == dict(wanted) and child.initial == sum(wanted.values()):
        return NO_WRITE
    text = tally.written(wanted)
    why = f"its role is to have {text} groups by sub-role"
    return Write((changing.patch(child, _initial_notes(wanted), why),), f"{child.name} notes new counts first")


def _initial_notes(counts: Counts) -> dict[str, str | None]:
    return {
        names.INITIAL_REPLICAS_ANNOTATION: str(sum(counts.values())),
        names.INITIAL_SUBROLE_REPLICAS_ANNOTATION: tally.written(counts),
    }


# One child ------------------------------------------------------------------------------------------------------------


def _divided(scene: Scene, child: Child, role: Role) -> Write:
    """The first use on a child that is there: its groups are shared out as they are (50 §13)."""
    wanted = scene.targets.of_subroles(role.name)
    counts = tally.fitted(wanted, child.replicas)
    first = wanted
    if child.revision != scene.revision:
        first = tally.fitted(wanted, child.initial if child.initial is not None else child.replicas)
    why = f"its groups are shared out among sub-roles: {tally.written(counts)}"
    notes: dict[str, str | None] = {
        **_initial_notes(first),
        names.SUBROLE_REPLICAS_ANNOTATION: tally.written(counts),
        names.SUBROLE_PLAN_ANNOTATION: None,
    }
    return Write((changing.patch(child, notes, why),), f"the groups of {child.name} are shared out first")


def _remembered(scene: Scene, child: Child, issued: Counts) -> Write:
    """Put back what a child's rollout goes by, which has got lost."""
    if child.revision == scene.revision:
        return keep_initial(child, scene.targets.of_subroles(child.role) or issued)
    counts = issued if child.initial is None else tally.fitted(issued, child.initial)
    note = (
        f"LWS {child.name} has no valid {names.INITIAL_REPLICAS_ANNOTATION} annotation; restoring it from current "
        f"spec.replicas ({child.replicas})"
    )
    event = Event(scene.ref, names.EVENT_INITIAL_REPLICAS_MISSING, names.ACTION_RECOVER, note, "Warning")
    lost = [Emit(event=event, why=note)] if child.initial is None else []
    why = f"it does not say any more what it began with; {tally.written(counts)} is what there is"
    return Write(
        (*lost, changing.patch(child, _initial_notes(counts), why)), f"{child.name} gets back its counts first"
    )


def _united(scene: Scene, child: Child) -> Write:
    """The end of sub-roles: all labels go, then the annotations; nothing is scaled."""
    notes: dict[str, str | None] = {key: None for key in OWN_ANNOTATIONS if key in annotations_of(child.obj)}
    partition = scene.partitions.get(child.uid)
    if not notes:
        return NO_WRITE
    if partition is None:
        return Write(pending=f"the groups of LeaderWorkerSet {child.name} cannot be told yet")
    actions = labels.cleared(partition.alive, f"role {child.role} has no sub-roles any more")
    actions = actions or _unmarked(partition.alive)
    if not actions:
        actions = [changing.patch(child, notes, f"role {child.role} has no sub-roles any more")]
    return Write(tuple(actions), f"LeaderWorkerSet {child.name} ceases to be divided among sub-roles")


def _assigned(child: Child, partition: Partition, issued: Counts) -> Sequence[AnyAction]:
    """The labels of groups while no change is under way.

    Of a pod that has changed since it was seen its watch tells next, and its group counts for nobody until then; the
    other groups do not wait for it.
    """
    entitled = _entitled(partition, child.replicas)
    places = [Place(group.uid, group.label) for group in entitled]
    found = assign(places, issued)
    actions: list[AnyAction] = []
    for group in partition.alive:
        subrole = found.get(group.uid, "")
        why = _because(group, subrole, child)
        actions += labels.due(group, subrole, why, changed=OnError.IGNORE)
    if not actions and partition.ordinals is None and len(partition.alive) <= child.replicas:
        actions += _unmarked(partition.alive)
    return actions


def _entitled(partition: Partition, replicas: int) -> Sequence[LabelledGroup]:
    """The groups that are to have a sub-role; in Hash mode not those that are marked as long as some are to go."""
    found = partition.first(replicas)
    if partition.ordinals is not None or len(found) <= replicas:
        return found
    return [group for group in found if not victims.has_mark(group.leader)]


def _because(group: LabelledGroup, subrole: str, child: Child) -> str:
    if not subrole:
        return f"group {group.name} is one more than LeaderWorkerSet {child.name} is to have"
    return f"group {group.name} is one of sub-role {subrole}"


def _unmarked(groups: Sequence[LabelledGroup]) -> list[AnyAction]:
    """Groups that were to go and stay after all get back the deletion cost that they had."""
    return [
        labels.patched(
            group.leader,
            {"annotations": victims.unmarking(group.leader)},
            f"group {group.name} stays: another one went in its place",
        )
        for group in groups
        if victims.has_mark(group.leader)
    ]
