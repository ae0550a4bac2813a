"""lwskit's manager as a program under test: in this process, its requests interceptable, its webhooks where they work.

On the embedded cluster the API server calls the webhooks as functions, on a real one over HTTPS on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lwskit.admission import configurations
from lwskit.manager.options import ElectionOptions, Options
from lwskit.manager.program import Program
from lwskit.runtime.client.client import Client
from lwskit.runtime.kinds import MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION
from lwskit.testing.cluster import TestCluster

USER_AGENT = "lws-manager"
OPTIONS = Options(election=ElectionOptions(enabled=False), graceful_timeout=1.0)


@asynccontextmanager
async def manager(cluster: TestCluster) -> AsyncIterator[Program]:
    """The manager on a test's cluster, ready when the block begins. Its failure is raised at the end of the block."""
    client = Client(await cluster.connect(USER_AGENT), clock=cluster.clock)
    program = Program(client, OPTIONS, clock=cluster.clock, rng=cluster.rng, hostname="scenarios")
    async with webhooks(cluster, program):
        running = asyncio.create_task(program.run(), name="manager under test")
        try:
            await _ready(program, running)
            yield program
        finally:
            running.cancel()
            await asyncio.wait({running})
        if not running.cancelled():
            running.result()


async def _ready(program: Program, running: asyncio.Task[None]) -> None:
    elected = asyncio.create_task(program.manager.elected.wait(), name="manager under test: start")
    await asyncio.wait({running, elected}, return_when=asyncio.FIRST_COMPLETED)
    elected.cancel()
    if running.done():
        running.result()


@asynccontextmanager
async def webhooks(cluster: TestCluster, program: Program) -> AsyncIterator[None]:
    """The program's webhooks, registered with the API server for the length of the block."""
    for path, handler in program.admission.items():
        cluster.server.register_admission(f"inprocess://{path}", handler)

    def client_config(path: str) -> dict[str, str]:
        return {"url": f"inprocess://{path}"}

    await cluster.client.create(MUTATING_WEBHOOK_CONFIGURATION, configurations.mutating(client_config))
    await cluster.client.create(VALIDATING_WEBHOOK_CONFIGURATION, configurations.validating(client_config))
    yield
