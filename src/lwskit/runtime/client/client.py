"""The client: one method per verb, always live (specification: 70 §6). Cached reads are `lwskit.runtime.cache`."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, TypeAlias, TypeVar, overload

import structlog
import tenacity

from lwskit.runtime.client import requests
from lwskit.runtime.client.kind import KindClient
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.client.transport import HttpRequest, HttpResponse, StreamResponse, Transport
from lwskit.runtime.clock import Clock, RealClock
from lwskit.runtime.errors import ApiError, ConnectionFailed, Expired
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj
from lwskit.runtime.patch import merge_from

log = structlog.get_logger(__name__)

T = TypeVar("T")
Objects: TypeAlias = list[Obj]

RETRIES = 10
"""How often one call is repeated at most (specification: 70 §6.3)."""
LONGEST_WAIT = 60.0
"""Seconds that a call waits at most because a server says so; longer is the caller's to wait."""
READ_TIME = 60.0
"""Seconds for which a read whose connection was lost is repeated."""
PAGE = 500
"""Objects that `list_all` asks for at once."""

FieldValidation = Literal["Ignore", "Warn", "Strict"]
"""What the server does about unknown and doubled fields: drop them, drop them with a warning, refuse."""


class Client:
    """Requests to one API server.

    `field_manager`, `field_validation` and `dry_run` are the defaults for writes; a method's own argument wins. Every
    method raises the ApiError leaf for the server's answer and ConnectionFailed when there is none; a cancelled write
    may or may not have taken effect. What the server warns of is logged. Specification: 70 §6.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.transport = transport
        self.field_manager = field_manager
        self.field_validation: FieldValidation | None = field_validation
        self.dry_run = dry_run
        self.clock = clock or RealClock()

    def with_defaults(
        self,
        *,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        dry_run: bool | None = None,
    ) -> Client:
        """A client over the same transport whose writes have other defaults; None keeps the present one.

        Reads are as before, and deletions know no field manager. Specification: 70 §6.2.
        """
        other = copy.copy(self)
        other.field_manager = field_manager or self.field_manager
        other.field_validation = field_validation or self.field_validation
        other.dry_run = self.dry_run if dry_run is None else dry_run
        return other

    @overload
    def kind(self, kind: Kind, *, namespace: str | None = None) -> KindClient[Obj]: ...

    @overload
    def kind(self, kind: Kind, shape: type[T], *, namespace: str | None = None) -> KindClient[T]: ...

    def kind(self, kind: Kind, shape: Any = None, *, namespace: str | None = None) -> KindClient[Any]:
        """A handle for one kind, so that it need not be named in each call.

        `shape`, a TypedDict, is what type checkers take its objects for; nothing is converted. `namespace` is where
        the handle's calls go by default. Specification: 70 §6.4.
        """
        return KindClient(self, kind, namespace)

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
        params: Mapping[str, Any] | None = None,
    ) -> Obj:
        """Read a collection as its List object; `metadata.continue` is set when `limit` cut it.

        `params` are further options under the API's own names. Raises Expired for a continue token that is too old.
        """
        options = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": limit,
            "continue": continue_,
            "resourceVersion": resource_version,
            "resourceVersionMatch": resource_version_match,
            **(params or {}),
        }
        return requests.read_list(await self._call(requests.list_(kind, namespace, **options)), kind)

    async def list_all(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        page: int = PAGE,
    ) -> Objects:
        """All objects of a collection as one state of it, read in pages of `page` objects; each names its kind.

        If the pages take so long that the server has forgotten that state, the collection is read again as a whole.
        """
        selectors: dict[str, Any] = {"label_selector": label_selector, "field_selector": field_selector}
        found: Objects = []
        token: str | None = None
        while True:
            try:
                listed = await self.list(kind, namespace, limit=page, continue_=token, **selectors)
            except Expired:
                if token is None:
                    raise
                found, listed = [], await self.list(kind, namespace, **selectors)
            found += [{"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in listed.get("items") or ()]
            token = listed["metadata"].get("continue") or None
            if token is None:
                return found
            # Decoding a page takes the loop's time; the next one waits for whoever else is ready.
            await asyncio.sleep(0)

    async def create(
        self,
        kind: Kind,
        obj: Obj,
        *,
        subresource: str | None = None,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> Obj:
        """Create and return the stored object, whose type may be left out. Raises AlreadyExists, Invalid, Forbidden."""
        options = self._options(dry_run, field_manager, field_validation)
        body = requests.typed(kind, obj, subresource)
        return await self._call(requests.create(kind, body, subresource=subresource, **options))

    async def update(
        self,
        kind: Kind,
        obj: Obj,
        *,
        subresource: str | None = None,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> Obj:
        """Replace and return the stored object; its type may be left out.

        Raises Conflict when `metadata.resourceVersion` is not the latest.
        """
        options = self._options(dry_run, field_manager, field_validation)
        body = requests.typed(kind, obj, subresource)
        return await self._call(requests.update(kind, body, subresource=subresource, **options))

    async def patch(
        self,
        kind: Kind,
        name: str,
        body: Any,
        namespace: str | None = None,
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        force: bool | None = None,
    ) -> Obj:
        """Patch and return the stored object. Raises NotFound, Conflict, Invalid."""
        options = self._options(dry_run, field_manager, field_validation)
        request = requests.patch(
            kind, namespace, name, body, patch_type, subresource=subresource, force=force, **options
        )
        return await self._call(request)

    async def patch_from(
        self,
        kind: Kind,
        original: Obj,
        modified: Obj,
        *,
        optimistic_lock: bool = False,
        subresource: str | None = None,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> Obj:
        """Send what differs between an object as it was read and a changed copy, and return the stored object.

        With `optimistic_lock` it raises Conflict when the object has changed since it was read, and InvalidRequest
        when `original` has no resourceVersion. Without a difference an empty patch is sent. Specification: 70 §6.2.
        """
        meta = requests.metadata(kind, original)
        return await self.patch(
            kind,
            meta.get("name", ""),
            merge_from(original, modified, optimistic_lock=optimistic_lock),
            meta.get("namespace"),
            subresource=subresource,
            dry_run=dry_run,
            field_manager=field_manager,
            field_validation=field_validation,
        )

    async def apply(
        self,
        kind: Kind,
        obj: Obj,
        *,
        field_manager: str | None = None,
        force: bool = True,
        subresource: str | None = None,
        dry_run: bool | None = None,
        field_validation: FieldValidation | None = None,
    ) -> Obj:
        """Server-side apply of the full intent; creates what is absent.

        The object's type may be left out. Raises Conflict without `force` when another manager owns a field of it, and
        InvalidRequest for an object without a name or with managedFields, and without a field manager.
        """
        intent = requests.to_apply(kind, obj)
        meta = intent["metadata"]
        options = self._options(dry_run, field_manager, field_validation)
        request = requests.patch(
            kind,
            meta.get("namespace"),
            meta["name"],
            intent,
            PatchType.APPLY,
            subresource=subresource,
            force=force,
            **options,
        )
        return await self._call(request)

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
        dry_run: bool | None = None,
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
            dry_run=self.dry_run if dry_run is None else dry_run,
        )
        return await self._call(request)

    async def delete_collection(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        propagation: str | None = None,
        grace_seconds: int | None = None,
        dry_run: bool | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Obj:
        """Delete everything in a namespace that the selectors match; `params` are further options by their API names.

        Returns what the server answers: the List of what was there, or a Status.
        """
        request = requests.delete_collection(
            kind,
            namespace,
            propagation=propagation,
            grace_seconds=grace_seconds,
            dry_run=self.dry_run if dry_run is None else dry_run,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            **(params or {}),
        )
        return await self._call(request)

    def watch(
        self, kind: Kind, namespace: str | None = None, *, idle_timeout: float | None = None, **params: Any
    ) -> AbstractAsyncContextManager[StreamResponse]:
        """Open a watch; `params` are the API's query names. Raises the ApiError of a refused one before the body.

        Silence of `idle_timeout` seconds raises ConnectionFailed. Leaving the context, or being cancelled in it, ends
        the watch.
        """
        return self._watch(requests.watch(kind, namespace, **params), idle_timeout)

    @asynccontextmanager
    async def _watch(self, request: HttpRequest, idle_timeout: float | None) -> AsyncIterator[StreamResponse]:
        async with self.transport.stream(request, idle_timeout=idle_timeout) as response:
            _log_warnings(request, response.headers)
            if not requests.is_success(response.status):
                body = await response.read()
                raise requests.read_error(HttpResponse(response.status, body, response.headers), request)
            yield response

    async def raw(self, method: str, path: str, body: Any = None, **params: Any) -> Obj:
        """Any other request whose answer is JSON, such as discovery or `/version`; `body` is sent as JSON."""
        headers, encoded = {"accept": requests.JSON}, None
        if body is not None:
            headers["content-type"], encoded = requests.JSON, requests.encode(body)
        return await self._call(HttpRequest(method, path, requests.query(**params), headers, encoded))

    async def close(self) -> None:
        """Close the transport."""
        await self.transport.close()

    def _options(
        self, dry_run: bool | None, field_manager: str | None, field_validation: FieldValidation | None
    ) -> dict[str, Any]:
        return {
            "dry_run": self.dry_run if dry_run is None else dry_run,
            "field_manager": field_manager or self.field_manager,
            "field_validation": field_validation or self.field_validation,
        }

    async def _call(self, request: HttpRequest) -> Obj:
        """Send with the only two retries the contract allows (specification: 70 §6.3)."""
        began = self.clock.monotonic()

        def wait(error: BaseException | None) -> float | None:
            return _retry_delay(request, error, self.clock.monotonic() - began)

        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(lambda e: wait(e) is not None),
            wait=lambda state: wait(state.outcome.exception() if state.outcome else None) or 0.0,
            stop=tenacity.stop_after_attempt(RETRIES + 1),
            sleep=self.clock.sleep,
            reraise=True,
        )
        return await retrying(self._once, request)

    async def _once(self, request: HttpRequest) -> Obj:
        response = await self.transport.send(request)
        _log_warnings(request, response.headers)
        return requests.read(response, request)


def _log_warnings(request: HttpRequest, headers: Mapping[str, str]) -> None:
    if "warning" in headers:
        for text in requests.warnings(headers):
            log.warning("the API server warns", warning=text, method=request.method, path=request.path)


def _retry_delay(request: HttpRequest, error: BaseException | None, elapsed: float) -> float | None:
    """Seconds to wait before a call may be repeated that has taken `elapsed` so far, None when it must not be."""
    if isinstance(error, ApiError) and (error.code == 429 or error.code >= 500) and error.retry_after is not None:
        return error.retry_after if error.retry_after <= LONGEST_WAIT else None
    if isinstance(error, ConnectionFailed) and request.method == "GET":
        return 1.0 if error.retryable and elapsed < READ_TIME else None
    return None
