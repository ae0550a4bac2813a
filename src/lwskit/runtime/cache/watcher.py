"""Following one collection of an API server for ever: the I/O around the list-and-watch state machine."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import structlog

from lwskit.runtime.cache.lines import LineSplitter
from lwskit.runtime.cache.listwatch import SETTLE, ListPage, ListWatch, OpenWatch, Replace, Wait, WatchEvent
from lwskit.runtime.client import requests
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import StreamResponse
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ApiError, ConnectionFailed, Expired, InternalError, LwskitError, NotFound
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj

log = structlog.get_logger(__name__)

PATIENCE = 10.0
"""Seconds without a byte of the initial events after which a warning is logged, and again."""

Sink: TypeAlias = Callable[[WatchEvent], None]
Replacer: TypeAlias = Callable[[Replace], Awaitable[None]]


class Watcher:
    """Lists and watches one collection, for ever, whatever the server does.

    `streaming` asks for streaming lists first; `bookmarks`, `idle`, `prepare` and `prepare_listed` are those of
    ListWatch; `on_health` is called whenever `healthy` changes, `on_error` with the error of each round that failed.
    Specification: 70 §2.2–2.7.
    """

    def __init__(
        self,
        kind: Kind,
        client: Client,
        clock: Clock,
        rng: random.Random,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        streaming: bool = True,
        bookmarks: bool = True,
        idle: float | None = None,
        prepare: Callable[[Obj], Obj] = lambda obj: obj,
        prepare_listed: Callable[[Obj], Obj] | None = None,
        on_health: Callable[[bool], None] = lambda healthy: None,
        on_error: Callable[[LwskitError], None] = lambda error: None,
    ) -> None:
        self._kind = kind
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._selectors = {"labelSelector": label_selector or None, "fieldSelector": field_selector or None}
        self._machine = ListWatch(
            kind,
            rng,
            streaming=streaming,
            bookmarks=bookmarks,
            idle=idle,
            prepare=prepare,
            prepare_listed=prepare_listed,
            on_health=on_health,
        )
        self._on_error = on_error
        self._told = ""
        self._patience: asyncio.TimerHandle | None = None

    @property
    def healthy(self) -> bool:
        """False before the first list, and after a failure until a list or a new stream has made up for it."""
        return self._machine.healthy

    @property
    def last_error(self) -> LwskitError | None:
        """Why the last attempt failed; None while things work."""
        return self._machine.last_error

    async def run(self, sink: Sink, replace: Replacer | None = None) -> None:
        """Hand every event to `sink`, in order, until cancelled; then the stream is closed and the cancellation passes.

        `sink` is called synchronously. `replace`, where given, is awaited with each whole content instead, and nothing
        more is read meanwhile. An exception of either, or any other that is not foreseen, is logged and ends the round;
        only a LwskitError, which says what the program has to do otherwise, ends the run.
        """
        machine = self._machine
        while True:
            step = machine.next(self._clock.monotonic())
            if isinstance(step, Wait):
                self._tell(step.error, step.seconds)
                if step.failed and step.error is not None:
                    self._tell_handler(step.error)
                await self._clock.sleep(step.seconds)
                continue
            try:
                if isinstance(step, ListPage):
                    await self._list(step.query, sink, replace)
                else:
                    await self._watch(step, sink, replace)
            except LwskitError:
                raise
            except Exception as e:
                self._unexpected(e)

    async def _list(self, query: Mapping[str, Any], sink: Sink, replace: Replacer | None) -> None:
        request = requests.list_(self._kind, self._namespace, **self._selectors, **query)
        try:
            # Past the client's own retries: waiting is the state machine's business.
            body = requests.read(await self._client.transport.send(request))
        except (ApiError, ConnectionFailed) as e:
            self._machine.list_failed(e, self._clock.monotonic())
            return
        event = self._machine.listed(body, self._clock.monotonic())
        if event is not None:
            await self._replace(event, sink, replace)
        else:
            # Between pages others may run.
            await asyncio.sleep(0)

    async def _replace(self, event: Replace, sink: Sink, replace: Replacer | None) -> None:
        if replace is None:
            sink(event)
        else:
            await replace(event)
        self._machine.replaced()
        self._tell(None)
        for _ in self._machine.release():
            await asyncio.sleep(0)

    async def _watch(self, step: OpenWatch, sink: Sink, replace: Replacer | None) -> None:
        machine = self._machine
        idle = machine.idle_of(int(step.query["timeoutSeconds"]))
        opening = self._client.watch(self._kind, self._namespace, idle_timeout=idle, **self._selectors, **step.query)
        open_, settling = False, None
        try:
            async with opening as response:
                open_ = True
                machine.opened(self._clock.monotonic())
                if machine.settling:
                    settling = asyncio.get_running_loop().call_later(min(SETTLE, idle / 2), self._settled)
                await self._read(response, step.idle, idle, sink, replace)
        except (ApiError, ConnectionFailed) as e:
            now = self._clock.monotonic()
            if not open_:
                machine.refused(e, now)
            elif isinstance(e, ConnectionFailed):
                machine.ended(e, now)
            else:
                machine.broken(e, now)
        finally:
            if settling is not None:
                settling.cancel()

    def _tell_handler(self, error: LwskitError) -> None:
        try:
            self._on_error(error)
        except Exception:
            log.exception("handler of watch errors failed", kind=self._kind.qualified, handler=repr(self._on_error))

    def _unexpected(self, exception: Exception) -> None:
        text = f"following {self._kind.plural} failed with {type(exception).__name__}: {exception}"
        error = InternalError(text)
        if str(error) != self._told:
            log.exception("list or watch failed unexpectedly; trying again", kind=self._kind.qualified)
            self._told = str(error)
        self._machine.failed(error, self._clock.monotonic())

    def _settled(self) -> None:
        self._machine.settled()
        if self._machine.healthy:
            self._tell(None)

    async def _read(
        self, response: StreamResponse, initial: float, idle: float, sink: Sink, replace: Replacer | None
    ) -> None:
        machine, splitter, now = self._machine, LineSplitter(), self._clock.monotonic
        chunks = response.chunks()
        while True:
            collecting = machine.collecting
            if collecting:
                self._be_patient()
            try:
                chunk = await self._chunk(chunks, initial if collecting else idle)
            finally:
                if self._patience is not None:
                    self._patience.cancel()
            if chunk is None:
                machine.ended(None, now())
                return
            for line in splitter.feed(chunk):
                event = machine.received(line, now())
                if event is None:
                    if machine.leaving:
                        return
                    if machine.skipped:
                        log.warning("passed over in a watch", kind=self._kind.qualified, what=machine.skipped)
                        machine.skipped = ""
                elif isinstance(event, Replace):
                    await self._replace(event, sink, replace)
                else:
                    sink(event)

    def _be_patient(self) -> None:
        self._patience = asyncio.get_running_loop().call_later(PATIENCE, self._impatient)

    def _impatient(self) -> None:
        text = "nothing new for a while of the initial objects of a streaming list"
        log.warning(text, kind=self._kind.qualified, seconds=PATIENCE)
        self._be_patient()

    async def _chunk(self, chunks: AsyncIterator[bytes], silence: float) -> bytes | None:
        """The next chunk, None at the end. Raises ConnectionFailed after `silence` seconds without one."""
        try:
            async with asyncio.timeout(silence):
                return await anext(chunks)
        except StopAsyncIteration:
            return None
        except TimeoutError as e:
            text = f"the watch of {self._kind.plural} was silent for {silence:g} s, its connection counts as dead"
            raise ConnectionFailed(text) from e

    def _tell(self, error: LwskitError | None, seconds: float = 0.0) -> None:
        """Log a failure once, and once that it is over."""
        text = str(error) if error is not None else ""
        if text == self._told:
            return
        if error is None:
            log.info("watch works again", kind=self._kind.qualified)
        elif isinstance(error, NotFound):
            log.warning(
                "kind is not served by this API server; install its CustomResourceDefinition; trying again until then",
                kind=self._kind.qualified,
                error=text,
            )
        elif not isinstance(error, Expired):
            log.warning("list or watch failed; trying again", kind=self._kind.qualified, error=text, wait=seconds)
        self._told = text
