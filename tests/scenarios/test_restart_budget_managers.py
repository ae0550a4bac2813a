"""Restart budgets when managers end, die in between, come back, or never do (specification: 20 §12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import Conflict, InternalError
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import annotations_of
from lwskit.testing.cluster import Runnable, TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.budgets import (
    FINALIZER,
    all_new,
    backing_off,
    comes_back,
    counts,
    exhaust,
    exhausted,
    limited,
    recover,
    stays,
    waits,
    window,
)
from tests.scenarios.manager import DIED, dies_after, manager
from tests.scenarios.support import Sets

EVERY_WRITE = "it is repeated for every write, and a real manager is not killed at a chosen one"


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: each test starts its managers itself."""
    return ()


@pytest.mark.virtual_only(EVERY_WRITE)
@pytest.mark.parametrize("count", range(7))
async def test_a_termination_is_finished_whenever_its_manager_dies(cluster: TestCluster, sets: Sets, count: int):
    """20 §12.3: given the manager dies after any of its writes, then its successor ends at the same kept group."""
    async with manager(cluster):
        await sets.running(group=limited(0))
        await sets.settled()
        cluster.interceptors[-1].fail(dies_after(count), DIED, times=None)
        await cluster.kubelet.restart_container("llm-0-1")
        await cluster.clock.sleep(5)
    async with manager(cluster):
        pods = await exhausted(cluster, sets, 0)
        await stays(cluster, sets, pods)
        assert await counts(sets) == {}
        assert (await sets.conditions())["Degraded"] == "True"


@pytest.mark.virtual_only(EVERY_WRITE)
@pytest.mark.parametrize("count", range(6))
async def test_a_recovery_is_finished_whenever_its_manager_dies(cluster: TestCluster, sets: Sets, count: int):
    """20 §12.4: given the manager dies after any write of a recovery, then the group comes back with a fresh budget."""
    async with manager(cluster):
        await sets.running(group=limited(1))
        before = await sets.pod_uids(group=0)
        await cluster.kubelet.restart_container("llm-0-1")
        await all_new(sets, before)
        await sets.ready()
        await cluster.kubelet.restart_container("llm-0-1")
        pods = await exhausted(cluster, sets, 0)
        await sets.settled()
        assert await counts(sets) == {"0": 1}
        cluster.interceptors[-1].fail(dies_after(count), DIED, times=None)
        await recover(cluster, "llm-0")
        await cluster.clock.sleep(5)
    async with manager(cluster):
        await comes_back(sets, pods)
        await sets.settled()
        assert await counts(sets) == {}
        assert all(FINALIZER not in p["metadata"].get("finalizers", ()) for p in (await sets.pods()).values())


@pytest.mark.virtual_only(EVERY_WRITE)
@pytest.mark.parametrize("count", range(6))
async def test_a_restart_is_counted_whenever_its_manager_dies(cluster: TestCluster, sets: Sets, count: int):
    """20 §12.2 step 5: given the manager dies after any of its writes, then one restart is counted, and once."""
    async with manager(cluster):
        await sets.running(group=limited(5))
        await sets.settled()
        before = await sets.pod_uids(group=0)
        cluster.interceptors[-1].fail(dies_after(count), DIED, times=None)
        await cluster.kubelet.restart_container("llm-0-1")
        await cluster.clock.sleep(0.01)
    async with manager(cluster):
        await all_new(sets, before)
        await sets.ready()
        await sets.settled()
        assert await counts(sets) == {"0": 1}


async def test_a_wait_goes_on_under_the_next_manager(cluster: TestCluster, sets: Sets):
    """20 §14 lines 89, 90: what waits is written on the leader: a deletion that only the first saw is not lost."""
    async with manager(cluster):
        await sets.running(group=backing_off(window(cluster, 8)), size=2)
        before = await sets.pod_uids(group=0)
        await cluster.delete(POD, "llm-0-1")
        await waits(sets, "llm-0", "llm-0-1")

        async def another() -> None:
            # One that is made while nobody admits it would have no place in its group.
            assert (await sets.pod_uids())["llm-0-1"] != before["llm-0-1"]

        await cluster.eventually(another)
    async with manager(cluster):
        await all_new(sets, before, timeout=120)
        await sets.ready()
        assert await counts(sets) == {"0": 1}


async def test_counters_and_kept_groups_outlive_the_manager(cluster: TestCluster, sets: Sets):
    """20 §12.5: a successor neither forgets nor recovers, and does what was asked for meanwhile."""
    async with manager(cluster):
        await sets.running(group=limited(0))
        pods = await exhaust(cluster, sets)
        await sets.settled()
    async with manager(cluster):
        await stays(cluster, sets, pods)
    await recover(cluster, "llm-0")
    async with manager(cluster):
        await comes_back(sets, pods)


