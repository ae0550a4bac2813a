import asyncio
from contextlib import asynccontextmanager

import pytest

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpResponse
from lwskit.runtime.errors import Conflict, ConnectionFailed
from lwskit.runtime.kinds import POD
from lwskit.testing.interceptors import Interceptor, matching
from lwskit.testing.streams import Repeat
from lwskit.testing.virtual import VirtualClock

pytestmark = pytest.mark.virtual


class FakeStream:
    status = 200
    headers: dict = {}  # noqa: RUF012

    def __init__(self, queue):
        self.queue = queue

    async def chunks(self):
        while (chunk := await self.queue.get()) is not None:
            yield chunk

    async def read(self):
        return b""


class FakeServer:
    def __init__(self):
        self.queue = asyncio.Queue()
        self.sent = []
        self.closed = False

    async def send(self, request, *, timeout=None):
        self.sent.append(request)
        return HttpResponse(200, b'{"metadata": {}, "items": []}')

    @asynccontextmanager
    async def stream(self, request, *, idle_timeout=None):
        yield FakeStream(self.queue)

    async def close(self):
        self.closed = True


@pytest.fixture
async def server():
    return FakeServer()


@pytest.fixture
async def interceptor(server):
    return Interceptor(server, user_agent="tester")


@pytest.fixture
async def client(interceptor):
    return Client(interceptor, clock=VirtualClock())


async def test_requests_are_recorded_with_verb_and_agent(client, interceptor, server):
    await client.get(POD, "a", "ns")
    await client.list(POD, "ns")
    await client.list(POD)
    await client.delete(POD, "a", "ns")
    await client.delete_collection(POD, "ns")
    await client.patch(POD, "a", {}, "ns", subresource="status")
    assert [r.verb for r in interceptor.requests] == ["get", "list", "list", "delete", "deletecollection", "patch"]
    assert {r.user_agent for r in interceptor.requests} == {"tester"}
    assert {r.status for r in interceptor.requests} == {200}
    assert server.sent[0].headers["user-agent"] == "tester"
    assert interceptor.summary()["patch pods/status"] == 1
    assert interceptor.count(matching("DELETE")) == 2
    assert interceptor.count(verb="list") == 2


async def test_errors_are_injected_a_number_of_times(client, interceptor, server):
    interceptor.fail(matching("GET", r"/pods/a$"), Conflict("busy"), times=2)
    for _ in range(2):
        with pytest.raises(Conflict):
            await client.get(POD, "a", "ns")
    await client.get(POD, "a", "ns")
    assert [r.status for r in interceptor.requests] == [409, 409, 200]
    assert len(server.sent) == 1


async def test_answers_get_lost_after_the_server_has_done_its_part(client, interceptor, server):
    interceptor.lose(matching("DELETE"), ConnectionFailed("reset"))
    with pytest.raises(ConnectionFailed):
        await client.delete(POD, "a", "ns")
    await client.delete(POD, "a", "ns")
    assert [r.method for r in server.sent] == ["DELETE", "DELETE"]
    assert [r.status for r in interceptor.requests] == [-1, 200]


async def test_latency(client, interceptor):
    interceptor.delay(matching("GET"), 3)
    await client.get(POD, "a", "ns")
    interceptor.clear()
    await client.get(POD, "a", "ns")
    assert asyncio.get_running_loop().time() == 3


async def test_held_requests_go_out_at_the_end_of_the_block(client, interceptor, server):
    with interceptor.hold(matching("DELETE")):
        task = asyncio.create_task(client.delete(POD, "a", "ns"))
        await asyncio.sleep(60)
        assert not task.done()
        await client.get(POD, "a", "ns")
    await task
    assert [r.method for r in server.sent] == ["GET", "DELETE"]


async def follow(client, seen):
    async with client.watch(POD) as response:
        async for chunk in response.chunks():
            seen.append((chunk, asyncio.get_running_loop().time()))


async def test_a_cut_watch_breaks(client, interceptor, server):
    seen = []
    task = asyncio.create_task(follow(client, seen))
    server.queue.put_nowait(b"one")
    await asyncio.sleep(1)
    assert interceptor.open_watches == 1
    assert interceptor.cut_watches() == 1
    with pytest.raises(ConnectionFailed, match="cut"):
        await task
    assert seen == [(b"one", 0)]
    assert interceptor.open_watches == 0
    assert interceptor.cut_watches() == 0


async def test_only_matching_watches_are_cut(client, interceptor):
    task = asyncio.create_task(follow(client, []))
    await asyncio.sleep(1)
    assert interceptor.cut_watches(matching(path="statefulsets")) == 0
    assert interceptor.cut_watches(matching(path="pods")) == 1
    with pytest.raises(ConnectionFailed):
        await task


