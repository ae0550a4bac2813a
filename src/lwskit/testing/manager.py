"""The object behind the fixture `manager`: a running manager to which a test adds its controllers."""

from __future__ import annotations

import asyncio
import random
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.delegating import DelegatingClient
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.defects import checked_result
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.events import Recorder
from lwskit.runtime.manager import Manager, ManagerError
from lwskit.runtime.request import Request, Result
from lwskit.runtime.runnable import Group, Runnable
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import Interceptor

USER_AGENT = "lwskit-test-manager"
_INSTEAD = "a test that wants this is marked with defects_expected"
GRACE = 1.0
"""Seconds that controllers have to end when the test does."""


class DefectsFound(AssertionError):
    """Functions that the test's controllers were given raised, or left undone, what they should not."""


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """What the fixture `manager` looks for; a project overrides the fixture `manager_settings` to change it.

    With `defects_fail` the test fails at its end when a reconcile or a handler raised anything but an LwskitError or an
    OSError, or a coroutine was never awaited. With `detect_mutations` it fails when somebody has changed an object that
    the cache shares with everybody.
    """

    defects_fail: bool = True
    detect_mutations: bool = True


@dataclass(frozen=True, slots=True)
class TestManager:
    """A manager that runs, without election, for as long as a test.

    `client` is live, `cached` reads from `cache`, and `recorder` records events; all go through `interceptor`, where
    their requests are recorded and can be disturbed. `manager` is the manager itself.
    """

    __test__ = False

    manager: Manager
    client: Client
    cached: DelegatingClient
    cache: Cache
    recorder: Recorder
    interceptor: Interceptor
    clock: Clock
    rng: random.Random
    _controllers: list[Controller] = field(default_factory=list)
    _first: dict[str, Exception] = field(default_factory=dict)
    _forgotten: list[str] = field(default_factory=list)

    def add(self, runnable: Runnable, group: Group | None = None) -> None:
        """Start a controller, or anything else that runs, at once (`Manager.add`)."""
        self.manager.add(runnable, group)
        if isinstance(runnable, Controller):
            self._watch(runnable)

    async def synced(self) -> None:
        """Wait until every informer known now has its first list. Cancelling it only ends the wait.

        Raises ManagerError when the manager has ended, so that there will be none.
        """
        await self.manager.until(self.cache.wait_synced())

    def check(self) -> None:
        """Raise DefectsFound if functions of the controllers did what they should not; only added ones are known."""
        __tracebackhide__ = True
        for controller in self._controllers:
            if controller.stats.panics:
                first = self._first.get(controller.name)
                why = f"first by {first!r}" if first is not None else "see the log for why"
                times = "once" if controller.stats.panics == 1 else f"{controller.stats.panics} times"
                text = f"functions of controller {controller.name} failed {times} while the test ran, {why}"
                raise DefectsFound(f"{text}; {_INSTEAD}") from first
        if self._forgotten:
            raise DefectsFound(f"{self._forgotten[0]}; await it. {_INSTEAD.capitalize()}")

    def check_mutations(self) -> None:
        """Raise CachedObjectChanged if somebody has changed an object of the cache and it was not found out yet."""
        __tracebackhide__ = True
        for informer in self.cache.informers():
            informer.check_mutations()

    def _watch(self, controller: Controller) -> None:
        """Keep the first defect of a controller's reconcile: the controller itself only counts and logs them."""
        self._controllers.append(controller)
        inner = controller._reconcile

        async def reconcile(request: Request) -> Result | None:
            try:
                return checked_result(await inner(request), controller.name)
            except Exception as error:
                if not isinstance(error, LwskitError | OSError):
                    self._first.setdefault(controller.name, error)
                raise

        controller._reconcile = reconcile


@contextmanager
def _never_awaited(found: list[str]) -> Iterator[None]:
    """Inside the block note what Python says of coroutines that nobody awaited; it is said as before, too."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], filename: str, line: int, *more: Any) -> None:
        if issubclass(category, RuntimeWarning) and "was never awaited" in str(message):
            found.append(f"{message} ({filename.rpartition('/')[2]}:{line})")
        before(message, category, filename, line, *more)

    warnings.showwarning = show
    try:
        yield
    finally:
        if warnings.showwarning is show:
            warnings.showwarning = before


@asynccontextmanager
async def running(cluster: TestCluster, settings: ManagerSettings | None = None) -> AsyncIterator[TestManager]:
    """A manager of its own on a test's cluster, running for the length of the block.

    At the end everything is stopped in order, and the error of whatever failed is raised: a controller that died fails
    its test, and so do defects as `settings` say. When cancelled, the manager stops too.
    """
    __tracebackhide__ = True
    settings = settings or ManagerSettings()
    interceptor = await cluster.connect(USER_AGENT)
    clock, rng = cluster.clock, cluster.rng
    client = Client(interceptor, field_manager=USER_AGENT, clock=clock)
    cache = Cache(client, clock, rng, detect_mutations=settings.detect_mutations)
    recorder = Recorder(client, clock, USER_AGENT, f"{USER_AGENT}-0", rng)
    manager = Manager(clock, rng, graceful_timeout=GRACE)
    manager.add(recorder)
    manager.add(cache)
    made = TestManager(manager, client, DelegatingClient(client, cache), cache, recorder, interceptor, clock, rng)
    task = asyncio.create_task(manager.run(), name="manager under test")
    try:
        try:
            await manager.elected.wait()
        except ManagerError:
            # Why it ended is raised below.
            await asyncio.wait({task})
        else:
            with _never_awaited(made._forgotten):
                yield made
            if not task.done():
                made.check_mutations()
    finally:
        manager.stop()
        await asyncio.wait({task})
    task.result()
    if settings.defects_fail:
        made.check()
