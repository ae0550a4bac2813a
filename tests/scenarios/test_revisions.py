"""ControllerRevisions: when one is made, how it is called, when it goes (specification: 20 §3)."""

from __future__ import annotations

import re

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import CONTROLLER_REVISION, POD, STATEFUL_SET
from lwskit.runtime.objects import controller_of, controller_reference, is_controlled_by, is_deleting, uid_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import ALL_KINDS, Sets, revision_key, strategy

KEY = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{1,10}")


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_a_new_set_has_one_revision(sets: Sets):
    """20 §14 line 1: number 1, key is the hash, labels, owner, and the event that says so."""
    created = await sets.running()
    (revision,) = await sets.revisions()
    key = revision_key(revision)
    assert KEY.fullmatch(key)
    assert revision["revision"] == 1
    assert revision["metadata"]["name"] == f"llm-{key}-1"
    assert revision["metadata"]["labels"] == {names.NAME_LABEL: "llm", names.REVISION_LABEL: key}
    owner = controller_of(revision)
    assert owner is not None
    assert owner["uid"] == created["metadata"]["uid"]
    await sets.has_event("CreatingRevision", f"Creating revision with key {key} for a newly created LeaderWorkerSet")


async def test_every_object_carries_the_key(cluster: TestCluster, sets: Sets):
    """20 §5, §10.4: the revision's key is on both StatefulSets and on all pods."""
    await sets.running()
    key = revision_key((await sets.revisions())[0])
    objects = [*await cluster.list(STATEFUL_SET), *(await sets.pods()).values()]
    assert {revision_key(o) for o in objects} == {key}


async def test_what_is_recorded(sets: Sets):
    """20 §14 line 2, §3.1: exactly the template and the network configuration, each with the patch directive."""
    await sets.running()
    (revision,) = await sets.revisions()
    spec = revision["data"]["spec"]
    assert set(revision["data"]) == {"spec"}
    assert set(spec) == {"leaderWorkerTemplate", "networkConfig"}
    assert spec["networkConfig"] == {"$patch": "replace", "subdomainPolicy": "Shared"}
    assert spec["leaderWorkerTemplate"]["$patch"] == "replace"
    assert spec["leaderWorkerTemplate"]["size"] == 3


async def test_replicas_strategy_and_metadata_make_no_revision(sets: Sets):
    """20 §14 line 3, §3.1: what is not recorded starts no rollout."""
    await sets.running()
    before, pods = await sets.revisions(), await sets.pod_uids()
    await sets.patch(
        {
            "metadata": {"labels": {"team": "b"}},
            "spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 2}}},
        }
    )
    await sets.settled()
    assert [r["metadata"]["name"] for r in await sets.revisions()] == [r["metadata"]["name"] for r in before]
    assert await sets.pod_uids() == pods


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_two_revisions_during_a_rollout_and_one_after_it(cluster: TestCluster, sets: Sets):
    """20 §14 line 12: given a rollout finished with partition 0, only the current key remains."""
    await sets.running()
    (first,) = await sets.revisions()
    await sets.set_image("img:v2")

    async def two() -> None:
        assert [r["revision"] for r in await sets.revisions()] == [1, 2]

    await cluster.eventually(two)
    new = revision_key((await sets.revisions())[1])
    await sets.has_event("CreatingRevision", f"Creating revision with key {new} for updated LWS")
    await sets.ready()

    async def one() -> None:
        assert [revision_key(r) for r in await sets.revisions()] == [new]
        assert new != revision_key(first)

    await cluster.eventually(one)


