"""The work queue's checklist (specification: 70 §17, Queue), on virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.plain_queue import PlainQueue
from lwskit.runtime.queue import (
    BucketLimiter,
    CappedLimiter,
    ExponentialLimiter,
    FastSlowLimiter,
    MaxLimiter,
    QueueShutDown,
    WorkQueue,
)
from lwskit.runtime.request import Request
from lwskit.testing.virtual import VirtualClock, run


def request(name: str, **more: object) -> Request:
    return Request("default", name, **more)  # type: ignore[arg-type]


A, B, C = request("a"), request("b"), request("c")


async def names(queue: WorkQueue[Request], count: int) -> list[str]:
    found = []
    for _ in range(count):
        item, _ = await asyncio.wait_for(queue.get(), 0.001)
        queue.done(item)
        found.append(item.name)
    return found


async def is_empty(queue: WorkQueue[Request]) -> bool:
    getter = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if getter.done():
        return False
    getter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await getter
    return True


async def test_a_key_added_three_times_is_delivered_once(clock: Clock) -> None:
    """70 §17 Queue 1: three adds of one key are one delivery."""
    queue: WorkQueue[Request] = WorkQueue(clock)
    for _ in range(3):
        queue.add(A)
    assert len(queue) == 1
    assert await names(queue, 1) == ["a"]
    assert await is_empty(queue)
    assert queue.adds == 1


async def test_a_key_in_processing_is_delivered_again_only_after_done_and_once(clock: Clock) -> None:
    """70 §17 Queue 2: adds of a key in work are one more delivery, after done."""
    queue: WorkQueue[Request] = WorkQueue(clock)
    queue.add(A)
    taken, _ = await queue.get()
    queue.add(A)
    queue.add(A)
    assert len(queue) == 1
    assert await is_empty(queue)
    queue.done(taken)
    assert await names(queue, 1) == ["a"]
    assert await is_empty(queue)


async def test_a_ready_blocked_key_does_not_block_a_free_one_of_lower_priority(clock: Clock) -> None:
    """70 §17 Queue 3: a key whose lane is busy lets those of lower priority pass."""
    queue: WorkQueue[Request] = WorkQueue(clock)
    queue.add(A, priority=10)
    taken, priority = await queue.get()
    assert priority == 10
    queue.add(A, priority=10)
    queue.add(B, priority=-100)
    assert await names(queue, 1) == ["b"]
    queue.done(taken)
    assert await names(queue, 1) == ["a"]


async def test_higher_priority_first_and_first_in_first_out_inside(clock: Clock) -> None:
    """70 §17 Queue 4: higher priorities first, and in order of arrival within one."""
    queue: WorkQueue[Request] = WorkQueue(clock)
    for name, priority in (("x", -100), ("a", 0), ("y", -100), ("b", 0)):
        queue.add(request(name), priority=priority)
    assert await names(queue, 4) == ["a", "b", "x", "y"]


async def test_an_entry_whose_priority_rises_moves_behind_those_of_that_priority(clock: Clock) -> None:
    """70 §17 Queue 5: a raised entry queues up behind its new equals."""
    queue: WorkQueue[Request] = WorkQueue(clock)
    queue.add(A, priority=-100)
    queue.add(B)
    queue.add(C)
    queue.add(A)
    assert queue.depth == {0: 3}
    assert await names(queue, 3) == ["b", "c", "a"]
    assert queue.adds == 3


async def test_a_waiting_entry_added_again_without_delay_is_ready_and_fires_once(clock: Clock) -> None:
    """70 §17 Queue 6: an add without delay overtakes the waiting one and takes its place."""
    queue: WorkQueue[Request] = WorkQueue(clock)
    queue.add(A, after=5)
    assert len(queue) == 0
    queue.add(A)
    assert await names(queue, 1) == ["a"]
    await clock.sleep(10)
    assert await is_empty(queue)


async def test_of_two_delays_the_earlier_holds(clock: Clock) -> None:
    """70 §17 Queue 7: of several delays the shortest one counts."""
    queue: WorkQueue[Request] = WorkQueue(clock)
    queue.add(A, after=5)
    queue.add(A, after=2)
    queue.add(A, after=7)
    await queue.get()
    assert clock.monotonic() == pytest.approx(2)
    queue.done(A)
    await clock.sleep(20)
    assert await is_empty(queue)


async def test_entries_become_ready_in_the_order_of_their_times(clock: Clock) -> None:
    queue: WorkQueue[Request] = WorkQueue(clock)
    queue.add(A, after=3)
    queue.add(B, after=1)
    queue.add(C, after=2)
    await clock.sleep(4)
    assert len(queue) == 3
    assert await names(queue, 3) == ["b", "c", "a"]


async def test_failures_double_the_delay_up_to_a_thousand_seconds(clock: Clock) -> None:
    """70 §17 Queue 8: the back-off doubles from 5 ms, stays at 1000 s, and starts anew after forget."""
    limiter = ExponentialLimiter()
    delays = [limiter.when(A) for _ in range(40)]
    assert delays[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert delays[17] == pytest.approx(655.36)
    assert set(delays[18:]) == {1000.0}
    queue: WorkQueue[Request] = WorkQueue(clock, limiter=limiter)
    assert queue.failures(A) == 40
    queue.forget(A)
    queue.add(A, rate_limited=True)
    await queue.get()
    assert clock.monotonic() == pytest.approx(0.005)


async def test_of_rate_limit_and_delay_the_smaller_holds(clock: Clock) -> None:
    """70 §17 Queue 9: a delay and the limiter's merge to the smaller one."""
    queue: WorkQueue[Request] = WorkQueue(clock)
    queue.add(A, after=0.001, rate_limited=True)
    await queue.get()
    assert clock.monotonic() == pytest.approx(0.001)
    queue.add(B, after=1.0, rate_limited=True)
    await queue.get()
    assert clock.monotonic() == pytest.approx(0.006)
    assert queue.retries == 2


