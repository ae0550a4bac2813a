"""A list after the first one: taken in while others run, seen as a whole, told in order (specification: 70 §2.8)."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpResponse
from lwskit.runtime.clock import Clock
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj
from lwskit.testing.scripted import Listing, Script, Stream, event, pod, status
from tests.unit.runtime.cache.conftest import Recorder
from tests.unit.runtime.cache.test_informer import Mirror

Start = Callable[..., Awaitable[Any]]
GONE = event("ERROR", status(410, "Expired"))
MANY = 1600


def pods(version: int, count: int = MANY) -> list[Obj]:
    return [pod(f"p{n}", version + n) for n in range(count)]


def at_list(script: Script) -> asyncio.Event:
    """An event that is set whenever the script has answered a list."""
    answered, send = asyncio.Event(), script.send

    async def telling(*arguments: Any, **options: Any) -> HttpResponse:
        answer = await send(*arguments, **options)
        answered.set()
        return answer

    setattr(script, "send", telling)  # noqa: B010
    return answered


async def test_a_long_relist_lets_others_run_and_is_seen_as_a_whole(start: Start) -> None:
    run = await start(Listing(pods(1), 5000), Stream(2.0, GONE), Listing(pods(5001), 9000), Stream(1e6))
    run.recorder.take()
    await at_list(run.script).wait()
    seen: list[tuple[set[str], int]] = []
    while not run.informer.healthy:
        seen.append(({obj["metadata"]["resourceVersion"] for obj in run.informer.store}, len(run.recorder.calls)))
        await asyncio.sleep(0)
    contents = [content for content, _ in seen]
    before, after = ({str(version + n) for n in range(MANY)} for version in (1, 5001))
    assert contents == [before] * contents.count(before) + [after] * contents.count(after)
    told = sorted({0, *(calls for _, calls in seen), MANY})
    assert max(b - a for a, b in itertools.pairwise(told)) <= 500
    assert run.recorder.take() == [("update", f"p{n}@{1 + n}", f"p{n}@{5001 + n}") for n in range(MANY)]


async def test_what_a_relist_does_not_change_stays_the_same_object_and_costs_views_nothing(start: Start) -> None:
    view = Mirror()
    listed = [*pods(1, 9), pod("x", 60)]
    again = [*pods(1, 9), pod("y", 70)]
    run = await start(Listing(listed, 61), Stream(2.0, GONE), Listing(again, 80), settle=0, views=[view])
    before = {id(obj) for obj in run.informer.store.list() if obj["metadata"]["name"] != "x"}
    await run.informer._clock.sleep(5)
    assert before < {id(obj) for obj in run.informer.store.list()}
    assert (view.replaced, view.calls) == (1, [("uid-x", None), (None, "uid-y")])
    assert set(view.content) == {obj["metadata"]["uid"] for obj in run.informer.store}


async def test_a_view_that_fails_in_a_relist_is_given_everything_once(start: Start) -> None:
    view = Mirror()
    again = [*pods(1, 9)[:-2], pod("y", 70)]
    run = await start(Listing(pods(1, 9), 61), Stream(2.0, GONE), Listing(again, 80), settle=0, views=[view])
    view.failures = 1
    await run.informer._clock.sleep(5)
    assert (view.replaced, view.calls) == (2, [])
    assert set(view.content) == {obj["metadata"]["uid"] for obj in run.informer.store}


@pytest.mark.parametrize("turns", range(1, 10))
async def test_a_run_that_is_cancelled_in_a_list_is_made_up_for_by_the_next(clock: Clock, turns: int) -> None:
    script = Script(Listing(pods(1), 5000), Stream(2.0, GONE), Listing(pods(5001), 9000), Stream(1e6))
    informer, recorder = Informer(POD, Client(script), clock, random.Random(7), streaming=False), Recorder()
    informer.add_handler(recorder)
    listed = at_list(script)
    for many in (turns, 2 * turns):
        listed.clear()
        running = asyncio.create_task(informer.run())
        await listed.wait()
        for _ in range(many):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait({running})
        assert not informer.healthy
    running = asyncio.create_task(informer.run())
    await clock.sleep(10)
    assert informer.healthy
    assert {obj["metadata"]["resourceVersion"] for obj in informer.store} == {str(5001 + n) for n in range(MANY)}
    first = [("add", f"p{n}@{1 + n}", True) for n in range(MANY)]
    assert recorder.take() == first + [("update", f"p{n}@{1 + n}", f"p{n}@{5001 + n}") for n in range(MANY)]
    running.cancel()
    await asyncio.wait({running})
