"""A stream that can be cut, held, slowed down, and made to repeat itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from enum import Enum
from typing import Any

import orjson

from lwskit.runtime.client.transport import StreamResponse
from lwskit.runtime.errors import ConnectionFailed


class Repeat(Enum):
    """Which events of a watch come again after an event has come."""

    SAME = "same"
    """The event itself."""
    OLDER = "older"
    """The event before it, which may be about another object or an older state of the same one."""


class DisturbedStream:
    """Implements `lwskit.runtime.client.transport.StreamResponse` over another one.

    It breaks with ConnectionFailed once `broken` is set, hands chunks on only while `flow` is set, and late by what
    `lag` says at that moment. What `repeat` says decides which lines come again.
    """

    def __init__(
        self,
        inner: StreamResponse,
        broken: asyncio.Event,
        flow: asyncio.Event,
        lag: Callable[[], float],
        repeat: Callable[[], Repeat | None],
    ) -> None:
        self._inner = inner
        self._broken = broken
        self._flow = flow
        self._lag = lag
        self._repeat = repeat
        self._rest = b""
        self._last = b""

    @property
    def status(self) -> int:
        """The HTTP status of the inner stream."""
        return self._inner.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The header fields of the inner stream."""
        return self._inner.headers

    async def read(self) -> bytes:
        """The rest of the body, undisturbed. When cancelled, what has arrived may be lost."""
        return await self._inner.read()

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, disturbed. Raises ConnectionFailed when it was cut; cancelling it closes it."""
        chunks = self._inner.chunks()
        broken = asyncio.create_task(self._broken.wait(), name="interceptor-cut")
        try:
            while True:
                chunk = await self._or_broken(broken, anext(chunks, None))
                if chunk is None:
                    return
                if late := self._lag():
                    await self._or_broken(broken, asyncio.sleep(late))
                if not self._flow.is_set():
                    await self._or_broken(broken, self._flow.wait())
                yield self._repeated(chunk)
        finally:
            broken.cancel()
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()

    def _repeated(self, chunk: bytes) -> bytes:
        """A chunk with the lines that come again behind those which it completes."""
        repeat = self._repeat()
        *ends, rest = chunk.split(b"\n")
        if not ends:
            self._rest += rest
            return chunk
        lines = [self._rest + ends[0], *ends[1:]]
        self._rest = rest
        if repeat is None:
            self._last = next((line for line in reversed(lines) if _is_news(line)), self._last)
            return chunk
        out = [ends[0] + b"\n"]
        for index, line in enumerate(lines):
            if index:
                out.append(line + b"\n")
            if _is_news(line):
                again = line if repeat is Repeat.SAME else self._last
                if again:
                    out.append(again + b"\n")
                self._last = line
        return b"".join([*out, rest])

    async def _or_broken(self, broken: asyncio.Task[bool], awaitable: Awaitable[Any]) -> Any:
        """What is awaited, unless the stream is cut first."""
        work = asyncio.ensure_future(awaitable)
        try:
            await asyncio.wait({work, broken}, return_when=asyncio.FIRST_COMPLETED)
            if broken.done():
                raise ConnectionFailed("the watch was cut")
            return work.result()
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
            if not work.cancelled():
                # Whoever was cancelled meanwhile does not want to know.
                work.exception()


def _is_news(line: bytes) -> bool:
    """Whether a line of a watch tells of an object, and not of the watch itself."""
    return bool(line.strip()) and orjson.loads(line).get("type") not in ("BOOKMARK", "ERROR")
