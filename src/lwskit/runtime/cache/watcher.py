"""Following one collection of an API server for ever: the I/O around the list-and-watch state machine."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import structlog

from lwskit.runtime.cache.lines import LineSplitter
from lwskit.runtime.cache.listwatch import SETTLE, ListPage, ListWatch, OpenWatch, Wait, WatchEvent
from lwskit.runtime.client import requests
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import StreamResponse
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ApiError, ConnectionFailed, Expired, LwskitError, NotFound
from lwskit.runtime.kinds import Kind

log = structlog.get_logger(__name__)


class Watcher:
    """Lists and watches one collection, for ever, whatever the server does.

    `streaming` asks for streaming lists first; `on_health` is called whenever `healthy` changes.
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
        on_health: Callable[[bool], None] = lambda healthy: None,
    ) -> None:
        self._kind = kind
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._selectors = {"labelSelector": label_selector or None, "fieldSelector": field_selector or None}
        self._machine = ListWatch(kind, rng, streaming=streaming, on_health=on_health)
        self._told = ""

    @property
    def healthy(self) -> bool:
        """False before the first list, and after a failure until a list or a new stream has made up for it."""
        return self._machine.healthy

    @property
    def last_error(self) -> LwskitError | None:
        """Why the last attempt failed; None while things work."""
        return self._machine.last_error

    async def run(self, sink: Callable[[WatchEvent], None]) -> None:
        """Hand every event to `sink`, in order, until cancelled; then the stream is closed and the cancellation passes.

        `sink` is called synchronously; an error it raises ends the run.
        """
        machine = self._machine
        while True:
            step = machine.next(self._clock.monotonic())
            match step:
                case Wait(seconds, error):
                    self._tell(error, seconds)
                    await self._clock.sleep(seconds)
                case ListPage(query):
                    await self._list(query, sink)
                case OpenWatch():
                    await self._watch(step, sink)

    async def _list(self, query: Mapping[str, Any], sink: Callable[[WatchEvent], None]) -> None:
        request = requests.list_(self._kind, self._namespace, **self._selectors, **query)
        try:
            # Past the client's own retries: waiting is the state machine's business.
            body = requests.read(await self._client.transport.send(request))
        except (ApiError, ConnectionFailed) as e:
            self._machine.list_failed(e, self._clock.monotonic())
            return
        event = self._machine.listed(body, self._clock.monotonic())
        if event is not None:
            self._tell(None)
            sink(event)
        else:
            # Between pages others may run.
            await asyncio.sleep(0)

    async def _watch(self, step: OpenWatch, sink: Callable[[WatchEvent], None]) -> None:
        machine = self._machine
        idle = machine.idle_of(int(step.query["timeoutSeconds"]))
        opening = self._client.watch(self._kind, self._namespace, idle_timeout=idle, **self._selectors, **step.query)
        open_, settling = False, None
        try:
            async with opening as response:
                open_ = True
                machine.opened(self._clock.monotonic())
                if machine.settling:
                    settling = asyncio.get_running_loop().call_later(SETTLE, self._settled)
                await self._read(response, step.idle, idle, sink)
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

    def _settled(self) -> None:
        self._machine.settled()
        if self._machine.healthy:
            self._tell(None)

    async def _read(
        self, response: StreamResponse, initial: float, idle: float, sink: Callable[[WatchEvent], None]
    ) -> None:
        machine, splitter = self._machine, LineSplitter()
        chunks = response.chunks()
        while True:
            chunk = await self._chunk(chunks, initial if machine.collecting else idle)
            if chunk is None:
                machine.ended(None, self._clock.monotonic())
                return
            for line in splitter.feed(chunk):
                was_healthy = machine.healthy
                event = machine.received(line, self._clock.monotonic())
                if event is not None:
                    if not was_healthy:
                        self._tell(None)
                    sink(event)
                if machine.leaving:
                    return

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