async def test_held_watches_deliver_later_and_in_order(client, interceptor, server):
    seen = []
    task = asyncio.create_task(follow(client, seen))
    await asyncio.sleep(1)
    with interceptor.hold_watches():
        server.queue.put_nowait(b"one")
        server.queue.put_nowait(b"two")
        await asyncio.sleep(9)
        assert seen == []
    server.queue.put_nowait(None)
    await task
    assert seen == [(b"one", 10), (b"two", 10)]


async def test_slow_watches_deliver_late(client, interceptor, server):
    seen = []
    task = asyncio.create_task(follow(client, seen))
    await asyncio.sleep(1)
    with interceptor.slow_watches(lambda request: 3.0 if "pods" in request.path else 99.0):
        server.queue.put_nowait(b"one")
        await asyncio.sleep(10)
    server.queue.put_nowait(b"two")
    server.queue.put_nowait(None)
    await task
    assert seen == [(b"one", 4), (b"two", 11)]


async def test_a_slow_watch_can_be_cut(client, interceptor, server):
    task = asyncio.create_task(follow(client, []))
    await asyncio.sleep(1)
    with interceptor.slow_watches(lambda request: 60.0):
        server.queue.put_nowait(b"one")
        await asyncio.sleep(10)
        interceptor.cut_watches()
        with pytest.raises(ConnectionFailed):
            await task


async def test_watches_down_keeps_relists_waiting(client, interceptor, server):
    task = asyncio.create_task(follow(client, []))
    await asyncio.sleep(1)
    with interceptor.watches_down():
        with pytest.raises(ConnectionFailed):
            await task
        relist = asyncio.create_task(client.list(POD))
        await asyncio.sleep(60)
        await client.get(POD, "a", "ns")
        assert not relist.done()
    await relist
    assert [r.path for r in server.sent] == ["/api/v1/namespaces/ns/pods/a", "/api/v1/pods"]


async def test_a_cancelled_reader_ends_cleanly(client, interceptor):
    task = asyncio.create_task(follow(client, []))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert interceptor.open_watches == 0
    assert len(asyncio.all_tasks()) == 1


async def test_close_closes_the_inner_transport(client, server):
    await client.close()
    assert server.closed


async def test_wrappers_take_requests_over_the_last_one_first(client, interceptor, server):
    told = []

    def wrapper(name):
        async def wrap(request, send):
            told.append(name)
            response = await send(request)
            told.append(f"{name} {response.status}")
            return HttpResponse(200, b'{"kind": "Pod", "by": "%s"}' % name.encode())

        return wrap

    interceptor.around(matching("GET", "/pods/a$"), wrapper("first"))
    interceptor.around(matching("GET"), wrapper("second"))
    assert await client.get(POD, "a", "ns") == {"kind": "Pod", "by": "second"}
    assert told == ["second", "first", "first 200", "second 200"]
    assert await client.get(POD, "b", "ns") == {"kind": "Pod", "by": "second"}
    assert len(server.sent) == 2


async def test_nothing_passes_a_severed_connection(client, interceptor, server):
    seen = []
    task = asyncio.create_task(follow(client, seen))
    with interceptor.hold(matching("DELETE")):
        held = asyncio.create_task(client.delete(POD, "a", "ns"))
        await asyncio.sleep(1)
        interceptor.sever("dead")
    for broken in (task, held):
        with pytest.raises(ConnectionFailed, match=r"dead|cut"):
            await broken
    with pytest.raises(ConnectionFailed, match="dead"):
        await follow(client, seen)
    assert (server.sent, seen) == ([], [])


async def test_a_watch_repeats_itself(client, interceptor, server):
    lines = [
        b'{"type":"%s","n":%d}\n' % (kind, n) for n, kind in enumerate((b"ADDED", b"MODIFIED", b"BOOKMARK", b"DELETED"))
    ]
    seen = []
    task = asyncio.create_task(follow(client, seen))
    await asyncio.sleep(1)

    async def delivered(*chunks):
        seen.clear()
        for chunk in chunks:
            server.queue.put_nowait(chunk)
        await asyncio.sleep(1)
        return b"".join(chunk for chunk, _ in seen)

    one, two, mark, three = lines
    with interceptor.repeat_events(Repeat.SAME):
        assert await delivered(one, two + mark + three) == one + one + two + two + mark + three + three
        assert await delivered(one[:5], one[5:] + two[:3], two[3:]) == one + one + two + two
    assert await delivered(three) == three
    with interceptor.repeat_events(Repeat.OLDER):
        assert await delivered(one, mark, two) == one + three + mark + two + one
    server.queue.put_nowait(None)
    await task
