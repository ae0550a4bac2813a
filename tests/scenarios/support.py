"""What the scenarios share: building a set, and reading what became of it. Everything goes through the cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import CONTROLLER_REVISION, EVENT, POD, SERVICE, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, condition_of, generation_of, is_deleting, is_true
from lwskit.testing.cluster import EMBEDDED, ClusterOptions, TestCluster
from lwskit.testing.observer import Observer
from lwskit.testing.plugin import cluster_mode
from tests.scenarios.behind import acted_on, rests

T = TypeVar("T")

PATIENCE = 120.0
"""Seconds that everything is given on a real cluster."""

UNSCHEDULED = "played-by-the-test"
"""A scheduler that does not exist: no node's kubelet takes the pods, so the test can play it on any cluster."""

LEADERS = f"{names.NAME_LABEL},{names.WORKER_INDEX_LABEL}=0"
ALL_KINDS = (LEADER_WORKER_SET, STATEFUL_SET, POD, SERVICE, CONTROLLER_REVISION)


def pod_template(image: str, name: str = "worker", labels: Mapping[str, str] | None = None, **spec: Any) -> Obj:
    """A pod template with one container; `spec` adds fields of the pod's."""
    container = {"name": name, "image": image, "resources": {"requests": {"cpu": "10m"}}}
    template: Obj = {"spec": {"schedulerName": UNSCHEDULED, "containers": [container], **spec}}
    if labels:
        template["metadata"] = {"labels": dict(labels)}
    return template


def set_object(
    name: str = "llm",
    *,
    replicas: int = 2,
    size: int = 3,
    image: str = "img:v1",
    leader: Obj | None = None,
    template: Obj | None = None,
    metadata: Obj | None = None,
    group: Obj | None = None,
    **spec: Any,
) -> Obj:
    """A LeaderWorkerSet; `group` adds fields of `leaderWorkerTemplate`, `spec` those of the spec itself."""
    inner: Obj = {"size": size, "workerTemplate": template or pod_template(image), **(group or {})}
    if leader is not None:
        inner["leaderTemplate"] = leader
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": inner, **spec},
    }


def options(**fields: Any) -> ClusterOptions:
    """How the clusters of scenarios are made; `fields` as of ClusterOptions.

    A real one may share a busy machine with others: what takes seconds may take a minute there.
    """
    return ClusterOptions(**fields) if cluster_mode() == EMBEDDED else ClusterOptions(**{"timeout": PATIENCE, **fields})


async def events_about(cluster: TestCluster, kind: str, name: str) -> list[Obj]:
    """The events regarding an object of that kind."""
    return [e for e in await cluster.list(EVENT) if (e["regarding"]["kind"], e["regarding"]["name"]) == (kind, name)]


async def event_about(cluster: TestCluster, kind: str, name: str, wanted: tuple[str, str, str]) -> Obj:
    """Wait for an event with this type, reason and note; returns it."""

    async def check() -> Obj:
        seen = {(e["type"], e["reason"], e["note"]): e for e in reversed(await events_about(cluster, kind, name))}
        assert wanted in seen, [*seen]
        return seen[wanted]

    return await cluster.eventually(check)


