"""The queue without priorities and how it differs (specification: 70 §4.2), on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from lwskit.runtime.clock import Clock
from lwskit.runtime.plain_queue import PlainQueue
from lwskit.runtime.queue_base import QueueShutDown
from lwskit.runtime.request import Request

A, B, C = (Request("default", name) for name in "abc")


async def take(queue: PlainQueue[Request]) -> Request:
    return (await asyncio.wait_for(queue.get(), 0.001))[0]


async def test_first_in_first_out_whatever_the_priority_and_equal_requests_are_folded(clock: Clock) -> None:
    queue: PlainQueue[Request] = PlainQueue(clock)
    for request, priority in ((A, -100), (B, 0), (A, 5)):
        queue.add(request, priority)
    assert queue.depth_by_label() == {"": 2}
    assert [await queue.get(), await queue.get()] == [(A, 0), (B, 0)]
    assert queue.adds == 2


async def test_a_key_added_while_in_work_goes_to_the_end_once_it_is_done(clock: Clock) -> None:
    queue: PlainQueue[Request] = PlainQueue(clock)
    queue.add(A)
    await take(queue)
    queue.add(A)
    queue.add(A)
    queue.add(B)
    assert len(queue) == 1
    queue.done(A)
    assert [await take(queue), await take(queue)] == [B, A]


async def test_a_delayed_add_is_kept_apart_at_its_earliest_time(clock: Clock) -> None:
    queue: PlainQueue[Request] = PlainQueue(clock)
    queue.add(A, after=5)
    queue.add(A, after=2)
    queue.add(A, after=7)
    queue.add(A)
    assert await take(queue) == A
    queue.done(A)
    assert (await queue.get(), clock.monotonic()) == ((A, 0), pytest.approx(2))
    queue.done(A)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 100)


async def test_after_shutdown_what_is_queued_is_still_given_out(clock: Clock) -> None:
    queue: PlainQueue[Request] = PlainQueue(clock)
    queue.add(A)
    queue.add(B, after=1)
    queue.shut_down()
    queue.add(C)
    assert await take(queue) == A
    with pytest.raises(QueueShutDown):
        await queue.get()
    assert len(queue) == 0


async def test_requests_of_one_lane_follow_each_other(clock: Clock) -> None:
    queue: PlainQueue[Request] = PlainQueue(clock, lane=lambda request: request.key)
    gone = Request("default", "a", uid="1", deleted=True, payload="last")
    queue.add(gone)
    queue.add(A)
    queue.add(B)
    first = await take(queue)
    assert (first, first.payload) == (gone, "last")
    assert await take(queue) == B
    waiting = asyncio.ensure_future(queue.get())
    await clock.sleep(1)
    assert not waiting.done()
    queue.done(gone)
    assert await waiting == (A, 0)


async def test_retries_wait_for_the_longer_of_their_own_back_off_and_the_bucket(clock: Clock) -> None:
    queue: PlainQueue[Request] = PlainQueue(clock)
    for number in range(101):
        queue.add(Request("default", str(number)), rate_limited=True)
    assert queue.failures(Request("default", "100")) == 1
    await clock.sleep(0.006)
    assert len(queue) == 100
    await clock.sleep(0.1)
    assert len(queue) == 101
    queue.forget(Request("default", "100"))
    assert (queue.failures(Request("default", "100")), queue.retries) == (0, 101)


async def test_the_newest_events_payload_stays_also_beside_a_delay(clock: Clock) -> None:
    queue: PlainQueue[Request] = PlainQueue(clock)
    queue.add(Request("default", "a", payload="retry"), after=1)
    queue.add(Request("default", "a"), after=2)
    await clock.sleep(1)
    queue.add(Request("default", "a", payload="event"))
    assert (await take(queue)).payload == "event"