async def test_the_bucket_lets_a_hundred_pass_and_spaces_the_rest(clock: Clock) -> None:
    """70 §17 Queue 10: a burst of 100 passes the bucket, and each further one waits 0.1 s longer."""
    queue: WorkQueue[Request] = WorkQueue(clock, limiter=BucketLimiter(clock))
    for number in range(150):
        queue.add(request(str(number)), rate_limited=True)
    assert len(queue) == 100
    when = []
    for _ in range(150):
        taken, _ = await queue.get()
        queue.done(taken)
        when.append(clock.monotonic())
    assert when[99] == 0
    assert when[100] == pytest.approx(0.1)
    assert when[149] == pytest.approx(5.0)


@pytest.mark.parametrize("number", [0, -1, float("nan"), float("inf")])
def test_numbers_that_cannot_work_are_refused(clock: Clock, number: float) -> None:
    inner = ExponentialLimiter()
    makers: dict[str, Callable[[], object]] = {
        "BucketLimiter(rate=": lambda: BucketLimiter(clock, rate=number),
        "BucketLimiter(burst=": lambda: BucketLimiter(clock, burst=number),  # type: ignore[arg-type]
        "ExponentialLimiter(base=": lambda: ExponentialLimiter(base=number),
        "ExponentialLimiter(cap=": lambda: ExponentialLimiter(cap=number),
        "FastSlowLimiter(slow=": lambda: FastSlowLimiter(1, number, 3),
        "CappedLimiter(cap=": lambda: CappedLimiter(inner, number),
    }
    for text, make in makers.items():
        with pytest.raises(ConfigurationError) as caught:
            make()
        assert str(caught.value) == f"{text}{number:g}) cannot work; give a number above 0"
    with pytest.raises(ConfigurationError, match="at least one limiter"):
        MaxLimiter()


def test_limiters_can_be_combined() -> None:
    slow = CappedLimiter(FastSlowLimiter(fast=0.1, slow=10.0, attempts=2), cap=4.0)
    both = MaxLimiter(slow, ExponentialLimiter(base=0.25))
    assert [both.when(A) for _ in range(3)] == [0.25, 0.5, 4.0]
    assert (both.when(B), both.failures(A)) == (0.25, 3)
    both.forget(A)
    assert (both.when(A), both.failures(A)) == (0.25, 1)


async def test_a_debounced_burst_is_one_delivery_and_a_retry_is_not_held_back(clock: Clock) -> None:
    queue: WorkQueue[Request] = WorkQueue(clock, debounce=2.0)
    queue.add(A)
    await clock.sleep(1.5)
    queue.add(A)
    queue.add(B, rate_limited=True)
    assert ((await queue.get())[0], clock.monotonic()) == (B, pytest.approx(1.505))
    assert ((await queue.get())[0], clock.monotonic()) == (A, pytest.approx(2.0))
    queue.done(A)
    await clock.sleep(10)
    assert await is_empty(queue)
    assert (queue.adds, queue.retries) == (2, 1)


async def test_the_depth_is_told_by_priority_up_to_a_number_of_priorities(clock: Clock) -> None:
    queue: WorkQueue[Request] = WorkQueue(clock)
    for priority in range(200):
        queue.add(request(str(priority)), priority=priority)
    found = queue.depth_by_label()
    assert len(found) == 26
    assert (found["0"], found["24"], found["exceeded_cardinality_limit"]) == (1, 1, 175)
    assert await names(queue, 200) == [str(priority) for priority in reversed(range(200))]
    assert set(queue.depth_by_label().values()) == {0}
    for priority in range(200, 400):
        queue.add(A, priority=priority)
    assert queue.depth == {399: 1}
    assert queue.depth_by_label()["exceeded_cardinality_limit"] == 1


async def test_what_waited_for_its_lane_keeps_its_place(clock: Clock) -> None:
    queue: WorkQueue[Request] = WorkQueue(clock, lane=lambda r: r.namespace)
    one, two = Request("1", "first"), Request("2", "first")
    queue.add(one)
    queue.add(two)
    await queue.get()
    await queue.get()
    for namespace in ("1", "2", "3"):
        queue.add(Request(namespace, "second"))
    assert (await queue.get())[0].namespace == "3"
    queue.add(Request("4", "late"))
    queue.done(two)
    queue.done(one)
    assert [(await queue.get())[0].namespace for _ in range(3)] == ["1", "2", "4"]


