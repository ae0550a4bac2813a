"""What others change or take away is put back, as far as it is the controller's (specification: 20 §5, §10.3)."""

from __future__ import annotations

from lwskit.runtime.kinds import STATEFUL_SET
from lwskit.runtime.objects import labels_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import all_new
from tests.scenarios.support import Sets


async def test_a_tampered_leader_workload_is_put_back(cluster: TestCluster, sets: Sets):
    """20 §5: a change of an applied field is overwritten; labels of others stay."""
    await sets.running()
    pods = await sets.pod_uids()
    await cluster.patch(STATEFUL_SET, "llm", {"spec": {"replicas": 5}, "metadata": {"labels": {"mine": "1"}}})

    async def back() -> None:
        workload = await sets.leader_workload()
        assert workload["spec"]["replicas"] == 2
        assert labels_of(workload)["mine"] == "1"

    await cluster.eventually(back)
    await sets.has_pods(*pods)
    await sets.settled()
    assert await sets.pod_uids() == pods


async def test_a_removed_label_disappears_from_the_workload(cluster: TestCluster, sets: Sets):
    """20 §5: labels and annotations removed from the set disappear from the leader StatefulSet, and nothing rolls."""
    await sets.running(metadata={"labels": {"team": "x"}, "annotations": {"who": "me"}})
    pods = await sets.pod_uids()
    await sets.patch({"metadata": {"annotations": {"who": None}}})

    async def annotation_gone() -> None:
        assert "who" not in (await sets.leader_workload())["metadata"]["annotations"]

    await cluster.eventually(annotation_gone)
    assert labels_of(await sets.leader_workload())["team"] == "x"
    await sets.patch({"metadata": {"labels": {"team": None}}})

    async def label_gone() -> None:
        assert "team" not in labels_of(await sets.leader_workload())

    await cluster.eventually(label_gone)
    await sets.settled()
    assert await sets.pod_uids() == pods


async def test_worker_workloads_keep_what_they_were_made_with(cluster: TestCluster, sets: Sets):
    """20 §10.4: a worker StatefulSet is never updated, so later labels of the set do not reach it."""
    await sets.running(metadata={"labels": {"team": "x"}})
    await sets.patch({"metadata": {"labels": {"team": "y"}}})

    async def leader_has_it() -> None:
        assert labels_of(await sets.leader_workload())["team"] == "y"

    await cluster.eventually(leader_has_it)
    assert labels_of(await cluster.get(STATEFUL_SET, "llm-0"))["team"] == "x"


async def test_a_deleted_worker_workload_is_recreated(cluster: TestCluster, sets: Sets):
    """20 §14 line 61: given a deleted worker StatefulSet, it is recreated; the other group is untouched."""
    await sets.running()
    before, other = await cluster.uids(STATEFUL_SET), await sets.pod_uids(group=1)
    await cluster.delete(STATEFUL_SET, "llm-0")

    async def back() -> None:
        assert (await cluster.uids(STATEFUL_SET))["llm-0"] != before["llm-0"]

    await cluster.eventually(back)
    await sets.ready()
    after = await cluster.uids(STATEFUL_SET)
    assert (after["llm"], after["llm-1"]) == (before["llm"], before["llm-1"])
    assert await sets.pod_uids(group=1) == other


async def test_a_deleted_leader_workload_is_recreated(cluster: TestCluster, sets: Sets):
    """20 §14 line 19: given the leader StatefulSet is deleted, it is recreated with all groups."""
    await sets.running()
    before = await cluster.uids(STATEFUL_SET)
    pods = await sets.pod_uids()
    await cluster.delete(STATEFUL_SET, "llm")

    async def back() -> None:
        assert (await cluster.uids(STATEFUL_SET))["llm"] != before["llm"]

    await cluster.eventually(back)
    await all_new(sets, pods)
    await sets.ready()
    assert sorted(await sets.pods()) == sorted(pods)


async def test_nothing_is_written_to_a_leader_workload_that_is_going(cluster: TestCluster, sets: Sets):
    """20 §14 line 19: while it is terminating nothing is written; afterwards it comes back."""
    await sets.running(replicas=1, size=1)
    await cluster.patch(STATEFUL_SET, "llm", {"metadata": {"finalizers": ["lwskit.test/hold"]}})
    await sets.settled()
    await cluster.delete(STATEFUL_SET, "llm")
    held = await cluster.get(STATEFUL_SET, "llm")
    # News of the workload and of the set reach the manager by different ways.
    await sets.settled()
    await sets.patch({"spec": {"replicas": 3}})

    async def untouched() -> None:
        assert (await cluster.get(STATEFUL_SET, "llm"))["spec"]["replicas"] == 1

    await cluster.consistently(untouched)
    await cluster.patch(STATEFUL_SET, "llm", {"metadata": {"finalizers": None}})

    async def back() -> None:
        live = await cluster.get(STATEFUL_SET, "llm")
        assert live["metadata"]["uid"] != held["metadata"]["uid"]
        assert live["spec"]["replicas"] == 3

    await cluster.eventually(back)
