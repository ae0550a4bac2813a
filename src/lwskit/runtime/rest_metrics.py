"""What is counted of the requests to API servers (specification: 70 §10, `rest_client_*`)."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import server_url
from lwskit.runtime.client.transport import HttpRequest, HttpResponse, StreamResponse, Transport
from lwskit.runtime.client.wrapping import WrappedClient
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConnectionFailed
from lwskit.runtime.stats import Histogram

DURATIONS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
SIZES = tuple(float(size) for size in (64, 256, 512, 2**10, 2**12, 2**14, 2**16, 2**18, 2**20, 2**22, 2**24))
FAILED = "<error>"
"""Stands for the code of a request that had no answer."""


class RestStats:
    """Requests by code, method and host; with `details` also how long they took and how large they were."""

    def __init__(self, details: bool = False) -> None:
        self.details = details
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.durations: defaultdict[tuple[str, str], Histogram] = defaultdict(lambda: Histogram(DURATIONS))
        self.request_sizes: defaultdict[tuple[str, str], Histogram] = defaultdict(lambda: Histogram(SIZES))
        self.response_sizes: defaultdict[tuple[str, str], Histogram] = defaultdict(lambda: Histogram(SIZES))


class CountingTransport:
    """Passes requests on to another transport and counts them; `host` is the label, for example `10.0.0.1:443`.

    A watch counts once, when its answer begins. Cancellation is the other transport's.
    """

    def __init__(self, inner: Transport, stats: RestStats, host: str, clock: Clock) -> None:
        self._inner = inner
        self._stats = stats
        self._host = host
        self._clock = clock

    @property
    def url(self) -> str:
        """Where the other transport sends to, if it says so."""
        inner: Any = self._inner
        return inner.url

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        """Send and count. Raises ConnectionFailed, which counts as `<error>`; a cancelled request does not count."""
        began = self._clock.monotonic()
        try:
            response = await self._inner.send(request, timeout=timeout)
        except ConnectionFailed:
            self._stats.requests[FAILED, request.method, self._host] += 1
            raise
        self._stats.requests[str(response.status), request.method, self._host] += 1
        if self._stats.details:
            key = (request.method, self._host)
            self._stats.durations[key].observe(self._clock.monotonic() - began)
            self._stats.request_sizes[key].observe(len(request.body or b""))
            self._stats.response_sizes[key].observe(len(response.body))
        return response

    def stream(
        self, request: HttpRequest, *, idle_timeout: float | None = None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        """Hand out the other transport's stream, counted when it is opened."""
        return self._counted(request, idle_timeout)

    @asynccontextmanager
    async def _counted(self, request: HttpRequest, idle_timeout: float | None) -> AsyncIterator[StreamResponse]:
        opened = False
        try:
            async with self._inner.stream(request, idle_timeout=idle_timeout) as response:
                opened = True
                self._stats.requests[str(response.status), request.method, self._host] += 1
                yield response
        except ConnectionFailed:
            if not opened:
                self._stats.requests[FAILED, request.method, self._host] += 1
            raise

    async def close(self) -> None:
        """Close the other transport."""
        await self._inner.close()


def counted(client: Client, stats: RestStats, clock: Clock) -> Client:
    """The same client, whose requests are counted under the host that it talks to."""
    other = copy.copy(client)
    if isinstance(other, WrappedClient):
        other.inner = counted(other.inner, stats, clock)
    url = server_url(client)
    other.transport = CountingTransport(client.transport, stats, urlsplit(url).netloc or url, clock)
    return other
