"""A worker's deletion is never lost, whatever the manager sees of it (specification: 20 §10.1, §11.4).

LWSKIT_REPEAT says how often each case is repeated.
"""

from __future__ import annotations

import os
import random

import pytest

from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import Conflict, ConnectionFailed, InternalError, ServiceUnavailable
from lwskit.runtime.kinds import POD
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import matching
from lwskit.testing.observer import Observer
from tests.scenarios.support import Sets

pytestmark = pytest.mark.undisturbed("it disturbs its manager by itself")

REPEAT = int(os.environ.get("LWSKIT_REPEAT") or 3)


def recreated_once(observer: Observer, group: int) -> None:
    """The group's leader was made once, each of its workers at least once, and nothing of the other group."""
    born = observer.born
    assert born[f"llm-{group}"] == 1, born
    assert set(born) == {f"llm-{group}", f"llm-{group}-1", f"llm-{group}-2"}, born
    assert born[f"llm-{group}-2"] == 1, born
    assert born[f"llm-{group}-1"] <= 2, born


async def recovers(cluster: TestCluster, sets: Sets, before: dict[str, str], group: int) -> None:
    """Wait until every pod of the group is new and the set available, and nothing changes any more."""

    async def all_new() -> None:
        after = await sets.pod_uids(group=group)
        assert len(after) == 3
        assert not set(after.values()) & set(before.values())

    async with cluster.kubelet.playing():
        await cluster.eventually(all_new)
    await sets.ready()
    await sets.settled()
    after = await sets.pod_uids(group=1 - group)
    assert after == {n: before[n] for n in after}


async def replaced_worker(cluster: TestCluster, group: int, before: dict[str, str]) -> None:
    """Delete a worker, and wait until its StatefulSet has made a new pod of that name."""
    name = f"llm-{group}-1"
    await cluster.delete(POD, name, uid=before[name])

    async def there_again() -> None:
        assert (await cluster.uids(POD))[name] != before[name]

    await cluster.eventually(there_again)


async def test_a_deletion_as_it_comes(cluster: TestCluster, sets: Sets):
    """20 §14 lines 69, 76, 78: the group is recreated exactly once, the other never."""
    await sets.running()
    for round_ in range(REPEAT):
        group, before = round_ % 2, await sets.pod_uids()
        async with cluster.observe(POD) as observer:
            await cluster.delete(POD, f"llm-{group}-1")
            await recovers(cluster, sets, before, group)
        recreated_once(observer, group)


async def test_the_workload_is_faster_than_the_manager(cluster: TestCluster, sets: Sets):
    """20 §14 line 76: the worker is deleted and replaced under the same name before the manager sees either."""
    await sets.running()
    for round_ in range(REPEAT):
        group, before = round_ % 2, await sets.pod_uids()
        async with cluster.observe(POD) as observer:
            with cluster.hold_watches():
                await replaced_worker(cluster, group, before)
            await recovers(cluster, sets, before, group)
        recreated_once(observer, group)


async def test_the_replacement_is_ready_before_the_manager_looks(cluster: TestCluster, sets: Sets):
    """20 §14 line 76: even a replacement that is Running and Ready does not hide the deletion."""
    await sets.running()
    for round_ in range(REPEAT):
        group, before = round_ % 2, await sets.pod_uids()
        async with cluster.observe(POD) as observer:
            with cluster.hold_watches():
                await replaced_worker(cluster, group, before)
                await cluster.kubelet.ready(f"llm-{group}-1")
            await recovers(cluster, sets, before, group)
        recreated_once(observer, group)


@pytest.mark.parametrize("when", ["before", "after", "around"])
async def test_the_watch_is_cut_around_the_deletion(cluster: TestCluster, sets: Sets, when: str):
    """20 §14 line 76 and 70 §2: a gap in the watch hides the deletion, and the other UID tells it."""
    await sets.running()
    for round_ in range(REPEAT):
        group, before = round_ % 2, await sets.pod_uids()
        async with cluster.observe(POD) as observer:
            if when == "before":
                assert cluster.cut_watches() > 0
                await cluster.delete(POD, f"llm-{group}-1")
            elif when == "after":
                await cluster.delete(POD, f"llm-{group}-1")
                assert cluster.cut_watches() > 0
            else:
                with cluster.watches_down():
                    await replaced_worker(cluster, group, before)
            await recovers(cluster, sets, before, group)
        recreated_once(observer, group)


