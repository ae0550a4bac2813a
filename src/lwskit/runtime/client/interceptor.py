"""A client with functions in the place of some verbs: to inject errors, count, delay or change what passes.

For interference below the client, with requests and streams, see `lwskit.testing.interceptors`.
Specification: 70 §6.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import StreamResponse
from lwskit.runtime.client.wrapping import WrappedClient
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj

Hook: TypeAlias = Callable[..., Awaitable[Obj]]
"""Called with the inner client and then the arguments that the verb was called with; returns the answer or raises."""
WatchHook: TypeAlias = Callable[..., AbstractAsyncContextManager[StreamResponse]]
"""As Hook, for a watch: returns the context manager that is entered."""


class InterceptedClient(WrappedClient):
    """A client whose verbs can be taken over one by one; those without a function go to `inner`.

    A function calls on by using the client that it is given. A call with a subresource goes to the function of that
    verb for subresources, and never to the other. `patch_from` arrives as patch, `list_all` as list.
    Specification: 70 §6.4.
    """

    def __init__(
        self,
        inner: Client,
        *,
        get: Hook | None = None,
        list: Hook | None = None,
        create: Hook | None = None,
        update: Hook | None = None,
        patch: Hook | None = None,
        apply: Hook | None = None,
        delete: Hook | None = None,
        delete_collection: Hook | None = None,
        watch: WatchHook | None = None,
        subresource_get: Hook | None = None,
        subresource_create: Hook | None = None,
        subresource_update: Hook | None = None,
        subresource_patch: Hook | None = None,
        subresource_apply: Hook | None = None,
    ) -> None:
        super().__init__(inner)
        self._watch_hook = watch
        self._hooks: dict[str, Hook | None] = {
            "get": get,
            "list": list,
            "create": create,
            "update": update,
            "patch": patch,
            "apply": apply,
            "delete": delete,
            "delete_collection": delete_collection,
            "subresource_get": subresource_get,
            "subresource_create": subresource_create,
            "subresource_update": subresource_update,
            "subresource_patch": subresource_patch,
            "subresource_apply": subresource_apply,
        }

    async def get(self, kind: Kind, name: str, namespace: str | None = None, subresource: str | None = None) -> Obj:
        """`Client.get`, or the function `get` or `subresource_get`."""
        if subresource:
            return await self._call_hook("subresource_get", "get", kind, name, namespace, subresource)
        return await self._call_hook("get", "get", kind, name, namespace)

    async def list(self, *args: Any, **options: Any) -> Obj:
        """`Client.list`, or the function `list`."""
        return await self._call_hook("list", "list", *args, **options)

    async def create(self, *args: Any, **options: Any) -> Obj:
        """`Client.create`, or the function `create` or `subresource_create`."""
        return await self._write("create", *args, **options)

    async def update(self, *args: Any, **options: Any) -> Obj:
        """`Client.update`, or the function `update` or `subresource_update`."""
        return await self._write("update", *args, **options)

    async def patch(self, *args: Any, **options: Any) -> Obj:
        """`Client.patch`, or the function `patch` or `subresource_patch`."""
        return await self._write("patch", *args, **options)

    async def apply(self, *args: Any, **options: Any) -> Obj:
        """`Client.apply`, or the function `apply` or `subresource_apply`."""
        return await self._write("apply", *args, **options)

    async def delete(self, *args: Any, **options: Any) -> Obj:
        """`Client.delete`, or the function `delete`."""
        return await self._call_hook("delete", "delete", *args, **options)

    async def delete_collection(self, *args: Any, **options: Any) -> Obj:
        """`Client.delete_collection`, or the function `delete_collection`."""
        return await self._call_hook("delete_collection", "delete_collection", *args, **options)

    def watch(self, *args: Any, **options: Any) -> AbstractAsyncContextManager[StreamResponse]:
        """`Client.watch`, or the function `watch`."""
        if self._watch_hook is not None:
            return self._watch_hook(self.inner, *args, **options)
        return self.inner.watch(*args, **options)

    async def _write(self, verb: str, *args: Any, **options: Any) -> Obj:
        name = f"subresource_{verb}" if options.get("subresource") else verb
        return await self._call_hook(name, verb, *args, **options)

    async def _call_hook(self, name: str, verb: str, *args: Any, **options: Any) -> Obj:
        hook = self._hooks[name]
        if hook is not None:
            return await hook(self.inner, *args, **options)
        return await getattr(self.inner, verb)(*args, **options)
