"""A set and all that belongs to it, as the changes told by watches of a test's own make it; read after 20 §3 and §6."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import CONTROLLER_REVISION, POD, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, controller_of, is_deleting, is_true, labels_of, uid_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.observer import Change, Observer

MOMENT = 0.001


class History:
    """Everything that happens to objects of these kinds in the test's namespace, in the order in which it happened."""

    def __init__(self, cluster: TestCluster, kinds: Sequence[Kind]) -> None:
        self._cluster = cluster
        self._kinds = kinds
        self._stack = AsyncExitStack()
        self._observers: dict[Kind, Observer] = {}
        self._read: dict[Kind, int] = dict.fromkeys(kinds, 0)

    async def __aenter__(self) -> History:
        for kind in self._kinds:
            self._observers[kind] = await self._stack.enter_async_context(self._cluster.observe(kind))
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.aclose()

    @property
    def told(self) -> list[tuple[int, str, str, str]]:
        """All of it so far: version, type, name and UID of each change."""
        changes = [c for observer in self._observers.values() for c in observer.changes]
        return sorted((_version(c), c.type, c.name, c.uid) for c in changes)

    async def news(self) -> list[tuple[Kind, Change]]:
        """What has happened since the last call. A moment passes, so that every watch has told it."""
        await self._cluster.clock.sleep(MOMENT)
        versions = [_version(o.changes[-1]) for o in self._observers.values() if o.changes]
        await self._cluster.clock.sleep(MOMENT)
        last = max(versions, default=0)
        found: list[tuple[Kind, Change]] = []
        for kind, observer in self._observers.items():
            while self._read[kind] < len(observer.changes) and _version(observer.changes[self._read[kind]]) <= last:
                found.append((kind, observer.changes[self._read[kind]]))
                self._read[kind] += 1
        return sorted(found, key=lambda item: _version(item[1]))


