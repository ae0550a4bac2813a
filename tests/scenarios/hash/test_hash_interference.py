"""What other clients do to the groups of a set in Hash mode: it is put right, or a person is told what to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups import identity
from lwskit.manager import undertest
from lwskit.manager.development import CONFIGURATIONS
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import (
    Obj,
    annotations_of,
    controller_reference,
    is_true,
    labels_of,
    uid_of,
)
from lwskit.testing.cluster import Runnable, TestCluster
from tests.scenarios.budgets import counts, limited
from tests.scenarios.hash.gating import gated, lingering, stay
from tests.scenarios.hash.support import Group, HashSets, said
from tests.scenarios.hash.test_hash_budget import exhausts, fails, gone
from tests.scenarios.support import pod_template, revision_key
from tests.scenarios.test_interference import scale_workers, unlabelled

ALONE = {"restartPolicy": "None"}
COST = names.POD_DELETION_COST_ANNOTATION


async def not_available(sets: HashSets, leader: str, ready: int) -> None:
    """With its condition a leader is not ready, and the set counts so many groups as ready."""
    await said(sets, leader, "False")
    await sets.cluster.kubelet.ready(leader)

    async def check() -> None:
        assert not is_true(await sets.leader(leader), "Ready")
        assert (await sets.live())["status"].get("readyReplicas", 0) == ready
        assert (await sets.conditions())[names.CONDITION_AVAILABLE] == "False"

    await sets.cluster.eventually(check)


async def cost_is(sets: HashSets, leader: str, cost: str | None) -> None:
    """Wait until a leader has that deletion cost, or with None has none."""

    async def check() -> None:
        assert annotations_of(await sets.leader(leader)).get(COST) == cost

    await sets.cluster.eventually(check)


async def counted(sets: HashSets, wanted: dict[str, int]) -> None:
    """Wait until these are the counts of restarts."""

    async def check() -> None:
        assert await counts(sets) == wanted

    await sets.cluster.eventually(check)


# Workers that are not their leader's ----------------------------------------------------------------------------------


async def test_workers_without_an_owner_make_no_ready_group(cluster: TestCluster, sets: HashSets):
    """30 §9, §6 item 16: what the group has is not its own. It is told of, and goes on once that is deleted."""
    await sets.running(replicas=2, size=2, group=ALONE)
    first, other = (await sets.groups()).values()
    await cluster.patch(STATEFUL_SET, first.host, {"metadata": {"ownerReferences": None}})
    note = (
        f"worker statefulset {cluster.namespace}/{first.host} is not controlled by leader pod {first.name}: it has no "
        "owner; delete it, and the group gets one of its own"
    )
    await sets.has_event("FailedCreate", note, type="Warning")
    await not_available(sets, first.name, 1)
    await cluster.delete(STATEFUL_SET, first.host)
    await sets.ready()
    after = await sets.has_groups(2, size=2)
    assert uid_of(after[first.key].leader or {}) == uid_of(first.leader or {})
    assert after[other.key].uids == other.uids


async def test_workers_of_another_leader_make_no_ready_group(cluster: TestCluster, sets: HashSets):
    """30 §18 29: the name is taken by another object's workers."""
    await sets.running(replicas=2, size=2, group=ALONE)
    first, other = (await sets.groups()).values()
    owner = controller_reference(other.leader or {}, POD)
    await cluster.patch(STATEFUL_SET, first.host, {"metadata": {"ownerReferences": [owner]}})
    note = (
        f"worker statefulset {cluster.namespace}/{first.host} is not controlled by leader pod {first.name} but by Pod "
        f"{other.name}; delete pod {first.name} to give its group another name"
    )
    await sets.has_event("FailedCreate", note, type="Warning")
    await not_available(sets, first.name, 1)
    await cluster.delete(STATEFUL_SET, first.host)
    await sets.ready()
    assert set(await sets.has_groups(2, size=2)) == {first.key, other.key}


async def held_up_by(sets: HashSets, former: Group, note: str, size: int = 2) -> None:
    """A leader waits for what is left of a former group, of which a person is told; it goes on once that is deleted."""
    await sets.has_event("FailedCreate", note, type="Warning")
    (waiting,) = await gated(sets, 1)
    await stay(sets, waiting)
    await sets.cluster.delete(STATEFUL_SET, former.host)
    await gone(sets, former)
    await sets.ready()
    assert waiting.key in await sets.has_groups(2, size=size)


