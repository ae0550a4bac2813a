"""Tests that need no cluster and no time: with a fake client, and with a whole embedded cluster."""

import asyncio
from datetime import timedelta

import greeter
import pytest
from greeter import GREETING, Greeter

from lwskit.runtime.errors import AlreadyExists, Conflict, Forbidden
from lwskit.runtime.kinds import CONFIG_MAP
from lwskit.runtime.request import Request
from lwskit.testing import fake
from lwskit.testing.clock import FakeClock
from lwskit.testing.compare import assert_equal_objects
from lwskit.testing.interceptors import matching
from lwskit.testing.virtual import EPOCH

REQUEST = Request("t", "g")


def greeting(name="Ada", **meta):
    return {
        "apiVersion": "greeter.example/v1",
        "kind": "Greeting",
        "metadata": {"name": "g", "namespace": "t", **meta},
        "spec": {"name": name},
    }


async def test_one_reconcile_on_a_fake_client():
    clock = FakeClock()
    client = fake.client([greeting(uid="u-1")], kinds=[GREETING], clock=clock)
    await clock.advance(60)
    await Greeter(client, clock)(REQUEST)
    assert_equal_objects(
        await client.get(CONFIG_MAP, "g", "t"),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "g", "namespace": "t", "ownerReferences": []},
            "data": {"text": "Hello, Ada!"},
        },
        ignore=["metadata.ownerReferences"],
    )
    assert client.objects(GREETING)[0]["status"] == {"writtenAt": "2026-01-01T00:01:00Z"}
    assert [r.verb for r in client.interceptor.requests[:5]] == ["get", "get", "create", "get", "patch"]
    writes = len(client.interceptor.requests)
    await Greeter(client, clock)(REQUEST)
    assert [r.verb for r in client.interceptor.requests[writes:]] == ["get", "get"]


async def test_an_error_of_the_server_surfaces():
    client = fake.client([greeting()], kinds=[GREETING])
    client.interceptor.fail(matching("POST"), Conflict("busy"))
    with pytest.raises(Conflict, match="busy"):
        await Greeter(client, FakeClock())(REQUEST)


async def test_a_reader_that_is_behind_makes_nothing_twice():
    client = fake.client([greeting()], kinds=[GREETING])
    async with client.interceptor.stale_reads(matching(path="configmaps")):
        await Greeter(client, FakeClock())(REQUEST)
        with pytest.raises(AlreadyExists):
            await Greeter(client, FakeClock())(REQUEST)
    await Greeter(client, FakeClock())(REQUEST)
    assert len(client.objects(CONFIG_MAP)) == 1


@pytest.fixture
async def running(cluster, manager):
    manager.add(greeter.controller(manager.cached, manager.cache, manager.clock, manager.rng))
    await manager.synced()
    await cluster.create(GREETING, {"metadata": {"name": "g"}, "spec": {"name": "Ada"}})
    return manager


async def test_the_controller_writes_repairs_and_leaves_nothing_behind(cluster, running, client):
    async def written():
        assert (await cluster.get(CONFIG_MAP, "g"))["data"] == {"text": "Hello, Ada!"}
        assert (await cluster.get(GREETING, "g"))["status"]["writtenAt"]

    await cluster.eventually(written)
    await client.delete(CONFIG_MAP, "g", cluster.namespace)
    await cluster.eventually(written)
    running.interceptor.cut_watches()
    await cluster.patch(CONFIG_MAP, "g", {"data": {"text": "Bye"}})
    await cluster.eventually(written)
    await cluster.settled(CONFIG_MAP, GREETING)
    await cluster.delete(GREETING, "g")
    await cluster.eventually(lambda: cluster.gone(CONFIG_MAP, "g"))


async def test_a_greeting_has_a_name(cluster):
    hook = await cluster.webhook(GREETING, mutate=greeter.defaults, validate=greeter.validation)
    assert (await cluster.create(GREETING, {"metadata": {"name": "g"}, "spec": {}}))["spec"] == {"name": "world"}
    with pytest.raises(Forbidden, match=r"spec\.name is empty"):
        await cluster.create(GREETING, {"metadata": {"name": "h"}, "spec": {"name": ""}})
    assert [request["operation"] for request in hook.requests] == ["CREATE"] * 4


@pytest.mark.virtual_only("an hour would pass")
async def test_it_goes_on_after_an_hour_without_a_server(cluster, running):
    with running.interceptor.watches_down():
        await cluster.patch(GREETING, "g", {"spec": {"name": "Grace"}})
        await cluster.clock.sleep(3600)

    async def written():
        assert (await cluster.get(CONFIG_MAP, "g"))["data"] == {"text": "Hello, Grace!"}

    await cluster.eventually(written)
    await cluster.consistently(written)


async def test_time_costs_nothing(clock):
    await clock.sleep(86_000)
    assert clock.now() == EPOCH + timedelta(seconds=86_000)
    assert asyncio.get_running_loop().time() == 86_000
