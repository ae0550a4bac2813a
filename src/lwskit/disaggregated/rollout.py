"""The rollout of one slice: from old revisions to the set's revision, a step of the planner in every pass. Pure.

Specification: 50 §7. Nothing is remembered: each pass sees from the children alone how far the rollout is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import children, cleanup, completion, inputs, scale, selection
from lwskit.disaggregated.completion import Progress
from lwskit.disaggregated.inputs import Inputs
from lwskit.disaggregated.model import NO_WRITE, Child, SlicePlan, Write
from lwskit.disaggregated.planner import Vector
from lwskit.disaggregated.scene import Scene
from lwskit.disaggregated.selection import Choice
from lwskit.disaggregated.subroles import division
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.objects import ref_of
from lwskit.runtime.plan import AnyAction, Create, Emit, Event, Plan
from lwskit.runtime.request import Result


def decide(scene: Scene) -> SlicePlan:
    """What to do next in a slice that has an old revision.

    Old revisions that have given up all their groups are removed in any pass that does not fail, but for the last one,
    which goes when the target is Ready. Raises DecisionError for children and limits that cannot be read.
    """
    if not scene.old:
        return _pass(scene, [], "no old revision is left")
    restored = [action for child in scene.old if child.initial is None for action in _restored(scene, child)]
    if restored:
        return _pass(scene, restored, "old revisions get back what they were meant to have")
    return _missing(scene) or _waiting(scene) or _rolled(scene)


def _pass(scene: Scene, actions: Iterable[AnyAction], note: str, *, is_complete: bool = False) -> SlicePlan:
    """A pass with these actions, then the removal of what is drained; the next one follows in a second."""
    done = (*actions, *cleanup.actions(scene, is_complete=is_complete))
    if is_complete:
        text = f"Completed rolling update to revision {scene.revision}"
        done = (*done, Emit(why=text, event=_event(scene, names.EVENT_ROLLING_UPDATE_COMPLETED, text)))
    return SlicePlan(scene.slice, Plan(done, Result(after=names.WAIT_SECONDS, reason=note), note))


def _event(scene: Scene, reason: str, note: str, *, action: str = names.ACTION_UPDATE, type: str = "Normal") -> Event:
    return Event(scene.ref, reason, action, note, type)


# Before a step --------------------------------------------------------------------------------------------------------


def _restored(scene: Scene, child: Child) -> Sequence[AnyAction]:
    """What gives an old child back the count that it drains from, which somebody has taken away (50 §7.1 item 2)."""
    note = (
        f"LWS {child.name} has no valid {names.INITIAL_REPLICAS_ANNOTATION} annotation; "
        f"restoring it from current spec.replicas ({child.replicas})"
    )
    event = Event(
        scene.ref,
        names.EVENT_INITIAL_REPLICAS_MISSING,
        names.ACTION_RECOVER,
        note,
        "Warning",
        ref_of(child.obj, LEADER_WORKER_SET),
    )
    write = scale.to(
        child,
        child.replicas,
        readiness=scene.readiness_of(child),
        why=f"LeaderWorkerSet {child.name} does not say how many groups it was meant to have",
        initial=child.replicas,
    )
    return [replace(action, on_success=event) for action in write.actions]


def _missing(scene: Scene) -> SlicePlan | None:
    """The pass that makes children of the target, or waits for their names; None if each role has one.

    Nothing is planned on children that have just been made (50 §7.1 items 3 and 4).
    """
    made: list[Create] = []
    told: list[Emit] = []
    faults: list[str] = []
    going: list[str] = []
    current = scene.current
    for role in scene.spec.roles:
        name = children.name_of(scene.spec.name, scene.slice, scene.revision, role.name)
        there = scene.named.get(name)
        if there is None:
            made.append(children.create(scene, role, is_drained=True))
        elif not scene.is_own(there):
            faults.append(children.refused(scene, name))
            told.append(children.conflict(scene, name))
        elif Child.of(there).is_terminating:
            going.append(f"LeaderWorkerSet {name} is being deleted")
        elif role.name not in current:
            faults.append(children.mislabelled(scene, role.name))
            told.append(children.conflict(scene, name, faults[-1]))
    if made and not current:
        note = f"Started rolling update to revision {scene.revision}"
        made[0] = replace(made[0], on_success=_event(scene, names.EVENT_ROLLING_UPDATE_STARTED, note))
    if not (made or faults or going):
        return None
    found = _pass(scene, [*made, *told], "; ".join(going) or "the target gets a LeaderWorkerSet for each role")
    return SlicePlan(found.slice, found.plan, "; ".join(faults))


def _waiting(scene: Scene) -> SlicePlan | None:
    """The pass that changes nothing, because what is seen is not to be decided on; None if it is."""
    waits = [
        scale.unsettled(child)
        for child in scene.current.values()
        if child.has_pending_scale_down and not scene.readiness_of(child).settled
    ]
    waits += [
        f"it is not known how many groups of LeaderWorkerSet {child.name} are Ready"
        for child in (*scene.current.values(), *scene.old)
        if not scene.readiness_of(child).known
    ]
    return _pass(scene, [], "; ".join(waits)) if waits else None


# A step ---------------------------------------------------------------------------------------------------------------


def _rolled(scene: Scene) -> SlicePlan:
    seen = inputs.read(scene)
    kept = seen.target.spec
    match completion.progress(seen):
        case Progress.COMPLETE if beside := [child for child in scene.old if child.replicas]:
            # The planner knows one child of each role and revision; cleanup would keep them for ever.
            text = "; ".join(f"LeaderWorkerSet {c.name} stands beside another of its role and revision" for c in beside)
            return SlicePlan(scene.slice, Plan(note=text), f"{text}: delete what is too much, or scale it to 0")
        case Progress.COMPLETE:
            note = f"the rollout to revision {scene.revision} is complete"
            return _pass(scene, _grown(scene, seen, kept).actions, note, is_complete=True)
        case Progress.UNREADY:
            return _pass(scene, _grown(scene, seen, kept).actions, "; ".join(completion.unready(seen)))
        case Progress.SCALING:
            pass
    if not selection.candidates(seen):
        final = seen.desired if seen.advances else tuple(map(max, kept, seen.desired))
        write = _grown(scene, seen, final)
        return _pass(scene, write.actions, write.pending or "no old revision has groups left")
    choice = selection.choose(seen)
    if choice is None:
        return _blocked(scene, seen)
    if broken := choice.violations(seen):
        text = f"the next step to revision {scene.revision} is not taken, for it is wrong: {'; '.join(broken)}"
        return SlicePlan(scene.slice, Plan(note=text), text)
    return _stepped(scene, seen, choice)


def _blocked(scene: Scene, seen: Inputs) -> SlicePlan:
    """A pass in which nothing may change. The event is the same in every one, so that they are counted as one."""
    note = (
        "Waiting to retire an old revision: no feasible replica change is currently available within the rollout "
        "constraints"
    )
    event = _event(scene, names.EVENT_REVISION_DRAIN_BLOCKED, note, action=names.ACTION_WAIT)
    event = replace(event, regarding=event.regarding._replace(resource_version=""))
    actions = (*_grown(scene, seen, seen.target.spec).actions, Emit(why=note, event=event))
    return _pass(scene, actions, "; ".join(["no step is possible yet", *completion.unready(seen)]))


def _stepped(scene: Scene, seen: Inputs, choice: Choice) -> SlicePlan:
    """First what the old revision gives up, then what the target gets (50 §7.4 item 7)."""
    drained = _drained(scene, seen, choice)
    grown = _grown(scene, seen, seen.target.spec if drained.pending else choice.step.target)
    actions = [*drained.actions, *grown.actions]
    pending = drained.pending or grown.pending
    if not pending and (event := _exception(scene, seen, choice)) is not None:
        actions.append(Emit(why=event.note, event=event))
    return _pass(scene, actions, pending or _told(seen, choice))


def _drained(scene: Scene, seen: Inputs, choice: Choice) -> Write:
    """Has the chosen revision keep what the step leaves it.

    Where that is nothing all roles end in one pass (50 §8.8): groups of divided ones lose their sub-role before.
    """
    revision = choice.revision
    writes: list[Write] = []
    for role in _roles(seen):
        child = revision.children.get(role)
        if child is None:
            continue
        counts = seen.of_role(choice.step.old, role)
        if counts != seen.of_role(revision.counts.spec, role):
            why = f"revision {revision.name} needs {sum(counts.values())} groups of role {role} in slice {scene.slice}"
            writes.append(_written(scene, child, counts, why))
    begun = [write for write in writes if write.pending and not write.resizes]
    return _joined(begun if begun and not any(choice.step.old) else writes)


def _grown(scene: Scene, seen: Inputs, counts: Vector) -> Write:
    """Has the target ask for these counts, and note what it is to have in the end; what shrinks comes first."""
    losing: list[Write] = []
    others: list[Write] = []
    for role in _roles(seen):
        child = seen.children.get(role)
        if child is None:
            continue
        wanted = seen.of_role(counts, role)
        total = sum(wanted.values())
        why = f"role {role} is to have {total} groups of revision {scene.revision} in slice {scene.slice}"
        write = _written(scene, child, wanted, why, seen.of_role(seen.desired, role))
        (losing if total < child.replicas else others).append(write)
    return _joined([*losing, *others])


def _written(
    scene: Scene, child: Child, counts: Mapping[str, int], why: str, initial: Mapping[str, int] | None = None
) -> Write:
    if division.is_divided(scene, child):
        noted = NO_WRITE if initial is None else division.keep_initial(child, _named(scene, child, initial))
        return noted if noted != NO_WRITE else division.change(scene, child, _named(scene, child, counts))
    return scale.to(
        child,
        sum(counts.values()),
        readiness=scene.readiness_of(child),
        why=why,
        initial=None if initial is None else sum(initial.values()),
        event_ref=scene.ref,
    )


def _named(scene: Scene, child: Child, counts: Mapping[str, int]) -> dict[str, int]:
    """The counts without those sub-roles that have no groups and are none of the role's."""
    role = scene.spec.role(child.role)
    own = {subrole.name for subrole in role.subroles} if role is not None else set[str]()
    return {name: count for name, count in counts.items() if count or name in own}


