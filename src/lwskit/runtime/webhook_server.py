"""Serves admission handlers over HTTPS (specification: 70 §8.1)."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import aiohttp
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError, LwskitError
from lwskit.runtime.listener import SHUTDOWN, Listener
from lwskit.runtime.runnable import Group
from lwskit.runtime.stats import Histogram
from lwskit.runtime.tls import CertificateWatcher, TlsFiles
from lwskit.runtime.webhook import LIMIT, Handler, review, unreadable

PORT = 9443
DISABLED = -1
"""The port with which nothing is served."""
SELF_TEST = 10.0
"""Seconds in which the server must answer its own TLS connection."""
BODY = 30.0
"""Seconds that the body of a request may take; no API server waits longer for a webhook."""
_PATH = re.compile(r"((/[a-zA-Z0-9-_]+)+|/)")


@dataclass(slots=True)
class WebhookStats:
    """What is counted for one path."""

    requests: dict[str, int] = field(default_factory=lambda: {"200": 0, "500": 0})
    in_flight: int = 0
    latency: Histogram = field(default_factory=Histogram)


class WebhookServer:
    """Admission handlers by path on one HTTPS address. Runs without leadership.

    Paths may be registered while it serves. Its certificate comes from `files` and is followed as they change. With
    port -1 nothing is served: handlers stay registered, and the server counts as healthy.
    """

    group = Group.WEBHOOKS
    name = "webhook server"

    def __init__(
        self, files: TlsFiles, clock: Clock, *, host: str = "", port: int = PORT, shutdown_timeout: float = SHUTDOWN
    ) -> None:
        """Prepare; the certificate is read when the server starts."""
        self.panics = 0
        self.stats: dict[str, WebhookStats] = {}
        self.certificates: CertificateWatcher | None = None
        self._files = files
        self._clock = clock
        self._host = host
        self._port = port
        self._shutdown_timeout = shutdown_timeout
        self._handlers: dict[str, Handler] = {}
        self._listener: Listener | None = None
        self.serving = asyncio.Event()
        """Set while requests are answered."""

    def register(self, path: str, handler: Handler) -> None:
        """Serve a handler from the next request on.

        Raises ConfigurationError for a path that is taken or not of letters, digits, dashes and underscores.
        """
        if not _PATH.fullmatch(path):
            raise ConfigurationError(f"{path!r} cannot be a webhook path; use /-separated letters, digits, - and _")
        if path in self._handlers:
            raise ConfigurationError(f"a webhook is registered at {path} already")
        self._handlers[path] = handler
        self.stats[path] = WebhookStats()

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What is registered, by path."""
        return MappingProxyType(self._handlers)

    @property
    def port(self) -> int:
        """The port that is listened on. Raises ConfigurationError before the server has started."""
        if self._listener is None:
            raise ConfigurationError("the webhook server does not listen yet")
        return self._listener.port

    async def run(self) -> None:
        """Serve until cancelled; then open requests get the shutdown timeout.

        Raises ConfigurationError when the certificate cannot be used or the address is taken.
        """
        if self._port == DISABLED:
            return
        self.certificates = CertificateWatcher(self._files, self._clock)
        self._listener = Listener(
            self.name,
            self._host,
            self._port,
            self._serve,
            certificates=self.certificates,
            shutdown_timeout=self._shutdown_timeout,
        )
        self._listener.serving = self.serving
        try:
            await self._listener.run()
        finally:
            self._listener = None

    async def check_started(self) -> None:
        """For readiness: raise LwskitError unless the server answers a TLS connection of this process.

        When cancelled, the connection is given up.
        """
        if self._port == DISABLED:
            return
        if self._listener is None or not self.serving.is_set():
            raise LwskitError("webhook server has not been started yet")
        context = ssl.create_default_context()
        # Only whether it answers is asked; the certificate is the API server's business.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            async with asyncio.timeout(SELF_TEST):
                host = self._host or "127.0.0.1"
                _, writer = await asyncio.open_connection(host, self._listener.port, ssl=context)
            writer.close()
        except (OSError, ssl.SSLError) as error:
            raise LwskitError(f"webhook server is not reachable: {error}") from error

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = self._handlers.get(request.path)
        if handler is None:
            return web.Response(status=404, text="404 page not found\n")
        stats = self.stats[request.path]
        stats.in_flight += 1
        started = self._clock.monotonic()
        try:
            body, problem = b"", ""
            try:
                async with asyncio.timeout(BODY):
                    body = await _read(request)
            except TimeoutError:
                problem = f"did not arrive within {BODY:g} s"
            except (aiohttp.ClientPayloadError, HttpProcessingError, web.RequestPayloadError) as error:
                problem = f"cannot be read: {error}"
            if problem:
                status, answer = unreadable(f"the request body {problem}")
            else:
                status, answer = review(handler, body, request.headers.get("content-type", ""), self._count_panic)
            stats.requests[str(status)] = stats.requests.get(str(status), 0) + 1
            response = web.Response(status=status, body=answer, content_type="application/json")
            if problem:
                # Nothing more is expected of this connection, not even the rest of the body.
                request.content.feed_eof()
                response.force_close()
            return response
        finally:
            stats.in_flight -= 1
            stats.latency.observe(self._clock.monotonic() - started)

    def _count_panic(self) -> None:
        self.panics += 1


async def _read(request: web.BaseRequest) -> bytes:
    """The body, but not more of it than is needed to see that it is too large."""
    parts: list[bytes] = []
    size = 0
    async for part in request.content.iter_any():
        parts.append(part)
        size += len(part)
        if size >= LIMIT:
            break
    return b"".join(parts)
