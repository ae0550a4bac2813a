"""List and watch as a state machine without I/O: it says what to request next and is told what came of it. Pure.

Specification: 70 §2.2–2.7. The driver is `lwskit.runtime.cache.watcher`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import orjson

from lwskit.runtime.cache.backoff import Backoff
from lwskit.runtime.cache.lines import Line
from lwskit.runtime.cache.release import release
from lwskit.runtime.cache.soundness import is_sound, list_fault, metadata_fault, object_fault, without_nulls
from lwskit.runtime.errors import (
    ApiError,
    ConnectionFailed,
    Expired,
    InternalError,
    LwskitError,
    NotFound,
    TooManyRequests,
    error_from_status,
    is_too_large_version,
)
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj, key_of, version_of

PAGE_SIZE = 500
IDLE_MARGIN = 5.0
"""Seconds of silence beyond a watch's own `timeoutSeconds` after which its connection counts as dead."""
INITIAL_SILENCE = 30.0
"""Seconds without a byte after which a server is taken not to know streaming lists."""
SHORT_WATCH = 1.0
FEW_SHORT = 3
"""So many watches in a row may end within SHORT_WATCH seconds, all with events, before the next one has to wait."""
SETTLE = 1.0
"""Seconds that a watch opened again after a failure is given to bring what was missed."""
MISSING_KIND_DELAY = 10.0
"""The longest wait, in seconds, between attempts to list a kind that the server does not serve (yet)."""
LONGEST_WAIT = 300.0
"""Seconds that a server may ask for before the next attempt; who asks for more is asked again after these."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_CHANGES = ("MODIFIED", "ADDED", "DELETED")
_NOTHING: Obj = {}


@dataclass(frozen=True, slots=True)
class Replace:
    """The whole content as of `version`."""

    objects: list[Obj]
    version: str


@dataclass(slots=True)
class Applied:
    """An object came or changed. Never changed itself; frozen, it would cost three times as much to make."""

    obj: Obj


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object went; `obj` is its last state."""

    obj: Obj


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to `version` has been told."""

    version: str


WatchEvent: TypeAlias = Replace | Applied | Deleted | Bookmark


@dataclass(frozen=True, slots=True)
class ListPage:
    """Request a page of the collection."""

    query: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """Request a stream; `idle` is the silence in seconds that it may keep."""

    query: Mapping[str, Any]
    idle: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for that many seconds, because of `error`."""

    seconds: float
    error: LwskitError | None = None
    failed: bool = False
    """Whether a round has failed and not only a request in it."""


Step: TypeAlias = ListPage | OpenWatch | Wait


class _Phase(Enum):
    STREAM = "initial events of a streaming list"
    LIST = "plain list"
    WATCH = "watch"


@dataclass(slots=True)
class _Pages:
    """A plain list under way."""

    version: str
    limit: int | None
    token: str = ""
    items: list[Obj] = field(default_factory=list)
    whole: bool = False


