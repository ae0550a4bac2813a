"""What a manager can know at a moment: news reaches it at once, or late, or not at all, as a life has it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tests.scenarios.stepped_life import SteppedLife

LATE = 1.0
"""Seconds for which a controller may still act on what was so before."""


class Sight:
    """Since when a manager may act on what is not so any more."""

    def __init__(self) -> None:
        self._blind_since: float | None = None
        """Since when news has reached no manager, or reached it late; None if it reaches one at once."""
        self._sees_since = 0.0

    def blind(self, at: float) -> None:
        """From now on news reaches no manager, or reaches it late."""
        if self._blind_since is None or self._sees_since < at - LATE:
            self._blind_since = at
        self._sees_since = float("inf")

    def sees(self, at: float) -> None:
        """From now on news reaches the manager at once."""
        self._sees_since = min(self._sees_since, at)

    def since(self, at: float) -> float:
        """From when on the manager may still act on what was so."""
        late = at - LATE
        return min(late, self._blind_since - LATE) if self._blind_since and late < self._sees_since else late

    def has_been_clear_since(self, at: float) -> bool:
        """Whether news has reached the manager at once all the time since a while before that moment."""
        return self._blind_since is None or self._sees_since <= at - LATE


class SightedLife(SteppedLife, ABC):
    """A life that tells when its manager sees and when it does not."""

    @property
    @abstractmethod
    def sight(self) -> Sight:
        """What the manager can know, which its laws take into account."""

    def _blind(self) -> None:
        self.sight.blind(self.cluster.clock.monotonic())

    def _sees(self) -> None:
        self.sight.sees(self.cluster.clock.monotonic())

    async def slows(self) -> None:
        self._blind()
        await super().slows()

    async def silences(self) -> None:
        self._blind()
        await super().silences()

    async def disconnects(self) -> None:
        self._blind()
        await super().disconnects()

    async def calm(self) -> None:
        await super().calm()
        if self.managed:
            self._sees()

    async def begin(self) -> None:
        fresh = not self.managed
        await super().begin()
        if fresh:
            self._sees()

    async def dies(self) -> None:
        self._blind()
        await super().dies()

    async def end(self) -> None:
        await super().end()
        self._blind()
