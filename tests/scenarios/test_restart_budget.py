"""Restart budgets and back-off: what a group that fails again and again may do (specification: 20 §12)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import NAMESPACE, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, annotations_of, condition_of, is_deleting
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import Sets, revision_key, set_object

EXCEEDED = "ReplicaRestartBudgetExceeded"
FINALIZER = names.GROUP_RESTART_BUDGET_FINALIZER
PENDING = names.GROUP_RECREATE_PENDING_ANNOTATION


def limited(restarts: int, **fields: Any) -> Obj:
    """The part of a set's template that limits restarts."""
    return {"maxGroupRestarts": restarts, **fields}


def backing_off(base: int, cap: int = 300, **fields: Any) -> Obj:
    """The part of a set's template with a back-off."""
    return {"restartBackoff": {"baseSeconds": base, "capSeconds": cap}, **fields}


async def counts(sets: Sets) -> dict[str, int]:
    """The restart counters by group index."""
    text = annotations_of(await sets.live()).get(names.GROUP_RESTART_COUNTS_ANNOTATION, "{}")
    return {key.rpartition("/")[2]: count for key, count in json.loads(text).items()}


async def fails_and_comes_back(cluster: TestCluster, sets: Sets, pod: str, group: int) -> None:
    """Let a container of a pod restart; the group is recreated and becomes ready."""
    before = await sets.pod_uids(group=group)
    await cluster.kubelet.restart_container(pod)

    async def all_new() -> None:
        after = await sets.pod_uids(group=group)
        assert sorted(after) == sorted(before)
        assert not set(after.values()) & set(before.values())

    async with cluster.kubelet.playing():
        await cluster.eventually(all_new)
    await sets.ready()


async def exhausted(cluster: TestCluster, sets: Sets, group: int, size: int = 3) -> dict[str, Obj]:
    """Wait until the group is terminated and kept with all its pods; returns them."""

    async def kept() -> dict[str, Obj]:
        pods = {n: p for n, p in (await sets.pods()).items() if n == f"llm-{group}" or n.startswith(f"llm-{group}-")}
        assert len(pods) == size
        assert all(FINALIZER in p["metadata"].get("finalizers", ()) for p in pods.values())
        assert all(is_deleting(p) for p in pods.values())
        assert annotations_of(pods[f"llm-{group}"])[names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION] == "true"
        return pods

    pods = await cluster.eventually(kept)
    for name in pods:
        # As their kubelet does once their containers have ended.
        await cluster.kubelet.fail(name)
    return pods


async def exhaust(cluster: TestCluster, sets: Sets, group: int = 0, size: int = 3) -> dict[str, Obj]:
    """Let a group of a set without any restart fail; returns its pods."""
    await cluster.kubelet.restart_container(f"llm-{group}")
    return await exhausted(cluster, sets, group, size)


async def stays(cluster: TestCluster, sets: Sets, pods: dict[str, Obj]) -> None:
    """Nothing becomes of kept pods by themselves."""
    before = {n: p["metadata"]["uid"] for n, p in pods.items()}

    async def same() -> None:
        after = await sets.pod_uids()
        assert {n: after.get(n) for n in before} == before

    await cluster.consistently(same)


async def comes_back(cluster: TestCluster, sets: Sets, pods: dict[str, Obj]) -> None:
    """All pods of a kept group are made anew, and the set is available."""
    old = {p["metadata"]["uid"] for p in pods.values()}

    async def all_new() -> None:
        after = await sets.pod_uids()
        assert set(pods) <= set(after)
        assert not old & set(after.values())

    async with cluster.kubelet.playing():
        await cluster.eventually(all_new)
    await sets.ready()


async def recover(cluster: TestCluster, leader: str) -> None:
    """As `kubectl annotate pod LEADER leaderworkerset.sigs.k8s.io/recover=true`."""
    await cluster.patch(POD, leader, {"metadata": {"annotations": {names.RECOVER_ANNOTATION: "true"}}})


