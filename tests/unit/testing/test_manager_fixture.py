"""The fixture `manager`: controllers that a test adds, on the cluster of the test."""

from __future__ import annotations

import pytest

from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.kinds import CONFIG_MAP
from lwskit.runtime.objects import ref_of
from lwskit.runtime.plan import Event
from lwskit.runtime.request import Request
from lwskit.testing.cluster import TestCluster
from lwskit.testing.manager import TestManager, running


def marker(manager: TestManager) -> Builder:
    """Marks every ConfigMap that has data."""

    async def reconcile(request: Request) -> None:
        obj = await manager.cached.get(CONFIG_MAP, request.name, request.namespace)
        if obj.get("data") and "seen" not in obj["data"]:
            await manager.cached.patch(CONFIG_MAP, request.name, {"data": {"seen": "yes"}}, request.namespace)
            manager.recorder.event(Event(ref_of(obj, CONFIG_MAP), "Seen", "Mark", "marked"))

    builder = Builder(reconcile, clock=manager.clock, rng=manager.rng, name="marker")
    return builder.for_(manager.cache.informer(CONFIG_MAP))


async def test_a_controller_that_is_added_runs_at_once(cluster: TestCluster, manager: TestManager) -> None:
    manager.add(marker(manager).build())
    await manager.synced()
    await cluster.create(CONFIG_MAP, {"metadata": {"name": "c"}, "data": {"a": "1"}})

    async def marked() -> None:
        assert (await cluster.get(CONFIG_MAP, "c"))["data"]["seen"] == "yes"

    await cluster.eventually(marked)
    assert manager.interceptor.count(verb="patch") == 1


async def test_its_watches_can_be_cut_with_those_of_all_programs_under_test(
    cluster: TestCluster, manager: TestManager
) -> None:
    manager.add(marker(manager).build())
    await manager.synced()
    assert cluster.cut_watches() == 1
    await cluster.create(CONFIG_MAP, {"metadata": {"name": "c"}, "data": {"a": "1"}})

    async def marked() -> None:
        assert "seen" in (await cluster.get(CONFIG_MAP, "c"))["data"]

    await cluster.eventually(marked)


async def test_what_died_fails_the_test_at_its_end(cluster: TestCluster) -> None:
    class Broken:
        async def run(self) -> None:
            raise LwskitError("it broke")

    async def whole_test() -> None:
        async with running(cluster) as manager:
            manager.add(Broken())
            await cluster.clock.sleep(1)

    with pytest.raises(LwskitError, match="it broke"):
        await whole_test()
