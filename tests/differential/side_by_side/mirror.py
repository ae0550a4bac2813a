"""What is in the namespaces of a cluster, kept up to date by watches: objects, and how often each name was made."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

import orjson

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import StreamResponse
from lwskit.runtime.errors import Expired
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj, uid_of


class Place:
    """One namespace: objects by kind and name, and births and deaths of names since the last `turn`."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.objects: dict[str, dict[str, Obj]] = {k.plural: {} for k in kinds}
        self.births: Counter[str] = Counter()
        self.deaths: Counter[str] = Counter()
        self.changed = asyncio.Event()
        self.symbols: dict[str, str] = {}
        """UID to `pods/web-0#2`: the second one of that name."""
        self._made: Counter[str] = Counter()

    def of(self, kind: Kind) -> dict[str, Obj]:
        """The objects of a kind by name."""
        return self.objects[kind.plural]

    def turn(self) -> None:
        """Count births and deaths anew."""
        self.births, self.deaths = Counter(), Counter()

    def take(self, plural: str, event: dict[str, Any]) -> None:
        """A watch tells of an object."""
        obj, name = event["object"], event["object"]["metadata"]["name"]
        path = f"{plural}/{name}"
        if uid_of(obj) not in self.symbols:
            self._made[path] += 1
            self.symbols[uid_of(obj)] = f"{path}#{self._made[path]}"
            self.births[path] += 1
        if event["type"] == "DELETED":
            self.objects[plural].pop(name, None)
            self.deaths[path] += 1
        else:
            self.objects[plural][name] = obj
        self.changed.set()


class Mirror:
    """Follows all namespaces of a cluster, from the moment it is entered. Raises what ends one of its watches.

    `new_place` makes a namespace in which nothing was seen yet.
    """

    def __init__(self, client: Client, kinds: Sequence[Kind], new_place: Callable[[], Place]) -> None:
        self._client = client
        self._kinds = kinds
        self._new_place = new_place
        self._places: dict[str, Place] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()

    def place(self, namespace: str) -> Place:
        """What is in a namespace."""
        for task in self._tasks:
            if task.done():
                task.result()
        return self._place(namespace)

    def _place(self, namespace: str) -> Place:
        if namespace not in self._places:
            self._places[namespace] = self._new_place()
        return self._places[namespace]

    async def __aenter__(self) -> Mirror:
        for kind in self._kinds:
            listed = await self._client.list(kind)
            version = listed["metadata"]["resourceVersion"]
            stream = await self._stack.enter_async_context(self._client.watch(kind, resourceVersion=version))
            task = self._follow(kind, stream, version)
            self._tasks.append(asyncio.create_task(task, name=f"mirror of {kind.plural}"))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._stack.aclose()

    async def _follow(self, kind: Kind, stream: StreamResponse, version: str) -> None:
        version = await self._take_all(kind, stream) or version
        while True:
            # A server ends the watch of a client that was slow for a moment; it goes on where it was.
            async with self._client.watch(kind, resourceVersion=version) as again:
                version = await self._take_all(kind, again) or version

    async def _take_all(self, kind: Kind, stream: StreamResponse) -> str:
        """What a watch tells until it ends; the last version. Raises Expired when that is too old to go on from."""
        rest, version = b"", ""
        async for chunk in stream.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = orjson.loads(line)
                if event["type"] == "ERROR":
                    raise Expired(event["object"]["message"])
                meta = event["object"]["metadata"]
                version = meta["resourceVersion"]
                self._place(meta["namespace"]).take(kind.plural, event)
        return version
