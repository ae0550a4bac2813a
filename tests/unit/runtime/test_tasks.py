"""Owned tasks: named, ended with their owner, and their errors told to it."""

from __future__ import annotations

import asyncio

import pytest

from lwskit.runtime.clock import Clock
from lwskit.runtime.tasks import TaskCancelled, TaskOwner


async def fail(clock: Clock, after: float) -> None:
    await clock.sleep(after)
    raise ValueError(f"after {after}")


async def test_the_first_error_cancels_the_others_and_is_raised_as_it_is(clock: Clock) -> None:
    tasks = TaskOwner("owner")
    tasks.start(fail(clock, 2), "late")
    tasks.start(fail(clock, 1), "early")
    assert tasks.running() == ["owner: early", "owner: late"]
    with pytest.raises(ValueError, match="after 1"):
        await tasks.wait()
    assert clock.monotonic() == 1
    assert tasks.running() == []


async def test_the_block_waits_for_tasks_also_for_those_started_meanwhile(clock: Clock) -> None:
    async with TaskOwner("owner") as tasks:

        async def first() -> None:
            await clock.sleep(1)
            tasks.start(clock.sleep(5), "second")

        tasks.start(first(), "first")
    assert clock.monotonic() == 6


async def test_an_error_in_the_block_cancels_the_tasks(clock: Clock) -> None:
    tasks = TaskOwner("owner")

    async def block() -> None:
        async with tasks:
            tasks.start(clock.sleep(1000), "long")
            raise KeyError("x")

    with pytest.raises(KeyError):
        await block()
    assert clock.monotonic() == 0
    assert tasks.running() == []


async def test_cancelling_the_owner_ends_its_tasks_first(clock: Clock) -> None:
    ended: list[float] = []

    async def slow() -> None:
        try:
            await clock.sleep(1000)
        finally:
            await clock.sleep(2)
            ended.append(clock.monotonic())

    async def own() -> None:
        async with TaskOwner("owner") as tasks:
            tasks.start(slow(), "slow")

    owner = asyncio.create_task(own())
    await clock.sleep(1)
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owner
    assert ended == [3]


async def test_a_stray_cancellation_from_within_counts_as_failed_and_a_wanted_one_does_not(clock: Clock) -> None:
    async def stray() -> None:
        await clock.sleep(2)
        raise asyncio.CancelledError

    tasks = TaskOwner("owner")
    unwanted = tasks.start(clock.sleep(1000), "unwanted")
    tasks.start(stray(), "stray")
    tasks.start(clock.sleep(1000), "other")
    waiting = asyncio.create_task(tasks.wait())
    await clock.sleep(1)
    unwanted.cancel()
    await clock.sleep(0.5)
    assert not waiting.done()
    with pytest.raises(TaskCancelled, match=r"^owner: stray was cancelled, but not by its owner"):
        await waiting
    assert clock.monotonic() == 2
    assert tasks.running() == []
