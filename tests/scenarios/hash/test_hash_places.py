"""Whose place a leader takes: that of the ReplicaSet which made it (specification: 30 §7)."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import DEPLOYMENT, POD
from lwskit.runtime.objects import is_deleting
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import backing_off, counts
from tests.scenarios.hash.support import HashSets
from tests.scenarios.support import set_object, strategy

SURGE_ONLY = strategy(maxUnavailable=0, maxSurge=1)


async def all_replaced(sets: HashSets, before: set[str], count: int, size: int) -> None:
    """Wait until a set has so many complete groups, none of them one of these."""

    async def check() -> None:
        found = await sets.groups()
        assert not before & {*found}
        assert [len(g.pods) for g in found.values()] == [size] * count

    async with sets.cluster.kubelet.playing():
        await sets.cluster.eventually(check)


async def test_a_rollout_that_changes_no_revision_goes_on(cluster: TestCluster, sets: HashSets):
    """As `kubectl rollout restart` begins it: both ReplicaSets are of one revision, and the new groups come on top."""
    await sets.running(replicas=2, size=2, rolloutStrategy=SURGE_ONLY)
    before = {*await sets.groups()}
    restarted = {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}}
    await cluster.patch(DEPLOYMENT, "llm", {"spec": {"template": {"metadata": restarted}}})
    await all_replaced(sets, before, 2, 2)
    assert len(await sets.revisions()) == 1


async def test_another_topology_rolls_all_groups(cluster: TestCluster, sets: HashSets):
    """The annotation of exclusive placement is no part of the revision."""
    await sets.running(replicas=2, size=1, rolloutStrategy=SURGE_ONLY)
    before = {*await sets.groups()}
    await sets.patch({"metadata": {"annotations": {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}}})
    await all_replaced(sets, before, 2, 1)


async def test_a_leader_that_was_taken_out_is_replaced(cluster: TestCluster, sets: HashSets):
    """Without its label a pod is none of its ReplicaSet any more, which makes another; so one looks at it in peace."""
    await sets.running(replicas=2, size=2)
    before = await sets.groups()
    first, _ = before.values()
    await cluster.patch(POD, first.name, {"metadata": {"labels": {"pod-template-hash": None}}})
    await sets.has_groups(3, size=2)
    await sets.set_image("img:v2")

    async def updated() -> None:
        found = await sets.groups()
        assert len(found) == 3
        assert {*before} & {*found} == {first.key}
        assert (await sets.conditions())["UpdateInProgress"] == "False"
        assert (await sets.conditions())["Available"] == "True"

    async with cluster.kubelet.playing():
        await cluster.eventually(updated)


async def test_leaders_of_an_orphaned_set_of_the_other_mode(cluster: TestCluster, sets: HashSets):
    """Nobody removes them, and they are in nobody's way."""
    await cluster.create(LEADER_WORKER_SET, set_object("llm", replicas=2, size=2))
    await sets.has_pods("llm-0", "llm-0-1", "llm-1", "llm-1-1")
    await cluster.delete(LEADER_WORKER_SET, "llm", propagation="Orphan")

    async def gone() -> None:
        assert await cluster.gone(LEADER_WORKER_SET, "llm")

    await cluster.eventually(gone)
    await sets.create(replicas=2, size=2)

    async def running() -> None:
        pods = [p["metadata"]["name"] for p in await cluster.list(POD)]
        assert len(pods) == 8
        assert {"llm-0", "llm-0-1", "llm-1", "llm-1-1"} < {*pods}
        assert (await sets.live())["status"]["readyReplicas"] == 2

    async with cluster.kubelet.playing():
        await cluster.eventually(running)


@pytest.mark.virtual_only("a hundred seconds of back-off")
async def test_a_leader_that_has_failed_for_good_is_waited_for_at_once_too(cluster: TestCluster, sets: HashSets):
    """With Immediate the next leader is made at once; but groups whose recreation waits do not pile up, and count."""
    group = backing_off(100, maxGroupRestarts=2)
    await sets.running(replicas=1, size=2, group=group, groupReplacementPolicy="Immediate")
    for failures in (1, 2, 3):
        (alive,) = [g for g in (await sets.groups()).values() if g.ready]
        await cluster.kubelet.fail(alive.name)
        await sets.settled()
        assert sorted(len(g.pods) for g in (await sets.groups()).values()) == [1, 2]
        if failures == 3:
            break

        async def replaced(former: str = alive.key, wanted: int = failures) -> None:
            found = [(g.key == former, g.ready, len(g.pods)) for g in (await sets.groups()).values()]
            assert found == [(False, True, 2)]
            assert list((await counts(sets)).values()) == [wanted]

        async with cluster.kubelet.playing():
            await cluster.eventually(replaced, timeout=900)
    assert (await sets.conditions())["Degraded"] == "True"
    kept = [g for g in (await sets.groups()).values() if len(g.pods) == 2]
    assert all(is_deleting(p) for p in kept[0].pods)
