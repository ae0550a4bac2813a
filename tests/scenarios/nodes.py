"""Nodes that go and come back: the kubelets on them, and what a cluster's other controllers do about it meanwhile.

Source: Kubernetes documentation, "Nodes", "Taints and Tolerations", "Pod Lifecycle": a node that cannot be reached is
tainted, its pods are not ready, after a while they are deleted and stay until their kubelet answers or the node is
removed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lwskit.embedded.controllers.kubelet import FIELD_MANAGER, Kubelet
from lwskit.embedded.controllers.kubelet_behaviour import Behaviour
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.clock import rfc3339
from lwskit.runtime.errors import Conflict, NotFound
from lwskit.runtime.kinds import NODE, POD
from lwskit.runtime.objects import Obj, is_deleting, uid_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.beside import beside

UNREACHABLE = "node.kubernetes.io/unreachable"
BEAT = 10.0
"""Seconds between two heartbeats of a node."""


@asynccontextmanager
async def beating(cluster: TestCluster, *names: str) -> AsyncIterator[None]:
    """Inside the block these nodes, which have no kubelet, say that they are well, as kubelets do.

    Of a node that is silent for long a cluster's controllers take all pods for not ready.
    """

    async def beat() -> None:
        moment = rfc3339(cluster.clock.now())
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": moment}
        body = {"status": {"conditions": [ready]}}
        for name in names:
            await cluster.client.patch(NODE, name, body, patch_type=PatchType.STRATEGIC, subresource="status")

    async def go_on() -> None:
        while True:
            await cluster.clock.sleep(BEAT)
            await beat()

    await beat()
    async with beside(go_on(), "heartbeats"):
        yield


class Nodes:
    """The nodes of a cluster without a kubelet of its own. `lost` are those that cannot be reached now.

    How long a pod takes is decided by its UID; one whose image has `bad` in its name never becomes ready.
    """

    def __init__(self, cluster: TestCluster, count: int, client: Client) -> None:
        self.cluster = cluster
        self.names = [f"node-{i}" for i in range(count)]
        self.lost: list[str] = []
        self.kubelet = Kubelet(client, count, clock=cluster.clock, rng=cluster.rng, behaviour=behaviour, events=False)

    @classmethod
    async def of(cls, cluster: TestCluster, count: int) -> Nodes:
        transport = await cluster.transport(FIELD_MANAGER)
        return cls(cluster, count, Client(transport, field_manager=FIELD_MANAGER, clock=cluster.clock))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Inside the block the kubelets run."""
        task = asyncio.create_task(self.kubelet.run(), name="kubelets")
        try:
            await self.kubelet.ready.wait()
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.result()

    async def pods(self, node: str) -> list[Obj]:
        return [p for p in await self.cluster.list(POD) if p["spec"].get("nodeName") == node]

    async def lose(self, node: str) -> list[Obj]:
        """The node cannot be reached any more; returns its pods, which are not ready from now on."""
        self.lost.append(node)
        self.kubelet.cut_off(node)
        await self.kubelet.set_ready(node, False)
        taints = [{"key": UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        await self.cluster.client.patch(NODE, node, {"spec": {"taints": taints}})
        pods = await self.pods(node)
        for pod in pods:
            moment = rfc3339(self.cluster.clock.now())
            condition = {"type": "Ready", "status": "False", "lastTransitionTime": moment}
            await self._status(pod, {"conditions": [condition]})
        return pods

    async def evict(self, node: str) -> list[Obj]:
        """The pods of a lost node are deleted, and stay; returns them."""
        pods = [p for p in await self.pods(node) if not is_deleting(p)]
        for pod in pods:
            await self.cluster.delete(POD, pod["metadata"]["name"], uid=uid_of(pod))
        return pods

    async def remove(self, node: str) -> list[Obj]:
        """A lost node is removed from the cluster, and then its pods, which are returned; a new one takes its name."""
        pods = await self.pods(node)
        await self.cluster.client.delete(NODE, node)
        for pod in pods:
            await self._status(pod, {"phase": "Failed"})
            meta = pod["metadata"]
            await self.cluster.client.delete(POD, meta["name"], meta["namespace"], uid=uid_of(pod), grace_seconds=0)
        await self.find(node)
        return pods

    async def find(self, node: str) -> None:
        """A lost node is there again."""
        self.lost.remove(node)
        await self.kubelet.register(node)
        await self.cluster.client.patch(NODE, node, {"spec": {"taints": None}})
        self.kubelet.found(node)

    async def _status(self, pod: Obj, status: Obj) -> None:
        body = {"metadata": {"uid": uid_of(pod)}, "status": status}
        try:
            await self.cluster.client.patch(
                POD,
                pod["metadata"]["name"],
                body,
                self.cluster.namespace,
                patch_type=PatchType.STRATEGIC,
                subresource="status",
            )
        except (NotFound, Conflict):
            # It is gone by now.
            return


def behaviour(pod: Obj) -> Behaviour:
    """How long a pod takes."""
    rng = random.Random(uid_of(pod))
    bad = "bad" in pod["spec"]["containers"][0]["image"]
    return Behaviour(
        start_delay=rng.choice((0.1, 0.2, 1.0)),
        ready_delay=float("inf") if bad else rng.choice((0.0, 0.0, 0.5, 2.0, 4.0)),
        stop_delay=rng.choice((0.0, 0.2, 2.0)),
        backoff=1.0,
    )