async def test_workers_that_are_left_behind_are_told_of(cluster: TestCluster, sets: HashSets):
    """30 §7: as `kubectl delete pod LEADER --cascade=orphan` leaves them, they keep their group's place."""
    await sets.running(replicas=2, size=2)
    former, _ = (await sets.groups()).values()
    await cluster.delete(POD, former.name, propagation="Orphan")
    left = f"worker statefulset {former.host} has no owner, and leader pod {former.name} is gone"
    await held_up_by(sets, former, f"{left}, whose group keeps its place as long; delete it")


async def test_a_leader_that_goes_leaves_workers_that_were_not_its_own(cluster: TestCluster, sets: HashSets):
    """30 §7: nobody removes them, and the next leader waits."""
    await sets.running(replicas=2, size=2)
    former, _ = (await sets.groups()).values()
    await cluster.patch(STATEFUL_SET, former.host, {"metadata": {"ownerReferences": None}})
    await said(sets, former.name, "False")
    await cluster.delete(POD, former.name)
    left = f"worker statefulset {former.host} has no owner, and leader pod {former.name} is gone"
    await held_up_by(sets, former, f"{left}, whose group keeps its place as long; delete it")


class TestManagers:
    """What was done while no manager ran."""

    @pytest.fixture
    def cluster_runnables(self) -> Sequence[Runnable]:
        """None: the test starts its managers itself."""
        return ()

    @pytest.mark.virtual_only("needs a time without any manager")
    async def test_workers_that_were_left_behind_between_two_managers_are_told_of(
        self, cluster: TestCluster, sets: HashSets
    ):
        """30 §7: the next manager sees no leader go, only workers that nobody removes."""
        async with undertest.webhooks(cluster):
            async with undertest.process(cluster):
                await sets.running(replicas=2, size=3)
                former, _ = (await sets.groups()).values()
            await cluster.delete(POD, former.name, propagation="Orphan")
            await sets.settled()
            async with undertest.process(cluster):
                left = f"worker statefulset {former.host} has no owner, and leader pod {former.name} is gone"
                await held_up_by(sets, former, f"{left}, whose group keeps its place as long; delete it", size=3)


async def test_a_leader_that_lost_its_label_is_told_of(cluster: TestCluster, sets: HashSets):
    """30 §7: as one takes a pod out of its set to look at it. Its workers go on, so the next leader waits for them."""
    await sets.running(replicas=2, size=2)
    former, other = (await sets.groups()).values()
    await cluster.patch(POD, former.name, unlabelled(names.NAME_LABEL))
    note = (
        f"leader pod {former.name} has lost label {names.NAME_LABEL}: another leader is made for it, and waits until "
        f"its workers are gone; delete pod {former.name} once you are done with it"
    )
    await sets.has_event("FailedCreate", note, type="Warning")
    (waiting,) = await gated(sets, 1)
    await stay(sets, waiting)
    await cluster.delete(POD, former.name)
    await gone(sets, former)
    await sets.ready()
    assert set(await sets.has_groups(2, size=2)) == {waiting.key, other.key}


async def test_a_leader_that_is_deleted_at_once_is_no_case_of_that(cluster: TestCluster, sets: HashSets):
    """A leader without a node is gone in the moment it is deleted: nothing is wrong with it."""
    await sets.running(replicas=2, size=2)
    former, _ = (await sets.groups()).values()
    await cluster.delete(POD, former.name)
    await gone(sets, former)
    await sets.ready()
    assert [e["note"] for e in await sets.events() if e["type"] == "Warning"] == []


async def test_a_group_whose_workers_somebody_scaled_away_is_not_ready(cluster: TestCluster, sets: HashSets):
    """30 §9: ready is a whole group, and a StatefulSet without replicas has all that it asks for."""
    await sets.running(replicas=2, size=3, group=ALONE)
    first, _ = (await sets.groups()).values()
    for replicas in (0, 1):
        await scale_workers(cluster, first.host, replicas)
        await not_available(sets, first.name, 1)
        async with cluster.kubelet.playing():
            await cluster.consistently(lambda: said(sets, first.name, "False"), duration=1)
    await scale_workers(cluster, first.host, 2)
    await sets.ready()


# Keys that begin alike ------------------------------------------------------------------------------------------------


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """All keys begin alike, until it is undone."""
    real = identity.group_key
    monkeypatch.setattr(identity, "group_key", lambda *parts: "deadbeef" + real(*parts)[8:])
    return monkeypatch


