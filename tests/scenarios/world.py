"""A set and all that belongs to it, as the changes told by watches of a test's own make it; read after 20 §3 and §6."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import CONTROLLER_REVISION, POD, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, annotations_of, controller_of, is_deleting, is_true, labels_of, uid_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.observer import Change, Observer

KINDS = (LEADER_WORKER_SET, STATEFUL_SET, POD, CONTROLLER_REVISION)
MOMENT = 0.001


class History:
    """Everything that happens to objects of KINDS in the test's namespace, in the order in which it happened."""

    def __init__(self, cluster: TestCluster) -> None:
        self._cluster = cluster
        self._stack = AsyncExitStack()
        self._observers: dict[Kind, Observer] = {}
        self._read: dict[Kind, int] = dict.fromkeys(KINDS, 0)

    async def __aenter__(self) -> History:
        for kind in KINDS:
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

    @classmethod
    def of(cls, lws: Obj) -> Wanted:
        spec = lws["spec"]
        pace, replicas, inner = spec["rolloutStrategy"]["rollingUpdateConfiguration"], spec["replicas"], _inner(lws)
        return cls(
            replicas,
            _counted(pace["maxUnavailable"], replicas, math.floor),
            min(_counted(pace["maxSurge"], replicas, math.ceil), replicas),
            pace.get("partition") or 0,
            inner["size"],
            inner["restartPolicy"],
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


def _counted(value: int | str, replicas: int, rounded: Any) -> int:
    return value if isinstance(value, int) else rounded(int(value.removesuffix("%")) * replicas / 100)


@dataclass(frozen=True, slots=True)
class Group:
    """One group: its leader, and whether it is ready and whole of one revision (20 §6.2)."""

    ordinal: int
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


@dataclass(frozen=True, slots=True)
class Asked:
    """What the leader workload asks for at a moment."""

    at: float
    uid: str
    replicas: int
    partition: int
    key: str
    recorded: str


class World:
    """What there is now of one set."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lws: Obj | None = None
        self.workload: Obj | None = None
        """The leader workload."""
        self.pods: dict[str, Obj] = {}
        self.workers: dict[str, Obj] = {}
        """Workloads of workers by UID."""
        self.revisions: dict[str, Obj] = {}

    def put(self, kind: Kind, change: Change) -> Obj | None:
        """Take in a change; returns the object as it was before."""
        obj, gone = change.obj, change.type == "DELETED"
        if kind is LEADER_WORKER_SET:
            old, self.lws = self.lws, None if gone else obj
        elif kind is STATEFUL_SET and change.name == self.name:
            old, self.workload = self.workload, None if gone else obj
        else:
            table = {POD: self.pods, STATEFUL_SET: self.workers, CONTROLLER_REVISION: self.revisions}[kind]
            old = table.get(change.uid)
            if gone:
                table.pop(change.uid, None)
            else:
                table[change.uid] = obj
        return old

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

    def groups(self) -> dict[int, Group]:
        """The groups that have a leader, by ordinal; also while their leader has lost its owner."""
        if self.lws is None:
            return {}
        alone = _inner(self.lws)["size"] == 1
        mine = ("", uid_of(self.workload) if self.workload is not None else "")
        found: dict[int, Group] = {}
        for pod in self.pods.values():
            if not is_leader(pod) or (controller_of(pod) or {}).get("uid", "") not in mine:
                continue
            workers = self._workers_of(pod)
            ready = pod.get("status", {}).get("phase") == "Running" and is_true(pod, "Ready")
            ready = ready and (alone or (workers is not None and _is_ready(workers)))
            key = key_of(pod)
            workers_key = key if alone else key_of(workers) if workers is not None else ""
            ordinal = ordinal_of(pod)
            found[ordinal] = Group(ordinal, uid_of(pod), key, ready, workers_key, is_deleting(pod))
        return found

    def leaders_down(self) -> int:
        """How many leaders the StatefulSet controller counts as unavailable."""
        assert self.workload is not None
        replicas = self.workload["spec"]["replicas"]
        found = [p for p in self.pods.values() if is_leader(p) and ordinal_of(p) < replicas]
        return replicas - sum(is_true(p, "Ready") and not is_deleting(p) for p in found)

    def _workers_of(self, leader: Obj) -> Obj | None:
        name, uid = leader["metadata"]["name"], uid_of(leader)
        for workers in self.workers.values():
            if workers["metadata"]["name"] == name and (controller_of(workers) or {}).get("uid") == uid:
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


def asked(workload: Obj, at: float) -> Asked:
    spec = workload["spec"]
    return Asked(
        at,
        uid_of(workload),
        spec["replicas"],
        spec["updateStrategy"]["rollingUpdate"].get("partition", 0),
        key_of(workload),
        annotations_of(workload).get(names.REPLICAS_ANNOTATION, ""),
    )


def is_leader(pod: Obj) -> bool:
    return labels_of(pod).get(names.WORKER_INDEX_LABEL) == names.LEADER_INDEX


def ordinal_of(leader: Obj) -> int:
    return int(leader["metadata"]["name"].rpartition("-")[2])


def key_of(obj: Obj) -> str:
    return labels_of(obj).get(names.REVISION_LABEL, "")


def image_of(template: Obj) -> str:
    return template["spec"]["containers"][0]["image"]


def restarts_of(pod: Obj) -> int:
    """How often containers of a pod have restarted."""
    return sum(c.get("restartCount", 0) for c in (pod.get("status") or {}).get("containerStatuses") or ())


def _is_ready(workload: Obj) -> bool:
    status = workload.get("status") or {}
    counted = workload["spec"]["replicas"] == status.get("availableReplicas", 0)
    return counted and status.get("currentRevision") == status.get("updateRevision")


def stopped(groups: dict[int, Group], now: Asked, wanted: Wanted) -> tuple[int, list[int]]:
    """Where the partition goes by 20 §6.5, and the groups below its base that are not ready."""

    def done(i: int) -> bool:
        return i in groups and groups[i].ready and groups[i].key == groups[i].workers_key == now.key

    def ready(i: int) -> bool:
        return i in groups and groups[i].ready

    def updated(i: int) -> bool:
        return i in groups and groups[i].key == groups[i].workers_key == now.key

    tail = next((n for n, i in enumerate(reversed(range(now.replicas))) if not done(i)), now.replicas)
    step = wanted.unavailable + wanted.surge - (wanted.most - now.replicas)
    base = max(0, now.replicas - tail - step)
    below = [i for i in range(base) if not ready(i)]
    p = base + len(below)
    for i in range(min(p, now.replicas - 1), base - 1, -1):
        if ready(i) and not updated(i):
            break
        p = i
    return max(min(p, now.partition), wanted.partition), below


def unfinished(groups: dict[int, Group], key: str, wanted: Wanted) -> Iterator[int]:
    """The groups that are to stay and are not ready and of that revision."""
    for i in range(wanted.replicas):
        group = groups.get(i)
        if group is None or not group.ready or not group.key == group.workers_key == key:
            yield i
