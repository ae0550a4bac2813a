"""Where the clusters of tests come from: one made in this process, or one that a kubeconfig leads to."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from lwskit.embedded.cluster import Cluster
from lwskit.embedded.transport import InProcessTransport
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import connect
from lwskit.runtime.client.transport import Transport
from lwskit.runtime.clock import RealClock, real_random
from lwskit.runtime.errors import ConfigurationError, Conflict, NotFound
from lwskit.runtime.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from lwskit.runtime.objects import is_true
from lwskit.testing.cluster import EMBEDDED, USER_AGENT, ClusterOptions, Crds, Runnable, TestCluster
from lwskit.testing.namespaces import add_namespace
from lwskit.testing.polling import eventually
from lwskit.testing.virtual import VirtualClock

KUBECONFIG = "LWSKIT_KUBECONFIG"
"""The environment variable with the path of a real cluster's kubeconfig; KUBECONFIG counts where it is not set."""
ESTABLISHED = 60.0
"""Seconds that a real API server may take to serve a new kind."""


@asynccontextmanager
async def provide(
    mode: str, options: ClusterOptions, crds: Crds, runnables: Sequence[Runnable]
) -> AsyncIterator[TestCluster]:
    """A cluster with these CRDs, a fresh namespace, and the programs under test running, for the length of the block.

    `mode` is one of `cluster.MODES`. Raises ConfigurationError when a real cluster is asked for and no kubeconfig is
    given. On a real cluster CRDs stay, since other tests may need them; the namespaces are removed while the programs
    still run, and LeftBehind is raised if one cannot go. When the block is cancelled, the same is cleared away.
    """
    make = _embedded if mode == EMBEDDED else _real
    async with make(mode, options, crds) as cluster, cluster.cleanup, AsyncExitStack() as stack:
        for runnable in runnables:
            await stack.enter_async_context(runnable(cluster))
        try:
            yield cluster
        finally:
            await cluster.clear()


@asynccontextmanager
async def _embedded(mode: str, options: ClusterOptions, crds: Crds) -> AsyncIterator[TestCluster]:
    clock, rng = VirtualClock(), random.Random(options.seed)
    async with Cluster(clock, rng, nodes=options.nodes, without=options.without, crds=tuple(crds)) as made:

        async def transport(user_agent: str) -> Transport:
            return InProcessTransport(made.server)

        await add_namespace(made.client, "test", "test")
        yield TestCluster(mode, made.client, clock, rng, "test", options, transport, server=made.server, crds=crds)


@asynccontextmanager
async def _real(mode: str, options: ClusterOptions, crds: Crds) -> AsyncIterator[TestCluster]:
    path = kubeconfig(os.environ)
    clock, rng = RealClock(), real_random()

    async def transport(user_agent: str) -> Transport:
        return (await connect(path, user_agent=user_agent, clock=clock, check=False)).transport

    client = await connect(path, user_agent=USER_AGENT, clock=clock)
    try:
        for crd in crds:
            await _install(client, crd["metadata"]["name"], crd)
        namespace = f"lwskit-{rng.getrandbits(32):08x}"
        await add_namespace(client, namespace, namespace)
        cluster = TestCluster(mode, client, clock, rng, namespace, options, transport, kubeconfig=path or "", crds=crds)
        try:
            yield cluster
        finally:
            for name in cluster.namespaces:
                with suppress(NotFound, Conflict):
                    await client.delete(NAMESPACE, name)
            for interceptor in cluster.interceptors:
                await interceptor.close()
    finally:
        await client.close()


def kubeconfig(environment: Mapping[str, str]) -> str | None:
    """The path of a real cluster's kubeconfig; None where KUBECONFIG lists several files, which are read together.

    Raises ConfigurationError when neither variable is set.
    """
    path = environment.get(KUBECONFIG) or environment.get("KUBECONFIG")
    if not path:
        raise ConfigurationError(f"tests on a real cluster need its kubeconfig: set {KUBECONFIG}")
    return None if not environment.get(KUBECONFIG) and os.pathsep in path else path


async def _install(client: Client, name: str, crd: dict[str, object]) -> None:
    """Bring a CRD and wait until it is served; one that is there already stays as it is."""
    try:
        await client.get(CUSTOM_RESOURCE_DEFINITION, name)
    except NotFound:
        await client.apply(CUSTOM_RESOURCE_DEFINITION, crd, field_manager="lwskit-test")

    async def established() -> bool:
        return is_true(await client.get(CUSTOM_RESOURCE_DEFINITION, name), "Established")

    await eventually(established, ESTABLISHED)