async def test_shutdown_frees_all_waiters_and_later_adds_are_ignored(clock: Clock) -> None:
    """70 §17 Queue 11: at shutdown everybody who waits returns, and adds change nothing."""
    queue: WorkQueue[Request] = WorkQueue(clock)
    waiters = [asyncio.ensure_future(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add(A, after=1)
    queue.shut_down()
    results = await asyncio.gather(*waiters, return_exceptions=True)
    assert [type(r) for r in results] == [QueueShutDown] * 3
    queue.add(B)
    assert len(queue) == 0
    with pytest.raises(QueueShutDown):
        await queue.get()


async def test_a_cancelled_waiter_passes_its_turn_on(clock: Clock) -> None:
    queue: WorkQueue[Request] = WorkQueue(clock)
    first = asyncio.ensure_future(queue.get())
    second = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add(A)
    first.cancel()
    assert await asyncio.wait_for(second, 1) == (A, 0)
    assert first.cancelled()


async def test_two_requests_of_one_lane_are_never_in_work_together(clock: Clock) -> None:
    queue: WorkQueue[Request] = WorkQueue(clock, lane=lambda r: r.key)
    gone = request("a", uid="1", deleted=True)
    queue.add(gone)
    queue.add(A)
    queue.add(B)
    assert (await queue.get())[0] == gone
    assert (await queue.get())[0] == B
    assert len(queue) == 1
    assert await is_empty(queue)
    queue.done(gone)
    assert (await queue.get())[0] == A


async def test_a_lane_never_loses_a_request_however_adds_and_dones_interleave(clock: Clock) -> None:
    rng = random.Random(7)
    queue: WorkQueue[Request] = WorkQueue(clock, lane=lambda r: r.namespace)
    wanted = {Request(str(i % 3), str(i)) for i in range(60)}
    working: dict[str, Request] = {}
    seen: set[Request] = set()
    todo = list(wanted) * 2
    rng.shuffle(todo)
    while todo or working or len(queue):
        if todo and rng.random() < 0.5:
            queue.add(todo.pop(), priority=rng.choice((-100, 0, 5)))
        if len(working) < 3 and rng.random() < 0.5:
            getter = asyncio.ensure_future(queue.get())
            await asyncio.sleep(0)
            if getter.done():
                taken, _ = getter.result()
                assert taken.namespace not in working
                working[taken.namespace] = taken
            else:
                getter.cancel()
        if working and rng.random() < 0.5:
            done = working.pop(rng.choice(sorted(working)))
            seen.add(done)
            queue.done(done)
    assert seen == wanted


async def test_the_newest_events_payload_stays_and_a_retry_does_not_replace_it(clock: Clock) -> None:
    queue: WorkQueue[Request] = WorkQueue(clock)
    queue.add(request("a", payload="old"))
    queue.add(request("a", payload="new"))
    queue.add(A)
    queue.add(request("a", payload="retry"), rate_limited=True)
    assert (await queue.get())[0].payload == "new"


async def test_durations_are_measured_from_ready_and_from_hand_over(clock: Clock) -> None:
    queue: WorkQueue[Request] = WorkQueue(clock)
    queue.add(A)
    await clock.sleep(2)
    await queue.get()
    assert queue.processing_since() == [2.0]
    await clock.sleep(3)
    queue.done(A)
    assert queue.queue_duration.total == pytest.approx(2)
    assert queue.work_duration.total == pytest.approx(3)
    assert queue.processing_since() == []


@pytest.mark.parametrize("make", [WorkQueue, PlainQueue])
async def test_delays_that_an_event_made_void_are_not_kept_until_their_time(clock: Clock, make: Any) -> None:
    queue: Any = make(clock)
    asked = [request("kept"), *(request(f"other-{number}") for number in range(10))]
    for found in asked:
        queue.add(found, after=1000)
    for step in range(2000):
        # Either queue has its own way to void a delay: an event takes its place, or an earlier delay does.
        queue.add(request("a"), after=3000 - step)
        if make is WorkQueue:
            queue.add(request("a"))
            assert (await queue.get())[0] == request("a")
            queue.done(request("a"))
        assert len(queue._delayed) <= 70
    await clock.sleep(999)
    assert len(queue) == 0
    await clock.sleep(10)
    assert {(await queue.get())[0] for _ in asked} == {*asked}


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 40)), max_size=600))
def test_every_delayed_request_comes_at_its_earliest_time_however_often_the_heap_is_rebuilt(
    steps: list[tuple[int, int]],
) -> None:
    async def main() -> None:
        clock = VirtualClock()
        for queue in (WorkQueue[str](clock), PlainQueue[str](clock)):
            began = clock.monotonic()
            due: dict[str, int] = {}
            for name, after in steps:
                queue.add(str(name), after=1 + after)
                due[str(name)] = min(1 + after, due.get(str(name), 1000))
            seen: dict[str, int] = {}
            while len(seen) < len(due):
                name_, _ = await queue.get()
                queue.done(name_)
                seen[name_] = round(clock.monotonic() - began)
            assert seen == due

    run(main())
