"""lwskit's manager as a program under test: in this process, its requests interceptable, its webhooks where they work.

On the embedded cluster the API server calls the webhooks as functions, on a real one over HTTPS: on 127.0.0.1, or on
the address in LWSKIT_WEBHOOK_HOST where the API server runs elsewhere.
"""

from __future__ import annotations

import ipaddress
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from lwskit.backends.registry import Backends
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.manager import development, undertest
from lwskit.manager.program import FIELD_MANAGER, Program
from lwskit.manager.servers import webhook_server
from lwskit.runtime.certs import make_ca, make_server_cert
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import ConnectionFailed
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj
from lwskit.runtime.tls import TlsFiles
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import set_object

LOCAL = "127.0.0.1"
HOST = os.environ.get("LWSKIT_WEBHOOK_HOST") or LOCAL
COLLECTOR = 120.0
"""Seconds that a real garbage collector may take to learn of a new kind."""

DIED = ConnectionFailed("the manager has died")

_collects: set[tuple[str, Kind]] = set()
"""Clusters, and kinds that their garbage collector is known to collect for."""


@asynccontextmanager
async def manager(cluster: TestCluster, *, backends: Backends | None = None) -> AsyncIterator[Program]:
    """The manager on a test's cluster, ready when the block begins. Its failure is raised at the end of the block."""
    if cluster.embedded:
        async with undertest.manager(cluster, backends=backends) as program:
            assert program is not None
            yield program
        return
    client = Client(await cluster.connect(undertest.USER_AGENT), field_manager=FIELD_MANAGER, clock=cluster.clock)
    clock, rng = cluster.clock, cluster.rng
    program = Program(client, undertest.OPTIONS, clock=clock, rng=rng, hostname="scenarios", backends=backends)
    try:
        async with _over_https(cluster, program):
            yield program
    finally:
        await client.close()


def dies_after(count: int) -> Callable[[HttpRequest], bool]:
    """Matches every write after the first `count` ones."""
    seen = 0

    def matches(request: HttpRequest) -> bool:
        nonlocal seen
        if request.method == "GET":
            return False
        seen += 1
        return seen > count

    return matches


@asynccontextmanager
async def _over_https(cluster: TestCluster, program: Program) -> AsyncIterator[None]:
    with tempfile.TemporaryDirectory(prefix="lwskit-scenarios-") as folder:
        files = TlsFiles.in_folder(Path(folder))
        authority = _certify(cluster, files)
        server = webhook_server(program, files, cluster.clock, LOCAL if HOST == LOCAL else "", 0)

        def endpoint() -> development.Endpoint:
            return development.Endpoint(f"https://{HOST}:{server.port}", authority)

        program.manager.add(development.Registration(cluster.client, endpoint, server.serving, cluster.clock))
        await development.cleanup(cluster.client)
        async with undertest.running(program, program.manager.elected):
            await await_collector(cluster, LEADER_WORKER_SET, set_object("probe", replicas=0))
            yield


def _certify(cluster: TestCluster, files: TlsFiles) -> bytes:
    """Write a certificate for the webhooks; returns the CA that signed it, as PEM."""
    now = cluster.clock.now()
    ca = make_ca(now, cluster.rng)
    names, addresses = ([], [HOST]) if _is_address(HOST) else ([HOST], [])
    certificate = make_server_cert(ca, names, addresses, now, cluster.rng)
    files.cert.write_bytes(certificate.cert_pem)
    files.key.write_bytes(certificate.key_pem)
    return ca.cert_pem


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def await_collector(cluster: TestCluster, kind: Kind, probe: Obj) -> None:
    """Wait, once for each cluster and kind, until the garbage collector finishes a foreground deletion of `probe`."""
    if cluster.embedded or (cluster.kubeconfig, kind) in _collects:
        return
    name = probe["metadata"]["name"]
    await cluster.create(kind, probe)
    await cluster.delete(kind, name, "Foreground")
    await cluster.eventually(lambda: cluster.gone(kind, name), COLLECTOR)
    _collects.add((cluster.kubeconfig, kind))
    for interceptor in cluster.interceptors:
        interceptor.requests.clear()
