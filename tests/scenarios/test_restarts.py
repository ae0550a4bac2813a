"""Restart policies: when one pod of a group fails (specification: 20 §11)."""

from __future__ import annotations

import pytest

from lwskit.runtime.kinds import POD
from lwskit.testing.cluster import TestCluster
from lwskit.testing.observer import Observer
from tests.scenarios.support import Sets, pod_template

NONE = {"restartPolicy": "None"}
AFTER_START = {"restartPolicy": "RecreateGroupAfterStart"}


async def recreated(sets: Sets, before: dict[str, str], group: int) -> None:
    """Make the set ready; exactly this group has new UIDs, and every one of its pods."""

    async def all_new() -> None:
        after = await sets.pod_uids(group=group)
        old = [n for n, u in after.items() if before[n] == u]
        assert not old, f"not recreated: {old}"
        assert len(after) == len([n for n in before if n.startswith(f"llm-{group}")])

    async with sets.cluster.kubelet.playing():
        await sets.cluster.eventually(all_new)
    await sets.ready()
    await sets.settled()
    after = await sets.pod_uids()
    assert sorted(after) == sorted(before)
    assert {n for n in after if after[n] != before[n]} == {n for n in before if n.startswith(f"llm-{group}")}


def once(observer: Observer, group: int, size: int = 3) -> None:
    """The leader and each worker StatefulSet's pods were made once, and no pod of another group."""
    born = observer.born
    assert born[f"llm-{group}"] == 1, born
    assert {n for n in born if not n.startswith(f"llm-{group}")} == set(), born
    assert len(born) == size, born


async def test_a_deleted_worker_recreates_its_group(cluster: TestCluster, sets: Sets):
    """20 §14 lines 69, 78: worker deletion deletes the leader, with an event; only that group gets new UIDs."""
    await sets.running()
    before = await sets.pod_uids()
    async with cluster.observe(POD) as observer:
        await cluster.delete(POD, "llm-0-1")
        await recreated(sets, before, 0)
    once(observer, 0)
    note = "Worker pod llm-0-1 failed, deleted leader pod llm-0 to recreate group 0"
    event = await sets.has_event("RecreateGroup", note)
    assert event["action"] == "Delete"
    assert event["related"]["name"] == "llm-0"


async def test_the_leader_is_deleted_in_the_foreground(cluster: TestCluster, sets: Sets):
    """20 §11.5: the leader stays until its worker StatefulSet is gone, so the group restarts as a whole."""
    await sets.running()
    leader = (await sets.pods())["llm-0"]["metadata"]["uid"]
    old = (await cluster.uids(sets.workload))["llm-0"]
    async with cluster.observe(POD) as pods, cluster.observe(sets.workload) as workloads:
        await cluster.delete(POD, "llm-0-1")
        await sets.cluster.eventually(lambda: _gone(pods, leader))
    going = [c for c in pods.of("llm-0") if c.uid == leader]
    assert "foregroundDeletion" in going[0].obj["metadata"]["finalizers"]
    assert [c.type for c in workloads.changes if c.uid == old][-1:] == ["DELETED"]


def _gone(pods: Observer, uid: str) -> None:
    assert any(c.type == "DELETED" and c.uid == uid for c in pods.changes)


async def test_a_restarted_worker_container_recreates_its_group(cluster: TestCluster, sets: Sets):
    """20 §14 line 69: a worker's container restart while Running deletes the leader."""
    await sets.running()
    before = await sets.pod_uids()
    async with cluster.observe(POD) as observer:
        await cluster.kubelet.restart_container("llm-1-2")
        await recreated(sets, before, 1)
    once(observer, 1)
    note = "Worker pod llm-1-2 failed, deleted leader pod llm-1 to recreate group 1"
    await sets.has_event("RecreateGroup", note)


async def test_a_restarted_leader_container_recreates_its_group(cluster: TestCluster, sets: Sets):
    """20 §14 line 69: so does the leader's own; the event calls it a worker pod too."""
    await sets.running()
    before = await sets.pod_uids()
    await cluster.kubelet.restart_container("llm-1")
    await recreated(sets, before, 1)
    note = "Worker pod llm-1 failed, deleted leader pod llm-1 to recreate group 1"
    await sets.has_event("RecreateGroup", note)


