"""Restart budgets in Hash mode, where the next group has another key than the one before (specification: 30 §11)."""

from __future__ import annotations

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import annotations_of, is_deleting
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import EXCEEDED, FINALIZER, counts, limited, recover
from tests.scenarios.hash.gating import gated, stay
from tests.scenarios.hash.support import Group, HashSets

AT_ONCE = {"groupReplacementPolicy": "Immediate"}


async def fails(sets: HashSets, group: Group) -> Group:
    """Let a group fail and the next one come and become ready; returns that."""
    others = set(await sets.groups())
    await sets.cluster.kubelet.restart_container(group.name)

    async def gone() -> None:
        assert group.key not in await sets.groups()

    async with sets.cluster.kubelet.playing():
        await sets.cluster.eventually(gone)
    await sets.ready()
    (new,) = (g for k, g in (await sets.groups()).items() if k not in others)
    return new


async def exhausts(sets: HashSets, group: Group) -> Group:
    """Let a group without a restart left fail; returns it as it is kept."""
    await sets.cluster.kubelet.restart_container(group.name)

    async def kept() -> Group:
        now = (await sets.groups())[group.key]
        assert len(now.pods) == len(group.pods)
        assert all(is_deleting(p) and FINALIZER in p["metadata"]["finalizers"] for p in now.pods)
        return now

    found: Group = await sets.cluster.eventually(kept)
    assert annotations_of(found.leader or {})[names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION] == "true"
    for pod in found.pods:
        # As their kubelet does once their containers have ended.
        await sets.cluster.kubelet.fail(pod["metadata"]["name"])
    return found


async def gone(sets: HashSets, group: Group) -> None:
    """Wait until nothing is left of a group."""

    async def check() -> None:
        assert group.key not in await sets.groups()

    await sets.cluster.eventually(check)


async def test_a_budget_of_one(cluster: TestCluster, sets: HashSets):
    """30 §18 line 34: the next group takes over the count; at its end a third waits; recovery lets it in with none."""
    await sets.running(replicas=2, size=2, group=limited(1))
    groups = await sets.groups()
    first, other = groups.values()
    second = await fails(sets, first)
    assert await counts(sets) == {second.key: 1}
    kept = await exhausts(sets, second)
    await sets.has_event(
        EXCEEDED,
        f"Restart budget exhausted; terminated group {second.key} and stopped automatic recovery",
        type="Warning",
    )
    (third,) = await gated(sets, 1)
    await stay(sets, third)

    async def degraded() -> None:
        said = await sets.conditions()
        assert (said["Degraded"], said["Available"], said["UpdateInProgress"]) == ("True", "False", "False")
        assert said["Progressing"] == "False"

    await cluster.eventually(degraded)
    assert await counts(sets) == {second.key: 1}
    await recover(cluster, kept.name)
    await gone(sets, kept)
    await sets.ready()
    after = await sets.groups()
    assert set(after) == {third.key, other.key}
    assert after[other.key].uids == other.uids

    async def mended() -> None:
        assert await counts(sets) == {}
        assert (await sets.conditions())["Degraded"] == "False"

    await cluster.eventually(mended)


async def test_one_that_is_kept_holds_one_back_under_every_policy(cluster: TestCluster, sets: HashSets):
    """30 §18 line 22: not even under Immediate is its place taken."""
    await sets.running(replicas=1, size=2, group=limited(0), **AT_ONCE)
    (group,) = (await sets.groups()).values()
    await exhausts(sets, group)
    (waiting,) = await gated(sets, 1)
    await stay(sets, waiting)


async def test_a_new_revision_lets_go_of_it(cluster: TestCluster, sets: HashSets):
    """30 §18 line 35: what it failed with is not what comes next."""
    await sets.running(replicas=1, size=2, group=limited(0))
    (group,) = (await sets.groups()).values()
    kept = await exhausts(sets, group)
    await gated(sets, 1)
    await sets.set_image("img:v2")
    await gone(sets, kept)
    await sets.ready()
    assert (await sets.conditions())["Degraded"] == "False"
    await sets.has_groups(1, size=2)


async def test_fewer_groups_let_go_of_it(cluster: TestCluster, sets: HashSets):
    """30 §18 line 35: scaled down to those that run, the set has no place for it, nor for the leader behind it."""
    await sets.running(replicas=2, size=2, group=limited(1))
    first, other = (await sets.groups()).values()
    second = await fails(sets, first)
    kept = await exhausts(sets, second)
    await gated(sets, 1)
    await sets.scale(1)
    await gone(sets, kept)
    after = await sets.has_groups(1, size=2)
    assert after[other.key].uids == other.uids

    async def forgotten() -> None:
        assert await counts(sets) == {}
        assert (await sets.conditions())["Available"] == "True"

    await cluster.eventually(forgotten)


async def test_counts_of_a_former_revision_are_dropped(cluster: TestCluster, sets: HashSets):
    """30 §3 item 10: once all groups are new, what the old ones were restarted counts no more."""
    await sets.running(replicas=2, size=2, group=limited(3))
    first, _ = (await sets.groups()).values()
    second = await fails(sets, first)
    assert await counts(sets) == {second.key: 1}
    await sets.set_image("img:v2")
    await sets.ready()

    async def none() -> None:
        assert await counts(sets) == {}

    await cluster.eventually(none)


async def test_a_deleted_group_hands_its_count_over(cluster: TestCluster, sets: HashSets):
    """30 §11 item 2: whoever ends a group, the next one starts with what it had left."""
    await sets.running(replicas=1, size=2, group=limited(3))
    (first,) = (await sets.groups()).values()
    second = await fails(sets, first)
    await cluster.delete(POD, second.name)
    await gone(sets, second)
    await sets.ready()
    (third,) = await sets.groups()

    async def handed_over() -> None:
        assert await counts(sets) == {third: 1}

    await cluster.eventually(handed_over)


async def test_the_deletion_of_the_set_lets_go_of_it(cluster: TestCluster, sets: HashSets):
    """Nothing keeps pods of a set that goes."""
    await sets.running(replicas=1, size=2, group=limited(0))
    (group,) = (await sets.groups()).values()
    await exhausts(sets, group)
    await cluster.delete(LEADER_WORKER_SET, "llm")

    async def none() -> None:
        assert await sets.pods() == {}

    await cluster.eventually(none)
