"""A manager that ends, and the next one: all it needs is on the cluster (specification: 20 §14 line 93)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lwskit.api import names
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import labels_of
from lwskit.testing.cluster import Runnable, TestCluster
from lwskit.testing.interceptors import Recorded
from tests.scenarios.manager import DIED, dies_after, manager
from tests.scenarios.support import ALL_KINDS, Sets

READS = ("get", "list", "watch")


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: each test starts its managers itself."""
    return ()


async def versions(cluster: TestCluster) -> dict[tuple[str, str], str]:
    return {
        (kind.plural, o["metadata"]["name"]): o["metadata"]["resourceVersion"]
        for kind in ALL_KINDS
        for o in await cluster.list(kind)
    }


def writes(cluster: TestCluster) -> list[Recorded]:
    """What the last manager has written in the test's namespace."""
    mine = f"/namespaces/{cluster.namespace}/"
    return [r for r in cluster.interceptors[-1].requests if r.verb not in READS and mine in r.request.path]


async def test_a_successor_writes_nothing_about_sets_at_rest(cluster: TestCluster, sets: Sets):
    """20 §14 lines 50, 93: nothing of an existing set is touched, and no request is sent that changes nothing."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
        before = await versions(cluster)
    async with manager(cluster):

        async def same() -> None:
            assert await versions(cluster) == before

        await cluster.consistently(same)
        assert [(r.verb, r.request.path) for r in writes(cluster)] == []


async def test_workers_that_lost_their_label_between_two_managers_get_it_back(cluster: TestCluster, sets: Sets):
    """20 §10.2 step 21: they are in no cache of the next manager, and the name is taken."""
    async with manager(cluster):
        await sets.running(replicas=1, size=2)
        before = await sets.pod_uids()
    await cluster.patch(STATEFUL_SET, "llm-0", {"metadata": {"labels": {names.NAME_LABEL: None}}})
    async with manager(cluster):

        async def back() -> None:
            assert labels_of(await cluster.get(STATEFUL_SET, "llm-0")).get(names.NAME_LABEL) == "llm"

        await cluster.eventually(back)
        await sets.ready()
    assert await sets.pod_uids() == before


async def test_a_change_between_two_managers_is_made_up_for(cluster: TestCluster, sets: Sets):
    """20 §2: decisions are made from what is there, not from having seen it happen."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
    await sets.scale(3)
    await cluster.patch(STATEFUL_SET, "llm", {"metadata": {"labels": {"leaderworkerset.sigs.k8s.io/role": "mine"}}})
    async with manager(cluster):
        await sets.ready()
        assert labels_of(await sets.leader_workload())["leaderworkerset.sigs.k8s.io/role"] == "leader"


async def test_a_restart_between_two_managers_is_not_lost(cluster: TestCluster, sets: Sets):
    """20 §11.2: the restart counter is level-triggered, so the next manager recreates the group."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
        before = await sets.pod_uids()
    await cluster.kubelet.restart_container("llm-1-2")
    async with manager(cluster):

        async def recreated() -> None:
            after = await sets.pod_uids()
            assert sorted(after) == sorted(before)
            assert {n for n in after if after[n] != before[n]} == {"llm-1", "llm-1-1", "llm-1-2"}

        async with cluster.kubelet.playing():
            await cluster.eventually(recreated)
        await sets.ready()


@pytest.mark.virtual_only("it is repeated for every write, and a real manager is not killed at a chosen one")
@pytest.mark.parametrize("count", range(16))
async def test_a_set_is_finished_whenever_its_manager_dies(cluster: TestCluster, sets: Sets, count: int):
    """20 §2: given the manager dies after any of its writes, then its successor ends at the same objects."""
    async with manager(cluster):
        cluster.interceptors[-1].fail(dies_after(count), DIED, times=None)
        await sets.create()
        async with cluster.kubelet.playing():
            await cluster.clock.sleep(5)
    async with manager(cluster):
        live = await sets.ready()
        await sets.settled()
    assert sorted(await sets.pods()) == ["llm-0", "llm-0-1", "llm-0-2", "llm-1", "llm-1-1", "llm-1-2"]
    assert await cluster.names(STATEFUL_SET) == ["llm", "llm-0", "llm-1"]
    assert len({r["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/name"] for r in await sets.revisions()}) == 1
    assert live["status"]["updatedReplicas"] == 2


@pytest.mark.virtual_only("it is repeated for every write, and a real manager is not killed at a chosen one")
@pytest.mark.parametrize("count", range(1, 8))
async def test_a_recreation_is_finished_whenever_its_manager_dies(cluster: TestCluster, sets: Sets, count: int):
    """20 §11.5: once the leader's deletion is sent the group comes back whole, whoever finishes it."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
        before = await sets.pod_uids()
        cluster.interceptors[-1].fail(dies_after(count), DIED, times=None)
        async with cluster.observe(POD) as observer:
            await cluster.delete(POD, "llm-0-1")
            await cluster.clock.sleep(5)
    async with manager(cluster):
        await sets.ready()
        await sets.settled()
    after = await sets.pod_uids()
    assert {n for n in after if after[n] != before[n]} == {"llm-0", "llm-0-1", "llm-0-2"}
    assert observer.born["llm-0"] <= 1


@pytest.mark.virtual_only("it is repeated for every write, and a real manager is not killed at a chosen one")
@pytest.mark.parametrize("count", range(0, 16, 2))
async def test_a_rollout_is_finished_whenever_its_manager_dies(cluster: TestCluster, sets: Sets, count: int):
    """20 §6: given the manager dies anywhere in a rollout, then its successor goes on with it."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
        cluster.interceptors[-1].fail(dies_after(count), DIED, times=None)
        await sets.set_image("img:v2")
        async with cluster.kubelet.playing():
            await cluster.clock.sleep(5)
    async with manager(cluster):
        await sets.ready()
        await sets.settled()
    assert {p["spec"]["containers"][0]["image"] for p in (await sets.pods()).values()} == {"img:v2"}
    assert len(await sets.revisions()) == 1