# Budget ---------------------------------------------------------------------------------------------------------------


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
        await recover(cluster, "llm-0")
        await comes_back(cluster, sets, pods)
    assert await counts(sets) == {"1": 1}
    assert await sets.pod_uids(group=1) == other
    gone = [c.obj["metadata"]["name"] for c in observer.changes if c.type == "DELETED"]
    assert gone.index("llm-0-1") < gone.index("llm-0")
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


async def test_another_limit_recovers_nothing(cluster: TestCluster, sets: Sets):
    """20 §14 line 80: raising and unsetting the limit changes nothing about a kept group, and makes no revision."""
    await sets.running(group=limited(0))
    pods = await exhaust(cluster, sets)
    for limit in (5, None):
        await sets.patch({"spec": {"leaderWorkerTemplate": {"maxGroupRestarts": limit}}})
        await stays(cluster, sets, pods)
    assert len(await sets.revisions()) == 1
    await recover(cluster, "llm-0")
    await comes_back(cluster, sets, pods)


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
    await comes_back(cluster, sets, pods)


async def test_a_group_of_one(cluster: TestCluster, sets: Sets):
    """20 §14 line 79: a leader without workers is kept and recovered just so."""
    await sets.running(size=1, group=limited(0))
    pods = await exhaust(cluster, sets, size=1)
    await stays(cluster, sets, pods)
    await recover(cluster, "llm-0")
    await comes_back(cluster, sets, pods)


async def test_both_groups_of_a_set(cluster: TestCluster, sets: Sets):
    """20 §14 line 86: two groups that fail at once are both counted."""
    await sets.running(group=limited(3), size=2)
    before = await sets.pod_uids()
    await cluster.kubelet.restart_container("llm-0-1")
    await cluster.kubelet.restart_container("llm-1-1")

    async def all_new() -> None:
        after = await sets.pod_uids()
        assert sorted(after) == sorted(before)
        assert not set(after.values()) & set(before.values())

    async with cluster.kubelet.playing():
        await cluster.eventually(all_new)
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

    async def all_new() -> None:
        after = await sets.pod_uids()
        assert sorted(after) == sorted(before)
        assert not set(after.values()) & set(before.values())

    async with cluster.kubelet.playing():
        await cluster.eventually(all_new)
    await sets.ready()
    assert await counts(sets) == {"0": 1}


# What lets a kept group go -------------------------------------------------------------------------------------------


async def test_scaling_down_lets_a_kept_group_go(cluster: TestCluster, sets: Sets):
    """20 §14 lines 83, 87: the group goes with its counter, and one that comes back at this place begins anew."""
    await sets.running(group=limited(1), size=2)
    await fails_and_comes_back(cluster, sets, "llm-1-1", 1)
    await fails_and_comes_back(cluster, sets, "llm-0-1", 0)
    await cluster.kubelet.restart_container("llm-1-1")
    await exhausted(cluster, sets, 1, size=2)
    await sets.scale(1)
    await sets.has_pods("llm-0", "llm-0-1")
    await cluster.eventually(lambda: cluster.gone(POD, "llm-1"))

    async def dropped() -> None:
        assert await counts(sets) == {"0": 1}

    await cluster.eventually(dropped)
    await sets.ready()
    await sets.scale(2)
    await sets.ready()
    assert await counts(sets) == {"0": 1}


async def test_a_rollout_lets_a_kept_group_go(cluster: TestCluster, sets: Sets):
    """20 §14 lines 83, 87: a new template replaces the kept group; when it is done no old counter is left."""
    await sets.running(group=limited(1), size=2)
    await fails_and_comes_back(cluster, sets, "llm-1-1", 1)
    old = revision_key((await sets.pods())["llm-1"])
    await cluster.kubelet.restart_container("llm-1-1")
    pods = await exhausted(cluster, sets, 1, size=2)
    await sets.set_image("img:v2")
    await comes_back(cluster, sets, pods)
    assert {p["spec"]["containers"][0]["image"] for p in (await sets.pods()).values()} == {"img:v2"}

    async def dropped() -> None:
        assert old not in annotations_of(await sets.live()).get(names.GROUP_RESTART_COUNTS_ANNOTATION, "")

    await cluster.eventually(dropped)


