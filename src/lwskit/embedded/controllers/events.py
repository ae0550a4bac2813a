"""Events of the core group, as the controllers of a cluster record them: repeated ones are counted, not repeated."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock, rfc3339
from lwskit.runtime.errors import AlreadyExists, LwskitError, NotFound
from lwskit.runtime.kinds import CORE_EVENT
from lwskit.runtime.objects import Obj, ObjectRef
from lwskit.runtime.plan import Event

REMEMBERED = 4096
"""How many distinct events are remembered for counting."""

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Recorded:
    name: str
    namespace: str
    count: int


class CoreRecorder:
    """Writes events of the core group, with `source.component`, one after the other in the background.

    `host` is the node of a kubelet. An event that equals an earlier one in object, reason and text raises its count.
    Source: Kubernetes API reference, Event v1 core.
    """

    def __init__(self, client: Client, clock: Clock, component: str, host: str = "") -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._host = host
        self._pending: asyncio.Queue[tuple[Event, str]] = asyncio.Queue()
        self._known: dict[Event, _Recorded] = {}
        self._last = 0

    def event(self, event: Event, related: ObjectRef | None = None, *, at: datetime | None = None) -> None:
        """Record an event soon; never blocks. `related` is not part of core events, `at` is by default now."""
        self._pending.put_nowait((event, rfc3339(at or self._clock.now())))

    async def run(self) -> None:
        """Write events until cancelled; those still waiting then are lost, as with every event."""
        while True:
            event, moment = await self._pending.get()
            try:
                await self._write(event, moment)
            except LwskitError as e:
                _log.warning("an event was not recorded", reason=event.reason, regarding=event.regarding, error=str(e))

    async def _write(self, event: Event, moment: str) -> None:
        # The same happening to another version of the object is still the same event.
        same = replace(event, regarding=event.regarding._replace(resource_version=""))
        known = self._known.get(same)
        if known is not None:
            known.count += 1
            body = {"count": known.count, "lastTimestamp": moment}
            try:
                await self._client.patch(CORE_EVENT, known.name, body, known.namespace)
                return
            except NotFound:
                del self._known[same]
        obj = await self._create(event, moment)
        if len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[same] = _Recorded(obj["metadata"]["name"], obj["metadata"]["namespace"], 1)

    async def _create(self, event: Event, moment: str) -> Obj:
        while True:
            obj = self._new(event, moment)
            try:
                return await self._client.create(CORE_EVENT, obj)
            except AlreadyExists:
                # Another recorder wrote about an object of this name at the same moment.
                continue

    def _new(self, event: Event, moment: str) -> Obj:
        regarding = event.regarding
        source = {"component": self._component} | ({"host": self._host} if self._host else {})
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{regarding.name}.{self._stamp():x}",
                "namespace": regarding.namespace or "default",
            },
            "involvedObject": regarding.as_dict(),
            "reason": event.reason,
            "message": event.note,
            "source": source,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "type": event.type,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }

    def _stamp(self) -> int:
        """Nanoseconds of the present, made to grow, for a name that is unique."""
        self._last = max(self._last + 1, int(self._clock.now().timestamp() * 1e9))
        return self._last
