"""A cache filled with a hundred thousand pods, and filled anew: bytes for each, and how long the loop stands still.

python -m tests.bench.filling fill on|off URL PODS: one filling in this process, the result as JSON.
python -m tests.bench.filling serve: an HTTP server of pods, lists in pages and streaming lists; prints its URL. A PUT
of `same` or `changed` ends its watches with 410; after the latter all pods have another version.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.http import HttpTransport
from lwskit.runtime.clock import RealClock
from lwskit.runtime.controller.handler import for_owner
from lwskit.runtime.controller.source import KindSource
from lwskit.runtime.gc import GcPolicy
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.queue import WorkQueue
from lwskit.runtime.request import Request
from tests.bench import samples
from tests.bench.rounds import Report
from tests.bench.watching import by_group, by_node, by_set

PODS, PAGE = 100_000, 500
BEAT = 0.001
LIMIT_KIB, LIMIT_MS = 20, 50
MODULE = [sys.executable, "-m", "tests.bench.filling"]
END = {"k8s.io/initial-events-end": "true"}
EXPIRED = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}


async def serve() -> None:
    """Serve the pods of `/PODS` until the input ends."""
    changes, expired = 0, asyncio.Event()

    async def expire(request: web.Request) -> web.Response:
        nonlocal changes, expired
        changes += request.path.endswith("changed")
        expired.set()
        expired = asyncio.Event()
        return web.Response()

    async def answer(request: web.Request) -> web.StreamResponse:
        pods, query, ended = int(request.match_info["pods"]), request.query, expired
        if "watch" not in query:
            first = int(query.get("continue", "0"))
            return web.Response(body=samples.page(pods, first, PAGE, changes), content_type="application/json")
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        if query.get("sendInitialEvents") == "true":
            for first in range(0, pods, 50):
                numbers, version = range(first, min(first + 50, pods)), 1000 + changes * pods
                await response.write(b"".join(samples.event("ADDED", samples.pod(n, version + n)) for n in numbers))
            meta = {"resourceVersion": str(1000 + (changes + 1) * pods), "annotations": END}
            await response.write(samples.event("BOOKMARK", {"apiVersion": "v1", "kind": "Pod", "metadata": meta}))
        await ended.wait()
        # Clients that are through leave without a word.
        with suppress(ConnectionResetError):
            await response.write(samples.event("ERROR", EXPIRED))
        return response

    app = web.Application()
    app.router.add_get("/{pods:[0-9]+}/api/v1/pods", answer)
    app.router.add_put("/same", expire)
    app.router.add_put("/changed", expire)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(site.name, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


def resident() -> int:
    """Bytes of memory that this process has."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024


class Heart:
    """Wants to beat every millisecond; `stalls` are the longest processor times between two beats.

    Processor time, since waiting for a processor that others use is not the program's doing.
    """

    def __init__(self) -> None:
        self.stalls: list[float] = []

    async def run(self) -> None:
        last = time.process_time()
        while True:
            await asyncio.sleep(BEAT)
            now = time.process_time()
            self.stalls.append(now - last)
            last = now


async def fill(policy: bool, url: str, pods: int, streaming: bool) -> dict[str, Any]:
    """Fill a cache with three indexes and an owner handler, with or without GcPolicy."""
    clock, queue = RealClock(), WorkQueue[Request](RealClock())
    client = Client(HttpTransport(f"{url}/{pods}", user_agent="bench"), clock=clock)
    cache = Cache(client, clock, random.Random(1), streaming=streaming)
    informer = cache.informer(POD)
    for name, function in (("node", by_node), ("set", by_set), ("group", by_group)):
        informer.add_index(name, function)
    KindSource(informer, for_owner(STATEFUL_SET)).start(queue)
    heart = Heart()
    before, began = resident(), time.process_time()
    tasks = [asyncio.create_task(heart.run()), asyncio.create_task(cache.run())]
    if policy:
        tasks.append(asyncio.create_task(GcPolicy(clock, cache).run()))
    await informer.wait_synced()
    took = time.process_time() - began
    for _ in range(10):
        await asyncio.sleep(2 * BEAT)
    found = len(informer.store)
    after = resident()
    result = {"bytes": (after - before) / pods, "stall": max(heart.stalls), "seconds": took}
    for what in ("same", "changed") if policy else ():
        result |= {f"{what} {name}": value for name, value in (await relist(informer, heart, url, what)).items()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await client.close()
    if found != pods:
        raise AssertionError(f"{found} pods are cached instead of {pods}")
    return result


async def relist(informer: Informer, heart: Heart, url: str, what: str) -> dict[str, float]:
    """End the watch with 410, and wait until the list that then comes was taken in and handed out."""
    expired, listed = asyncio.Event(), asyncio.Event()
    informer.add_health_handler(lambda healthy: listed.set() if healthy else expired.set())
    heart.stalls.clear()
    began = time.process_time()
    async with aiohttp.ClientSession() as session, session.put(f"{url}/{what}"):
        pass
    await expired.wait()
    listed.clear()
    await listed.wait()
    for _ in range(10):
        await asyncio.sleep(2 * BEAT)
    return {"stall": max(heart.stalls), "seconds": time.process_time() - began}


@contextmanager
def server() -> Iterator[str]:
    """The URL of a server in a process of its own."""
    with subprocess.Popen([*MODULE, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def filled(policy: str, url: str, pods: int, how: str) -> dict[str, Any]:
    """The result of one filling in a process of its own."""
    run = subprocess.run([*MODULE, "fill", policy, url, str(pods), how], stdout=subprocess.PIPE, check=True)
    # What is logged comes before it.
    return json.loads(run.stdout.splitlines()[-1])


def measure(report: Report, pods: int) -> None:
    """Fill caches in processes of their own, over HTTP: by a list in pages and by a streaming list."""
    report.say(f"a cache of {pods} pods ({samples.SIZE} bytes), 3 indexes, owner handler, over HTTP")
    with server() as url:
        for how in ("paged", "streaming"):
            on, off = (filled(policy, url, pods, how) for policy in ("on", "off"))
            report.figure(f"for each pod, {how} list", on["bytes"] / 1024, "KiB", most=LIMIT_KIB)
            report.figure(f"worst stall, {how} list, GC policy on", on["stall"] * 1000, "ms", most=LIMIT_MS)
            report.figure(f"worst stall, {how} list, GC policy off", off["stall"] * 1000, "ms")
            text = f"worst stall of a {how} list after a 410"
            report.figure(f"{text}, nothing changed", on["same stall"] * 1000, "ms", most=LIMIT_MS)
            report.figure(f"{text}, everything changed", on["changed stall"] * 1000, "ms")
            report.ratio(f"processor time of filling, {how} list, policy off per on", off["seconds"] / on["seconds"])


def main(arguments: Sequence[str]) -> None:
    """See the module's docstring."""
    match arguments:
        case ["serve"]:
            asyncio.run(serve())
        case ["fill", policy, url, pods, how]:
            print(json.dumps(asyncio.run(fill(policy == "on", url, int(pods), how == "streaming"))))
        case _:
            measure(Report(), int(arguments[0]) if arguments else PODS)


if __name__ == "__main__":
    main(sys.argv[1:])
