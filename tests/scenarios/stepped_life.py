"""A random life that goes on in steps: one thing happens, some time passes, and now and then everything rests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable

from lwskit.runtime.errors import Conflict, NotFound
from tests.scenarios.life import Life

Action = Callable[[], Awaitable[None]]

QUIET = 90.0
"""Seconds without a change after which nothing more is expected.

That is longer than anything in a pod's life takes, and than a controller waits after a dozen failures in a row.
"""
PATIENCE = 1800.0
"""Seconds after which a set that still changes does not come to rest."""
READS = ("get", "list", "watch")


class SteppedLife(Life, ABC):
    """What happens to a set is drawn from `actions`, and from what may happen to its manager."""

    counts: Counter[str]

    @abstractmethod
    async def look(self) -> int:
        """Look at what has happened; returns how much it was."""

    @abstractmethod
    def actions(self) -> dict[Action, int]:
        """What may happen whether a manager runs or not, and how often in proportion."""

    async def step(self) -> None:
        """One thing happens, and some time passes."""
        manager: dict[Action, int] = {
            self.changes_managers: 3,
            self.dies: 4,
            self.end: 2,
            self.cuts: 4,
            self.breaks: 5,
            self.loses_answers: 4,
            self.slows: 4,
            self.silences: 2,
            self.disconnects: 2,
            self.calm: 4,
        }
        actions = self.actions()
        if self.managed:
            actions |= manager
        elif self.chance(0.5):
            actions = {self.begin: 1}
        action = self.rng.choices([*actions], [*actions.values()])[0]
        self.log.append(getattr(action, "__name__", ""))
        self.counts["steps"] += 1
        try:
            await action()
        except (NotFound, Conflict):
            # The object was replaced between the look and the act.
            self.log[-1] += " (too late)"
        await self.cluster.clock.sleep(self.rng.choice((0.0, 0.05, 0.3, 1.0, 3.0, 8.0)))
        await self.look()

    async def settles(self) -> None:
        """Wait until nothing changes any more; then the manager does not write either."""
        clock, seen = self.cluster.clock, len(self.connection.requests)
        began = since = clock.monotonic()
        while clock.monotonic() - since < QUIET:
            await clock.sleep(2.0)
            if await self.look():
                since, seen = clock.monotonic(), len(self.connection.requests)
            assert clock.monotonic() - began < PATIENCE, "it does not come to rest"
        writes = [r for r in self.connection.requests[seen:] if r.verb not in READS]
        writes = [r for r in writes if "/events" not in r.request.path and r.at > since + 1.0]
        assert not writes, f"at rest the manager still writes: {writes}"
