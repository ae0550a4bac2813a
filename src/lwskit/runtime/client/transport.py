"""The one seam to the network: a request goes out, an answer or a stream of bytes comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as data: built by `lwskit.runtime.client.requests`, sent by a Transport."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete answer. Header names are lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class StreamResponse(Protocol):
    """An answer whose body arrives in chunks; chunk boundaries fall anywhere.

    When a read is cancelled, what has arrived may be lost.
    """

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Header fields, names in lower case."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Ends when the server closes cleanly; raises ConnectionFailed when it broke."""
        ...

    async def read(self) -> bytes:
        """The rest of the body at once, for answers that turn out to be errors."""
        ...


class Transport(Protocol):
    """Sends requests to one API server."""

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        """Send and read the whole answer within `timeout` seconds (None: the transport's default).

        Raises ConnectionFailed. When cancelled, the request is abandoned and may or may not have taken effect.
        """
        ...

    def stream(
        self, request: HttpRequest, *, idle_timeout: float | None = None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        """Send and hand out the answer while it arrives; silence of `idle_timeout` seconds raises ConnectionFailed."""
        ...

    async def close(self) -> None:
        """Release connections; later calls raise ConnectionFailed. Cancelled, some may stay open."""
        ...
