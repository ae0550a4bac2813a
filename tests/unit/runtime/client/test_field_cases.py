"""What broke for users of other clients, tried on real sockets; minutes pass quickly here (docs/field-cases.md)."""

from __future__ import annotations

import asyncio
import random
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.certs import Certificate, make_ca, make_server_cert
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import connect
from lwskit.runtime.client.http import HttpTransport
from lwskit.runtime.client.tokens import FileToken
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.clock import RealClock, rfc3339
from lwskit.runtime.kinds import POD
from lwskit.testing.scripted import event, pod
from tests.unit.runtime.fast import hurry, run

Answer = Callable[[str, asyncio.StreamWriter, int], Awaitable[None]]


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[str]:
    """A server that gives each request's head, a writer and the number of the connection to a function."""
    connections: set[asyncio.Task[None]] = set()
    count = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        number, task = count, asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                await answer(head, writer, number)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            connections.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for task in [*connections]:
            task.cancel()
        server.close()
        await server.wait_closed()


def whole(body: bytes, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def listed(version: int) -> bytes:
    return whole(orjson.dumps({"kind": "PodList", "metadata": {"resourceVersion": str(version)}, "items": []}))


def test_a_pooled_connection_that_is_dead_costs_half_a_minute_at_most() -> None:
    """F122: a read over a connection that swallows it fails within 30 s and is repeated over a new one."""

    async def answer(head: str, writer: asyncio.StreamWriter, number: int) -> None:
        if number > 1 or "/one" in head:
            writer.write(whole(b'{"connection": %d}' % number))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with serving(answer) as url:
            client = Client(HttpTransport(url))
            assert await client.raw("GET", "/one") == {"connection": 1}
            hurry(60.0)
            await asyncio.sleep(10)
            begin = loop.time()
            assert await client.raw("GET", "/two") == {"connection": 2}
            # Half a minute for the dead connection, a second before the next one.
            assert 31 <= loop.time() - begin <= 60
            await client.close()

    run(main())


def test_a_stream_may_be_idle_for_longer_than_any_total_time() -> None:
    """F125: a watch that says nothing for six minutes goes on, over the same connection."""
    numbers: list[int] = []

    async def answer(head: str, writer: asyncio.StreamWriter, number: int) -> None:
        numbers.append(number)
        writer.write(HEAD + chunk(b"first"))
        await asyncio.sleep(360)
        writer.write(chunk(b"second") + b"0\r\n\r\n")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with serving(answer) as url:
            transport = HttpTransport(url)
            begin = loop.time()
            async with transport.stream(HttpRequest("GET", "/watch"), idle_timeout=3600) as stream:
                hurry(1000.0)
                assert [c async for c in stream.chunks()] == [b"first", b"second"]
            assert loop.time() - begin >= 360
            await transport.close()

    run(main())
    assert numbers == [1]


def test_a_watch_that_is_cut_in_mid_chunk_goes_on_where_it_was() -> None:
    """F137: a server that ends a watch within a chunk has ended it, no more: nothing is listed again or told twice."""
    asked: list[str] = []

    async def answer(head: str, writer: asyncio.StreamWriter, number: int) -> None:
        path = head.split()[1]
        if "watch=true" not in path:
            writer.write(listed(7))
            return
        asked.append(path)
        if len(asked) == 1:
            writer.write(HEAD + chunk(event("ADDED", pod("a", 8))) + b"400\r\n" + event("ADDED", pod("b", 9))[:50])
            await writer.drain()
            await asyncio.sleep(2)
            writer.close()
        else:
            writer.write(HEAD + chunk(event("ADDED", pod("b", 9))))

    class Told:
        def __init__(self) -> None:
            self.calls: list[str] = []
            self.both = asyncio.Event()

        def on_add(self, obj: dict[str, Any], initial: bool) -> None:
            self.calls.append(obj["metadata"]["name"])
            if len(self.calls) > 1:
                self.both.set()

        on_update = on_delete = on_add

    async def main() -> list[str]:
        told = Told()
        async with serving(answer) as url:
            transport = HttpTransport(url)
            informer = Informer(POD, Client(transport), RealClock(), random.Random(1), streaming=False)
            informer.add_handler(told)
            task = asyncio.create_task(informer.run())
            await told.both.wait()
            task.cancel()
            await asyncio.wait({task})
            await transport.close()
        return told.calls

    assert run(main(), speed=20.0) == ["a", "b"]
    assert [path.partition("resourceVersion=")[2].partition("&")[0] for path in asked] == ["7", "8"]


async def test_a_token_that_rotates_is_read_again_while_the_program_runs(tmp_path: Path) -> None:
    """F133: credentials of a kubeconfig are renewed when they are refused, once for all who wait, not only at first."""
    valid, refusals = "one", list[str]()

    async def answer(head: str, writer: asyncio.StreamWriter, number: int) -> None:
        given = head.lower().partition("authorization: bearer ")[2].partition("\r\n")[0]
        if given != valid:
            refusals.append(given)
        writer.write(whole(b"{}") if given == valid else whole(b"{}", "401 Unauthorized"))

    async with serving(answer) as url:
        (tmp_path / "token").write_text("one")
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {"tokenFile": "token"}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(document))
        client = await connect(str(tmp_path / "config"), user_agent="test")
        valid = "two"
        (tmp_path / "token").write_text("two")
        assert await asyncio.gather(*[client.raw("GET", "/api") for _ in range(5)]) == [{}] * 5
        assert set(refusals) == {"one"}
        assert len(refusals) <= 5
        before = len(refusals)
        await client.raw("GET", "/api")
        assert len(refusals) == before
        await client.close()


