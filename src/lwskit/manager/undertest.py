"""LeaderWorkerSets on the clusters of the pytest plugin: what a project's `cluster_runnables` names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from lwskit.admission.webhooks import handlers
from lwskit.backends.registry import Backends
from lwskit.manager import inprocess
from lwskit.manager.development import CONFIGURATIONS
from lwskit.manager.options import ElectionOptions, Options
from lwskit.manager.program import FIELD_MANAGER, Program
from lwskit.runtime.client.client import Client
from lwskit.testing.cluster import TestCluster
from lwskit.testing.process import Restartable

USER_AGENT = "lws-manager"
GRACE = 10.0
"""Seconds that a pass which is under way at the end of a test may take on a busy machine; it ends once that is done."""
OPTIONS = Options(election=ElectionOptions(enabled=False), graceful_timeout=GRACE)


@asynccontextmanager
async def manager(cluster: TestCluster, *, backends: Backends | None = None) -> AsyncIterator[Program | None]:
    """The manager with its webhooks on a test's embedded cluster, ready when the block begins.

    `backends` says how leaders and workers exist, by default as StatefulSets.

    On a real cluster nothing is run: LeaderWorkerSets are expected to be served there. At the end the webhooks are
    withdrawn, so that another manager can follow. Raises an error of the manager; when cancelled, it ends too.
    """
    if not cluster.embedded:
        yield None
        return
    async with webhooks(cluster), process(cluster, backends=backends) as program:
        yield program


def restartable(backends: Backends | None = None) -> Restartable:
    """The same for tests in which the manager dies and is started anew: its webhooks are served all the time.

    So they are where a second replica waits for its turn as leader. For the embedded cluster.
    """
    return Restartable(partial(process, backends=backends), webhooks)


@asynccontextmanager
async def process(cluster: TestCluster, *, backends: Backends | None = None) -> AsyncIterator[Program]:
    """The manager without its webhooks, ready when the block begins. Raises its error; when cancelled, it ends too."""
    client = Client(await cluster.connect(USER_AGENT), field_manager=FIELD_MANAGER, clock=cluster.clock)
    program = Program(client, OPTIONS, clock=cluster.clock, rng=cluster.rng, hostname="test", backends=backends)
    async with running(program, program.manager.elected):
        yield program


@asynccontextmanager
async def webhooks(cluster: TestCluster) -> AsyncIterator[None]:
    """The manager's webhooks on a test's embedded cluster; they are withdrawn when the block ends.

    Raises AlreadyExists when some are registered there.
    """
    await inprocess.register(cluster.server, cluster.client, handlers(cluster.rng, support=OPTIONS.scheduling))
    try:
        yield
    finally:
        for kind, name in CONFIGURATIONS:
            await cluster.client.delete(kind, name)


@asynccontextmanager
async def running(program: Program, *ready: asyncio.Event) -> AsyncIterator[None]:
    """The program, running for the length of the block, which begins when all these events are set.

    Its own error is raised where it shows first: at the beginning or at the end of the block. When cancelled, the
    program ends too.
    """
    task = asyncio.create_task(program.run(), name="manager under test")
    try:
        for event in ready:
            waiting = asyncio.create_task(event.wait(), name="manager under test: start")
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.cancel():
                waiting.exception()
            if task.done():
                task.result()
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.result()