class ListWatch:
    """Follows one collection. Call `next` for what to do, then the method that fits what came of it.

    `last_version` is how far the collection is known; `on_health` is called whenever `healthy` changes.
    `prepare` is applied to every object before it is handed on, `prepare_listed` instead to those of lists. With
    `bookmarks` off only streaming lists ask for them, which cannot do without. `idle` is the silence that a watch may
    keep, in seconds; without it a little more than the time that the server was given. All `now` are monotonic seconds.
    """

    def __init__(
        self,
        kind: Kind,
        rng: random.Random,
        *,
        streaming: bool = True,
        bookmarks: bool = True,
        idle: float | None = None,
        prepare: Callable[[Obj], Obj] = lambda obj: obj,
        prepare_listed: Callable[[Obj], Obj] | None = None,
        on_health: Callable[[bool], None] = lambda healthy: None,
    ) -> None:
        self.kind = kind
        self._kind_name, self._api_version = kind.kind, kind.api_version
        self.last_version = ""
        self.settling = False
        """True when the driver is to call `settled` after SETTLE seconds of the stream that it opened."""
        self._healthy = False
        self._on_health = on_health
        self.leaving = False
        """True when the driver is to close the stream it reads."""
        self.skipped = ""
        """What the last line was, where it was no object of the kind and has been passed over."""
        self.last_error: LwskitError | None = None
        """Why the last round or request failed; None once things work again."""
        self._rng = rng
        self._streaming = streaming
        self._bookmarks = bookmarks
        self._idle = idle
        self._prepare = prepare
        self._prepare_listed = prepare_listed or prepare
        self._backoff = Backoff(rng)
        self._phase = _Phase.STREAM if streaming else _Phase.LIST
        self._wait: Wait | None = None
        self._unavailable = False
        self._paginated = False
        self._pages: _Pages | None = None
        self._collected: dict[Key, Obj] = {}
        self._spent: dict[Key, Obj] = {}
        self._synthetic = False
        self._opened = 0.0
        self._count = 0
        self._short = 0

    # What to do.

    def next(self, now: float) -> Step:
        """The next step to take."""
        if self._wait is not None:
            wait, self._wait = self._wait, None
            return wait
        if self._phase is _Phase.LIST:
            return ListPage(self._list_query())
        self.leaving = False
        self._count = 0
        self._opened = now
        seconds = 300 + int(self._rng.random() * 300)
        streaming = self._phase is _Phase.STREAM
        query: dict[str, Any] = {"allowWatchBookmarks": self._bookmarks or streaming, "timeoutSeconds": seconds}
        if streaming:
            self._collected = {}
            version = "" if self._unavailable else self.last_version
            query |= {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
            idle = INITIAL_SILENCE if self._idle is None else min(INITIAL_SILENCE, self._idle)
        else:
            version = self.last_version
            self._synthetic = version in ("", "0")
            idle = self.idle_of(seconds)
        if version:
            query["resourceVersion"] = version
        return OpenWatch(query, idle)

    @property
    def healthy(self) -> bool:
        """False while the collection is known to be out of date: no list yet, or a watch that broke."""
        return self._healthy

    def idle_of(self, timeout_seconds: int) -> float:
        """How long a watch with this `timeoutSeconds` may be silent, in seconds."""
        return timeout_seconds + IDLE_MARGIN if self._idle is None else self._idle

    @property
    def collecting(self) -> bool:
        """Whether the stream has not yet brought its whole initial set."""
        return self._phase is _Phase.STREAM

    def _list_query(self) -> dict[str, Any]:
        pages = self._pages
        if pages is None:
            version = "" if self._unavailable else self.last_version or "0"
            # A list at an exact version is served whole from the server's cache; pages would go past it to the disk.
            paged = self._paginated or version in ("", "0")
            pages = self._pages = _Pages(version, PAGE_SIZE if paged else None)
        query: dict[str, Any] = {}
        if pages.limit is not None:
            query["limit"] = pages.limit
        if pages.token:
            query["continue"] = pages.token
        elif pages.version:
            query["resourceVersion"] = pages.version
        return query

    # What came of a list.

    def listed(self, body: Obj, now: float) -> Replace | None:
        """A page came; returns the whole content when it was the last. A body that is no list fails it.

        So does an item that cannot be read: without it the list would say that the object is gone.
        """
        fault = list_fault(body, self.kind)
        if fault:
            self.list_failed(InternalError(f"the answer to a list of {self.kind.plural} is none: {fault}"), now)
            return None
        pages = self._pages
        assert pages is not None, "listed() follows a ListPage step"
        meta = body["metadata"]
        for item in body.get("items") or ():
            if not is_sound(item) and (fault := _fault_of_own(item)):
                self.list_failed(InternalError(f"an item in the list of {self.kind.plural} has {fault}"), now)
                return None
            # Items of a list carry no type; those of a watch do.
            item.setdefault("apiVersion", self.kind.api_version)
            item.setdefault("kind", self.kind.kind)
            pages.items.append(self._prepare_listed(item))
        pages.token = meta.get("continue") or ""
        if pages.token:
            if pages.version == "0":
                self._paginated = True
            return None
        self._pages = None
        return self._replace(pages.items, meta["resourceVersion"])

    def list_failed(self, error: LwskitError, now: float) -> None:
        """A page could not be had."""
        pages, self._pages = self._pages, None
        if pages is not None and pages.token and isinstance(error, Expired) and not pages.whole:
            # The rest of the pages is lost; only the whole at once is still consistent.
            self._pages = _Pages(pages.version, None, whole=True)
            return
        if _is_outdated(error) and not self._unavailable:
            self._unavailable = True
            return
        self._end_round(error, now)

    # What came of a stream.

    def opened(self, now: float) -> None:
        """The stream is open: the server accepted the request."""
        self._opened = now
        # What was missed comes first, and nothing says where it ends.
        self.settling = self._phase is _Phase.WATCH and not self._healthy

    def settled(self) -> None:
        """The stream that was opened has lasted SETTLE seconds."""
        if self.settling and not self.leaving:
            self.settling = False
            self._works()

    def refused(self, error: LwskitError, now: float) -> None:
        """The stream could not be opened."""
        self._stream_failed(error, now, opening=True)

    def received(self, line: Line, now: float) -> WatchEvent | None:
        """A line of the stream came. Returns what it means for the content, if anything; see `leaving` afterwards."""
        try:
            event = orjson.loads(line)
            kind, obj = event["type"], event["object"]
        except (ValueError, TypeError, KeyError):
            self._stream_failed(InternalError(f"the watch of {self.kind.plural} sent {bytes(line[:80])!r}"), now)
            return None
        if kind == "ERROR":
            status = obj if isinstance(obj, dict) else {}
            self._stream_failed(error_from_status(status), now)
            return None
        # Nearly all events pass the short question; the long one knows all that may come.
        try:
            meta = obj["metadata"]
            version = meta["resourceVersion"]
            plain = (
                obj["kind"] == self._kind_name
                and obj["apiVersion"] == self._api_version
                and meta["name"]
                and type(meta["name"]) is type(meta["uid"]) is type(version) is type(meta.get("namespace", "")) is str
                and type(meta.get("labels", _NOTHING)) is type(meta.get("annotations", _NOTHING)) is dict
            )
        except (KeyError, TypeError):
            plain, version = False, ""
        if not (plain and kind in _CHANGES):
            if not self._expected(kind, obj, now):
                return None
            version = version_of(obj)
        self._count += 1
        if self._phase is _Phase.STREAM:
            return self._collect(kind, obj)
        if kind != "ADDED":
            self._synthetic = False
        if version and not self._synthetic:
            self.last_version = version
        if kind == "BOOKMARK":
            return Bookmark(version)
        obj = self._prepare(obj)
        return Deleted(obj) if kind == "DELETED" else Applied(obj)

    def broken(self, error: LwskitError, now: float) -> None:
        """What the stream sends cannot be cut into lines."""
        self._stream_failed(error, now)

    def ended(self, error: ConnectionFailed | None, now: float) -> None:
        """The stream ended: by itself, or because the connection broke or fell silent."""
        if self.leaving:
            return
        self.leaving = True
        short = now - self._opened < SHORT_WATCH
        self._short = self._short + 1 if short else 0
        if short and self._count == 0:
            text = f"the watch of {self.kind.plural} ended within {SHORT_WATCH:g} s without an event"
            failure = error or InternalError(text)
            if self._phase is _Phase.STREAM:
                self._plain_list(failure)
            else:
                self._end_round(failure, now)
            return
        if error is not None:
            self._turn(False)
            self.last_error = error
        if self._phase is _Phase.STREAM:
            if error is not None and self._count == 0:
                # Silence instead of initial events: this server ignored the request for them.
                self._plain_list(error)
            elif short:
                self._wait = Wait(self._backoff.step(now), error)
        elif self._short > FEW_SHORT:
            # Whatever ends them would otherwise be asked as fast as it answers.
            text = f"the last {self._short} watches of {self.kind.plural} ended within {SHORT_WATCH:g} s each"
            self._turn(False)
            self._pause(error or InternalError(text), now)

    # Inside.

    def failed(self, error: LwskitError, now: float) -> None:
        """What came could not be worked up, for a reason that nobody thought of."""
        self.leaving = True
        self._pages = None
        # What a streaming list brings to grief may do well as a plain one.
        plain = self._phase is _Phase.STREAM
        self._end_round(error, now)
        if plain:
            self._phase = _Phase.LIST

    def _expected(self, kind: Any, obj: Any, now: float) -> bool:
        """Whether a line is an event of the kind after all; what is none is passed over."""
        is_change = kind in _CHANGES
        ours = isinstance(obj, dict) and obj.get("kind") == self._kind_name
        ours = ours and obj.get("apiVersion") == self._api_version and (is_change or kind == "BOOKMARK")
        fault = ""
        if ours:
            without_nulls(obj)
            fault = object_fault(obj) if is_change else metadata_fault(obj)
            if not fault and not is_change and not version_of(obj):
                fault = "no resourceVersion"
            if not fault:
                return True
        if ours and self._phase is _Phase.STREAM:
            # Without it the list would say that the object is gone.
            self._stream_failed(InternalError(f"a {kind} in the list of {self.kind.plural} has {fault}"), now)
            return False
        what = obj.get("kind", "an object without kind") if isinstance(obj, dict) else "no object"
        self.skipped = f"{kind} of {what}" + (f" with {fault}" if fault else "")
        return False

    def _collect(self, kind: str, obj: Obj) -> Replace | None:
        if kind == "BOOKMARK":
            if (obj["metadata"].get("annotations") or {}).get(INITIAL_EVENTS_END) != "true":
                return None
            objects = [*self._collected.values()]
            self._spent, self._collected = self._collected, {}
            return self._replace(objects, version_of(obj))
        if kind == "DELETED":
            self._collected.pop(key_of(obj), None)
        else:
            self._collected[key_of(obj)] = self._prepare_listed(obj)
        return None

    def replaced(self) -> None:
        """What the list brought has been taken in."""
        self._works()

    def release(self) -> Iterator[None]:
        """Let go of what was kept to put the list together; others may run after each step."""
        return release(self._spent)

    def _replace(self, objects: list[Obj], version: str) -> Replace:
        self._phase = _Phase.WATCH
        self._synthetic = False
        self._unavailable = False
        self.last_version = version
        return Replace(objects, version)

    def _works(self) -> None:
        self.last_error = None
        self._turn(True)

    def _turn(self, healthy: bool) -> None:
        if healthy != self._healthy:
            self._healthy = healthy
            self._on_health(healthy)

    def _stream_failed(self, error: LwskitError, now: float, *, opening: bool = False) -> None:
        self.leaving = True
        self._turn(False)
        if isinstance(error, TooManyRequests) or (opening and isinstance(error, ConnectionFailed)):
            self._pause(error, now)
        elif self._phase is _Phase.STREAM:
            if _is_outdated(error) and not self._unavailable:
                self._unavailable = True
            else:
                self._plain_list(error)
        else:
            # A version that is too old is how long silence ends, not a failure.
            self._end_round(error, now, failed=opening or not isinstance(error, Expired))

    def _plain_list(self, error: LwskitError) -> None:
        self.last_error = error
        self._phase = _Phase.LIST

    def _end_round(self, error: LwskitError, now: float, *, failed: bool = True) -> None:
        self._turn(False)
        self._phase = _Phase.STREAM if self._streaming else _Phase.LIST
        self._pause(error, now, failed=failed)

    def _pause(self, error: LwskitError, now: float, *, failed: bool = False) -> None:
        seconds = self._backoff.step(now)
        if isinstance(error, NotFound):
            seconds = min(seconds, MISSING_KIND_DELAY)
        if isinstance(error, ApiError) and error.retry_after:
            seconds = max(seconds, min(error.retry_after, LONGEST_WAIT))
        self.last_error = error
        self._wait = Wait(seconds, error, failed)


def _fault_of_own(obj: Any) -> str:
    """What keeps an object just decoded from being stored; what is null in its metadata is taken out."""
    without_nulls(obj)
    return object_fault(obj)


def _is_outdated(error: LwskitError) -> bool:
    """Whether the version asked for is gone or not reached yet."""
    return isinstance(error, Expired) or (isinstance(error, ApiError) and is_too_large_version(error))
