"""The manager: groups of runnables started in order and stopped in order (specification: 70 §1)."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

import structlog

from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.options import ControllerDefaults
from lwskit.runtime.election import Elector, LeaderElectionLost
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.milestone import Milestone
from lwskit.runtime.runnable import Group, Runnable, group_of, name_of
from lwskit.runtime.tasks import TaskCancelled

log = structlog.get_logger(__name__)

T = TypeVar("T")

GRACE = 30.0
"""Seconds that all runnables together have to end."""
LAST_RESORT = 1.0
"""Seconds that runnables get after a second cancellation before the manager leaves them behind."""
_START_ORDER = (Group.EVENTS, Group.HTTP, Group.WEBHOOKS, Group.CACHES, Group.OTHERS, Group.WARM_UP)
# A warm-up and its controller may wait for the same thing, so nothing waits for the one before the other is told.
_STOP_ORDER = ((Group.OTHERS, Group.WARM_UP), (Group.LEADER,), (Group.CACHES,), (Group.WEBHOOKS,), (Group.HTTP,))
_STEPS = 8
"""Steps of the loop in which a runnable that does not wait for anything fails, or ends once it is cancelled."""


class ManagerError(LwskitError):
    """The manager cannot do what was asked, or did not end in time."""


class _RunGroup:
    """The runnables of one group: kept until it starts, launched at once afterwards, refused once it stops."""

    def __init__(self, group: Group, on_error: Callable[[BaseException, str], None]) -> None:
        self._group = group
        self._on_error = on_error
        self._waiting: list[Runnable] = []
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._started = False
        self._stopping = False

    def add(self, runnable: Runnable) -> None:
        if self._stopping:
            raise ManagerError("can't accept new runnable as stop procedure is already engaged")
        if self._started:
            self._launch(runnable)
        else:
            self._waiting.append(runnable)

    async def start(self) -> None:
        """Launch what was added and, for caches, wait until all of them have synced."""
        if self._started or self._stopping:
            return
        self._started = True
        launched, self._waiting = self._waiting, []
        for runnable in launched:
            self._launch(runnable)
        if self._group is Group.CACHES:
            for runnable in launched:
                await getattr(runnable, "wait_synced", _nothing)()

    def cancel(self) -> None:
        """Accept nothing more and cancel what runs; cancelled again, runnables are to end at once."""
        self._stopping = True
        self._waiting.clear()
        for task in [*self._tasks]:
            task.cancel()

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        return {*self._tasks}

    def names(self) -> list[str]:
        return sorted(self._tasks.values())

    def _launch(self, runnable: Runnable) -> None:
        name = name_of(runnable)
        work: object = runnable.run()
        if not isinstance(work, Coroutine):
            raise ManagerError(f"{name} cannot be run: its run() returned {type(work).__name__}; write `async def run`")
        task = asyncio.create_task(work, name=f"{self._group.value}: {name}")
        self._tasks[task] = name
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        name = self._tasks.pop(task)
        if task.cancelled():
            # Nobody else has the task in hand: something within it raised a stray CancelledError.
            error = None if self._stopping else TaskCancelled(name)
        else:
            error = task.exception()
        if error is not None:
            self._on_error(error, name)


class _WarmUp:
    """The warm-up half of a controller."""

    group = Group.WARM_UP

    def __init__(self, runnable: Any) -> None:
        self.name = name_of(runnable)
        self.run = runnable.warm_up


async def _nothing() -> None:
    return


class Manager:
    """Runs caches, servers and controllers together, and controllers only while this process leads.

    `graceful_timeout` is how many seconds they have to end: 0 means not to wait, a negative number to wait for ever.
    Without an elector what needs leadership starts after everything else. `controllers` are the settings of every
    controller that does not set its own.
    """

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        elector: Elector | None = None,
        graceful_timeout: float = GRACE,
        *,
        controllers: ControllerDefaults | None = None,
    ) -> None:
        self.rng = rng
        self.elected = Milestone()
        """Set once what needs leadership was started. Its `wait` raises ManagerError when the manager ends before."""
        self.synced = Milestone()
        """Set once the caches that were added before the start have synced. Its `wait` raises as that of `elected`."""
        self._clock = clock
        self._elector = elector
        self._graceful = graceful_timeout
        self._groups = {group: _RunGroup(group, self._fail) for group in Group}
        self._defaults = controllers or ControllerDefaults()
        self._controllers: set[str] = set()
        self._election: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._wake = asyncio.Event()
        self._abort = asyncio.Event()
        self._ended = asyncio.Event()
        self._started = False
        self._stopping = False

    def add(self, runnable: Runnable, group: Group | None = None) -> None:
        """Take in a runnable, to the group it names itself or to the one given; a started group launches it at once.

        A controller gets the manager's defaults for what it leaves open. Raises ManagerError while stopping, for what
        has no method `run`, and for a second controller of one name.
        """
        if isinstance(runnable, type) or not callable(getattr(runnable, "run", None)):
            what = f"the class {runnable.__name__}" if isinstance(runnable, type) else repr(runnable)
            raise ManagerError(f"{what} cannot be added: a runnable is an object with a coroutine method `run`")
        if self._stopping:
            raise ManagerError("can't accept new runnable as stop procedure is already engaged")
        if isinstance(runnable, Controller):
            runnable.use_defaults(self._defaults)
            if runnable.wants_unique_name and runnable.name in self._controllers:
                raise ManagerError(
                    f"controller with name {runnable.name} already exists. "
                    "Controller names must be unique: metrics and logs are told apart by them"
                )
            self._controllers.add(runnable.name)
        if getattr(runnable, "wants_warm_up", False):
            self._groups[Group.WARM_UP].add(_WarmUp(runnable))
        self._groups[group or group_of(runnable)].add(runnable)

    def stop(self) -> None:
        """Ask the manager to end: `run` stops everything in order and returns."""
        self._wake.set()

    async def run(self) -> None:
        """Run until `stop` is called, an error arrives or the call is cancelled; then stop everything in order.

        Raises the first error of a runnable; LeaderElectionLost at once, without waiting; ManagerError when it ran
        already, and when runnables did not end in time. When cancelled it ends in the same order before the
        cancellation goes on; cancelled again, it waits no longer.
        """
        if self._started:
            raise ManagerError("manager already started")
        self._started = True
        log.info("manager started", controllers=sorted(self._controllers))
        starting = asyncio.create_task(self._start(), name="manager: start")
        starting.add_done_callback(self._on_done)
        cancelled: asyncio.CancelledError | None = None
        try:
            await self._wake.wait()
        except asyncio.CancelledError as error:
            cancelled = error
        log.info("manager stops")
        # A task of its own, so that no cancellation of this one leaves a group running or unwaited for.
        stopping = asyncio.create_task(self._shut_down(starting), name="manager: stop")
        while not stopping.done():
            try:
                await asyncio.wait({stopping})
            except asyncio.CancelledError as error:
                self._abort.set()
                cancelled = error
        if not stopping.cancelled():
            self._error = self._error or stopping.exception()
        self._ended.set()
        for milestone in (self.synced, self.elected):
            milestone.miss(self._over)
        if self._error is not None:
            raise self._error
        if cancelled is not None:
            raise cancelled

    async def until(self, what: Awaitable[T]) -> T:
        """Wait for something that cannot happen without this manager, such as `cache.wait_synced()`; its result.

        Raises what it raises, and ManagerError when the manager ends before. Cancelling cancels what is waited for.
        """
        waiting = asyncio.ensure_future(what)
        ended = asyncio.create_task(self._ended.wait(), name="manager: until it ends")
        try:
            await asyncio.wait({waiting, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise self._over()
            return waiting.result()
        finally:
            waiting.cancel()
            ended.cancel()

    def _over(self) -> ManagerError:
        """What is raised to those who still wait for something once the manager has ended."""
        why = f": {self._error}" if self._error is not None else ""
        found = ManagerError(f"the manager ended before what was waited for{why}")
        found.__cause__ = self._error
        return found

    async def _start(self) -> None:
        for group in _START_ORDER:
            await self._groups[group].start()
        self.synced.set()
        # What fails at once, such as a server whose address is taken, is known after a few steps of the loop.
        for _ in range(_STEPS):
            await asyncio.sleep(0)
        if self._wake.is_set():
            return
        if self._elector is None:
            await self._groups[Group.LEADER].start()
            self.elected.set()
        else:
            self._election = asyncio.create_task(self._lead(self._elector), name="manager: leader election")
            self._election.add_done_callback(self._on_done)

    async def _lead(self, elector: Elector) -> None:
        await elector.acquire()
        if not self._stopping:
            await self._groups[Group.LEADER].start()
            self.elected.set()
        await elector.hold()

    def _on_done(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            error = None if self._stopping else TaskCancelled(task.get_name())
        else:
            error = task.exception()
        if error is not None:
            self._fail(error, task.get_name())

    def _fail(self, error: BaseException, name: str) -> None:
        if isinstance(error, LeaderElectionLost):
            # Another process may lead already: nothing here may finish what it was doing.
            self._graceful = 0.0
            self._abort.set()
        if self._error is None and (not self._stopping or isinstance(error, LeaderElectionLost)):
            self._error = error
            log.error("a runnable failed, the manager ends", runnable=name, error=str(error) or repr(error))
        elif self._error is not error:
            log.error("error received after stop sequence was engaged", runnable=name, error=str(error))
        self._wake.set()

    async def _shut_down(self, starting: asyncio.Task[None]) -> None:
        self._stopping = True
        starting.cancel()
        late: list[str] = []
        try:
            try:
                try:
                    await asyncio.wait({starting}, timeout=LAST_RESORT)
                    late = await self._drain()
                finally:
                    await self._cut_off()
            finally:
                await self._end_election()
        finally:
            await self._end_events()
        if late and self._graceful > 0 and not self._abort.is_set():
            problem = ManagerError(
                "failed waiting for all runnables to end within grace period of "
                f"{self._graceful:g}s: still running: {', '.join(late)}"
            )
            if self._error is None:
                self._error = problem
            else:
                self._error.add_note(str(problem))

    async def _drain(self) -> list[str]:
        """Cancel group after group and wait for each; the names of what did not end in time."""
        patience = math.inf if self._graceful < 0 else self._graceful
        deadline = self._clock.monotonic() + patience
        late: list[str] = []
        for together in _STOP_ORDER:
            groups = [self._groups[group] for group in together]
            for group in groups:
                group.cancel()
            # What stops last must not pay for what took all the time before it.
            least = LAST_RESORT if self._graceful > 0 else 0.0
            tasks = {task for group in groups for task in group.tasks}
            await self._wait(tasks, max(deadline, self._clock.monotonic() + least))
            late += [name for group in groups for name in group.names()]
        return late

    async def _wait(self, tasks: Iterable[asyncio.Task[None]], deadline: float) -> None:
        """Return when all tasks have ended, the deadline has passed or leadership was lost."""
        pending: set[asyncio.Task[object]] = {*tasks}
        abort = asyncio.create_task(self._abort.wait(), name="manager: abort")
        try:
            while pending and not self._abort.is_set():
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    return
                done, _ = await asyncio.wait(
                    {*pending, abort},
                    timeout=None if math.isinf(left) else left,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                pending -= done
            # Their done callbacks, which report errors, run in the next step of the loop.
            await asyncio.sleep(0)
        finally:
            abort.cancel()

    async def _cut_off(self) -> None:
        """Cancel twice what still runs: a first cancellation may only have begun an orderly end."""
        for _ in range(2):
            for group in _stopped():
                self._groups[group].cancel()
            for _ in range(_STEPS):
                if not self._remaining():
                    return
                await asyncio.sleep(0)
        if self._graceful != 0 and (remaining := self._remaining()):
            await asyncio.wait(remaining, timeout=LAST_RESORT)
            await asyncio.sleep(0)

    def _remaining(self) -> set[asyncio.Task[None]]:
        return {task for group in _stopped() for task in self._groups[group].tasks}

    async def _end_election(self) -> None:
        if self._election is None or self._elector is None:
            return
        led = self._elector.is_leader
        self._election.cancel()
        await asyncio.wait({self._election}, timeout=LAST_RESORT)
        if not led or not self._elector.release_on_cancel:
            return
        release = asyncio.create_task(self._elector.release(), name="manager: release of leadership")
        try:
            await self._wait({release}, math.inf)
            # Whoever is in a hurry still leaves it the time of one answer.
            await asyncio.wait({release}, timeout=LAST_RESORT)
        finally:
            release.cancel()
            await asyncio.wait({release}, timeout=LAST_RESORT)
        if not release.cancelled() and (error := release.exception()) is not None:
            raise error

    async def _end_events(self) -> None:
        """Cancel the last group, twice if need be, and wait for it a moment."""
        for _ in range(2):
            events = self._groups[Group.EVENTS]
            events.cancel()
            if events.tasks:
                await asyncio.wait(events.tasks, timeout=LAST_RESORT)
            # Their done callbacks run in the next step of the loop.
            await asyncio.sleep(0)


def _stopped() -> Iterator[Group]:
    """The groups that are stopped before the election and the recorders, in order."""
    for together in _STOP_ORDER:
        yield from together