@pytest.mark.parametrize("propagation", ["Background", "Orphan"])
async def test_a_set_that_went_while_no_manager_ran(cluster: TestCluster, sets: Sets, propagation: str):
    """20 §14 line 84: the next manager lets go of pods whose set it never saw."""
    async with manager(cluster):
        await sets.running(group=limited(0))
        pods = await exhaust(cluster, sets)
        await sets.settled()
    await cluster.delete(LEADER_WORKER_SET, "llm", propagation=propagation)
    await cluster.eventually(lambda: cluster.gone(LEADER_WORKER_SET, "llm"))
    await stays(cluster, sets, pods)
    old = {p["metadata"]["uid"] for p in pods.values()}
    async with manager(cluster):

        async def let_go() -> None:
            assert not old & set((await sets.pod_uids()).values())

        await cluster.eventually(let_go)


async def test_without_a_manager_a_person_lets_go(cluster: TestCluster, sets: Sets):
    """20 §12.1: after an uninstallation kept pods go with the command that docs/operating.md gives."""
    async with manager(cluster):
        await sets.running(group=limited(0))
        pods = await exhaust(cluster, sets)
        await sets.settled()
    await cluster.delete(LEADER_WORKER_SET, "llm")
    await stays(cluster, sets, pods)
    for name, pod in pods.items():
        rest = [f for f in pod["metadata"]["finalizers"] if f != FINALIZER]
        await cluster.patch(POD, name, {"metadata": {"finalizers": rest}})

    async def nothing_left() -> None:
        assert await sets.pods() == {}

    await cluster.eventually(nothing_left)


async def test_a_person_who_frees_the_leader_alone_frees_the_group(cluster: TestCluster, sets: Sets):
    """20 §12.4: workers are not kept for a leader that is gone, so nothing hangs, and the group starts anew."""
    async with manager(cluster):
        await sets.running(group=limited(0))
        pods = await exhaust(cluster, sets)
        await sets.settled()
        await cluster.patch(POD, "llm-0", {"metadata": {"finalizers": None}})
        await comes_back(sets, pods)


@pytest.mark.parametrize("error", [Conflict("changed meanwhile"), InternalError("try again")], ids=lambda e: e.reason)
@pytest.mark.parametrize("what", ["leaderworkersets/llm", "pods/llm-0"])
async def test_writes_that_fail_at_first(cluster: TestCluster, sets: Sets, what: str, error: Any):
    """20 §14 line 86: conflicts and errors of the server are got over, and the end is the same."""
    async with manager(cluster):
        await sets.running(group=limited(1))
        before = await sets.pod_uids(group=0)
        interceptor = cluster.interceptors[-1]

        def failing(times: int) -> None:
            for method in ("PATCH", "DELETE"):
                interceptor.fail(matching(method, path=f"/{what}$"), error, times=times)

        failing(2)
        await cluster.kubelet.restart_container("llm-0-1")
        await all_new(sets, before)
        await sets.ready()
        failing(2)
        await cluster.kubelet.restart_container("llm-0-1")
        pods = await exhausted(cluster, sets, 0)
        failing(2)
        await recover(cluster, "llm-0")
        await comes_back(sets, pods)
        assert await counts(sets) == {}


@pytest.mark.virtual_only("news that are late by a chosen time")
@pytest.mark.parametrize("lag", [0.2, 1.0])
async def test_late_news_allow_no_extra_restart(cluster: TestCluster, sets: Sets, lag: float):
    """20 §14 line 85: whatever the cache has not seen yet, a group is restarted as often as it may be."""
    async with manager(cluster):
        await sets.running(group=limited(1), size=2)
        with cluster.slow_watches(lambda request: lag if "pods" in request.path else 0.0):
            before = await sets.pod_uids(group=0)
            await cluster.delete(POD, "llm-0-1")
            await all_new(sets, before)
            assert await counts(sets) == {"0": 1}
            leader = (await sets.pod_uids(group=0))["llm-0"]
            async with cluster.observe(POD) as observer:
                await cluster.kubelet.ready("llm-0")
                await cluster.kubelet.restart_container("llm-0")

                async def marked() -> None:
                    pods = await sets.pods()
                    assert names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION in annotations_of(pods["llm-0"])

                await cluster.eventually(marked)
                await cluster.clock.sleep(10)
            assert (await sets.pod_uids(group=0))["llm-0"] == leader
            assert "llm-0" not in observer.born
            assert await counts(sets) == {"0": 1}
