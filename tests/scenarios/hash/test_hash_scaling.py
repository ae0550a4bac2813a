"""Scaling in Hash mode: which groups go, and that new ones have new keys (specification: 30 §14, §16)."""

from __future__ import annotations

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import is_true, uid_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.hash.gating import gated, lingering
from tests.scenarios.hash.support import Group, HashSets, said
from tests.scenarios.hash.test_hash_victims import at_once
from tests.scenarios.test_exclusive import bind, racks

__all__ = ["racks"]


async def known_to_all(sets: HashSets, ready: int) -> None:
    """Wait until the manager and the cluster's own controllers, which choose, know that so many groups are ready."""
    await sets.counts_ready(ready)

    async def check() -> None:
        assert (await sets.leader_workload())["status"].get("readyReplicas", 0) == ready

    await sets.cluster.eventually(check)


async def test_the_group_that_is_not_ready_goes_first(cluster: TestCluster, sets: HashSets):
    """30 §18 line 36: of four groups the one with an unready worker is removed, whatever its age."""
    await sets.running(replicas=4, size=2)
    groups = await sets.groups()
    unready = sorted(groups)[2]
    await cluster.kubelet.unready(groups[unready].workers[0]["metadata"]["name"])

    async def gate_fell() -> None:
        assert not is_true(await sets.leader(groups[unready].name), names.GROUP_READY_GATE)

    await cluster.eventually(gate_fell)
    # As its kubelet does: the pod of the leader is not ready without its gate.
    await cluster.kubelet.ready(groups[unready].name)

    await known_to_all(sets, 3)
    await sets.scale(3)
    after = await sets.has_groups(3, size=2)
    assert set(after) == set(groups) - {unready}
    assert all(after[key].uids == groups[key].uids for key in after)


async def test_the_group_that_waits_goes_first(cluster: TestCluster, sets: HashSets):
    """30 §18 line 36: a leader at its gate holds nothing, so it goes before all that run."""
    await sets.running(replicas=3, size=2)
    groups = await sets.groups()
    first = groups[sorted(groups)[0]]
    async with lingering(cluster, first):
        await cluster.delete(POD, first.name)
        (waiting,) = await gated(sets, 1)
        await sets.scale(2)
        await gated(sets, 0)
        assert waiting.name not in await sets.pods()
    after = await sets.has_groups(2, size=2)
    assert set(after) == set(groups) - {first.key}


async def test_the_group_that_does_not_start_goes(cluster: TestCluster, sets: HashSets):
    """F94: of three groups the one that is pending is removed, and those that serve stay."""
    await sets.running(replicas=3, size=2)
    groups = await sets.groups()
    pending = sorted(groups)[0]
    await cluster.kubelet.pending(groups[pending].name)

    await known_to_all(sets, 2)
    await sets.scale(2)
    after = await sets.has_groups(2, size=2)
    assert {key: g.uids for key, g in after.items()} == {k: g.uids for k, g in groups.items() if k != pending}


async def test_what_has_no_node_goes_before_what_is_not_ready(
    cluster: TestCluster, sets: HashSets, racks: dict[str, str]
):
    """30 §18 line 36: first the group without a node goes, then the one with an unready worker, no whole one."""
    await sets.create(replicas=4, size=2, group=at_once())
    groups = await sets.has_groups(4, size=2)
    homeless, unready, *whole = sorted(groups)
    for key in (unready, *whole):
        await bind(cluster, groups[key].name, racks["a"])
        await cluster.kubelet.ready(*(p["metadata"]["name"] for p in groups[key].workers if key != unready))
    # The kubelet comes last: whether a leader's gate is open shows in its condition then.
    for key in (unready, *whole):
        await said(sets, groups[key].name, "True" if key in whole else "False")
    await cluster.kubelet.ready(*(groups[key].name for key in (unready, *whole)))
    await known_to_all(sets, 2)
    for gone in (homeless, unready):
        before = await sets.living()
        await sets.scale(len(before) - 1)

        async def gone_alone(before: dict[str, Group] = before, gone: str = gone) -> None:
            assert set(await sets.groups()) == set(before) - {gone}

        await cluster.eventually(gone_alone)
    assert {k: g.uids for k, g in (await sets.groups()).items()} == {k: groups[k].uids for k in whole}


async def test_down_to_nothing_and_up_again(cluster: TestCluster, sets: HashSets):
    """30 §18 line 41: all groups go, and those that come have other keys."""
    await sets.running(replicas=2, size=2)
    before = await sets.groups()
    await sets.scale(0)
    await sets.has_groups(0, size=2)

    async def nothing() -> None:
        status = (await sets.live())["status"]
        assert not {"replicas", "readyReplicas", "updatedReplicas"} & status.keys()
        assert (await sets.conditions())["Available"] == "True"
        assert await sets.workers() == {}

    await cluster.eventually(nothing)
    await sets.scale(2)
    await sets.ready()
    after = await sets.has_groups(2, size=2)
    assert not set(before) & set(after)


async def test_more_groups(cluster: TestCluster, sets: HashSets):
    """The groups that are there stay as they are, and an update is not in progress while others come."""
    await sets.running(replicas=1, size=2)
    before = await sets.groups()
    async with cluster.observe(LEADER_WORKER_SET) as observer:
        await sets.scale(3)
        await sets.ready()
    after = await sets.has_groups(3, size=2)
    assert {k: after[k].uids for k in before} == {k: g.uids for k, g in before.items()}
    for change in observer.of("llm"):
        said = {c["type"]: c["status"] for c in change.obj["status"]["conditions"]}
        assert said.get("UpdateInProgress", "False") == "False"
    assert len(await sets.revisions()) == 1


async def test_what_an_autoscaler_reads(cluster: TestCluster, sets: HashSets):
    """The scale subresource counts leaders, and its selector finds them."""
    await sets.running(replicas=2, size=2)
    live = await sets.live()
    assert live["status"]["replicas"] == 2
    selector = f"{names.NAME_LABEL}=llm,{names.WORKER_INDEX_LABEL}=0"
    assert live["status"]["hpaPodSelector"] == selector
    found = await cluster.list(POD, selector)
    assert {uid_of(p) for p in found} == {uid_of(g.leader or {}) for g in (await sets.groups()).values()}
