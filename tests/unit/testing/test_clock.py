"""The clock that a test moves."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from lwskit.testing.clock import FakeClock
from lwskit.testing.virtual import EPOCH


async def test_those_who_wait_go_on_in_the_order_of_their_times() -> None:
    clock, seen = FakeClock(), list[tuple[str, float]]()

    async def worker(name: str, *waits: float) -> None:
        for seconds in waits:
            await clock.sleep(seconds)
            seen.append((name, clock.monotonic()))

    tasks = [asyncio.create_task(worker("a", 3, 1)), asyncio.create_task(worker("b", 2, 5))]
    await clock.advance(0)
    assert (seen, clock.sleepers) == ([], 2)
    await clock.advance(4)
    assert seen == [("b", 2), ("a", 3), ("a", 4)]
    assert clock.now() == EPOCH + timedelta(seconds=4)
    await clock.advance(3)
    assert seen[-1] == ("b", 7)
    assert clock.sleepers == 0
    await asyncio.gather(*tasks)


async def test_a_cancelled_wait_is_none() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.advance(1)
    task.cancel()
    await asyncio.wait({task})
    assert clock.sleepers == 0
    await clock.advance(9)
    await clock.sleep(0)
    assert clock.monotonic() == 10


async def test_it_is_never_moved_back() -> None:
    with pytest.raises(ValueError, match="not moved back"):
        await FakeClock().advance(-1)


def test_another_date_ends_no_wait() -> None:
    clock = FakeClock(datetime(2030, 1, 1, tzinfo=UTC))
    assert clock.now().year == 2030
    clock.set(datetime(2031, 1, 1, tzinfo=UTC))
    assert (clock.now(), clock.monotonic()) == (datetime(2031, 1, 1, tzinfo=UTC), 0)
    with pytest.raises(ValueError, match="has no time zone"):
        clock.set(datetime(2031, 1, 1))  # noqa: DTZ001
