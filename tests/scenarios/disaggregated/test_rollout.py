"""Rollouts from the template's change to the last old child (specification: 50 §7, §10)."""

from __future__ import annotations

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import InternalError
from lwskit.runtime.objects import labels_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.disaggregated.rollouts import (
    Story,
    children_of,
    finished,
    newest,
    ready_but,
    stand_of,
    stands,
)
from tests.scenarios.disaggregated.support import (
    DisaggregatedSets,
    initial_of,
    replicas_of,
    role,
    rolling,
    two_roles,
    written_about,
)

SURGE = rolling(1, 0)
ROLES = ("prefill", "decode")
THIRD = "-2"
"""The end of the name of a role's third group: if it does not get ready, a target that is to have more stays at 3."""


async def started(sets: DisaggregatedSets, prefill: int = 4, decode: int = 2) -> tuple[str, str]:
    """A set whose new revision has one group of each role that does not get ready. Returns the old and the new one."""
    await sets.running(*two_roles(prefill, decode, spec=SURGE))
    (old,) = await sets.revisions()
    await sets.set_image("img:v2")
    new = await newest(sets, old)
    await stands(sets, new, prefill=1, decode=1)
    await sets.has_event("RollingUpdateStarted", f"Started rolling update to revision {new}")
    return old, new


async def completed(sets: DisaggregatedSets, revision: str) -> None:
    """All pods become ready until the rollout is over, of which there was one event for this revision."""
    async with sets.cluster.kubelet.playing():
        await finished(sets, revision)
        await sets.has_event("RollingUpdateCompleted", f"Completed rolling update to revision {revision}")
    await sets.ready()
    assert (await sets.reasons()).count("RollingUpdateCompleted") == 1


