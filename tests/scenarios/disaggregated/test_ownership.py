"""Who a child belongs to: this very DisaggregatedSet, by UID (specification: 50 §18)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import Runnable, TestCluster
from tests.scenarios.disaggregated.support import (
    DisaggregatedSets,
    own_labels,
    replicas_of,
    revision_of,
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
    """50 §23 line 18: given an unmarked set with children, no mark is written, and what it has is not rolled."""
    async with manager(cluster):
        await sets.running()
        (current,) = await sets.revisions()
    # As a program of before marks were written has left it: children whose revision is the legacy one.
    await sets.patch({"metadata": {"annotations": {names.REVISION_HASH_VERSION_ANNOTATION: None}}})
    async with manager(cluster):

        async def rolling() -> None:
            assert await sets.revisions() - {current}

        await cluster.eventually(rolling)
        (legacy,) = await sets.revisions() - {current}
        await sets.ready()

        async def retired() -> None:
            assert {revision_of(child) for child in (await sets.all_children()).values()} == {legacy}

        await sets.eventually(retired)
    uids = await cluster.uids(LEADER_WORKER_SET)
    async with manager(cluster):
        await cluster.consistently(lambda: None)
        assert await cluster.uids(LEADER_WORKER_SET) == uids
        assert names.REVISION_HASH_VERSION_ANNOTATION not in ((await sets.live())["metadata"].get("annotations") or {})
