"""The embedded cluster with our manager on it, as `lwskit demo` and `lwskit up` run it."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lwskit.api.crds import crds
from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.cluster import CONTROLLERS, Cluster
from lwskit.manager import inprocess
from lwskit.manager.options import ElectionOptions, Options
from lwskit.manager.program import Program
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import RealClock, real_random
from lwskit.runtime.gc import GcPolicy

MANAGER = "manager"
PARTS = (*CONTROLLERS, MANAGER)
"""What `--without` may name."""

OPTIONS = Options(election=ElectionOptions(enabled=False), graceful_timeout=1.0)


@dataclass(frozen=True, slots=True)
class Session:
    """A running embedded cluster: its server, and an administrator's client."""

    server: ApiServer
    client: Client


@asynccontextmanager
async def embedded_session(*, nodes: int, without: Collection[str] = (), speed: float = 1.0) -> AsyncIterator[Session]:
    """An embedded cluster with our CRDs and, unless `without` names it, our manager, for the length of the block.

    `speed` divides the kubelet's delays. The webhooks are called in this process. The first error of anything that
    runs cancels the block and is raised at its end, in a group.
    """
    clock, rng = RealClock(), real_random()
    cluster = Cluster(clock, rng, nodes=nodes, without=frozenset(without) - {MANAGER}, crds=crds(), speed=speed)
    async with aclosing_server(cluster.server), cluster, asyncio.TaskGroup() as tasks:
        # Thousands of pods are walked over for seconds by a collector as Python sets it, and nobody is answered then.
        running = [tasks.create_task(GcPolicy(clock).run(), name=GcPolicy.name)]
        if MANAGER not in without:
            hostname = platform.node() or "localhost"
            program = Program(cluster.client_for(), OPTIONS, clock=clock, rng=rng, hostname=hostname)
            await inprocess.register(cluster.server, cluster.client, program.admission)
            running.append(tasks.create_task(program.run(), name=MANAGER))
            await _first(program.manager.elected, running[-1])
        yield Session(cluster.server, cluster.client)
        for task in running:
            task.cancel()


@asynccontextmanager
async def aclosing_server(server: ApiServer) -> AsyncIterator[None]:
    """Close the server's connections to webhooks at the end of the block."""
    try:
        yield
    finally:
        await server.close()


async def _first(event: asyncio.Event, running: asyncio.Task[None]) -> None:
    """Wait for the event, or for the task that should set it to fail."""
    waiting = asyncio.create_task(event.wait(), name="lwskit: start")
    try:
        await asyncio.wait({waiting, running}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        if not waiting.cancel():
            waiting.exception()
