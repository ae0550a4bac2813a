"""Records events (events.k8s.io/v1) without ever making a reconciler wait (specification: 70 §11)."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Hashable
from datetime import UTC, datetime, timedelta

import structlog
import tenacity

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.clock import Clock, random_uuid, real_random, rfc3339, rfc3339_micro
from lwskit.runtime.errors import AlreadyExists, ApiError, ConnectionFailed, NotFound
from lwskit.runtime.kinds import CORE_EVENT, EVENT, Kind
from lwskit.runtime.objects import Obj, ObjectRef
from lwskit.runtime.plan import AnswerOf, Event
from lwskit.runtime.runnable import Group
from lwskit.runtime.tasks import TaskOwner

log = structlog.get_logger(__name__)

SENDERS = 8
BUFFER = 1000
"""Events that wait to be sent; more are dropped."""
REMEMBERED = 5000
"""Different events that are remembered to count repetitions; the oldest are forgotten first."""
IDLE = 6 * 60.0
"""Seconds without a repetition after which an event's count is sent and the event forgotten."""
REFRESH = 30 * 60.0
"""Seconds after which the counts of events that still repeat are sent."""
TRIES = 12
RETRY = 10.0
"""Seconds between tries where the server cannot be reached, give or take a quarter."""
NOTE_LIMIT = 1024
"""Bytes of UTF-8 that servers take as a note."""
WORD_LIMIT = 128
"""Bytes that they take as a reason or an action."""

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SHOWN = 300
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Entry:
    """One event and its repetitions. Queued at most once at a time, so that its requests keep their order."""

    __slots__ = ("body", "count", "created", "due", "key", "kind", "last", "queued", "seen", "sent", "unsure")

    def __init__(self, key: Hashable, kind: Kind, body: Obj, now: datetime, seen: float) -> None:
        self.key = key
        self.kind = kind
        self.body = body
        self.count = 1
        self.last = now
        self.seen = seen
        self.created = False
        self.due = False
        self.sent = 1
        self.queued = False
        self.unsure = False
        """Whether an earlier try to create it may have got through."""

    def repetition(self) -> Obj:
        """The fields that say how often it came."""
        if self.kind == CORE_EVENT:
            return {"count": self.count, "lastTimestamp": rfc3339(self.last)}
        return {"series": {"count": self.count, "lastObservedTime": rfc3339_micro(self.last)}}