async def with_one_name(sets: HashSets) -> tuple[Group, Group]:
    """Two groups whose keys begin alike: the one that was first has workers."""
    await sets.create(replicas=2, size=2)

    async def both() -> tuple[Group, Group]:
        groups = sorted((await sets.groups()).values(), key=lambda g: len(g.pods))
        assert [len(g.pods) for g in groups] == [1, 2]
        return groups[1], groups[0]

    found: tuple[Group, Group] = await sets.cluster.eventually(both)
    return found


@pytest.mark.virtual_only("draws its keys in this process")
async def test_keys_that_begin_alike(cluster: TestCluster, sets: HashSets, alike: pytest.MonkeyPatch):
    """30 §6 item 16: the second group gets no workers and is told of; with its leader deleted it has another name."""
    first, second = await with_one_name(sets)
    note = (
        f"worker statefulset {cluster.namespace}/llm-deadbeef is not controlled by leader pod {second.name} but by Pod "
        f"{first.name}; delete pod {second.name} to give its group another name"
    )
    await sets.has_event("FailedCreate", note, type="Warning")
    await said(sets, second.name, "False")
    alike.undo()
    await cluster.delete(POD, second.name)
    await sets.ready()
    assert (await sets.has_groups(2, size=2))[first.key].host == first.host


@pytest.mark.virtual_only("draws its keys in this process, and takes minutes")
async def test_a_name_that_gets_free_is_taken_at_once(cluster: TestCluster, sets: HashSets, alike: pytest.MonkeyPatch):
    """30 §6, event sources: however often it was tried in vain, a leader whose name others had need not wait again."""
    first, second = await with_one_name(sets)
    alike.undo()
    await cluster.consistently(lambda: said(sets, second.name, "False"), duration=600)
    await cluster.delete(POD, first.name)
    begin = cluster.clock.now()

    async def has_workers() -> None:
        assert len((await sets.groups())[second.key].pods) == 2

    await cluster.eventually(has_workers)
    assert (cluster.clock.now() - begin).total_seconds() < 5


@pytest.mark.virtual_only("draws its keys in this process")
async def test_keys_that_begin_alike_and_a_service_for_each_group(
    cluster: TestCluster, sets: HashSets, alike: pytest.MonkeyPatch
):
    """30 §6 item 8: the Service is the other group's, so its deletion would be no help."""
    await sets.create(replicas=2, size=1, networkConfig={"subdomainPolicy": "UniquePerReplica"})
    (second,) = await gated(sets, 1)
    note = (
        f"Failed to create headless service for error: Service llm-deadbeef belongs to another object than leader pod "
        f"{second.name}; delete that pod to give its group another name"
    )
    await sets.has_event("FailedCreate", note, type="Warning")
    alike.undo()
    await cluster.delete(POD, second.name)
    await sets.ready()


# The gate, and counts -------------------------------------------------------------------------------------------------


async def test_a_gate_that_somebody_else_took_away(cluster: TestCluster, sets: HashSets):
    """30 §5 item 8, §11 item 2: the cost goes with the gate, and the budget with the group, whoever lets it in."""
    await sets.running(replicas=1, size=2, group=limited(1))
    (first,) = (await sets.groups()).values()
    async with lingering(cluster, first):
        await cluster.kubelet.restart_container(first.name)
        (waiting,) = await gated(sets, 1)
        await cost_is(sets, waiting.name, names.GATED_DELETION_COST)
        await counted(sets, {first.key: 1})
        await cluster.patch(POD, waiting.name, {"spec": {"schedulingGates": None}})
        await cost_is(sets, waiting.name, None)
        await counted(sets, {waiting.key: 1})
    await gone(sets, first)
    await sets.ready()
    await sets.settled()
    assert await counts(sets) == {waiting.key: 1}
    await exhausts(sets, (await sets.groups())[waiting.key])


async def test_a_gate_that_somebody_else_took_away_where_nothing_is_counted(cluster: TestCluster, sets: HashSets):
    await sets.running(replicas=1, size=2)
    (first,) = (await sets.groups()).values()
    async with lingering(cluster, first):
        await cluster.delete(POD, first.name)
        (waiting,) = await gated(sets, 1)
        await cluster.patch(POD, waiting.name, {"spec": {"schedulingGates": None}})
        await cost_is(sets, waiting.name, None)
    await sets.ready()


