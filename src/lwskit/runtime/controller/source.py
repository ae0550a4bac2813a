"""Where a controller's events come from, and their way into its queue (specification: 70 §3.2, §3.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from lwskit.runtime.controller.defects import checked_requests
from lwskit.runtime.controller.handler import (
    LOW_PRIORITY,
    AsyncMap,
    Create,
    Delete,
    Event,
    Generic,
    Handler,
    Update,
    priority_of,
)
from lwskit.runtime.controller.predicate import Predicate
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj
from lwskit.runtime.queue_base import BaseQueue
from lwskit.runtime.request import Request


class Source(Protocol):
    """Feeds one or more controllers' queues."""

    def start(self, queue: BaseQueue[Request], predicates: Sequence[Predicate] = ()) -> None:
        """Begin to put requests into the queue; `predicates` are the controller's own, asked before the source's."""
        ...

    async def wait_synced(self) -> None:
        """Return when everything that existed at the start has been told. Cancelling ends the wait."""
        ...


class EventHandler(Protocol):
    """What an informer calls, synchronously and in order."""

    def on_add(self, obj: Obj, initial: bool) -> None:
        """An object appeared."""
        ...

    def on_update(self, old: Obj, new: Obj) -> None:
        """An object changed."""
        ...

    def on_delete(self, obj: Obj, unknown: bool) -> None:
        """An object is gone."""
        ...


class InformerLike(Protocol):
    """The part of an informer that sources use."""

    @property
    def kind(self) -> Kind:
        """What it informs about."""
        ...

    def add_handler(self, handler: Any) -> Any:
        """Register an EventHandler; objects known already are told as initial adds."""
        ...

    def add_async_handler(self, handler: Any) -> Any:
        """Register a handler that may wait; returns its registration, which has `wait_synced`."""
        ...

    async def wait_synced(self) -> None:
        """Return when the first list was applied and told. Cancelling it only ends the wait."""
        ...


class Dispatcher:
    """Puts events through predicates and a handler into a queue; what an informer is given as its handler.

    What those raise is told to the queue's `on_defect`, and the event has no request.
    """

    def __init__(
        self,
        queue: BaseQueue[Request],
        handler: Handler,
        predicates: Sequence[Predicate] = (),
        priority: int | None = None,
    ) -> None:
        self._queue = queue
        self._handler = handler
        self._predicates = tuple(predicates)
        self._priority = priority

    def on_add(self, obj: Obj, initial: bool) -> None:
        """An object appeared."""
        self._dispatch(Create(obj, initial), LOW_PRIORITY if initial else 0)

    def on_update(self, old: Obj, new: Obj) -> None:
        """An object changed."""
        unchanged = old["metadata"].get("resourceVersion") == new["metadata"].get("resourceVersion")
        self._dispatch(Update(old, new), LOW_PRIORITY if unchanged else 0)

    def on_delete(self, obj: Obj, unknown: bool) -> None:
        """An object is gone."""
        self._dispatch(Delete(obj, unknown), 0)

    def dispatch(self, event: Event) -> None:
        """Queue the requests for one event, unless a predicate drops it."""
        self._dispatch(event, priority_of(event))

    def _dispatch(self, event: Event, priority: int) -> None:
        try:
            for predicate in self._predicates:
                if not predicate(event):
                    return
            requests = checked_requests(self._handler(event), self._handler)
        except Exception as error:
            self._queue.on_defect(error)
            return
        if self._priority is not None:
            priority = self._priority
        add = self._queue.add
        # What a handler asks for twice is folded by the queue.
        for request in requests:
            add(request, priority)


class AsyncDispatcher:
    """Does what a Dispatcher does for a handler that waits; an informer calls it from a task of its own.

    When one of its calls is cancelled, no request of that event is queued.
    """

    def __init__(
        self,
        queue: BaseQueue[Request],
        handler: AsyncMap,
        predicates: Sequence[Predicate] = (),
        priority: int | None = None,
    ) -> None:
        self._queue = queue
        self._handler = handler
        self._predicates = tuple(predicates)
        self._priority = priority

    async def on_add(self, obj: Obj, initial: bool) -> None:
        """An object appeared."""
        await self.dispatch(Create(obj, initial))

    async def on_update(self, old: Obj, new: Obj) -> None:
        """An object changed."""
        await self.dispatch(Update(old, new))

    async def on_delete(self, obj: Obj, unknown: bool) -> None:
        """An object is gone."""
        await self.dispatch(Delete(obj, unknown))

    async def dispatch(self, event: Event) -> None:
        """Queue the requests for one event, unless a predicate drops it. When cancelled, none of them is queued."""
        try:
            if not all(predicate(event) for predicate in self._predicates):
                return
            requests = await self._handler.requests(event)
        except Exception as error:
            self._queue.on_defect(error)
            return
        priority = priority_of(event) if self._priority is None else self._priority
        for request in requests:
            self._queue.add(request, priority)


