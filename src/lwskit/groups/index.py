"""The state of every set, kept up to date as pods and workloads change. Pure.

Specification: architecture, part 4. What the index holds is a function of the objects it was told of, not of the order
in which they came: a pod may be seen before the workload that made it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lwskit.api import names
from lwskit.groups import ownership
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import (
    HAS_LEADER,
    HAS_WORKERS,
    IS_EXHAUSTED,
    LEADER_READY,
    OVERFLOW,
    WORKERS_READY,
    Group,
    GroupId,
    SetState,
    Views,
)
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.runtime.kinds import POD, Kind
from lwskit.runtime.objects import Obj, annotations_of, controller_of, is_of, is_true, uid_of

_NO_PAIR = ("", "")
_MAX_ORDINAL = 2 * names.MAX_REPLICAS


@dataclass(frozen=True, slots=True)
class _Leader:
    """What is remembered of a leader pod. `ordinal` is -1 where its labels and name do not agree on one."""

    id: GroupId
    ordinal: int
    name: str
    workers_name: str
    flags: int
    revision: str


@dataclass(frozen=True, slots=True)
class _Workers:
    """What is remembered of a workload of workers."""

    name: str
    leader_uid: str
    flags: int
    revision: str


@dataclass(slots=True)
class _Slots:
    """The groups under one leader workload in ordinal order: a byte of flags and a byte for the revisions of each."""

    flags: bytearray = field(default_factory=bytearray)
    revisions: bytearray = field(default_factory=bytearray)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    uses: dict[int, int] = field(default_factory=dict)
    overflow: dict[int, tuple[str, str]] = field(default_factory=dict)
    strays: dict[str, str] = field(default_factory=dict)
    views: Views = field(default_factory=Views)

    def put(self, ordinal: int, flags: int, pair: tuple[str, str]) -> None:
        """Set one group; no flags removes it."""
        if ordinal >= len(self.flags):
            if not flags:
                return
            more = bytes(ordinal + 1 - len(self.flags))
            self.flags += more
            self.revisions += more
        self._release(ordinal)
        self.flags[ordinal] = flags
        self.revisions[ordinal] = self._number(ordinal, pair) if flags else 0
        if not flags and ordinal == len(self.flags) - 1:
            end = len(self.flags.rstrip(b"\0"))
            del self.flags[end:], self.revisions[end:]
        self.views.put(ordinal, flags, pair, len(self.flags))

    def _number(self, ordinal: int, pair: tuple[str, str]) -> int:
        """The number of a pair of revision keys, a new one if need be. 0 stands for a group without any."""
        number = self.numbers.get(pair)
        if number is None:
            number = next((n for n in range(1, OVERFLOW) if n not in self.uses), OVERFLOW)
            if number == OVERFLOW:
                self.overflow[ordinal] = pair
                return OVERFLOW
            self.numbers[pair] = number
        self.uses[number] = self.uses.get(number, 0) + 1
        return number

    def _release(self, ordinal: int) -> None:
        number = self.revisions[ordinal]
        if number == OVERFLOW:
            del self.overflow[ordinal]
        elif number:
            self.uses[number] -= 1
            if not self.uses[number]:
                del self.uses[number]
                self.numbers = {pair: n for pair, n in self.numbers.items() if n != number}

    def state(self) -> SetState:
        """A copy for a decision."""
        return SetState(
            bytes(self.flags),
            bytes(self.revisions),
            {number: pair for pair, number in self.numbers.items()},
            dict(self.overflow),
            tuple(sorted(self.strays.values())),
            self.views,
            self.views.version,
        )

    def __bool__(self) -> bool:
        return bool(self.flags or self.strays)


class GroupIndex:
    """A view on the informers of pods and workloads that answers for whole sets at once.

    Sets are found by their UID, groups by their leader's. Its methods are called inside the informers' store step, so
    a decision never sees a state older than the event it is made for.
    """

    def __init__(self, leaders: LeaderBackend, workers: WorkerBackend) -> None:
        self._leader_backend, self._worker_backend = leaders, workers
        self._leaders: dict[str, _Leader] = {}
        self._workers: dict[str, _Workers] = {}
        self._workers_of: dict[str, set[str]] = {}
        self._owners: dict[str, str] = {}
        self._sets: dict[str, str] = {}
        self._workloads: dict[str, str] = {}
        self._slots: dict[str, _Slots] = {}

    def apply(self, kind: Kind, old: Obj | None, new: Obj | None) -> None:
        """Take in one change of an object of `kind`: added (no `old`), changed, or removed (no `new`)."""
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self._forget(kind, uid_of(old))
        if new is not None:
            self._learn(kind, new)

    def replace(self, kind: Kind, objects: Iterable[Obj]) -> None:
        """Take in that these are all objects of `kind` there are."""
        there = {uid_of(obj): obj for obj in objects}
        for uid in [u for u in self._known(kind) if u not in there]:
            self._forget(kind, uid)
        for obj in there.values():
            self._learn(kind, obj)

    def workload_of(self, set_uid: str) -> str | None:
        """UID of the leader workload of the set whose groups `state_of` speaks of, None if none is known."""
        return self._workloads.get(set_uid)

    def state_of(self, set_uid: str) -> SetState:
        """The state of all groups of a set; empty if none is known."""
        slots = self._slots.get(self._workloads.get(set_uid, ""))
        return slots.state() if slots is not None else SetState()

    def set_of(self, pod_uid: str) -> str | None:
        """UID of the set that a pod belongs to by the chain of owners, None while that is not known."""
        leader = self._leaders.get(pod_uid)
        if leader is None:
            workers = self._workers.get(self._owners.get(pod_uid, ""))
            leader = self._leaders.get(workers.leader_uid) if workers is not None else None
        return self._sets.get(leader.id.workload_uid) if leader is not None else None

    def group_of(self, leader_uid: str) -> Group | None:
        """The group that a pod leads, None if it leads none."""
        leader = self._leaders.get(leader_uid)
        if leader is None:
            return None
        return Group(leader.id, leader.name, leader_uid, self._group_workers(leader_uid, leader)[0])

    # Learning and forgetting --------------------------------------------------------------------------------------

    def _known(self, kind: Kind) -> Iterator[str]:
        if kind == POD:
            yield from self._owners
        if kind == self._leader_backend.kind:
            yield from self._sets
        if kind == self._worker_backend.kind:
            yield from self._workers

    def _learn(self, kind: Kind, obj: Obj) -> None:
        owner = controller_of(obj)
        if kind == POD:
            self._learn_pod(obj, owner)
        elif owner is not None and kind == self._worker_backend.kind and is_of(owner, POD):
            self._forget_workload(uid_of(obj))
            self._learn_workers(obj, owner)
        else:
            self._forget(kind, uid_of(obj))
            if owner is not None and kind == self._leader_backend.kind and is_of(owner, LEADER_WORKER_SET):
                self._learn_workload(obj, owner)

    def _learn_pod(self, pod: Obj, owner: Obj | None) -> None:
        uid = uid_of(pod)
        self._owners[uid] = owner["uid"] if owner is not None else ""
        group = self._leader_backend.group_of(pod)
        leader = self._read_leader(pod, group, owner) if group is not None else None
        known = self._leaders.get(uid)
        if leader == known:
            return
        if known is not None and (leader is None or (known.id, known.ordinal) != (leader.id, leader.ordinal)):
            self._forget_leader(uid)
        if leader is not None:
            self._leaders[uid] = leader
            self._refresh(uid)

    def _read_leader(self, pod: Obj, group: GroupId, owner: Obj | None) -> _Leader:
        name = pod["metadata"]["name"]
        text = group.index
        sound = text.isascii() and text.isdigit() and owner is not None and name == f"{owner['name']}-{text}"
        ordinal = int(text) if sound and int(text) <= _MAX_ORDINAL else -1
        ready = (pod.get("status") or {}).get("phase") == "Running" and is_true(pod, "Ready")
        exhausted = annotations_of(pod).get(names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION) == "true"
        flags = HAS_LEADER | ready * LEADER_READY | exhausted * IS_EXHAUSTED
        return _Leader(group, ordinal, name, ownership.workers_name(pod), flags, ownership.revision_key(pod))

    def _learn_workload(self, obj: Obj, owner: Obj) -> None:
        if obj["metadata"]["name"] != owner["name"]:
            return
        self._sets[uid_of(obj)] = owner["uid"]
        self._workloads[owner["uid"]] = uid_of(obj)

    def _learn_workers(self, obj: Obj, owner: Obj) -> None:
        said = self._worker_backend.observe(obj)
        workers = _Workers(said.name, owner["uid"], HAS_WORKERS | said.ready * WORKERS_READY, said.revision)
        known = self._workers.get(said.uid)
        if known == workers:
            return
        if known is not None and known.leader_uid != workers.leader_uid:
            self._forget_workers(said.uid)
        self._workers[said.uid] = workers
        self._workers_of.setdefault(workers.leader_uid, set()).add(said.uid)
        self._refresh(workers.leader_uid)

    def _forget(self, kind: Kind, uid: str) -> None:
        if kind == POD:
            self._owners.pop(uid, None)
            self._forget_leader(uid)
        if kind == self._leader_backend.kind:
            self._forget_workload(uid)
        if kind == self._worker_backend.kind:
            self._forget_workers(uid)

    def _forget_workload(self, uid: str) -> None:
        set_uid = self._sets.pop(uid, None)
        if set_uid is not None and self._workloads.get(set_uid) == uid:
            del self._workloads[set_uid]

    def _forget_leader(self, uid: str) -> None:
        leader = self._leaders.pop(uid, None)
        if leader is None:
            return
        slots = self._slots[leader.id.workload_uid]
        if leader.ordinal < 0:
            slots.strays.pop(uid, None)
        else:
            slots.put(leader.ordinal, 0, _NO_PAIR)
        if not slots:
            del self._slots[leader.id.workload_uid]

    def _forget_workers(self, uid: str) -> None:
        workers = self._workers.pop(uid, None)
        if workers is None:
            return
        siblings = self._workers_of[workers.leader_uid]
        siblings.discard(uid)
        if not siblings:
            del self._workers_of[workers.leader_uid]
        self._refresh(workers.leader_uid)

    def _refresh(self, leader_uid: str) -> None:
        """Write a group anew after its leader or its workers changed."""
        leader = self._leaders.get(leader_uid)
        if leader is None:
            return
        slots = self._slots.setdefault(leader.id.workload_uid, _Slots())
        if leader.ordinal < 0:
            slots.strays[leader_uid] = leader.name
            return
        _, flags, revision = self._group_workers(leader_uid, leader)
        slots.put(leader.ordinal, leader.flags | flags, (leader.revision, revision))

    def _group_workers(self, leader_uid: str, leader: _Leader) -> tuple[str, int, str]:
        """UID, flags and revision of the workers of a leader: the workload with the name that they must have."""
        for uid in self._workers_of.get(leader_uid, ()):
            workers = self._workers[uid]
            if workers.name == leader.workers_name:
                return uid, workers.flags, workers.revision
        return "", 0, ""
