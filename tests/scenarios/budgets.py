"""What the scenarios of restart budgets and back-off share: sets that are limited, groups that fail and are kept."""

from __future__ import annotations

import json
from typing import Any

from lwskit.api import names
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, annotations_of, is_deleting
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import Sets

EXCEEDED = "ReplicaRestartBudgetExceeded"
FINALIZER = names.GROUP_RESTART_BUDGET_FINALIZER
PENDING = names.GROUP_RECREATE_PENDING_ANNOTATION


def limited(restarts: int, **fields: Any) -> Obj:
    """The part of a set's template that limits restarts."""
    return {"maxGroupRestarts": restarts, **fields}


def window(cluster: TestCluster, seconds: int) -> int:
    """The base of a back-off, in seconds since a leader's creation, in which a group is made ready and fails: a real
    machine may be slow with that."""
    return seconds if cluster.embedded else 30


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

    await all_new(sets, before)
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

    pods: dict[str, Obj] = await cluster.eventually(kept)
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


async def comes_back(sets: Sets, pods: dict[str, Obj]) -> None:
    """All pods of a kept group are made anew, and the set is available."""
    await all_new(sets, {n: p["metadata"]["uid"] for n, p in pods.items()})
    await sets.ready()


async def recover(cluster: TestCluster, leader: str) -> None:
    """As `kubectl annotate pod LEADER leaderworkerset.sigs.k8s.io/recover=true`."""
    await cluster.patch(POD, leader, {"metadata": {"annotations": {names.RECOVER_ANNOTATION: "true"}}})


async def waits(sets: Sets, leader: str, cause: str) -> None:
    """Wait until a leader is marked as waiting for its recreation, because of that pod."""

    async def marked() -> None:
        assert annotations_of((await sets.pods())[leader]).get(PENDING) == cause

    await sets.cluster.eventually(marked)


async def all_new(sets: Sets, before: dict[str, str], *, playing: bool = True, timeout: float | None = None) -> None:
    """Wait until all these pods are there with other UIDs; they become ready meanwhile if `playing`.

    `timeout` is in seconds, where it is longer than usual.
    """

    async def replaced() -> None:
        after = await sets.pod_uids()
        assert before.keys() <= after.keys()
        assert not set(before.values()) & set(after.values())

    if not playing:
        await sets.cluster.eventually(replaced, timeout)
        return
    async with sets.cluster.kubelet.playing():
        await sets.cluster.eventually(replaced, timeout)
