"""The aiohttp transport against servers on the loopback interface (specification: 70 §6.3, §15)."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lwskit.runtime.client import http
from lwskit.runtime.client.http import HttpTransport, tls_context
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed

Serve = Callable[..., Awaitable[str]]
GET = HttpRequest("GET", "/api", headers={"accept": "application/json"})


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    runners: list[web.AppRunner] = []

    async def start(handler: Callable[[web.Request], Awaitable[web.StreamResponse]], tls: Any = None) -> str:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0)
        runners.append(runner)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        return f"{'https' if tls else 'http'}://127.0.0.1:{port}"

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    path.write_bytes(
        built.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


async def until_the_client_leaves(request: web.Request) -> None:
    # The server has no event for it.
    while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


async def test_a_request_arrives_as_it_was_built_and_the_answer_comes_back(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        seen.update(method=request.method, query=[*request.query.items()], path=request.path, body=await request.read())
        seen.update({k.lower(): v for k, v in request.headers.items()})
        answer = web.Response(status=201, body=b"x" * 5000, headers={"X-Thing": "1"})
        answer.enable_compression(web.ContentCoding.gzip)
        return answer

    seen: dict[str, Any] = {}
    transport = HttpTransport(await serve(handler) + "/k8s/", user_agent="lwskit/test")
    query = (("labelSelector", "a in (b,c)"), ("continue", "a+b/c=&d"))
    answer = await transport.send(HttpRequest("POST", "/api/v1/pods", query, {"content-type": "a/b"}, b"{}"))
    await transport.close()
    assert (answer.status, answer.body, answer.headers["x-thing"]) == (201, b"x" * 5000, "1")
    assert (seen["method"], seen["path"], seen["body"]) == ("POST", "/k8s/api/v1/pods", b"{}")
    assert seen["query"] == [*query]
    assert (seen["user-agent"], seen["content-type"], seen["accept-encoding"]) == ("lwskit/test", "a/b", "gzip")


async def test_headers_that_come_twice_are_joined(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        answer = web.Response()
        answer.headers.add("Warning", '299 - "one"')
        answer.headers.add("Warning", '299 - "two"')
        return answer

    transport = HttpTransport(await serve(handler))
    assert (await transport.send(GET)).headers["warning"] == '299 - "one", 299 - "two"'
    await transport.close()


async def test_a_refused_connection_is_a_sentence_with_host_and_cause() -> None:
    port = free_port()
    transport = HttpTransport(f"http://127.0.0.1:{port}")
    with pytest.raises(ConnectionFailed) as e:
        await transport.send(GET)
    with pytest.raises(ConnectionFailed):
        async with transport.stream(GET):
            pass
    await transport.close()
    assert not e.value.retryable
    assert str(e.value) == (
        f"GET /api at http://127.0.0.1:{port} failed: 127.0.0.1:{port} refuses connections; nothing listens there"
    )


async def test_a_name_that_does_not_exist_is_named() -> None:
    transport = HttpTransport("http://no-such-host.invalid")
    with pytest.raises(ConnectionFailed, match=r"no-such-host\.invalid:80 cannot be resolved"):
        await transport.send(GET)
    await transport.close()


def authority(certificate: Path) -> str:
    loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    return loaded.public_bytes(serialization.Encoding.PEM).decode()


async def test_an_untrusted_certificate_is_named_and_a_trusted_one_works(serve: Serve, certificate: Path) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificate)
    url = await serve(handler, server)
    pem = authority(certificate)
    strange = HttpTransport(url, tls=tls_context())
    with pytest.raises(ConnectionFailed, match=r"certificate of 127\.0\.0\.1:\d+ is not trusted \(self.signed") as e:
        await strange.send(GET)
    assert not e.value.retryable
    await strange.close()
    misnamed = HttpTransport(url, tls=tls_context(ca_data=pem), server_name="other.example")
    with pytest.raises(ConnectionFailed, match="not trusted"):
        await misnamed.send(GET)
    await misnamed.close()
    for context in (tls_context(ca_data=pem), tls_context(ca_file=str(certificate)), tls_context(insecure=True)):
        transport = HttpTransport(url, tls=context)
        assert (await transport.send(GET)).body == b"ok"
        await transport.close()


async def test_a_client_certificate_is_presented(serve: Serve, certificate: Path) -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        return web.json_response(request.transport.get_extra_info("peercert")["serialNumber"])

    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificate))
    server.load_cert_chain(certificate)
    server.verify_mode = ssl.CERT_REQUIRED
    url = await serve(handler, server)
    client = tls_context(ca_file=str(certificate), client_cert=str(certificate))
    transport = HttpTransport(url, tls=client)
    assert (await transport.send(GET)).body == b'"01"'
    await transport.close()


async def test_a_server_that_does_not_answer_is_given_up_in_time(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        await until_the_client_leaves(request)
        return web.Response()

    transport = HttpTransport(await serve(handler), timeout=0.05)
    with pytest.raises(ConnectionFailed, match=r"gave no answer within 0\.05 s") as e:
        await transport.send(GET)
    assert e.value.retryable
    with pytest.raises(ConnectionFailed, match=r"gave no answer within 0\.02 s"):
        await transport.send(GET, timeout=0.02)
    with pytest.raises(ConnectionFailed, match=r"gave no answer within 0\.05 s"):
        async with transport.stream(GET):
            pass
    await transport.close()


async def test_a_connection_closed_without_an_answer_is_a_failure(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    transport = HttpTransport(await serve(handler))
    with pytest.raises(ConnectionFailed, match="closed the connection without an answer") as e:
        await transport.send(HttpRequest("POST", "/x"))
    assert e.value.retryable
    await transport.close()


def streaming(*chunks: bytes, then: str = "end") -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if then == "hang":
            await until_the_client_leaves(request)
        if then == "break":
            assert request.transport is not None
            request.transport.abort()
        return response

    return handler


async def collect(transport: HttpTransport, idle: float | None = None) -> bytes:
    found = b""
    async with transport.stream(GET, idle_timeout=idle) as response:
        assert response.status == 200
        try:
            async for chunk in response.chunks():
                found += chunk
        finally:
            collected.append(found)
    return found


collected: list[bytes] = []


async def test_a_stream_is_handed_out_as_it_arrives_and_ends_with_the_server(serve: Serve) -> None:
    large = b"z" * 1_500_000 + b"\n"
    transport = HttpTransport(await serve(streaming(b"one\n", large)))
    assert await collect(transport) == b"one\n" + large
    await transport.close()


async def test_a_stream_that_breaks_or_falls_silent_is_a_failure_after_what_had_come(serve: Serve) -> None:
    transport = HttpTransport(await serve(streaming(b"one\n", then="break")))
    with pytest.raises(ConnectionFailed, match="broke"):
        await collect(transport)
    await transport.close()
    # Long enough that a busy machine answers within it.
    transport = HttpTransport(await serve(streaming(b"one\n", then="hang")), timeout=30)
    with pytest.raises(ConnectionFailed, match=r"gave no answer within 0\.4 s"):
        await collect(transport, idle=0.4)
    await transport.close()
    assert collected[-1] == b"one\n"


async def test_a_stream_outlives_the_time_of_a_call(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"head\n")
        await asyncio.sleep(0.45)
        await response.write(b"tail\n")
        return response

    # Long enough that a busy machine answers within it.
    transport = HttpTransport(await serve(handler), timeout=0.4)
    assert await collect(transport) == b"head\ntail\n"
    await transport.close()


async def test_leaving_a_stream_closes_its_connection(serve: Serve) -> None:
    gone = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"beat\n")
                await asyncio.sleep(0.005)
        except (ConnectionError, asyncio.CancelledError):
            gone.set()
            raise

    transport = HttpTransport(await serve(handler))
    async with transport.stream(GET) as response:
        await anext(response.chunks())
    await asyncio.wait_for(gone.wait(), 30)
    await transport.close()


def guarded(tokens: set[str], seen: list[str]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        seen.append(token)
        # Let simultaneous requests meet.
        await asyncio.sleep(0.01)
        return web.Response(status=200 if token in tokens else 401)

    return handler


async def test_a_refused_token_is_renewed_once_for_all_who_wait(serve: Serve) -> None:
    tokens, seen, renewals = {"new"}, list[str](), list[bool]()

    async def provider(renew: bool) -> str:
        await asyncio.sleep(0)
        if renew:
            renewals.append(renew)
        return "new" if renewals else "old"

    transport = HttpTransport(await serve(guarded(tokens, seen)), token=provider)
    answers = await asyncio.gather(*(transport.send(GET) for _ in range(5)))
    assert [a.status for a in answers] == [200] * 5
    assert len(renewals) == 1
    assert sorted(seen) == ["new"] * 5 + ["old"] * 5
    async with transport.stream(GET) as response:
        assert response.status == 200
    await transport.close()


async def test_a_token_that_is_refused_again_is_an_answer_and_no_loop(serve: Serve) -> None:
    seen: list[str] = []
    transport = HttpTransport(await serve(guarded(set(), seen)), token=lambda renew: "b" if renew else "a")
    assert (await transport.send(GET)).status == 401
    assert seen == ["a", "b"]
    await transport.close()


async def test_a_provider_that_fails_is_a_failed_connection() -> None:
    def provider(renew: bool) -> str:
        raise FileNotFoundError("no token file")

    transport = HttpTransport("http://127.0.0.1:1", token=provider)
    with pytest.raises(ConnectionFailed, match="no credentials for the API server: no token file") as e:
        await transport.send(GET)
    assert not e.value.retryable


async def test_after_close_nothing_is_sent(serve: Serve) -> None:
    transport = HttpTransport(await serve(streaming(b"x")))
    await transport.send(GET)
    await transport.close()
    await transport.close()
    with pytest.raises(ConnectionFailed, match="closed by this program") as e:
        await transport.send(GET)
    assert not e.value.retryable


async def test_close_leaves_no_socket_of_a_connection_that_was_being_made(serve: Serve, certificate: Path) -> None:
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificate)
    url = await serve(streaming(b"x"), server)
    context = tls_context(insecure=True)
    # Somewhere among these the call is left at each step of setting up TLS.
    for turns in range(40):
        transport = HttpTransport(url, tls=context)
        call = asyncio.create_task(transport.send(GET))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait({call})
        await transport.close()
        assert transport.sockets == []


async def test_a_redirect_is_not_followed(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"location": "http://elsewhere.invalid/"})

    transport = HttpTransport(await serve(handler), token=lambda renew: "secret")
    assert (await transport.send(GET)).status == 302
    await transport.close()


async def test_a_header_with_several_values_goes_out_once_for_each(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(request.headers.getall("impersonate-group"))

    transport = HttpTransport(await serve(handler), headers={"impersonate-group": ["a", "b"]})
    assert (await transport.send(GET)).body == b'["a", "b"]'
    await transport.close()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"url": "https://[::1"}, r"URL 'https://\[::1' cannot be used: it is not a URL"),
        ({"url": "https://user:pw@h"}, "must not hold a user and password"),
        ({"proxy": "socks5://h"}, "the proxy 'socks5://h' of http://h cannot be used: proxies with socks5"),
        ({"server_name": ".x"}, "the server name '.x' of http://h cannot be used"),
        ({"headers": {"a": "b\nc"}}, "of the header a cannot be used: it must be text without line breaks"),
        ({"proxy_headers": {"a": 5}}, "the value 5 of the header a cannot be used"),
        ({"user_agent": "b\nc"}, "of the header user-agent cannot be used"),
    ],
)
def test_what_no_request_could_be_made_with_is_refused_at_once(options: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        HttpTransport(**{"url": "http://h"} | options)


@pytest.mark.parametrize("token", ["a\nb", "a\r\nX-Evil: 1", "\u00e9", 5])
async def test_a_token_that_no_header_can_carry_is_a_failed_connection(token: Any) -> None:
    transport = HttpTransport("http://127.0.0.1:1", token=lambda renew: token)
    for call in (transport.send(GET), transport.stream(GET).__aenter__()):
        with pytest.raises(ConnectionFailed, match="the token is not one line of plain characters") as e:
            await call
        assert not e.value.retryable
    await transport.close()


async def test_whatever_a_provider_raises_is_a_failed_connection() -> None:
    def provider(renew: bool) -> str:
        raise KeyError("x")

    transport = HttpTransport("http://127.0.0.1:1", token=provider)
    with pytest.raises(ConnectionFailed, match="no credentials for the API server: KeyError: 'x'"):
        await transport.send(GET)


async def test_a_request_that_cannot_be_sent_is_a_failed_connection(serve: Serve) -> None:
    transport = HttpTransport(await serve(streaming(b"x")))
    with pytest.raises(ConnectionFailed, match=r"it cannot be sent \(") as e:
        await transport.send(HttpRequest("GET", "/x", headers={"a": "b\nc"}))
    assert not e.value.retryable
    await transport.close()


async def test_an_answer_without_end_is_given_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(request: web.Request) -> web.Response:
        answer = web.Response(body=b"x" * 5_000_000)
        answer.enable_compression(web.ContentCoding.gzip)
        return answer

    transport = HttpTransport(await serve(handler))
    assert len((await transport.send(GET)).body) == 5_000_000
    monkeypatch.setattr(http, "ANSWER_LIMIT", 4_000_000)
    with pytest.raises(ConnectionFailed, match="the answer to GET /api is too large: more than 4000000 bytes") as e:
        await transport.send(GET)
    assert not e.value.retryable
    await transport.close()
