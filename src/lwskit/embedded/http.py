"""The API server on a socket of this machine: TLS from its own CA, bearer tokens, chunked watches."""

from __future__ import annotations

import asyncio
import gzip
import hmac
import os
import random
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import structlog
from aiohttp import web

from lwskit.embedded import kubeconfig
from lwskit.embedded.apiserver import BODY_LIMIT, ApiServer, refusal
from lwskit.runtime.certs import Certificate, make_ca, make_server_cert
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.clock import Clock, new_secret
from lwskit.runtime.errors import (
    ConfigurationError,
    ConnectionFailed,
    InternalError,
    RequestEntityTooLarge,
    Unauthorized,
)

ADMIN = "admin"
"""Who the bearer of the server's own token is."""

_GZIP_FROM = 128 * 1024
_SHUTDOWN_SECONDS = 1.0
_OPEN = ("/healthz", "/livez", "/readyz", "/version")
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """A server that listens: where, with which certificate authority, and the token that opens it."""

    url: str
    port: int
    token: str
    ca_pem: bytes

    @contextmanager
    def kubeconfig(self, path: Path) -> Iterator[Path]:
        """Write a kubeconfig that only its owner can read; it is removed at the end.

        Raises ConfigurationError when it cannot be written or a file of somebody else is there, which stays.
        """
        text = kubeconfig.write(path, server=self.url, token=self.token, ca_pem=self.ca_pem)
        try:
            yield path
        finally:
            kubeconfig.remove(path, text)


@asynccontextmanager
async def serve(
    server: ApiServer,
    *,
    clock: Clock,
    rng: random.Random,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
) -> AsyncIterator[Served]:
    """Serve until the context is left; then open watches end and connections close within about a second.

    Port 0 takes any free one; without `token` a new secret is made. Raises ConfigurationError when the port is in use.
    """
    token = token or new_secret()
    listening = _listen(host, port)
    ca = make_ca(clock.now(), rng)
    certificate = make_server_cert(ca, ["localhost", "kubernetes.default.svc"], [host], clock.now(), rng)
    server.backend.tokens[token] = ADMIN
    handler = _Handler(server)
    runner = web.ServerRunner(
        web.Server(handler.handle, access_log=None, handler_cancellation=True),
        handle_signals=False,
        shutdown_timeout=_SHUTDOWN_SECONDS,
    )
    try:
        await runner.setup()
        await web.SockSite(runner, listening, ssl_context=_context(certificate)).start()
        actual = listening.getsockname()[1]
        yield Served(f"https://{host}:{actual}", actual, token, ca.cert_pem)
    finally:
        server.backend.tokens.pop(token, None)
        handler.close()
        await runner.cleanup()
        listening.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=128)
    except OSError as e:
        reason = os.strerror(e.errno) if e.errno else e
        raise ConfigurationError(
            f"the API server cannot listen on {host}:{port}: {reason}; choose another port, or 0 for any"
        ) from e


def _context(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    # OpenSSL reads chains only from files; this one is gone at once.
    with tempfile.TemporaryDirectory(prefix="lwskit-") as folder:
        cert, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        cert.write_bytes(certificate.cert_pem)
        key.touch(mode=0o600)
        key.write_bytes(certificate.key_pem)
        context.load_cert_chain(cert, key)
    return context


class _Handler:
    """Answers HTTP requests by an API server."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._streams: set[Any] = set()

    def close(self) -> None:
        """End the open watches."""
        for stream in list(self._streams):
            stream.close()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request."""
        user = self._user(request)
        if user is None:
            if not request.path.startswith(_OPEN):
                return _write(request, refusal(Unauthorized("Unauthorized")))
            user = "system:anonymous"
        body = await _body(request)
        if isinstance(body, HttpResponse):
            response = _write(request, body)
            response.force_close()
            return response
        asked = HttpRequest(
            request.method,
            request.rel_url.raw_path,
            tuple(parse_qsl(request.query_string, keep_blank_values=True)),
            {k.lower(): v for k, v in request.headers.items()},
            body,
        )
        try:
            if self._server.is_watch(asked):
                return await self._stream(request, asked, user)
            return _write(request, await self._server.handle(asked, user))
        except asyncio.CancelledError:
            raise
        except ConnectionError:
            raise
        except Exception as e:
            _log.exception("request failed", method=request.method, path=request.path)
            return _write(request, refusal(InternalError(f"Internal error occurred: {e}")))

    def _user(self, request: web.BaseRequest) -> str | None:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        for token, user in self._server.backend.tokens.items():
            if hmac.compare_digest(token.encode(), given.strip().encode()):
                return user
        return None

    async def _stream(self, request: web.BaseRequest, asked: HttpRequest, user: str) -> web.StreamResponse:
        stream: Any = self._server.open_watch(asked, user)
        if stream.status >= 400:
            return _write(request, HttpResponse(stream.status, await stream.read(), stream.headers))
        response = web.StreamResponse(status=stream.status, headers=dict(stream.headers))
        response.enable_chunked_encoding()
        self._streams.add(stream)
        try:
            await response.prepare(request)
            async for chunk in stream.chunks():
                await response.write(chunk)
            await response.write_eof()
        except (ConnectionError, ConnectionFailed):
            # The client left; there is nobody to tell.
            pass
        finally:
            self._streams.discard(stream)
            stream.close()
        return response


async def _body(request: web.BaseRequest) -> bytes | HttpResponse | None:
    """The request's body, or the refusal of one that is too large."""
    if not request.body_exists:
        return None
    parts: list[bytes] = []
    size = 0
    async for chunk in request.content.iter_any():
        size += len(chunk)
        if size > BODY_LIMIT:
            return refusal(RequestEntityTooLarge(f"Request entity too large: limit is {BODY_LIMIT}"))
        parts.append(chunk)
    return b"".join(parts)


def _write(request: web.BaseRequest, answer: HttpResponse) -> web.Response:
    headers, body = dict(answer.headers), answer.body
    if len(body) >= _GZIP_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["content-encoding"] = "gzip"
        headers["vary"] = "Accept-Encoding"
        body = gzip.compress(body, 4)
    headers.setdefault("cache-control", "no-cache, private")
    return web.Response(status=answer.status, body=body, headers=headers)
