"""Counts that the library keeps as plain numbers; `lwskit.runtime.metrics` reads them when somebody asks. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

WIDE_BUCKETS = tuple(10.0**exponent for exponent in range(-8, 4))
"""Twelve buckets from 10 ns on, each ten times the one before (specification: 70 §10)."""


class Histogram:
    """Observations counted by upper bound; the last place of `counts` holds those above every bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Iterable[float] = WIDE_BUCKETS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """The buckets as Prometheus writes them: upper bound as text and how many values are not above it."""
        found, below = [], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            below += count
            found.append((bound, float(below)))
        return found
