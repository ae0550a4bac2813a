"""What broke for users of other clients, tried on the cache (docs/field-cases.md)."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import structlog

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.kinds import POD
from lwskit.runtime.manager import Manager
from lwskit.runtime.objects import Obj
from lwskit.testing.scripted import Listing, Script, Stream, event, pod, status
from tests.unit.runtime.cache.conftest import Recorder

Start = Callable[..., Awaitable[Any]]


class Idle:
    """An asynchronous handler that does nothing."""

    async def on_add(self, obj: Obj, initial: bool) -> None:
        pass

    async def on_update(self, old: Obj, new: Obj) -> None:
        pass

    async def on_delete(self, obj: Obj, unknown: bool) -> None:
        pass


class Killed(LwskitError):
    """Of those errors that a watch does not answer with another attempt."""


async def running(clock: Clock) -> tuple[asyncio.Task[None], list[asyncio.Task[Any]]]:
    """A manager with a cache that has every kind of background task, and those tasks by name."""
    before = asyncio.all_tasks()
    script = Script(Listing([pod("a", 5)], 7))
    cache = Cache(Client(script), clock, random.Random(1), streaming=False, detect_mutations=True)
    informer = cache.informer(POD)
    informer.add_async_handler(Idle(), resync=60.0)
    manager = Manager(clock, random.Random(1))
    manager.add(cache)
    main = asyncio.create_task(manager.run(), name="main")
    await clock.sleep(1.5)
    tasks = [t for t in asyncio.all_tasks() - before if t is not main and ": " in t.get_name()]
    return main, sorted(tasks, key=lambda t: t.get_name())


TASKS = ["cache: informer Pod", "cache: stays open", "handler", "mutation detector", "resync", "watch"]


@pytest.mark.parametrize("which", TASKS)
async def test_a_background_task_that_dies_ends_the_program(clock: Clock, which: str) -> None:
    """F119: whichever task of a cache dies, the manager ends with its error, and nothing goes on half alive."""
    main, tasks = await running(clock)
    (victim,) = [t for t in tasks if which in t.get_name()]
    waiter: Any = victim._fut_waiter  # type: ignore[attr-defined]
    with structlog.testing.capture_logs():
        waiter.set_exception(Killed(which))
        with pytest.raises(Killed, match=which):
            await main
    assert [t.get_name() for t in tasks if not t.done()] == []


async def test_every_background_task_is_tried(clock: Clock) -> None:
    main, tasks = await running(clock)
    names = [t.get_name() for t in tasks if t.get_name().startswith(("cache:", "informer"))]
    assert len(names) == len(TASKS)
    assert all(any(which in name for name in names) for which in TASKS)
    main.cancel()
    await asyncio.wait({main})


@pytest.mark.parametrize("code", [410, 500])
async def test_an_error_in_a_watch_reaches_no_handler(start: Start, clock: Clock, code: int) -> None:
    """F128: a Status that a watch sends instead of an object changes nothing that is stored or told."""
    error = status(code, "Expired" if code == 410 else "InternalError", "something happened")
    error["metadata"] = {"name": "a", "namespace": "t", "resourceVersion": "9"}
    view = Recorder()
    run = await start(Listing([pod("a", 5)], 7), Stream(2.0, event("ERROR", error)), Listing([pod("a", 5)], 8))
    run.informer.add_handler(view)
    run.recorder.take()
    await clock.sleep(10)
    assert run.stored() == ["a@5"]
    assert run.recorder.take() == []
    assert view.take() == [("add", "a@5", True)]
    assert "resourceVersion" in run.script.queries[2]


async def test_a_server_that_closes_every_watch_at_once_is_listed(start: Start, clock: Clock) -> None:
    """F130: watches that end at once, with no word of why, lead to lists with pauses, and to what they show."""
    rounds = [part for n in range(3) for part in (Stream(), Listing([pod("b", 8 + n)], 10 + n))]
    run = await start(Listing([pod("a", 5)], 7), *rounds)
    await clock.sleep(30)
    assert run.stored() == ["b@10"]
    lists = [
        time for time, (_, request) in zip(run.script.times, run.script.seen, strict=True) if len(request.query) < 3
    ]
    gaps = [b - a for a, b in itertools.pairwise(lists)]
    assert len(gaps) == 3
    assert all(low <= gap <= 2 * low + 0.01 for low, gap in zip((0.8, 1.6, 3.2), gaps, strict=True))
    assert run.informer.healthy
