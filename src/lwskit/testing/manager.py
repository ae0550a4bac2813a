"""The object behind the fixture `manager`: a running manager to which a test adds its controllers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.delegating import DelegatingClient
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.events import Recorder
from lwskit.runtime.manager import Manager, ManagerError
from lwskit.runtime.runnable import Group, Runnable
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import Interceptor

USER_AGENT = "lwskit-test-manager"
GRACE = 1.0
"""Seconds that controllers have to end when the test does."""


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

    def add(self, runnable: Runnable, group: Group | None = None) -> None:
        """Start a controller, or anything else that runs, at once (`Manager.add`)."""
        self.manager.add(runnable, group)

    async def synced(self) -> None:
        """Wait until every informer known now has its first list. Cancelling it only ends the wait.

        Raises ManagerError when the manager has ended, so that there will be none.
        """
        await self.manager.until(self.cache.wait_synced())


@asynccontextmanager
async def running(cluster: TestCluster) -> AsyncIterator[TestManager]:
    """A manager of its own on a test's cluster, running for the length of the block.

    At the end everything is stopped in order, and the error of whatever failed is raised: a controller that died fails
    its test. When cancelled, the manager stops too.
    """
    interceptor = await cluster.connect(USER_AGENT)
    clock, rng = cluster.clock, cluster.rng
    client = Client(interceptor, field_manager=USER_AGENT, clock=clock)
    cache = Cache(client, clock, rng)
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
            yield made
    finally:
        manager.stop()
        await asyncio.wait({task})
    task.result()