async def test_a_partition_keeps_a_kept_group(cluster: TestCluster, sets: Sets):
    """20 §14 line 83: a group below the partition is not updated, so a new template does not let it go."""
    await sets.running(group=limited(0), size=2)
    pods = await exhaust(cluster, sets, size=2)
    other = await sets.pod_uids(group=1)
    pace = {"partition": 1, "maxUnavailable": 2}
    await sets.patch({"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": pace}}})
    await sets.set_image("img:v2")

    async def updated() -> None:
        after = await sets.pod_uids(group=1)
        assert len(after) == 2
        assert not set(after.values()) & set(other.values())

    async with cluster.kubelet.playing():
        await cluster.eventually(updated)
    await stays(cluster, sets, pods)


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
async def test_a_set_that_goes_lets_its_pods_go(cluster: TestCluster, sets: Sets, propagation: str):
    """20 §14 line 84: finalizers are taken off when the set is deleted, whichever way, and no counter is touched."""
    await sets.running(group=limited(0))
    pods = await exhaust(cluster, sets)
    old = {p["metadata"]["uid"] for p in pods.values()}
    await cluster.delete(LEADER_WORKER_SET, "llm", propagation=propagation)

    async def let_go() -> None:
        assert await cluster.gone(LEADER_WORKER_SET, "llm")
        left = await sets.pods()
        assert not old & {p["metadata"]["uid"] for p in left.values()}
        assert propagation == "Orphan" or not left

    await cluster.eventually(let_go)


async def test_a_namespace_that_goes_takes_kept_pods_along(cluster: TestCluster, sets: Sets):
    """20 §14 line 84: the namespace's deletion deletes the set, and that lets its pods go."""
    elsewhere, client = await cluster.add_namespace("goes"), cluster.client
    made = set_object(replicas=1, size=1, group=limited(0))
    made["metadata"]["namespace"] = elsewhere
    await client.create(LEADER_WORKER_SET, made)

    async def running() -> None:
        await client.get(POD, "llm-0", elsewhere)

    await cluster.eventually(running)
    status = {"phase": "Running", "containerStatuses": [_restarted("worker")]}
    await client.patch(POD, "llm-0", {"status": status}, elsewhere, subresource="status")

    async def kept() -> None:
        pod = await client.get(POD, "llm-0", elsewhere)
        assert is_deleting(pod)
        assert FINALIZER in pod["metadata"]["finalizers"]

    await cluster.eventually(kept)
    await client.delete(NAMESPACE, elsewhere)

    async def gone() -> None:
        assert elsewhere not in [n["metadata"]["name"] for n in (await client.list(NAMESPACE))["items"]]

    await cluster.eventually(gone)


def _restarted(name: str) -> Obj:
    return {"name": name, "image": "img", "imageID": "", "ready": True, "restartCount": 1, "state": {"running": {}}}


async def test_a_set_of_the_same_name_is_not_held_up(cluster: TestCluster, sets: Sets):
    """20 §14 line 84: kept pods of a set that is gone go, even if the next one of its name is there already."""
    await sets.running(group=limited(0), size=2)
    pods = await exhaust(cluster, sets, size=2)
    with cluster.hold_watches():
        await cluster.delete(LEADER_WORKER_SET, "llm")
        await cluster.eventually(lambda: cluster.gone(LEADER_WORKER_SET, "llm"))
        await cluster.eventually(lambda: cluster.gone(STATEFUL_SET, "llm"))
        await cluster.clock.sleep(1.1)
        await sets.create(group=limited(0), size=2)
    await comes_back(cluster, sets, pods)


# Back-off -------------------------------------------------------------------------------------------------------------