def _version(change: Change) -> int:
    return int(change.obj["metadata"]["resourceVersion"])


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a generation of the set asks for, percentages counted out (20 §6.1)."""

    replicas: int
    unavailable: int
    surge: int
    partition: int
    size: int
    policy: str
    immediate: bool = False
    """Whether the next group does not wait for the one before."""

    @classmethod
    def of(cls, lws: Obj) -> Wanted:
        spec = lws["spec"]
        pace, replicas, inner = spec["rolloutStrategy"]["rollingUpdateConfiguration"], spec["replicas"], _inner(lws)
        down, more = (
            counted(pace["maxUnavailable"], replicas, math.floor),
            counted(pace["maxSurge"], replicas, math.ceil),
        )
        if spec["groupIdentity"] != names.IDENTITY_HASH:
            more = min(more, replicas)
        return cls(
            replicas,
            down,
            more,
            pace.get("partition") or 0,
            inner["size"],
            inner["restartPolicy"],
            spec["groupReplacementPolicy"] == names.REPLACEMENT_IMMEDIATE,
        )

    @property
    def floor(self) -> int:
        """How many groups are to be ready at least."""
        return max(0, self.replicas - self.unavailable)

    @property
    def most(self) -> int:
        """How many groups there may be."""
        return self.replicas + self.surge


def _inner(lws: Obj) -> Obj:
    return lws["spec"]["leaderWorkerTemplate"]


def counted(value: int | str, replicas: int, rounded: Any) -> int:
    """A number of groups that may be given as a percentage."""
    return value if isinstance(value, int) else rounded(int(value.removesuffix("%")) * replicas / 100)


@dataclass(frozen=True, slots=True)
class Group:
    """One group: its leader, and whether it is ready and whole of one revision (20 §6.2)."""

    uid: str
    key: str
    ready: bool
    workers_key: str
    """That of the leader where there are no workers to be."""
    going: bool = False
    """Its leader is being deleted; it counts as ready for as long as it is."""

    @property
    def stands(self) -> bool:
        """Whether it is ready, and nobody has taken it down yet."""
        return self.ready and not self.going


class World(ABC):
    """What there is now of one set."""

    leaders: ClassVar[Kind]
    """The kind of the leader workload."""
    between: ClassVar[tuple[Kind, ...]] = ()
    """Kinds on the way from it to the leaders."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lws: Obj | None = None
        self.workload: Obj | None = None
        """The leader workload."""
        self.pods: dict[str, Obj] = {}
        self.workers: dict[str, Obj] = {}
        """Workloads of workers by UID."""
        self.makers: dict[str, Obj] = {}
        """Objects of the kinds between, by UID."""
        self.revisions: dict[str, Obj] = {}

    def put(self, kind: Kind, change: Change) -> Obj | None:
        """Take in a change; returns the object as it was before."""
        obj, gone = change.obj, change.type == "DELETED"
        if kind is LEADER_WORKER_SET:
            old, self.lws = self.lws, None if gone else obj
        elif kind is self.leaders and change.name == self.name:
            old, self.workload = self.workload, None if gone else obj
        else:
            known = {POD: self.pods, STATEFUL_SET: self.workers, CONTROLLER_REVISION: self.revisions}
            table = known.get(kind, self.makers)
            old = table.get(change.uid)
            if gone:
                table.pop(change.uid, None)
            else:
                table[change.uid] = obj
        return old

    @classmethod
    def kinds(cls) -> tuple[Kind, ...]:
        """All kinds that there are of a set."""
        return tuple(
            dict.fromkeys((LEADER_WORKER_SET, cls.leaders, *cls.between, STATEFUL_SET, POD, CONTROLLER_REVISION))
        )

    def leader_of(self, pod: Obj) -> str:
        """UID of the leader of a pod's group, empty if it has none (any more)."""
        owner = controller_of(pod)
        if owner is None:
            return ""
        if is_leader(pod):
            return uid_of(pod)
        workers = self.workers.get(owner["uid"])
        above = controller_of(workers) if workers is not None else None
        return above["uid"] if above is not None else ""

    def live_pods(self) -> list[Obj]:
        """Pods that are not being deleted, by name."""
        found = [p for p in self.pods.values() if not is_deleting(p)]
        return sorted(found, key=lambda p: p["metadata"]["name"])

    def groups(self) -> dict[Any, Group]:
        """The groups that have a leader, each by what the mode knows it by."""
        if self.lws is None:
            return {}
        found: dict[Any, Group] = {}
        for pod in self.pods.values():
            if not is_leader(pod) or not self.is_mine(pod):
                continue
            workers, alone = self.workers_of(pod), self.is_alone(pod)
            ready = pod.get("status", {}).get("phase") == "Running" and is_true(pod, "Ready")
            ready = ready and (alone or (workers is not None and is_whole(workers)))
            key = key_of(pod)
            workers_key = key if alone else key_of(workers) if workers is not None else ""
            found[self.place_of(pod)] = Group(uid_of(pod), key, ready, workers_key, is_deleting(pod))
        return found

    @abstractmethod
    def is_mine(self, leader: Obj) -> bool:
        """Whether the leader workload made that leader, or may take it over."""

    @abstractmethod
    def is_alone(self, leader: Obj) -> bool:
        """Whether a group is ready when its leader is."""

    @abstractmethod
    def place_of(self, leader: Obj) -> Any:
        """What a group is known by."""

    def workers_of(self, leader: Obj) -> Obj | None:
        """The workload of a leader's workers, None where there is none."""
        for workers in self.workers.values():
            if (controller_of(workers) or {}).get("uid") == uid_of(leader):
                return workers
        return None

    def recorded(self, key: str) -> Obj | None:
        """The template of the revision with that key."""
        mine = [r for r in self.revisions.values() if (controller_of(r) or {}).get("kind") == names.KIND]
        found = [r for r in mine if key_of(r) == key and labels_of(r)[names.NAME_LABEL] == self.name]
        if not found:
            return None
        data = max(found, key=lambda r: r["revision"])["data"]
        data = json.loads(data) if isinstance(data, str) else data
        return data["spec"]["leaderWorkerTemplate"]


def is_leader(pod: Obj) -> bool:
    return labels_of(pod).get(names.WORKER_INDEX_LABEL) == names.LEADER_INDEX


def key_of(obj: Obj) -> str:
    return labels_of(obj).get(names.REVISION_LABEL, "")


def image_of(template: Obj) -> str:
    return template["spec"]["containers"][0]["image"]


def restarts_of(pod: Obj) -> int:
    """How often containers of a pod have restarted."""
    return sum(c.get("restartCount", 0) for c in (pod.get("status") or {}).get("containerStatuses") or ())


def is_whole(workload: Obj) -> bool:
    """Whether all workers of a group are there and ready."""
    status = workload.get("status") or {}
    counted = workload["spec"]["replicas"] == status.get("availableReplicas", 0)
    return counted and status.get("currentRevision") == status.get("updateRevision")
