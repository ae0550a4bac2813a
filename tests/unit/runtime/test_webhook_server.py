"""The webhook server on a real socket (specification: 70 §17, Webhooks)."""

from __future__ import annotations

import asyncio
import gzip
import io
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lwskit.runtime import listener
from lwskit.runtime.certs import Certificate, make_ca, make_server_cert
from lwskit.runtime.clock import RealClock
from lwskit.runtime.errors import ConfigurationError, LwskitError
from lwskit.runtime.objects import Obj
from lwskit.runtime.tls import TlsFiles
from lwskit.runtime.webhook import allowed
from lwskit.runtime.webhook_server import WebhookServer

CLOCK = RealClock()
BODY = orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u1"}})


def write(folder: Path, seed: int = 1) -> Certificate:
    """Write a server's files and return the CA to trust."""
    rng = random.Random(seed)
    ca = make_ca(CLOCK.now(), rng)
    server = make_server_cert(ca, ["localhost"], ["127.0.0.1"], CLOCK.now(), rng)
    files = TlsFiles.in_folder(folder)
    files.cert.write_bytes(server.cert_pem)
    files.key.write_bytes(server.key_pem)
    return ca


def write_client(folder: Path, ca: Certificate) -> Path:
    """A client's certificate and key, signed by the CA, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    signer = serialization.load_pem_private_key(ca.key_pem, None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    now = CLOCK.now()
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "api server")]))
        .issuer_name(x509.load_pem_x509_certificate(ca.cert_pem).subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "client.pem"
    file.write_bytes(made.public_bytes(pem) + private)
    return file


def trusting(ca: Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=ca.cert_pem.decode())


def make(folder: Path) -> WebhookServer:
    return WebhookServer(TlsFiles.in_folder(folder), CLOCK, host="127.0.0.1", port=0, shutdown_timeout=0.2)


@asynccontextmanager
async def running(server: WebhookServer) -> AsyncIterator[str]:
    task = asyncio.create_task(server.run())
    waiting = asyncio.create_task(server.serving.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        task.result()
    try:
        yield f"https://127.0.0.1:{server.port}"
    finally:
        task.cancel()
        started = CLOCK.monotonic()
        await asyncio.gather(task, return_exceptions=True)
        # Open requests get the 0.2 s that it was made with.
        assert CLOCK.monotonic() - started < 20


async def post(session: aiohttp.ClientSession, url: str, body: bytes = BODY, kind: str = "application/json") -> Obj:
    async with session.post(url, data=io.BytesIO(body), headers={"content-type": kind}) as response:
        assert response.status == 200
        return await response.json()


async def test_handlers_answer_over_tls_also_those_registered_while_it_serves(tmp_path: Path) -> None:
    ca = write(tmp_path)
    server = make(tmp_path)
    server.register("/validate-x", lambda request: allowed("fine"))
    async with running(server) as url, aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(ca))) as http:
        answer = await post(http, f"{url}/validate-x?timeout=10s")
        assert answer["response"]["status"]["message"] == "fine"
        async with http.post(f"{url}/mutate-x", data=BODY) as response:
            assert response.status == 404
        server.register("/mutate-x", lambda request: allowed())
        assert (await post(http, f"{url}/mutate-x"))["response"]["allowed"]
        too_large = await post(http, f"{url}/mutate-x", b" " * 7340032)
        assert too_large["response"]["status"]["code"] == 413
        assert server.stats["/mutate-x"].requests == {"200": 2, "500": 0}
        assert server.stats["/mutate-x"].in_flight == 0
        assert sum(server.stats["/mutate-x"].latency.counts) == 2


async def test_a_failing_handler_is_counted(tmp_path: Path) -> None:
    ca = write(tmp_path)
    server = make(tmp_path)

    def broken(request: Obj) -> Obj:
        raise ValueError("x")

    server.register("/x", broken)
    async with running(server) as url, aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(ca))) as http:
        assert (await post(http, f"{url}/x"))["response"]["status"]["code"] == 500
    assert server.panics == 1


async def test_a_body_that_cannot_be_unpacked_is_a_400_in_the_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ca = write(tmp_path)
    server = make(tmp_path)
    server.register("/x", lambda request: allowed())
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(ca)))
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    async with running(server) as url, session as http:
        for body in (b"xx", gzip.compress(BODY)[:40], gzip.compress(BODY)[:20] + b"zzzz" * 20):
            async with http.post(f"{url}/x", data=io.BytesIO(body), headers=headers) as response:
                assert response.status == 200
                answer = (await response.json())["response"]
            assert (answer["allowed"], answer["status"]["code"]) == (False, 400)
            assert answer["status"]["message"].startswith("the request body ")
        async with http.post(f"{url}/x", data=io.BytesIO(gzip.compress(BODY)), headers=headers) as response:
            assert (await response.json())["response"]["allowed"]
    assert server.panics == 0
    assert server.stats["/x"].in_flight == 0
    assert caplog.records == []


async def test_a_body_that_does_not_come_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lwskit.runtime.webhook_server.BODY", 0.1)
    ca = write(tmp_path)
    server = make(tmp_path)
    server.register("/x", lambda request: allowed())
    async with running(server):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting(ca))
        head = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        writer.write(head)
        async with asyncio.timeout(5):
            answer = await reader.read()
        assert b"200 OK" in answer
        assert b'"code":400,"message":"the request body did not arrive within 0.1 s"' in answer
        assert server.stats["/x"].in_flight == 0
        writer.close()


async def test_an_open_connection_does_not_hold_up_the_end(tmp_path: Path) -> None:
    ca = write(tmp_path)
    server = make(tmp_path)
    async with running(server) as url:
        port = int(url.rpartition(":")[2])
        _, idle = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(ca))
        _, half = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(ca))
        half.write(b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nabc")
        await half.drain()
        _, plain = await asyncio.open_connection("127.0.0.1", port)
    for writer in (idle, half, plain):
        writer.close()


async def test_at_the_end_no_connection_is_left_to_a_client_that_takes_no_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    class Remembered(listener._Server):
        def __init__(self, serve: listener.Serve) -> None:
            super().__init__(serve)
            made.append(self)

    monkeypatch.setattr(listener, "_Server", Remembered)
    ca = write(tmp_path)
    server = make(tmp_path)
    async with running(server):
        answers, deaf = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting(ca))
        deaf.write(b"GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b"404" in await answers.readline()
        deaf.transport.pause_reading()
        assert len(made[0].open) == 1
    assert not made[0].open
    deaf.transport.abort()


async def test_a_connection_that_sends_no_whole_head_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lwskit.runtime.listener.HEAD", 0.05)
    ca = write(tmp_path)
    server = make(tmp_path)
    server.register("/x", lambda request: allowed())
    async with running(server) as url:
        port = int(url.rpartition(":")[2])
        silent, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(ca))
        slow, half = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(ca))
        half.write(b"POST /x HTTP/1.1\r\nhost: x\r\n")
        begun, whole = await asyncio.open_connection("127.0.0.1", port, ssl=trusting(ca))
        whole.write(b"POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(BODY))
        async with asyncio.timeout(5):
            assert await silent.read() == b""
            assert await slow.read() == b""
            # Only the head has a limit: this body comes after both were closed.
            whole.write(BODY)
            assert (await begun.readline()).startswith(b"HTTP/1.1 200")
        for open_one in (writer, half, whole):
            open_one.close()


class Ticking:
    """A clock on which ten seconds pass when the test says so."""

    now, monotonic = CLOCK.now, CLOCK.monotonic

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._sleeping = asyncio.Event()
        self._wake = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._wake.clear()
        self._sleeping.set()
        await self._wake.wait()

    async def tick(self) -> None:
        """Let the sleeper wake, and return when it sleeps again."""
        await self._sleeping.wait()
        self._sleeping.clear()
        self._wake.set()
        await self._sleeping.wait()


async def test_new_handshakes_use_renewed_files_and_never_broken_ones(tmp_path: Path) -> None:
    """70 §17 Webhooks 9: after one look at the files new connections have the new certificate; a broken one is left."""
    write(tmp_path, 1)
    clock = Ticking()
    server = WebhookServer(TlsFiles.in_folder(tmp_path), clock, host="127.0.0.1", port=0, shutdown_timeout=0.2)
    server.register("/x", lambda request: allowed())
    async with running(server) as url:
        ca = write(tmp_path, 2)
        await clock.tick()
        for _ in range(2):
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(ca))) as http:
                assert (await post(http, f"{url}/x"))["response"]["allowed"]
            TlsFiles.in_folder(tmp_path).key.write_text("broken")
            await clock.tick()
        assert server.certificates is not None
        assert server.certificates.errors == 2
        assert set(clock.slept) == {10.0}


async def test_only_clients_of_the_given_authority_are_let_in(tmp_path: Path) -> None:
    ca = write(tmp_path)
    files = TlsFiles.in_folder(tmp_path)
    authority = tmp_path / "clients.crt"
    authority.write_bytes(ca.cert_pem)
    limited = TlsFiles(files.cert, files.key, client_ca=authority)
    server = WebhookServer(limited, CLOCK, host="127.0.0.1", port=0, shutdown_timeout=0.2)
    server.register("/x", lambda request: allowed())
    known = trusting(ca)
    known.load_cert_chain(write_client(tmp_path, ca))
    async with running(server) as url:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=known)) as http:
            assert (await post(http, f"{url}/x"))["response"]["allowed"]
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(ca))) as http:
            with pytest.raises(aiohttp.ClientError):
                await post(http, f"{url}/x")


async def test_another_authority_for_clients_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    ca = write(tmp_path)
    other = make_ca(CLOCK.now(), random.Random(9))
    files = TlsFiles.in_folder(tmp_path)
    authority = tmp_path / "clients.crt"
    authority.write_bytes(ca.cert_pem)
    clock = Ticking()
    limited = TlsFiles(files.cert, files.key, client_ca=authority)
    server = WebhookServer(limited, clock, host="127.0.0.1", port=0, shutdown_timeout=0.2)
    server.register("/x", lambda request: allowed())
    old, new = trusting(ca), trusting(ca)
    old.load_cert_chain(write_client(tmp_path, ca))
    new.load_cert_chain(write_client(tmp_path, other))

    async def is_let_in(context: ssl.SSLContext) -> bool:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as http:
            try:
                return (await post(http, f"{url}/x"))["response"]["allowed"]
            except aiohttp.ClientError:
                return False

    async with running(server) as url:
        assert (await is_let_in(old), await is_let_in(new)) == (True, False)
        authority.write_bytes(other.cert_pem)
        await clock.tick()
        assert (await is_let_in(old), await is_let_in(new)) == (False, True)
        assert not await is_let_in(trusting(ca))
        authority.write_text("broken")
        await clock.tick()
        assert server.certificates is not None
        assert server.certificates.errors == 1
        assert (await is_let_in(old), await is_let_in(new)) == (False, True)
        authority.write_bytes(ca.cert_pem)
        ca = write(tmp_path, 3)
        await clock.tick()
        old.load_verify_locations(cadata=ca.cert_pem.decode())
        assert await is_let_in(old)


async def test_a_server_without_a_port_keeps_its_handlers_and_counts_as_healthy(tmp_path: Path) -> None:
    server = WebhookServer(TlsFiles.in_folder(tmp_path), CLOCK, port=-1)
    server.register("/x", lambda request: allowed())
    await server.run()
    await server.check_started()
    assert list(server.handlers) == ["/x"]


async def test_only_http_1_1_and_tls_1_2_or_newer_are_spoken(tmp_path: Path) -> None:
    ca = write(tmp_path)
    server = make(tmp_path)
    async with running(server) as url:
        port = int(url.rpartition(":")[2])
        context = trusting(ca)
        context.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
        writer.close()
        await writer.wait_closed()
        assert server.certificates is not None
        assert server.certificates.context.minimum_version is ssl.TLSVersion.TLSv1_2


async def test_without_a_certificate_the_start_fails(tmp_path: Path) -> None:
    """70 §17 Webhooks 10: a server without a usable certificate does not start."""
    with pytest.raises(ConfigurationError, match="cannot be used"):
        await make(tmp_path).run()


async def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    write(tmp_path)
    async with running(make(tmp_path)) as url:
        port = int(url.rpartition(":")[2])
        other = WebhookServer(TlsFiles.in_folder(tmp_path), CLOCK, host="127.0.0.1", port=port)
        with pytest.raises(ConfigurationError, match=f"webhook server cannot listen on 127.0.0.1:{port}: .*in use"):
            await other.run()


async def test_readiness_asks_the_server_itself(tmp_path: Path) -> None:
    write(tmp_path)
    server = make(tmp_path)
    with pytest.raises(LwskitError, match="webhook server has not been started yet"):
        await server.check_started()
    async with running(server):
        await server.check_started()


def test_paths_are_checked(tmp_path: Path) -> None:
    server = make(tmp_path)
    server.register("/a-b/c_d", lambda request: allowed())
    for path in ("/a-b/c_d", "no-slash", "/with space", "/x/"):
        with pytest.raises(ConfigurationError):
            server.register(path, lambda request: allowed())