async def test_the_watch_is_cut_again_and_again(cluster: TestCluster, sets: Sets):
    """70 §2: broken watches at every step of a recreation change nothing about its outcome."""
    await sets.running()
    before = await sets.pod_uids()
    async with cluster.observe(POD) as observer:
        await cluster.delete(POD, "llm-0-1")
        for _ in range(10):
            cluster.cut_watches()
            await cluster.clock.sleep(0.05)
        await recovers(cluster, sets, before, 0)
    recreated_once(observer, 0)


async def test_every_watch_is_late_by_another_time(cluster: TestCluster, sets: Sets):
    """20 §11.4 and 70 §2: caches that lag behind each other neither lose a deletion nor recreate a group twice."""
    await sets.running()
    for round_ in range(REPEAT):
        rng = random.Random(round_)
        group, before = round_ % 2, await sets.pod_uids()
        lags = {plural: rng.choice((0.0, 0.02, 0.3, 1.0)) for plural in ("pods", "statefulsets", "leaderworkersets")}

        def lag(request: HttpRequest, lags: dict[str, float] = lags) -> float:
            return lags.get(request.path.rpartition("/")[2], 0.0)

        async with cluster.observe(POD) as observer:
            with cluster.slow_watches(lag):
                await cluster.delete(POD, f"llm-{group}-1")
                await recovers(cluster, sets, before, group)
            await sets.ready()
            await sets.settled()
        recreated_once(observer, group)


async def test_the_manager_is_slow_to_write(cluster: TestCluster, sets: Sets):
    """20 §11.5: requests that take long change nothing about the outcome."""
    await sets.running()
    for round_ in range(REPEAT):
        rng = random.Random(round_)
        group, before = round_ % 2, await sets.pod_uids()
        for interceptor in cluster.interceptors:
            interceptor.clear()
            for method in ("GET", "POST", "PATCH", "PUT", "DELETE"):
                interceptor.delay(matching(method, watch=False), rng.choice((0.0, 0.05, 0.5)))
        async with cluster.observe(POD) as observer:
            await cluster.delete(POD, f"llm-{group}-1")
            await recovers(cluster, sets, before, group)
        recreated_once(observer, group)


async def test_two_workers_of_one_group_are_deleted(cluster: TestCluster, sets: Sets):
    """20 §14 line 73: the second deletion finds the leader terminating, and the group is recreated once."""
    await sets.running()
    before = await sets.pod_uids()
    async with cluster.observe(POD) as observer:
        with cluster.hold_watches():
            await cluster.delete(POD, "llm-0-1")
            await cluster.delete(POD, "llm-0-2")
        await recovers(cluster, sets, before, 0)
    assert observer.born["llm-0"] == 1
    assert not {n for n in observer.born if n.startswith("llm-1")}


FAILURES = {
    "conflict": lambda: Conflict("the object has been modified"),
    "server error": lambda: InternalError("etcdserver: request timed out"),
    "unavailable": lambda: ServiceUnavailable("apiserver is shutting down"),
    "cut off": lambda: ConnectionFailed("connection reset by peer"),
}


@pytest.mark.virtual_only(reason="what fails is the manager's own connection, which is the same on every cluster")
@pytest.mark.parametrize("failure", sorted(FAILURES))
@pytest.mark.parametrize("method", ["DELETE", "POST", "PUT", "GET"])
async def test_a_request_fails_on_the_way(cluster: TestCluster, sets: Sets, method: str, failure: str):
    """20 §11.5 and 70 §5.3: whichever request fails, and however, the group is recreated and the other one stays."""
    await sets.running()
    before = await sets.pod_uids()
    async with cluster.observe(POD) as observer:
        for interceptor in cluster.interceptors:
            interceptor.fail(matching(method, watch=False), FAILURES[failure](), times=2)
        await cluster.delete(POD, "llm-0-1")
        await recovers(cluster, sets, before, 0)
    recreated_once(observer, 0)
