"""What can go wrong between a program and its API server, one thing at a time, each with a name."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum

from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import (
    ConfigurationError,
    Conflict,
    ConnectionFailed,
    Expired,
    InternalError,
    LwskitError,
    ServerTimeout,
    ServiceUnavailable,
)
from lwskit.testing.interceptors import Interceptor, Send, collection, matching
from lwskit.testing.process import Process
from lwskit.testing.streams import Repeat

AWAY = 30.0
"""Seconds for which a process stays away that is not started anew at once."""

BETWEEN = 0.05
"""Seconds after an answer at which a process dies that dies between two writes."""

LAG = 1.0
"""Seconds by which the news of a kind are late."""

UNCOUNTED = ("events", "leases", "subjectaccessreviews", "selfsubjectaccessreviews", "tokenreviews")
"""Resources whose writes are no actions: nothing follows from them."""


class Scope(Enum):
    """How many points there are of a disturbance: one for each write, for each watched kind, or one for the run."""

    WRITE = "write"
    KIND = "kind"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One thing that goes wrong. `text` ends the sentence "the program is disturbed:".

    `dies` says when its process dies: before a write, after it has taken effect, or between it and the next, and
    `away` for how many seconds. `error` is what the program gets for a write, which has taken effect if `after`.
    """

    name: str
    text: str
    scope: Scope
    dies: str = ""
    away: float = 0.0
    error: LwskitError | None = None
    after: bool = False

    @property
    def crash(self) -> bool:
        """Whether the process dies."""
        return bool(self.dies)


_BUSY = Conflict("Operation cannot be fulfilled: the object has been modified")
_BROKEN = InternalError("an error on the server has prevented the request from succeeding")
_DOWN = ServiceUnavailable("the server is currently unable to handle the request")
_REFUSED = ConnectionFailed("the connection was refused")
_LOST = ConnectionFailed("the connection was lost before the answer came")
_LATE = ServerTimeout("the server has not answered in time")
_W, _K, _R = Scope.WRITE, Scope.KIND, Scope.RUN

