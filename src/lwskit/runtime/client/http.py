"""The Transport over real sockets: aiohttp, TLS, bearer tokens, and a sentence for every way a connection can fail."""

from __future__ import annotations

import asyncio
import inspect
import io
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from weakref import WeakSet

import aiohttp
from yarl import URL

from lwskit.runtime.client.contexts import tls_context as tls_context
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import ConnectionFailed, LwskitError

TokenProvider: TypeAlias = Callable[[bool], str | Awaitable[str | None] | None]
"""Gives the bearer token to send; called with True when the server has just refused the one given before."""

CONNECT_TIMEOUT = 15.0
CALL_TIMEOUT = 30.0
"""Seconds for a call that is not a watch, answer included, unless the caller says otherwise."""
LARGE = 256 * 1024
"""Bytes of a body above which it is sent in pieces."""
LAST_TURNS = 100
"""How many turns of the loop sockets get to be closed when the transport is."""
KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_PROBES = 30, 10, 3


class HttpTransport:
    """Sends requests to the API server at `url` (scheme, host, port and perhaps a path in front of all others).

    `tls` is the context for https; `token` a provider of bearer tokens, or `headers` carry other credentials; `proxy`
    is the URL of an HTTP proxy, `proxy_headers` are for that alone; `server_name` is the name to verify the certificate
    against instead of the host's. Connections are made when first needed, in the loop that runs then.
    Specification: 70 §6.3, §15.
    """

    def __init__(
        self,
        url: str,
        *,
        tls: ssl.SSLContext | None = None,
        token: TokenProvider | None = None,
        headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        proxy_headers: Mapping[str, str] | None = None,
        server_name: str | None = None,
        user_agent: str = "lwskit",
        connect_timeout: float = CONNECT_TIMEOUT,
        timeout: float = CALL_TIMEOUT,
    ) -> None:
        self.url = url.rstrip("/")
        self._tls = tls
        self._tokens = _Tokens(token) if token is not None else None
        self._headers = {"user-agent": user_agent, **(headers or {})}
        self._proxy = proxy
        self._proxy_headers = proxy_headers
        self._server_name = server_name
        self._connect_timeout = connect_timeout
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._sockets: WeakSet[socket.socket] = WeakSet()

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        """Send and read the whole answer within `timeout` seconds (None: the transport's default, 30 s).

        Raises ConnectionFailed. When cancelled, the request is abandoned and may or may not have taken effect.
        """
        limit = self._timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(limit):
                response = await self._open(request, None)
                try:
                    body = await response.read()
                finally:
                    response.release()
        except (aiohttp.ClientError, TimeoutError) as e:
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
                response = await self._open(request, idle_timeout)
        except (aiohttp.ClientError, TimeoutError) as e:
            raise self._failed(request, e, self._timeout) from e
        try:
            yield _Stream(response, lambda e: self._failed(request, e, idle_timeout))
        finally:
            # What is left of a stream is not worth reading for the sake of the connection.
            response.close()

    async def close(self) -> None:
        """Release connections; later calls raise ConnectionFailed.

        Cancelled, connections may stay open until the loop ends.
        """
        self._closed = True
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()
            await self._let_go()

    async def _let_go(self) -> None:
        """End connections that the session no longer knows: cancelled while TLS was being set up or ended."""
        for sock in self.sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for _ in range(LAST_TURNS):
            if not self.sockets:
                return
            await asyncio.sleep(0)

    @property
    def sockets(self) -> list[socket.socket]:
        """The sockets that are open."""
        return [sock for sock in self._sockets if sock.fileno() != -1]

    def _make_socket(self, address: Any) -> socket.socket:
        sock = _keepalive_socket(address)
        self._sockets.add(sock)
        return sock

    async def _open(self, request: HttpRequest, idle: float | None) -> aiohttp.ClientResponse:
        """The answer's head, after the one repetition that a refused token gets."""
        token = await self._tokens.current() if self._tokens else None
        response = await self._request(request, token, idle)
        if response.status == 401 and self._tokens:
            try:
                renewed = await self._tokens.renewed(token)
            except BaseException:
                response.close()
                raise
            if renewed != token:
                response.close()
                response = await self._request(request, renewed, idle)
        return response

    async def _request(self, request: HttpRequest, token: str | None, idle: float | None) -> aiohttp.ClientResponse:
        headers = {**self._headers, **request.headers}
        if token:
            headers["authorization"] = f"Bearer {token}"
        if idle is not None:
            # A compressor may hold events back.
            headers["accept-encoding"] = "identity"
        options: dict[str, Any] = {"ssl": self._tls} if self._tls is not None else {}
        if self._server_name and self._tls is not None:
            options["server_hostname"] = self._server_name
        return await self._open_session().request(
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

    def _open_session(self) -> aiohttp.ClientSession:
        if self._closed:
            text = f"the connection to {self.url} has been closed by this program"
            raise ConnectionFailed(text, retryable=False)
        if self._session is None:
            # Watches hold their connections, so their number has no limit here.
            connector = aiohttp.TCPConnector(limit=0, socket_factory=self._make_socket)
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"accept-encoding": "gzip"},
                max_line_size=64 * 1024,
                max_field_size=64 * 1024,
            )
        return self._session

    def _failed(self, request: HttpRequest, error: Exception, limit: float | None) -> ConnectionFailed:
        what = f"{request.method} {request.path} at {self.url} failed"
        return ConnectionFailed(f"{what}: {_cause(error, self._host(), limit)}", retryable=_was_lost(error))

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
        except (aiohttp.ClientError, TimeoutError) as e:
            raise self._failed(e) from e

    async def read(self) -> bytes:
        """The rest of the body. Raises ConnectionFailed."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                return await self._response.read()
        except (aiohttp.ClientError, TimeoutError) as e:
            raise self._failed(e) from e


class _Tokens:
    """Asks the provider by one caller at a time; those who wait for a renewal share it."""

    def __init__(self, provider: TokenProvider) -> None:
        self._provider = provider
        self._lock = asyncio.Lock()
        self._latest: str | None = None

    async def current(self) -> str | None:
        async with self._lock:
            return await self._ask(False)

    async def renewed(self, refused: str | None) -> str | None:
        async with self._lock:
            if self._latest != refused:
                return self._latest
            return await self._ask(True)

    async def _ask(self, renew: bool) -> str | None:
        try:
            token = self._provider(renew)
            self._latest = await token if inspect.isawaitable(token) else token
        except (OSError, LwskitError) as e:
            text = f"there are no credentials for the API server: {e}"
            raise ConnectionFailed(text, retryable=False) from e
        return self._latest


def _keepalive_socket(address: Any) -> socket.socket:
    """A socket whose other end, when it is gone, is noticed within a minute."""
    family, kind, protocol, *_ = address
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
    )
    for name, value in options:
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return sock


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


def _was_lost(error: Exception) -> bool:
    """Whether there was a connection, or may have been, and it broke or fell silent (specification: 70 §6.3)."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return False
    lost = aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientOSError, TimeoutError
    return isinstance(error, lost)


