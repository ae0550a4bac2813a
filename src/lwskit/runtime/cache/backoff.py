"""How long to wait between rounds of list and watch. Pure."""

from __future__ import annotations

import random


class Backoff:
    """Growing waits: 0.8 s · 2ⁿ up to 30 s, each times 1…2 at random; anew after two minutes without use."""

    BASE, CAP, RESET = 0.8, 30.0, 120.0

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._next = self.BASE
        self._used: float | None = None

    def step(self, now: float) -> float:
        """The next wait in seconds; `now` is monotonic seconds."""
        if self._used is not None and now - self._used > self.RESET:
            self._next = self.BASE
        wait = self._next * (1 + self._rng.random())
        self._next = min(self._next * 2, self.CAP)
        # Counted from the end of the wait: waiting is not health.
        self._used = now + wait
        return wait
