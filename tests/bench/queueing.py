"""A request's way through the work queue, with ten workers and every metric, against asyncio.Queue."""

from __future__ import annotations

import asyncio
import time

from lwskit.runtime.clock import RealClock
from lwskit.runtime.queue import WorkQueue
from lwskit.runtime.request import Request
from tests.bench.rounds import Report, medians

WORKERS, REQUESTS, BATCH = 10, 50_000, 100
_END = Request("", "end")


def requests() -> list[Request]:
    """Different requests, as an owner handler makes them."""
    return [Request(f"team-{n % 20}", f"set-{n}", "StatefulSet") for n in range(REQUESTS)]


async def through_work_queue(asked: list[Request]) -> float:
    """Seconds for adding, getting and finishing every request."""
    queue: WorkQueue[Request] = WorkQueue(RealClock())
    left, ended = len(asked), asyncio.Event()

    async def work() -> None:
        nonlocal left
        while True:
            request, _ = await queue.get()
            queue.done(request)
            left -= 1
            if not left:
                ended.set()

    workers = [asyncio.create_task(work()) for _ in range(WORKERS)]
    await asyncio.sleep(0)
    began = time.process_time()
    for first in range(0, len(asked), BATCH):
        for request in asked[first : first + BATCH]:
            queue.add(request)
        await asyncio.sleep(0)
    await ended.wait()
    seconds = time.process_time() - began
    counted = sum(queue.work_duration.counts), sum(queue.queue_duration.counts), queue.adds
    assert counted == (REQUESTS, REQUESTS, REQUESTS), counted
    await _end(workers)
    return seconds


async def through_asyncio_queue(asked: list[Request]) -> float:
    """Seconds for the same with put_nowait, get and task_done."""
    queue: asyncio.Queue[Request] = asyncio.Queue()

    async def work() -> None:
        while True:
            await queue.get()
            queue.task_done()

    workers = [asyncio.create_task(work()) for _ in range(WORKERS)]
    await asyncio.sleep(0)
    began = time.process_time()
    for first in range(0, len(asked), BATCH):
        for request in asked[first : first + BATCH]:
            queue.put_nowait(request)
        await asyncio.sleep(0)
    await queue.join()
    seconds = time.process_time() - began
    await _end(workers)
    return seconds


async def _end(workers: list[asyncio.Task[None]]) -> None:
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)


def measure(report: Report, rounds: int) -> None:
    """Measure a cycle of both."""
    asked = requests()
    report.say(f"queue cycle of add, get, done: {REQUESTS} requests, {WORKERS} workers, all metrics on")
    found = medians(
        {
            "asyncio": lambda: asyncio.run(through_asyncio_queue(asked)),
            "lwskit": lambda: asyncio.run(through_work_queue(asked)),
        },
        rounds,
    )
    report.ratio(
        "work queue, per asyncio.Queue's put_nowait, get, task_done", found["lwskit"] / found["asyncio"], most=3
    )


if __name__ == "__main__":
    measure(Report(), 7)
