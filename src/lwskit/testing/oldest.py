"""The oldest supported Kubernetes, 1.34, played by the embedded server where lists and watches are concerned.

Source: Kubernetes 1.34 documentation, "API concepts", resource versions; answers of kube-apiserver.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import orjson

from lwskit.embedded.failures import status_body, too_large_version
from lwskit.embedded.list_options import check_watch
from lwskit.embedded.store import Store
from lwskit.runtime.client.transport import HttpRequest, HttpResponse, StreamResponse, Transport
from lwskit.runtime.errors import ApiError
from lwskit.testing.interceptors import is_watch

PATIENCE = 3.0
"""Seconds that a server waits for its cache to reach a version that it is asked for."""


class OldestServer:
    """A Transport around one of an embedded server: its lists come from a cache that may be behind.

    `store` is the embedded server's. Without `streaming` streaming lists are refused, as where the gate WatchList is
    off. While the cache `lags`, lists at version 0 show what it has, lists at a later version are waited for and then
    answered 504, watches bring nothing, and lists without a version are as new as ever. Cancellation is the inner
    transport's. Specification: 60 §12; 70 §2.4.
    """

    def __init__(self, inner: Transport, store: Store, *, streaming: bool = True) -> None:
        self._inner = inner
        self._store = store
        self._streaming = streaming
        self._version: int | None = None
        self._fresh = asyncio.Event()
        self._fresh.set()

    @contextmanager
    def lagging(self, behind: int = 0) -> Iterator[None]:
        """Inside the block the server's cache stays as it is now, and what hangs on it with it.

        Or as it was so many versions ago, as that of another API server of the same cluster may be.
        """
        self._version = self._store.version - behind
        self._fresh.clear()
        try:
            yield
        finally:
            self._version = None
            self._fresh.set()

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        """Send; lists are answered as the cache has it. Raises what the inner transport raises."""
        query = dict(request.query)
        asked, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
        cached = asked == "0" or (asked.isdecimal() and not ("limit" in query and not match))
        if request.method != "GET" or not cached or match == "Exact" or self._version is None:
            return await self._inner.send(request, timeout=timeout)
        if int(asked) > self._version and not await self._caught_up():
            body = status_body(too_large_version(int(asked), self._version))
            return _refusal(504, body, {"retry-after": "1"})
        if self._version is not None:
            query |= {"resourceVersion": str(self._version), "resourceVersionMatch": "Exact"}
            query.pop("limit", None)
        return await self._inner.send(replace(request, query=tuple(query.items())), timeout=timeout)

    @asynccontextmanager
    async def stream(self, request: HttpRequest, *, idle_timeout: float | None = None) -> AsyncIterator[StreamResponse]:
        """Open a watch; while the cache lags it brings nothing, whatever it is to begin with."""
        query = dict(request.query)
        try:
            if is_watch(request):
                check_watch(query, streaming=self._streaming)
        except ApiError as e:
            yield _Refused(_refusal(e.code, status_body(e), {}))
            return
        async with self._inner.stream(request, idle_timeout=idle_timeout) as response:
            yield _Held(response, self._fresh)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()

    async def _caught_up(self) -> bool:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._fresh.wait()
        except TimeoutError:
            return False
        return True


def _refusal(code: int, body: dict[str, object], headers: dict[str, str]) -> HttpResponse:
    return HttpResponse(code, orjson.dumps(body), {"content-type": "application/json", **headers})


class _Refused:
    """A refusal where a stream was asked for."""

    def __init__(self, answer: HttpResponse) -> None:
        self.status, self.headers, self._body = answer.status, answer.headers, answer.body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body


class _Held:
    """A stream that brings nothing until the cache is fresh."""

    def __init__(self, inner: StreamResponse, fresh: asyncio.Event) -> None:
        self._inner = inner
        self._fresh = fresh
        self.status, self.headers = inner.status, inner.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner.chunks():
            await self._fresh.wait()
            yield chunk

    async def read(self) -> bytes:
        return await self._inner.read()
