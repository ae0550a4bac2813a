"""What a control plane is given to do: LeaderWorkerSets, or StatefulSets with the same pods and nobody above them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.cache.store import Store
from lwskit.runtime.client.client import Client
from lwskit.runtime.kinds import STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, generation_of, is_true

NAMESPACE = "default"
SHARE = "10%"
"""The groups that a rollout may take down at a time; of a set that is too small for that, one."""
AT_ONCE = 16
"""Requests of the client that creates and changes objects."""


@dataclass(frozen=True, slots=True)
class Shape:
    """So many sets of so many groups of so many pods."""

    sets: int
    groups: int
    size: int

    def __str__(self) -> str:
        return f"{self.sets} × {self.groups} × {self.size}" if self.sets > 1 else f"{self.groups} groups of {self.size}"

    @property
    def pods(self) -> int:
        """Pods in all."""
        return self.all_groups * self.size

    @property
    def all_groups(self) -> int:
        """Groups in all."""
        return self.sets * self.groups

    @property
    def budget(self) -> int | str:
        """How many groups of a set a rollout may take down at a time."""
        return SHARE if self.groups >= 10 else 1


class Load(Protocol):
    """Objects of one kind that make the pods of a shape."""

    kind: Kind

    def objects(self, image: str) -> Sequence[Obj]:
        """The objects to create, with pods of that image."""
        ...

    def change(self, image: str) -> Obj:
        """The merge patch that gives all pods another image."""
        ...

    def done(self, obj: Obj) -> bool:
        """Whether all pods of an object are ready and as it asks for."""
        ...


def _template(image: str) -> Obj:
    return {"spec": {"containers": [{"name": "main", "image": image}]}}


class Sets:
    """LeaderWorkerSets, in Ordinal mode or in Hash mode."""

    kind = LEADER_WORKER_SET

    def __init__(self, shape: Shape, identity: str = names.IDENTITY_ORDINAL) -> None:
        self._shape, self._identity = shape, identity

    def objects(self, image: str) -> Sequence[Obj]:
        """The sets."""
        shape = self._shape
        rolling = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": shape.budget}}
        inner = {"size": shape.size, "workerTemplate": _template(image)}
        spec = {
            "groupIdentity": self._identity,
            "replicas": shape.groups,
            "rolloutStrategy": rolling,
            "leaderWorkerTemplate": inner,
        }
        body: Obj = {"apiVersion": names.API_VERSION, "kind": names.KIND, "spec": spec}
        return [{**body, "metadata": {"name": f"set-{i}", "namespace": NAMESPACE}} for i in range(shape.sets)]

    def change(self, image: str) -> Obj:
        """Another worker template."""
        return {"spec": {"leaderWorkerTemplate": {"workerTemplate": _template(image)}}}

    def done(self, obj: Obj) -> bool:
        """Whether it says that all groups are ready and updated."""
        status, wanted = obj.get("status") or {}, obj["spec"]["replicas"]
        return (
            status.get("observedGeneration") == generation_of(obj)
            and status.get("readyReplicas") == status.get("updatedReplicas") == wanted
            and is_true(obj, names.CONDITION_AVAILABLE)
        )


class Bare:
    """StatefulSets: for each set one with a pod for each group, and for each group one with the rest of its pods."""

    kind = STATEFUL_SET

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def objects(self, image: str) -> Sequence[Obj]:
        """The StatefulSets, those of leaders first."""
        shape = self._shape
        heads = [self._object(f"set-{i}", shape.groups, image) for i in range(shape.sets)]
        if shape.size == 1:
            return heads
        tails = [(i, j) for i in range(shape.sets) for j in range(shape.groups)]
        return [*heads, *(self._object(f"set-{i}-{j}", shape.size - 1, image) for i, j in tails)]

    def _object(self, name: str, replicas: int, image: str) -> Obj:
        labels = {"app": name}
        update = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": self._shape.budget}}
        spec = {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "updateStrategy": update,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, **_template(image)},
        }
        body: Obj = {"apiVersion": STATEFUL_SET.api_version, "kind": STATEFUL_SET.kind, "spec": spec}
        return {**body, "metadata": {"name": name, "namespace": NAMESPACE}}

    def change(self, image: str) -> Obj:
        """Another template."""
        return {"spec": {"template": _template(image)}}

    def done(self, obj: Obj) -> bool:
        """Whether all pods are ready and updated."""
        status, wanted = obj.get("status") or {}, obj["spec"]["replicas"]
        return (
            status.get("observedGeneration") == generation_of(obj)
            and status.get("readyReplicas") == status.get("updatedReplicas") == wanted
            and status.get("currentRevision") == status.get("updateRevision")
        )


async def create(client: Client, load: Load) -> None:
    """Create all objects of a load."""
    await _each([lambda obj=obj: client.create(load.kind, obj) for obj in load.objects("img:v1")])


async def change(client: Client, load: Load) -> None:
    """Give all pods of a load another image."""
    found = [obj["metadata"]["name"] for obj in load.objects("img:v2")]
    body = load.change("img:v2")
    await _each([lambda name=name: client.patch(load.kind, name, body, NAMESPACE) for name in found])


def all_done(load: Load, store: Store, image: str) -> bool:
    """Whether every object of a load is there, asks for that image, and has what it asks for."""
    objects = store.list(NAMESPACE)
    return len(objects) == len(load.objects(image)) and all(image in str(o["spec"]) and load.done(o) for o in objects)


async def _each(calls: Sequence[Callable[[], Awaitable[Obj]]]) -> None:
    waiting = iter(calls)

    async def work() -> None:
        for call in waiting:
            await call()

    async with asyncio.TaskGroup() as group:
        for i in range(AT_ONCE):
            group.create_task(work(), name=f"client {i}")
