"""An existing cluster, which is another embedded one over sockets: what a test leaves there, and how it is found."""

import asyncio

import pytest

from lwskit.embedded.cluster import Cluster
from lwskit.embedded.http import serve
from lwskit.runtime.clock import RealClock, real_random
from lwskit.runtime.errors import ConfigurationError, NotFound
from lwskit.runtime.kinds import CONFIG_MAP, NAMESPACE, Kind
from lwskit.testing import fake
from lwskit.testing.cluster import ClusterOptions
from lwskit.testing.manager import running
from lwskit.testing.namespaces import LeftBehind
from lwskit.testing.polling import eventually
from lwskit.testing.provide import kubeconfig, provide

WIDGET = Kind("example.com", "v1", "Widget", "widgets")
FINALIZER = "example.com/f"


@pytest.fixture
async def existing(tmp_path, monkeypatch):
    clock, rng = RealClock(), real_random()
    async with Cluster(clock, rng, nodes=0) as made, serve(made.server, clock=clock, rng=rng) as served:
        with served.kubeconfig(tmp_path / "kubeconfig") as path:
            monkeypatch.setenv("LWSKIT_KUBECONFIG", str(path))
            yield made


class Remover:
    """The part of a controller that removes its finalizer from what is being deleted."""

    def __init__(self, cluster, client, kind):
        self.cluster, self.client, self.kind = cluster, client, kind

    async def run(self):
        while True:
            for obj in await self.cluster.list(self.kind):
                if obj["metadata"].get("deletionTimestamp"):
                    await self.client.patch(self.kind, "x", {"metadata": {"finalizers": None}}, self.cluster.namespace)
            await asyncio.sleep(0.05)


def held(kind, namespace):
    meta = {"name": "x", "namespace": namespace, "finalizers": [FINALIZER, "foregroundDeletion"]}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}


async def a_test(kind, *, removes):
    """A test whose controller has put its finalizer on something; returns the names of its namespaces."""
    # What is never removed is not waited for long; what is, on a busy machine too.
    options = ClusterOptions(timeout=30 if removes else 1)
    async with provide("existing", options, [fake.crd_of(WIDGET)], ()) as cluster:
        async with running(cluster) as manager:
            shop = await cluster.add_namespace("shop", {"kind": "shop"})
            assert (await cluster.client.get(NAMESPACE, shop))["metadata"]["labels"]["kind"] == "shop"
            await manager.client.create(kind, held(kind, cluster.namespace))
            if removes:
                manager.add(Remover(cluster, manager.client, kind))
            await cluster.clear()
        return {cluster.namespace, shop}


@pytest.mark.parametrize("kind", [WIDGET, CONFIG_MAP])
async def test_what_its_manager_must_let_go_goes_before_the_manager_does(existing, kind):
    namespaces = await a_test(kind, removes=True)

    async def gone():
        assert not namespaces & {n["metadata"]["name"] for n in (await existing.client.list(NAMESPACE))["items"]}

    await eventually(gone, 30, 0.05)
    with pytest.raises(NotFound):
        await existing.client.get(NAMESPACE, namespaces.pop())


async def test_what_stays_fails_the_test(existing):
    with pytest.raises(
        LeftBehind, match=r"cannot go: after 1 s configmaps x has the finalizer example\.com/f; let the"
    ):
        await a_test(CONFIG_MAP, removes=False)


def test_where_the_kubeconfig_is():
    assert kubeconfig({"LWSKIT_KUBECONFIG": "/a", "KUBECONFIG": "/b:/c"}) == "/a"
    assert kubeconfig({"KUBECONFIG": "/b"}) == "/b"
    assert kubeconfig({"KUBECONFIG": "/b:/c"}) is None
    with pytest.raises(ConfigurationError, match="set LWSKIT_KUBECONFIG"):
        kubeconfig({})
