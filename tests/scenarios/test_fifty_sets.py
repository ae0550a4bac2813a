"""Many sets that are updated at the same time: each ends at its new revision, each group recreated exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import CONTROLLER_REVISION, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, generation_of, is_true
from lwskit.testing.cluster import TestCluster
from lwskit.testing.observer import Observer
from tests.scenarios.support import Sets, revision_key

SETS, GROUPS, SIZE = 50, 4, 4
WANTED = [f"set-{i}" for i in range(SETS)]
NOT_OF_WORKLOADS = "!controller.kubernetes.io/hash"
LONGEST = 240.0
"""Seconds of a real control plane for all sets to get ready, and again to be updated; a quiet one takes a fifth."""


def is_done(lws: Obj, generation: int) -> bool:
    """Whether a set says of this generation that all groups are ready and updated."""
    status = lws.get("status") or {}
    return (
        status.get("observedGeneration") == generation_of(lws) == generation
        and status.get("readyReplicas") == status.get("updatedReplicas") == GROUPS
        and is_true(lws, names.CONDITION_AVAILABLE)
    )


async def all_done(cluster: TestCluster, generation: int) -> None:
    """Wait until every set is."""

    async def check() -> None:
        found = await cluster.list(LEADER_WORKER_SET)
        assert len(found) == SETS
        waiting = {lws["metadata"]["name"]: lws.get("status") for lws in found if not is_done(lws, generation)}
        assert not waiting

    await cluster.eventually(check, LONGEST)


async def one_revision_each(cluster: TestCluster) -> None:
    """Nothing is left of the former ones: they go once each StatefulSet has said that it is through."""
    assert len(await cluster.names(CONTROLLER_REVISION, f"{names.NAME_LABEL},{NOT_OF_WORKLOADS}")) == SETS


def recreated(observer: Observer, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Each of these objects went once and came once, and no other of its name was there in between."""
    assert observer.gone == dict.fromkeys(before, 1)
    assert observer.born == dict.fromkeys(after, 1)
    seen: dict[str, set[str]] = {}
    for change in observer.changes:
        seen.setdefault(change.name, set()).add(change.uid)
    assert {name: seen[name] for name in before} == {name: {before[name], after[name]} for name in before}


@pytest.mark.timeout(2 * LONGEST + 60)
async def test_fifty_sets_of_four_groups_of_four_updated_at_once(cluster: TestCluster, sets: Sets):
    await asyncio.gather(*(sets.create(name, replicas=GROUPS, size=SIZE) for name in WANTED))
    workers = f"{names.NAME_LABEL},{names.GROUP_INDEX_LABEL}"
    async with cluster.kubelet.playing():
        await all_done(cluster, 1)
        pods, groups = await cluster.uids(POD), await cluster.uids(STATEFUL_SET, workers)
        leaders = await cluster.uids(STATEFUL_SET, f"!{names.GROUP_INDEX_LABEL}")
        assert (len(pods), len(groups), len(leaders)) == (SETS * GROUPS * SIZE, SETS * GROUPS, SETS)
        async with cluster.observe(POD) as observed, cluster.observe(STATEFUL_SET) as workloads:
            await asyncio.gather(*(sets.set_image("img:v2", name) for name in WANTED))
            await all_done(cluster, 2)
            await sets.settled()
            await cluster.eventually(lambda: one_revision_each(cluster))
            after = await cluster.list(POD)
            groups_after = await cluster.uids(STATEFUL_SET, workers)
    recreated(observed, pods, {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in after})
    recreated(workloads, groups, groups_after)
    assert await cluster.uids(STATEFUL_SET, f"!{names.GROUP_INDEX_LABEL}") == leaders
    for name in WANTED:
        (revision,) = await sets.revisions(name)
        mine = [pod for pod in after if pod["metadata"]["labels"][names.NAME_LABEL] == name]
        assert {revision_key(pod) for pod in mine} == {revision_key(revision)}
        assert {pod["spec"]["containers"][0]["image"] for pod in mine} == {"img:v2"}
