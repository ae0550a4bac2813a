"""Background tasks with a name and an owner."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

import structlog

from lwskit.runtime.errors import LwskitError

log = structlog.get_logger(__name__)


class TaskCancelled(LwskitError):
    """A background task ended as cancelled although its owner did not want that: its work is not done any more."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was cancelled, but not by its owner; nobody does its work any more")


class TaskOwner:
    """Owns tasks: the first error of one cancels the others and is raised, as it is, to whoever waits for the owner.

    As a context manager it waits at the end of the block; an error or a cancellation inside cancels its tasks. A task
    that ends as cancelled although nobody cancelled it counts as failed, with TaskCancelled: a stray CancelledError
    from somewhere within must not silence it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        # In the order in which they were started, so that on a virtual loop a run repeats itself.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._error: BaseException | None = None
        self._changed = asyncio.Event()

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run a coroutine as a task of this owner; its full name begins with the owner's."""
        task = asyncio.create_task(work, name=f"{self.name}: {name}")
        self._tasks[task] = None
        task.add_done_callback(self._on_done)
        return task

    def running(self) -> list[str]:
        """The names of the tasks that have not ended."""
        return sorted(task.get_name() for task in self._tasks)

    async def wait(self) -> None:
        """Return when every task has ended; raise the first error. When cancelled, the tasks are cancelled first."""
        try:
            while self._tasks and self._error is None:
                self._changed.clear()
                await self._changed.wait()
        finally:
            await self.stop()
        if self._error is not None:
            raise self._error

    async def stop(self) -> None:
        """Cancel what runs and wait for its end; errors on the way are logged unless somebody waits for the owner."""
        for task in [*self._tasks]:
            task.cancel()
        while self._tasks:
            await asyncio.wait([*self._tasks])
            # Done callbacks, which take the tasks out, run in the next step of the loop.
            await asyncio.sleep(0)

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        self._changed.set()
        if task.cancelled():
            error = None if task.cancelling() else TaskCancelled(task.get_name())
        else:
            error = task.exception()
        if error is None:
            return
        if self._error is None:
            self._error = error
        else:
            log.error("a further task failed", task=task.get_name(), error=str(error), exc_info=error)

    async def __aenter__(self) -> TaskOwner:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            await self.wait()
        else:
            await self.stop()