async def test_a_change_during_a_rollout_makes_a_third_revision(cluster: TestCluster, sets: Sets):
    """20 §14 line 13: given a template change mid-rollout, 3 revisions until the end, then 1."""
    await sets.running()
    await sets.set_image("img:v2")

    async def count(wanted: int) -> None:
        assert len(await sets.revisions()) == wanted

    await cluster.eventually(lambda: count(2))
    await sets.set_image("img:v3")
    await cluster.eventually(lambda: count(3))
    await sets.ready()
    await cluster.eventually(lambda: count(1))
    assert {p["spec"]["containers"][0]["image"] for p in (await sets.pods()).values()} == {"img:v3"}


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_a_missing_revision_is_made_with_the_key_of_the_workload(cluster: TestCluster, sets: Sets):
    """20 §14 line 9: given a StatefulSet whose revision is gone, one with its key is made and no rollout starts."""
    await sets.running()
    (revision,) = await sets.revisions()
    pods = await sets.pod_uids()
    await cluster.delete(CONTROLLER_REVISION, revision["metadata"]["name"])
    await sets.patch({"metadata": {"labels": {"touched": "1"}}})

    async def back() -> None:
        made = (await sets.revisions())[0]
        assert made["metadata"]["uid"] != revision["metadata"]["uid"]
        assert revision_key(made) == revision_key(revision)

    await cluster.eventually(back)
    note = f"Creating missing revision with key {revision_key(revision)} for existing LeaderWorkerSet"
    await sets.has_event("CreatingRevision", note)
    await sets.settled()
    assert await sets.pod_uids() == pods


async def test_revisions_of_another_owner_are_ignored(cluster: TestCluster, sets: Sets):
    """20 §14 line 6: given revisions of another UID with the same name label, they count for nothing."""
    other = await sets.create("other", replicas=0)
    body = {
        "metadata": {
            "name": "llm-left-7",
            "labels": {names.NAME_LABEL: "llm", names.REVISION_LABEL: "left"},
            "ownerReferences": [controller_reference(other, LEADER_WORKER_SET)],
        },
        "data": {"spec": {"leaderWorkerTemplate": {"size": 9}}},
        "revision": 7,
    }
    await cluster.create(CONTROLLER_REVISION, body)
    mine = await sets.running(replicas=1, size=1)
    assert [
        r["revision"] for r in await sets.revisions() if is_controlled_by(r, LEADER_WORKER_SET, mine["metadata"]["uid"])
    ] == [1]
    await sets.settled()
    assert "llm-left-7" in await cluster.names(CONTROLLER_REVISION)


async def test_a_revision_stays_while_surge_leaders_end(cluster: TestCluster, sets: Sets):
    """20 §3.6, §3.8: until the StatefulSet has let go of the old template it makes lost leaders of it, with workers."""
    await sets.running(replicas=2, size=2, rolloutStrategy=strategy(maxUnavailable=1, maxSurge=1))
    await sets.set_image("img:v2")
    await sets.has_pods("llm-0", "llm-0-1", "llm-1", "llm-1-1", "llm-2", "llm-2-1")
    # The last old leader goes no sooner than the surge: with all of them ready the StatefulSet would let go at once.
    for name in ("llm-0", "llm-2"):
        await cluster.patch(POD, name, {"metadata": {"finalizers": ["example.com/mine"]}})

    async def surge_ends() -> None:
        assert is_deleting((await sets.pods())["llm-2"])

    async def ended() -> None:
        assert (await sets.conditions())[names.CONDITION_AVAILABLE] == "True"

    async with cluster.kubelet.playing():
        await cluster.eventually(surge_ends)
        await cluster.patch(POD, "llm-0", {"metadata": {"finalizers": None}})
        await cluster.eventually(ended)
        await cluster.settled(*ALL_KINDS)
    kept = {revision_key(r) for r in await sets.revisions()}
    assert len(kept) == 2
    await sets.set_image("img:v3")
    before = (await sets.pods())["llm-0"]
    await cluster.delete(POD, "llm-0")

    async def whole() -> None:
        pods = await sets.live_pods()
        assert uid_of(pods["llm-0"]) != uid_of(before)
        assert revision_key(pods["llm-0-1"]) == revision_key(pods["llm-0"])

    await cluster.eventually(whole)
    await cluster.patch(POD, "llm-2", {"metadata": {"finalizers": None}})
    await sets.ready()

    async def one() -> None:
        assert len(await sets.revisions()) == 1

    await cluster.eventually(one)
