"""The work queue: priorities, per-request back-off, delays, and at most one request of a lane in work.

Specification: 70 §4. Every step is synchronous, so nothing is ever seen half done; only `get` waits.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import Callable, Hashable
from itertools import count
from typing import Generic, Protocol, TypeVar, cast

from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.request import Request
from lwskit.runtime.stats import Histogram

BASE_DELAY = 0.005
"""Seconds before the first retry."""
MAX_DELAY = 1000.0
"""Seconds that the back-off never exceeds."""
_SLACK = 1e-6

T = TypeVar("T", bound=Hashable)


class QueueShutDown(LwskitError):
    """The queue gives out nothing any more."""


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


class ExponentialLimiter:
    """`base` seconds doubled with every failure of the same request, never more than `cap` (specification: 70 §4.3)."""

    def __init__(self, base: float = BASE_DELAY, cap: float = MAX_DELAY) -> None:
        self._base = base
        self._cap = cap
        self._failures: dict[Hashable, int] = {}

    def when(self, request: Hashable) -> float:
        """Count one more failure and return the seconds to wait."""
        before = self._failures.get(request, 0)
        self._failures[request] = before + 1
        return min(self._base * 2.0 ** min(before, 64), self._cap)

    def forget(self, request: Hashable) -> None:
        """Start from zero with this request."""
        self._failures.pop(request, None)

    def failures(self, request: Hashable) -> int:
        """How many failures are counted for it."""
        return self._failures.get(request, 0)


class BucketLimiter:
    """A token bucket over all requests: `rate` a second, `burst` at once, by reservation (specification: 70 §4.3)."""

    def __init__(self, clock: Clock, rate: float = 10.0, burst: int = 100) -> None:
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


class _Entry(Generic[T]):
    """A request that waits for its turn: since when it is ready, or when it becomes so."""

    __slots__ = ("order", "priority", "ready_at", "ready_since", "request")

    def __init__(self, request: T, priority: int) -> None:
        self.request = request
        self.priority = priority
        self.order = 0
        self.ready_at: float | None = None
        self.ready_since = 0.0


class WorkQueue(Generic[T]):
    """Requests by priority, then by the order in which they became ready; equal requests are folded into one.

    `lane` names what must not be worked on twice at a time: of the requests with one lane only one is given out until
    `done` is called for it. By default each request is a lane of its own. `limiter` decides the delay of
    `add(…, rate_limited=True)`. Specification: 70 §4.1.
    """

    def __init__(
        self, clock: Clock, *, lane: Callable[[T], Hashable] | None = None, limiter: Limiter | None = None
    ) -> None:
        self._clock = clock
        self._lane: Callable[[T], Hashable] = lane or _itself
        self._limiter: Limiter = limiter or ExponentialLimiter()
        self._order = count(1)
        self._entries: dict[T, _Entry[T]] = {}
        # Items are (-priority, order, entry); one whose order is not its entry's any more is void.
        self._ready: list[tuple[int, int, _Entry[T]]] = []
        self._blocked: dict[Hashable, list[tuple[int, int, _Entry[T]]]] = {}
        self._delayed: list[tuple[float, int, _Entry[T]]] = []
        self._processing: dict[Hashable, float] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._shut = False
        self.adds = 0
        """How many times a request became ready."""
        self.retries = 0
        """How many delayed adds there were."""
        self.depth: Counter[int] = Counter()
        """Ready requests by priority."""
        self.queue_duration = Histogram()
        """Seconds from ready to given out."""
        self.work_duration = Histogram()
        """Seconds from given out to done."""

    def __len__(self) -> int:
        """Ready requests, including those whose lane is in work."""
        return self.depth.total()

    @property
    def is_shut_down(self) -> bool:
        """Whether `shut_down` was called."""
        return self._shut

    def add(self, request: T, priority: int = 0, after: float = 0.0, rate_limited: bool = False) -> None:
        """Ask for a request to be worked on, at the latest in `after` seconds, or after the limiter's delay.

        With both the shorter delay holds. An equal request that waits already keeps the earlier time and the higher
        priority. Of two payloads the newer event's stays; that of a retry never replaces one. Ignored after shutdown.
        """
        if self._shut:
            return
        delay = after
        if rate_limited:
            limited = self._limiter.when(request)
            if after <= 0 or limited < after:
                delay = limited
        now = self._clock.monotonic()
        if delay > 0:
            self.retries += 1
        entry = self._entries.get(request)
        if entry is None:
            entry = self._entries[request] = _Entry(request, priority)
            if delay > 0:
                self._delay(entry, now + delay)
            else:
                self._make_ready(entry, now)
            return
        entry.request = _newer_payload(entry.request, request, is_retry=delay > 0)
        if entry.ready_at is None:
            if priority > entry.priority:
                self._leave(entry.priority)
                entry.priority = priority
                self.depth[priority] += 1
                self._enqueue(entry)
            return
        entry.priority = max(priority, entry.priority)
        if delay <= 0:
            self._make_ready(entry, now)
        elif now + delay < entry.ready_at:
            self._delay(entry, now + delay)

    async def get(self) -> tuple[T, int]:
        """Wait for the next request whose lane is free; returns it and its priority, and its lane is taken.

        Raises QueueShutDown. Cancelling the wait takes nothing from the queue.
        """
        while True:
            if self._shut:
                raise QueueShutDown("the queue is shut down")
            self._promote()
            entry = self._take()
            if entry is not None:
                return entry.request, entry.priority
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                else:
                    # It was woken for something that another waiter must now take.
                    self._wake()
                raise

    def done(self, request: T) -> None:
        """Say that work on a request that `get` gave out has ended; its lane is free again."""
        lane = self._lane(request)
        started = self._processing.pop(lane, None)
        if started is None:
            return
        self.work_duration.observe(self._clock.monotonic() - started)
        blocked = self._blocked.get(lane)
        if blocked is None:
            return
        while blocked:
            item = heapq.heappop(blocked)
            if self._is_current(item):
                # One suffices: the next of the lane follows when this one is done.
                heapq.heappush(self._ready, item)
                self._wake()
                break
        if not blocked:
            del self._blocked[lane]

    def forget(self, request: T) -> None:
        """Let the back-off of a request start from the beginning."""
        self._limiter.forget(request)

    def failures(self, request: T) -> int:
        """How often a request was added rate-limited since it was last forgotten."""
        return self._limiter.failures(request)

    def processing_since(self) -> list[float]:
        """When each request in work was given out, in the clock's monotonic seconds."""
        return list(self._processing.values())

    def shut_down(self) -> None:
        """Stop: every waiting and later `get` raises QueueShutDown, adds are ignored, nothing is drained."""
        self._shut = True
        if self._timer:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            self._wake()

    def _make_ready(self, entry: _Entry[T], now: float) -> None:
        entry.ready_at = None
        entry.ready_since = now
        self.adds += 1
        self.depth[entry.priority] += 1
        self._enqueue(entry)

    def _enqueue(self, entry: _Entry[T]) -> None:
        entry.order = next(self._order)
        heapq.heappush(self._ready, (-entry.priority, entry.order, entry))
        self._wake()

    def _delay(self, entry: _Entry[T], ready_at: float) -> None:
        entry.ready_at = ready_at
        heapq.heappush(self._delayed, (ready_at, next(self._order), entry))
        self._arm()

    def _take(self) -> _Entry[T] | None:
        while self._ready:
            item = heapq.heappop(self._ready)
            if not self._is_current(item):
                continue
            entry = item[2]
            lane = self._lane(entry.request)
            if lane in self._processing:
                heapq.heappush(self._blocked.setdefault(lane, []), item)
                continue
            now = self._clock.monotonic()
            del self._entries[entry.request]
            self._processing[lane] = now
            self._leave(entry.priority)
            self.queue_duration.observe(now - entry.ready_since)
            return entry
        return None

    def _leave(self, priority: int) -> None:
        self.depth[priority] -= 1
        if not self.depth[priority]:
            del self.depth[priority]

    def _is_current(self, item: tuple[int, int, _Entry[T]]) -> bool:
        return item[1] == item[2].order and self._entries.get(item[2].request) is item[2]

    def _promote(self) -> None:
        now = self._clock.monotonic() + _SLACK
        while self._delayed and self._delayed[0][0] <= now:
            ready_at, _, entry = heapq.heappop(self._delayed)
            if entry.ready_at == ready_at and self._entries.get(entry.request) is entry:
                self._make_ready(entry, now)
        self._arm()

    def _arm(self) -> None:
        if self._shut or not self._delayed:
            return
        due = self._delayed[0][0]
        if self._timer:
            if self._timer_at <= due:
                return
            self._timer.cancel()
        delay = max(0.0, due - self._clock.monotonic())
        self._timer_at = due
        self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._promote()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return


def _itself(request: Hashable) -> Hashable:
    return request


def _newer_payload(old: T, new: T, *, is_retry: bool) -> T:
    if isinstance(old, Request) and isinstance(new, Request):
        keep_old = old.payload is not None and (is_retry or new.payload is None)
        return cast(T, old if keep_old else new)
    return old
