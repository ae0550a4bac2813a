"""A slice without an old revision: each role has its child, of the size that it is to have. Pure.

Specification: 50 §6, §18.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import children, scale
from lwskit.disaggregated.model import NO_WRITE, Child, SlicePlan, Write
from lwskit.disaggregated.scene import Scene
from lwskit.disaggregated.spec import Role
from lwskit.disaggregated.subroles import division
from lwskit.groups import spec as sets
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import Obj
from lwskit.runtime.plan import AnyAction, OnError, Plan
from lwskit.runtime.request import DONE, Result

_REFUSALS = ("BadRequest", "Forbidden", "InternalError", "Invalid")
"""How an API server and its webhooks say no to one object."""
_Alone = TypeVar("_Alone", bound=AnyAction)


def decide(scene: Scene) -> SlicePlan:
    """What to do in the slice: children are made and scaled at once, whatever is ready.

    One that somebody else has under the name of a child is left alone, as is a divided child whose counts cannot be
    read; the others are seen to, also where an API server refuses one, and the pass fails. Nothing is done about a
    child that is being deleted: its successor is made when the name is free.
    """
    actions: list[AnyAction] = []
    divided: list[AnyAction] = []
    faults: list[str] = []
    waits: list[str] = []
    for role in scene.spec.roles:
        name = children.name_of(scene.spec.name, scene.slice, scene.revision, role.name)
        there = scene.named.get(name)
        if there is None:
            actions.append(_alone(children.create(scene, role)))
        elif not scene.is_own(there):
            faults.append(children.refused(scene, name))
            actions.append(children.conflict(scene, name))
        elif (child := Child.of(there)).is_terminating:
            waits.append(f"LeaderWorkerSet {name} is being deleted")
        else:
            try:
                write = sized(scene, role, child)
            except DecisionError as error:
                faults.append(str(error))
                continue
            # What a divided child needs is done in order: nothing comes after it that does not depend on it.
            if role.subroles:
                divided += write.actions
            else:
                actions += map(_alone, write.actions)
            waits += [write.pending] if write.pending else []
    result = Result(after=names.WAIT_SECONDS, reason="; ".join(waits)) if waits else DONE
    return SlicePlan(scene.slice, Plan((*actions, *divided), result, "; ".join(waits)), "; ".join(faults))


def _alone(action: _Alone) -> _Alone:
    """The same where a refusal keeps no other role from what it needs."""
    return replace(action, errors={**dict.fromkeys(_REFUSALS, OnError.LATER), **action.errors})


def sized(scene: Scene, role: Role, child: Child) -> Write:
    """What brings a child to the size and the replacement policy of its role, after what sub-roles need.

    Raises DecisionError for a divided child whose counts cannot be read; it does not concern the other roles.
    """
    prepared = division.prepare_child(scene, child)
    if prepared.pending:
        return prepared
    write = _sized(scene, role, child)
    return Write((*prepared.actions, *write.actions), write.pending)


def _sized(scene: Scene, role: Role, child: Child) -> Write:
    desired, policy = scene.targets.roles[role.name], role.replacement_policy
    also: Obj = {"groupReplacementPolicy": policy} if sets.replacement_policy(child.obj) != policy else {}
    if role.subroles:
        return _divided(scene, role, child, also)
    return scale.to(
        child,
        desired,
        readiness=scene.readiness_of(child),
        why=f"role {role.name} of slice {scene.slice} is to have {desired} groups",
        initial=desired,
        also=also,
    )


def _divided(scene: Scene, role: Role, child: Child, also: Obj) -> Write:
    """The same for a role with sub-roles, one step in each pass."""
    if also:
        why = f"the replacement policy of role {role.name} has changed"
        found = scale.to(child, child.replicas, readiness=scene.readiness_of(child), why=why, also=also)
        return Write(found.actions, f"LeaderWorkerSet {child.name} gets its replacement policy first")
    wanted = scene.targets.of_subroles(role.name)
    noted = division.keep_initial(child, wanted)
    return noted if noted != NO_WRITE else division.change(scene, child, wanted)
