"""lwskit's manager as a program under test: in this process, its requests interceptable, its webhooks where they work.

On the embedded cluster the API server calls the webhooks as functions, on a real one over HTTPS on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.manager import development, inprocess
from lwskit.manager.options import ElectionOptions, Options
from lwskit.manager.program import FIELD_MANAGER, Program
from lwskit.manager.servers import webhook_server
from lwskit.runtime.certs import make_ca, make_server_cert
from lwskit.runtime.client.client import Client
from lwskit.runtime.tls import TlsFiles
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import set_object

USER_AGENT = "lws-manager"
OPTIONS = Options(election=ElectionOptions(enabled=False), graceful_timeout=1.0)
ADDRESS = "127.0.0.1"
COLLECTOR = 120.0
"""Seconds that a real garbage collector may take to learn of a new kind."""

_collects: set[str] = set()
"""Clusters whose garbage collector is known to collect for sets."""


@asynccontextmanager
async def manager(cluster: TestCluster) -> AsyncIterator[Program]:
    """The manager on a test's cluster, ready when the block begins. Its failure is raised at the end of the block."""
    client = Client(await cluster.connect(USER_AGENT), field_manager=FIELD_MANAGER, clock=cluster.clock)
    program = Program(client, OPTIONS, clock=cluster.clock, rng=cluster.rng, hostname="scenarios")
    run = _in_process if cluster.embedded else _over_https
    try:
        async with run(cluster, program):
            yield program
    finally:
        await client.close()


@asynccontextmanager
async def _in_process(cluster: TestCluster, program: Program) -> AsyncIterator[None]:
    await inprocess.register(cluster.server, cluster.client, program.admission)
    try:
        async with _running(program, program.manager.elected):
            yield
    finally:
        for kind, name in development.CONFIGURATIONS:
            await cluster.client.delete(kind, name)


@asynccontextmanager
async def _over_https(cluster: TestCluster, program: Program) -> AsyncIterator[None]:
    with tempfile.TemporaryDirectory(prefix="lwskit-scenarios-") as folder:
        files = TlsFiles.in_folder(Path(folder))
        authority = _certify(cluster, files)
        server = webhook_server(program, files, cluster.clock, ADDRESS, 0)
        async with _running(program, program.manager.elected, server.serving):
            endpoint = development.Endpoint(f"https://{ADDRESS}:{server.port}", authority)
            await development.cleanup(cluster.client)
            async with development.registered(cluster.client, endpoint, cluster.clock):
                await _await_collector(cluster)
                yield


def _certify(cluster: TestCluster, files: TlsFiles) -> bytes:
    """Write a certificate for the webhooks; returns the CA that signed it, as PEM."""
    now = cluster.clock.now()
    ca = make_ca(now, cluster.rng)
    certificate = make_server_cert(ca, [], [ADDRESS], now, cluster.rng)
    files.cert.write_bytes(certificate.cert_pem)
    files.key.write_bytes(certificate.key_pem)
    return ca.cert_pem


@asynccontextmanager
async def _running(program: Program, *ready: asyncio.Event) -> AsyncIterator[None]:
    running = asyncio.create_task(program.run(), name="manager under test")
    try:
        for event in ready:
            waiting = asyncio.create_task(event.wait(), name="manager under test: start")
            await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if running.done():
                running.result()
        yield
    finally:
        running.cancel()
        await asyncio.wait({running})
    if not running.cancelled():
        running.result()


async def _await_collector(cluster: TestCluster) -> None:
    """Wait, once for each cluster, until a foreground deletion of a set is finished by the garbage collector."""
    if cluster.kubeconfig in _collects:
        return
    await cluster.create(LEADER_WORKER_SET, set_object("probe", replicas=0))
    await cluster.delete(LEADER_WORKER_SET, "probe", "Foreground")
    await cluster.eventually(lambda: cluster.gone(LEADER_WORKER_SET, "probe"), COLLECTOR)
    _collects.add(cluster.kubeconfig)
