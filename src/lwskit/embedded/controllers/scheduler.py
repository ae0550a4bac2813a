"""A simple scheduler: finds a node for every pending pod, one after the other, and binds it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from lwskit.embedded.controllers.placement import Placement
from lwskit.embedded.controllers.pods import is_terminal, node_of
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.clock import Clock, rfc3339
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.handler import Create, Delete, Event, Generic, Update
from lwskit.runtime.errors import Conflict, NotFound, another_uid_conflicts
from lwskit.runtime.execute import RecorderLike
from lwskit.runtime.kinds import NAMESPACE, NODE, POD
from lwskit.runtime.objects import (
    Obj,
    annotations_of,
    condition_of,
    generation_of,
    is_deleting,
    labels_of,
    ref_of,
    uid_of,
)
from lwskit.runtime.plan import Event as Record
from lwskit.runtime.request import DONE, Request, Result

NAME = "default-scheduler"
"""The `spec.schedulerName` that this scheduler answers to, and who its events are from."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 10.0
"""Seconds that a pod which fitted nowhere waits at least before it is tried again; they double."""

_LANE = "scheduler"


class Scheduler:
    """Places pods that name it, by resources, selectors, taints and affinity; what fits nowhere waits for a change.

    Preferences, topology spread and preemption are not part of it. Source: Kubernetes documentation, "Kubernetes
    Scheduler", "Pod Scheduling Readiness".
    """

    def __init__(self, client: Client, cache: Cache, clock: Clock, recorder: RecorderLike, name: str = NAME) -> None:
        self._client = client
        self._clock = clock
        self._recorder = recorder
        self._name = name
        self._placement = Placement()
        self._pods = cache.informer(POD)
        self._nodes = cache.informer(NODE)
        self._namespaces = cache.informer(NAMESPACE)
        self._pods.add_view(_PodView(self))
        self._nodes.add_view(_NodeView(self._placement))
        self._namespaces.add_view(_NamespaceView(self._placement))
        self._bound: dict[str, str] = {}
        self._waiting: dict[str, tuple[Request, int, float]] = {}

    async def reconcile(self, request: Request) -> Result:
        """Try to place one pod. Cancelling may leave it bound or not; the next look tells."""
        pod = self._pods.store.get(request.key)
        if pod is None or uid_of(pod) != request.uid or uid_of(pod) in self._bound or not self._is_ours(pod):
            self._waiting.pop(request.uid, None)
            return DONE
        if pod["spec"].get("schedulingGates"):
            await self._gated(pod)
            return DONE
        known = self._waiting.get(request.uid)
        if known is not None and known[2] > self._clock.monotonic():
            return Result(after=known[2] - self._clock.monotonic())
        outcome = self._placement.choose(pod)
        if outcome.node:
            self._waiting.pop(request.uid, None)
            await self._bind(pod, outcome.node)
            return DONE
        tries = known[1] + 1 if known else 0
        wait = min(FIRST_WAIT * 2.0 ** min(tries, 8), LONGEST_WAIT)
        self._waiting[request.uid] = (request, tries, self._clock.monotonic() + wait)
        await self._refuse(pod, outcome.message)
        return DONE

    def _is_ours(self, pod: Obj) -> bool:
        named = pod["spec"].get("schedulerName", NAME) == self._name
        return named and not node_of(pod) and not is_deleting(pod) and not is_terminal(pod)

    async def _bind(self, pod: Obj, node: str) -> None:
        meta, uid = pod["metadata"], uid_of(pod)
        # Counted at once: the next pod must not be given the same room before the watch tells of this one.
        self._bound[uid] = node
        self._placement.put_pod(uid, node, pod)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": uid},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self._client.create(POD, binding, subresource="binding")
        except (NotFound, Conflict):
            self._unbind(uid)
            return
        except BaseException:
            self._unbind(uid)
            raise
        note = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
        self._recorder.event(Record(ref_of(pod, POD), "Scheduled", "Binding", note))

    def _unbind(self, uid: str) -> None:
        if self._bound.pop(uid, None) is not None:
            self._placement.drop_pod(uid)

    async def _refuse(self, pod: Obj, message: str) -> None:
        self._recorder.event(Record(ref_of(pod, POD), "FailedScheduling", "Scheduling", message, "Warning"))
        await self._condition(pod, "Unschedulable", message)

    async def _gated(self, pod: Obj) -> None:
        await self._condition(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")

    async def _condition(self, pod: Obj, reason: str, message: str) -> None:
        """Say in PodScheduled why the pod has no node, unless it says so already."""
        old = condition_of(pod, "PodScheduled") or {}
        if (old.get("status"), old.get("reason"), old.get("message")) == ("False", reason, message):
            return
        moment = old.get("lastTransitionTime") if old.get("status") == "False" else None
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": moment or rfc3339(self._clock.now()),
        }
        if generation_of(pod):
            condition["observedGeneration"] = generation_of(pod)
        meta = pod["metadata"]
        body = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [condition]}}
        with suppress(NotFound, Conflict), another_uid_conflicts():
            await self._client.patch(
                POD, meta["name"], body, meta["namespace"], patch_type=PatchType.STRATEGIC, subresource="status"
            )

    def on_pod(self, old: Obj | None, new: Obj | None) -> None:
        """Keep the nodes' load current."""
        obj = new or old
        if obj is None:
            return
        uid = uid_of(obj)
        if new is None or is_terminal(new):
            self._bound.pop(uid, None)
            self._placement.drop_pod(uid)
        elif node_of(new):
            self._bound.pop(uid, None)
            self._placement.put_pod(uid, node_of(new), new)

    def on_pods(self, objects: Iterable[Obj]) -> None:
        """Start over with the pods of a list; bindings that it does not show yet stay."""
        pods = {uid_of(o): o for o in objects}
        self._placement.clear_pods()
        for uid, node in list(self._bound.items()):
            pod = pods.get(uid)
            if pod is None or node_of(pod):
                del self._bound[uid]
            else:
                self._placement.put_pod(uid, node, pod)
        for pod in pods.values():
            self.on_pod(None, pod)

    def requests(self, event: Event) -> Iterable[Request]:
        """A new pod, one whose gates or labels changed, and all waiting ones when room may have come up."""
        match event:
            case Create(obj) | Generic(obj):
                return self._all_waiting() if node_of(obj) else [_request(obj)]
            case Update(old, new) if not node_of(new):
                return [_request(new)] if _asks_anew(old, new) else []
            case Update(old, new):
                return self._all_waiting() if _leaves_room(old, new) else []
            case Delete(obj):
                self._waiting.pop(uid_of(obj), None)
                return self._all_waiting() if node_of(obj) else []

    def requests_after_change(self, event: Event) -> Iterable[Request]:
        """All waiting pods, when a node came or changed in what matters."""
        if isinstance(event, Delete) or (isinstance(event, Update) and not _node_matters(event.old, event.new)):
            return []
        return self._all_waiting()

    def _all_waiting(self) -> Sequence[Request]:
        return [request for request, _, _ in self._waiting.values()]


