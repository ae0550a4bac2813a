"""A transport that stands between a client and its API server: records, fails, delays, holds, answers from the past.

Specification: 70 §6.4 (interceptors). It is told nothing of HTTP beyond the request data that a Transport is given.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from lwskit.runtime.client.transport import HttpRequest, HttpResponse, StreamResponse, Transport
from lwskit.runtime.errors import ApiError, ConnectionFailed
from lwskit.testing import stale
from lwskit.testing.streams import DisturbedStream, Repeat

Matcher = Callable[[HttpRequest], bool]
Send = Callable[[HttpRequest], Awaitable[HttpResponse]]
Wrapper = Callable[[HttpRequest, Send], Awaitable[HttpResponse]]
"""Takes a request over: what it returns or raises is the answer; `send` passes a request on."""


def matching(
    method: str | None = None, path: str | None = None, *, watch: bool | None = None, user_agent: str | None = None
) -> Matcher:
    """A predicate on requests: all that is given must hold.

    `path` is a regular expression searched in the path, `user_agent` a part of that header; `watch` tells whether the
    request must be a watch or must not.
    """
    pattern = re.compile(path) if path else None

    def holds(request: HttpRequest) -> bool:
        return (
            (method is None or request.method == method)
            and (pattern is None or pattern.search(request.path) is not None)
            and (watch is None or is_watch(request) == watch)
            and (user_agent is None or user_agent in request.headers.get("user-agent", ""))
        )

    return holds


def is_watch(request: HttpRequest) -> bool:
    """Whether a request follows a collection."""
    return ("watch", "true") in request.query or ("watch", "1") in request.query


@dataclass(slots=True, eq=False)
class Recorded:
    """A request that passed, with the answer's HTTP status: 0 while there is none, -1 where it failed without one."""

    request: HttpRequest
    at: float
    status: int = 0

    @property
    def verb(self) -> str:
        """What the API calls it: get, list, watch, create, update, patch, delete or deletecollection."""
        named = _names_an_object(self.request.path)
        if self.request.method == "GET":
            return "watch" if is_watch(self.request) else "get" if named else "list"
        if self.request.method == "DELETE":
            return "delete" if named else "deletecollection"
        return {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(
            self.request.method, self.request.method.lower()
        )

    @property
    def user_agent(self) -> str:
        """The header that tells clients apart, empty where the transport adds it later."""
        return self.request.headers.get("user-agent", "")


def _names_an_object(path: str) -> bool:
    """Whether a resource path ends in an object or a subresource and not in a collection."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return len(rest) > 1


@dataclass(slots=True)
class _Rule:
    matches: Matcher
    error: Exception | None = None
    latency: float = 0.0
    left: int | None = None
    gate: asyncio.Event | None = None
    after: bool = False
    """The error comes in place of the answer: what was asked for has been done."""


@dataclass(eq=False, slots=True)
class _Watch:
    """One open stream. `broken` is set to end it; chunks are handed on only while its holder lets them."""

    request: HttpRequest
    broken: asyncio.Event = field(default_factory=asyncio.Event)


class Interceptor:
    """A Transport around another one.

    `requests` is the record of all that passed, oldest first. Rules apply in the order in which they were made. A
    request that is cancelled while a rule delays it is not sent; otherwise cancellation is the inner transport's.
    """

    def __init__(self, inner: Transport, *, user_agent: str = "") -> None:
        self._inner = inner
        self._user_agent = user_agent
        self._rules: list[_Rule] = []
        self._stale: list[tuple[Matcher, str]] = []
        self._watches: list[_Watch] = []
        self._flow = asyncio.Event()
        self._flow.set()
        self._lag: Callable[[HttpRequest], float] | None = None
        self._repeat: Repeat | None = None
        self._wrappers: list[tuple[Matcher, Wrapper]] = []
        self._severed: ConnectionFailed | None = None
        self.requests: list[Recorded] = []

    def fail(self, matches: Matcher, error: Exception, *, times: int | None = 1) -> None:
        """Answer the next `times` requests that match with an error (None: all) instead of sending them."""
        self._rules.append(_Rule(matches, error=error, left=times))

    def lose(self, matches: Matcher, error: Exception, *, times: int | None = 1) -> None:
        """Send the next `times` requests that match (None: all) and answer with an error all the same.

        So it is where a connection breaks after the server has done its part.
        """
        self._rules.append(_Rule(matches, error=error, left=times, after=True))

    def delay(self, matches: Matcher, seconds: float, *, times: int | None = None) -> None:
        """Let requests that match wait that many seconds before they are sent."""
        self._rules.append(_Rule(matches, latency=seconds, left=times))

    def around(self, matches: Matcher, wrapper: Wrapper) -> None:
        """Let `wrapper` answer requests that match, but for streams; the one that was given last comes first.

        It may pass the request on, changed or not, at any time or never. What it raises is what the client gets.
        """
        self._wrappers.insert(0, (matches, wrapper))

    def sever(self, why: str = "the connection is severed") -> None:
        """Let nothing through from now on: watches break, every request fails, and so do those that wait for an answer.

        As when the process at this end has died. There is no way back.
        """
        self._severed = ConnectionFailed(why)
        self.cut_watches()

    def clear(self) -> None:
        """Forget all errors, delays and wrappers; what is held stays held, and what is severed severed."""
        self._rules = [r for r in self._rules if r.gate is not None]
        self._wrappers.clear()

    @contextmanager
    def hold(self, matches: Matcher) -> Iterator[None]:
        """Inside the block requests that match wait; they are sent when it ends."""
        rule = _Rule(matches, gate=asyncio.Event())
        self._rules.insert(0, rule)
        try:
            yield
        finally:
            self._rules.remove(rule)
            assert rule.gate is not None
            rule.gate.set()

    @contextmanager
    def hold_watches(self) -> Iterator[None]:
        """Inside the block open watches deliver nothing; afterwards what has come in meanwhile, in its order."""
        self._flow.clear()
        try:
            yield
        finally:
            self._flow.set()

    @contextmanager
    def slow_watches(self, lag: Callable[[HttpRequest], float]) -> Iterator[None]:
        """Inside the block each piece of news of a watch comes late: `lag` tells, for its request, by how many seconds.

        So one watch is behind another, as on a real network.
        """
        before, self._lag = self._lag, lag
        try:
            yield
        finally:
            self._lag = before

    @contextmanager
    def repeat_events(self, repeat: Repeat) -> Iterator[None]:
        """Inside the block each event of a watch comes again: itself, or with Repeat.OLDER the one before it, too.

        So news may come twice, and old news after newer ones, as behind a proxy that has connected anew.
        """
        before, self._repeat = self._repeat, repeat
        try:
            yield
        finally:
            self._repeat = before

    @asynccontextmanager
    async def stale_reads(self, matches: Matcher | None = None) -> AsyncIterator[None]:
        """Inside the block reads that match are answered with what was there when it began.

        So a read may come from a server that is behind. Writes and watches are not touched, nor are further pages of a
        list, discovery, and subresources other than the status. Raises what the request for the present
        resourceVersion raises, and KeyError when that is refused; cancelling it there leaves nothing changed.
        """
        version = stale.version_in(await self._inner.send(stale.LATEST))
        rule = (matches or matching("GET"), version)
        self._stale.append(rule)
        try:
            yield
        finally:
            self._stale.remove(rule)

    def cut_watches(self, matches: Matcher | None = None) -> int:
        """Break open watches, as a lost connection does; returns how many. Clients may open new ones at once."""
        cut = [w for w in self._watches if not w.broken.is_set() and (matches is None or matches(w.request))]
        for watch in cut:
            watch.broken.set()
        return len(cut)

    @contextmanager
    def watches_down(self) -> Iterator[None]:
        """Break open watches, and let no list and no watch through until the block ends."""
        with self.hold(lambda r: r.method == "GET" and not _names_an_object(r.path)):
            self.cut_watches()
            yield

    @property
    def open_watches(self) -> int:
        """How many watches are open."""
        return sum(not w.broken.is_set() for w in self._watches)

    def count(self, matches: Matcher | None = None, *, verb: str | None = None) -> int:
        """How many of the recorded requests match."""
        return len(self.select(matches, verb=verb))

    def select(self, matches: Matcher | None = None, *, verb: str | None = None) -> list[Recorded]:
        """The recorded requests that match, oldest first."""
        return [
            r for r in self.requests if (matches is None or matches(r.request)) and (verb is None or r.verb == verb)
        ]

    def summary(self) -> Counter[str]:
        """How many requests there were of each verb and collection, such as `create statefulsets`."""
        return Counter(f"{r.verb} {collection(r.request.path)}" for r in self.requests)

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        """Send through the rules. Raises what a rule says or the inner transport raises."""
        recorded = self._record(request)
        request = recorded.request
        try:
            lost = await self._obey(request)
            response = await self._wrapped(request, timeout, 0)
            if lost is not None:
                raise lost
            self._check_severed()
        except BaseException as error:
            recorded.status = error.code if isinstance(error, ApiError) else -1
            raise
        recorded.status = response.status
        return response

    @asynccontextmanager
    async def stream(self, request: HttpRequest, *, idle_timeout: float | None = None) -> AsyncIterator[StreamResponse]:
        """Open a stream through the rules; it breaks with ConnectionFailed when it is cut."""
        recorded = self._record(request)
        request = recorded.request
        try:
            if (lost := await self._obey(request)) is not None:
                raise lost
        except BaseException as error:
            recorded.status = error.code if isinstance(error, ApiError) else -1
            raise
        async with self._inner.stream(request, idle_timeout=idle_timeout) as response:
            recorded.status = response.status
            watch = _Watch(request)
            self._watches.append(watch)
            try:
                lag = lambda: self._lag(request) if self._lag else 0.0  # noqa: E731
                yield DisturbedStream(response, watch.broken, self._flow, lag, lambda: self._repeat)
            finally:
                self._watches.remove(watch)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()

    def _record(self, request: HttpRequest) -> Recorded:
        if self._user_agent and "user-agent" not in request.headers:
            headers = {**request.headers, "user-agent": self._user_agent}
            request = HttpRequest(request.method, request.path, request.query, headers, request.body)
        recorded = Recorded(request, asyncio.get_running_loop().time())
        self.requests.append(recorded)
        return recorded

    def _past(self, request: HttpRequest) -> stale.PastRead | None:
        """What to send where a read is to be stale, by the block that was entered last."""
        version = next((version for matches, version in reversed(self._stale) if matches(request)), None)
        return stale.as_of(request, version) if version is not None else None

    async def _wrapped(self, request: HttpRequest, timeout: float | None, first: int) -> HttpResponse:
        """Send through the wrappers from number `first` on, as far as they match."""
        for index, (matches, wrapper) in enumerate(self._wrappers[first:], first):
            if matches(request):
                return await wrapper(request, lambda passed, after=index + 1: self._wrapped(passed, timeout, after))
        self._check_severed()
        past = self._past(request)
        response = await self._inner.send(past.request if past else request, timeout=timeout)
        return past.answer(response) if past is not None else response

    def _check_severed(self) -> None:
        if self._severed is not None:
            raise self._severed

    async def _obey(self, request: HttpRequest) -> Exception | None:
        """Apply the rules to a request; returns what is to be raised when its answer is there."""
        self._check_severed()
        lost: Exception | None = None
        for rule in list(self._rules):
            if rule.left == 0 or not rule.matches(request):
                continue
            if rule.left is not None:
                rule.left -= 1
            if rule.gate is not None:
                await rule.gate.wait()
            if rule.latency:
                await asyncio.sleep(rule.latency)
            if rule.error is not None and not rule.after:
                raise rule.error
            lost = lost or rule.error
        return lost


def collection(path: str) -> str:
    """The resource, and where there is one the subresource, that a path is about: `pods`, `pods/status`."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return "/".join([*rest[:1], *rest[2:]])
