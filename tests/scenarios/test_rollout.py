"""Rolling updates without surge and partition (specification: 20 §6, §7.1)."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.testing.cluster import TestCluster
from tests.scenarios.rollouts import group_ready, reaches
from tests.scenarios.support import Sets, revision_key


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_one_group_at_a_time_from_the_end(cluster: TestCluster, sets: Sets):
    """20 §14 lines 27, 28: table 7.1, N=4 mu=1, partition 4, 3, 2, 1, 0 with an event for each step."""
    await sets.running(replicas=4, size=2)
    await sets.set_image("v:B")
    await reaches(sets, 3, "v1", "v1", "v1", "B*")
    await sets.has_event("GroupsUpdating", "Updating replica 3")
    await group_ready(sets, 3)
    await reaches(sets, 2, "v1", "v1", "B*", "B")
    await group_ready(sets, 2)
    await reaches(sets, 1, "v1", "B*", "B", "B")
    await group_ready(sets, 1)
    await reaches(sets, 0, "B*", "B", "B", "B")
    await group_ready(sets, 0)
    live = await sets.ready()
    assert live["status"]["updatedReplicas"] == 4
    for index in range(4):
        await sets.has_event("GroupsUpdating", f"Updating replica {index}")


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_several_groups_at_a_time(sets: Sets):
    """20 §14 line 29: given partition drops by more than one, one event names the range."""
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 2, "maxSurge": 0}}
    await sets.running(replicas=4, size=1, rolloutStrategy=strategy)
    await sets.set_image("v:B")
    await reaches(sets, 2, "v1", "v1", "B*", "B*")
    await sets.has_event("GroupsUpdating", "Updating replicas 2 to 3 (inclusive)")
    await sets.ready()
    assert {p["spec"]["containers"][0]["image"] for p in (await sets.pods()).values()} == {"v:B"}


async def test_a_gap_in_the_tail_stops_the_rollout(cluster: TestCluster, sets: Sets):
    """20 §14 lines 30, 31: a ready group behind one that is not does not count, and the partition never goes back."""
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 2, "maxSurge": 0}}
    await sets.running(replicas=4, size=1, rolloutStrategy=strategy)
    await sets.set_image("v:B")
    await reaches(sets, 2, "v1", "v1", "B*", "B*")
    await group_ready(sets, 2)
    await reaches(sets, 2, "v1", "v1", "B", "B*")
    await group_ready(sets, 3)
    await reaches(sets, 0, "B*", "B*", "B", "B")
    await cluster.kubelet.unready("llm-3")
    await reaches(sets, 0, "B*", "B*", "B", "B*")
    await sets.ready()


async def test_groups_are_replaced_whole(cluster: TestCluster, sets: Sets):
    """20 §14 lines 41, 75: leader, worker StatefulSet and workers of an updated group are all new, and only once."""
    await sets.running(replicas=2, size=3)
    before = await sets.pod_uids()
    workloads = await cluster.uids(sets.workload)
    async with cluster.observe(sets.workload) as observer:
        await sets.set_image("img:v2")
        await sets.ready()
        await sets.settled()
    after = await sets.pod_uids()
    assert sorted(after) == sorted(before)
    assert not set(after.values()) & set(before.values())
    assert observer.born == {"llm-0": 1, "llm-1": 1}
    assert (await cluster.uids(sets.workload))["llm"] == workloads["llm"]


async def test_an_old_group_is_recreated_from_its_own_revision(cluster: TestCluster, sets: Sets):
    """20 §14 line 41, §3.8: a group below the partition comes back on the old revision, workers included."""
    await sets.running(replicas=3, size=2)
    old = revision_key((await sets.pods())["llm-0"])
    before = await sets.pod_uids(group=0)
    await sets.set_image("img:v2")
    await reaches(sets, 2, "v1", "v1", "v2*")
    await cluster.kubelet.restart_container("llm-0-1")

    async def back() -> None:
        pods = await sets.live_pods()
        group = {n: pods[n] for n in ("llm-0", "llm-0-1")}
        assert not {p["metadata"]["uid"] for p in group.values()} & set(before.values())
        assert {revision_key(p) for p in group.values()} == {old}
        assert {p["spec"]["containers"][0]["image"] for p in group.values()} == {"img:v1"}

    await cluster.eventually(back)
    await sets.ready()
    assert revision_key((await sets.pods())["llm-0-1"]) != old


async def test_a_new_size_is_rolled_out(cluster: TestCluster, sets: Sets):
    """20 §14 line 41: given a size change, groups are rolled and pods carry the new size."""
    await sets.running(replicas=2, size=2)
    await sets.patch({"spec": {"leaderWorkerTemplate": {"size": 3}}})
    await sets.ready()
    pods = await sets.pods()
    assert sorted(pods) == ["llm-0", "llm-0-1", "llm-0-2", "llm-1", "llm-1-1", "llm-1-2"]
    assert {p["metadata"]["annotations"][names.SIZE_ANNOTATION] for p in pods.values()} == {"3"}


async def test_a_rollout_of_broken_groups_completes(cluster: TestCluster, sets: Sets):
    """20 §14 line 40 without surge: given all groups broken on the old revision, the rollout still completes."""
    await sets.create(replicas=2, size=1, image="img:broken")
    await sets.has_pods("llm-0", "llm-1")
    await sets.set_image("img:v2")
    await sets.ready()
    assert {p["spec"]["containers"][0]["image"] for p in (await sets.pods()).values()} == {"img:v2"}


async def test_going_back_is_a_rollout_too(sets: Sets):
    """20 §3.7: A to B to A ends with everything on A and one revision."""
    await sets.running(replicas=2, size=2)
    first = revision_key((await sets.revisions())[0])
    await sets.set_image("img:v2")
    await reaches(sets, 1, "v1", "v2*")
    await sets.set_image("img:v1")
    await sets.ready()
    assert {revision_key(p) for p in (await sets.pods()).values()} == {first}

    async def one_is_left() -> None:
        assert {revision_key(r) for r in await sets.revisions()} == {first}

    await sets.cluster.eventually(one_is_left)