def make_client_cert(ca: Certificate, name: str, now: datetime) -> Certificate:
    """A certificate of a client called so, valid for an hour."""
    key, subject = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    signer = serialization.load_pem_private_key(ca.key_pem, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(x509.load_pem_x509_certificate(ca.cert_pem).subject)
        .public_key(key.public_key())
        .serial_number(1 + int(name))
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .sign(signer, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return Certificate(built.public_bytes(pem), key.private_bytes(pem, form, plain))


class Authority:
    """Client certificates by number, and a server that takes one of them."""

    def __init__(self, folder: Path) -> None:
        now, rng = RealClock().now(), random.Random(1)
        self.folder, self.accepted = folder, "0"
        self.seen: list[str] = []
        self.ca = make_ca(now, rng)
        self.server = make_server_cert(self.ca, (), ["127.0.0.1"], now, rng)
        self.clients = [make_client_cert(self.ca, str(number), now) for number in range(3)]
        self.present(0)

    def present(self, number: int, **status: str) -> None:
        """What the plugin prints from now on."""
        made = self.clients[number]
        pair = {"clientCertificateData": made.cert_pem.decode(), "clientKeyData": made.key_pem.decode()}
        answer = {"apiVersion": "client.authentication.k8s.io/v1", "status": pair | status}
        (self.folder / "answer").write_bytes(orjson.dumps(answer))

    @property
    def runs(self) -> int:
        """How often the plugin has run."""
        return len((self.folder / "runs").read_text())

    def config(self, url: str) -> str:
        """A kubeconfig whose user is the plugin."""
        plugin = self.folder / "plugin"
        plugin.write_text(f"#!/bin/sh\nprintf x >> {self.folder}/runs\ncat {self.folder}/answer\n")
        plugin.chmod(0o755)
        entry = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
        authority = b64encode(self.ca.cert_pem).decode()
        document = {
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": url, "certificate-authority-data": authority}}],
            "users": [{"name": "u", "user": {"exec": entry}}],
        }
        (self.folder / "config").write_text(yaml.safe_dump(document))
        return str(self.folder / "config")

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """A server that answers 401 to all but the certificate that is accepted; a watch goes on until the end."""

        async def answer(request: web.Request) -> web.StreamResponse:
            assert request.transport is not None
            shown = request.transport.get_extra_info("peercert")["subject"][0][0][1]
            if "watch" in request.query:
                stream = web.StreamResponse()
                await stream.prepare(request)
                await stream.write(b"first")
                await self.more.wait()
                await stream.write(b"second")
                return stream
            self.seen.append(shown)
            return web.json_response({}, status=200 if shown == self.accepted else 401)

        self.more = asyncio.Event()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.ca.cert_pem.decode())
        (self.folder / "pair").write_bytes(self.server.cert_pem + self.server.key_pem)
        context.load_cert_chain(self.folder / "pair")
        context.verify_mode = ssl.CERT_REQUIRED
        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        try:
            yield f"https://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def test_a_client_certificate_that_is_refused_is_renewed_once_for_all(tmp_path: Path) -> None:
    """F133: as with tokens; a watch that is open goes on over the connection that it has."""
    authority = Authority(tmp_path)
    async with authority.serving() as url:
        client = await connect(authority.config(url), user_agent="test")
        assert (authority.seen, authority.runs) == (["0"], 1)
        async with client.transport.stream(HttpRequest("GET", "/x", (("watch", "1"),))) as stream:
            chunks = stream.chunks()
            assert await anext(chunks) == b"first"
            authority.accepted = "1"
            authority.present(1)
            assert await asyncio.gather(*[client.raw("GET", "/x") for _ in range(5)]) == [{}] * 5
            assert authority.runs == 2
            assert authority.seen.count("1") == 5
            authority.more.set()
            assert [chunk async for chunk in chunks] == [b"second"]
        transport = client.transport
        assert isinstance(transport, HttpTransport)
        assert await client.raw("GET", "/x") == {}
        assert (authority.runs, authority.seen[-1]) == (2, "1")
        await client.close()
        assert transport.sockets == []


async def test_a_client_certificate_is_renewed_before_it_expires(tmp_path: Path) -> None:
    """F133: half a minute before the plugin says, or the certificate itself."""
    authority, clock = Authority(tmp_path), Later()
    async with authority.serving() as url:
        authority.present(0, expirationTimestamp=rfc3339(clock.now() + timedelta(minutes=10)))
        client = await connect(authority.config(url), user_agent="test", clock=clock)
        clock.passed = timedelta(minutes=9)
        await client.raw("GET", "/x")
        assert authority.runs == 1
        authority.accepted = "1"
        authority.present(1)
        clock.passed = timedelta(minutes=9, seconds=31)
        await client.raw("GET", "/x")
        assert (authority.runs, authority.seen) == (2, ["0", "0", "1"])
        authority.accepted = "2"
        authority.present(2)
        clock.passed = timedelta(minutes=59, seconds=31)
        await client.raw("GET", "/x")
        assert (authority.runs, authority.seen[-1]) == (3, "2")
        await client.close()


async def test_a_token_that_cannot_be_sent_does_not_end_a_cache(tmp_path: Path) -> None:
    """F118, F133: a token file that holds nonsense is an error among others, and what is good again is used."""
    token, clock = tmp_path / "token", Hasty()
    token.write_text("two\nlines")

    async def answer(head: str, writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(listed(7) if "watch" not in head.split()[1] else HEAD)

    async with serving(answer) as url:
        transport = HttpTransport(url, token=FileToken(token, clock))
        informer = Informer(POD, Client(transport), clock, random.Random(1), streaming=False)
        task = asyncio.create_task(informer.run())
        await clock.waited.wait()
        assert not task.done()
        token.write_text("one")
        await informer.wait_synced()
        task.cancel()
        await asyncio.wait({task})
        await transport.close()


class Later(RealClock):
    """A clock that has gone on by `passed`."""

    passed = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.passed


class Hasty(RealClock):
    """A clock that does not wait; `waited` is set when it should have."""

    def __init__(self) -> None:
        self.waited = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.waited.set()
        await asyncio.sleep(0.001)


@pytest.fixture(autouse=True)
def quiet() -> object:
    with structlog.testing.capture_logs() as logs:
        yield logs
