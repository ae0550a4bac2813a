"""The whole program, explored: whenever it dies and whatever goes wrong, the same objects are there at the end."""

import asyncio
from contextlib import asynccontextmanager

import greeter
import pytest
from greeter import GREETING

from lwskit.runtime.cache.delegating import DelegatingClient
from lwskit.runtime.client.client import Client
from lwskit.runtime.controller_manager import ControllerManager
from lwskit.runtime.kinds import CONFIG_MAP
from lwskit.runtime.manager_options import ManagerOptions


@asynccontextmanager
async def program(cluster):
    client = Client(await cluster.connect("greeter"), clock=cluster.clock)
    options = ManagerOptions(name="greeter")
    manager = ControllerManager(client, options, clock=cluster.clock, rng=cluster.rng)
    cached = DelegatingClient(manager.client, manager.cache)
    manager.add(greeter.controller(cached, manager.cache, manager.clock, manager.rng))
    task = asyncio.create_task(manager.run(), name="greeter")
    try:
        await manager.elected.wait()
        yield manager
    finally:
        manager.stop()
        await task


@pytest.fixture
def cluster_runnables():
    return [program]


async def a_life(cluster):
    await cluster.create(GREETING, {"metadata": {"name": "g"}, "spec": {"name": "Ada"}})
    await cluster.clock.sleep(60)
    await cluster.patch(GREETING, "g", {"spec": {"name": "Grace"}})
    await cluster.clock.sleep(60)
    await cluster.delete(CONFIG_MAP, "g")


def test_every_crash(explore):
    report = explore(a_life)
    assert report.writes == 6


async def test_the_text_is_written(cluster):
    await cluster.create(GREETING, {"metadata": {"name": "g"}, "spec": {"name": "Ada"}})

    async def written():
        assert (await cluster.get(CONFIG_MAP, "g"))["data"] == {"text": "Hello, Ada!"}

    await cluster.eventually(written)