async def test_a_rollout_begins_with_children_without_groups(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 25: with initial-replicas as desired; groups come in a later pass."""
    await sets.running(*two_roles(3, 2, spec=SURGE))
    (old,) = await sets.revisions()
    async with cluster.observe(LEADER_WORKER_SET) as observer:
        await sets.set_image("img:v2")
        new = await newest(sets, old)
        await stands(sets, new, prefill=1, decode=1)
    first = {labels_of(child)[names.ROLE_LABEL]: child for child in reversed([*children_of(observer, new)])}
    assert {name: (replicas_of(child), initial_of(child)) for name, child in first.items()} == {
        "prefill": (0, "3"),
        "decode": (0, "2"),
    }
    await sets.has_event("RollingUpdateStarted", f"Started rolling update to revision {new}")
    await completed(sets, new)
    assert (await sets.reasons()).count("RollingUpdateStarted") == 1


async def test_roles_may_all_have_other_names(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 35: the old roles keep their groups until the new ones serve together, and go with their revision."""
    await sets.running(*two_roles(2, 2, spec=SURGE))
    (old,) = await sets.revisions()
    await sets.set_roles(role("p2", 2, spec=SURGE), role("d2", 2, spec=SURGE))
    new = await newest(sets, old)
    await stands(sets, new, p2=1, d2=1)
    await cluster.eventually(lambda: cluster.kubelet.ready(f"chat-0-{new}-p2-0"))
    await sets.settled()
    assert (await stand_of(sets))[old] == {"prefill": 2, "decode": 2}
    await completed(sets, new)
    assert sorted(await sets.children()) == [f"chat-0-{new}-d2", f"chat-0-{new}-p2"]


async def test_percentages_are_of_what_is_desired(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 27: 30% of 4 and of 2 is a surge of 2 and 1, and 1 and 0 unavailable."""
    await sets.running(*two_roles(4, 2, spec=rolling("30%", "30%")))
    (old,) = await sets.revisions()
    await sets.set_image("img:v2")
    new = await newest(sets, old)
    await stands(sets, new, prefill=3, decode=1)
    await stands(sets, old, prefill=3, decode=2)
    await completed(sets, new)


async def test_an_unready_target_holds_the_old_revision(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 29: and while it does nothing is written, but that it waits."""
    old, new = await started(sets)
    await sets.has_event(
        "RevisionDrainBlocked",
        "Waiting to retire an old revision: no feasible replica change is currently available within the rollout "
        "constraints",
    )

    async def counted() -> None:
        rows = await sets.rows()
        assert [rows[name].get("updatedReplicas") for name in ROLES] == [1, 1]

    await cluster.eventually(counted)
    await sets.settled()
    before = len(written_about(cluster))

    async def holds() -> None:
        assert await stand_of(sets) == {old: {"prefill": 4, "decode": 2}, new: {"prefill": 1, "decode": 1}}
        assert "RollingUpdateCompleted" not in await sets.reasons()

    await cluster.consistently(holds, duration=8)
    assert written_about(cluster)[before:] == []
    assert (await sets.reasons()).count("RevisionDrainBlocked") == 1
    await completed(sets, new)


async def test_a_half_ready_target_holds_the_old_revision(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §8.1: a revision serves only with all its roles."""
    old, new = await started(sets)
    await cluster.eventually(lambda: cluster.kubelet.ready(f"chat-0-{new}-prefill-0"))
    await sets.settled()
    assert (await stand_of(sets))[old] == {"prefill": 4, "decode": 2}
    await completed(sets, new)


async def test_the_last_old_revision_is_kept_until_the_target_is_ready(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 lines 30 and 36: without surge there is an outage; what was drained stays until it is over."""
    await sets.running(*two_roles(1, 1, spec=rolling(0, 1)))
    (old,) = await sets.revisions()
    await sets.set_image("img:v2")
    new = await newest(sets, old)
    await stands(sets, new, prefill=1, decode=1)
    await sets.settled()
    assert await stand_of(sets) == {old: {"prefill": 0, "decode": 0}, new: {"prefill": 1, "decode": 1}}
    assert "RollingUpdateCompleted" not in await sets.reasons()
    await completed(sets, new)
    for name in ROLES:
        await sets.has_event("LWSDeleted", f"Deleted drained LWS chat-0-{old}-{name}")


async def test_a_broken_revision_in_between_goes_first(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 lines 31 and 32: B never got ready; the stable A waits until it is gone. Revisions go as a whole."""
    stable, broken = await started(sets)
    async with cluster.observe(LEADER_WORKER_SET) as observer, ready_but(sets, broken):
        await sets.set_image("img:v3")
        last = await newest(sets, stable, broken)
        await finished(sets, last)
    before = {stable: {"prefill": 4, "decode": 2}, broken: {"prefill": 1, "decode": 1}}
    story = Story.of(observer, before)
    assert story.rows(broken, ROLES)[-1] == (0, 0)
    for stand in story.stands:
        if any(stand.get(broken, {}).values()):
            assert stand[stable] == {"prefill": 4, "decode": 2}
            assert not any(stand.get(last, {}).values())
    await completed(sets, last)


async def test_a_healthy_revision_in_between_goes_before_the_older_one(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §10: the newest first; its frozen count is the one that it was meant to have."""
    old, new = await started(sets)
    async with ready_but(sets, ending=THIRD):
        await stands(sets, new, prefill=3, decode=2)
        await stands(sets, old, prefill=2, decode=1)
    async with cluster.observe(LEADER_WORKER_SET) as observer:
        await sets.set_image("img:v3")
        last = await newest(sets, old, new)
        middle = await sets.child("prefill", revision=new)
        assert initial_of(middle) == "4"
        async with cluster.kubelet.playing():
            await finished(sets, last)
    before = {old: {"prefill": 2, "decode": 1}, new: {"prefill": 3, "decode": 2}}
    story = Story.of(observer, before)
    gone = [revision for stand in story.stands for revision in (new, old) if not any(stand.get(revision, {}).values())]
    assert gone[0] == new
    await completed(sets, last)


async def test_a_rollback_takes_the_children_that_are_there(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 33: none is made anew, and the other revision is retired."""
    old, _ = await started(sets)
    uids = {n: uid for n, uid in (await cluster.uids(LEADER_WORKER_SET)).items() if old in n}
    await sets.set_image("img:v1")
    async with cluster.kubelet.playing():
        await finished(sets, old)
    await completed(sets, old)
    assert await stand_of(sets) == {old: {"prefill": 4, "decode": 2}}
    assert {n: uid for n, uid in (await cluster.uids(LEADER_WORKER_SET)).items() if old in n} == uids
    reasons = await sets.reasons()
    assert reasons.count("RollingUpdateStarted") == 1


async def test_a_rollback_in_the_middle_of_the_drain(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §7.6: a revision that was draining grows again only when what it gave up is gone; nobody counts that twice."""
    old, new = await started(sets)
    async with ready_but(sets, ending=THIRD):
        await stands(sets, new, prefill=3, decode=2)
        await stands(sets, old, prefill=2, decode=1)
    marked = await sets.child("prefill", revision=old)
    assert marked["metadata"]["annotations"][names.SCALE_DOWN_PENDING_ANNOTATION] == "true"
    await sets.set_image("img:v1")
    async with cluster.kubelet.playing():
        await finished(sets, old)
    await completed(sets, old)
    assert new not in await stand_of(sets)
    child = await sets.child("prefill")
    assert names.SCALE_DOWN_PENDING_ANNOTATION not in child["metadata"]["annotations"]


async def test_what_an_old_child_was_meant_to_have_is_restored(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 37."""
    old, new = await started(sets)
    name = f"chat-0-{old}-decode"
    body = {"metadata": {"annotations": {names.INITIAL_REPLICAS_ANNOTATION: None}}}
    await cluster.patch(LEADER_WORKER_SET, name, body)
    note = (
        f"LWS {name} has no valid disaggregatedset.x-k8s.io/initial-replicas annotation; restoring it from current "
        "spec.replicas (2)"
    )
    await sets.has_event("InitialReplicasMissing", note, "Warning")

    async def restored() -> None:
        assert initial_of(await sets.child("decode", revision=old)) == "2"

    await cluster.eventually(restored)
    await completed(sets, new)


async def test_a_target_that_lost_a_child_gets_it_back(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 38: without groups, and planned anew from there."""
    old, new = await started(sets)
    name = f"chat-0-{new}-decode"
    uid = (await cluster.uids(LEADER_WORKER_SET))[name]
    async with cluster.observe(LEADER_WORKER_SET) as observer:
        await cluster.delete(LEADER_WORKER_SET, name)

        async def back() -> None:
            assert (await cluster.uids(LEADER_WORKER_SET))[name] != uid
            assert replicas_of(await sets.child("decode", revision=new)) == 1

        await cluster.eventually(back)
    made = [change.obj for change in observer.of(name) if change.type == "ADDED"]
    assert [(replicas_of(child), initial_of(child)) for child in made] == [(0, "2")]
    assert (await stand_of(sets))[old] == {"prefill": 4, "decode": 2}
    await completed(sets, new)
    assert (await sets.reasons()).count("RollingUpdateStarted") == 1


async def test_a_child_of_the_target_that_is_being_deleted_is_waited_for(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 42: the old revision keeps its groups, and nothing is asked for in vain."""
    old, new = await started(sets)
    name = f"chat-0-{new}-decode"
    await cluster.patch(LEADER_WORKER_SET, name, {"metadata": {"finalizers": ["example.com/hold"]}})
    await cluster.delete(LEADER_WORKER_SET, name)
    async with cluster.kubelet.playing():
        await sets.settled()
        before = len(written_about(cluster))

        async def holds() -> None:
            assert (await stand_of(sets))[old] == {"prefill": 4, "decode": 2}

        await cluster.consistently(holds, duration=4)
        assert written_about(cluster)[before:] == []
    await cluster.patch(LEADER_WORKER_SET, name, {"metadata": {"finalizers": None}})
    await completed(sets, new)


async def test_a_revision_whose_children_are_being_deleted_comes_back(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §10: their names are waited for, without a request in vain; then they are made anew."""
    await sets.running(*two_roles(1, 1, spec=SURGE))
    (old,) = await sets.revisions()
    name = f"chat-0-{old}-decode"
    await cluster.patch(LEADER_WORKER_SET, name, {"metadata": {"finalizers": ["example.com/hold"]}})
    uids = await cluster.uids(LEADER_WORKER_SET)
    await sets.set_image("img:v2")
    new = await newest(sets, old)
    async with cluster.kubelet.playing():
        await finished(sets, new)
        await sets.set_image("img:v1")
        await stands(sets, old, prefill=0)
        await sets.settled()
        before = len(written_about(cluster))
        await cluster.consistently(lambda: None, duration=3)
        assert written_about(cluster)[before:] == []
        assert (await stand_of(sets))[new] == {"prefill": 1, "decode": 1}
        await cluster.patch(LEADER_WORKER_SET, name, {"metadata": {"finalizers": None}})
        await finished(sets, old)
    await sets.ready()
    assert uids[name] not in (await cluster.uids(LEADER_WORKER_SET)).values()


async def test_a_slice_that_fails_stops_no_other(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 40: the others go on, and the status is written."""
    await sets.running(*two_roles(2, 1, spec=SURGE), slices=2)
    (old,) = await sets.revisions()
    (manager,) = cluster.interceptors
    manager.fail(matching("PATCH", r"/leaderworkersets/chat-0-[0-9a-f]+-\w+$"), InternalError("no"), times=None)
    async with cluster.kubelet.playing():
        await sets.set_image("img:v2")
        new = await newest(sets, old)
        await stands(sets, new, slice=1, prefill=2, decode=1)

        async def counted() -> None:
            assert (await sets.rows())["prefill"]["updatedReplicas"] == 2
            assert old not in await stand_of(sets, 1)

        await cluster.eventually(counted)
        assert await stand_of(sets, 0) == {old: {"prefill": 2, "decode": 1}, new: {"prefill": 0, "decode": 0}}
        manager.clear()
        await finished(sets, new)
    await sets.ready()


async def test_a_new_slice_is_made_at_once_while_others_roll(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 41: with all its groups, of the new revision."""
    old, new = await started(sets)
    await sets.patch({"spec": {"slices": 2}})
    await stands(sets, new, slice=1, prefill=4, decode=2)
    assert await stand_of(sets) == {old: {"prefill": 4, "decode": 2}, new: {"prefill": 1, "decode": 1}}
    await completed(sets, new)


@pytest.mark.parametrize("policy", names.SCALING_POLICIES)
async def test_what_others_scale_down_in_a_rollout(cluster: TestCluster, sets: DisaggregatedSets, policy: str):
    """50 §23 line 48: coupled, the target keeps what it has until the old groups are gone."""
    roles = [role("prefill", None, mode=names.SCALING_EXTERNAL, spec=SURGE), role("decode", 4, spec=SURGE)]
    await sets.create(*roles, scalingPolicy={"duringRollout": policy})
    await sets.scaler("chat-prefill")
    await sets.scale("chat-prefill", 4)
    await sets.has_children("0/prefill=4", "0/decode=4")
    await sets.ready()
    (old,) = await sets.revisions()
    async with ready_but(sets, ending=THIRD):
        await sets.set_image("img:v2")
        new = await newest(sets, old)
        await stands(sets, new, prefill=3, decode=3)
    await sets.settled()
    async with cluster.observe(LEADER_WORKER_SET) as observer:
        before = await stand_of(sets)
        await sets.scale("chat-prefill", 1)
        async with cluster.kubelet.playing():
            await finished(sets, new)
            await stands(sets, new, prefill=1, decode=4)
    story = Story.of(observer, before)
    coupled = [stand[new]["prefill"] >= 3 for stand in story.stands if any(stand.get(old, {}).values())]
    assert len(coupled) > 1
    assert all(coupled) or policy == names.ADVANCE_ROLLOUT
    gone = next(i for i, stand in enumerate(story.stands) if old not in stand)
    assert (story.stands[gone][new]["prefill"] == 1) is (policy == names.ADVANCE_ROLLOUT)


async def test_more_groups_in_a_rollout_come_within_its_limits(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §10, §11.4: an edit of the counts alone takes part in the rollout that is going on."""
    old, new = await started(sets)
    await sets.scale_role("prefill", 6)

    async def noted() -> None:
        assert initial_of(await sets.child("prefill", revision=new)) == "6"

    await cluster.eventually(noted)
    assert initial_of(await sets.child("prefill", revision=old)) == "4"
    await completed(sets, new)
    assert await stand_of(sets) == {new: {"prefill": 6, "decode": 2}}
