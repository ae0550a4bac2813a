"""The work queue: priorities, per-request back-off, delays, and at most one request of a lane in work.

Specification: 70 §4.1.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from lwskit.runtime.clock import Clock
from lwskit.runtime.limiters import (
    BASE_DELAY,
    MAX_DELAY,
    BucketLimiter,
    CappedLimiter,
    ExponentialLimiter,
    FastSlowLimiter,
    Limiter,
    MaxLimiter,
)
from lwskit.runtime.queue_base import SLACK, BaseQueue, QueueShutDown, is_mostly_void, newer_payload
from lwskit.runtime.stats import FLUSH

__all__ = [
    "BASE_DELAY",
    "LABELS",
    "MAX_DELAY",
    "OTHER_PRIORITIES",
    "BaseQueue",
    "BucketLimiter",
    "CappedLimiter",
    "ExponentialLimiter",
    "FastSlowLimiter",
    "Limiter",
    "MaxLimiter",
    "QueueShutDown",
    "WorkQueue",
]

LABELS = 25
"""Different priorities that the depth is told of one by one (specification: 70 §10)."""
OTHER_PRIORITIES = "exceeded_cardinality_limit"
"""The label under which all further ones are told."""
_KEPT_LEVELS = 100

T = TypeVar("T", bound=Hashable)


class _Entry(Generic[T]):
    """A request that waits for its turn: since when it is ready, or when it becomes so."""

    __slots__ = ("level", "live", "order", "ready_at", "ready_since", "request")

    def __init__(self, request: T, level: _Level[T], now: float) -> None:
        self.request = request
        self.level = level
        self.ready_since = now
        self.ready_at: float | None = None
        self.order = 0
        self.live = True

    def __lt__(self, other: _Entry[T]) -> bool:
        return self.order < other.order


class _Level(Generic[T]):
    """The ready entries of one priority. Those in `freed` waited for their lane and are older than their place."""

    __slots__ = ("depth", "freed", "fresh", "label", "priority", "rank")

    def __init__(self, priority: int, label: str) -> None:
        self.priority = priority
        self.rank = -priority
        self.label = label
        self.fresh: deque[_Entry[T]] = deque()
        self.freed: list[_Entry[T]] = []
        self.depth = 0

    def pop(self) -> _Entry[T] | None:
        """The entry that became ready first, as far as it still counts."""
        while self.freed or self.fresh:
            if self.freed and not (self.fresh and self.fresh[0].order < self.freed[0].order):
                entry = heapq.heappop(self.freed)
            else:
                entry = self.fresh.popleft()
            if entry.live:
                return entry
        return None


class WorkQueue(BaseQueue[T]):
    """Requests by priority, then by the order in which they became ready; equal requests are folded into one.

    `lane` names what must not be worked on twice at a time: of the requests with one lane only one is given out until
    `done` is called for it. By default each request is a lane of its own. `limiter` decides the delay of
    `add(…, rate_limited=True)`, by default exponential by request. `debounce` is how many seconds every other add
    waits, so that what comes in a burst is folded; off by default.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        lane: Callable[[T], Hashable] | None = None,
        limiter: Limiter | None = None,
        debounce: float = 0.0,
    ) -> None:
        super().__init__(clock, lane, limiter or ExponentialLimiter())
        self._debounce = debounce
        self._order = 0
        self._ready = 0
        self._waits = self.queue_duration.pending
        self._works = self.work_duration.pending
        self._entries: dict[T, _Entry[T]] = {}
        self._levels: dict[int, _Level[T]] = {}
        self._by_rank: list[_Level[T]] = []
        self._labels: dict[int, str] = {}
        self._blocked: dict[Hashable, list[tuple[int, _Entry[T]]]] = {}
        self._delayed: list[tuple[float, int, _Entry[T]]] = []
        self._delays = 0
        """Entries that wait for their time; what else is in the heap is void."""

    def __len__(self) -> int:
        return self._ready

    @property
    def depth(self) -> dict[int, int]:
        """Ready requests by priority."""
        return {level.priority: level.depth for level in self._by_rank if level.depth}

    def depth_by_label(self) -> dict[str, int]:
        """Ready requests by the text of their priority; what was seen once is told on with 0."""
        found = dict.fromkeys(self._labels.values(), 0)
        for level in self._by_rank:
            found[level.label] = found.get(level.label, 0) + level.depth
        return found

    def add(self, request: T, priority: int = 0, after: float = 0.0, rate_limited: bool = False) -> None:
        """Ask for a request to be worked on, at the latest in `after` seconds, or after the limiter's delay.

        With both the shorter delay holds. An equal request that waits already keeps the earlier time and the higher
        priority. Of two payloads the newer event's stays; that of a retry never replaces one. Ignored after shutdown.
        """
        if self._shut:
            return
        delay = self._delay_of(request, after, rate_limited) if rate_limited or after > 0 else self._debounce
        entry = self._entries.get(request)
        if entry is None:
            now = self._now()
            level = self._levels.get(priority) or self._level(priority)
            entry = self._entries[request] = _Entry(request, level, now)
            if delay > 0:
                self._delay(entry, now + delay)
                return
            # What _make_ready does, without the calls: nearly every event of a cluster comes along here.
            self.adds += 1
            self._ready += 1
            self._order = entry.order = self._order + 1
            level.depth += 1
            level.fresh.append(entry)
            if self._waiters:
                self._wake()
            return
        entry.request = newer_payload(entry.request, request, is_retry=rate_limited or after > 0)
        if entry.ready_at is None:
            if priority > entry.level.priority:
                self._raise(entry, priority)
            return
        if priority > entry.level.priority:
            entry.level = self._level(priority)
        now = self._now()
        if delay <= 0:
            entry.ready_since = now
            self._make_ready(entry)
        elif now + delay < entry.ready_at:
            self._delay(entry, now + delay)

    def done(self, request: T) -> None:
        """Say that work on a request that `get` gave out has ended; its lane is free again."""
        lane = request if self._lane is None else self._lane_in_work(request, self._lane(request))
        held = self._processing.pop(lane, None)
        if held is None:
            return
        works = self._works
        works.append(self._now() - held[0])
        if len(works) >= FLUSH:
            self.work_duration.flush()
        if not self._blocked:
            return
        blocked = self._blocked.get(lane)
        while blocked:
            entry = heapq.heappop(blocked)[1]
            if entry.live:
                # One suffices: the next of the lane follows when this one is done.
                heapq.heappush(entry.level.freed, entry)
                self._wake()
                break
        if not blocked:
            self._blocked.pop(lane, None)

    def _take(self) -> tuple[T, int] | None:
        if self._shut:
            return None
        if self._delayed and self._delayed[0][0] <= self._now() + SLACK:
            self._promote()
        processing = self._processing
        for level in self._by_rank:
            while level.depth:
                if level.fresh and not level.freed:
                    entry = level.fresh.popleft()
                    if not entry.live:
                        continue
                else:
                    entry = level.pop()
                    if entry is None:
                        break
                request = entry.request
                lane = request if self._lane is None else self._lane(request)
                if lane in processing:
                    blocked = self._blocked.setdefault(lane, [])
                    heapq.heappush(blocked, (level.rank, entry))
                    continue
                now = self._now()
                del self._entries[request]
                processing[lane] = (now, request)
                self._ready -= 1
                level.depth -= 1
                waits = self._waits
                waits.append(now - entry.ready_since)
                if len(waits) >= FLUSH:
                    self.queue_duration.flush()
                return request, level.priority
        return None

    def _make_ready(self, entry: _Entry[T]) -> None:
        entry.ready_at = None
        self._delays -= 1
        self.adds += 1
        self._ready += 1
        self._enqueue(entry)

    def _enqueue(self, entry: _Entry[T]) -> None:
        self._order += 1
        entry.order = self._order
        entry.level.depth += 1
        entry.level.fresh.append(entry)
        if self._waiters:
            self._wake()

    def _raise(self, entry: _Entry[T], priority: int) -> None:
        """Put another entry at the end of a higher level; the old one is void wherever it lies."""
        entry.live = False
        entry.level.depth -= 1
        raised = _Entry(entry.request, self._level(priority), entry.ready_since)
        self._entries[entry.request] = raised
        self._enqueue(raised)

    def _level(self, priority: int) -> _Level[T]:
        level = self._levels.get(priority)
        if level is None:
            if priority not in self._labels and len(self._labels) < LABELS:
                self._labels[priority] = str(priority)
            if len(self._levels) >= _KEPT_LEVELS:
                self._drop_unused_levels()
            level = self._levels[priority] = _Level(priority, self._labels.get(priority, OTHER_PRIORITIES))
            insort(self._by_rank, level, key=lambda other: other.rank)
        return level

    def _drop_unused_levels(self) -> None:
        used = {id(entry.level) for entry in self._entries.values()}
        self._by_rank = [level for level in self._by_rank if id(level) in used]
        self._levels = {level.priority: level for level in self._by_rank}

    def _delay(self, entry: _Entry[T], ready_at: float) -> None:
        if entry.ready_at is None:
            self._delays += 1
        entry.ready_at = ready_at
        self._order += 1
        heapq.heappush(self._delayed, (ready_at, self._order, entry))
        if is_mostly_void(self._delayed, self._delays):
            self._delayed = [item for item in self._delayed if item[2].ready_at == item[0]]
            heapq.heapify(self._delayed)
        self._arm(self._delayed[0][0])

    def _promote(self) -> float | None:
        now = self._now()
        while self._delayed and self._delayed[0][0] <= now + SLACK:
            ready_at, _, entry = heapq.heappop(self._delayed)
            if entry.ready_at == ready_at:
                entry.ready_since = now
                self._make_ready(entry)
        return self._delayed[0][0] if self._delayed else None