async def test_a_restarted_init_container_counts(cluster: TestCluster, sets: Sets):
    """20 §14 line 69: an init container restart counts like that of a container."""
    await sets.running(template=pod_template("img:v1", initContainers=[{"name": "prepare", "image": "img:init"}]))
    before = await sets.pod_uids()
    await cluster.kubelet.restart_container("llm-0-2", "prepare")
    await recreated(sets, before, 0)


async def test_a_failed_worker_is_replaced_and_its_group_with_it(cluster: TestCluster, sets: Sets):
    """20 §14 lines 69, 70: the phase Failed is no trigger, but its workload deletes the pod, and that is one."""
    await sets.running()
    before = await sets.pod_uids()
    async with cluster.observe(POD) as observer:
        await cluster.kubelet.fail("llm-0-1")
        await recreated(sets, before, 0)
    assert observer.born["llm-0"] == 1
    assert not {n for n in observer.born if n.startswith("llm-1")}


async def test_a_deleted_leader_takes_its_group_along(cluster: TestCluster, sets: Sets):
    """20 §11.1: deleting the leader recreates the group by ownership; the other group is untouched."""
    await sets.running()
    before = await sets.pod_uids()
    async with cluster.observe(POD) as observer:
        await cluster.delete(POD, "llm-1")
        await recreated(sets, before, 1)
    once(observer, 1)


async def test_both_groups_can_fail_at_once(cluster: TestCluster, sets: Sets):
    """20 §14 line 78: each group is recreated, each once."""
    await sets.running()
    before = await sets.pod_uids()
    async with cluster.observe(POD) as observer:
        await cluster.delete(POD, "llm-0-1")
        await cluster.delete(POD, "llm-1-2")

        async def all_new() -> None:
            after = await sets.pod_uids()
            assert sorted(after) == sorted(before)
            assert not set(after.values()) & set(before.values())

        async with cluster.kubelet.playing():
            await cluster.eventually(all_new)
        await sets.ready()
        await sets.settled()
    assert (observer.born["llm-0"], observer.born["llm-1"]) == (1, 1)


async def test_under_policy_none_a_worker_is_replaced_alone(cluster: TestCluster, sets: Sets):
    """20 §14 line 68: worker deletion and container restart leave leader and other workers."""
    await sets.running(group=NONE)
    before = await sets.pod_uids()
    await cluster.kubelet.restart_container("llm-1-2")
    await cluster.delete(POD, "llm-0-1")
    await sets.ready()
    await sets.settled()
    after = await sets.pod_uids()
    assert {n for n in after if after[n] != before[n]} == {"llm-0-1"}
    assert not [e for e in await sets.events() if e["reason"] == "RecreateGroup"]


async def test_under_policy_none_a_deleted_leader_takes_its_group_along(cluster: TestCluster, sets: Sets):
    """20 §11.1: ownership does it, whatever the policy."""
    await sets.running(group=NONE)
    before = await sets.pod_uids()
    await cluster.delete(POD, "llm-0")
    await recreated(sets, before, 0)


async def test_the_deprecated_default_policy_is_none(sets: Sets):
    """20 §11.1: the webhook rewrites Default to None."""
    created = await sets.create(group={"restartPolicy": "Default"})
    assert created["spec"]["leaderWorkerTemplate"]["restartPolicy"] == "None"


async def test_after_start_waits_until_the_group_has_started(cluster: TestCluster, sets: Sets):
    """20 §14 line 71: with a Pending pod a restart is skipped; with all started the group is recreated."""
    await sets.create(group=AFTER_START, replicas=1)
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")
    before = await sets.pod_uids()
    await cluster.kubelet.ready("llm-0", "llm-0-1")
    await cluster.kubelet.pending("llm-0-2")
    await cluster.kubelet.restart_container("llm-0-1")

    async def untouched() -> None:
        assert await sets.pod_uids() == before

    await cluster.consistently(untouched)
    await cluster.kubelet.ready("llm-0-2")
    await cluster.kubelet.restart_container("llm-0-1")
    await recreated(sets, before, 0)


@pytest.mark.parametrize("trigger", ["delete", "restart"])
async def test_a_group_without_workers_is_its_leader(cluster: TestCluster, sets: Sets, trigger: str):
    """20 §14 lines 57, 69: with size 1 the leader alone is recreated."""
    await sets.running(size=1)
    before = await sets.pod_uids()
    if trigger == "delete":
        await cluster.delete(POD, "llm-0")
    else:
        await cluster.kubelet.restart_container("llm-0")
    await recreated(sets, before, 0)
