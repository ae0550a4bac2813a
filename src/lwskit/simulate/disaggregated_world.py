"""A DisaggregatedSet and its children in a simulation: all is done at once, and readiness is played. Pure.

It stands for the API server, the controllers of the children and the kubelets: what is asked for is there at once, what
is given up is gone at once, and only readiness takes its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated.decide import decide, owned
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.disaggregated.model import Child, Pass, Readiness, Ready, Snapshot
from lwskit.disaggregated.sight import is_divided
from lwskit.disaggregated.subroles import serving
from lwskit.disaggregated.subroles.groups import LabelledGroup, Partition, label_of
from lwskit.groups import spec
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.status import stamp
from lwskit.runtime.kinds import POD, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, annotations_of, generation_of, is_deleting, labels_of, uid_of
from lwskit.runtime.plan import AnyAction, Create, Delete, Emit, Event, OnError, Patch, UpdateStatus
from lwskit.runtime.ranking import ranked


@dataclass(slots=True)
class Group:
    """One group of a child. `number` says in which order the simulation has met it."""

    number: int
    ordinal: int
    leader: Obj
    ready: bool = False
    stuck: bool = False
    """It does not become ready: its pods are in trouble that does not pass by itself, or nobody waits for it."""
    pods: int = 1


class Write(NamedTuple):
    """A child is made with so many groups, or asked for so many; None says that it is deleted.

    `subroles` says how they are divided among sub-roles, as the child's annotation does; empty if they are not.
    """

    child: str
    replicas: int | None
    subroles: str = ""

    @classmethod
    def of(cls, child: Obj) -> Write:
        """What a child asks for as it is now."""
        noted = annotations_of(child).get(names.SUBROLE_REPLICAS_ANNOTATION, "")
        return cls(child["metadata"]["name"], spec.replicas(child), noted)


class Refusal(NamedTuple):
    """Why an API server refuses a child: the child's field, empty where it is of none, and what is wrong with it."""

    path: str
    message: str


Judge = Callable[[Obj, Obj | None], Sequence[Refusal]]
"""From a child that is made, or changed from what is given second, to why an API server with its webhooks refuses it;
nothing if it does not."""


class Refused(NamedTuple):
    """A child that is not made, or not changed, as the manager wants."""

    child: Child
    why: tuple[Refusal, ...]
    is_new: bool


