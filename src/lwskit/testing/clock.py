"""A clock that stands still until a test moves it, on any event loop and outside of one."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import datetime, timedelta

from lwskit.testing.virtual import EPOCH

_TURNS = 8
"""Turns of the loop in which tasks that were woken get to their next wait."""


class FakeClock:
    """Implements `lwskit.runtime.clock.Clock`: time passes only by `advance`, or as `set`.

    Use it for code that only reads the time, and where a test decides which wait ends when. For whole programs the
    virtual loop (fixture `clock`) needs no advancing. `start` is the date that it shows at first.
    """

    def __init__(self, start: datetime = EPOCH) -> None:
        self._start = start
        self._passed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """The date and time that the clock shows."""
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        """Seconds by which the clock was moved so far."""
        return self._passed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been moved that far. Cancelling it ends the wait."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waker = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed + seconds, next(self._order), waker))
        await waker

    @property
    def sleepers(self) -> int:
        """How many waits have not ended."""
        return sum(not waker.done() for _, _, waker in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Move the clock, and let those who wait go on in the order of their times, each at its own.

        What they start within the time that is passed over takes place in it too. Raises ValueError for a negative
        number. When cancelled, the clock stays where it has come to.
        """
        if seconds < 0:
            raise ValueError(f"a clock is not moved back: {seconds:g} s")
        target = self._passed + seconds
        await _let_others_run()
        while self._sleepers and self._sleepers[0][0] <= target:
            self._passed, _, waker = heapq.heappop(self._sleepers)
            if not waker.done():
                waker.set_result(None)
                await _let_others_run()
        self._passed = target

    def set(self, moment: datetime) -> None:
        """Show another date from now on, without ending any wait. Raises ValueError for a time without a zone."""
        if moment.tzinfo is None:
            raise ValueError(f"{moment} has no time zone; write for example datetime(…, tzinfo=UTC)")
        self._start = moment - timedelta(seconds=self._passed)


async def _let_others_run() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