def _cause(error: Exception, host: str, limit: float | None) -> str:
    """Why a connection failed, in words; `limit` is the silence in seconds that was allowed."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _certificate(error.certificate_error, host)
        case aiohttp.ClientConnectorDNSError():
            return f"the name of {host} cannot be resolved ({error.os_error.strerror or error.os_error})"
        case aiohttp.ConnectionTimeoutError():
            return f"{host} did not accept the connection in time"
        case aiohttp.ClientSSLError():
            return f"TLS with {host} failed ({error.os_error})"
        case aiohttp.ClientProxyConnectionError():
            return f"the proxy cannot be reached ({error.os_error})"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ConnectionRefusedError):
            return f"{host} refuses connections; nothing listens there"
        case aiohttp.ClientConnectorError():
            return f"{host} cannot be reached ({error.os_error.strerror or error.os_error})"
        case TimeoutError():
            return f"{host} gave no answer within {limit:g} s" if limit else f"{host} gave no answer in time"
        case aiohttp.ServerDisconnectedError():
            return f"{host} closed the connection without an answer"
        case aiohttp.ClientPayloadError() | aiohttp.ClientOSError():
            return f"the connection to {host} broke ({error})"
    return f"{type(error).__name__} with {host}: {error}"


def _certificate(error: Exception, host: str) -> str:
    reason = getattr(error, "verify_message", "") or str(error)
    return f"the certificate of {host} is not trusted ({reason})"
