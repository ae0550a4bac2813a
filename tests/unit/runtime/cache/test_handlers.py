"""Handlers that come late, that wait, and that want everything again (specification: 70 §2.8–2.10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import structlog

from lwskit.runtime.clock import Clock
from lwskit.runtime.objects import Obj
from lwskit.testing.scripted import Listing, Stream, event, pod, status
from tests.unit.runtime.cache.conftest import Recorder

Start = Callable[..., Awaitable[Any]]
GONE = event("ERROR", status(410, "Expired"))


class Slow:
    """An asynchronous handler: it writes down each call when it is through, `seconds` after it began."""

    def __init__(self, clock: Clock, seconds: float = 0.0, fails: int = 0) -> None:
        self.books = Recorder()
        self.times: list[float] = []
        self._clock, self._seconds, self._fails = clock, seconds, fails

    async def _take_time(self) -> None:
        self.times.append(self._clock.monotonic())
        await self._clock.sleep(self._seconds)
        if self._fails:
            self._fails -= 1
            raise RuntimeError("handler cannot")

    async def on_add(self, obj: Obj, initial: bool) -> None:
        await self._take_time()
        self.books.on_add(obj, initial)

    async def on_update(self, old: Obj, new: Obj) -> None:
        await self._take_time()
        self.books.on_update(old, new)

    async def on_delete(self, obj: Obj, unknown: bool) -> None:
        await self._take_time()
        self.books.on_delete(obj, unknown)


def beats(first: int, last: int, every: float = 1.0) -> Stream:
    return Stream(*[p for n in range(first, last) for p in (every, event("MODIFIED", pod("a", n)))], 1e6)


async def test_a_late_handler_is_synced_when_it_has_worked_through_what_was_there(start: Start, clock: Clock) -> None:
    """70 §17 Cache 17: a late handler gets all objects as initial adds, and counts as synced after the last of them."""
    run = await start(Listing([pod("a", 5), pod("b", 6)], 7), Stream(2.5, event("ADDED", pod("c", 8)), 1e6))
    late = Slow(clock, seconds=1.0)
    place = run.informer.add_async_handler(late)
    assert run.informer.synced.is_set()
    await clock.sleep(1.5)
    assert not place.synced.is_set()
    await place.wait_synced()
    assert late.books.take() == [("add", "a@5", True), ("add", "b@6", True)]
    await clock.sleep(3)
    assert late.books.take() == [("add", "c@8", False)]
    assert run.informer.add_handler(Recorder()).synced.is_set()


async def test_a_handler_added_before_the_start_is_synced_after_the_first_list(start: Start, clock: Clock) -> None:
    run = await start(Stream(0.5), streaming=True)
    early = Slow(clock)
    place, plain = run.informer.add_async_handler(early), run.informer.add_handler(Recorder())
    run.script.parts[:] = [Listing([pod("a", 5)], 7)]
    await clock.sleep(0.2)
    assert not place.synced.is_set()
    assert not plain.synced.is_set()
    await run.informer.wait_synced()
    assert plain.synced.is_set()
    await place.wait_synced()
    assert early.books.take() == [("add", "a@5", True)]


async def test_a_slow_handler_delays_neither_the_store_nor_other_handlers(start: Start, clock: Clock) -> None:
    run = await start(Listing([pod("a", 5)], 7), beats(8, 12))
    slow, quick = Slow(clock, seconds=10.0), Recorder()
    run.informer.add_async_handler(slow)
    run.informer.add_handler(quick)
    quick.take()
    await clock.sleep(4)
    assert run.stored() == ["a@11"]
    assert [call[2] for call in quick.take()] == ["a@8", "a@9", "a@10", "a@11"]
    assert slow.books.calls == []
    await clock.sleep(50)
    assert [call[0] for call in slow.books.take()] == ["add"] + ["update"] * 4


async def test_an_asynchronous_handler_that_raises_goes_on_a_second_later(start: Start, clock: Clock) -> None:
    run = await start(Listing([pod("a", 5), pod("b", 6)], 7))
    failing = Slow(clock, fails=1)
    with structlog.testing.capture_logs() as logs:
        run.informer.add_async_handler(failing)
        await clock.sleep(2)
    assert [entry["event"] for entry in logs] == ["handler failed"]
    assert failing.times[1] - failing.times[0] == pytest.approx(1.0)
    assert failing.books.take() == [("add", "b@6", True)]


async def test_a_handler_that_is_removed_is_told_no_more(start: Start, clock: Clock) -> None:
    run = await start(Listing([pod("a", 5)], 7), beats(8, 20))
    slow = Slow(clock, seconds=1.0)
    run.informer.add_async_handler(slow, resync=5.0)
    await clock.sleep(1.5)
    run.informer.remove_handler(slow)
    assert slow.books.take() == [("add", "a@5", True)]
    await clock.sleep(30)
    assert slow.books.calls == []
    assert not [t for t in asyncio.all_tasks() if "Slow" in t.get_name()]


# Resync.


async def test_each_handler_is_told_again_after_its_own_period(start: Start, clock: Clock) -> None:
    run = await start(Listing([pod("a", 5)], 7), resync=100.0)
    often, seldom, never = Recorder(), Recorder(), Recorder()
    run.informer.add_handler(often, resync=30.0)
    run.informer.add_handler(seldom, resync=60.0)
    run.informer.add_handler(never)
    await clock.sleep(121)
    again = ("update", "a@5", "a@5")
    assert [len(r.take()) - 1 for r in (often, seldom, never)] == [4, 2, 0]
    await clock.sleep(30)
    assert (often.take(), seldom.take()) == ([again], [])
    assert len(run.script.seen) == 2


async def test_periods_are_a_second_at_least_and_later_handlers_do_not_speed_it_up(start: Start, clock: Clock) -> None:
    run = await start(Listing([pod("a", 5)], 7))
    quick, late = Recorder(), Recorder()
    assert run.informer.add_handler(quick, resync=0.1).resync == 1.0
    await clock.sleep(5.5)
    assert len(quick.take()) == 1 + 5
    run.informer.remove_handler(quick)
    other = await start(Listing([pod("a", 5)], 7))
    other.informer.add_handler(Recorder(), resync=10.0)
    await clock.sleep(1)
    assert other.informer.add_handler(late, resync=2.0).resync == 10.0
    await clock.sleep(60)
    assert 5 <= len(late.take()) - 1 <= 6


async def test_the_period_is_drawn_once_and_at_random(start: Start, clock: Clock) -> None:
    run = await start(Listing([pod("a", 5)], 7), resync=1000.0)
    keen: list[float] = []

    class Times(Recorder):
        def on_update(self, old: Obj, new: Obj) -> None:
            keen.append(clock.monotonic())

    begin = clock.monotonic()
    run.informer.add_handler(Times(), resync=True)
    await clock.sleep(3400)
    gaps = [b - a for a, b in zip([begin, *keen], keen, strict=False)]
    assert len(gaps) == 3
    assert 900 <= gaps[0] < 1100
    assert max(gaps) - min(gaps) < 1e-6


async def test_what_changed_since_is_not_told_as_it_was(start: Start, clock: Clock) -> None:
    objects = [pod(f"p{n}", 5) for n in range(1200)]
    run = await start(Listing(objects, 7))
    recorder = Recorder()
    run.informer.add_handler(recorder, resync=10.0)
    recorder.take()

    class Changer(Recorder):
        def on_update(self, old: Obj, new: Obj) -> None:
            if old is new and new["metadata"]["name"] == "p0":
                run.informer.ingest(pod("p1199", 9))

    run.informer.add_handler(Changer(), resync=10.0)
    await clock.sleep(10.5)
    calls = [call for call in recorder.take() if call[1].startswith("p1199")]
    assert calls == [("update", "p1199@5", "p1199@9")]


async def test_unchanged_objects_of_a_relist_go_to_those_who_are_due(start: Start, clock: Clock) -> None:
    """70 §17 Cache 19: a list that brings nothing new is no news, except for whoever is due for a resync."""
    same = [pod("a", 5)]
    run = await start(Listing(same, 7), Stream(20.0, GONE), Listing(same, 12), Stream(100.0, GONE), Listing(same, 20))
    due, fresh = Recorder(), Recorder()
    run.informer.add_handler(due, resync=30.0)
    run.informer.add_handler(fresh, resync=1000.0)
    await clock.sleep(25)
    again = ("update", "a@5", "a@5")
    assert due.take() == fresh.take() == [("add", "a@5", True), again]
    await clock.sleep(100)
    assert fresh.take() == []
    assert due.take() == [again] * 5
    assert len(run.recorder.take()) == 1