def _joined(writes: Sequence[Write]) -> Write:
    actions = tuple(action for write in writes for action in write.actions)
    return Write(actions, "; ".join(write.pending for write in writes if write.pending))


def _roles(seen: Inputs) -> list[str]:
    """The roles in the planner's order."""
    return list(dict.fromkeys(part.role for part in seen.parts))


# What is told ---------------------------------------------------------------------------------------------------------


def _exception(scene: Scene, seen: Inputs, choice: Choice) -> Event | None:
    """The Warning about a step that exceeds a limit on purpose."""
    if choice.step.bootstrap_surge:
        had, gets = seen.target.spec, choice.step.target
        grown = [text for text, old, new in zip(seen.texts, had, gets, strict=True) if new > old]
        note = (
            f"Created one bootstrap replica for roles [{', '.join(grown)}] without a free maxSurge slot to preserve "
            "revision completeness"
        )
        reason, action = names.EVENT_BOOTSTRAP_SURGE, names.ACTION_BOOTSTRAP
    elif choice.step.availability_fallback:
        note = (
            "Temporarily relaxed availability by at most one replica per role while retiring revision "
            f"{choice.revision.name} to release excess bootstrap capacity for scheduler-unschedulable target roles "
            f"[{', '.join(choice.unschedulable)}]"
        )
        reason, action = names.EVENT_AVAILABILITY_FALLBACK, names.ACTION_RELEASE_CAPACITY
    else:
        return None
    return _event(scene, reason, note, action=action, type="Warning")


def _told(seen: Inputs, choice: Choice) -> str:
    """The step in words."""
    old, new = choice.revision.counts.spec, seen.target.spec
    changes = [
        f"{part}: old {was} → {left}, new {had} → {gets}"
        for part, was, left, had, gets in zip(seen.parts, old, choice.step.old, new, choice.step.target, strict=True)
        if (was, had) != (left, gets)
    ]
    return f"revision {choice.revision.name} gives way: {'; '.join(changes)}"
