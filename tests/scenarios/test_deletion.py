"""Deleting a set: garbage collection alone, no finalizer of ours (specification: 20 §1)."""

from __future__ import annotations

import pytest

from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import ApiError
from lwskit.runtime.kinds import CONTROLLER_REVISION, POD, SERVICE, STATEFUL_SET
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.support import Sets


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_everything_goes_with_the_set(cluster: TestCluster, sets: Sets, propagation: str):
    """20 §1: the set has no finalizer of ours; its objects are collected, and none is created meanwhile."""
    live = await sets.running()
    assert not live["metadata"].get("finalizers")
    async with cluster.observe(POD) as pods, cluster.observe(STATEFUL_SET) as workloads:
        await cluster.delete(LEADER_WORKER_SET, "llm", propagation=propagation)

        async def nothing_left() -> None:
            for kind in (LEADER_WORKER_SET, STATEFUL_SET, POD, CONTROLLER_REVISION):
                assert await cluster.names(kind) == []
            assert "llm" not in await cluster.names(SERVICE)

        await cluster.eventually(nothing_left)
        await cluster.consistently(nothing_left)
    if propagation == "Foreground":
        assert not pods.born
        assert not workloads.born


async def test_an_orphaning_deletion_leaves_everything(cluster: TestCluster, sets: Sets):
    """20 §1: with propagation Orphan the set goes alone, its workloads and pods stay as they are."""
    await sets.running()
    await sets.settled()
    pods, workloads = await sets.pod_uids(), await cluster.uids(STATEFUL_SET)
    await cluster.delete(LEADER_WORKER_SET, "llm", propagation="Orphan")
    await cluster.eventually(lambda: cluster.gone(LEADER_WORKER_SET, "llm"))
    await sets.settled()
    assert await sets.pod_uids() == pods
    assert await cluster.uids(STATEFUL_SET) == workloads
    assert not (await sets.leader_workload())["metadata"].get("ownerReferences")


async def test_deleting_one_set_leaves_the_other(cluster: TestCluster, sets: Sets):
    """20 §1: ownership is by UID, so only the deleted set's objects go."""
    await sets.running("llm-a", replicas=1, size=2)
    await sets.running("llm-b", replicas=1, size=2)
    kept = await sets.pod_uids("llm-b")
    await cluster.delete(LEADER_WORKER_SET, "llm-a")
    await sets.has_pods(name="llm-a")
    await sets.settled()
    assert await sets.pod_uids("llm-b") == kept


async def test_a_set_of_the_same_name_starts_anew(cluster: TestCluster, sets: Sets):
    """20 §3.2, §14 line 72: what a deleted set left behind has no effect on its successor."""
    await sets.running()
    before = await sets.pod_uids()
    await cluster.delete(LEADER_WORKER_SET, "llm")
    await sets.create(image="img:v2")
    await sets.ready()
    after = await sets.pods()
    assert sorted(after) == sorted(before)
    assert not {p["metadata"]["uid"] for p in after.values()} & set(before.values())
    assert {p["spec"]["containers"][0]["image"] for p in after.values()} == {"img:v2"}


@pytest.mark.undisturbed("it counts requests")
async def test_nothing_is_made_for_a_set_that_is_gone_unseen(cluster: TestCluster, sets: Sets):
    """The collector removes it at once, which would call for the next one, and so on while the cache is late."""
    await sets.running(replicas=1, size=2)
    await sets.settled()

    def lag(request: HttpRequest) -> float:
        return 5.0 if request.path.endswith("/leaderworkersets") else 0.0

    connection = cluster.interceptors[0]
    with cluster.slow_watches(lag):
        await cluster.delete(LEADER_WORKER_SET, "llm", propagation="Background")
        await cluster.eventually(lambda: cluster.gone(STATEFUL_SET, "llm"))
        before = connection.count(verb="create"), connection.count(matching("PATCH", "statefulsets/llm$"))
        await cluster.clock.sleep(3.0)
        assert (connection.count(verb="create"), connection.count(matching("PATCH", "statefulsets/llm$"))) == before
    await sets.has_pods()


async def test_a_leader_that_leaves_its_workers_behind(cluster: TestCluster, sets: Sets):
    """20 §10.3: workers without an owner are in the way, which an event says; without them the group is whole again."""
    await sets.running()
    before = await sets.pod_uids(group=0)
    await cluster.delete(POD, "llm-0", propagation="Orphan")

    async def leader_is_new() -> None:
        assert (await sets.pod_uids(group=0))["llm-0"] != before["llm-0"]

    async with cluster.kubelet.playing():
        await cluster.eventually(leader_is_new)
        await sets.has_event(
            "FailedCreate",
            "workers llm-0 have no owner, so leader pod llm-0 gets none of its own; delete them",
            type="Warning",
        )
        await cluster.delete(STATEFUL_SET, "llm-0")

        async def all_new() -> None:
            after = await sets.pod_uids(group=0)
            assert len(after) == 3
            assert not set(after.values()) & set(before.values())

        await cluster.eventually(all_new)
    await sets.ready()


@pytest.mark.parametrize("propagation", ["Foreground", "Orphan"])
async def test_a_set_that_has_become_invalid_can_be_deleted(cluster: TestCluster, sets: Sets, propagation: str):
    """20 §1: the scale subresource is not asked about the pace of rollouts; the collector's own changes must pass."""
    rollout = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}}
    await sets.create(replicas=0, size=2, rolloutStrategy=rollout)
    await sets.scale(1)
    await sets.has_pods("llm-0", "llm-0-1")
    with pytest.raises(ApiError, match="must not be 0 when `maxSurge` is 0"):
        await sets.patch({"metadata": {"labels": {"a": "b"}}})
    await cluster.delete(LEADER_WORKER_SET, "llm", propagation=propagation)
    await cluster.eventually(lambda: cluster.gone(LEADER_WORKER_SET, "llm"))