async def test_groups_come_while_counts_cannot_be_read(cluster: TestCluster, sets: HashSets):
    """30 §11 item 2: a leader takes over its count as soon as that can be read, and is not kept waiting for it."""
    await sets.running(replicas=2, size=2, group=limited(3))
    first, _ = (await sets.groups()).values()
    second = await fails(sets, first)
    await counted(sets, {second.key: 1})
    stored = annotations_of(await sets.live())[names.GROUP_RESTART_COUNTS_ANNOTATION]
    assert json.loads(stored) == {f"{revision_key(second.leader or {})}/{second.key}": 1}
    await sets.patch({"metadata": {"annotations": {names.GROUP_RESTART_COUNTS_ANNOTATION: "many"}}})
    before = set(await sets.groups())
    await cluster.delete(POD, second.name)
    await gone(sets, second)
    await sets.ready()
    (third,) = (g for k, g in (await sets.has_groups(2, size=2)).items() if k not in before)
    await cost_is(sets, third.name, names.GATED_DELETION_COST)
    await sets.patch({"metadata": {"annotations": {names.GROUP_RESTART_COUNTS_ANNOTATION: stored}}})
    await cost_is(sets, third.name, None)
    await counted(sets, {third.key: 1})
    await sets.settled()
    assert await counts(sets) == {third.key: 1}


# Leaders that are not what admission makes ----------------------------------------------------------------------------


def no_key(leader: str) -> str:
    """What is told of a leader that admission did not see."""
    return (
        f"leader pod {leader} has no group key, for admission did not run when it was made; delete it, and its "
        "ReplicaSet makes another"
    )


@pytest.mark.parametrize("size", [1, 2])
async def test_a_leader_without_a_key_is_told_of(cluster: TestCluster, sets: HashSets, size: int):
    """30 §5: admission sees pods with the set's label when they are made, and no others."""
    await sets.running(replicas=1, size=size)
    (group,) = (await sets.groups()).values()
    led = group.leader or {}
    notes = {names.SIZE_ANNOTATION: str(size), names.GROUP_IDENTITY_ANNOTATION: names.IDENTITY_HASH}
    pod: Obj = {"metadata": {"name": "stray", "annotations": notes}, **pod_template("img:v1")}
    await cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", **pod})
    labels = {k: v for k, v in labels_of(led).items() if k in (names.NAME_LABEL, names.WORKER_INDEX_LABEL)}
    await cluster.patch(POD, "stray", {"metadata": {"labels": labels}})
    await sets.has_event("FailedCreate", no_key("stray"), type="Warning")


@pytest.mark.virtual_only("takes the webhooks away from all tests of the cluster")
@pytest.mark.parametrize("size", [1, 2])
async def test_a_leader_that_was_made_without_admission(cluster: TestCluster, sets: HashSets, size: int):
    """30 §5: nothing can be made for it; deleted as the event says, the set goes on."""
    await sets.running(replicas=2, size=size)
    first, _ = (await sets.groups()).values()
    registered: list[tuple[Any, Obj]] = []
    for kind, name in CONFIGURATIONS:
        found = await cluster.client.get(kind, name)
        registered.append((kind, {**found, "metadata": {"name": name}}))
        await cluster.client.delete(kind, name)
    before = set(await sets.pods())
    await cluster.delete(POD, first.name)

    async def another() -> str:
        new = set(await sets.pods()) - before
        assert len(new) == 1
        return new.pop()

    made = await cluster.eventually(another)
    for kind, body in registered:
        await cluster.client.create(kind, body)
    await sets.has_event("FailedCreate", no_key(made), type="Warning")
    await cluster.delete(POD, made)

    async def replaced() -> None:
        assert made not in await sets.pods()

    await cluster.eventually(replaced)
    await sets.ready()
    await sets.has_groups(2, size=size)


async def test_a_leader_without_its_group_index_leads_the_same_group(cluster: TestCluster, sets: HashSets):
    """30 §7: its workers are no group that goes, so nobody waits for them."""
    await sets.running(replicas=2, size=2)
    first, second = (await sets.groups()).values()
    await cluster.patch(POD, first.name, unlabelled(names.GROUP_INDEX_LABEL))
    await cluster.delete(POD, second.name)
    await gone(sets, second)
    await sets.ready()
    assert (await sets.has_groups(2, size=2))[first.key].uids == first.uids
