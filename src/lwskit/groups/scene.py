"""Everything in a namespace that has to do with one set, at one moment: what plans and explanations read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lwskit.api import names
from lwskit.groups import ownership, spec
from lwskit.groups.index import GroupIndex
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import SetSnapshot, SetState
from lwskit.groups.pool import GroupPool
from lwskit.groups.poolstate import NO_POOL, PoolState
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.runtime.kinds import CONTROLLER_REVISION, EVENT, NODE, POD, SERVICE
from lwskit.runtime.objects import Key, Obj, controller_of, group_of, is_of, key_of, uid_of

_EVENT_GROUPS = ("", "events.k8s.io")


@dataclass(frozen=True, slots=True)
class Happening:
    """An event of either API group, reduced to what an explanation needs. `time` is as the event carries it."""

    kind: str
    name: str
    uid: str
    type: str
    reason: str
    note: str
    time: str
    related: str = ""
    """Name of the object that it also concerns."""
    count: int = 1
    """How often it came."""
    first: str = ""
    """When it came first, as the event carries it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One set with its workloads, pods, revisions, Services and events."""

    name: str
    namespace: str
    lws: Obj | None
    workload: Obj | None = None
    """The leader workload: the object of the backend's kind with the set's name, whoever owns it."""
    between: tuple[Obj, ...] = ()
    """What the leader workload makes pods by: the ReplicaSets of a Deployment."""
    pods: tuple[Obj, ...] = ()
    workers: tuple[Obj, ...] = ()
    """Workloads of workers."""
    revisions: tuple[Obj, ...] = ()
    services: tuple[Obj, ...] = ()
    happenings: tuple[Happening, ...] = ()
    """Events of the namespace, oldest first."""
    blind: str = ""
    """Why no events are known, empty where those that there are were read."""
    nodes: Mapping[str, Obj] = field(default_factory=dict)
    partial: str = ""
    """That what made the leaders was not saved with them, in words; empty otherwise."""

    def state(self, leaders: LeaderBackend, workers: WorkerBackend) -> SetState:
        """The state of all groups, as the manager's index has it."""
        if self.lws is None or spec.is_hashed(self.lws):
            return SetState()
        index = GroupIndex(leaders, workers)
        if self.workload is not None:
            index.apply(leaders.kind, None, self.workload)
        for pod in self.pods:
            index.apply(POD, None, pod)
        for workload in self.workers:
            index.apply(workers.kind, None, workload)
        return index.state_of(uid_of(self.lws))

    @property
    def pool(self) -> PoolState:
        """The groups of a set in Hash mode, as the manager's pool has them."""
        if self.lws is None or not spec.is_hashed(self.lws):
            return NO_POOL
        return self._pool().state_of(key_of(self.lws))

    def _pool(self) -> GroupPool:
        pool = GroupPool()
        for pod in self.pods:
            pool.apply(POD, None, pod)
        return pool

    def snapshot(self, leaders: LeaderBackend, workers: WorkerBackend, now: datetime) -> SetSnapshot:
        """What the manager would decide from."""
        shared = next((s for s in self.services if s["metadata"]["name"] == self.name), None)
        return SetSnapshot(
            now=now,
            lws=self.lws,
            workload=self.workload,
            revisions=self.revisions,
            shared_service=shared,
            state=self.state(leaders, workers),
            live=frozenset((kind, Key(self.namespace, self.name)) for kind in (leaders.kind, LEADER_WORKER_SET)),
            pool=self.pool,
            owned=self._owned(leaders),
        )

    def _owned(self, leaders: LeaderBackend) -> frozenset[str]:
        if self.lws is None or self.workload is None or not spec.is_hashed(self.lws):
            return frozenset()
        return self._pool().owned(key_of(self.lws), leaders.observe(self.workload).revision)


def of(objects: Iterable[Obj], namespace: str, name: str, leaders: LeaderBackend, workers: WorkerBackend) -> Scene:
    """The scene of one set among any objects of a cluster."""
    lws = workload = None
    found: dict[str, list[Obj]] = {"between": [], "pods": [], "workers": [], "revisions": [], "services": []}
    happenings: list[Happening] = []
    nodes: dict[str, Obj] = {}
    for obj in objects:
        meta = obj["metadata"]
        if is_of(obj, NODE):
            nodes[meta["name"]] = obj
        if meta.get("namespace", "") != namespace:
            continue
        mine = ownership.set_name(obj) == name
        if is_of(obj, LEADER_WORKER_SET) and meta["name"] == name:
            lws = obj
        elif is_of(obj, leaders.kind) and meta["name"] == name:
            workload = obj
        elif mine and any(is_of(obj, kind) for kind in leaders.watches):
            found["between"].append(obj)
        elif is_of(obj, workers.kind) and mine:
            found["workers"].append(obj)
        elif is_of(obj, POD) and mine:
            found["pods"].append(obj)
        elif is_of(obj, CONTROLLER_REVISION) and mine:
            found["revisions"].append(obj)
        elif is_of(obj, SERVICE) and (mine or meta["name"] == name):
            found["services"].append(obj)
        elif is_event(obj):
            happenings.append(happening(obj))
    happenings.sort(key=lambda h: h.time)
    return Scene(
        name=name,
        namespace=namespace,
        lws=lws,
        workload=workload,
        between=tuple(found["between"]),
        pods=tuple(found["pods"]),
        workers=tuple(found["workers"]),
        revisions=tuple(found["revisions"]),
        services=tuple(found["services"]),
        happenings=tuple(happenings),
        nodes=nodes,
    )


def owner_name(obj: Obj) -> str:
    """Kind and name of an object's controller, in words."""
    owner = controller_of(obj)
    return f"{owner['kind']} {owner['name']}" if owner is not None else "nobody"


def is_leader_pod(pod: Obj) -> bool:
    """Whether a pod's labels say that it leads a group."""
    return (pod["metadata"].get("labels") or {}).get(names.WORKER_INDEX_LABEL) == names.LEADER_INDEX


def moment(text: str) -> datetime | None:
    """A time as objects carry it, None for a text that is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)


def is_event(obj: Obj) -> bool:
    """Whether an object is an event, of either API group."""
    return obj.get("kind") == EVENT.kind and group_of(obj.get("apiVersion", "")) in _EVENT_GROUPS


def happening(event: Obj) -> Happening:
    """An event of either API group, reduced."""
    about = event.get("regarding") or event.get("involvedObject") or {}
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    starts = (
        event.get("eventTime"),
        event.get("firstTimestamp"),
        event.get("deprecatedFirstTimestamp"),
        event["metadata"].get("creationTimestamp"),
    )
    counts = (series.get("count"), event.get("count"), event.get("deprecatedCount"))
    return Happening(
        about.get("kind", ""),
        about.get("name", ""),
        about.get("uid", ""),
        event.get("type", "Normal"),
        event.get("reason", ""),
        event.get("note") or event.get("message") or "",
        next((t for t in times if t), ""),
        (event.get("related") or {}).get("name", ""),
        next((c for c in counts if c), 1),
        next((t for t in starts if t), ""),
    )