@dataclass(frozen=True, slots=True)
class Sets:
    """LeaderWorkerSets on the test's cluster. All waiting is `eventually`.

    `workload` is the kind that leaders and workers are in.
    """

    cluster: TestCluster
    workload: Kind = STATEFUL_SET

    async def create(self, name: str = "llm", **fields: Any) -> Obj:
        """Create a set; arguments as for `set_object`."""
        return await self.cluster.create(LEADER_WORKER_SET, set_object(name, **fields))

    async def running(self, name: str = "llm", **fields: Any) -> Obj:
        """Create a set, make its pods ready, and wait until it is available. Returns it."""
        await self.create(name, **fields)
        return await self.ready(name)

    async def ready(self, name: str = "llm") -> Obj:
        """Make all pods ready, once the set as it is now has been acted on, until it is available and of full size.

        Pods of before that get ready sooner may have others go that the set would keep. Returns the set.
        """

        async def available() -> Obj:
            live = await self.live(name)
            wanted = live["spec"]["replicas"] * live["spec"]["leaderWorkerTemplate"]["size"]
            status = live.get("status") or {}
            assert status.get("observedGeneration") == generation_of(live)
            assert status.get("readyReplicas", 0) == live["spec"]["replicas"]
            assert is_true(live, names.CONDITION_AVAILABLE), status
            pods = (await self.pods(name)).values()
            assert len(pods) == wanted
            # The status may be of before: somebody has just taken a pod away.
            assert all(is_true(p, "Ready") and not is_deleting(p) for p in pods)
            return live

        await acted_on(self.cluster, LEADER_WORKER_SET, name)
        async with self.cluster.kubelet.playing():
            return await self.cluster.eventually(available)

    async def live(self, name: str = "llm") -> Obj:
        """The set as it is."""
        return await self.cluster.get(LEADER_WORKER_SET, name)

    async def patch(self, body: Obj, name: str = "llm") -> Obj:
        """A merge patch of the set."""
        return await self.cluster.patch(LEADER_WORKER_SET, name, body)

    async def set_image(self, image: str, name: str = "llm") -> Obj:
        """A new worker template, which starts a rollout."""
        return await self.patch({"spec": {"leaderWorkerTemplate": {"workerTemplate": pod_template(image)}}}, name)

    async def scale(self, replicas: int, name: str = "llm") -> None:
        """Through the scale subresource, as `kubectl scale` and autoscalers do."""
        await self.cluster.patch(LEADER_WORKER_SET, name, {"spec": {"replicas": replicas}}, subresource="scale")

    async def pods(self, name: str = "llm") -> dict[str, Obj]:
        """The pods of a set by name."""
        return {p["metadata"]["name"]: p for p in await self.cluster.list(POD, f"{names.NAME_LABEL}={name}")}

    async def live_pods(self, name: str = "llm") -> dict[str, Obj]:
        """The pods of a set that are not being deleted, by name."""
        return {n: p for n, p in (await self.pods(name)).items() if not is_deleting(p)}

    async def pod_uids(self, name: str = "llm", group: int | None = None) -> dict[str, str]:
        """UIDs by name of a set's pods, or of one group's."""
        selector = f"{names.NAME_LABEL}={name}"
        if group is not None:
            selector += f",{names.GROUP_INDEX_LABEL}={group}"
        return await self.cluster.uids(POD, selector)

    async def has_pods(self, *wanted: str, name: str = "llm") -> None:
        """Wait until the set has exactly these pods."""

        async def check() -> None:
            assert sorted(await self.live_pods(name)) == sorted(wanted)

        await self.cluster.eventually(check)

    async def has_image(self, image: str, *wanted: str, name: str = "llm") -> None:
        """Wait until these pods are there with this image; those of before may still have another one."""

        async def check() -> None:
            pods = await self.live_pods(name)
            assert {n: pods[n]["spec"]["containers"][0]["image"] for n in wanted} == dict.fromkeys(wanted, image)

        await self.cluster.eventually(check)

    async def counts_ready(self, count: int, name: str = "llm") -> None:
        """Wait until the set says that so many groups are ready: then the manager has seen what happened to pods."""

        async def check() -> None:
            assert (await self.live(name))["status"].get("readyReplicas", 0) == count

        await self.cluster.eventually(check)

    async def conditions(self, name: str = "llm") -> dict[str, str]:
        """The status of each condition by type."""
        live = await self.live(name)
        return {c["type"]: c["status"] for c in (live.get("status") or {}).get("conditions") or ()}

    async def condition(self, kind: str, name: str = "llm") -> Obj:
        """One condition. Raises KeyError when the set does not have it."""
        found = condition_of(await self.live(name), kind)
        if found is None:
            raise KeyError(kind)
        return found

    async def events(self, name: str = "llm") -> list[Obj]:
        """The events regarding the set."""
        return await events_about(self.cluster, names.KIND, name)

    async def has_event(self, reason: str, note: str, type: str = "Normal", name: str = "llm") -> Obj:
        """Wait for an event with this reason and note; returns it."""
        return await event_about(self.cluster, names.KIND, name, (type, reason, note))

    async def revisions(self, name: str = "llm") -> list[Obj]:
        """The ControllerRevisions of a set, by number."""
        found = await self.cluster.list(CONTROLLER_REVISION, f"{names.NAME_LABEL}={name},{names.REVISION_LABEL}")
        owned = [r for r in found if any(o["kind"] == names.KIND for o in r["metadata"].get("ownerReferences") or ())]
        return sorted(owned, key=lambda r: r["revision"])

    async def leader_workload(self, name: str = "llm") -> Obj:
        """The leader workload, a StatefulSet unless the test has another backend."""
        return await self.cluster.get(self.workload, name)

    async def settled(self) -> None:
        """Wait until nothing changes any more, and no workload's controller is behind."""
        await rests(self.cluster, *dict.fromkeys((*ALL_KINDS, self.workload)))


def strategy(**fields: int) -> Obj:
    """A rollout strategy, without surge and with one unavailable group unless told otherwise."""
    return {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0, **fields}}


async def images(sets: Sets) -> dict[str, str]:
    """The image of each pod by name."""
    return {name: pod["spec"]["containers"][0]["image"] for name, pod in (await sets.pods()).items()}


def seen(observer: Observer, name: str, read: Callable[[Obj], T]) -> list[T]:
    """What `read` made of an object each time that it changed, without repetitions in a row."""
    values: list[T] = []
    for change in observer.of(name):
        if not values or values[-1] != read(change.obj):
            values.append(read(change.obj))
    return values


def target_of(workload: Obj) -> tuple[int, int]:
    """Replicas and partition of the leader workload."""
    return workload["spec"]["replicas"], partition_of(workload)


def env_of(pod: Obj, container: int = 0) -> dict[str, str]:
    """The environment of a container as plain values."""
    return {e["name"]: e.get("value", "") for e in pod["spec"]["containers"][container].get("env") or ()}


def revision_key(obj: Obj) -> str:
    """The revision key that an object carries."""
    return obj["metadata"]["labels"][names.REVISION_LABEL]


def partition_of(workload: Obj) -> int:
    """The partition of a StatefulSet's rolling update."""
    return workload["spec"]["updateStrategy"]["rollingUpdate"].get("partition", 0)
