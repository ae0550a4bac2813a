import asyncio
from contextlib import asynccontextmanager

import orjson
import pytest

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpResponse
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.kinds import POD
from lwskit.testing.observer import Observer, settled

pytestmark = pytest.mark.virtual


class Server:
    """Answers one list, and streams what is put into `queue`."""

    def __init__(self, status=200):
        self.queue = asyncio.Queue()
        self.status = status
        self.headers = {}
        self.version = 41
        self.query = ()

    async def send(self, request, *, timeout=None):
        return HttpResponse(200, b'{"metadata": {"resourceVersion": "41"}, "items": []}')

    @asynccontextmanager
    async def stream(self, request, *, idle_timeout=None):
        self.query = request.query
        yield self

    async def chunks(self):
        while (chunk := await self.queue.get()) is not None:
            yield chunk

    async def read(self):
        return b'{"kind": "Status", "message": "no", "reason": "Forbidden", "code": 403}'

    async def close(self):
        pass

    def tell(self, kind, name, uid):
        self.version += 1
        meta = {"name": name, "uid": uid, "resourceVersion": str(self.version)}
        event = {"type": kind, "object": {"metadata": meta}}
        self.queue.put_nowait(orjson.dumps(event) + b"\n")


async def test_changes_are_counted_by_name_and_identity():
    server = Server()
    async with Observer(Client(server), POD, "ns") as observer:
        server.tell("ADDED", "a", "1")
        server.tell("MODIFIED", "a", "1")
        server.tell("DELETED", "a", "1")
        server.tell("ADDED", "a", "2")
        server.tell("ADDED", "b", "3")
        await asyncio.sleep(1)
    assert ("resourceVersion", "41") in server.query
    assert observer.born == {"a": 2, "b": 1}
    assert observer.gone == {"a": 1}
    assert [c.type for c in observer.of("a")] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
    assert len(asyncio.all_tasks()) == 1


async def test_lines_may_be_cut_anywhere():
    server = Server()
    async with Observer(Client(server), POD, "ns") as observer:
        meta = {"name": "ä", "uid": "1", "resourceVersion": "42"}
        line = orjson.dumps({"type": "ADDED", "object": {"metadata": meta}}) + b"\n"
        for byte in line:
            server.queue.put_nowait(bytes([byte]))
        await asyncio.sleep(1)
    assert observer.born == {"ä": 1}


async def test_a_watch_that_ends_goes_on_where_it_was():
    server = Server()
    async with Observer(Client(server), POD, "ns") as observer:
        server.tell("ADDED", "a", "1")
        server.queue.put_nowait(None)
        await asyncio.sleep(1)
        assert ("resourceVersion", "42") in server.query
        server.tell("ADDED", "b", "2")
        await asyncio.sleep(1)
    assert observer.born == {"a": 1, "b": 1}


async def test_a_lost_watch_is_told_at_the_end():
    server = Server()
    gone = {"kind": "Status", "message": "too old", "reason": "Expired", "code": 410}
    server.queue.put_nowait(orjson.dumps({"type": "ERROR", "object": gone}) + b"\n")
    with pytest.raises(LwskitError, match="the watch of pods failed: too old"):
        async with Observer(Client(server), POD, "ns"):
            await asyncio.sleep(1)


async def test_an_error_of_the_test_comes_first():
    server = Server()
    asyncio.get_running_loop().call_later(0.5, server.queue.put_nowait, b'{"type": "ERROR", "object": {}}\n')

    async def test_that_fails():
        async with Observer(Client(server), POD, "ns"):
            await asyncio.sleep(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await test_that_fails()


async def test_a_refused_watch_is_told_at_once():
    with pytest.raises(LwskitError, match="no"):
        async with Observer(Client(Server(403)), POD, "ns"):
            pytest.fail("it was entered")


async def test_settled_waits_for_quiet():
    loop = asyncio.get_running_loop()

    async def snapshot():
        return min(int(loop.time()), 3)

    await settled(snapshot, quiet=2, timeout=60)
    assert 4.9 < loop.time() < 5.3


async def test_settled_gives_up():
    loop = asyncio.get_running_loop()

    async def snapshot():
        return int(loop.time())

    with pytest.raises(AssertionError, match="still changing after 10 s"):
        await settled(snapshot, quiet=2, timeout=10)