@dataclass(slots=True)
class World:
    """What is there now. `groups` are by the UID of their child, in the order of their ordinals or of their making."""

    ds: Obj
    now: datetime
    judge: Judge
    children: dict[str, Obj] = field(default_factory=dict)
    others: dict[str, Obj] = field(default_factory=dict)
    """LeaderWorkerSets under names of children that somebody else has."""
    scalers: dict[str, Obj] = field(default_factory=dict)
    groups: dict[str, list[Group]] = field(default_factory=dict)
    events: dict[int | None, list[Event]] = field(default_factory=dict)
    """What the last pass has recorded, by slice; under None what it has of the set as a whole."""
    refused: list[Refused] = field(default_factory=list)
    """The children that an API server has refused in the last pass."""
    labelled: dict[int, int] = field(default_factory=dict)
    """Of how many groups the last pass has changed the sub-role, by slice."""
    writes: list[Write] = field(default_factory=list)
    """What all passes have asked of children, in their order."""
    made: int = 0
    """How many objects and groups the simulation has made."""

    @property
    def own(self) -> tuple[Child, ...]:
        """The children, read."""
        return owned(self.ds, [*self.children.values()])

    # Time and readiness -----------------------------------------------------------------------------------------------

    def pending(self) -> list[Group]:
        """The groups that may become ready, those first that came first."""
        found = [g for groups in self.groups.values() for g in groups if not (g.ready or g.stuck)]
        return sorted(found, key=lambda group: group.number)

    def make_ready(self, chosen: Iterable[Group]) -> None:
        """These groups are ready from now on."""
        for group in chosen:
            group.ready = True
            group.leader = {**group.leader, "status": _status(ready=True)}
        self.observe()

    # Passes -----------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """What the manager would decide on now."""
        readiness: dict[str, Readiness] = {}
        partitions: dict[str, Partition] = {}
        for obj in self.children.values():
            partition = self._partition(obj)
            if is_divided(obj):
                partitions[uid_of(obj)] = partition
            readiness[uid_of(obj)] = self._readiness(obj, partition)
        there = {**self.others, **self.children}
        children = tuple(there[name] for name in sorted(there))
        scalers = tuple(self.scalers[name] for name in sorted(self.scalers))
        return Snapshot(self.ds, children, scalers, readiness, partitions, self.now)

    def step(self) -> tuple[Pass, bool]:
        """One pass of the manager, carried out; and whether it changed anything but statuses. Raises DecisionError."""
        self.events, self.refused, self.labelled = {}, [], {}
        found = decide(self.snapshot())
        changed = self._carry_out(found.before.actions)
        if not found.stop:
            for one in found.slices:
                changed |= self._carry_out(one.plan.actions, one.slice)
            for plan in (found.scalers, found.status):
                changed |= self._carry_out(plan.actions)
        self._settle()
        self.now += timedelta(seconds=names.WAIT_SECONDS)
        return found, changed

    def _carry_out(self, actions: Iterable[AnyAction], index: int | None = None) -> bool:
        """Do these in order, up to one that is refused: of the others it is only asked whether they would be too.

        Whether anything has changed.
        """
        changed = stopped = False
        for action in actions:
            refused = self._judged(action)
            if refused is not None:
                self.refused.append(refused)
                stopped |= action.errors.get("Invalid") is not OnError.LATER
            if stopped or refused is not None:
                continue
            changed |= self._act(action)
            if index is not None and _labels(action):
                self.labelled[index] = self.labelled.get(index, 0) + 1
            for event in (action.event if isinstance(action, Emit) else None, action.on_success):
                if event is not None:
                    self.events.setdefault(index, []).append(event)
        return changed

    def _judged(self, action: AnyAction) -> Refused | None:
        """The child that an action would make or change, if that is refused."""
        match action:
            case Create(kind=kind, obj=obj) if kind == LEADER_WORKER_SET:
                before, after = None, obj
            case Patch(kind=kind, key=key, body=body) if kind == LEADER_WORKER_SET:
                before = self.children[key.name]
                after = merged(before, body)
            case _:
                return None
        why = tuple(self.judge(after, before))
        return Refused(Child.of(after), why, before is None) if why else None

    def _act(self, action: AnyAction) -> bool:
        match action:
            case Create(kind=kind, obj=obj):
                self._store(kind)[obj["metadata"]["name"]] = self._born(obj)
                self._note(kind, obj["metadata"]["name"])
            case Patch(kind=kind, subresource="status"):
                self._patch(action)
                return False
            case Patch():
                self._patch(action)
            case UpdateStatus(kind=kind, obj=obj) if kind == DISAGGREGATED_SET:
                self.ds = {**self.ds, "status": obj["status"]}
                return False
            case Delete(kind=kind, key=key, uid=uid) if kind == POD:
                for groups in self.groups.values():
                    groups[:] = [g for g in groups if uid_of(g.leader) != uid]
            case Delete(kind=kind, key=key):
                self._store(kind).pop(key.name, None)
                self._note(kind, key.name)
            case _:
                return False
        return True

    def _store(self, kind: Kind) -> dict[str, Obj]:
        return {LEADER_WORKER_SET: self.children, ROLE_SCALER: self.scalers}[kind]

    def _patch(self, action: Patch) -> None:
        if action.kind == DISAGGREGATED_SET:
            self.ds = self._patched(self.ds, action.body)
        elif action.kind == POD:
            for groups in self.groups.values():
                for group in groups:
                    if uid_of(group.leader) == action.uid:
                        group.leader = self._patched(group.leader, action.body)
        else:
            store, name = self._store(action.kind), action.key.name
            before, store[name] = store[name], self._patched(store[name], action.body)
            if action.kind == LEADER_WORKER_SET and Write.of(store[name]) != Write.of(before):
                self._note(action.kind, name)

    def _note(self, kind: Kind, name: str) -> None:
        if kind == LEADER_WORKER_SET:
            child = self.children.get(name)
            self.writes.append(Write.of(child) if child is not None else Write(name, None))

    def _patched(self, obj: Obj, body: Mapping[str, Any]) -> Obj:
        new = merged(obj, body)
        if new["spec"] != obj["spec"]:
            new["metadata"] = {**new["metadata"], "generation": generation_of(obj) + 1}
        self.made += 1
        new["metadata"] = {**new["metadata"], "resourceVersion": f"simulated-{self.made}"}
        return new

    def _born(self, obj: Obj) -> Obj:
        self.made += 1
        meta = {
            **obj["metadata"],
            "uid": f"simulated-{self.made}",
            "resourceVersion": f"simulated-{self.made}",
            "generation": 1,
            "creationTimestamp": stamp(self.now),
        }
        return {**obj, "metadata": meta}

    # What the others make of it ---------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Children that are being deleted are gone, and each has the groups that it asks for."""
        for name, obj in list(self.children.items()):
            if is_deleting(obj):
                del self.children[name]
        there = {uid_of(obj) for obj in self.children.values()}
        for uid in [uid for uid in self.groups if uid not in there]:
            del self.groups[uid]
        for obj in self.children.values():
            self._resize(obj)
        self.observe()

    def _resize(self, obj: Obj) -> None:
        groups, wanted = self.groups.setdefault(uid_of(obj), []), spec.replicas(obj)
        if len(groups) > wanted and spec.is_hashed(obj):
            leaders = [group.leader for group in groups]
            gone = {uid_of(found.pod) for found in ranked(leaders, leaders, self.now)[: len(groups) - wanted]}
            groups[:] = [group for group in groups if uid_of(group.leader) not in gone]
        del groups[wanted:]
        taken = {group.ordinal for group in groups}
        for ordinal in (o for o in range(wanted) if o not in taken):
            if len(groups) < wanted:
                groups.append(self._made(obj, ordinal))
        groups.sort(key=lambda group: group.ordinal)

    def _made(self, obj: Obj, ordinal: int) -> Group:
        self.made += 1
        hashed = spec.is_hashed(obj)
        name = f"{obj['metadata']['name']}-{f'new-{self.made}' if hashed else ordinal}"
        notes = {base.GROUP_IDENTITY_ANNOTATION: base.IDENTITY_HASH} if hashed else {}
        owner = {"apiVersion": STATEFUL_SET.api_version, "kind": STATEFUL_SET.kind, "name": "w", "uid": "w"}
        meta = {
            "name": name,
            "namespace": obj["metadata"]["namespace"],
            "uid": f"simulated-{self.made}",
            "resourceVersion": f"simulated-{self.made}",
            "creationTimestamp": stamp(self.now),
            "labels": {**labels_of(obj), base.WORKER_INDEX_LABEL: base.LEADER_INDEX},
            "annotations": notes,
            "ownerReferences": [{**owner, "controller": True}],
        }
        leader = {"metadata": meta, "spec": {"nodeName": "simulated"}, "status": _status(ready=False)}
        return Group(self.made, ordinal, leader, pods=spec.size(obj))

    def observe(self) -> None:
        """The children's statuses say what is there."""
        for name, obj in self.children.items():
            groups = self.groups[uid_of(obj)]
            counts = {"replicas": len(groups), "readyReplicas": sum(g.ready for g in groups)}
            status = {"observedGeneration": generation_of(obj), **counts, "updatedReplicas": len(groups)}
            self.children[name] = {**obj, "status": {**(obj.get("status") or {}), **status}}

    def _partition(self, obj: Obj) -> Partition:
        hashed, groups = spec.is_hashed(obj), self.groups[uid_of(obj)]
        ordered = sorted(groups, key=_by_name) if hashed else groups
        found = tuple(LabelledGroup(-1 if hashed else g.ordinal, g.leader, ready=g.ready) for g in ordered)
        return Partition(found, None if hashed else range(spec.replicas(obj)))

    def _readiness(self, obj: Obj, partition: Partition) -> Readiness:
        """All is settled and known: what was asked for has been seen to."""
        groups, wanted = self.groups[uid_of(obj)], spec.replicas(obj)
        ready = sum(group.ready for group in groups)
        parts = {
            name: Ready(found.ready, min(found.sound, wanted)) for name, found in serving.counted(partition).items()
        }
        return Readiness(Ready(ready, min(ready, wanted)), parts=parts)


def _labels(action: AnyAction) -> bool:
    """Whether an action gives a group its sub-role, another one, or none: that of its leader counts."""
    if not isinstance(action, Patch) or action.kind != POD:
        return False
    return names.SUBROLE_LABEL in (action.body["metadata"].get("labels") or {})


def _by_name(group: Group) -> tuple[bool, str, int]:
    """Where a group without an ordinal stands in its child: by its leader's name; one to come does not have it yet."""
    is_new = group.number >= 0
    return is_new, "" if is_new else group.leader["metadata"]["name"], group.number


def subrole_of(group: Group) -> str:
    """The sub-role that a group is assigned to, empty without one."""
    return label_of(group.leader)


def merged(old: Any, new: Any) -> Any:
    """A JSON merge patch applied."""
    if not isinstance(new, Mapping):
        return new
    found = dict(old) if isinstance(old, Mapping) else {}
    for key, value in new.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def _status(*, ready: bool) -> Obj:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {"phase": "Running", "conditions": [condition]}
