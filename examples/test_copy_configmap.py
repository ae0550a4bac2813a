"""Tests of the controller, without a cluster: python -m pytest test_copy_configmap.py"""

from __future__ import annotations

import pytest
from copy_configmap import LABEL, SOURCE, Copier, controller

from lwskit.runtime.kinds import CONFIG_MAP, NAMESPACE
from lwskit.runtime.objects import Key, Obj
from lwskit.runtime.request import Request
from lwskit.testing import fake
from lwskit.testing.cluster import TestCluster
from lwskit.testing.manager import TestManager


def config_map(namespace: str, **data: str) -> Obj:
    """A ConfigMap of the source's name."""
    meta = {"name": SOURCE.name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def namespace(name: str, **labels: str) -> Obj:
    """A namespace with labels."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


async def test_one_reconcile_copies_and_the_next_has_nothing_to_do() -> None:
    """The function alone, on a client that needs no cluster; its requests are on record."""
    client = fake.client([namespace("shop", **{LABEL: "true"}), config_map("company", ca="secret")])
    await Copier(client)(Request("", "shop"))
    assert (await client.get(CONFIG_MAP, "ca", "shop"))["data"] == {"ca": "secret"}
    before = len(client.interceptor.requests)
    await Copier(client)(Request("", "shop"))
    assert {r.verb for r in client.interceptor.requests[before:]} == {"get"}


async def test_what_somebody_else_wrote_is_left_alone() -> None:
    """A ConfigMap of that name without the mark is not ours to change."""
    theirs = config_map("shop", ca="ours")
    client = fake.client([namespace("shop", **{LABEL: "true"}), config_map("company", ca="secret"), theirs])
    await Copier(client)(Request("", "shop"))
    assert (await client.get(CONFIG_MAP, "ca", "shop"))["data"] == {"ca": "ours"}


@pytest.fixture
async def source(cluster: TestCluster) -> Key:
    """The source, in a namespace that goes when the test ends."""
    company = await cluster.add_namespace("company")
    await cluster.client.create(CONFIG_MAP, config_map(company, ca="one"))
    return Key(company, SOURCE.name)


@pytest.fixture
async def running(cluster: TestCluster, manager: TestManager, source: Key) -> TestManager:
    """The controller at work, and one namespace that wants the copy."""
    manager.add(controller(manager.cached, manager.cache, manager.clock, manager.rng, source))
    await cluster.client.patch(NAMESPACE, cluster.namespace, {"metadata": {"labels": {LABEL: "true"}}})
    await copied(cluster, "one")
    return manager


async def copied(cluster: TestCluster, text: str) -> None:
    """Wait until the copy says this."""

    async def there() -> None:
        assert (await cluster.get(CONFIG_MAP, "ca"))["data"] == {"ca": text}

    await cluster.eventually(there)


async def test_the_copy_follows_the_source_and_the_label(
    cluster: TestCluster, running: TestManager, source: Key
) -> None:
    """The whole controller, on a cluster."""
    await cluster.client.patch(CONFIG_MAP, source.name, {"data": {"ca": "two"}}, source.namespace)
    await copied(cluster, "two")
    await cluster.patch(CONFIG_MAP, "ca", {"data": {"ca": "spoilt"}})
    await copied(cluster, "two")
    await cluster.client.patch(NAMESPACE, cluster.namespace, {"metadata": {"labels": {LABEL: None}}})
    await cluster.eventually(lambda: cluster.gone(CONFIG_MAP, "ca"))


@pytest.mark.virtual_only("an hour would pass")
async def test_it_catches_up_after_a_broken_connection(cluster: TestCluster, running: TestManager, source: Key) -> None:
    """An hour without news: what happened meanwhile is made good."""
    with running.interceptor.watches_down():
        await cluster.client.delete(CONFIG_MAP, source.name, source.namespace)
        await cluster.clock.sleep(3600)
    await cluster.eventually(lambda: cluster.gone(CONFIG_MAP, "ca"))
