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
from lwskit.runtime.objects import Obj, uid_of, version_of

_PAUSE = 0.1
"""Seconds between the end of a watch and the next one."""
_LATE = 30.0
"""Seconds for which what is there may be missing in the watch."""
_STALL = 2.5
"""How many intervals two looks may be apart for all the time between them to count as quiet."""


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
    where it was. Leaving it ends the watch once that has told all that a list shows, for a watch may be behind what
    others have read; an observer for which that was not possible raises LwskitError then, since what it recorded is not
    complete. When the block fails, or is cancelled, the watch ends at once.
    """

    def __init__(self, client: Client, kind: Kind, namespace: str) -> None:
        self._client = client
        self._kind = kind
        self._namespace = namespace
        self._task: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        self._version = ""
        self._known: dict[str, str] = {}
        """The versions of the objects that are there, as far as they have been told, by UID."""
        self.changes: list[Change] = []

    async def __aenter__(self) -> Observer:
        listed = await self._client.list(self._kind, self._namespace)
        self._version = listed["metadata"]["resourceVersion"]
        self._known = {uid_of(obj): version_of(obj) for obj in listed["items"]}
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
        try:
            if error is None:
                await self._catch_up(task)
        finally:
            task.cancel()
            await asyncio.wait({task})
        lost = None if task.cancelled() else task.exception()
        if error is None and lost is not None:
            raise lost

    async def _catch_up(self, task: asyncio.Task[None]) -> None:
        """Wait until the watch has told all that a list shows now, or has failed.

        Raises LwskitError when that takes too long.
        """
        # As it was before the list: what changes once more meanwhile is told of before that.
        known = dict(self._known)
        listed = await self._client.list(self._kind, self._namespace)
        there = {uid_of(obj): obj for obj in listed["items"]}
        changed = {uid: obj for uid, obj in there.items() if known.get(uid) != version_of(obj)}
        gone = known.keys() - there.keys()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _LATE
        while not task.done():
            told = {(c.uid, version_of(c.obj)) for c in self.changes}
            late = [obj["metadata"]["name"] for uid, obj in changed.items() if (uid, version_of(obj)) not in told]
            if not late and not gone & self._known.keys():
                return
            if loop.time() > deadline:
                what = ", ".join(late) or "a deletion"
                raise LwskitError(f"the watch of {self._kind.plural} does not tell of {what} within {_LATE:g} s")
            await asyncio.sleep(_PAUSE)

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
        obj = event["object"]
        self._version = version_of(obj)
        self._known[uid_of(obj)] = self._version
        if event["type"] == "DELETED":
            del self._known[uid_of(obj)]
        self.changes.append(Change(event["type"], obj, now))


async def settled(snapshot: Callable[[], Any], quiet: float, timeout: float, *, interval: float = 0.1) -> None:
    """Wait until what the coroutine function `snapshot` returns has stayed equal for `quiet` seconds.

    Two looks that are far apart, for the machine or the server was slow, count as if they were near: what did not get
    on meanwhile has not been quiet. Raises AssertionError after `timeout` seconds of quick looks, after longer where
    they are slow. Cancelling ends the wait.
    """
    loop = asyncio.get_running_loop()
    calm = spent = 0.0
    last = loop.time()
    seen = await snapshot()
    while calm < quiet:
        if spent > timeout:
            raise AssertionError(f"still changing after {timeout:g} s")
        await asyncio.sleep(interval)
        now = await snapshot()
        passed = min(loop.time() - last, _STALL * interval)
        last = loop.time()
        spent += passed
        if now == seen:
            calm += passed
        else:
            seen, calm = now, 0.0
