"""The client: one method per verb, always live (specification: 70 §6). Cached reads are `lwskit.runtime.cache`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import tenacity

from lwskit.runtime.client import requests
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.client.transport import HttpRequest, HttpResponse, StreamResponse, Transport
from lwskit.runtime.clock import Clock, RealClock
from lwskit.runtime.errors import ApiError, ConnectionFailed
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj

RETRIES = 10
"""How often one call is repeated at most (specification: 70 §6.3)."""


class Client:
    """Requests to one API server.

    `field_manager` is the default for writes. Every method raises the ApiError leaf for the server's answer and
    ConnectionFailed when there is none; a cancelled write may or may not have taken effect.
    """

    def __init__(self, transport: Transport, *, field_manager: str | None = None, clock: Clock | None = None) -> None:
        self.transport = transport
        self.field_manager = field_manager
        self._clock = clock or RealClock()

    async def get(self, kind: Kind, name: str, namespace: str | None = None, subresource: str | None = None) -> Obj:
        """Read one object, or a subresource of it. Raises NotFound."""
        return await self._call(requests.get(kind, namespace, name, subresource))

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
    ) -> Obj:
        """Read a collection as its List object; `metadata.continue` is set when `limit` cut it."""
        params = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": limit,
            "continue": continue_,
            "resourceVersion": resource_version,
            "resourceVersionMatch": resource_version_match,
        }
        return await self._call(requests.list_(kind, namespace, **params))

    async def create(
        self,
        kind: Kind,
        obj: Obj,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
    ) -> Obj:
        """Create and return the stored object. Raises AlreadyExists, Invalid, Forbidden."""
        manager = field_manager or self.field_manager
        return await self._call(
            requests.create(kind, obj, subresource=subresource, dry_run=dry_run, field_manager=manager)
        )

    async def update(
        self,
        kind: Kind,
        obj: Obj,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
    ) -> Obj:
        """Replace and return the stored object. Raises Conflict when `metadata.resourceVersion` is not the latest."""
        manager = field_manager or self.field_manager
        return await self._call(
            requests.update(kind, obj, subresource=subresource, dry_run=dry_run, field_manager=manager)
        )

    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        force: bool | None = None,
    ) -> Obj:
        """Patch and return the stored object. Raises NotFound, Conflict, Invalid."""
        request = requests.patch(
            kind,
            namespace,
            name,
            body,
            patch_type,
            subresource=subresource,
            dry_run=dry_run,
            field_manager=field_manager or self.field_manager,
            force=force,
        )
        return await self._call(request)

    async def apply(
        self,
        kind: Kind,
        obj: Obj,
        *,
        field_manager: str | None = None,
        force: bool = True,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Obj:
        """Server-side apply of the full intent; creates what is absent. Raises Conflict without force."""
        meta = obj["metadata"]
        return await self.patch(
            kind,
            meta["name"],
            obj,
            meta.get("namespace"),
            patch_type=PatchType.APPLY,
            subresource=subresource,
            dry_run=dry_run,
            field_manager=field_manager,
            force=force,
        )

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        propagation: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Obj:
        """Delete; returns the object while it lingers or a Status. Raises NotFound, and Conflict for another UID."""
        request = requests.delete(
            kind,
            namespace,
            name,
            propagation=propagation,
            uid=uid,
            resource_version=resource_version,
            grace_seconds=grace_seconds,
            dry_run=dry_run,
        )
        return await self._call(request)

    async def delete_collection(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str | None = None
    ) -> Obj:
        """Delete everything in a namespace that the selector matches."""
        return await self._call(requests.delete_collection(kind, namespace, labelSelector=label_selector))

    @asynccontextmanager
    async def watch(
        self, kind: Kind, namespace: str | None = None, *, idle_timeout: float | None = None, **params: Any
    ) -> AsyncIterator[StreamResponse]:
        """Open a watch; `params` are the API's query names. Raises the ApiError of a refused one before the body."""
        request = requests.watch(kind, namespace, **params)
        async with self.transport.stream(request, idle_timeout=idle_timeout) as response:
            if response.status >= 400:
                body = await response.read()
                raise requests.read_error(HttpResponse(response.status, body, response.headers))
            yield response

    async def raw(self, method: str, path: str, **params: Any) -> Obj:
        """Any other GET-like request, such as discovery or `/version`."""
        return await self._call(HttpRequest(method, path, requests.query(**params), {"accept": requests.JSON}))

    async def close(self) -> None:
        """Close the transport."""
        await self.transport.close()

    async def _call(self, request: HttpRequest) -> Obj:
        """Send with the only two retries the contract allows (specification: 70 §6.3)."""
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(lambda e: _retry_delay(request, e) is not None),
            wait=lambda state: _retry_delay(request, state.outcome.exception() if state.outcome else None) or 0.0,
            stop=tenacity.stop_after_attempt(RETRIES + 1),
            sleep=self._clock.sleep,
            reraise=True,
        )
        return await retrying(self._once, request)

    async def _once(self, request: HttpRequest) -> Obj:
        return requests.read(await self.transport.send(request))


def _retry_delay(request: HttpRequest, error: BaseException | None) -> float | None:
    """Seconds to wait before the call may be repeated, None when it must not be."""
    if isinstance(error, ApiError) and (error.code == 429 or error.code >= 500) and error.retry_after is not None:
        return error.retry_after
    if isinstance(error, ConnectionFailed) and request.method == "GET":
        return 1.0
    return None
