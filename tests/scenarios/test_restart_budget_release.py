"""What lets a group go that was kept without a restart left (specification: 20 §12.4)."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import NAMESPACE, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, annotations_of, is_deleting
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import (
    FINALIZER,
    comes_back,
    counts,
    exhaust,
    exhausted,
    fails_and_comes_back,
    limited,
    stays,
)
from tests.scenarios.support import Sets, revision_key, set_object


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
    await comes_back(sets, pods)
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


async def test_leaders_that_are_deleted_in_the_foreground_let_it_go(cluster: TestCluster, sets: Sets):
    """20 §12.4: the leaders' deletion would wait for a kept one for ever. Its count stays: this is no recovery."""
    await sets.running(group=limited(1), size=2)
    await fails_and_comes_back(cluster, sets, "llm-0-1", 0)
    await cluster.kubelet.restart_container("llm-0-1")
    pods = await exhausted(cluster, sets, 0, size=2)
    await cluster.delete(STATEFUL_SET, "llm", propagation="Foreground")
    await comes_back(sets, pods)
    assert await counts(sets) == {"0": 1}
    await cluster.kubelet.restart_container("llm-0-1")
    await exhausted(cluster, sets, 0, size=2)


async def test_leaders_that_are_deleted_otherwise_do_not_let_it_go(cluster: TestCluster, sets: Sets):
    """20 §12.4: nothing waits for a kept leader then, and to delete is not to recover."""
    await sets.running(group=limited(0), size=2)
    pods = await exhaust(cluster, sets, size=2)
    await cluster.delete(STATEFUL_SET, "llm", propagation="Background")
    await stays(cluster, sets, pods)


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

    # What is left at its first look a namespace's controller looks at again after half of the pods' grace.
    await cluster.eventually(gone, 120)


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
    await comes_back(sets, pods)
