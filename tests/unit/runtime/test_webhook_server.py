"""The webhook server on a real socket (specification: 70 §17, Webhooks)."""

from __future__ import annotations

import asyncio
import io
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest

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
        assert CLOCK.monotonic() - started < 2


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


async def test_new_handshakes_use_renewed_files(tmp_path: Path) -> None:
    write(tmp_path, 1)
    server = make(tmp_path)
    server.register("/x", lambda request: allowed())
    async with running(server) as url:
        ca = write(tmp_path, 2)
        assert server.certificates is not None
        assert server.certificates.check()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(ca))) as http:
            assert (await post(http, f"{url}/x"))["response"]["allowed"]


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
