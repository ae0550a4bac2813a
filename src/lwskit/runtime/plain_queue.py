"""The work queue without priorities: first in, first out (specification: 70 §4.2)."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable
from typing import TypeVar

from lwskit.runtime.clock import Clock
from lwskit.runtime.limiters import BucketLimiter, ExponentialLimiter, Limiter, MaxLimiter
from lwskit.runtime.queue_base import SLACK, BaseQueue, is_mostly_void, newer_payload

T = TypeVar("T", bound=Hashable)


class PlainQueue(BaseQueue[T]):
    """Requests in the order in which they became ready; equal requests are folded into one.

    It differs from WorkQueue in four ways. Priorities are ignored: every request is given out with 0. A request whose
    lane is in work goes to the end once that is done. A delayed add is kept apart, so it fires also if the request
    was worked on meanwhile. After shutdown what is queued is still given out. `limiter` is by default the longer of
    the exponential delay by request and a bucket of 10 a second over all requests.
    """

    def __init__(
        self, clock: Clock, *, lane: Callable[[T], Hashable] | None = None, limiter: Limiter | None = None
    ) -> None:
        super().__init__(clock, lane, limiter or MaxLimiter(ExponentialLimiter(), BucketLimiter(clock)))
        self._queue: deque[T] = deque()
        self._wanted: dict[T, tuple[T, float]] = {}
        """What was added and not given out since: with its newest payload, and since when."""
        self._blocked: dict[Hashable, deque[T]] = {}
        self._due: dict[T, tuple[float, T]] = {}
        self._delayed: list[tuple[float, int, T]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._queue)

    def depth_by_label(self) -> dict[str, int]:
        """All ready requests, under no priority."""
        return {"": len(self._queue)}

    def add(self, request: T, priority: int = 0, after: float = 0.0, rate_limited: bool = False) -> None:
        """Ask for a request to be worked on: now, in `after` seconds, or after the limiter's delay.

        Of two delays of one request the earlier holds, also of `after` and the limiter's. Ignored after shutdown.
        """
        if self._shut:
            return
        delay = self._delay_of(request, after, rate_limited)
        if delay <= 0:
            self._want(request, is_retry=False)
            return
        due = self._now() + delay
        known = self._due.get(request)
        if known is not None:
            request = newer_payload(known[1], request, is_retry=True)
            if known[0] <= due:
                self._due[request] = (known[0], request)
                return
        self._due[request] = (due, request)
        self._count += 1
        heapq.heappush(self._delayed, (due, self._count, request))
        if is_mostly_void(self._delayed, len(self._due)):
            self._delayed = [item for item in self._delayed if self._due[item[2]][0] == item[0]]
            heapq.heapify(self._delayed)
        self._arm(self._delayed[0][0])

    def done(self, request: T) -> None:
        """Say that work on a request that `get` gave out has ended; what waited for its lane is queued."""
        lane = self._lane_in_work(request, self._lane_of(request))
        held = self._processing.pop(lane, None)
        if held is None:
            return
        self.work_duration.observe(self._now() - held[0])
        waiting = self._blocked.pop(lane, None)
        if waiting:
            self._queue.extend(waiting)
            for _ in waiting:
                self._wake()

    def _lane_of(self, request: T) -> Hashable:
        return request if self._lane is None else self._lane(request)

    def _want(self, request: T, *, is_retry: bool) -> None:
        known = self._wanted.get(request)
        if known is not None:
            self._wanted[request] = (newer_payload(known[0], request, is_retry=is_retry), known[1])
            return
        self.adds += 1
        self._wanted[request] = (request, self._now())
        lane = self._lane_of(request)
        if lane in self._processing:
            self._blocked.setdefault(lane, deque()).append(request)
        else:
            self._queue.append(request)
            self._wake()

    def _take(self) -> tuple[T, int] | None:
        self._promote()
        while self._queue:
            request = self._queue.popleft()
            lane = self._lane_of(request)
            if lane in self._processing:
                self._blocked.setdefault(lane, deque()).append(request)
                continue
            request, since = self._wanted.pop(request)
            now = self._now()
            self._processing[lane] = (now, request)
            self.queue_duration.observe(now - since)
            return request, 0
        return None

    def _promote(self) -> float | None:
        now = self._now() + SLACK
        while self._delayed and self._delayed[0][0] <= now and not self._shut:
            due, _, request = heapq.heappop(self._delayed)
            known = self._due.get(request)
            if known is not None and known[0] == due:
                del self._due[request]
                self._want(known[1], is_retry=True)
        return self._delayed[0][0] if self._delayed else None
