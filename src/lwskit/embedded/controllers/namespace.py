"""The namespace controller: empties namespaces that are being deleted and lets them go."""

from __future__ import annotations

import random

from lwskit.embedded.controllers.discover import served_kinds
from lwskit.embedded.controllers.namespace_content import Content
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock, parse_time, rfc3339
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.predicate import where
from lwskit.runtime.errors import ApiError, Conflict, MethodNotAllowed, NotFound
from lwskit.runtime.kinds import NAMESPACE, POD, Kind
from lwskit.runtime.objects import Obj, is_deleting, uid_of
from lwskit.runtime.request import DONE, Request, Result

FINALIZER = "kubernetes"
"""The finalizer in `spec.finalizers` that this controller removes."""
SHORTEST, LONGEST = 0.1, 5.0
"""Seconds between two looks at a namespace whose content goes slowly; they grow with the time it takes."""


class Namespaces:
    """Deletes everything in a terminating namespace, pods first, then finalizes it.

    Source: Kubernetes documentation, "Namespaces"; API reference: the finalize subresource.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def reconcile(self, request: Request) -> Result:
        """One pass over the namespace that the request names."""
        try:
            namespace = await self._client.get(NAMESPACE, request.name)
        except NotFound:
            return DONE
        if not is_deleting(namespace) or not namespace["spec"].get("finalizers"):
            return DONE
        if (namespace.get("status") or {}).get("phase") != "Terminating":
            namespace = await self._write(namespace, {"phase": "Terminating"})
        content = await self._empty(request.name)
        conditions = content.conditions((namespace.get("status") or {}).get("conditions") or [], self._now())
        if conditions != (namespace.get("status") or {}).get("conditions"):
            namespace = await self._write(namespace, {"conditions": conditions})
        if content.failures or content.remaining:
            since = (self._clock.now() - parse_time(namespace["metadata"]["deletionTimestamp"])).total_seconds()
            return Result(after=max(SHORTEST, min(LONGEST, since / 4)), reason="content remains")
        await self._finalize(namespace)
        return DONE

    async def _empty(self, name: str) -> Content:
        """Delete all content once and count what is left; while pods are left, only them."""
        content = Content()
        kinds = [k for k in await served_kinds(self._client, ("delete", "list")) if k.namespaced]
        await self._clear(POD, name, content)
        if content.remaining or content.failures:
            return content
        for kind in kinds:
            if kind != POD:
                await self._clear(kind, name, content)
        return content

    async def _clear(self, kind: Kind, namespace: str, content: Content) -> None:
        try:
            left = (await self._client.list(kind, namespace)).get("items") or []
            if not left:
                return
            try:
                await self._client.delete_collection(kind, namespace)
            except (MethodNotAllowed, NotFound):
                for obj in left:
                    await self._delete(kind, namespace, obj)
            content.count(kind, (await self._client.list(kind, namespace)).get("items") or [])
        except NotFound:
            # The kind is served no more.
            return
        except ApiError as error:
            content.failures.append(error.message)

    async def _delete(self, kind: Kind, namespace: str, obj: Obj) -> None:
        try:
            await self._client.delete(
                kind, obj["metadata"]["name"], namespace, propagation="Background", uid=uid_of(obj)
            )
        except (NotFound, Conflict):
            return

    async def _write(self, namespace: Obj, status: Obj) -> Obj:
        changed = namespace | {"status": (namespace.get("status") or {}) | status}
        return await self._client.update(NAMESPACE, changed, subresource="status")

    async def _finalize(self, namespace: Obj) -> None:
        rest = [f for f in namespace["spec"].get("finalizers") or () if f != FINALIZER]
        changed = namespace | {"spec": namespace["spec"] | {"finalizers": rest}}
        try:
            await self._client.update(NAMESPACE, changed, subresource="finalize")
        except NotFound:
            return

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def build(client: Client, cache: Cache, clock: Clock, rng: random.Random, *, concurrency: int = 5) -> Controller:
    """The namespace controller, to be run with the cache."""
    namespaces = Namespaces(client, clock)
    builder = Builder(namespaces.reconcile, clock=clock, rng=rng, name="namespace")
    return builder.for_(cache.informer(NAMESPACE), where(is_deleting)).build(concurrency=concurrency)
