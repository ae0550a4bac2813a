"""A transport that sends no more than so many requests a second (specification: 70 §6.3, client-side rate limit)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from lwskit.runtime.client.transport import HttpRequest, HttpResponse, StreamResponse, Transport
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.limiters import BucketLimiter


class ThrottledTransport:
    """Passes requests on to `inner`, at most `rate` a second on average and `burst` at once.

    Nothing is limited without it: servers share themselves out fairly. Requests go out in the order in which they came;
    a repeated request counts again, a watch once. Raises ConfigurationError for a rate or burst that lets nothing
    through. A request that is cancelled while it waits for its turn is not sent; otherwise cancellation is the inner
    transport's.
    """

    def __init__(self, inner: Transport, rate: float, burst: int, clock: Clock) -> None:
        if rate <= 0 or burst < 1:
            raise ConfigurationError(f"a limit of {rate:g} requests a second, {burst} at once, lets nothing through")
        self.inner = inner
        self._clock = clock
        self._bucket = BucketLimiter(clock, rate, burst)

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        """`Transport.send`, when it is this request's turn; `timeout` counts from then on.

        Cancelled before its turn, the request is not sent.
        """
        await self._turn()
        return await self.inner.send(request, timeout=timeout)

    def stream(
        self, request: HttpRequest, *, idle_timeout: float | None = None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        """`Transport.stream`, when it is this request's turn."""
        return self._stream(request, idle_timeout)

    @asynccontextmanager
    async def _stream(self, request: HttpRequest, idle_timeout: float | None) -> AsyncIterator[StreamResponse]:
        await self._turn()
        async with self.inner.stream(request, idle_timeout=idle_timeout) as response:
            yield response

    async def close(self) -> None:
        """Close the inner transport."""
        await self.inner.close()

    async def _turn(self) -> None:
        delay = self._bucket.when(None)
        if delay > 0:
            await self._clock.sleep(delay)
