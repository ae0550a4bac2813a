"""Who is told of changes, and in which order: handlers called at once, and those with a buffer and a consumer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import structlog

from lwskit.runtime.cache.view import Handler
from lwskit.runtime.clock import Clock
from lwskit.runtime.objects import Obj

log = structlog.get_logger(__name__)

MINIMAL_RESYNC = 1.0
"""The shortest period of a resync, in seconds."""
PAUSE = 1.0
"""Seconds that a consumer waits after its handler has failed."""
BATCH = 500
"""How much of what a list brings is told in between two turns of the event loop."""
_SYNCED = "synced"
_SLACK = 0.01


class AsyncHandler(Protocol):
    """Who is told of changes and may wait meanwhile: every handler has a buffer without limit and a task of its own.

    A call under way is cancelled when the informer ends.
    """

    async def on_add(self, obj: Obj, initial: bool) -> None:
        """An object came; `initial` while the first list, or the replay for a late handler, is handed out."""
        ...

    async def on_update(self, old: Obj, new: Obj) -> None:
        """An object changed. Both are the identical object when it is only repeated by a resync."""
        ...

    async def on_delete(self, obj: Obj, unknown: bool) -> None:
        """An object went; with `unknown` its deletion itself was not seen and `obj` may be stale."""
        ...


class Registration:
    """A handler's place at an informer, as `add_handler` returns it.

    `synced` is set once the handler has worked through everything that was there at first. `resync` is its own period
    in seconds, 0 for none, None for the informer's. Specification: 70 §2.8–2.10.
    """

    def __init__(self, handler: Handler | AsyncHandler, kind: str, resync: float | None) -> None:
        self.handler = handler
        self.resync = max(resync, MINIMAL_RESYNC) if resync else resync
        self.synced = asyncio.Event()
        self.removed = False
        self._kind = kind
        self._next: dict[int, float] = {}
        self._due: dict[int, bool] = {}

    async def wait_synced(self) -> None:
        """Return once the handler has worked through what was there at first. Cancelling only ends the wait."""
        await self.synced.wait()

    def tell(self, call: str, *arguments: Any) -> None:
        """Call a method of the handler; what it raises is logged and does not matter to anybody else."""
        try:
            getattr(self.handler, call)(*arguments)
        except Exception:
            log.exception("handler failed", kind=self._kind, call=call, handler=repr(self.handler))

    def caught_up(self) -> None:
        """Everything that was there at first has been told."""
        self.synced.set()

    # Resync, for each scope of the informer by its own clock.

    def period(self, default: float) -> float:
        """How long this handler waits for a resync, in seconds; 0 for ever."""
        return default if self.resync is None else self.resync

    def begin(self, scope: int, now: float, default: float) -> None:
        """Count from `now`; until the first check the handler also wants what a new list shows to be unchanged."""
        if period := self.period(default):
            self._next[scope], self._due[scope] = now + period, True

    def is_due(self, scope: int) -> bool:
        """Whether it wants to be told of objects that have not changed."""
        return self._due.get(scope, False)

    def check(self, scope: int, now: float, default: float) -> bool:
        """Whether its period has passed; if so the next one begins."""
        if scope not in self._next:
            return False
        # Timers may fire a little early.
        self._due[scope] = due = now >= self._next[scope] - _SLACK
        if due:
            self._next[scope] = now + self.period(default)
        return due


class BufferedRegistration(Registration):
    """The place of an AsyncHandler. `run` is its consumer; until that runs, notifications wait."""

    def __init__(self, handler: AsyncHandler, kind: str, resync: float | None, clock: Clock) -> None:
        super().__init__(handler, kind, resync)
        self._clock = clock
        self._buffer: deque[tuple[Any, ...]] = deque()
        self._wake = asyncio.Event()
        self.consumer: asyncio.Task[None] | None = None

    def tell(self, call: str, *arguments: Any) -> None:
        """Put a call into the buffer."""
        self._buffer.append((call, *arguments))
        self._wake.set()

    def caught_up(self) -> None:
        """What is in the buffer now is what was there at first."""
        self.tell(_SYNCED)

    async def run(self) -> None:
        """Call the handler, one notification after the other, until cancelled; the call under way is cancelled too."""
        while True:
            while self._buffer:
                call, *arguments = self._buffer.popleft()
                if call == _SYNCED:
                    self.synced.set()
                    continue
                try:
                    await getattr(self.handler, call)(*arguments)
                except Exception:
                    log.exception("handler failed", kind=self._kind, call=call, handler=repr(self.handler))
                    await self._clock.sleep(PAUSE)
            self._wake.clear()
            await self._wake.wait()


class Audience:
    """The handlers of one informer, each of which is told of everything in the order in which it happened.

    What happens is told at once, except while what a list brought is still being told in parts: then it waits its
    turn, for those who were there when it happened. Specification: 70 §2.8.
    """

    def __init__(self) -> None:
        self.registrations: list[Registration] = []
        """Replaced, never changed, when a handler comes or goes."""
        self._waiting: deque[tuple[Sequence[Registration], Iterator[tuple[Any, ...]]]] = deque()

    def add(self, registration: Registration) -> None:
        """Tell a handler of what happens from now on."""
        self.registrations = [*self.registrations, registration]

    def remove(self, registration: Registration) -> None:
        """Tell a handler no more, not even of what waits."""
        registration.removed = True
        self.registrations = [r for r in self.registrations if r is not registration]

    def tell(self, call: str, *arguments: Any) -> None:
        """Tell all handlers."""
        if self._waiting:
            self.tell_only(self.registrations, call, *arguments)
            return
        # What tell_only does, without the call: every event of a watch comes along here.
        for registration in self.registrations:
            registration.tell(call, *arguments)

    def tell_only(self, registrations: Sequence[Registration], call: str, *arguments: Any) -> None:
        """Tell some handlers."""
        if self._waiting:
            self._waiting.append((registrations, iter([(call, *arguments)])))
            return
        for registration in registrations:
            registration.tell(call, *arguments)

    def put(self, registrations: Sequence[Registration], calls: Iterator[tuple[Any, ...]]) -> None:
        """Have `drain` tell some handlers of many things, each a method and its arguments."""
        self._waiting.append((registrations, calls))

    def drain(self) -> Iterator[None]:
        """Tell what waits; others may run after each step."""
        count = 0
        while self._waiting:
            entry = registrations, calls = self._waiting[0]
            for call in calls:
                for registration in registrations:
                    if not registration.removed:
                        registration.tell(*call)
                if (count := count + 1) % BATCH == 0:
                    yield
            # Taken out last, so that what a handler causes meanwhile waits; somebody else may have been quicker.
            if self._waiting and self._waiting[0] is entry:
                self._waiting.popleft()
