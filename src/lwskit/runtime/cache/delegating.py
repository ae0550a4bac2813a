"""A client whose reads come from a cache: what a reconciler written for controller-runtime's split expects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.reader import Reader, copy_of
from lwskit.runtime.client.client import PAGE, Client, Objects
from lwskit.runtime.client.wrapping import WrappedClient
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj, is_deleting


class DelegatingClient(WrappedClient):
    """Reads from a running cache and writes through `client`; what it has written, it reads back.

    Reads go to the server for kinds in `live`, of subresources, and for lists of a certain resourceVersion or page.
    A kind read for the first time gets an informer, and the read waits for its first list, unless `fail_on_missing`.
    `inner` is the client for strong reads. Specification: 70 §2.12, §6.1.
    """

    def __init__(
        self, client: Client, cache: Cache, *, live: Collection[Kind] = (), fail_on_missing: bool = False
    ) -> None:
        super().__init__(client)
        self._cache = cache
        self._live = frozenset(live)
        self.reader = Reader(cache, fail_on_missing=fail_on_missing)
        """The cached reads alone; indexes for field selectors are added to it."""

    async def get(self, kind: Kind, name: str, namespace: str | None = None, subresource: str | None = None) -> Obj:
        """One object, a copy unless the cache's settings share it. Raises NotFound; ConfigurationError before it runs.

        Cancelling it while it waits for a first list ends only the wait.
        """
        if subresource or kind in self._live:
            return await self.inner.get(kind, name, namespace, subresource)
        return _typed(kind, await self.reader.get(kind, name, namespace))

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int | None = None,
        continue_: str | None = None,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Obj:
        """A List object without a resourceVersion: items in no order, at most `limit`, copies as `get` gives them.

        Raises InvalidRequest for a field selector without an index, and ConfigurationError before the cache runs.
        Cancelling it while it waits for a first list ends only the wait.
        """
        if kind in self._live or continue_ or resource_version or resource_version_match or params:
            return await self.inner.list(
                kind,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_=continue_,
                resource_version=resource_version,
                resource_version_match=resource_version_match,
                params=params,
            )
        items = await self.reader.list(
            kind, namespace, label_selector=label_selector, field_selector=field_selector, limit=limit
        )
        return {
            "apiVersion": kind.api_version,
            "kind": f"{kind.kind}List",
            "metadata": {},
            "items": [_typed(kind, item) for item in items],
        }

    async def list_all(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        page: int = PAGE,
    ) -> Objects:
        """All objects that the selectors match; `page` counts only for kinds that are read from the server."""
        options: dict[str, Any] = {"label_selector": label_selector, "field_selector": field_selector}
        if kind in self._live:
            return await self.inner.list_all(kind, namespace, page=page, **options)
        return (await self.list(kind, namespace, **options))["items"]

    async def create(self, kind: Kind, obj: Obj, **options: Any) -> Obj:
        """`Client.create`; the cache is told the answer."""
        return self._told(kind, await self.inner.create(kind, obj, **options), options)

    async def update(self, kind: Kind, obj: Obj, **options: Any) -> Obj:
        """`Client.update`; the cache is told the answer."""
        return self._told(kind, await self.inner.update(kind, obj, **options), options)

    async def patch(self, kind: Kind, name: str, body: Any, namespace: str | None = None, **options: Any) -> Obj:
        """`Client.patch`; the cache is told the answer."""
        return self._told(kind, await self.inner.patch(kind, name, body, namespace, **options), options)

    async def apply(self, kind: Kind, obj: Obj, **options: Any) -> Obj:
        """`Client.apply`; the cache is told the answer."""
        return self._told(kind, await self.inner.apply(kind, obj, **options), options)

    async def delete(self, kind: Kind, name: str, namespace: str | None = None, **options: Any) -> Obj:
        """`Client.delete`; the cache is told the answer."""
        answer = await self.inner.delete(kind, name, namespace, **options)
        gone = answer.get("kind") == "Status" and answer.get("status") == "Success"
        if not gone:
            if (answer.get("metadata") or {}).get("uid") and is_deleting(answer):
                self._told(kind, answer, options)
        elif not self._is_dry(options) and (uid := (answer.get("details") or {}).get("uid")):
            self._cache.forget(kind, Key(namespace or "", name), uid)
        return answer

    def _told(self, kind: Kind, answer: Obj, options: Mapping[str, Any]) -> Obj:
        if not self._is_dry(options) and answer.get("kind") == kind.kind and answer["metadata"].get("uid"):
            # The cache keeps the answer, the caller may change its own.
            self._cache.ingest(kind, copy_of(answer))
        return answer

    def _is_dry(self, options: Mapping[str, Any]) -> bool:
        asked = options.get("dry_run")
        return self.dry_run if asked is None else bool(asked)


def _typed(kind: Kind, obj: Obj) -> Obj:
    """Objects that came in lists carry no type."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
