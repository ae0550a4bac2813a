from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj
from lwskit.testing.scripted import Part, Script


class Recorder:
    """A handler that writes down what it is told, and what the store said at that moment."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def on_add(self, obj: Obj, initial: bool) -> None:
        self.calls.append(("add", _mark(obj), initial))

    def on_update(self, old: Obj, new: Obj) -> None:
        self.calls.append(("update", _mark(old), _mark(new)))

    def on_delete(self, obj: Obj, unknown: bool) -> None:
        self.calls.append(("delete", _mark(obj), unknown))

    def take(self) -> list[tuple[Any, ...]]:
        taken, self.calls = self.calls, []
        return taken


def _mark(obj: Obj) -> str:
    return f"{obj['metadata']['name']}@{obj['metadata']['resourceVersion']}"


class Running:
    """An informer on a script, its recorder and the script."""

    def __init__(self, script: Script, informer: Informer, recorder: Recorder) -> None:
        self.script, self.informer, self.recorder = script, informer, recorder

    def stored(self) -> list[str]:
        return sorted(_mark(obj) for obj in self.informer.store.list())


Start = Callable[..., Awaitable[Running]]


@pytest.fixture
async def start(clock: Clock) -> AsyncIterator[Start]:
    """Start an informer on a script and let the loop settle; stops it at the end of the test."""
    tasks: list[asyncio.Task[None]] = []

    async def begin(
        *parts: Part, settle: float = 0.0, streaming: bool = False, views: Sequence[Any] = (), **options: Any
    ) -> Running:
        script = Script(*parts)
        informer = Informer(POD, Client(script), clock, random.Random(7), streaming=streaming, **options)
        for view in views:
            informer.add_view(view)
        recorder = Recorder()
        informer.add_handler(recorder)
        tasks.append(asyncio.create_task(informer.run()))
        await clock.sleep(settle)
        await clock.sleep(0.001)
        return Running(script, informer, recorder)

    yield begin
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, asyncio.CancelledError), outcome
