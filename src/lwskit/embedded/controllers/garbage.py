"""The garbage collector: watches objects of every kind and removes what has lost its owners."""

from __future__ import annotations

import asyncio
import random

import structlog

from lwskit.embedded.controllers import garbage_graph as graphs
from lwskit.embedded.controllers.discover import custom_kind, served_kinds
from lwskit.embedded.controllers.garbage_graph import Graph, Node, Verdict
from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.discovery import Discovery
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.source import FunctionSource
from lwskit.runtime.errors import ConfigurationError, Conflict, Invalid, LwskitError, NotFound
from lwskit.runtime.execute import RecorderLike
from lwskit.runtime.kinds import CORE_EVENT, CUSTOM_RESOURCE_DEFINITION, EVENT, Kind
from lwskit.runtime.objects import Key, Obj, ObjectRef, is_deleting, uid_of, version_of
from lwskit.runtime.plan import Event
from lwskit.runtime.queue import WorkQueue
from lwskit.runtime.request import DONE, Request, Result

COMPONENT = "garbage-collector-controller"
"""Who the events of this controller are from."""
REMEMBERED = 1000
"""How many UIDs of owners that are gone are remembered."""
RETRY = 1.0
"""Seconds until the kinds are asked for again when the server does not answer."""

_IGNORED = {CORE_EVENT, EVENT}

_log = structlog.get_logger(__name__)


