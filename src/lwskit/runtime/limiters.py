"""How long a request that failed waits before it is tried again (specification: 70 §4.3).

Numbers that cannot work, such as a rate of 0, are a ConfigurationError.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Protocol

from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError

BASE_DELAY = 0.005
"""Seconds before the first retry."""
MAX_DELAY = 1000.0
"""Seconds that the back-off never exceeds."""
RATE = 10.0
"""Retries a second that a bucket lets pass in the long run."""
BURST = 100
"""Retries that a bucket lets pass at once."""


class Limiter(Protocol):
    """Decides how long a failed request waits."""

    def when(self, request: Hashable) -> float:
        """Count one more failure and return the seconds to wait."""
        ...

    def forget(self, request: Hashable) -> None:
        """Start from zero with this request."""
        ...

    def failures(self, request: Hashable) -> int:
        """How many failures are counted for it."""
        ...


class _Counting:
    """Failures by request."""

    def __init__(self) -> None:
        self._failures: dict[Hashable, int] = {}

    def _count(self, request: Hashable) -> int:
        """Count one more and return how many there were before."""
        before = self._failures.get(request, 0)
        self._failures[request] = before + 1
        return before

    def forget(self, request: Hashable) -> None:
        """Start from zero with this request."""
        if self._failures:
            self._failures.pop(request, None)

    def failures(self, request: Hashable) -> int:
        """How many failures are counted for it."""
        return self._failures.get(request, 0)


def _require(limiter: str, **numbers: float) -> None:
    for name, number in numbers.items():
        if not (math.isfinite(number) and number > 0):
            raise ConfigurationError(f"{limiter}({name}={number:g}) cannot work; give a number above 0")


class ExponentialLimiter(_Counting):
    """`base` seconds, doubled with every failure of the same request, never more than `cap`."""

    def __init__(self, base: float = BASE_DELAY, cap: float = MAX_DELAY) -> None:
        super().__init__()
        _require("ExponentialLimiter", base=base, cap=cap)
        self._base = base
        self._cap = cap

    def when(self, request: Hashable) -> float:
        """Count one more failure and return the seconds to wait."""
        return min(self._base * 2.0 ** min(self._count(request), 64), self._cap)


class FastSlowLimiter(_Counting):
    """`fast` seconds for the first `attempts` failures of a request, `slow` seconds for all later ones."""

    def __init__(self, fast: float, slow: float, attempts: int) -> None:
        super().__init__()
        _require("FastSlowLimiter", fast=fast, slow=slow)
        self._fast = fast
        self._slow = slow
        self._attempts = attempts

    def when(self, request: Hashable) -> float:
        """Count one more failure and return the seconds to wait."""
        return self._fast if self._count(request) < self._attempts else self._slow


class BucketLimiter:
    """A token bucket over all requests: `rate` a second, `burst` at once, by reservation.

    Every call takes a token, also one that does not exist yet; so delays grow for as long as calls come faster.
    """

    def __init__(self, clock: Clock, rate: float = RATE, burst: int = BURST) -> None:
        _require("BucketLimiter", rate=rate, burst=burst)
        self._clock = clock
        self._rate = rate
        self._burst = float(burst)
        self._tokens = self._burst
        self._seen: float | None = None

    def when(self, request: Hashable) -> float:
        """Take a token and return the seconds until it exists."""
        now = self._clock.monotonic()
        if self._seen is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._seen) * self._rate)
        self._seen = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def forget(self, request: Hashable) -> None:
        """Nothing: tokens belong to no request."""

    def failures(self, request: Hashable) -> int:
        """Always 0: tokens belong to no request."""
        return 0


class MaxLimiter:
    """The longest wait that any of several limiters asks for."""

    def __init__(self, *limiters: Limiter) -> None:
        if not limiters:
            raise ConfigurationError("MaxLimiter needs at least one limiter")
        self._limiters = limiters

    def when(self, request: Hashable) -> float:
        """Count one more failure with every limiter and return the longest wait in seconds."""
        return max(limiter.when(request) for limiter in self._limiters)

    def forget(self, request: Hashable) -> None:
        """Start from zero with this request, in every limiter."""
        for limiter in self._limiters:
            limiter.forget(request)

    def failures(self, request: Hashable) -> int:
        """The highest count that any limiter has."""
        return max(limiter.failures(request) for limiter in self._limiters)


class CappedLimiter:
    """What another limiter asks for, but never more than `cap` seconds."""

    def __init__(self, inner: Limiter, cap: float) -> None:
        _require("CappedLimiter", cap=cap)
        self._inner = inner
        self._cap = cap

    def when(self, request: Hashable) -> float:
        """Count one more failure and return the seconds to wait."""
        return min(self._inner.when(request), self._cap)

    def forget(self, request: Hashable) -> None:
        """Start from zero with this request."""
        self._inner.forget(request)

    def failures(self, request: Hashable) -> int:
        """How many failures are counted for it."""
        return self._inner.failures(request)
