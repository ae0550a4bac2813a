"""Scaling: groups come and go by ordinal (specification: 20 §6.4, §6.6)."""

from __future__ import annotations

from lwskit.api import names
from lwskit.runtime.kinds import POD
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import Sets


async def test_scaling_up_adds_groups_and_keeps_the_others(cluster: TestCluster, sets: Sets):
    """20 §14 line 32: replicas = N, partition unchanged; existing groups are untouched."""
    await sets.running()
    before = await sets.pod_uids()
    await sets.scale(4)
    live = await sets.ready()
    after = await sets.pod_uids()
    assert live["status"]["replicas"] == 4
    assert len(after) == 12
    assert {n: u for n, u in after.items() if n in before} == before
    assert (await sets.leader_workload())["metadata"]["annotations"][names.REPLICAS_ANNOTATION] == "4"


async def test_scaling_down_removes_the_highest_groups_whole(cluster: TestCluster, sets: Sets):
    """20 §14 line 32: the last groups go with their worker StatefulSets; the rest is untouched."""
    await sets.running(replicas=3)
    before = await sets.pod_uids()
    await sets.scale(1)
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")

    async def workloads() -> None:
        assert await cluster.names(sets.workload) == ["llm", "llm-0"]
        assert (await sets.live())["status"]["replicas"] == 1

    await cluster.eventually(workloads)
    after = await sets.pod_uids()
    assert after == {n: before[n] for n in after}


async def test_scaling_to_zero_and_back(cluster: TestCluster, sets: Sets):
    """20 §14 line 32: a set without groups is available, and comes back."""
    await sets.running()
    await sets.scale(0)
    await sets.has_pods()

    async def available() -> None:
        live = await sets.live()
        assert not live["status"].get("replicas")
        assert (await sets.conditions())[names.CONDITION_AVAILABLE] == "True"

    await cluster.eventually(available)
    assert await cluster.names(POD) == []
    await sets.scale(1)
    await sets.ready()
    assert sorted(await sets.pods()) == ["llm-0", "llm-0-1", "llm-0-2"]


async def test_scaling_up_and_down_at_once_ends_at_the_last_word(sets: Sets):
    """20 §6.4: decisions are made from the present number, not from the way there."""
    await sets.running(replicas=1, size=2)
    for replicas in (5, 2, 4, 3):
        await sets.scale(replicas)
    await sets.ready()
    await sets.settled()
    assert sorted(await sets.pods()) == ["llm-0", "llm-0-1", "llm-1", "llm-1-1", "llm-2", "llm-2-1"]
