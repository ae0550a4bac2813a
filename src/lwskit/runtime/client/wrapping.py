"""A client around a client: the base of those that change what some verbs do."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from lwskit.runtime.client.client import Client, FieldValidation
from lwskit.runtime.client.transport import StreamResponse
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj


class WrappedClient(Client):
    """Passes every verb on to `inner`, whose defaults count. Subclasses override what they change."""

    def __init__(self, inner: Client) -> None:
        super().__init__(
            inner.transport,
            field_manager=inner.field_manager,
            field_validation=inner.field_validation,
            dry_run=inner.dry_run,
            clock=inner.clock,
        )
        self.inner = inner
        """The client that is wrapped."""

    def with_defaults(
        self,
        *,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        dry_run: bool | None = None,
    ) -> Client:
        """The same wrapping around an inner client with other defaults (`Client.with_defaults`)."""
        other = copy.copy(self)
        other.inner = self.inner.with_defaults(
            field_manager=field_manager, field_validation=field_validation, dry_run=dry_run
        )
        other.field_manager = other.inner.field_manager
        other.field_validation = other.inner.field_validation
        other.dry_run = other.inner.dry_run
        return other

    async def get(self, kind: Kind, name: str, namespace: str | None = None, subresource: str | None = None) -> Obj:
        """`Client.get` of the inner client."""
        return await self.inner.get(kind, name, namespace, subresource)

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
        """`Client.list` of the inner client."""
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

    async def create(self, *args: Any, **options: Any) -> Obj:
        """`Client.create` of the inner client."""
        return await self.inner.create(*args, **options)

    async def update(self, *args: Any, **options: Any) -> Obj:
        """`Client.update` of the inner client."""
        return await self.inner.update(*args, **options)

    async def patch(self, *args: Any, **options: Any) -> Obj:
        """`Client.patch` of the inner client."""
        return await self.inner.patch(*args, **options)

    async def apply(self, *args: Any, **options: Any) -> Obj:
        """`Client.apply` of the inner client."""
        return await self.inner.apply(*args, **options)

    async def delete(self, *args: Any, **options: Any) -> Obj:
        """`Client.delete` of the inner client."""
        return await self.inner.delete(*args, **options)

    async def delete_collection(self, *args: Any, **options: Any) -> Obj:
        """`Client.delete_collection` of the inner client."""
        return await self.inner.delete_collection(*args, **options)

    def watch(self, *args: Any, **options: Any) -> AbstractAsyncContextManager[StreamResponse]:
        """`Client.watch` of the inner client."""
        return self.inner.watch(*args, **options)

    async def raw(self, *args: Any, **options: Any) -> Obj:
        """`Client.raw` of the inner client."""
        return await self.inner.raw(*args, **options)

    async def close(self) -> None:
        """Close the inner client."""
        await self.inner.close()
