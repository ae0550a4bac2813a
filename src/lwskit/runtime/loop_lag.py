"""How long the event loop keeps its timers waiting: what a process suffers that computes too long at a time."""

from __future__ import annotations

from lwskit.runtime.clock import Clock
from lwskit.runtime.runnable import Group
from lwskit.runtime.stats import Histogram

INTERVAL = 0.25
"""Seconds between two measurements."""
BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class LoopLag:
    """Sleeps again and again and notes how much too late it wakes. Runs for as long as the program does.

    Not for a virtual clock, where nothing is ever late.
    """

    group = Group.EVENTS
    name = "event loop lag"

    def __init__(self, clock: Clock, interval: float = INTERVAL) -> None:
        self.seconds = Histogram(BUCKETS)
        """Every measurement."""
        self.longest = 0.0
        """The longest so far, in seconds."""
        self._clock = clock
        self._interval = interval

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            due = self._clock.monotonic() + self._interval
            await self._clock.sleep(self._interval)
            lag = max(0.0, self._clock.monotonic() - due)
            self.seconds.observe(lag)
            self.longest = max(self.longest, lag)
