"""From the bytes of a watch to a request in a controller's queue, against decoding and other clients' ways."""

from __future__ import annotations

import asyncio
import importlib.util
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import orjson

from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.clock import RealClock
from lwskit.runtime.controller.handler import for_owner
from lwskit.runtime.controller.source import KindSource
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, labels_of, version_of
from lwskit.runtime.queue import WorkQueue
from lwskit.runtime.request import Request
from tests.bench import kopf_run, samples
from tests.bench.rounds import Report, medians

STREAMS = ((100, 119, 2.2), (3000, 3, None))
"""Pods, how often each changes after it came, and the target.

The states of 100 pods fit into a processor's cache, those of 3000 do not: there decoding alone takes twice as long as
soon as anybody keeps what was decoded.
"""
EMPTY_LIST = b'{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}'


class Played:
    """A transport without network: an empty list, then a stream of chunks that stays open.

    `began` and `ended` are when the first chunk was asked for, and one more than there are: all are worked through.
    """

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.began = self.ended = 0.0
        self.read_through = asyncio.Event()
        self._chunks = chunks

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        return HttpResponse(200, EMPTY_LIST)

    @asynccontextmanager
    async def stream(self, request: HttpRequest, *, idle_timeout: float | None = None) -> AsyncIterator[Played]:
        yield self

    async def chunks(self) -> AsyncIterator[bytes]:
        self.began = time.process_time()
        for chunk in self._chunks:
            yield chunk
        self.ended = time.process_time()
        self.read_through.set()
        await asyncio.get_running_loop().create_future()

    async def read(self) -> bytes:
        return b""

    async def close(self) -> None:
        return


def by_node(obj: Obj) -> list[str]:
    """An index by the node."""
    node = obj["spec"].get("nodeName")
    return [node] if node else []


def by_set(obj: Obj) -> list[str]:
    """An index by the set's label."""
    name = labels_of(obj).get(f"{samples.LABELS}/name")
    return [name] if name else []


def by_group(obj: Obj) -> list[str]:
    """An index by the group's label."""
    key = labels_of(obj).get(f"{samples.LABELS}/group-key")
    return [key] if key else []


def informer(played: Played) -> Informer:
    """An informer of pods with three indexes."""
    made = Informer(POD, Client(played), RealClock(), random.Random(1), streaming=False)
    for name, function in (("node", by_node), ("set", by_set), ("group", by_group)):
        made.add_index(name, function)
    return made


async def through_lwskit(chunks: Sequence[bytes], pods: int, newest: int) -> float:
    """Seconds until every event's request was put into the queue."""
    played, queue = Played(chunks), WorkQueue[Request](RealClock())
    followed = informer(played)
    KindSource(followed, for_owner(STATEFUL_SET)).start(queue)
    task = asyncio.create_task(followed.run())
    await played.read_through.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(followed.store) == pods, len(followed.store)
    assert len(queue) == pods // 4, len(queue)
    assert max(int(version_of(obj)) for obj in followed.store) == newest
    return played.ended - played.began


def decoding(lines: Sequence[bytes]) -> float:
    """Seconds that orjson takes for the lines alone."""
    began = time.process_time()
    for line in lines:
        orjson.loads(line)
    return time.process_time() - began


def lwskit(chunks: Sequence[bytes], pods: int, changes: int) -> float:
    """The same, in an event loop of its own."""
    return asyncio.run(through_lwskit(chunks, pods, 1000 + pods * (changes + 1) - 1))


class _Response:
    """What kubernetes_asyncio's Watch reads: an answer of aiohttp whose body is all here already."""

    def __init__(self, body: asyncio.StreamReader) -> None:
        self.content = body

    def close(self) -> None:
        return

    def release(self) -> None:
        return


async def through_kubernetes_asyncio(chunks: Sequence[bytes], events: int, *, typed: bool) -> float:
    """Seconds until its Watch has handed out every event, as models (its own way) or as dicts; nothing is kept."""
    from kubernetes_asyncio import watch

    body = asyncio.StreamReader(limit=2**24)
    for chunk in chunks:
        body.feed_data(chunk)
    body.feed_eof()

    async def list_pods(**options: object) -> _Response:
        return _Response(body)

    watching = watch.Watch(return_type="V1Pod" if typed else "object")
    began, left = time.process_time(), events
    async for _ in watching.stream(list_pods, timeout_seconds=3600):
        left -= 1
        if not left:
            break
    ended = time.process_time()
    watching.stop()
    await watching.close()
    return ended - began