async def test_a_group_that_fails_soon_waits(cluster: TestCluster, sets: Sets):
    """20 §14 line 89: it is not deleted but marked, one event says so, and nothing is counted before it happens."""
    await sets.running(group=backing_off(200), size=2)
    before = await sets.pod_uids()
    await cluster.kubelet.restart_container("llm-0-1")

    async def marked() -> None:
        assert annotations_of((await sets.pods())["llm-0"]).get(PENDING) == "llm-0-1"

    await cluster.eventually(marked)
    await cluster.kubelet.restart_container("llm-0-1")
    await cluster.kubelet.unready("llm-0")

    async def same() -> None:
        assert await sets.pod_uids() == before

    await cluster.consistently(same)
    assert await counts(sets) == {}
    found = [e for e in await sets.events() if e["reason"] == "GroupRestartBackoff"]
    assert len(found) == 1
    assert not found[0].get("series")
    assert (found[0]["type"], found[0]["action"], found[0]["related"]["name"]) == ("Warning", "Update", "llm-0")
    assert found[0]["note"].startswith("Pod llm-0-1 failed, group 0 is recreated in ")


async def test_a_group_that_waits_is_recreated_in_the_end(cluster: TestCluster, sets: Sets):
    """20 §14 line 89: after the window it is recreated and counted, and the event names the pod that failed."""
    await sets.running(group=backing_off(5), size=2)
    before = await sets.pod_uids(group=0)
    await cluster.kubelet.restart_container("llm-0-1")

    async def all_new() -> None:
        after = await sets.pod_uids(group=0)
        assert sorted(after) == sorted(before)
        assert not set(after.values()) & set(before.values())

    async with cluster.kubelet.playing():
        await cluster.eventually(all_new)
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
    await sets.running(group=backing_off(6, restartPolicy="RecreateGroupAfterStart"), size=3, replicas=1)
    before = await sets.pod_uids()
    await cluster.kubelet.restart_container("llm-0-1")

    async def marked() -> None:
        assert annotations_of((await sets.pods())["llm-0"]).get(PENDING) == "llm-0-1"

    await cluster.eventually(marked)
    await cluster.delete(POD, "llm-0-1")

    async def replaced() -> None:
        pods = await sets.pods()
        assert pods["llm-0"]["metadata"]["uid"] == before["llm-0"]
        assert pods["llm-0-1"]["metadata"]["uid"] != before["llm-0-1"]
        assert pods["llm-0-1"]["status"]["phase"] == "Pending"

    await cluster.eventually(replaced)

    async def leader_is_new() -> None:
        assert (await sets.pod_uids()).get("llm-0", before["llm-0"]) != before["llm-0"]

    await cluster.eventually(leader_is_new)
    assert await counts(sets) == {"0": 1}


async def test_workers_are_made_while_their_group_waits(cluster: TestCluster, sets: Sets):
    """20 §14 line 91: a leader that restarted before its workers were made gets them all the same."""
    await sets.create(group=backing_off(200), replicas=1, startupPolicy="LeaderReady")
    await sets.has_pods("llm-0")
    await cluster.kubelet.restart_container("llm-0", ready=False)

    async def marked() -> None:
        assert annotations_of((await sets.pods())["llm-0"]).get(PENDING) == "llm-0"

    await cluster.eventually(marked)
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

    async def marked() -> None:
        assert annotations_of((await sets.pods())["llm-0"]).get(PENDING)

    await cluster.eventually(marked)
    await sets.patch({"spec": {"leaderWorkerTemplate": {"restartBackoff": None}}})

    async def all_new() -> None:
        after = await sets.pod_uids(group=0)
        assert sorted(after) == sorted(before)
        assert not set(after.values()) & set(before.values())

    async with cluster.kubelet.playing():
        await cluster.eventually(all_new)
    assert await counts(sets) == {}


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


async def _versions(cluster: TestCluster) -> Sequence[tuple[str, str]]:
    return [
        (o["metadata"]["name"], o["metadata"]["resourceVersion"])
        for kind in (LEADER_WORKER_SET, POD, STATEFUL_SET)
        for o in await cluster.list(kind)
    ]


async def _at_rest(cluster: TestCluster, before: Sequence[tuple[str, str]]) -> None:
    async def same() -> None:
        assert await _versions(cluster) == before

    await cluster.consistently(same, 5)
