"""The Transport over real sockets: aiohttp, TLS, bearer tokens, and a sentence for every way a connection can fail."""

from __future__ import annotations

import asyncio
import io
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from lwskit.runtime.client.checks import bad_header, bad_host, bad_proxy, bad_url
from lwskit.runtime.client.contexts import add_client_certificate
from lwskit.runtime.client.contexts import tls_context as tls_context
from lwskit.runtime.client.failures import FAILURES, cause_of, was_lost
from lwskit.runtime.client.pool import Connections, Pool
from lwskit.runtime.client.provider import Asking, Credentials
from lwskit.runtime.client.provider import TokenProvider as TokenProvider
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed

CONNECT_TIMEOUT = 15.0
CALL_TIMEOUT = 30.0
"""Seconds for a call that is not a watch, answer included, unless the caller says otherwise."""
LARGE = 256 * 1024
"""Bytes of a body above which it is sent in pieces."""
ANSWER_LIMIT = 512 * 1024 * 1024
"""Bytes of an answer that is read as a whole, after decompression."""


class HttpTransport:
    """Sends requests to the API server at `url` (scheme, host, port and perhaps a path in front of all others).

    `tls` is the context for https; `token` a provider of bearer tokens, or `headers` carry other credentials; `proxy`
    is the URL of an HTTP proxy, `proxy_headers` are for that alone; `server_name` is the name to verify the certificate
    against instead of the host's. A header may have several values. Connections are made when first needed, in the loop
    that runs then. Raises ConfigurationError for a URL, name or header that cannot be used.
    Specification: 70 §6.3, §15.
    """

    def __init__(
        self,
        url: str,
        *,
        tls: ssl.SSLContext | None = None,
        token: TokenProvider | None = None,
        headers: Mapping[str, str | Sequence[str]] | None = None,
        proxy: str | None = None,
        proxy_headers: Mapping[str, str] | None = None,
        server_name: str | None = None,
        user_agent: str = "lwskit",
        connect_timeout: float = CONNECT_TIMEOUT,
        timeout: float = CALL_TIMEOUT,
    ) -> None:
        _refuse(f"the API server's URL {url!r}", bad_url(url))
        _refuse(f"the proxy {proxy!r} of {url}", bad_proxy(proxy) if proxy else None)
        _refuse(f"the server name {server_name!r} of {url}", bad_host(server_name) if server_name else None)
        self.url = url.rstrip("/")
        self._tls = tls
        self._credentials = Asking(token) if token is not None else None
        self._headers = _checked({"user-agent": user_agent, **(headers or {})})
        self._proxy = proxy
        self._proxy_headers = _checked(proxy_headers) if proxy_headers else None
        self._server_name = server_name
        self._connect_timeout = connect_timeout
        self._timeout = timeout
        self._certificate: tuple[str, str] | None = None
        self._closed = False
        self._connections = Connections()

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        """Send and read the whole answer within `timeout` seconds (None: the transport's default, 30 s).

        Raises ConnectionFailed. When cancelled, the request is abandoned and may or may not have taken effect.
        """
        limit = self._timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(limit):
                response, pool = await self._open(request, None)
                try:
                    body = await _whole(response)
                finally:
                    await self._connections.give_back(pool)
        except FAILURES as e:
            raise self._failed(request, e, limit) from e
        return HttpResponse(response.status, body, _lower(response.headers))

    @asynccontextmanager
    async def stream(self, request: HttpRequest, *, idle_timeout: float | None = None) -> AsyncIterator[_Stream]:
        """Send and hand out the answer while it arrives; silence of `idle_timeout` seconds raises ConnectionFailed.

        The answer's head must come within the time of a call. Leaving the context closes the connection. So does
        cancelling it.
        """
        try:
            async with asyncio.timeout(self._timeout):
                response, pool = await self._open(request, idle_timeout)
        except FAILURES as e:
            raise self._failed(request, e, self._timeout) from e
        try:
            yield _Stream(response, lambda e: self._failed(request, e, idle_timeout))
        finally:
            # What is left of a stream is not worth reading for the sake of the connection.
            response.close()
            await self._connections.give_back(pool)

    async def close(self) -> None:
        """Release connections; later calls raise ConnectionFailed.

        Cancelled, connections may stay open until the loop ends.
        """
        self._closed = True
        await self._connections.close()

    @property
    def sockets(self) -> list[socket.socket]:
        """The sockets that are open."""
        return self._connections.sockets

    async def _open(self, request: HttpRequest, idle: float | None) -> tuple[aiohttp.ClientResponse, Pool]:
        """The answer's head, after the one repetition that refused credentials get."""
        given = await self._credentials.current() if self._credentials else Credentials()
        response, pool = await self._request(request, given, idle)
        if response.status != 401 or self._credentials is None:
            return response, pool
        try:
            renewed = await self._credentials.renewed(given)
        except BaseException:
            response.close()
            await self._connections.give_back(pool)
            raise
        if renewed == given:
            return response, pool
        response.close()
        await self._connections.give_back(pool)
        return await self._request(request, renewed, idle)

    async def _request(
        self, request: HttpRequest, given: Credentials, idle: float | None
    ) -> tuple[aiohttp.ClientResponse, Pool]:
        if self._closed:
            text = f"the connection to {self.url} has been closed by this program"
            raise ConnectionFailed(text, retryable=False)
        headers = self._headers.copy()
        headers.update(request.headers)
        if given.token:
            headers["authorization"] = f"Bearer {given.token}"
        if idle is not None:
            # A compressor may hold events back.
            headers["accept-encoding"] = "identity"
        options: dict[str, Any] = {"ssl": self._tls} if self._tls is not None else {}
        if self._server_name and self._tls is not None:
            options["server_hostname"] = self._server_name
        if given.certificate != self._certificate:
            await self._present(given.certificate)
        pool = self._connections.take()
        try:
            response = await pool.session.request(
                request.method,
                URL(self.url + request.path, encoded=True).extend_query(request.query),
                headers=headers,
                data=_payload(request.body),
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                # Credentials go to this server only, wherever it may point.
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_timeout, sock_read=idle),
                **options,
            )
        except BaseException:
            await self._connections.give_back(pool)
            raise
        return response, pool

    async def _present(self, certificate: tuple[str, str] | None) -> None:
        """Have connections from now on present a client certificate; those with another one are not used again."""
        self._certificate = certificate
        if certificate is not None and self._tls is not None:
            try:
                add_client_certificate(self._tls, *certificate)
            except OSError as e:
                text = f"the client certificate for {self.url} cannot be used: {e}"
                raise ConnectionFailed(text, retryable=False) from e
        await self._connections.renew()

    def _failed(self, request: HttpRequest, error: Exception, limit: float | None) -> ConnectionFailed:
        what = f"{request.method} {request.path} at {self.url} failed"
        return ConnectionFailed(f"{what}: {cause_of(error, self._host(), limit)}", retryable=was_lost(error))

    def _host(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


class _Stream:
    """The answer of `HttpTransport.stream`."""

    def __init__(self, response: aiohttp.ClientResponse, failed: Callable[[Exception], ConnectionFailed]) -> None:
        self._response = response
        self._failed = failed

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """Header fields, names in lower case."""
        return _lower(self._response.headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises ConnectionFailed when the connection breaks or falls silent."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except FAILURES as e:
            raise self._failed(e) from e

    async def read(self) -> bytes:
        """The rest of the body. Raises ConnectionFailed."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                return await _whole(self._response)
        except FAILURES as e:
            raise self._failed(e) from e


def _refuse(what: str, why: str | None) -> None:
    if why is not None:
        raise ConfigurationError(f"{what} cannot be used: {why}")


def _checked(headers: Mapping[str, str | Sequence[str]]) -> CIMultiDict[str]:
    """Headers as they are sent, those with several values once for each."""
    found: CIMultiDict[str] = CIMultiDict()
    for name, values in headers.items():
        for value in values if isinstance(values, list | tuple) else (values,):
            _refuse(f"the value {value!r} of the header {name}", bad_header(value))
            found.add(name, str(value))
    return found


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body. Its connection is free for others then, or closed when the body did not come as a whole."""
    parts: list[bytes] = []
    size = 0
    try:
        async for part in response.content.iter_any():
            size += len(part)
            if size > ANSWER_LIMIT:
                raise ConnectionFailed(
                    f"the answer to {response.method} {response.url.path} is too large: more than {ANSWER_LIMIT} bytes",
                    retryable=False,
                )
            parts.append(part)
    except BaseException:
        response.close()
        raise
    response.release()
    return b"".join(parts)


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """What aiohttp sends; a large body as a file, so that it goes out in pieces with others' turns in between."""
    return io.BytesIO(body) if body is not None and len(body) > LARGE else body


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Header fields with names in lower case; those that come several times, such as Warning, joined by commas."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        name = name.lower()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found