class KindSource:
    """The events of one informer. `priority` replaces the usual one of all its requests."""

    def __init__(
        self,
        informer: InformerLike,
        handler: Handler | AsyncMap,
        predicates: Iterable[Predicate] = (),
        *,
        priority: int | None = None,
    ) -> None:
        self._informer = informer
        self._handler = handler
        self._predicates = tuple(predicates)
        self._priority = priority
        self._registration: Any = None

    def start(self, queue: BaseQueue[Request], predicates: Sequence[Predicate] = ()) -> None:
        """Register with the informer, which tells the objects that it knows at once.

        Raises ConfigurationError for a source without an informer or a handler.
        """
        _require("kind source", informer=self._informer, handler=self._handler)
        asked = (*predicates, *self._predicates)
        if isinstance(self._handler, AsyncMap):
            dispatcher = AsyncDispatcher(queue, self._handler, asked, self._priority)
            self._registration = self._informer.add_async_handler(dispatcher)
        else:
            self._informer.add_handler(Dispatcher(queue, self._handler, asked, self._priority))

    async def wait_synced(self) -> None:
        """Return when the informer's first list was told and handled. Cancelling ends the wait."""
        await self._informer.wait_synced()
        if self._registration is not None:
            await self._registration.wait_synced()

    @property
    def last_error(self) -> Exception | None:
        """Why the informer has not synced, as far as it knows."""
        return getattr(self._informer, "last_error", None)

    def __str__(self) -> str:
        return f"kind source: {self._informer.kind.qualified}"


class ChannelSource:
    """Events from outside the cluster: `send` tells every controller that started the source.

    Handing over is one synchronous step into the queues, which fold equal requests, so there is no buffer to outgrow.
    `send` may be called from any thread; a controller then takes the object in its own, at its loop's next turn.
    """

    def __init__(self, handler: Handler, predicates: Iterable[Predicate] = ()) -> None:
        self._handler = handler
        self._predicates = tuple(predicates)
        self._dispatchers: list[tuple[asyncio.AbstractEventLoop | None, Dispatcher]] = []

    def start(self, queue: BaseQueue[Request], predicates: Sequence[Predicate] = ()) -> None:
        """From now on send to this queue too. Raises ConfigurationError for a source without a handler."""
        _require("channel source", handler=self._handler)
        dispatcher = Dispatcher(queue, self._handler, (*predicates, *self._predicates))
        self._dispatchers.append((_running_loop(), dispatcher))

    async def wait_synced(self) -> None:
        """Return at once: there is nothing to wait for. It cannot be cancelled."""

    def send(self, obj: Obj) -> None:
        """Tell every queue about an object. Raises ConfigurationError from another thread once a loop is closed."""
        here = _running_loop()
        for loop, dispatcher in [*self._dispatchers]:
            if loop is None or loop is here:
                dispatcher.dispatch(Generic(obj))
                continue
            try:
                loop.call_soon_threadsafe(dispatcher.dispatch, Generic(obj))
            except RuntimeError as error:
                raise ConfigurationError(f"a channel source cannot send any more: {error}") from error

    def close(self) -> None:
        """Send to nobody any more."""
        self._dispatchers.clear()

    def __str__(self) -> str:
        return "channel source"


class InformerSource(KindSource):
    """The events of one informer whose first list nothing waits for."""

    async def wait_synced(self) -> None:
        """Return at once. It cannot be cancelled."""

    def __str__(self) -> str:
        return f"informer source: {self._informer.kind.qualified}"


class FunctionSource:
    """A function that is given the queue and does the rest."""

    def __init__(self, function: Callable[[BaseQueue[Request]], None]) -> None:
        self._function = function

    def start(self, queue: BaseQueue[Request], predicates: Sequence[Predicate] = ()) -> None:
        """Call the function. Raises ConfigurationError for a source without one."""
        _require("function source", function=self._function)
        self._function(queue)

    async def wait_synced(self) -> None:
        """Return at once: there is nothing to wait for. It cannot be cancelled."""

    def __str__(self) -> str:
        return "function source"


def _running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _require(source: str, **parts: object) -> None:
    missing = [name for name, part in parts.items() if part is None]
    if missing:
        raise ConfigurationError(f"a {source} cannot start without its {' and its '.join(missing)}")
