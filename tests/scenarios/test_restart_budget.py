"""Restart budgets: what a group that fails again and again may do (specification: 20 §12)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, annotations_of, condition_of, is_deleting
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import (
    EXCEEDED,
    FINALIZER,
    all_new,
    comes_back,
    counts,
    exhaust,
    exhausted,
    fails_and_comes_back,
    limited,
    recover,
    stays,
)
from tests.scenarios.support import Sets


async def test_without_limit_nothing_is_counted(cluster: TestCluster, sets: Sets):
    """20 §14 line 79: an unset limit is no limit, and there is no counter."""
    await sets.running(size=2)
    for _ in range(2):
        await fails_and_comes_back(cluster, sets, "llm-0-1", 0)
    assert await counts(sets) == {}


async def test_a_limit_of_nothing_ends_at_the_first_failure(cluster: TestCluster, sets: Sets):
    """20 §14 lines 55, 79: the group is terminated and kept, nothing is counted, the set says that it is degraded."""
    await sets.running(group=limited(0))
    before = await sets.pod_uids()
    pods = await exhaust(cluster, sets)
    assert {n: p["metadata"]["uid"] for n, p in pods.items()} == {n: before[n] for n in pods}
    note = "Restart budget exhausted; terminated group 0 and stopped automatic recovery"
    event = await sets.has_event(EXCEEDED, note, type="Warning")
    assert (event["action"], event["related"]["name"]) == ("Delete", "llm-0")

    async def degraded() -> Obj:
        live = await sets.live()
        found = {c["type"]: (c["status"], c["reason"]) for c in live["status"]["conditions"]}
        assert found["Degraded"] == ("True", EXCEEDED)
        assert found["Available"] == ("False", EXCEEDED)
        assert found["Progressing"] == ("False", EXCEEDED)
        assert found["UpdateInProgress"] == ("False", EXCEEDED)
        return live

    live = await cluster.eventually(degraded)
    texts = {c["type"]: c["message"] for c in live["status"]["conditions"]}
    assert texts["Degraded"] == texts["Progressing"] == "Automatic recovery is stopped for one or more replicas"
    assert texts["Available"] == "Not all replicas are ready"
    assert texts["UpdateInProgress"] == "No rolling update is in progress"
    assert await counts(sets) == {}
    await stays(cluster, sets, pods)
    assert await sets.pod_uids(group=1) == {n: u for n, u in before.items() if n.startswith("llm-1")}


async def test_f28_a_budget_of_one(cluster: TestCluster, sets: Sets):
    """F28: one recreation, then the group is kept; its recovery clears its own counter alone (20 §14 lines 79, 81)."""
    await sets.running(group=limited(1), size=2)
    await fails_and_comes_back(cluster, sets, "llm-1-1", 1)
    await fails_and_comes_back(cluster, sets, "llm-0-1", 0)
    assert await counts(sets) == {"0": 1, "1": 1}
    await cluster.kubelet.restart_container("llm-0-1")
    pods = await exhausted(cluster, sets, 0, size=2)
    assert await counts(sets) == {"0": 1, "1": 1}
    other = await sets.pod_uids(group=1)
    async with cluster.observe(POD) as observer:

        async def both_went() -> None:
            gone = [c.obj["metadata"]["name"] for c in observer.changes if c.type == "DELETED"]
            # The watch may be behind what was read.
            assert {"llm-0", "llm-0-1"} <= {*gone}
            assert gone.index("llm-0-1") < gone.index("llm-0")

        await recover(cluster, "llm-0")
        await comes_back(sets, pods)
        await cluster.eventually(both_went)
    assert await counts(sets) == {"1": 1}
    assert await sets.pod_uids(group=1) == other
    await cluster.eventually(lambda: _healthy(sets))
    await fails_and_comes_back(cluster, sets, "llm-0-1", 0)
    assert await counts(sets) == {"0": 1, "1": 1}


async def _healthy(sets: Sets) -> None:
    assert (await sets.conditions())["Degraded"] == "False"


async def test_a_deleted_worker_uses_up_the_budget_too(cluster: TestCluster, sets: Sets):
    """20 §14 line 79: of a group whose worker was deleted those pods are kept that are not gone yet."""
    await sets.running(group=limited(0))
    await cluster.delete(POD, "llm-0-1")

    async def kept() -> None:
        pods = await sets.pods()
        assert FINALIZER in pods["llm-0"]["metadata"]["finalizers"]
        assert FINALIZER in pods["llm-0-2"]["metadata"]["finalizers"]
        assert is_deleting(pods["llm-0"])

    await cluster.eventually(kept)
    await sets.has_event(
        EXCEEDED, "Restart budget exhausted; terminated group 0 and stopped automatic recovery", type="Warning"
    )


async def test_a_leader_that_is_deleted_costs_no_restart(cluster: TestCluster, sets: Sets):
    """20 §12: its group goes by ownership, which is no failure; a worker that is deleted is one."""
    await sets.running(group=limited(1))
    for name, counted in (("llm-0", {}), ("llm-0-1", {"0": 1}), ("llm-0", {"0": 1})):
        before = await sets.pod_uids(group=0)
        await cluster.delete(POD, name)
        await all_new(sets, before)
        await sets.ready()
        assert await counts(sets) == counted
    assert not any(FINALIZER in p["metadata"].get("finalizers", ()) for p in (await sets.pods()).values())


async def test_another_limit_recovers_nothing(cluster: TestCluster, sets: Sets):
    """20 §14 line 80: raising and unsetting the limit changes nothing about a kept group, and makes no revision."""
    await sets.running(group=limited(0))
    pods = await exhaust(cluster, sets)
    for limit in (5, None):
        await sets.patch({"spec": {"leaderWorkerTemplate": {"maxGroupRestarts": limit}}})
        await stays(cluster, sets, pods)
    assert len(await sets.revisions()) == 1
    await recover(cluster, "llm-0")
    await comes_back(sets, pods)


async def test_deleting_what_is_kept_is_no_recovery(cluster: TestCluster, sets: Sets):
    """20 §14 line 82: neither the deletion of the leader nor that of a worker brings the group back."""
    await sets.running(group=limited(0))
    pods = await exhaust(cluster, sets)
    for name in pods:
        await cluster.delete(POD, name)
    await stays(cluster, sets, pods)


async def test_a_recovery_from_before_does_not_count(cluster: TestCluster, sets: Sets):
    """20 §14 line 81: `recover` on a leader that still works is taken away when its group is terminated."""
    await sets.running(group=limited(0))
    await recover(cluster, "llm-0")
    pods = await exhaust(cluster, sets)
    assert names.RECOVER_ANNOTATION not in annotations_of(pods["llm-0"])
    await stays(cluster, sets, pods)
    await cluster.patch(POD, "llm-0", {"metadata": {"annotations": {names.RECOVER_ANNOTATION: "yes"}}})
    await stays(cluster, sets, pods)
    await recover(cluster, "llm-0")
    await comes_back(sets, pods)


async def test_a_group_of_one(cluster: TestCluster, sets: Sets):
    """20 §14 line 79: a leader without workers is kept and recovered just so."""
    await sets.running(size=1, group=limited(0))
    pods = await exhaust(cluster, sets, size=1)
    await stays(cluster, sets, pods)
    await recover(cluster, "llm-0")
    await comes_back(sets, pods)


async def test_both_groups_of_a_set(cluster: TestCluster, sets: Sets):
    """20 §14 line 86: two groups that fail at once are both counted."""
    await sets.running(group=limited(3), size=2)
    before = await sets.pod_uids()
    await cluster.kubelet.restart_container("llm-0-1")
    await cluster.kubelet.restart_container("llm-1-1")
    await all_new(sets, before)
    await sets.ready()
    assert await counts(sets) == {"0": 1, "1": 1}


@pytest.mark.parametrize("text", ["null", "{", '{"a/0": -1}', '{"a/0": null}', "[]"])
async def test_counters_that_cannot_be_read(cluster: TestCluster, sets: Sets, text: str):
    """20 §14 line 86: nothing is deleted, an event says why, and once they are mended the group is recreated."""
    await sets.running(group=limited(3), size=2, replicas=1)
    await sets.patch({"metadata": {"annotations": {names.GROUP_RESTART_COUNTS_ANNOTATION: text}}})
    before = await sets.pod_uids()
    await cluster.kubelet.restart_container("llm-0-1")

    async def said() -> None:
        found = [e for e in await sets.events() if e["reason"] == "RestartCountsUnreadable"]
        assert found
        assert all(e["type"] == "Warning" and "correct or remove it" in e["note"] for e in found)

    await cluster.eventually(said)
    assert await sets.pod_uids() == before
    await sets.patch({"metadata": {"annotations": {names.GROUP_RESTART_COUNTS_ANNOTATION: None}}})
    await all_new(sets, before)
    await sets.ready()
    assert await counts(sets) == {"0": 1}


async def test_a_set_with_a_kept_group_is_at_rest(cluster: TestCluster, sets: Sets):
    """20 §14 lines 50, 81: once its group is kept nothing is written any more."""
    await sets.running(group=limited(0))
    await exhaust(cluster, sets)

    async def degraded() -> None:
        found = condition_of(await sets.live(), "Degraded")
        assert found is not None
        assert found["status"] == "True"

    await cluster.eventually(degraded)
    await sets.settled()
    await _at_rest(cluster, await _versions(cluster))


async def _versions(cluster: TestCluster) -> Sequence[tuple[str, object]]:
    """Of workloads without their status: their controller looks at pods that fail and stay in its own time."""
    kinds = {LEADER_WORKER_SET: "resourceVersion", POD: "resourceVersion", STATEFUL_SET: "generation"}
    return [
        (o["metadata"]["name"], o["metadata"][field]) for kind, field in kinds.items() for o in await cluster.list(kind)
    ]


async def _at_rest(cluster: TestCluster, before: Sequence[tuple[str, object]]) -> None:
    async def same() -> None:
        assert await _versions(cluster) == before

    await cluster.consistently(same, 5)
