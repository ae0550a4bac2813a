"""Back-off: groups that fail soon wait before they are recreated (specification: 20 §12.6)."""

from __future__ import annotations

import pytest

from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, annotations_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import (
    PENDING,
    all_new,
    backing_off,
    counts,
    exhaust,
    fails_and_comes_back,
    limited,
    waits,
    window,
)
from tests.scenarios.support import Sets


async def test_a_group_that_fails_soon_waits(cluster: TestCluster, sets: Sets):
    """20 §14 line 89: it is not deleted but marked, one event says so, and nothing is counted before it happens."""
    await sets.running(group=backing_off(200), size=2)
    before = await sets.pod_uids()
    await cluster.kubelet.restart_container("llm-0-1")
    await waits(sets, "llm-0", "llm-0-1")
    await cluster.kubelet.restart_container("llm-0-1")
    await cluster.kubelet.unready("llm-0")

    async def same() -> None:
        assert await sets.pod_uids() == before

    await cluster.consistently(same)
    assert await counts(sets) == {}

    async def told() -> list[Obj]:
        found = [e for e in await sets.events() if e["reason"] == "GroupRestartBackoff"]
        assert len(found) == 1
        return found

    found: list[Obj] = await cluster.eventually(told)
    assert not found[0].get("series")
    assert (found[0]["type"], found[0]["action"], found[0]["related"]["name"]) == ("Warning", "Update", "llm-0")
    assert found[0]["note"].startswith("Pod llm-0-1 failed, group 0 is recreated in ")


async def test_a_group_that_waits_is_recreated_in_the_end(cluster: TestCluster, sets: Sets):
    """20 §14 line 89: after the window it is recreated and counted, and the event names the pod that failed."""
    await sets.running(group=backing_off(5), size=2)
    before = await sets.pod_uids(group=0)
    await cluster.kubelet.restart_container("llm-0-1")
    await all_new(sets, before)
    await sets.ready()
    assert await counts(sets) == {"0": 1}
    assert PENDING not in annotations_of((await sets.pods())["llm-0"])
    await sets.has_event("RecreateGroup", "Worker pod llm-0-1 failed, deleted leader pod llm-0 to recreate group 0")


@pytest.mark.virtual_only("six restarts wait for ten minutes")
async def test_each_restart_waits_twice_as_long(cluster: TestCluster, sets: Sets):
    """20 §14 line 88: with the defaults a leader that fails at once lives 10, 20, 40, 80, 160, 300 and 300 seconds."""
    await sets.running(group={"restartBackoff": {}}, size=1, replicas=1)
    lived: list[float] = []
    for _ in range(7):
        uid = (await sets.pod_uids())["llm-0"]
        began = cluster.clock.monotonic()
        await cluster.kubelet.restart_container("llm-0")

        async def replaced(uid: str = uid) -> None:
            assert (await sets.pod_uids()).get("llm-0", uid) != uid

        await cluster.eventually(replaced, 400)
        lived.append(cluster.clock.monotonic() - began)
        await cluster.kubelet.ready("llm-0")
    assert [round(t / 10) * 10 for t in lived] == [10, 20, 40, 80, 160, 300, 300]
    assert await counts(sets) == {"0": 7}


async def test_a_group_that_lived_long_enough_is_recreated_at_once(cluster: TestCluster, sets: Sets):
    """20 §14 line 89: the window begins with the leader's creation, so it may be over when the pod fails."""
    await sets.running(group=backing_off(1, 1), size=2)
    await cluster.clock.sleep(2.1)
    await fails_and_comes_back(cluster, sets, "llm-0-1", 0)
    assert not [e for e in await sets.events() if e["reason"] == "GroupRestartBackoff"]
    assert await counts(sets) == {"0": 1}


async def test_a_pending_worker_does_not_hold_up_a_recreation_that_waits(cluster: TestCluster, sets: Sets):
    """20 §14 line 90: under AfterStart the failed worker is replaced by a Pending one, which changes nothing."""
    group = backing_off(window(cluster, 6), restartPolicy="RecreateGroupAfterStart")
    await sets.running(group=group, size=3, replicas=1)
    before = await sets.pod_uids()
    await cluster.kubelet.restart_container("llm-0-1")
    await waits(sets, "llm-0", "llm-0-1")
    await cluster.delete(POD, "llm-0-1")

    async def replaced() -> None:
        pods = await sets.pods()
        assert pods["llm-0"]["metadata"]["uid"] == before["llm-0"]
        assert pods["llm-0-1"]["metadata"]["uid"] != before["llm-0-1"]
        assert pods["llm-0-1"]["status"]["phase"] == "Pending"

    await cluster.eventually(replaced)

    async def leader_is_new() -> None:
        assert (await sets.pod_uids()).get("llm-0", before["llm-0"]) != before["llm-0"]

    await cluster.eventually(leader_is_new, 120)
    assert await counts(sets) == {"0": 1}


async def test_workers_are_made_while_their_group_waits(cluster: TestCluster, sets: Sets):
    """20 §14 line 91: a leader that restarted before its workers were made gets them all the same."""
    await sets.create(group=backing_off(200), replicas=1, startupPolicy="LeaderReady")
    await sets.has_pods("llm-0")
    await cluster.kubelet.restart_container("llm-0", ready=False)
    await waits(sets, "llm-0", "llm-0")
    assert await cluster.names(STATEFUL_SET) == ["llm"]
    await cluster.kubelet.ready("llm-0")
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")


async def test_without_a_restart_left_nobody_waits(cluster: TestCluster, sets: Sets):
    """20 §14 line 92: exhaustion comes before the back-off, and at once."""
    await sets.running(group=limited(0, **backing_off(200)))
    await exhaust(cluster, sets)
    assert not [e for e in await sets.events() if e["reason"] == "GroupRestartBackoff"]


async def test_taking_the_back_off_away_ends_the_wait(cluster: TestCluster, sets: Sets):
    """20 §14 line 89: a group that waits is looked at again as soon as the set's settings change."""
    await sets.running(group=backing_off(250), size=2)
    before = await sets.pod_uids(group=0)
    await cluster.kubelet.restart_container("llm-0-1")
    await waits(sets, "llm-0", "llm-0-1")
    await sets.patch({"spec": {"leaderWorkerTemplate": {"restartBackoff": None}}})
    await all_new(sets, before)
    assert await counts(sets) == {}
