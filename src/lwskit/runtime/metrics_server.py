"""Serves metrics over HTTP or HTTPS, to everybody or to those who may (specification: 70 §10)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from lwskit.runtime.access import Filter
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.listener import Listener
from lwskit.runtime.metrics import Metrics
from lwskit.runtime.runnable import Group
from lwskit.runtime.tls import ServerCertificates

PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Serve = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class MetricsServer:
    """Serves `/metrics`, over TLS where certificates are given. Runs without leadership.

    `access` is asked before any handler; without one everybody who reaches the address may read. The address is taken
    when the server is made. Raises ConfigurationError when it is in use.
    """

    group = Group.HTTP
    name = "metrics server"

    def __init__(
        self,
        metrics: Metrics,
        host: str,
        port: int,
        *,
        certificates: ServerCertificates | None = None,
        access: Filter | None = None,
    ) -> None:
        self._metrics = metrics
        self._access = access
        self._handlers: dict[str, Serve] = {PATH: self._text}
        self._started = False
        self._listener = Listener(self.name, host, port, self._serve, certificates=certificates)
        self.serving = self._listener.serving
        """Set while requests are answered."""
        self._listener.bind()
        if certificates is not None:
            metrics.add_certificates(certificates)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._listener.port

    def add_handler(self, path: str, handler: Serve) -> None:
        """Serve something else beside the metrics, to those who may see it.

        Raises ConfigurationError for a path that is taken, and once the server runs.
        """
        if self._started:
            raise ConfigurationError(
                "unable to add new metrics handler because metrics endpoint has already been created"
            )
        if path in self._handlers:
            raise ConfigurationError(f"{path} is served by the {self.name} already; choose another path")
        self._handlers[path] = handler

    async def run(self) -> None:
        """Serve until cancelled."""
        self._started = True
        await self._listener.run()

    def close(self) -> None:
        """Give the address back without having run."""
        self._listener.close()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        refusal = await self._access(request) if self._access is not None else None
        if refusal is not None:
            return refusal
        handler = self._handlers.get(request.path)
        if handler is None:
            return web.Response(status=404, text="404 page not found\n")
        return await handler(request)

    async def _text(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=self._metrics.text(), headers={"Content-Type": CONTENT_TYPE})
