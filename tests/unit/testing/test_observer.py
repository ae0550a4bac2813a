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
    """Lists `items`, and streams what is put into `queue`, late by `lag` seconds."""

    def __init__(self, status=200):
        self.queue = asyncio.Queue()
        self.status = status
        self.headers = {}
        self.version = 41
        self.query = ()
        self.items = {}
        self.lag = 0.0

    async def send(self, request, *, timeout=None):
        listed = {"metadata": {"resourceVersion": str(self.version)}, "items": [*self.items.values()]}
        return HttpResponse(200, orjson.dumps(listed))

    @asynccontextmanager
    async def stream(self, request, *, idle_timeout=None):
        self.query = request.query
        yield self

    async def chunks(self):
        while (chunk := await self.queue.get()) is not None:
            await asyncio.sleep(self.lag)
            yield chunk

    async def read(self):
        return b'{"kind": "Status", "message": "no", "reason": "Forbidden", "code": 403}'

    async def close(self):
        pass

    def tell(self, kind, name, uid):
        self.version += 1
        meta = {"name": name, "uid": uid, "resourceVersion": str(self.version)}
        event = {"type": kind, "object": {"metadata": meta}}
        self.items[uid] = event["object"]
        if kind == "DELETED":
            del self.items[uid]
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
        server.items["1"] = {"metadata": meta}
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


async def test_what_the_watch_tells_late_is_waited_for():
    server = Server()
    server.tell("ADDED", "stays", "1")
    server.tell("ADDED", "goes", "2")
    server.queue = asyncio.Queue()
    server.lag = 3.0
    async with Observer(Client(server), POD, "ns") as observer:
        server.tell("ADDED", "comes", "3")
        server.tell("MODIFIED", "comes", "3")
        server.tell("DELETED", "goes", "2")
    assert [(c.type, c.name) for c in observer.changes] == [
        ("ADDED", "comes"),
        ("MODIFIED", "comes"),
        ("DELETED", "goes"),
    ]
    assert 9 <= asyncio.get_running_loop().time() < 10


async def test_what_comes_after_the_end_is_not_waited_for():
    """Something else changes all the time: an object is made while the list is on its way, another one changes."""
    server = Server()
    server.tell("ADDED", "a", "1")
    server.queue = asyncio.Queue()
    answer = server.send

    async def send(request, *, timeout=None):
        response = await answer(request, timeout=timeout)
        server.tell("ADDED", f"b-{server.version}", str(server.version))
        server.tell("MODIFIED", "a", "1")
        await asyncio.sleep(1)
        return response

    async with Observer(Client(server), POD, "ns") as observer:
        server.send = send
    assert observer.born.total() == 1
    assert asyncio.get_running_loop().time() < 2


async def test_a_watch_that_never_tells_is_told_of():
    server = Server()
    with pytest.raises(LwskitError, match="the watch of pods does not tell of unseen within 30 s"):
        async with Observer(Client(server), POD, "ns"):
            server.items["1"] = {"metadata": {"name": "unseen", "uid": "1", "resourceVersion": "42"}}
    assert len(asyncio.all_tasks()) == 1


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


async def test_settled_takes_no_stall_for_quiet():
    """The machine stands still for long, and what was to change does so soon after that."""
    loop = asyncio.get_running_loop()
    looks = []

    async def snapshot():
        looks.append(loop.time())
        if len(looks) == 2:
            await asyncio.sleep(10)
        return loop.time() > 10.5

    await settled(snapshot, quiet=1.5, timeout=60)
    assert loop.time() > 12


async def test_settled_waits_longer_where_looks_are_slow():
    loop = asyncio.get_running_loop()

    async def snapshot():
        await asyncio.sleep(1)

    await settled(snapshot, quiet=1.5, timeout=3)
    assert 6 < loop.time() < 10