class Recorder:
    """Events of one component: `component` is their reportingController, `instance` their reportingInstance.

    Repetitions on an unchanged object are counted and not sent one by one. Nothing is sent unless `run` runs.
    """

    group = Group.EVENTS

    def __init__(
        self, client: Client, clock: Clock, component: str, instance: str, rng: random.Random | None = None
    ) -> None:
        self.name = component
        self.dropped = 0
        """Events that were lost: nobody can take them, the buffer was full, or the server did not take them."""
        self._instance = instance
        self._client = client
        self._clock = clock
        self._rng = rng or real_random()
        self._entries: dict[Hashable, _Entry] = {}
        self._queue: asyncio.Queue[_Entry] = asyncio.Queue(BUFFER)
        self._stopped = False
        self._last_name = 0

    def named(self, component: str, instance: str) -> NamedRecorder:
        """A recorder that reports as another component and sends through this one."""
        return NamedRecorder(self, component, instance)

    def event(self, event: Event, related: ObjectRef | None = None, *, at: datetime | None = None) -> None:
        """Record an event. Never waits and never raises; what the API cannot take is logged and dropped.

        `related` stands in where the event's own is a reference to an answer. `at` is when it happened, by default now.
        """
        self.record(self.name, self._instance, event, related, at=at)

    def core(self, component: str) -> CoreRecorder:
        """A recorder of core/v1 events, as elections are told by, that sends through this one."""
        return CoreRecorder(self, component)

    def record(
        self,
        component: str,
        instance: str,
        event: Event,
        related: ObjectRef | None = None,
        *,
        kind: Kind = EVENT,
        at: datetime | None = None,
    ) -> None:
        """Record an event as any component, of either kind of events. Never waits and never raises."""
        if self._stopped:
            return
        try:
            problem = _problem(event)
            if not problem:
                self._record(component, instance, event, related, kind, at or self._clock.now())
        except Exception as error:
            problem = repr(error)
        if problem:
            self.dropped += 1
            # Escaped, as what is wrong may be that it cannot be printed.
            log.error("an event cannot be recorded", problem=problem, got=ascii(event)[:_SHOWN])

    def _record(
        self, component: str, instance: str, event: Event, related: ObjectRef | None, kind: Kind, at: datetime
    ) -> None:
        other = related if isinstance(event.related, AnswerOf) or event.related is None else event.related
        key = (kind, event.type, event.action, event.reason, component, instance, event.regarding, other)
        if kind == CORE_EVENT:
            # Only here different texts are different events.
            key = (*key, event.note)
        # An empty dictionary would not notice what has no hash before the event is queued.
        hash(key)
        entry = self._entries.pop(key, None)
        if entry is None:
            make = self._core_body if kind == CORE_EVENT else self._body
            entry = _Entry(key, kind, make(component, instance, event, other, at), at, self._clock.monotonic())
            self._push(entry)
            while len(self._entries) >= REMEMBERED:
                del self._entries[next(iter(self._entries))]
        else:
            entry.count += 1
            entry.last = max(entry.last, at)
            entry.seen = self._clock.monotonic()
            if entry.count == 2:
                self._flush(entry)
        # Last in the dictionary is last repeated, so that the front can be forgotten.
        self._entries[key] = entry

    async def run(self) -> None:
        """Send until cancelled; then what is waiting is dropped and later events are ignored."""
        try:
            async with TaskOwner(f"events of {self.name}") as tasks:
                for number in range(SENDERS):
                    tasks.start(self._send_all(), f"sender {number}")
                tasks.start(self._tick(), "refresh")
        finally:
            self._stopped = True

    def _body(self, component: str, instance: str, event: Event, related: ObjectRef | None, now: datetime) -> Obj:
        regarding = event.regarding
        body: Obj = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"name": self._event_name(regarding.name, now), "namespace": regarding.namespace or "default"},
            "eventTime": rfc3339_micro(now),
            "type": event.type,
            "reason": _cut(event.reason, WORD_LIMIT),
            "action": _cut(event.action, WORD_LIMIT),
            "note": _cut(event.note, NOTE_LIMIT, "..."),
            "reportingController": component,
            "reportingInstance": instance,
            "regarding": regarding.as_dict(),
        }
        if related is not None:
            body["related"] = related.as_dict()
        return body

    def _core_body(self, component: str, instance: str, event: Event, related: ObjectRef | None, now: datetime) -> Obj:
        regarding = event.regarding
        return {
            "apiVersion": CORE_EVENT.api_version,
            "kind": CORE_EVENT.kind,
            "metadata": {"name": self._event_name(regarding.name, now), "namespace": regarding.namespace or "default"},
            "involvedObject": regarding.as_dict(),
            "type": event.type,
            "reason": _cut(event.reason, WORD_LIMIT),
            "message": _cut(event.note, NOTE_LIMIT, "..."),
            "firstTimestamp": rfc3339(now),
            "lastTimestamp": rfc3339(now),
            "count": 1,
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": instance,
        }

    def _event_name(self, name: str, now: datetime) -> str:
        nanoseconds = (now - _EPOCH) // timedelta(microseconds=1) * 1000
        # Several in the same microsecond, as on a virtual clock, must not share a name.
        self._last_name = max(nanoseconds, self._last_name + 1)
        found = f"{name}.{self._last_name:x}"
        return found if len(found) <= 253 and _SUBDOMAIN.fullmatch(found) else random_uuid(self._rng)

    def _flush(self, entry: _Entry) -> None:
        entry.due = True
        self._push(entry)

    def _push(self, entry: _Entry) -> None:
        if entry.queued:
            return
        try:
            self._queue.put_nowait(entry)
        except asyncio.QueueFull:
            self._drop(entry, "the buffer is full")
        else:
            entry.queued = True

    async def _send_all(self) -> None:
        while True:
            entry = await self._queue.get()
            try:
                if not entry.created:
                    await self._deliver(entry)
                while entry.due:
                    await self._deliver(entry)
            finally:
                entry.queued = False

    async def _deliver(self, entry: _Entry) -> None:
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(ConnectionFailed),
            stop=tenacity.stop_after_attempt(TRIES),
            wait=lambda state: RETRY * self._rng.uniform(0.75, 1.25),
            sleep=self._clock.sleep,
            reraise=True,
        )
        try:
            await retrying(self._patch if entry.created else self._create, entry)
        except (ApiError, ConnectionFailed) as error:
            self._drop(entry, str(error))
        except Exception as error:
            # Whatever one event is made of must not end the sending of others.
            self._drop(entry, repr(error))

    async def _create(self, entry: _Entry, *, series: bool = False) -> None:
        body = {**entry.body, **entry.repetition()} if series else entry.body
        try:
            await self._client.create(entry.kind, body)
        except ConnectionFailed:
            entry.unsure = True
            raise
        except AlreadyExists:
            if not entry.unsure:
                # Another recorder wrote about an object of this name at the same moment.
                self._rename(entry)
                await self._create(entry, series=series)
            # Otherwise an earlier try got through, although its answer was lost.
            entry.created = True
        except ApiError:
            entry.created = True
            raise
        else:
            entry.created = True

    def _rename(self, entry: _Entry) -> None:
        name = self._event_name(_subject(entry.body)["name"], self._clock.now())
        entry.body = {**entry.body, "metadata": {**entry.body["metadata"], "name": name}}

    async def _patch(self, entry: _Entry) -> None:
        entry.due = False
        count = entry.count
        meta = entry.body["metadata"]
        patch = entry.repetition()
        try:
            await self._client.patch(entry.kind, meta["name"], patch, meta["namespace"], patch_type=PatchType.STRATEGIC)
        except NotFound:
            await self._create(entry, series=True)
        entry.sent = count

    def _drop(self, entry: _Entry, why: str) -> None:
        entry.created = True
        entry.due = False
        self.dropped += 1
        log.warning("event dropped", reason=entry.body["reason"], regarding=_subject(entry.body).get("name"), why=why)

    async def _tick(self) -> None:
        ticks = 0
        while True:
            await self._clock.sleep(IDLE)
            ticks += 1
            refresh = ticks % round(REFRESH / IDLE) == 0
            now = self._clock.monotonic()
            for entry in [*self._entries.values()]:
                idle = now - entry.seen >= IDLE
                if (idle or refresh) and entry.count > entry.sent:
                    self._flush(entry)
                if idle:
                    del self._entries[entry.key]


