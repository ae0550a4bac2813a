"""What both work queues share: waiting for a turn, the timer of delayed requests, and what is counted."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sized
from typing import Generic, TypeVar, cast

import structlog

from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.limiters import Limiter
from lwskit.runtime.request import Request
from lwskit.runtime.stats import Histogram

SLACK = 1e-6
"""Seconds by which a timer may be early."""
_FEW = 64
"""Delayed requests below which void ones do not matter."""

log = structlog.get_logger(__name__)

T = TypeVar("T", bound=Hashable)


class QueueShutDown(LwskitError):
    """The queue gives out nothing any more."""


class BaseQueue(ABC, Generic[T]):
    """A queue that gives each request to one worker at a time.

    `lane` names what must not be worked on twice at a time: of the requests with one lane only one is given out until
    `done` is called for it. By default each request is a lane of its own. `limiter` decides the delay of
    `add(…, rate_limited=True)`. Every step is synchronous, so nothing is ever seen half done; only `get` waits.
    """

    def __init__(self, clock: Clock, lane: Callable[[T], Hashable] | None, limiter: Limiter) -> None:
        self._clock = clock
        self._now = clock.monotonic
        self._lane = lane
        self._limiter = limiter
        self._processing: dict[Hashable, tuple[float, T]] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._shut = False
        self.adds = 0
        """How many times a request became ready."""
        self.retries = 0
        """How many delayed adds there were."""
        self.queue_duration = Histogram()
        """Seconds from ready to given out."""
        self.work_duration = Histogram()
        """Seconds from given out to done."""
        self.on_defect: Callable[[Exception], None] = _log_defect
        """Told when a function that was to make requests for this queue failed; its controller counts that."""

    @abstractmethod
    def __len__(self) -> int:
        """Ready requests, including those whose lane is in work."""

    @abstractmethod
    def add(self, request: T, priority: int = 0, after: float = 0.0, rate_limited: bool = False) -> None:
        """Ask for a request to be worked on, at the latest in `after` seconds, or after the limiter's delay."""

    @abstractmethod
    def done(self, request: T) -> None:
        """Say that work on a request that `get` gave out has ended; its lane is free again."""

    @abstractmethod
    def depth_by_label(self) -> Mapping[str, int]:
        """Ready requests by the label `priority` of their metric (specification: 70 §10)."""

    @property
    def is_shut_down(self) -> bool:
        """Whether `shut_down` was called."""
        return self._shut

    async def get(self) -> tuple[T, int]:
        """Wait for the next request whose lane is free; returns it and its priority, and its lane is taken.

        Raises QueueShutDown. Cancelling the wait takes nothing from the queue.
        """
        while True:
            taken = self._take()
            if taken is not None:
                return taken
            if self._shut:
                raise QueueShutDown("the queue is shut down")
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

    def forget(self, request: T) -> None:
        """Let the back-off of a request start from the beginning."""
        self._limiter.forget(request)

    def failures(self, request: T) -> int:
        """How often a request was added rate-limited since it was last forgotten."""
        return self._limiter.failures(request)

    def processing_since(self) -> list[float]:
        """When each request in work was given out, in the clock's monotonic seconds."""
        return [since for since, _ in self._processing.values()]

    def shut_down(self) -> None:
        """Stop: adds are ignored from now on, and every waiting `get` returns."""
        self._shut = True
        if self._timer:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            self._wake()

    @abstractmethod
    def _take(self) -> tuple[T, int] | None:
        """Take the next request out, or None when no lane that has one is free."""

    @abstractmethod
    def _promote(self) -> float | None:
        """Make ready what is due; returns when the next is, in the clock's monotonic seconds."""

    def _lane_in_work(self, request: T, lane: Hashable) -> Hashable:
        """The lane that was taken for a request in work, also if the lane function answers differently by now."""
        held = self._processing.get(lane)
        if held is not None and held[1] == request:
            return lane
        return next((lane for lane, (_, other) in self._processing.items() if other == request), lane)

    def _delay_of(self, request: T, after: float, rate_limited: bool) -> float:
        delay = after
        if rate_limited:
            limited = self._limiter.when(request)
            if after <= 0 or limited < after:
                delay = limited
        if delay > 0:
            self.retries += 1
        return delay

    def _arm(self, due: float) -> None:
        """See to it that `_promote` is called at that time, if not before."""
        if self._shut:
            return
        if self._timer:
            if self._timer_at <= due:
                return
            self._timer.cancel()
        self._timer_at = due
        delay = max(0.0, due - self._now())
        self._timer = asyncio.get_running_loop().call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        due = self._promote()
        if due is not None:
            self._arm(due)

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return


def _log_defect(error: Exception) -> None:
    log.error("a function that makes requests failed", error=repr(error), exc_info=error)


def is_mostly_void(heap: Sized, wanted: int) -> bool:
    """Whether a heap of delayed requests is worth rebuilding, which then costs no more than what was added to it."""
    return len(heap) > _FEW and len(heap) > 2 * wanted


def newer_payload(old: T, new: T, *, is_retry: bool) -> T:
    """Of two equal requests the one whose payload is to stay: the newer event's, but a retry's replaces none."""
    if isinstance(old, Request) and isinstance(new, Request):
        keep_old = old.payload is not None and (is_retry or new.payload is None)
        return cast(T, old if keep_old else new)
    return old
