"""Groups in Hash mode that other clients, or a manager that was not there, left in no state of ours. Pure.

What can be put right is; what a person has to do is told of in an event on the set. Specification: 30 §5, §6, §9.
"""

from __future__ import annotations

from datetime import datetime

from lwskit.api import names
from lwskit.groups import gates, hashbudget, ownership, readiness
from lwskit.groups.identity import has_hash_identity, is_leader
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError, MemberSnapshot
from lwskit.runtime.kinds import POD, Kind
from lwskit.runtime.objects import (
    Obj,
    ObjectRef,
    controller_of,
    is_deleting,
    is_of,
    key_of,
    labels_of,
    ref_of,
    uid_of,
)
from lwskit.runtime.plan import AnyAction, Decision, Emit, Event, NeedFresh, OnError, Patch, Plan
from lwskit.runtime.request import Result

_GONE = "a leader is gone; its workload makes the next one"


def unadmitted(lws: Obj, leader: Obj) -> Plan | None:
    """What is told of a leader that has no key, because admission did not see it; None for any other leader.

    Nothing can be made for it, since names are made of the key and no pod's host name can be changed.
    """
    if not has_hash_identity(leader) or labels_of(leader).keys() & {names.GROUP_KEY_LABEL, names.GROUP_INDEX_LABEL}:
        return None
    name = leader["metadata"]["name"]
    note = (
        f"leader pod {name} has no group key, for admission did not run when it was made; delete it, and its "
        "ReplicaSet makes another"
    )
    return Plan((_told(lws, note, ref_of(leader, POD)),), note=note)


def ungated(snapshot: MemberSnapshot, lws: Obj, leader: Obj) -> Plan | None:
    """What is left to do for a leader whose gate is gone and that still has the deletion cost which came with it.

    Somebody else has taken the gate away, or restart counts could not be read when it was let in: the leader takes over
    its count, and the cost goes. None for any other leader, and as long as the counts cannot be read.
    """
    if not has_hash_identity(leader) or not gates.is_unclaimed(leader):
        return None
    claimed = hashbudget.claim(snapshot, lws, leader)
    if claimed is None:
        return None
    why = f"leader pod {leader['metadata']['name']} is not at its gate any more"
    patch = Patch(
        why=f"{why}, so it is none of the first to go",
        kind=POD,
        key=key_of(leader),
        uid=uid_of(leader),
        body={"metadata": {"annotations": {names.POD_DELETION_COST_ANNOTATION: None}}},
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
    )
    return Plan((*claimed, patch), note=why)


def taken(lws: Obj, leader: Obj, found: Obj, kind: Kind, now: datetime, actions: tuple[AnyAction, ...] = ()) -> Plan:
    """The plan for a leader whose workers' name is taken by workers that are not its own; `actions` come first.

    They may have lost their owner, or two keys begin alike. The group is not ready with them (30 §9). Those that go by
    themselves are told to nobody.
    """
    name, owner = leader["metadata"]["name"], controller_of(found)
    problem = f"worker {kind.kind.lower()} {key_of(found)} is not controlled by leader pod {name}"
    goes = is_deleting(found)
    if owner is None:
        problem += ": it has no owner; delete it, and the group gets one of its own"
    elif is_of(owner, POD) and owner["name"] == name:
        problem, goes = f"{problem}: it is of the leader before, and goes with that", True
    else:
        problem += f" but by {owner['kind']} {owner['name']}; delete pod {name} to give its group another name"
    told = () if goes else (_told(lws, problem, ref_of(leader, POD)),)
    unready = readiness.written(leader, False, now)
    return Plan((*actions, *told, *unready), Result(error=DecisionError(problem)), problem)


def left_behind(snapshot: MemberSnapshot, lws: Obj, worker: Obj, kind: Kind) -> Plan | None:
    """What is told of a worker that nobody removes although its leader is gone, as `--cascade=orphan` leaves it.

    Another leader waits for its place. Of the workers of a group one tells; None for all others.
    """
    if snapshot.deleted or is_deleting(worker) or not has_hash_identity(worker):
        return None
    if snapshot.leader is not None:
        return None
    owner, reference = snapshot.owner, controller_of(worker)
    if reference is None:
        what, related = f"worker pod {worker['metadata']['name']} has", ref_of(worker, POD)
    elif owner is not None and uid_of(owner) == reference["uid"] and controller_of(owner) is None:
        if is_deleting(owner) or worker["metadata"]["name"] != _first(snapshot):
            return None
        what, related = f"worker {kind.kind.lower()} {owner['metadata']['name']} has", ref_of(owner, kind)
    else:
        return None
    return _left(lws, what, ownership.leader_name(worker), related)


def vanished(snapshot: MemberSnapshot, leader: Obj, kind: Kind) -> Decision:
    """What is decided about a leader that is gone: nothing, unless it leaves workers that nobody removes.

    A leader that was never seen going may only have lost the label that it is known by. `leader` is as it was last
    seen; it is asked for live then.
    """
    lws, workers, key = snapshot.lws, snapshot.workers, key_of(leader)
    if not has_hash_identity(leader) or lws is None or is_deleting(lws) or workers is None or is_deleting(workers):
        return Plan(note=_GONE)
    if not _first(snapshot):
        return Plan(note=_GONE)
    if controller_of(workers) is None:
        what = f"worker {kind.kind.lower()} {workers['metadata']['name']} has"
        return _left(lws, what, key.name, ref_of(workers, kind))
    if is_deleting(leader) or not ownership.owned_by_leader(workers, leader):
        return Plan(note=_GONE)
    if (POD, key) not in snapshot.live:
        return NeedFresh(((POD, key),), "a leader that was not seen going may only have lost its label")
    found = snapshot.leader
    if found is None or uid_of(found) != uid_of(leader) or is_deleting(found):
        return Plan(note=_GONE)
    note = (
        f"leader pod {key.name} has lost label {names.NAME_LABEL}: another leader is made for it, and waits until "
        f"its workers are gone; delete pod {key.name} once you are done with it"
    )
    return Plan((_told(lws, note, ref_of(leader, POD)),), note=note)


def _first(snapshot: MemberSnapshot) -> str:
    """The name of the first worker of the group that is not going, empty if there is none."""
    there = (p for p in snapshot.group_pods if not is_leader(p) and not is_deleting(p))
    return min((p["metadata"]["name"] for p in there), default="")


def _left(lws: Obj, what: str, leader: str, related: ObjectRef) -> Plan:
    note = f"{what} no owner, and leader pod {leader} is gone, whose group keeps its place as long; delete it"
    return Plan((_told(lws, note, related),), note=note)


def _told(lws: Obj, note: str, related: ObjectRef) -> Emit:
    regarding = ref_of(lws, LEADER_WORKER_SET)
    event = Event(regarding, names.EVENT_FAILED_CREATE, names.ACTION_CREATE, note, "Warning", related)
    return Emit(why="a group that waits for a person has to say so", event=event)
