"""LeaderWorkerSets on the clusters of the pytest plugin: what a project's `cluster_runnables` names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lwskit.manager import inprocess
from lwskit.manager.options import ElectionOptions, Options
from lwskit.manager.program import FIELD_MANAGER, Program
from lwskit.runtime.client.client import Client
from lwskit.testing.cluster import TestCluster

USER_AGENT = "lws-manager"
OPTIONS = Options(election=ElectionOptions(enabled=False), graceful_timeout=1.0)


@asynccontextmanager
async def manager(cluster: TestCluster) -> AsyncIterator[Program | None]:
    """The manager with its webhooks on a test's embedded cluster, ready when the block begins.

    On a real cluster nothing is run: LeaderWorkerSets are expected to be served there. An error of the manager is
    raised at the end of the block; when cancelled, the manager ends too.
    """
    if not cluster.embedded:
        yield None
        return
    client = Client(await cluster.connect(USER_AGENT), field_manager=FIELD_MANAGER, clock=cluster.clock)
    program = Program(client, OPTIONS, clock=cluster.clock, rng=cluster.rng, hostname="test")
    await inprocess.register(cluster.server, cluster.client, program.admission)
    running = asyncio.create_task(program.run(), name="manager under test")
    elected = asyncio.create_task(program.manager.elected.wait(), name="manager under test: start")
    try:
        await asyncio.wait({running, elected}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        yield program
    finally:
        elected.cancel()
        running.cancel()
        await asyncio.wait({running, elected})
    if not running.cancelled():
        running.result()
