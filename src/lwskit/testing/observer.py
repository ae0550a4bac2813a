"""Watching a kind for a while, to assert on what came to pass and not only on what is there in the end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import orjson

from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj, uid_of

_PAUSE = 0.1
"""Seconds between the end of a watch and the next one."""


@dataclass(frozen=True, slots=True)
class Change:
    """One event of a watch: `type` is ADDED, MODIFIED or DELETED."""

    type: str
    obj: Obj
    at: float

    @property
    def name(self) -> str:
        """The object's name."""
        return self.obj["metadata"]["name"]

    @property
    def uid(self) -> str:
        """The object's UID."""
        return uid_of(self.obj)


class Observer:
    """Records what happens to the objects of one kind in one namespace, from the moment it is entered.

    Use as an asynchronous context manager. A watch that ends, as servers under load end those that are slow, goes on
    where it was. Leaving it ends the watch; an observer for which that was not possible raises LwskitError then, since
    what it recorded is not complete.
    """

    def __init__(self, client: Client, kind: Kind, namespace: str) -> None:
        self._client = client
        self._kind = kind
        self._namespace = namespace
        self._task: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        self._version = ""
        self.changes: list[Change] = []

    async def __aenter__(self) -> Observer:
        listed = await self._client.list(self._kind, self._namespace)
        self._version = listed["metadata"]["resourceVersion"]
        self._task = asyncio.create_task(self._follow(), name=f"observe-{self._kind.plural}")
        opened = asyncio.create_task(self._opened.wait(), name=f"observe-{self._kind.plural}-open")
        await asyncio.wait({self._task, opened}, return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        if self._task.done():
            self._task.result()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = self._task
        assert task is not None
        if not task.done():
            task.cancel()
        await asyncio.wait({task})
        lost = None if task.cancelled() else task.exception()
        if error is None and lost is not None:
            raise lost

    @property
    def born(self) -> Counter[str]:
        """How many objects were created under each name."""
        return self._count("ADDED")

    @property
    def gone(self) -> Counter[str]:
        """How many objects were removed under each name."""
        return self._count("DELETED")

    def of(self, name: str) -> list[Change]:
        """What happened to the objects of one name, oldest first."""
        return [c for c in self.changes if c.name == name]

    def _count(self, kind: str) -> Counter[str]:
        return Counter(name for name, _ in {(c.name, c.uid): None for c in self.changes if c.type == kind})

    async def _follow(self) -> None:
        """Read the watch until cancelled. Raises LwskitError when it cannot go on where it ended."""
        while True:
            await self._read()
            await asyncio.sleep(_PAUSE)

    async def _read(self) -> None:
        """Read one watch to its end."""
        loop = asyncio.get_running_loop()
        async with self._client.watch(self._kind, self._namespace, resourceVersion=self._version) as response:
            self._opened.set()
            rest = b""
            async for chunk in response.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        self._take(orjson.loads(line), loop.time())

    def _take(self, event: dict[str, Any], now: float) -> None:
        if event["type"] == "ERROR":
            raise LwskitError(f"the watch of {self._kind.plural} failed: {event['object'].get('message')}")
        self._version = event["object"]["metadata"]["resourceVersion"]
        self.changes.append(Change(event["type"], event["object"], now))


async def settled(snapshot: Callable[[], Any], quiet: float, timeout: float, *, interval: float = 0.1) -> None:
    """Wait until what the coroutine function `snapshot` returns has stayed equal for `quiet` seconds.

    Raises AssertionError after `timeout` seconds. Cancelling ends the wait.
    """
    loop = asyncio.get_running_loop()
    began = since = loop.time()
    seen = await snapshot()
    while loop.time() - since < quiet:
        if loop.time() - began > timeout:
            raise AssertionError(f"still changing after {timeout:g} s")
        await asyncio.sleep(interval)
        now = await snapshot()
        if now != seen:
            seen, since = now, loop.time()