class GarbageCollector:
    """Deletes dependents, holds back owners that are deleted in the foreground, and cuts orphans loose.

    Kinds are found by discovery at the start, those of CustomResourceDefinitions as they come and go.
    Source: Kubernetes documentation, "Garbage Collection" and "Use Cascading Deletion in a Cluster".
    """

    def __init__(
        self, client: Client, clock: Clock, rng: random.Random, recorder: RecorderLike, *, concurrency: int = 8
    ) -> None:
        self.graph = Graph()
        self._client = client
        self._clock = clock
        self._rng = rng
        self._recorder = recorder
        self._discovery = Discovery(client)
        self._queue: WorkQueue[Request] = WorkQueue(clock, lane=lambda request: request.uid)
        self._controller = Controller(
            "garbage-collector",
            self.reconcile,
            [FunctionSource(lambda _: None)],
            clock=clock,
            rng=rng,
            concurrency=concurrency,
            queue=self._queue,
        )
        self.ready = asyncio.Event()
        """Set when all objects are known."""
        self._absent: dict[str, None] = {}
        self._unresolved: dict[str, None] = {}
        self._watched: dict[Kind, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Watch and collect until cancelled."""
        async with asyncio.TaskGroup() as group:
            informers = [self._watch(group, kind) for kind in await self._kinds()]
            definitions = Informer(CUSTOM_RESOURCE_DEFINITION, self._client, self._clock, self._rng)
            definitions.add_handler(_Definitions(self, group))
            group.create_task(definitions.run(), name="garbage collector: custom resources")
            for informer in informers:
                await informer.wait_synced()
            await definitions.wait_synced()
            self.ready.set()
            await self._controller.run()

    async def _kinds(self) -> list[Kind]:
        while True:
            try:
                return [k for k in await served_kinds(self._client, ("list", "watch", "delete")) if k not in _IGNORED]
            except LwskitError as error:
                _log.warning("the kinds are not known yet", error=str(error))
                await self._clock.sleep(RETRY)

    def _watch(self, group: asyncio.TaskGroup, kind: Kind) -> Informer:
        informer = Informer(kind, self._client, self._clock, self._rng, transform=_bare)
        informer.add_handler(_Objects(self, kind))
        self._watched[kind] = group.create_task(informer.run(), name=f"garbage collector: {kind.qualified}")
        return informer

    def define(self, group: asyncio.TaskGroup, definition: Obj) -> None:
        """Watch the kind of a definition that has been established; where its version has changed, the new one."""
        kind = custom_kind(definition)
        if kind is None or kind in self._watched:
            return
        self.withdraw(definition, other_than=kind)
        self._watch(group, kind)
        for uid in list(self._unresolved):
            self._look(uid)
        self._unresolved.clear()

    def withdraw(self, definition: Obj, other_than: Kind | None = None) -> None:
        """Forget the kinds of a definition."""
        spec = definition["spec"]
        for kind in [k for k in self._watched if (k.group, k.plural) == (spec["group"], spec["names"]["plural"])]:
            if kind != other_than:
                self._watched.pop(kind).cancel()
                self._look_at(self.graph.drop_kind(kind))

    def observed(self, kind: Kind, obj: Obj) -> None:
        """Take in an object that came or changed."""
        self._look_at(self.graph.observe(kind, obj))

    def gone(self, obj: Obj) -> None:
        """Take in that an object is gone."""
        self._mark_absent(uid_of(obj))
        self._look_at(self.graph.remove(uid_of(obj)))

    def _mark_absent(self, uid: str) -> None:
        self._absent[uid] = None
        if len(self._absent) > REMEMBERED:
            del self._absent[next(iter(self._absent))]

    def _look_at(self, uids: list[str]) -> None:
        for uid in uids:
            self._look(uid)

    def _look(self, uid: str) -> None:
        node = self.graph.nodes.get(uid)
        if node is not None:
            namespace, name = node.identity.key
            self._queue.add(Request(namespace, name, node.identity.kind.qualified, uid))

    async def reconcile(self, request: Request) -> Result:
        """Look at one object: remove it, its finalizer or its dangling references, as its owners demand."""
        node = self.graph.nodes.get(request.uid)
        if node is None:
            return DONE
        try:
            if node.orphaning:
                return await self._orphan(node)
            if node.foreground:
                return await self._foreground(node)
            return DONE if node.deleting else await self._collect(node)
        except Conflict as error:
            return Result(requeue=True, reason=f"it has changed meanwhile: {error}")

    async def _orphan(self, node: Node) -> Result:
        for dependent in self.graph.dependents_of(node.identity.uid):
            live = await self._get(dependent)
            if live is not None:
                rest = graphs.without_owners(live["metadata"].get("ownerReferences") or (), [node.identity.uid])
                await self._set_owners(dependent, live, rest)
        await self._finish(node, graphs.ORPHAN)
        return DONE

    async def _foreground(self, node: Node) -> Result:
        blocking = self.graph.blocking(node.identity.uid)
        if not blocking:
            await self._finish(node, graphs.FOREGROUND)
        for dependent in blocking:
            if not dependent.foreground:
                self._look(dependent.identity.uid)
        return DONE

    async def _collect(self, node: Node) -> Result:
        live = await self._get(node)
        if live is None:
            self._look_at(self.graph.remove(node.identity.uid))
            return DONE
        refs = live["metadata"].get("ownerReferences") or ()
        if not refs or is_deleting(live):
            return DONE
        verdict = await self._classify(node, tuple(refs))
        lost = [r["uid"] for r in (*verdict.dangling, *verdict.waiting)]
        if verdict.solid:
            if lost:
                await self._set_owners(node, live, graphs.without_owners(refs, lost))
            return DONE
        dependents = self.graph.dependents_of(node.identity.uid)
        propagation = graphs.propagation_for(live)
        if verdict.waiting and dependents:
            if any(d.foreground for d in dependents):
                # A circle of owners would wait for itself.
                live = await self._set_owners(node, live, graphs.unblocked(refs))
            propagation = "Foreground"
        await self._delete(node, live, propagation)
        return DONE

    async def _classify(self, node: Node, refs: tuple[Obj, ...]) -> Verdict:
        kinds: dict[str, list[Obj]] = {"solid": [], "dangling": [], "waiting": []}
        for ref in refs:
            kinds[await self._state_of(node, ref)].append(ref)
        return Verdict(*(tuple(kinds[k]) for k in ("solid", "dangling", "waiting")))

    async def _state_of(self, node: Node, ref: Obj) -> str:
        """Whether an owner is there (`solid`), gone (`dangling`), or `waiting` for its dependents to go."""
        known = self.graph.owner_of(node, ref)
        if known is not None:
            return "waiting" if known.foreground else "solid"
        if ref["uid"] in self._absent:
            return "dangling"
        self._report_namespace(node, ref)
        try:
            kind = await self._discovery.find(ref["apiVersion"], ref["kind"])
        except ConfigurationError:
            # Nobody knows whether an owner of an unknown kind is there.
            self._unresolved[node.identity.uid] = None
            return "solid"
        namespace = node.identity.key.namespace if kind.namespaced else ""
        if kind.namespaced and not namespace:
            return "solid"
        try:
            owner = await self._client.get(kind, ref["name"], namespace or None)
        except NotFound:
            owner = {"metadata": {}}
        if uid_of(owner) != ref["uid"]:
            if ref["uid"] not in self.graph.nodes:
                self._mark_absent(ref["uid"])
            return "dangling"
        waiting = is_deleting(owner) and graphs.FOREGROUND in (owner["metadata"].get("finalizers") or ())
        return "waiting" if waiting else "solid"

    def _report_namespace(self, node: Node, ref: Obj) -> None:
        owner = self.graph.nodes.get(ref["uid"])
        key = node.identity.key
        if owner is None or not owner.identity.key.namespace or owner.identity.key.namespace == key.namespace:
            return
        kind = node.identity.kind
        what = (
            f"[{ref['apiVersion']}/{ref['kind']}, namespace: {key.namespace}, name: {ref['name']}, uid: {ref['uid']}]"
        )
        note = f'ownerRef {what} does not exist in namespace "{key.namespace}"'
        regarding = ObjectRef(kind.api_version, kind.kind, key.namespace, key.name, node.identity.uid)
        reason = "OwnerRefInvalidNamespace"
        self._recorder.event(Event(regarding, reason, reason, note, "Warning"))

    async def _get(self, node: Node) -> Obj | None:
        """The object as it is now, None when it is gone or another one has its name."""
        key: Key = node.identity.key
        try:
            live = await self._client.get(node.identity.kind, key.name, key.namespace or None)
        except NotFound:
            return None
        return live if uid_of(live) == node.identity.uid else None

    async def _set_owners(self, node: Node, live: Obj, refs: list[Obj]) -> Obj:
        if refs == (live["metadata"].get("ownerReferences") or []):
            return live
        return await self._patch(node, live, {"ownerReferences": refs or None})

    async def _finish(self, node: Node, finalizer: str) -> None:
        """Remove a finalizer from an owner whose dependents are dealt with."""
        live = await self._get(node)
        if live is None:
            return
        rest = graphs.without_finalizer(live["metadata"].get("finalizers") or (), finalizer)
        if rest is not None:
            await self._patch(node, live, {"finalizers": rest or None})

    async def _patch(self, node: Node, live: Obj, meta: Obj) -> Obj:
        """Change metadata of the object as it was read. Raises Conflict when it has changed since."""
        key = node.identity.key
        body = {"metadata": meta | {"resourceVersion": version_of(live), "uid": node.identity.uid}}
        try:
            return await self._client.patch(node.identity.kind, key.name, body, key.namespace or None)
        except NotFound:
            return live

    async def _delete(self, node: Node, live: Obj, propagation: str) -> None:
        kind, key, uid = node.identity.kind, node.identity.key, node.identity.uid
        namespace = key.namespace or None
        try:
            await self._client.delete(
                kind, key.name, namespace, propagation=propagation, uid=uid, resource_version=version_of(live)
            )
        except NotFound:
            self._look_at(self.graph.remove(uid))
        except (Conflict, Invalid):
            again = await self._get(node)
            same = again is not None and again["metadata"].get("ownerReferences") == live["metadata"]["ownerReferences"]
            if not same:
                # Its owners have changed or it is gone: decide anew.
                self._look(uid)
                return
            await self._client.delete(kind, key.name, namespace, propagation=propagation, uid=uid)


class _Objects:
    """Feeds the graph from one informer."""

    def __init__(self, collector: GarbageCollector, kind: Kind) -> None:
        self._collector = collector
        self._kind = kind

    def on_add(self, obj: Obj, initial: bool) -> None:
        self._collector.observed(self._kind, obj)

    def on_update(self, old: Obj, new: Obj) -> None:
        self._collector.observed(self._kind, new)

    def on_delete(self, obj: Obj, unknown: bool) -> None:
        self._collector.gone(obj)


class _Definitions:
    """Tells the collector which custom kinds there are."""

    def __init__(self, collector: GarbageCollector, group: asyncio.TaskGroup) -> None:
        self._collector = collector
        self._group = group

    def on_add(self, obj: Obj, initial: bool) -> None:
        self._collector.define(self._group, obj)

    def on_update(self, old: Obj, new: Obj) -> None:
        self._collector.define(self._group, new)

    def on_delete(self, obj: Obj, unknown: bool) -> None:
        self._collector.withdraw(obj)


def _bare(obj: Obj) -> Obj:
    """What the graph needs of an object."""
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "deletionTimestamp", "finalizers", "ownerReferences")
    return {"metadata": {k: meta[k] for k in kept if k in meta}}


def build(client: Client, clock: Clock, rng: random.Random, recorder: RecorderLike) -> GarbageCollector:
    """The garbage collector; it keeps its own watches, since it needs no more than the metadata of objects."""
    return GarbageCollector(client, clock, rng, recorder)
