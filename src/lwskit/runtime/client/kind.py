"""Handles for one kind: a client's verbs without naming the kind in each call, typed by a TypedDict where wanted."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast

from lwskit.runtime.client import requests
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.client.transport import StreamResponse
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj

if TYPE_CHECKING:
    from lwskit.runtime.client.client import Client

T = TypeVar("T")
_Many: TypeAlias = list[T]


class SubresourceClient(Generic[T]):
    """The verbs of one subresource of a kind. Made by KindClient (specification: 70 §6.1).

    Errors and cancellation are those of the client's methods.
    """

    def __init__(self, client: Client, kind: Kind, name: str, namespace: str | None = None) -> None:
        self._client = client
        self._kind = kind
        self._namespace = namespace
        self.name = name
        """The subresource's name in paths."""

    async def get(self, name: str, namespace: str | None = None) -> T:
        """Read it, always from the server. Raises NotFound."""
        return cast(T, await self._client.get(self._kind, name, namespace or self._namespace, self.name))

    async def create(self, obj: T, **options: Any) -> T:
        """Create it for the object that `obj` names, such as an eviction; `options` are those of Client.create."""
        return cast(T, await self._client.create(self._kind, _obj(obj), subresource=self.name, **options))

    async def update(self, obj: T, **options: Any) -> T:
        """Replace it; `options` are those of Client.update. Raises Conflict for a stale resourceVersion."""
        return cast(T, await self._client.update(self._kind, _obj(obj), subresource=self.name, **options))

    async def patch(self, name: str, body: Any, namespace: str | None = None, **options: Any) -> T:
        """Patch it; `options` are those of Client.patch."""
        where = namespace or self._namespace
        return cast(T, await self._client.patch(self._kind, name, body, where, subresource=self.name, **options))

    async def patch_from(self, original: T, modified: T, **options: Any) -> T:
        """Send what differs between two states; `options` are those of Client.patch_from."""
        before, after = _obj(original), _obj(modified)
        return cast(T, await self._client.patch_from(self._kind, before, after, subresource=self.name, **options))

    async def apply(self, obj: T, **options: Any) -> T:
        """Server-side apply of it; `options` are those of Client.apply."""
        return cast(T, await self._client.apply(self._kind, _obj(obj), subresource=self.name, **options))


class KindClient(Generic[T]):
    """The verbs for one kind. Made by `Client.kind`; errors and cancellation are those of the client's methods.

    `namespace` is where calls go that name none. Objects are plain dicts whatever T says. Specification: 70 §6.4.
    """

    def __init__(self, client: Client, kind: Kind, namespace: str | None = None) -> None:
        self._client = client
        self.kind = kind
        self.namespace = namespace

    def in_namespace(self, namespace: str) -> KindClient[T]:
        """The same handle with another default namespace."""
        return KindClient(self._client, self.kind, namespace)

    @property
    def status(self) -> SubresourceClient[T]:
        """The status subresource, whose objects are whole objects of the kind."""
        return SubresourceClient(self._client, self.kind, "status", self.namespace)

    @property
    def scale(self) -> SubresourceClient[Obj]:
        """The scale subresource, whose objects are `autoscaling/v1` Scales."""
        return self.subresource("scale")

    def subresource(self, name: str) -> SubresourceClient[Obj]:
        """Any other subresource, such as `eviction` or `token`."""
        return SubresourceClient(self._client, self.kind, name, self.namespace)

    async def get(self, name: str, namespace: str | None = None) -> T:
        """Read one object. Raises NotFound."""
        return cast(T, await self._client.get(self.kind, name, namespace or self.namespace))

    async def list(
        self,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> _Many[T]:
        """All objects that the selectors match, in a list; read in pages (`Client.list_all`)."""
        found = await self._client.list_all(
            self.kind,
            namespace or self.namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        return cast("_Many[T]", found)

    async def create(self, obj: T, **options: Any) -> T:
        """Create and return the stored object; `options` are those of Client.create. Raises AlreadyExists."""
        return cast(T, await self._client.create(self.kind, self._placed(obj), **options))

    async def update(self, obj: T, **options: Any) -> T:
        """Replace and return the stored object; `options` are those of Client.update. Raises Conflict."""
        return cast(T, await self._client.update(self.kind, self._placed(obj), **options))

    async def patch(
        self,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        patch_type: PatchType = PatchType.MERGE,
        **options: Any,
    ) -> T:
        """Patch and return the stored object; `options` are those of Client.patch. Raises NotFound, Conflict."""
        where = namespace or self.namespace
        return cast(T, await self._client.patch(self.kind, name, body, where, patch_type=patch_type, **options))

    async def patch_from(self, original: T, modified: T, *, optimistic_lock: bool = False, **options: Any) -> T:
        """Send what differs between two states of an object; `options` are those of Client.patch_from."""
        before, after = _obj(original), _obj(modified)
        answer = await self._client.patch_from(self.kind, before, after, optimistic_lock=optimistic_lock, **options)
        return cast(T, answer)

    async def apply(self, obj: T, **options: Any) -> T:
        """Server-side apply of the full intent; `options` are those of Client.apply. Raises Conflict without force."""
        return cast(T, await self._client.apply(self.kind, self._placed(obj), **options))

    async def delete(self, name: str, namespace: str | None = None, **options: Any) -> Obj:
        """Delete; returns the object while it lingers or a Status. `options` are those of Client.delete."""
        return await self._client.delete(self.kind, name, namespace or self.namespace, **options)

    async def delete_collection(self, namespace: str | None = None, **options: Any) -> Obj:
        """Delete what the selectors among `options` match; they are those of Client.delete_collection."""
        return await self._client.delete_collection(self.kind, namespace or self.namespace, **options)

    def watch(
        self, namespace: str | None = None, *, idle_timeout: float | None = None, **params: Any
    ) -> AbstractAsyncContextManager[StreamResponse]:
        """Open a watch, as Client.watch does."""
        return self._client.watch(self.kind, namespace or self.namespace, idle_timeout=idle_timeout, **params)

    def _placed(self, obj: T) -> Obj:
        """The object with the handle's namespace where it names none."""
        plain = _obj(obj)
        meta = requests.metadata(self.kind, plain)
        if not self.namespace or not self.kind.namespaced or meta.get("namespace"):
            return plain
        return {**plain, "metadata": {**meta, "namespace": self.namespace}}


def _obj(obj: object) -> Obj:
    """What T stands for at run time."""
    return dict(obj) if isinstance(obj, Mapping) and not isinstance(obj, dict) else cast(Obj, obj)
