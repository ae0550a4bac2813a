"""The transport that hands requests to a server in this process: no sockets, no threads, any event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from lwskit.embedded.apiserver import ApiServer
from lwskit.runtime.client.transport import HttpRequest, HttpResponse, StreamResponse
from lwskit.runtime.errors import ConnectionFailed

_AGENT = "lwskit/embedded"


class InProcessTransport:
    """Implements `lwskit.runtime.client.transport.Transport` over an ApiServer, as `user`."""

    def __init__(self, server: ApiServer, user: str = "admin") -> None:
        self.server = server
        self.user = user
        self._closed = False

    def _checked(self, request: HttpRequest) -> HttpRequest:
        if self._closed:
            raise ConnectionFailed("the transport is closed", retryable=False)
        if "user-agent" in request.headers:
            return request
        headers = {"user-agent": _AGENT, **request.headers}
        return HttpRequest(request.method, request.path, request.query, headers, request.body)

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        """Answer at once, unless a webhook has to be asked. Raises ConnectionFailed after `close`."""
        return await self.server.handle(self._checked(request), self.user)

    def stream(
        self, request: HttpRequest, *, idle_timeout: float | None = None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        """Open a watch; leaving the context closes it. Raises ConnectionFailed after `close`."""
        return self._stream(self._checked(request), idle_timeout)

    @asynccontextmanager
    async def _stream(self, request: HttpRequest, idle_timeout: float | None) -> AsyncIterator[StreamResponse]:
        stream: Any = self.server.open_watch(request, self.user, idle_timeout)
        try:
            yield stream
        finally:
            stream.close()

    async def close(self) -> None:
        """Later calls raise ConnectionFailed."""
        self._closed = True