class NamedRecorder:
    """Records as one component through a shared Recorder."""

    def __init__(self, recorder: Recorder, component: str, instance: str) -> None:
        self._recorder = recorder
        self._component = component
        self._instance = instance

    def event(self, event: Event, related: ObjectRef | None = None, *, at: datetime | None = None) -> None:
        """Record an event. Never waits and never raises."""
        self._recorder.record(self._component, self._instance, event, related, at=at)


class CoreRecorder:
    """Records core/v1 events as one component through a shared Recorder (specification: 70 §7)."""

    def __init__(self, recorder: Recorder, component: str) -> None:
        self._recorder = recorder
        self._component = component

    def event(self, event: Event, related: ObjectRef | None = None, *, at: datetime | None = None) -> None:
        """Record an event. Never waits and never raises."""
        self._recorder.record(self._component, "", event, related, kind=CORE_EVENT, at=at)


def _subject(body: Obj) -> Obj:
    """The reference to what an event of either kind is about."""
    return body.get("regarding") or body["involvedObject"]


def _problem(event: object) -> str:
    """Why nobody can take an event, empty if they can."""
    if not isinstance(event, Event):
        return f"it is {type(event).__name__}, not an Event"
    words = {"reason": event.reason, "action": event.action, "type": event.type, "note": event.note}
    for name, word in words.items():
        if not isinstance(word, str):
            return f"its {name} is {type(word).__name__}, not str"
        if not word.isascii() and any("\ud800" <= letter <= "\udfff" for letter in word):
            return f"its {name} has half a character (a lone surrogate), which no text in UTF-8 can have"
    if event.type not in ("Normal", "Warning") or not (event.reason and event.action):
        return "it needs a reason, an action and a type that is Normal or Warning"
    if not isinstance(event.regarding, ObjectRef):
        return f"what it regards is {type(event.regarding).__name__}, not an ObjectRef"
    return ""


def _cut(text: str, limit: int, end: str = "") -> str:
    """As much of a text as has `limit` bytes, at a character's boundary; what was cut ends with `end`."""
    encoded = text.encode()
    if len(encoded) <= limit:
        return text
    return encoded[: limit - len(end)].decode(errors="ignore") + end
