"""A controller: sources fill its queue, workers reconcile what it gives out (specification: 70 §5)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence

import structlog

from lwskit.runtime.clock import Clock, random_uuid
from lwskit.runtime.controller.predicate import Predicate
from lwskit.runtime.controller.source import Source
from lwskit.runtime.errors import ApiError, LwskitError, TerminalError
from lwskit.runtime.queue import QueueShutDown, WorkQueue
from lwskit.runtime.request import DONE, Request, Result
from lwskit.runtime.stats import Histogram

log = structlog.get_logger(__name__)

Reconcile = Callable[[Request], Awaitable[Result | None]]
"""Looks at what a request names and makes it as it should be; None means the same as DONE."""

SYNC_TIMEOUT = 120.0
"""Seconds that sources have to start and sync."""
GRACE = 30.0
"""Seconds that running reconciles have to end after the controller was cancelled."""
TIME_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0),
    *(10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
"""Upper bounds of the reconcile time histogram, in seconds (specification: 70 §10)."""


class ControllerError(LwskitError):
    """A controller cannot start or go on."""


class ControllerStats:
    """What a controller counts; every result is present from the start (specification: 70 §10)."""

    def __init__(self) -> None:
        self.results = {"error": 0, "requeue_after": 0, "requeue": 0, "success": 0}
        self.errors = 0
        self.terminal = 0
        self.panics = 0
        self.timeouts = 0
        self.active = 0
        self.time = Histogram(TIME_BUCKETS)


class Controller:
    """Reconciles requests, never two of one lane at a time; a lane is by default an object's namespace and name.

    `concurrency` is how many requests are worked on at once, `grace` how many seconds running reconciles get after a
    cancellation, `sync_timeout` how many seconds the sources may take, `reconcile_timeout` how many one reconcile may
    (None: any number). With `recover` an unexpected exception is logged and retried like an error; without, it ends the
    controller.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        sources: Iterable[Source] = (),
        *,
        clock: Clock,
        rng: random.Random,
        concurrency: int = 8,
        lane: Callable[[Request], Hashable] | None = None,
        predicates: Sequence[Predicate] = (),
        queue: WorkQueue[Request] | None = None,
        sync_timeout: float = SYNC_TIMEOUT,
        reconcile_timeout: float | None = None,
        grace: float = GRACE,
        recover: bool = True,
        needs_leader: bool = True,
    ) -> None:
        if concurrency < 1:
            raise ControllerError(f"controller {name}: concurrency is {concurrency}, at least 1 is needed")
        self.name = name
        self.concurrency = concurrency
        self.needs_leader = needs_leader
        self.queue = queue if queue is not None else WorkQueue(clock, lane=lane or _place)
        self.stats = ControllerStats()
        self._reconcile = reconcile
        self._sources = list(sources)
        self._predicates = tuple(predicates)
        self._clock = clock
        self._rng = rng
        self._sync_timeout = sync_timeout
        self._reconcile_timeout = reconcile_timeout
        self._grace = grace
        self._recover = recover
        self._started = False

    def watch(self, source: Source) -> None:
        """Add a source; after the start it begins at once and nothing waits for it."""
        self._sources.append(source)
        if self._started:
            source.start(self.queue, self._predicates)

    async def run(self) -> None:
        """Start the sources, wait until they have synced, then work until cancelled.

        Raises ControllerError when it runs already or a source does not sync in time. When cancelled, nothing new is
        begun and running reconciles get `grace` seconds to end; a second cancellation cancels them at once.
        """
        if self._started:
            raise ControllerError(f"controller {self.name} was started already; make another one instead")
        self._started = True
        try:
            await self._start_sources()
            await self._work()
        finally:
            self.queue.shut_down()

    async def _start_sources(self) -> None:
        for source in self._sources:
            source.start(self.queue, self._predicates)
        for source in self._sources:
            try:
                async with asyncio.timeout(self._sync_timeout):
                    await source.wait_synced()
            except TimeoutError:
                text = f"timed out waiting for cache to be synced for {source}"
                raise ControllerError(f"failed to wait for {self.name} caches to sync {source}: {text}") from None

    async def _work(self) -> None:
        workers = [
            asyncio.create_task(self._worker(), name=f"controller {self.name} worker {number}")
            for number in range(self.concurrency)
        ]
        try:
            done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            for worker in done:
                worker.result()
        finally:
            self.queue.shut_down()
            try:
                await asyncio.wait(workers, timeout=self._grace)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _worker(self) -> None:
        while True:
            try:
                request, priority = await self.queue.get()
            except QueueShutDown:
                return
            try:
                await self._process(request, priority)
            finally:
                self.queue.done(request)

    async def _process(self, request: Request, priority: int) -> None:
        fields = {
            "controller": self.name,
            "namespace": request.namespace,
            "name": request.name,
            "reconcileID": random_uuid(self._rng),
        }
        if request.kind:
            fields["controllerKind"] = request.kind
        with structlog.contextvars.bound_contextvars(**fields):
            self.stats.active += 1
            started = self._clock.monotonic()
            try:
                result = await self._call(request)
            except Exception as error:
                self._fail(request, priority, error)
            else:
                self._settle(request, priority, result or DONE)
            finally:
                self.stats.active -= 1
                self.stats.time.observe(self._clock.monotonic() - started)

    async def _call(self, request: Request) -> Result | None:
        deadline = asyncio.timeout(self._reconcile_timeout)
        try:
            async with deadline:
                return await self._reconcile(request)
        except TimeoutError as error:
            if deadline.expired():
                raise ControllerError(f"reconcile took longer than {self._reconcile_timeout:g} s") from error
            raise
        finally:
            self.stats.timeouts += deadline.expired()

    def _fail(self, request: Request, priority: int, error: Exception) -> None:
        """Count and log a failed reconcile, and ask for the next try unless the error is terminal."""
        self.stats.results["error"] += 1
        self.stats.errors += 1
        terminal = any(isinstance(e, TerminalError) for e in _chain(error))
        if terminal:
            self.stats.terminal += 1
        elif not isinstance(error, LwskitError | OSError):
            # Nothing that a reconcile raises on purpose: a defect, so the traceback is wanted.
            self.stats.panics += 1
            if not self._recover:
                raise error
            log.error("reconcile failed", error=f"panic: {error!r} [recovered]", exc_info=error)
        if terminal or isinstance(error, LwskitError | OSError):
            reason = error.reason if isinstance(error, ApiError) else type(error).__name__
            log.error("reconcile failed", error=str(error), reason=reason, terminal=terminal)
        if not terminal:
            self.queue.add(request, priority, rate_limited=True)

    def _settle(self, request: Request, priority: int, result: Result) -> None:
        """Do what a reconcile that did not fail asks for."""
        priority = priority if result.priority is None else result.priority
        if result.after > 0:
            self.stats.results["requeue_after"] += 1
            self.queue.forget(request)
            self.queue.add(request, priority, after=result.after)
        elif result.requeue:
            self.stats.results["requeue"] += 1
            self.queue.add(request, priority, rate_limited=True)
        else:
            self.stats.results["success"] += 1
            self.queue.forget(request)
        if result.reason:
            log.debug("reconcile asks to run again", reason=result.reason, after=result.after)


def _place(request: Request) -> Hashable:
    return request.key


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, what it was raised from, and the members of groups."""
    yield error
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from _chain(member)
    if error.__cause__ is not None:
        yield from _chain(error.__cause__)
