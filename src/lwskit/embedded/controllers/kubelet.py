"""A simple kubelet for any number of nodes: runs no container, but brings pods through their life as if it did."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence

from lwskit.embedded.controllers.events import CoreRecorder
from lwskit.embedded.controllers.kubelet_behaviour import Behaviour, behaviour_of
from lwskit.embedded.controllers.kubelet_pod import PodLife, Step
from lwskit.embedded.controllers.nodes import (
    NOT_READY,
    NodeSpec,
    conditions,
    node_object,
    node_specs,
    node_status,
)
from lwskit.embedded.controllers.pods import node_of
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.clock import Clock, RealClock, real_random, rfc3339
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.handler import Event, objects_of
from lwskit.runtime.errors import AlreadyExists, ConfigurationError, Conflict, NotFound, another_uid_conflicts
from lwskit.runtime.kinds import NODE, POD
from lwskit.runtime.objects import Key, Obj, ref_of, uid_of
from lwskit.runtime.plan import Event as Record
from lwskit.runtime.request import DONE, Request, Result

FIELD_MANAGER = "kubelet"
"""The field manager that a client for a kubelet should have."""


class Kubelet:
    """Plays the kubelets of `nodes` (a number, names or NodeSpecs) against the API server of `client`, any server.

    Pods bound to these nodes start, become ready, crash, end and stop as `behaviour` and their annotations say (see
    `kubelet_behaviour`), all durations divided by `speed`; `behaviour` may be a function of the pod. They are deleted
    by UID, never by name. With `events` it records what a kubelet records about containers. Nodes are created where
    they do not exist.
    """

    def __init__(
        self,
        client: Client,
        nodes: int | Sequence[NodeSpec | str] = 1,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        behaviour: Behaviour | Callable[[Obj], Behaviour] | None = None,
        speed: float = 1.0,
        events: bool = True,
        concurrency: int = 16,
    ) -> None:
        if speed <= 0:
            raise ConfigurationError(f"speed is {speed:g}; it divides delays, so it must be greater than 0")
        self._client = client
        self._clock = clock or RealClock()
        self._rng = rng or real_random()
        self._behaviour = _by_pod(behaviour or Behaviour())
        self._speed = speed
        self._nodes = {n.name: n for n in node_specs(nodes)}
        self._addresses = {name: f"172.18.{(i + 2) // 256}.{(i + 2) % 256}" for i, name in enumerate(self._nodes)}
        self._cache = Cache(client, self._clock, self._rng)
        self._pods = self._cache.informer(POD)
        self._lives: dict[str, PodLife] = {}
        self._cut_off: set[str] = set()
        self._next_ip = 0
        self.ready = asyncio.Event()
        """Set when the nodes are registered and their pods are watched."""
        self._taken_ips: set[str] | None = None
        self._recorders = (
            {name: CoreRecorder(client, self._clock, "kubelet", name) for name in self._nodes} if events else {}
        )
        self._controller = (
            Builder(self.reconcile, clock=self._clock, rng=self._rng, name="kubelet")
            .watches(self._pods, self._requests)
            .build(concurrency=concurrency, lane=lambda request: request.uid)
        )

    async def run(self) -> None:
        """Register the nodes, then look after their pods until cancelled. Raises ApiError, ConnectionFailed."""
        for name in self._nodes:
            await self.register(name)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run(), name="kubelet cache")
            for name, recorder in self._recorders.items():
                group.create_task(recorder.run(), name=f"kubelet events of {name}")
            await self._pods.wait_synced()
            self.ready.set()
            await self._controller.run()

    async def register(self, name: str, ready: bool = True) -> None:
        """Create the node or refresh its status, and take away the taint that new nodes carry."""
        spec = self._nodes[name]
        try:
            await self._client.create(NODE, node_object(spec))
        except AlreadyExists:
            # It is ours from an earlier run, or somebody has prepared it: only the status is ours then.
            pass
        status = node_status(spec, self._addresses[name], ready, self._moment(), self._rng)
        node = await self._patch_node(name, {"status": status}, "status")
        if ready:
            await self._untaint(node)

    async def _untaint(self, node: Obj) -> None:
        """Take away the taint of a node that is not ready; repeated while others write to the node."""
        name = node["metadata"]["name"]
        while True:
            taints = node["spec"].get("taints") or []
            rest = [t for t in taints if t["key"] != NOT_READY]
            if len(rest) == len(taints):
                return
            body = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}, "spec": {"taints": rest}}
            try:
                await self._client.patch(NODE, name, body)
                return
            except Conflict:
                node = await self._client.get(NODE, name)

    async def set_ready(self, node: str, ready: bool) -> None:
        """Make a node say that it is ready or not; its pods are left as they are. Raises NotFound."""
        await self._patch_node(node, {"status": {"conditions": conditions(ready, self._moment())}}, "status")

    def cut_off(self, node: str) -> None:
        """Play a kubelet that hears and says nothing: nothing becomes of the node's pods until it is `found` again.

        What a cluster's other controllers do about a lost node is not played.
        """
        self._cut_off.add(node)

    def found(self, node: str) -> None:
        """End what `cut_off` began: the kubelet looks after all pods of the node again, deleted ones included."""
        self._cut_off.discard(node)
        for pod in self._pods.store.list():
            if node_of(pod) == node:
                self._controller.queue.add(_request(pod))

    def crash(self, namespace: str, name: str, container: str = "", exit_code: int = 1) -> None:
        """Let a container of a running pod (by default all of them) exit now.

        Raises ConfigurationError when no such pod runs on these nodes.
        """
        pod = self._pods.store.get(Key(namespace, name))
        life = self._lives.get(uid_of(pod)) if pod is not None else None
        if pod is None or life is None:
            raise ConfigurationError(f"pod {namespace}/{name} does not run on {', '.join(self._nodes)}")
        life.crash(container, exit_code)
        self._controller.queue.add(_request(pod))

    async def reconcile(self, request: Request) -> Result:
        """Bring one pod's life to the present."""
        pod = self._pods.store.get(request.key)
        if pod is None or uid_of(pod) != request.uid:
            self._lives.pop(request.uid, None)
            return DONE
        node = node_of(pod)
        if node not in self._nodes or node in self._cut_off:
            return DONE
        now, moment = self._clock.monotonic(), self._moment()
        life = self._lives.get(request.uid)
        if life is None:
            life = PodLife(pod, now, moment, [self._addresses[node]], [self._ip(pod)])
            self._lives[request.uid] = life
        step = life.look(pod, behaviour_of(pod, self._behaviour(pod), self._speed), now, moment)
        await self._carry_out(pod, node, step)
        return Result(after=max(step.after, 0.001)) if step.after is not None else DONE

    async def _carry_out(self, pod: Obj, node: str, step: Step) -> None:
        meta, uid = pod["metadata"], uid_of(pod)
        recorder = self._recorders.get(node)
        for note in step.notes if recorder else ():
            event = Record(ref_of(pod, POD), note.reason, note.reason, note.message, note.type)
            assert recorder is not None
            recorder.event(event)
        try:
            if step.status is not None:
                body = {"metadata": {"uid": uid}, "status": step.status}
                with another_uid_conflicts():
                    answer = await self._client.patch(
                        POD, meta["name"], body, meta["namespace"], patch_type=PatchType.STRATEGIC, subresource="status"
                    )
                self._cache.ingest(POD, answer)
            if step.delete:
                await self._client.delete(POD, meta["name"], meta["namespace"], uid=uid, grace_seconds=0)
        except (NotFound, Conflict):
            # The pod is gone, or another one has its name by now.
            return

    async def _patch_node(self, name: str, body: Obj, subresource: str) -> Obj:
        return await self._client.patch(NODE, name, body, patch_type=PatchType.STRATEGIC, subresource=subresource)

    def _ip(self, pod: Obj) -> str:
        """The pod's address, or one that no pod has."""
        known = (pod.get("status") or {}).get("podIP")
        if known:
            return known
        if self._taken_ips is None:
            self._taken_ips = {(p.get("status") or {}).get("podIP", "") for p in self._pods.store}
        while True:
            self._next_ip += 1
            i = self._next_ip
            address = f"10.{64 + i // 65536}.{i // 256 % 256}.{i % 256}"
            if address not in self._taken_ips:
                return address

    def _requests(self, event: Event) -> Iterable[Request]:
        # All looks of one pod are in its own lane; a successor of its name has another UID.
        return [_request(obj) for obj in objects_of(event)[-1:] if node_of(obj) in self._nodes]

    def _moment(self) -> str:
        return rfc3339(self._clock.now())


def _by_pod(behaviour: Behaviour | Callable[[Obj], Behaviour]) -> Callable[[Obj], Behaviour]:
    return (lambda pod: behaviour) if isinstance(behaviour, Behaviour) else behaviour


def _request(pod: Obj) -> Request:
    meta = pod["metadata"]
    return Request(meta["namespace"], meta["name"], POD.kind, uid_of(pod))
