"""Workers that exist already under the name that a group's must have: its own, or somebody else's. Pure.

Specification: 20 §10.2 step 21, §10.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from lwskit.api import names
from lwskit.groups import ownership
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD, Kind
from lwskit.runtime.objects import Obj, controller_of, is_of, key_of, ref_of, uid_of
from lwskit.runtime.plan import AnyAction, Emit, Event, OnError, Patch
from lwskit.runtime.request import Result


@dataclass(frozen=True, slots=True)
class Standing:
    """What is to be done about workers that exist, when to look again, and what they are."""

    actions: tuple[AnyAction, ...]
    result: Result
    note: str


def of(lws: Obj, leader: Obj, workers: Obj, kind: Kind) -> Standing:
    """What becomes of the workers with the name of a leader's, which are of `kind`.

    The leader's own get the label back that they are found by. Of those that only a person can remove it is told. The
    deletion of workers that are in no cache, or of others than leaders', tells nobody: it is looked for again.
    """
    name, owner = workers["metadata"]["name"], controller_of(workers)
    watched = ownership.set_name(workers) == lws["metadata"]["name"]
    if ownership.owned_by_leader(workers, leader):
        mended = () if watched else (_labelled(lws, workers, kind),)
        return Standing(mended, Result(), f"the group has its workers in {name}")
    leader_name = leader["metadata"]["name"]
    if owner is not None and is_of(owner, POD) and owner["name"] == leader_name:
        note = f"workers {name} of the leader before are still being removed; new ones are made after that"
        return Standing((), _look_again(watched, note), note)
    if owner is None:
        note = f"workers {name} have no owner, so leader pod {leader_name} gets none of its own; delete them"
    else:
        note = (
            f"workers {name} belong to {owner['kind']} {owner['name']}, so leader pod {leader_name} gets none of its "
            "own; delete them"
        )
    event = Event(
        ref_of(lws, LEADER_WORKER_SET),
        names.EVENT_FAILED_CREATE,
        names.ACTION_CREATE,
        note,
        "Warning",
        ref_of(leader, POD),
    )
    told = Emit(why="a group that waits for a person has to say so", event=event)
    return Standing((told,), _look_again(watched and owner is None, note), note)


def _look_again(watched: bool, reason: str) -> Result:
    return Result() if watched else Result(requeue=True, reason=reason)


def _labelled(lws: Obj, workers: Obj, kind: Kind) -> Patch:
    name = lws["metadata"]["name"]
    return Patch(
        why=f"workers {workers['metadata']['name']} have lost label {names.NAME_LABEL}, by which they are found",
        kind=kind,
        key=key_of(workers),
        uid=uid_of(workers),
        body={"metadata": {"labels": {names.NAME_LABEL: name}}},
        errors={"NotFound": OnError.REQUEUE, "Conflict": OnError.REQUEUE},
    )
