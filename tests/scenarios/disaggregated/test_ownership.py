"""Who a child belongs to: this very DisaggregatedSet, by UID (specification: 50 §18)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import children, revision, spec
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.disaggregated.model import Part
from lwskit.disaggregated.scene import Scene, Targets
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.objects import Obj, annotations_of, uid_of
from lwskit.testing.cluster import Runnable, TestCluster
from tests.scenarios.disaggregated.support import (
    DisaggregatedSets,
    own_labels,
    replicas_of,
    role,
    two_roles,
    written_about,
)
from tests.scenarios.manager import manager
from tests.scenarios.support import set_object


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: each test starts its manager itself."""
    return ()


async def revision_of_children(cluster: TestCluster, sets: DisaggregatedSets) -> str:
    """The revision that a set of the two roles has, found with a manager that makes it and its deletion."""
    async with manager(cluster):
        await sets.create(name="probe")
        await sets.has_children("0/prefill=1", "0/decode=2", name="probe")
        (revision,) = await sets.revisions("probe")
        await cluster.delete(DISAGGREGATED_SET, "probe")
        await cluster.eventually(lambda: cluster.gone(DISAGGREGATED_SET, "probe"))
    return revision


def foreign(revision: str, **metadata: object) -> Obj:
    """A LeaderWorkerSet of nobody's, with the name of the child of decode."""
    return set_object(f"chat-0-{revision}-decode", replicas=5, size=1, metadata=metadata)


@pytest.mark.parametrize("labelled", [True, False])
async def test_a_set_of_somebody_else(cluster: TestCluster, sets: DisaggregatedSets, labelled: bool):
    """50 §23 line 55: given a same-name set of another owner, it is neither scaled nor adopted; the pass is tried
    again, without a request, and goes on when it is gone."""
    revision = await revision_of_children(cluster, sets)
    labels = {"labels": dict(own_labels("decode", revision))} if labelled else {}
    other = await cluster.create(LEADER_WORKER_SET, foreign(revision, **labels))
    async with manager(cluster):
        await sets.create(*two_roles(1, 2))
        name = f"chat-0-{revision}-prefill"
        await cluster.eventually(lambda: cluster.get(LEADER_WORKER_SET, name))
        before = [line for line in written_about(cluster) if names.PLURAL not in line]

        async def left_alone() -> None:
            live = await cluster.get(LEADER_WORKER_SET, other["metadata"]["name"])
            assert "ownerReferences" not in live["metadata"]
            assert replicas_of(live) == 5
            assert [line for line in written_about(cluster) if names.PLURAL not in line] == before

        await cluster.consistently(left_alone)
        assert (await sets.conditions())["Progressing"] == ("True", "RolloutInProgress")
        await cluster.delete(LEADER_WORKER_SET, other["metadata"]["name"])

        async def made() -> None:
            assert replicas_of(await sets.child("decode")) == 2

        await cluster.eventually(made)
        await sets.ready()


async def test_a_set_that_is_recreated(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 56: given a recreated set of the same name, old children are ignored until they are gone."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
        old = await cluster.uids(LEADER_WORKER_SET)
        await cluster.delete(DISAGGREGATED_SET, "chat", "Orphan")
        await cluster.eventually(lambda: cluster.gone(DISAGGREGATED_SET, "chat"))
        await sets.create(*two_roles(3, 4))

        async def ignored() -> None:
            assert await cluster.uids(LEADER_WORKER_SET) == old
            assert sorted((await sets.sizes()).values()) == [1, 2]

        await cluster.consistently(ignored)
        for name in old:
            await cluster.delete(LEADER_WORKER_SET, name)
        await sets.has_children("0/prefill=3", "0/decode=4")


async def test_a_set_without_mark_whose_children_exist(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 18: given an unmarked set with children, the legacy hash is used and no rollout starts."""
    ds = await sets.create()
    found = spec.read(ds)
    counts = {one.name: one.replicas for one in found.roles}
    legacy = revision.legacy_revision_of(ds)
    # As a program of before marks were written has left it.
    scene = Scene(ds, found, legacy, 0, Targets({Part(one): n for one, n in counts.items()}, counts))
    for one in found.roles:
        await cluster.create(LEADER_WORKER_SET, children.render(scene, one, is_drained=False))
    uids = await cluster.uids(LEADER_WORKER_SET)
    async with manager(cluster):
        await sets.ready()
        await sets.scale_role("decode", 3)
        await sets.has_children("0/prefill=1", "0/decode=3")
        assert await cluster.uids(LEADER_WORKER_SET) == uids
        assert await sets.revisions() == {legacy}
        assert names.REVISION_HASH_VERSION_ANNOTATION not in annotations_of(await sets.live())
        assert "RollingUpdateStarted" not in await sets.reasons()


async def test_a_mark_that_got_lost(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §4.1: as `kubectl replace` loses it; it is written again, and nothing rolls."""
    async with manager(cluster):
        await sets.running()
        uids = await cluster.uids(LEADER_WORKER_SET)
        await sets.patch({"metadata": {"annotations": {names.REVISION_HASH_VERSION_ANNOTATION: None}}})

        async def marked() -> None:
            assert annotations_of(await sets.live())[names.REVISION_HASH_VERSION_ANNOTATION] == "v2"

        await cluster.eventually(marked)
        await sets.ready()
        assert await cluster.uids(LEADER_WORKER_SET) == uids
        assert "RollingUpdateStarted" not in await sets.reasons()


async def test_nothing_is_made_for_a_set_that_is_gone_unseen(cluster: TestCluster, sets: DisaggregatedSets):
    """The collector removes what the set had; while the news of the set is late none of it is made once more."""

    def lag(request: HttpRequest) -> float:
        return 5.0 if request.path.endswith("/disaggregatedsets") else 0.0

    async with manager(cluster):
        await sets.running(role("prefill"), role("decode", mode=names.SCALING_EXTERNAL))
        await sets.settled()
        with cluster.slow_watches(lag):
            async with cluster.observe(LEADER_WORKER_SET) as children_seen, cluster.observe(ROLE_SCALER) as scalers:
                await cluster.delete(DISAGGREGATED_SET, "chat", propagation="Background")

                async def gone() -> None:
                    assert await cluster.names(LEADER_WORKER_SET) == await cluster.names(ROLE_SCALER) == []

                await cluster.eventually(gone)
                await cluster.clock.sleep(3.0)
            assert {c.type for c in (*children_seen.changes, *scalers.changes)} <= {"MODIFIED", "DELETED"}
        assert await cluster.names(LEADER_WORKER_SET) == await cluster.names(ROLE_SCALER) == []


async def test_a_child_that_somebody_deletes_is_made_again(cluster: TestCluster, sets: DisaggregatedSets):
    """One look whether the set is there, and one write."""
    async with manager(cluster):
        await sets.running(*two_roles(1, 1))
        await sets.settled()
        child = await sets.child("decode")
        name = child["metadata"]["name"]
        async with cluster.observe(LEADER_WORKER_SET) as observer:
            await cluster.delete(LEADER_WORKER_SET, name)

            async def anew() -> None:
                assert uid_of(await sets.child("decode")) != uid_of(child)

            await cluster.eventually(anew)
            await sets.ready()
        assert [c.type for c in observer.of(name) if c.type != "MODIFIED"] == ["DELETED", "ADDED"]
