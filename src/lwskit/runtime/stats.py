"""Counts that the library keeps as plain numbers; `lwskit.runtime.metrics` reads them when somebody asks. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

WIDE_BUCKETS = tuple(10.0**exponent for exponent in range(-8, 4))
"""Twelve buckets from 10 ns on, each ten times the one before (specification: 70 §10)."""


FLUSH = 1024
"""How many values wait before they are counted."""


class Histogram:
    """Observations counted by upper bound.

    Values wait in `pending` until somebody reads or FLUSH of them have come: sorting many at once is far cheaper than
    finding the place of each. Who observes often may append there and call `flush` from time to time.
    """

    __slots__ = ("_counts", "_total", "bounds", "pending")

    def __init__(self, bounds: Iterable[float] = WIDE_BUCKETS) -> None:
        self.bounds = tuple(bounds)
        self.pending: list[float] = []
        self._counts = [0] * (len(self.bounds) + 1)
        self._total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.pending.append(value)
        if len(self.pending) >= FLUSH:
            self.flush()

    def flush(self) -> None:
        """Count what waits."""
        values = sorted(self.pending)
        self.pending.clear()
        below = 0
        for place, bound in enumerate(self.bounds):
            reached = bisect_right(values, bound)
            self._counts[place] += reached - below
            below = reached
        self._counts[-1] += len(values) - below
        self._total += sum(values)

    def plus(self, other: Histogram) -> Histogram:
        """A histogram of what both have seen; they have the same bounds."""
        found = Histogram(self.bounds)
        found._counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        found._total = self.total + other.total
        return found

    @property
    def counts(self) -> list[int]:
        """How many values lie at or below each bound and above the one before; the last place is above every bound."""
        self.flush()
        return self._counts

    @property
    def total(self) -> float:
        """The sum of all values."""
        self.flush()
        return self._total

    def cumulative(self) -> list[tuple[str, float]]:
        """The buckets as Prometheus writes them: upper bound as text and how many values are not above it."""
        found, below = [], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            below += count
            found.append((bound, float(below)))
        return found
