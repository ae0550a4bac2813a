"""A DisaggregatedSet without a rollout: what is scaled and mended in place (specification: 50 §4, §6)."""

from __future__ import annotations

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.support import (
    DisaggregatedSets,
    initial_of,
    replicas_of,
    role,
    rolling,
    two_roles,
    written_about,
)
from tests.scenarios.support import pod_template


@pytest.mark.undisturbed("it counts requests")
@pytest.mark.parametrize(("was", "wanted"), [(2, 5), (5, 1)])
async def test_another_count_scales_the_same_child(
    cluster: TestCluster, sets: DisaggregatedSets, was: int, wanted: int
):
    """50 §23 line 20: given replicas 2 to 5 or 5 to 1, one write scales the same child; initial-replicas follows."""
    await sets.running(*two_roles(1, was))
    await sets.settled()
    uids, before = await cluster.uids(LEADER_WORKER_SET), len(written_about(cluster))
    await sets.scale_role("decode", wanted)
    await sets.has_children("0/prefill=1", f"0/decode={wanted}")
    await sets.ready()
    assert await cluster.uids(LEADER_WORKER_SET) == uids
    child = await sets.child("decode")
    assert initial_of(child) == str(wanted)
    writes = [line for line in written_about(cluster)[before:] if names.PLURAL not in line]
    assert writes == [f"patch leaderworkersets/{child['metadata']['name']}"]
    assert "RollingUpdateStarted" not in await sets.reasons()


async def test_a_scale_by_hand_is_reverted(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 21: given a manual scale of a child, it is reverted."""
    await sets.running()
    name = (await sets.child("decode"))["metadata"]["name"]
    for count in (0, 7):
        await cluster.patch(LEADER_WORKER_SET, name, {"spec": {"replicas": count}}, subresource="scale")
        await sets.has_children("0/prefill=1", "0/decode=2")
    await sets.ready()


async def test_other_edits_of_a_child_stay(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §6: nothing else of an existing child is ever made even."""
    await sets.running()
    name = (await sets.child("decode"))["metadata"]["name"]
    mine = {"metadata": {"labels": {"mine": "yes"}}, "spec": {"startupPolicy": "LeaderReady"}}
    await cluster.patch(LEADER_WORKER_SET, name, mine)

    async def kept() -> None:
        child = await sets.child("decode")
        assert child["metadata"]["labels"]["mine"] == "yes"
        assert child["spec"]["startupPolicy"] == "LeaderReady"

    await cluster.consistently(kept)


async def test_the_replacement_policy_follows_in_place(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 22: given a changed groupReplacementPolicy, the child is patched in place."""
    await sets.running(*two_roles(spec={"groupIdentity": "Hash"}))
    uids = await cluster.uids(LEADER_WORKER_SET)

    def change(one: Obj) -> None:
        one["spec"]["groupReplacementPolicy"] = "Immediate"

    await sets.edit_roles(change)

    async def followed() -> None:
        for child in (await sets.children()).values():
            assert child["spec"]["groupReplacementPolicy"] == "Immediate"

    await cluster.eventually(followed)
    assert await cluster.uids(LEADER_WORKER_SET) == uids
    assert len(await sets.revisions()) == 1


async def test_what_is_no_revision(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 17: order of roles, counts, scaling, slices, placement, policy and limits begin no rollout."""
    await sets.running()
    uids, before = await cluster.uids(LEADER_WORKER_SET), await sets.revisions()
    prefill, decode = two_roles(2, 3, spec=rolling(1, 0))
    decode["scaling"] = {"mode": "External"}
    spec = {
        "roles": [decode, prefill],
        "scalingPolicy": {"duringRollout": "AdvanceRollout"},
        "placementPolicy": {"type": "ExclusiveSlice", "topology": "rack"},
    }
    await sets.patch({"spec": spec})
    await sets.has_children("0/prefill=2", "0/decode=2")
    await sets.ready()
    assert await sets.revisions() == before
    assert await cluster.uids(LEADER_WORKER_SET) == uids


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"startupPolicy": "LeaderReady"}},
        {"spec": {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}},
        {"spec": {"groupIdentity": "Hash"}},
        {"metadata": {"labels": {"queue": "gpu"}}},
        {"template": pod_template("img:v2")},
    ],
    ids=["startup", "network", "identity", "metadata", "template"],
)
async def test_what_is_a_new_revision(cluster: TestCluster, sets: DisaggregatedSets, change: Obj):
    """50 §23 line 17: template, startupPolicy, networkConfig, groupIdentity and role metadata change the revision."""
    await sets.running(role("prefill"), role("decode"))
    before = await sets.revisions()
    await sets.set_roles(role("prefill"), role("decode", **change))

    async def another() -> None:
        assert await sets.revisions() - before

    await cluster.eventually(another)


async def test_a_child_that_is_deleted_comes_back(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §6: a missing child is made anew; one that is being deleted has to be gone before."""
    await sets.running()
    name = (await sets.child("decode"))["metadata"]["name"]
    for propagation in ("Background", "Foreground"):
        uids = await cluster.uids(LEADER_WORKER_SET)
        await cluster.delete(LEADER_WORKER_SET, name, propagation)

        async def back(old: str = uids[name]) -> None:
            child = await sets.child("decode")
            assert child["metadata"]["uid"] != old
            assert replicas_of(child) == 2

        await cluster.eventually(back)
        await sets.ready()


async def test_a_role_gets_another_identity(cluster: TestCluster, sets: DisaggregatedSets):
    """30 §18 line 42: given a role Ordinal to Hash, a normal rollout; a groupReplacementPolicy change rolls nothing."""
    await sets.running(role("prefill"), role("decode"))
    (old,) = await sets.revisions()
    await sets.set_roles(role("prefill"), role("decode", spec={"groupIdentity": "Hash"}))

    async def rolled() -> None:
        found = await sets.revisions()
        assert len(found) == 1
        assert found != {old}
        assert (await sets.child("decode"))["spec"]["groupIdentity"] == "Hash"

    await sets.eventually(rolled)
    await sets.ready()
    uids = await cluster.uids(LEADER_WORKER_SET)
    spec = {"groupIdentity": "Hash", "groupReplacementPolicy": "Immediate"}
    await sets.set_roles(role("prefill"), role("decode", spec=spec))

    async def followed() -> None:
        assert (await sets.child("decode"))["spec"]["groupReplacementPolicy"] == "Immediate"

    await cluster.eventually(followed)
    assert (await cluster.uids(LEADER_WORKER_SET)).items() <= uids.items()
    assert len(await sets.revisions()) == 1


async def test_a_role_that_is_refused_holds_up_no_other(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §6: for each role, in no order. The first is not made, then it is not scaled."""

    async def told(name: str, reason: str) -> None:
        async def check() -> None:
            assert reason in await sets.reasons(name)

        await cluster.eventually(check)

    await sets.create(role("prefill", 1, metadata={"labels": {"a": "!"}}), role("decode", 1), name="bad")
    await sets.has_children("0/decode=1", name="bad")
    await told("bad", names.EVENT_FAILED_CREATE)

    await sets.running(role("prefill", scaling={"mode": names.SCALING_EXTERNAL}), role("decode", 1))
    await sets.scale("chat-prefill", 2_000_000)
    await told("chat", names.EVENT_FAILED_UPDATE)
    await sets.scale_role("decode", 3)
    await sets.has_children("0/prefill=1", "0/decode=3")
