"""What follows in Hash mode when a pod of a group is lost (specification: 30 §10)."""

from __future__ import annotations

import pytest

from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import is_deleting, uid_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.hash.gating import lingering
from tests.scenarios.hash.support import Group, HashSets

NONE = {"restartPolicy": "None"}


async def replaced(sets: HashSets, before: dict[str, Group], *keys: str) -> dict[str, Group]:
    """Make the set ready; these groups have gone for others, and all others are as they were."""

    async def others() -> None:
        assert not set(keys) & set(await sets.groups())

    async with sets.cluster.kubelet.playing():
        await sets.cluster.eventually(others)
    await sets.ready()
    await sets.settled()
    after = await sets.groups()
    assert len(after) == len(before)
    for key in set(before) - set(keys):
        assert after[key].uids == before[key].uids, key
    return after


async def test_a_lost_worker_replaces_its_group(cluster: TestCluster, sets: HashSets):
    """30 §18 line 31: its leader is deleted in the foreground, and a leader with another key comes."""
    await sets.running(replicas=2, size=3)
    before = await sets.groups()
    group = before[sorted(before)[0]]
    async with cluster.observe(POD) as pods:
        await cluster.delete(POD, group.workers[0]["metadata"]["name"])
        await replaced(sets, before, group.key)
    going = [c.obj for c in pods.of(group.name) if is_deleting(c.obj)]
    assert "foregroundDeletion" in going[0]["metadata"]["finalizers"]
    worker = group.workers[0]["metadata"]["name"]
    note = f"Worker pod {worker} failed, deleted leader pod {group.name} to recreate group {group.key}"
    event = await sets.has_event("RecreateGroup", note)
    assert event["related"]["name"] == group.name


async def test_a_restarted_container_replaces_its_group(cluster: TestCluster, sets: HashSets):
    """30 §10 item 1: of the leader as of a worker."""
    await sets.running(replicas=2, size=2)
    before = await sets.groups()
    first = before[sorted(before)[0]]
    await cluster.kubelet.restart_container(first.name)
    await replaced(sets, before, first.key)


async def test_a_worker_of_the_group_before_harms_nobody(cluster: TestCluster, sets: HashSets):
    """30 §18 line 32: what is left of a group goes without a trace in the one that took its place."""
    await sets.running(replicas=1, size=2, groupReplacementPolicy="Immediate")
    (group,) = (await sets.groups()).values()
    async with lingering(cluster, group):
        await cluster.delete(POD, group.name)

        async def next_group() -> Group:
            found = [g for k, g in (await sets.groups()).items() if k != group.key]
            assert [len(g.pods) for g in found] == [2]
            return found[0]

        after = await cluster.eventually(next_group)
    assert (await sets.has_groups(1, size=2))[after.key].uids == after.uids
    await sets.settled()
    assert (await sets.groups())[after.key].uids == after.uids


async def test_without_recreation(cluster: TestCluster, sets: HashSets):
    """30 §18 line 33: with restart policy None a lost worker comes back alone; without its leader the group is new."""
    await sets.running(replicas=1, size=3, group=NONE)
    before = await sets.groups()
    (group,) = before.values()
    lost = group.workers[0]
    await cluster.delete(POD, lost["metadata"]["name"])

    async def back() -> None:
        now = (await sets.groups())[group.key]
        assert len(now.uids) == 3
        assert group.uids - now.uids == {uid_of(lost)}

    await cluster.eventually(back)
    await sets.ready()
    before = await sets.groups()
    await cluster.delete(POD, group.name)
    await replaced(sets, before, group.key)


@pytest.mark.parametrize("policy", ["RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"])
async def test_a_leader_that_failed_for_good(cluster: TestCluster, sets: HashSets, policy: str):
    """30 §10: its ReplicaSet makes another one and leaves it lying; it is deleted, and frees its group's place."""
    await sets.running(replicas=2, size=2, group={"restartPolicy": policy})
    before = await sets.groups()
    group = before[sorted(before)[0]]
    async with lingering(cluster, group):
        await cluster.kubelet.fail(group.name)

        async def waits() -> None:
            groups = await sets.groups()
            assert is_deleting(groups[group.key].leader or {})
            assert [g.gated for k, g in groups.items() if k not in before] == [True]

        await cluster.eventually(waits)
        await cluster.consistently(waits, duration=1)
    await replaced(sets, before, group.key)


async def test_a_deleted_workload_of_workers_is_made_again(cluster: TestCluster, sets: HashSets):
    """A group gets its workers back, and is ready no sooner than they are."""
    await sets.running(replicas=1, size=2, group=NONE)
    (group,) = (await sets.groups()).values()
    old = uid_of((await sets.workers())[group.host])
    await cluster.delete(sets.kind_of_workers, group.host)

    async def again() -> None:
        workers = await sets.workers()
        assert uid_of(workers[group.host]) != old

    await cluster.eventually(again)
    await sets.ready()
    after = (await sets.groups())[group.key]
    assert uid_of(after.leader or {}) == uid_of(group.leader or {})
