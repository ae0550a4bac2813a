"""An HTTP server on one address that ends within two seconds: what webhooks, probes and metrics are served by."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from aiohttp import web

from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.tls import ServerCertificates

log = structlog.get_logger(__name__)

SHUTDOWN = 1.0
"""Seconds that open requests have to end."""
IDLE = 90.0
"""Seconds after which a connection without a request is closed."""
HEAD = 32.0
"""Seconds that a new connection has to send the head of its first request (specification: 70 §8.1)."""
FAREWELL = 0.1
"""Seconds that the other side of a closed connection has to take notice; TLS would wait for longer."""
HEADERS = 1024 * 1024
"""Bytes that one line of a request's head may have."""
_BACKLOG = 128

Serve = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`, `:port` or `[v6]:port`; an empty host is every address.

    Raises ConfigurationError for anything else.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigurationError(f"{text!r} is not an address; write HOST:PORT or :PORT, with a port up to 65535")
    return host.removeprefix("[").removesuffix("]"), int(port)


_SETTINGS: dict[str, Any] = {
    "access_log": None,
    "keepalive_timeout": IDLE,
    "max_line_size": HEADERS,
    "max_field_size": HEADERS,
}


class _Connection(web.RequestHandler):
    """A connection that is closed when its first request takes too long to begin; later ones have the idle time."""

    __slots__ = ("_server", "_waiting")

    def __init__(self, server: _Server) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **_SETTINGS)
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        self._server.open[self] = transport
        self._waiting = asyncio.get_running_loop().call_later(HEAD, transport.close)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._waiting.cancel()
        self._server.forget(self)
        super().connection_lost(exc)

    def head_received(self) -> None:
        self._waiting.cancel()


class _Server(web.Server):
    """aiohttp's server, with connections of the kind above."""

    def __init__(self, serve: Serve) -> None:
        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            connection = request.protocol
            assert isinstance(connection, _Connection)
            connection.head_received()
            return await serve(request)

        super().__init__(answer)
        self.open: dict[_Connection, asyncio.Transport] = {}
        self._alone = asyncio.Event()

    def __call__(self) -> web.RequestHandler:
        return _Connection(self)

    async def part(self) -> None:
        """After all were closed: break off the connections whose other side does not take notice."""
        if not self.open:
            return
        self._alone.clear()
        try:
            async with asyncio.timeout(FAREWELL):
                await self._alone.wait()
        except TimeoutError:
            for transport in self.open.values():
                transport.abort()
            await asyncio.sleep(0)

    def forget(self, connection: _Connection) -> None:
        """A connection is gone."""
        self.open.pop(connection, None)
        if not self.open:
            self._alone.set()


class Listener:
    """Binds an address and serves it. `name` is for messages; port 0 takes any free one, see `port`.

    Raises ConfigurationError for what is no port.
    """

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        serve: Serve,
        *,
        certificates: ServerCertificates | None = None,
        shutdown_timeout: float = SHUTDOWN,
    ) -> None:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
            raise ConfigurationError(
                f"{name} cannot listen on port {port}; choose one up to 65535, or 0 for any free one"
            )
        self.name = name
        self.serving = asyncio.Event()
        """Set while requests are answered."""
        self._address = (host, port)
        self._serve = serve
        self._certificates = certificates
        self._shutdown_timeout = shutdown_timeout
        self._socket: socket.socket | None = None

    def bind(self) -> int:
        """Take the address now, unless it is taken already, and return its port.

        Raises ConfigurationError when it is in use or not ours.
        """
        if self._socket is None:
            host, port = self._address
            try:
                self._socket = _listen(host, port)
            except OSError as error:
                where = f"{host or '*'}:{port}"
                reason = os.strerror(error.errno) if error.errno else error
                raise ConfigurationError(
                    f"{self.name} cannot listen on {where}: {reason}; choose another address or port"
                ) from error
        return self.port

    @property
    def port(self) -> int:
        """The port that is listened on. Raises ConfigurationError before `bind`."""
        if self._socket is None:
            raise ConfigurationError(f"{self.name} does not listen yet")
        return self._socket.getsockname()[1]

    def close(self) -> None:
        """Give an address back that was bound but never served."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def run(self) -> None:
        """Serve until cancelled; then open requests get `shutdown_timeout` seconds. Raises ConfigurationError."""
        self.bind()
        assert self._socket is not None
        server = _Server(self._serve)
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=self._shutdown_timeout)
        watching: asyncio.Task[None] | None = None
        try:
            await runner.setup()
            context: ssl.SSLContext | None = self._certificates.context if self._certificates else None
            await web.SockSite(runner, self._socket, ssl_context=context).start()
            log.info("serving", server=self.name, port=self.port, tls=context is not None)
            self.serving.set()
            if self._certificates is None:
                await asyncio.get_running_loop().create_future()
            else:
                watching = asyncio.create_task(self._certificates.run(), name=f"{self.name}: certificates")
                await watching
        finally:
            self.serving.clear()
            if watching is not None:
                watching.cancel()
            await runner.cleanup()
            await server.part()
            self.close()


def _listen(host: str, port: int) -> socket.socket:
    if host or not socket.has_dualstack_ipv6():
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    return socket.create_server(("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