DISTURBANCES = {
    d.name: d
    for d in (
        Disturbance("dies-before", "its process dies before the write", _W, dies="before"),
        Disturbance("dies-after", "the write takes effect, and its process dies before the answer", _W, dies="after"),
        Disturbance("dies-between", "its process dies between the write's answer and the next", _W, dies="between"),
        Disturbance("away-before", "as dies-before, and it stays away for a while", _W, dies="before", away=AWAY),
        Disturbance("away-after", "as dies-after, and it stays away for a while", _W, dies="after", away=AWAY),
        Disturbance("conflict", "the write is answered with 409 Conflict", _W, error=_BUSY),
        Disturbance("error", "the write is answered with 500", _W, error=_BROKEN),
        Disturbance("unavailable", "the write is answered with 503", _W, error=_DOWN),
        Disturbance("refused", "the write's connection fails, and it has no effect", _W, error=_REFUSED),
        Disturbance("lost", "the write takes effect, and its answer is lost", _W, error=_LOST, after=True),
        Disturbance("timeout", "the write takes effect, and is answered with 504", _W, error=_LATE, after=True),
        Disturbance("slow", "the news of one kind are late", _K),
        Disturbance("slow-all", "all news are late, those of each kind by another time", _R),
        Disturbance("cut", "all watches are cut after every write", _R),
        Disturbance("relist", "they are, and have to list again", _R),
        Disturbance("twice", "every event of a watch comes twice", _R),
        Disturbance("older", "after every event of a watch the one before it comes again", _R),
        Disturbance(
            "conflicts", "each write is answered with 409 Conflict every other time that it is sent", _R, error=_BUSY
        ),
        Disturbance("errors", "each write is answered with 500 every other time that it is sent", _R, error=_BROKEN),
        Disturbance(
            "losses", "each write loses its answer every other time that it is sent", _R, error=_LOST, after=True
        ),
    )
}
"""Every disturbance by its name."""


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A disturbance at a place: `at` is the number of a write, counted from 1, or a watched resource, or empty."""

    name: str
    at: str = ""

    @property
    def disturbance(self) -> Disturbance:
        """What goes wrong."""
        return DISTURBANCES[self.name]

    @property
    def write(self) -> int:
        """The number of the write at which it goes wrong, 0 where it is none."""
        return int(self.at) if self.disturbance.scope is Scope.WRITE else 0

    def __str__(self) -> str:
        return f"{self.name}@{self.at}" if self.at else self.name


def parse_point(text: str) -> Point:
    """A point as a report writes it: `dies-before@7`, `slow@pods`, `twice`. Raises ConfigurationError."""
    name, _, at = text.strip().partition("@")
    disturbance = DISTURBANCES.get(name)
    if disturbance is None:
        raise ConfigurationError(f"{name!r} is no disturbance; there are {', '.join(DISTURBANCES)}")
    if disturbance.scope is Scope.WRITE and not (at.isdecimal() and int(at) > 0):
        raise ConfigurationError(f"{text!r}: say at which write, counted from 1, as {name}@3")
    if disturbance.scope is Scope.KIND and not at:
        raise ConfigurationError(f"{text!r}: say for which resource, as {name}@pods")
    if disturbance.scope is Scope.RUN and at:
        raise ConfigurationError(f"{text!r}: this concerns a whole run; write {name}")
    return Point(name, at)


def parse_names(text: str) -> tuple[str, ...]:
    """Names of disturbances with commas between; `all` and `crashes` stand for several. Raises ConfigurationError."""
    found: list[str] = []
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name in ("all", "crashes"):
            found += [d.name for d in DISTURBANCES.values() if d.crash or name == "all"]
        elif name in DISTURBANCES:
            found.append(name)
        else:
            raise ConfigurationError(f"{name!r} is no disturbance; there are all, crashes, {', '.join(DISTURBANCES)}")
    return tuple(dict.fromkeys(found))


def points(names: Iterable[str], writes: int, watched: Iterable[str]) -> Iterator[Point]:
    """All points of these disturbances for a run with so many writes and these watched resources."""
    kinds = sorted(watched)
    for name in names:
        scope = DISTURBANCES[name].scope
        if scope is Scope.RUN:
            yield Point(name)
        for at in range(1, writes + 1) if scope is Scope.WRITE else kinds if scope is Scope.KIND else ():
            yield Point(name, str(at))


def is_action(request: HttpRequest) -> bool:
    """Whether a request is a write that is counted: no read, no event, no lease, no review, no dry run."""
    if request.method == "GET" or any(name == "dryRun" for name, _ in request.query):
        return False
    return collection(request.path).partition("/")[0] not in UNCOUNTED


@dataclass(eq=False)
class Disturber:
    """Counts the writes of programs under test, and disturbs them at one point; without a point it only counts.

    `connected` is to be told of every connection. `died` is called at the moment of a death, after the program was cut.
    """

    point: Point | None = None
    died: Callable[[], None] = lambda: None
    writes: list[str] = field(default_factory=list)
    reached: bool = False
    processes: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._connections: list[Interceptor] = []
        self._stack = ExitStack()

    @property
    def at(self) -> str:
        """The request at the point, empty for a disturbance of the whole run and where it was not reached."""
        number = self.point.write if self.point else 0
        return self.writes[number - 1] if 0 < number <= len(self.writes) else ""

    @property
    def watched(self) -> set[str]:
        """The resources that were watched."""
        return {collection(r.request.path) for i in self._connections for r in i.requests if r.verb == "watch"}

    def close(self) -> None:
        """Disturb no more."""
        self.point = None
        self._stack.close()

    def connected(self, interceptor: Interceptor) -> None:
        """Count, and disturb, what goes over a connection."""
        self._connections.append(interceptor)

        async def write(request: HttpRequest, send: Send) -> HttpResponse:
            return await self._write(interceptor, request, send)

        interceptor.around(is_action, write)
        name = self.point.name if self.point else ""
        if name == "slow" and self.point:
            slow = self.point.at
            self.reached = True
            lag = lambda r: LAG if collection(r.path) == slow else 0.0  # noqa: E731
            self._stack.enter_context(interceptor.slow_watches(lag))
        elif name == "slow-all":
            self.reached = True
            self._stack.enter_context(interceptor.slow_watches(_some_lag))
        elif name in ("twice", "older"):
            self.reached = True
            repeat = Repeat.SAME if name == "twice" else Repeat.OLDER
            self._stack.enter_context(interceptor.repeat_events(repeat))

    async def _write(self, interceptor: Interceptor, request: HttpRequest, send: Send) -> HttpResponse:
        self.writes.append(f"{request.method} {request.path}")
        disturbance = self._due(len(self.writes))
        if disturbance is None:
            return await send(request)
        self.reached = True
        if disturbance.dies == "before":
            self._kill(interceptor, disturbance.away)
        elif disturbance.error is not None and not disturbance.after:
            # The same object is raised again and again: what it went through before would be kept, with its clusters.
            raise disturbance.error.with_traceback(None)
        response = await send(request)
        if disturbance.dies == "after":
            self._kill(interceptor, disturbance.away)
        elif disturbance.dies == "between":
            asyncio.get_running_loop().call_later(BETWEEN, self._kill, interceptor, 0.0)
        elif disturbance.error is not None:
            raise disturbance.error.with_traceback(None)
        elif disturbance.name in ("cut", "relist"):
            self._cut(disturbance.name == "relist")
        return response

    def _due(self, number: int) -> Disturbance | None:
        """What goes wrong at a write."""
        if self.point is None:
            return None
        disturbance = self.point.disturbance
        if disturbance.scope is Scope.WRITE:
            return disturbance if number == self.point.write else None
        if disturbance.error is not None:
            return disturbance if self.writes.count(self.writes[number - 1]) % 2 else None
        return disturbance if disturbance.name in ("cut", "relist") else None

    def _kill(self, interceptor: Interceptor, away: float) -> None:
        """The process whose connection it is dies; the request under way fails where it is."""
        for process in self.processes:
            if interceptor in process.interceptors:
                process.die(away)
                self.died()

    def _cut(self, relist: bool) -> None:
        for interceptor in self._connections:
            count = interceptor.cut_watches()
            if relist and count:
                gone = Expired("too old resource version")
                interceptor.fail(matching(watch=True), gone, times=count)


def _some_lag(request: HttpRequest) -> float:
    """Seconds by which the news of a kind are late: another time for each, and the same in every run."""
    return 0.1 + zlib.crc32(collection(request.path).encode()) % 10 * 0.15