class _PodView:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def apply(self, old: Obj | None, new: Obj | None) -> None:
        self._scheduler.on_pod(old, new)

    def replace(self, objects: Iterable[Obj]) -> None:
        self._scheduler.on_pods(objects)


class _NodeView:
    def __init__(self, placement: Placement) -> None:
        self._placement = placement

    def apply(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self._placement.put_node(new)
        elif old is not None:
            self._placement.drop_node(old["metadata"]["name"])

    def replace(self, objects: Iterable[Obj]) -> None:
        nodes = {o["metadata"]["name"]: o for o in objects}
        for gone in self._placement.nodes.keys() - nodes.keys():
            self._placement.drop_node(gone)
        for node in nodes.values():
            self._placement.put_node(node)


class _NamespaceView:
    def __init__(self, placement: Placement) -> None:
        self._placement = placement

    def apply(self, old: Obj | None, new: Obj | None) -> None:
        if new is not None:
            self._placement.namespaces[new["metadata"]["name"]] = labels_of(new)
        elif old is not None:
            self._placement.namespaces.pop(old["metadata"]["name"], None)

    def replace(self, objects: Iterable[Obj]) -> None:
        self._placement.namespaces = {o["metadata"]["name"]: labels_of(o) for o in objects}


def _request(pod: Obj) -> Request:
    meta = pod["metadata"]
    return Request(meta["namespace"], meta["name"], POD.kind, uid_of(pod))


def _asks_anew(old: Obj, new: Obj) -> bool:
    """Whether a pending pod has changed in what decides about its place, so not only in its status."""
    return old["spec"] != new["spec"] or labels_of(old) != labels_of(new) or annotations_of(old) != annotations_of(new)


def _leaves_room(old: Obj, new: Obj) -> bool:
    """Whether a placed pod's change may help others: bound or ended, or with other labels."""
    return is_terminal(new) != is_terminal(old) or not node_of(old) or labels_of(old) != labels_of(new)


def _node_matters(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    allocatable = [(n.get("status") or {}).get("allocatable") for n in (old, new)]
    return (
        labels_of(old) != labels_of(new)
        or (old.get("spec") or {}) != (new.get("spec") or {})
        or allocatable[0] != allocatable[1]
    )


def build(
    client: Client, cache: Cache, clock: Clock, rng: random.Random, recorder: RecorderLike, *, name: str = NAME
) -> Controller:
    """The scheduler for pods with that `spec.schedulerName`, to be run with the cache and the recorder."""
    scheduler = Scheduler(client, cache, clock, recorder, name)
    return (
        Builder(scheduler.reconcile, clock=clock, rng=rng, name="scheduler")
        .watches(cache.informer(NODE), scheduler.requests_after_change)
        .watches(cache.informer(NAMESPACE), lambda _: ())
        .watches(cache.informer(POD), scheduler.requests)
        # One at a time: each placement depends on all before it.
        .build(concurrency=1, lane=lambda _: _LANE)
    )
