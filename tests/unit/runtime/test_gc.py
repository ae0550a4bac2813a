"""What is done to the garbage collector of a program, and undone at its end."""

from __future__ import annotations

import asyncio
import gc

from lwskit.runtime.clock import Clock
from lwskit.runtime.gc import THRESHOLDS, GcPolicy


class Filling:
    def __init__(self) -> None:
        self.synced = asyncio.Event()

    async def wait_synced(self) -> None:
        await self.synced.wait()


async def test_survivors_are_frozen_until_the_caches_are_filled_and_all_is_restored_at_the_end(clock: Clock) -> None:
    before, callbacks = gc.get_threshold(), [*gc.callbacks]
    cache = Filling()
    policy = GcPolicy(clock, cache)
    task = asyncio.create_task(policy.run())
    await clock.sleep(1)
    assert gc.get_threshold() == THRESHOLDS
    cached = [{"metadata": {"name": str(number)}} for number in range(1000)]
    gc.collect(0)
    assert gc.get_freeze_count() > 1000
    assert not any(obj is cached[0] for obj in gc.get_objects())
    assert policy.frozen == 0
    cache.synced.set()
    await clock.sleep(1)
    assert policy.frozen > 1000
    assert gc.callbacks == callbacks
    later = [{"metadata": {}} for _ in range(1000)]
    gc.collect()
    assert any(obj is later[0] for obj in gc.get_objects())
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


async def test_a_cache_that_never_fills_leaves_nothing_behind(clock: Clock) -> None:
    before, callbacks = gc.get_threshold(), [*gc.callbacks]
    task = asyncio.create_task(GcPolicy(clock, Filling()).run())
    await clock.sleep(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (gc.get_threshold(), gc.callbacks, gc.get_freeze_count()) == (before, callbacks, 0)
