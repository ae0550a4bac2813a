"""What broke for users of other clients, tried on real sockets; minutes pass quickly here (docs/field-cases.md)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
import yaml

from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import connect
from lwskit.runtime.client.http import HttpTransport
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.clock import RealClock
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


@pytest.fixture(autouse=True)
def quiet() -> object:
    with structlog.testing.capture_logs() as logs:
        yield logs