def keeping(lines: Sequence[bytes], pods: int) -> float:
    """Seconds that orjson takes for the lines when the newest state of each pod is kept, as any cache must."""
    kept: dict[int, Obj] = {}
    began = time.process_time()
    for number, line in enumerate(lines):
        kept[number % pods] = orjson.loads(line)
    return time.process_time() - began


async def whole(size: int = 1_500_000) -> int:
    """A pod of that many bytes arrives through a watch as it was sent; returns the bytes it then has."""
    big = samples.pod(0, 1001)
    big["metadata"]["annotations"]["example.com/big"] = "x" * (size - len(orjson.dumps(big)))
    played = Played(samples.chunks([samples.event("ADDED", big)]))
    followed = informer(played)
    task = asyncio.create_task(followed.run())
    await played.read_through.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    stored = followed.store.list()[0]
    expected = {**big, "metadata": {k: v for k, v in big["metadata"].items() if k != "managedFields"}}
    if stored != expected:
        raise AssertionError("an object of 1.5 MB did not arrive as it was sent")
    return len(orjson.dumps(big))


def measure(report: Report, rounds: int) -> None:
    """Measure the way into the queue against decoding, and against other clients."""
    for pods, changes, most in STREAMS:
        lines = samples.stream(pods, changes)
        chunks, events = samples.chunks(lines), len(lines)
        report.say(f"watch to queue, {events} events of {pods} pods ({samples.SIZE} bytes), 3 indexes, owner handler")
        bare = [line[:-1] for line in lines]
        measures: dict[str, Callable[[], float]] = {
            "decode": partial(decoding, bare),
            "keep": partial(keeping, bare, pods),
            "lwskit": partial(lwskit, chunks, pods, changes),
        }
        found = medians(measures, rounds)
        report.ratio("lwskit, per orjson.loads alone", found["lwskit"] / found["decode"], most=most)
        report.ratio("lwskit, per orjson.loads with the newest state of each pod kept", found["lwskit"] / found["keep"])
        rates = {name: f"{events / seconds:.0f}" for name, seconds in found.items()}
        report.say(f"            (events/s: {rates['decode']} decoded, {rates['keep']} kept, {rates['lwskit']} queued)")
    _compare(report)
    report.figure("one object, whole through a watch", asyncio.run(whole()) / 1e6, "MB", least=1.5)


def _compare(report: Report) -> None:
    """Others on the first stream, shortened: they are slow. lwskit keeps everything; Watch keeps nothing."""
    pods, changes = STREAMS[0][0], 9
    lines = samples.stream(pods, changes)
    chunks, events = samples.chunks(lines), len(lines)
    report.say(f"the same with other clients, {events} events of {pods} pods, in processor time")
    measures: dict[str, Callable[[], float]] = {
        "lwskit": partial(lwskit, chunks, pods, changes),
        "models": lambda: asyncio.run(through_kubernetes_asyncio(chunks, events, typed=True)),
        "dicts": lambda: asyncio.run(through_kubernetes_asyncio(chunks, events, typed=False)),
    }
    if importlib.util.find_spec("kubernetes_asyncio") is None:
        report.say("            skipped, kubernetes_asyncio: it is not installed")
    try:
        kopf_run.python()
        # The child measures itself, in processor seconds too.
        measures["kopf"] = lambda: asyncio.run(kopf_run.through_kopf(chunks, events)) * events
    except kopf_run.Unavailable as e:
        report.say(f"            skipped, kopf: {e}")
    found = medians(measures, 5)
    for name, text, least in (
        ("kopf", "kopf (three indexes, an event handler), per lwskit", 10),
        ("models", "kubernetes_asyncio.watch of V1Pod, nothing kept or indexed, per lwskit", 10),
        ("dicts", "kubernetes_asyncio.watch of plain dicts, nothing kept or indexed, per lwskit", None),
    ):
        if name in found:
            report.ratio(text, found[name] / found["lwskit"], least=least)


if __name__ == "__main__":
    measure(Report(), 7)
