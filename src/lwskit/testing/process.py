"""Programs under test as processes: they can die at any moment, without a word, and be started anew."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from lwskit.testing.cluster import CONNECTED, Runnable, TestCluster
from lwskit.testing.interceptors import Interceptor

DEAD = "the process has died"


class ProgramEnded(AssertionError):
    """A program under test has ended by itself, or did not start again."""


@dataclass(frozen=True, slots=True)
class Restartable:
    """A program in two parts: `process` dies and is started anew, `beside` goes on meanwhile.

    What goes on is what another replica would do, above all serve admission webhooks. Where nothing dies it is a
    Runnable like any other: `beside` is entered first.
    """

    process: Runnable
    beside: Runnable

    @asynccontextmanager
    async def __call__(self, cluster: TestCluster) -> AsyncIterator[object]:
        """Both parts, for the length of the block. Cancelling it ends both."""
        async with self.beside(cluster), self.process(cluster) as made:
            yield made


@dataclass(eq=False)
class Process:
    """One program under test, whose connections are cut and whose tasks are cancelled when it dies.

    `connected` is told of each connection that it makes. Use as an asynchronous context manager: it is entered when
    the program has started, and raises the error of a program that ended by itself, or ProgramEnded.
    """

    cluster: TestCluster
    run: Runnable
    connected: Callable[[Interceptor], None] = lambda interceptor: None
    deaths: int = 0
    failure: BaseException | None = None
    interceptors: list[Interceptor] = field(default_factory=list)
    """The connections of the present incarnation."""

    def __post_init__(self) -> None:
        self._dead = asyncio.Event()
        self._up = asyncio.Event()
        self._may_start = asyncio.Event()
        self._may_start.set()
        self._task: asyncio.Task[None] | None = None

    @property
    def up(self) -> bool:
        """Whether it runs."""
        return self._up.is_set()

    def die(self, away: float | None = 0.0) -> None:
        """Let nothing of it through any more, from this moment on, and start it anew `away` seconds later.

        With None it stays away until `revive`. A process that is dead already stays so.
        """
        if self._dead.is_set():
            return
        self.deaths += 1
        for interceptor in self.interceptors:
            interceptor.sever(DEAD)
        self._may_start.clear()
        self._up.clear()
        self._dead.set()
        if away is not None:
            asyncio.get_running_loop().call_later(away, self.revive)

    def revive(self) -> None:
        """Start it anew, at once or as soon as the last of it has gone. Nothing happens while it lives."""
        self._may_start.set()

    async def started(self) -> None:
        """Wait until it runs. Raises what ended it; cancelling only ends the wait."""
        assert self._task is not None
        up = asyncio.create_task(self._up.wait(), name="process under test: start")
        try:
            await asyncio.wait({up, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            up.cancel()
        self.check()

    def check(self) -> None:
        """Raise what ended it, if it has ended."""
        if self.failure is not None:
            raise self.failure

    async def __aenter__(self) -> Process:
        self._task = asyncio.create_task(self._supervise(), name="process under test")
        try:
            await self.started()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._end()
        if error is None:
            self.check()

    async def _end(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _supervise(self) -> None:
        """Keep one incarnation running, until cancelled or until one ends by itself."""
        try:
            while True:
                await self._may_start.wait()
                self._dead.clear()
                self.interceptors.clear()
                await self._live()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.failure = error

    async def _live(self) -> None:
        """One incarnation, until its death."""
        ending = asyncio.Event()
        CONNECTED.set(self._adopt)
        life = asyncio.create_task(self._incarnation(ending), name=f"process under test, life {self.deaths + 1}")
        dead = asyncio.create_task(self._dead.wait(), name="process under test: death")
        try:
            await asyncio.wait({life, dead}, return_when=asyncio.FIRST_COMPLETED)
            if not self._dead.is_set():
                life.result()
                raise ProgramEnded("a program under test has ended by itself")
            life.cancel()
        except asyncio.CancelledError:
            ending.set()
            await asyncio.wait({life})
            if not life.cancelled() and life.exception() is not None and self.failure is None:
                self.failure = life.exception()
            raise
        finally:
            dead.cancel()
        # Whatever it says on its way no longer matters: a process that is killed says nothing.
        await asyncio.wait({life})
        if not life.cancelled():
            life.exception()

    async def _incarnation(self, ending: asyncio.Event) -> None:
        async with self.run(self.cluster):
            self._up.set()
            await ending.wait()

    def _adopt(self, interceptor: Interceptor) -> None:
        self.interceptors.append(interceptor)
        if self._dead.is_set():
            interceptor.sever(DEAD)
        self.connected(interceptor)


_RUNNING: ContextVar[list[Process] | None] = ContextVar("_RUNNING", default=None)


@asynccontextmanager
async def processes(
    cluster: TestCluster,
    runnables: Sequence[Runnable],
    connected: Callable[[Interceptor], None],
    made: list[Process],
) -> AsyncIterator[list[Process]]:
    """Programs under test as processes, started in this order and put into `made` as soon as they exist.

    Of a Restartable only its process can die. Raises what ended one of them; when cancelled, they end too.
    """
    async with AsyncExitStack() as stack:
        for runnable in runnables:
            if isinstance(runnable, Restartable):
                await stack.enter_async_context(runnable.beside(cluster))
                runnable = runnable.process
            process = Process(cluster, runnable, connected)
            made.append(process)
            await stack.enter_async_context(process)
        yield made


@contextmanager
def controlling(made: list[Process]) -> Iterator[None]:
    """Inside the block `absent` is about these processes."""
    token = _RUNNING.set(made)
    try:
        yield
    finally:
        _RUNNING.reset(token)


@asynccontextmanager
async def absent() -> AsyncIterator[None]:
    """In a scenario that is explored: inside the block the programs under test are not running.

    They die when it begins and have started again when it is left. Raises RuntimeError outside of an exploration.
    When the block is cancelled they stay away.
    """
    running = _RUNNING.get()
    if running is None:
        raise RuntimeError("absent() is for scenarios that are explored: there is no process to stop here")
    for process in running:
        process.die(None)
    yield
    for process in running:
        process.revive()
    for process in running:
        await process.started()
