"""No write after leadership has ended, however late this process notices (specification: 70 §7)."""

from __future__ import annotations

import copy
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest, HttpResponse, StreamResponse, Transport
from lwskit.runtime.client.wrapping import WrappedClient
from lwskit.runtime.election import LeaderElectionLost

_READS = ("GET", "HEAD", "OPTIONS")


class Leadership(Protocol):
    """Knows whether nobody else can lead."""

    @property
    def may_write(self) -> bool:
        """Whether this process leads and its Lease has not run out."""
        ...


class FencedTransport:
    """Passes reads on to another transport, and writes only while this process leads.

    A reconcile that blocks the event loop for longer than the Lease lasts would otherwise go on with its next write
    before the elector has had a turn to notice. Cancellation is the other transport's.
    """

    def __init__(self, inner: Transport, leadership: Leadership) -> None:
        self._inner = inner
        self._leadership = leadership

    @property
    def url(self) -> str:
        """Where the other transport sends to, if it says so."""
        inner: Any = self._inner
        return inner.url

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        """Send. Raises LeaderElectionLost for a write that would come too late, and what the other transport does."""
        if request.method not in _READS and not self._leadership.may_write:
            raise LeaderElectionLost(f"{request.method} {request.path} was not sent, another process may lead by now")
        return await self._inner.send(request, timeout=timeout)

    def stream(
        self, request: HttpRequest, *, idle_timeout: float | None = None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        """Hand out the other transport's stream."""
        return self._inner.stream(request, idle_timeout=idle_timeout)

    async def close(self) -> None:
        """Close the other transport."""
        await self._inner.close()


def fenced(client: Client, leadership: Leadership) -> Client:
    """The same client, whose writes fail with LeaderElectionLost while this process does not lead."""
    other = copy.copy(client)
    if isinstance(other, WrappedClient):
        other.inner = fenced(other.inner, leadership)
    other.transport = FencedTransport(client.transport, leadership)
    return other
