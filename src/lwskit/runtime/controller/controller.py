"""A controller: sources fill its queue, workers reconcile what it gives out (specification: 70 §5)."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import structlog

from lwskit.runtime.clock import Clock, random_uuid
from lwskit.runtime.controller.defects import Defect, Lanes, checked_result, reconcile_problem
from lwskit.runtime.controller.options import ControllerDefaults
from lwskit.runtime.controller.predicate import Predicate
from lwskit.runtime.controller.source import Source
from lwskit.runtime.errors import ApiError, LwskitError, TerminalError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.plain_queue import PlainQueue
from lwskit.runtime.queue import QueueShutDown, WorkQueue
from lwskit.runtime.queue_base import BaseQueue
from lwskit.runtime.request import DONE, Request, Result
from lwskit.runtime.stats import Histogram
from lwskit.runtime.tasks import TaskCancelled, TaskOwner

log = structlog.get_logger(__name__)

Reconcile = Callable[[Request], Awaitable[Result | None]]
"""Looks at what a request names and makes it as it should be; None means the same as DONE."""

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

    `kind` is what it is for, told in logs. `concurrency` is how many requests are worked on at once, `grace` how many
    seconds running reconciles get after a cancellation. The other options are those of ControllerDefaults; where they
    are None the manager's defaults hold, and without a manager those of ControllerDefaults itself.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        sources: Iterable[Source] = (),
        *,
        clock: Clock,
        rng: random.Random,
        kind: Kind | None = None,
        concurrency: int | None = None,
        lane: Callable[[Request], Hashable] | None = None,
        predicates: Sequence[Predicate] = (),
        queue: BaseQueue[Request] | None = None,
        sync_timeout: float | None = None,
        reconcile_timeout: float | None = None,
        grace: float = GRACE,
        recover: bool | None = None,
        needs_leader: bool | None = None,
        warm_up: bool | None = None,
        priorities: bool | None = None,
        debounce: float | None = None,
        unique_name: bool | None = None,
    ) -> None:
        if concurrency is not None and concurrency < 1:
            raise ControllerError(f"controller {name}: concurrency is {concurrency}, at least 1 is needed")
        if problem := reconcile_problem(reconcile):
            raise ControllerError(f"controller {name}: {problem}")
        self.name = name
        self.kind = kind
        self.stats = ControllerStats()
        self._reconcile = reconcile
        self._sources = list(sources)
        self._predicates = tuple(predicates)
        self._clock = clock
        self._rng = rng
        self._lane = _place if lane is None else Lanes(lane, name, self._on_defect)
        self._queue = queue
        self._grace = grace
        self._concurrency = concurrency
        self._own = {
            "sync_timeout": sync_timeout,
            "reconcile_timeout": reconcile_timeout,
            "recover": recover,
            "needs_leader": needs_leader,
            "warm_up": warm_up,
            "priorities": priorities,
            "debounce": debounce,
            "unique_names": unique_name,
        }
        self._started = False
        self._syncing = asyncio.Lock()
        self._synced = False
        self.use_defaults(ControllerDefaults())

    def use_defaults(self, defaults: ControllerDefaults) -> None:
        """Take over what this controller was not given itself. Raises ControllerError once it runs."""
        if self._started:
            raise ControllerError(f"controller {self.name} was started already; its options stay as they are")
        self._options = replace(defaults, **{name: value for name, value in self._own.items() if value is not None})

    @property
    def concurrency(self) -> int:
        """How many requests are worked on at once."""
        return self._options.concurrency_of(self.kind) if self._concurrency is None else self._concurrency

    @property
    def needs_leader(self) -> bool:
        """Whether it runs only while this process leads."""
        return self._options.needs_leader

    @property
    def wants_warm_up(self) -> bool:
        """Whether its sources are to be started before this process leads."""
        return self._options.warm_up and self._options.needs_leader

    @property
    def wants_unique_name(self) -> bool:
        """Whether a manager must refuse another controller of this name."""
        return self._options.unique_names

    @property
    def queue(self) -> BaseQueue[Request]:
        """The requests that wait. Made on first use, with the options of that moment."""
        if self._queue is None:
            if self._options.priorities:
                self._queue = WorkQueue(self._clock, lane=self._lane, debounce=self._options.debounce)
            else:
                self._queue = PlainQueue(self._clock, lane=self._lane)
            self._queue.on_defect = self._on_defect
        return self._queue

    def watch(self, source: Source) -> None:
        """Add a source; after the start it begins at once and nothing waits for it."""
        self._sources.append(source)
        if self._started or self._synced:
            source.start(self.queue, self._predicates)

    async def warm_up(self) -> None:
        """Start the sources and return once they have synced; requests wait in the queue until `run`.

        Does nothing the second time, and `run` does not do it again. Raises ControllerError when a source does not
        sync in time. When cancelled, `run` begins anew.
        """
        async with self._syncing:
            if not self._synced:
                await self._start_sources()
                self._synced = True

    async def run(self) -> None:
        """Start the sources, wait until they have synced, then work until cancelled.

        Raises ControllerError when it runs already or a source does not sync in time. When cancelled, nothing new is
        begun and running reconciles get `grace` seconds to end; a second cancellation cancels them at once.
        """
        if self._started:
            raise ControllerError(f"controller {self.name} was started already; make another one instead")
        self._started = True
        try:
            await self.warm_up()
            await self._work()
        finally:
            self.queue.shut_down()

    async def _start_sources(self) -> None:
        async with TaskOwner(f"controller {self.name}") as tasks:
            for source in [*self._sources]:
                began = self._clock.monotonic()
                source.start(self.queue, self._predicates)
                if self._clock.monotonic() - began > self._options.sync_timeout:
                    raise ControllerError(
                        f"controller {self.name}: starting {source} took longer than {self._options.sync_timeout:g} s; "
                        "start() must return at once, and wait_synced() may wait"
                    )
                tasks.start(self._wait_synced(source), f"sync of {source}")

    async def _wait_synced(self, source: Source) -> None:
        try:
            async with asyncio.timeout(_limit(self._options.sync_timeout)):
                await source.wait_synced()
        except TimeoutError:
            text = f"timed out waiting for cache to be synced for {source}"
            why = getattr(source, "last_error", None)
            hint = f" ({why})" if why else ""
            raise ControllerError(f"failed to wait for {self.name} caches to sync {source}: {text}{hint}") from None

    async def _work(self) -> None:
        log.info("controller started", controller=self.name, workers=self.concurrency)
        workers = {
            asyncio.create_task(self._worker(), name=f"controller {self.name} worker {number}")
            for number in range(self.concurrency)
        }
        try:
            working = set(workers)
            while working:
                done, working = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
                for worker in done:
                    if worker.cancelled():
                        raise TaskCancelled(worker.get_name())
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
            # A reconcile that never waits gives nobody else a turn: watches, webhooks, the renewal of the Lease.
            await asyncio.sleep(0)

    async def _process(self, request: Request, priority: int) -> None:
        with structlog.contextvars.bound_contextvars(**self._log_fields(request)):
            self.stats.active += 1
            started = self._clock.monotonic()
            try:
                result = checked_result(await self._call(request), self.name) or DONE
            except asyncio.CancelledError as error:
                worker = asyncio.current_task()
                if worker is None or worker.cancelling():
                    raise
                # Nobody cancelled this worker: the reconcile waited for something that was cancelled.
                text = f"reconcile of controller {self.name} was cancelled, but not by the controller"
                defect = Defect(f"{text}: it waited for a task or future that somebody else cancelled")
                defect.__cause__ = error
                self._fail(request, priority, defect)
            except Exception as error:
                self._fail(request, priority, error)
            else:
                if result.error is not None:
                    if result.requeue or result.after > 0:
                        log.warning("a reconcile that fails is retried with back-off; when else it asks for is ignored")
                    self._fail(request, _priority(priority, result), result.error)
                else:
                    self._settle(request, _priority(priority, result), result)
            finally:
                self.stats.active -= 1
                self.stats.time.observe(self._clock.monotonic() - started)

    def _log_fields(self, request: Request) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "controller": self.name,
            "namespace": request.namespace,
            "name": request.name,
            "reconcileID": random_uuid(self._rng),
        }
        if self.kind is not None:
            fields["controllerGroup"] = self.kind.group
        kind = request.kind or (self.kind.kind if self.kind else "")
        if kind:
            fields["controllerKind"] = kind
            fields[kind] = {"namespace": request.namespace, "name": request.name}
        return fields

    async def _call(self, request: Request) -> Result | None:
        deadline = asyncio.timeout(_limit(self._options.reconcile_timeout))
        try:
            async with deadline:
                return await self._reconcile(request)
        except TimeoutError as error:
            if deadline.expired():
                raise ControllerError(f"reconcile took longer than {self._options.reconcile_timeout:g} s") from error
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
            if not self._options.recover:
                raise error
            _log_panic("reconcile failed", error)
        if terminal or isinstance(error, LwskitError | OSError):
            reason = error.reason if isinstance(error, ApiError) else type(error).__name__
            log.error("reconcile failed", error=_text(error), reason=reason, terminal=terminal)
        if not terminal:
            self.queue.add(request, priority, rate_limited=True)

    def _on_defect(self, error: Exception) -> None:
        """Count and log what a handler, a predicate or the lane did wrong; nothing else suffers from it."""
        if isinstance(error, LwskitError | OSError):
            log.error("a function of the controller failed", controller=self.name, error=_text(error))
            return
        self.stats.panics += 1
        _log_panic("a function of the controller failed", error, controller=self.name)

    def _settle(self, request: Request, priority: int, result: Result) -> None:
        """Do what a reconcile that did not fail asks for."""
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


def _priority(taken: int, result: Result) -> int:
    """The priority of the next try: that of this one unless the result has its own."""
    return taken if result.priority is None else result.priority


def _limit(seconds: float) -> float | None:
    return None if math.isinf(seconds) else seconds


def _place(request: Request) -> Hashable:
    return request.key


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, what it was raised from, and the members of groups, each once: causes may form a circle."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        if isinstance(found, BaseExceptionGroup):
            waiting.extend(found.exceptions)
        if found.__cause__ is not None:
            waiting.append(found.__cause__)


def _log_panic(what: str, error: Exception, **fields: Any) -> None:
    """Log a defect: with its traceback, unless its text says already which function did what."""
    if isinstance(error, Defect):
        log.error(what, error=f"panic: {error} [recovered]", **fields)
    else:
        log.error(what, error=f"panic: {_text(error, repr)} [recovered]", exc_info=_printable(error), **fields)


def _text(error: BaseException, form: Callable[[object], str] = str) -> str:
    """The error in words, also if its own method for that fails."""
    try:
        return form(error)
    except Exception as problem:
        return f"{type(error).__name__} (its text cannot be read: {type(problem).__name__})"


def _printable(error: Exception) -> Exception | None:
    """The error if its traceback can be printed."""
    try:
        str(error)
    except Exception:
        return None
    return error
