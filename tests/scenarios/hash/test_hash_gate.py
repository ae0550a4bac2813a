"""The gate of group replacement: when the next group may take the place of one that goes (specification: 30 §7)."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, annotations_of, is_deleting, labels_of, uid_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.observer import Observer
from tests.scenarios.hash.gating import gated, lingering, pass_a_second, stay
from tests.scenarios.hash.support import HashSets, is_gated
from tests.scenarios.support import strategy

IMMEDIATE = {"groupReplacementPolicy": "Immediate"}


@pytest.mark.undisturbed("it waits for events")
async def test_a_replacement_waits_for_the_pods_of_the_group_before(cluster: TestCluster, sets: HashSets):
    """30 §18 lines 18, 19, 21: it is deferred with an event while pods of the former group exist, then admitted."""
    await sets.running(replicas=2, size=2)
    first, _ = (await sets.groups()).values()
    async with lingering(cluster, first):
        await cluster.delete(POD, first.name)
        (waiting,) = await gated(sets, 1)
        note = f"Leader pod {waiting.name} waits for 1 terminating group(s) to be removed before scheduling"
        event = await sets.has_event("GroupReplacementDeferred", note)
        assert event["action"] == "Update"
        await stay(sets, waiting)
        assert first.key in await sets.groups()
    await sets.has_groups(2, size=2)
    live = await sets.leader(waiting.name)
    assert "schedulingGates" not in live["spec"]
    assert names.POD_DELETION_COST_ANNOTATION not in annotations_of(live)
    await sets.has_event("GroupReplacementAdmitted", f"Leader pod {waiting.name} admitted for scheduling")
    said = [e for e in await sets.events() if e["reason"] == "GroupReplacementDeferred"]
    assert [(e["note"], (e.get("series") or {}).get("count", 1)) for e in said] == [(note, 1)]


async def test_each_group_that_is_gone_admits_one(cluster: TestCluster, sets: HashSets):
    """30 §18 line 20: two leaving groups hold two leaders; once one is gone, the oldest goes and the newest stays."""
    await sets.running(replicas=3, size=2)
    first, second, _ = (await sets.groups()).values()
    async with lingering(cluster, second):
        async with lingering(cluster, first):
            await cluster.delete(POD, first.name)
            (older,) = await gated(sets, 1)
            await pass_a_second(cluster)
            await cluster.delete(POD, second.name)
            await gated(sets, 2)
            await stay(sets, older)
        (newer,) = await gated(sets, 1)
        assert newer.name != older.name
        await stay(sets, newer)
    await sets.has_groups(3, size=2)


async def test_a_terminating_worker_of_a_living_leader_blocks_nobody(cluster: TestCluster, sets: HashSets):
    """30 §18 line 21: only a group without a living leader takes its place."""
    await sets.running(replicas=1, size=2, group={"restartPolicy": "None"})
    (group,) = (await sets.groups()).values()
    async with lingering(cluster, group):
        await cluster.delete(POD, group.workers[0]["metadata"]["name"])
        await sets.scale(2)

        async def admitted() -> None:
            groups = await sets.living()
            assert len(groups) == 2
            assert not any(g.gated for g in groups.values())

        await cluster.eventually(admitted)
        assert is_deleting((await sets.groups())[group.key].workers[0])
    await sets.has_groups(2, size=2)


async def test_at_once(cluster: TestCluster, sets: HashSets):
    """30 §18 line 22: under Immediate the next group does not wait for the former one."""
    await sets.running(replicas=1, size=2, **IMMEDIATE)
    (first,) = (await sets.groups()).values()
    async with lingering(cluster, first):
        await cluster.delete(POD, first.name)

        async def both() -> None:
            groups = await sets.groups()
            assert len(groups) == 2
            assert [len(g.pods) for k, g in groups.items() if k != first.key] == [2]
            assert groups[first.key].workers

        await cluster.eventually(both)
    await sets.has_groups(1, size=2)


async def test_the_policy_may_be_changed_while_somebody_waits(cluster: TestCluster, sets: HashSets):
    """30 §18 line 25: with Immediate waiting leaders are admitted, and no pod is replaced for it."""
    await sets.running(replicas=2, size=2)
    first, other = (await sets.groups()).values()
    async with lingering(cluster, first):
        await cluster.delete(POD, first.name)
        (waiting,) = await gated(sets, 1)
        await sets.patch({"spec": IMMEDIATE})
        await gated(sets, 0)
        groups = await sets.living()
        assert {waiting.key, other.key} == set(groups)
        assert groups[other.key].uids == other.uids
        assert uid_of(groups[waiting.key].leader or {}) == uid_of(waiting.leader or {})
    assert len(await sets.revisions()) == 1


async def test_a_leader_of_a_revision_that_is_replaced_never_gets_in(cluster: TestCluster, sets: HashSets):
    """30 §18 line 23: of two changes close to another, leaders of the first wait until they are removed."""
    await sets.running(replicas=2, size=2, rolloutStrategy=strategy(maxUnavailable=1))
    groups = await sets.groups()
    async with cluster.observe(POD) as pods, lingering(cluster, *groups.values()):
        await sets.set_image("img:v2")
        (superseded,) = await gated(sets, 1)
        await sets.set_image("img:v3")

        async def replaced() -> None:
            found = [g for g in (await sets.living()).values() if g.gated]
            assert found
            assert all(g.key != superseded.key for g in found)

        await cluster.eventually(replaced)
    await sets.ready()
    seen = {c.name: c.obj for c in pods.changes}
    assert is_gated(seen[superseded.name])
    assert {p["spec"]["containers"][0]["image"] for p in (await sets.pods()).values()} == {"img:v3"}


def most_places(pods: Observer) -> int:
    """Of how many groups at once there were pods that are, or might have been put, on a node: of all that were seen."""
    there: dict[str, Obj] = {}
    most = 0
    for change in pods.changes:
        if change.type == "DELETED":
            there.pop(change.uid, None)
        else:
            there[change.uid] = change.obj
        most = max(most, len({labels_of(p)[names.GROUP_KEY_LABEL] for p in there.values() if not is_gated(p)}))
    return most


@pytest.mark.parametrize(("policy", "most"), [("PostTermination", 3), ("Immediate", 4)])
async def test_no_more_groups_than_there_is_room_for(cluster: TestCluster, sets: HashSets, policy: str, most: int):
    """Without surge, pods that may hold capacity are never of more groups than are wanted, whatever happens: a rollout,
    lost workers and leaders, another size, and groups that are slow to go. Under Immediate they are."""
    async with cluster.observe(POD) as pods:
        await sets.running(replicas=3, size=2, groupReplacementPolicy=policy)
        first = next(iter((await sets.groups()).values()))
        async with cluster.kubelet.playing():
            async with lingering(cluster, first):
                await sets.set_image("img:v2")
                await cluster.delete(POD, first.name)

                async def goes() -> None:
                    living = await sets.living()
                    assert first.key not in living
                    assert len(living) == 3
                    # Those of a revision that goes wait at their gate until they are gone.
                    assert policy == "PostTermination" or not any(g.gated for g in living.values())

                await cluster.eventually(goes)
            await sets.ready()
            for index, group in enumerate(list((await sets.groups()).values())[:2]):
                gone = group.name if index else group.workers[0]["metadata"]["name"]
                await cluster.delete(POD, gone)
            await sets.ready()
            await sets.scale(1)
            await sets.scale(3)
            await sets.ready()
        await sets.has_groups(3, size=2)
    if policy == "PostTermination":
        assert most_places(pods) == most
    else:
        assert most_places(pods) >= most
