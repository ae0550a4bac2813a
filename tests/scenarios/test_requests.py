"""What the manager asks of the API server: nothing that changes nothing, and nothing twice (architecture, rule 5)."""

from __future__ import annotations

import pytest

from lwskit.runtime.kinds import POD
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import all_new
from tests.scenarios.support import Sets
from tests.scenarios.written import everything, none_failed, nothing_at_rest, summary

pytestmark = pytest.mark.undisturbed("it counts requests")


async def test_creating_a_set(cluster: TestCluster, sets: Sets):
    """Each object is written once; only the status is written as it changes."""
    await sets.running()
    await sets.settled()
    none_failed(cluster)
    counts = summary(cluster)
    assert counts.pop("update leaderworkersets/llm/status") <= 8
    (revision,) = await sets.revisions()
    assert counts == {
        "create controllerrevisions": 1,
        "patch statefulsets/llm": 1,
        "create services": 1,
        "create statefulsets": 2,
    }
    assert revision["revision"] == 1


@pytest.mark.virtual_only("forty groups that get ready one after another, a moment apart")
async def test_groups_that_get_ready_one_after_another(cluster: TestCluster, sets: Sets):
    """Of a large set not every group is told of at once; the last of them is, for then the set is available."""
    await sets.create(replicas=40, size=1)
    await sets.has_pods(*(f"llm-{i}" for i in range(40)))
    await sets.settled()
    before = summary(cluster)["update leaderworkersets/llm/status"]
    for i in range(39):
        await cluster.kubelet.ready(f"llm-{i}")
        await cluster.consistently(lambda: None, duration=0.15)
    begin = cluster.clock.monotonic()

    async def told() -> None:
        assert (await sets.live())["status"]["readyReplicas"] == 39

    await cluster.eventually(told)
    assert cluster.clock.monotonic() - begin <= 0.5
    await cluster.kubelet.ready("llm-39")
    begin = cluster.clock.monotonic()
    await sets.ready()
    assert cluster.clock.monotonic() - begin <= 0.3
    # 5.85 seconds at 0.4 seconds from one write to the next, and one more at the end.
    assert 13 <= summary(cluster)["update leaderworkersets/llm/status"] - before <= 17
    none_failed(cluster)


@pytest.mark.virtual_only("two hundred pods")
async def test_what_a_group_costs(cluster: TestCluster, sets: Sets):
    """For each group its workers and the event about them; all else together is a fifth of a request a group."""
    await sets.running(replicas=100, size=2)
    await sets.settled()
    counts = everything(cluster)
    assert counts.pop("create statefulsets") == 100
    assert counts.pop("create events") - 100 <= 5
    assert counts.total() <= 15, counts


async def test_a_set_at_rest(cluster: TestCluster, sets: Sets):
    """Nothing is written about a set at rest, whatever its watches do."""
    await sets.running()
    await sets.settled()
    await nothing_at_rest(cluster)
    # One may just be opened again.
    await cluster.eventually(lambda: cluster.interceptors[0].open_watches == 9)


async def test_a_lost_worker(cluster: TestCluster, sets: Sets):
    """One deletion of the leader, one new worker StatefulSet."""
    await sets.running()
    await sets.settled()
    before, pods = summary(cluster), await sets.pod_uids(group=0)
    await cluster.delete(POD, "llm-0-1")
    await all_new(sets, pods)
    await sets.ready()
    await sets.settled()
    counts = summary(cluster) - before
    assert counts.pop("update leaderworkersets/llm/status") <= 8
    assert counts == {"delete pods/llm-0": 1, "create statefulsets": 1}
    none_failed(cluster)


async def test_a_rollout(cluster: TestCluster, sets: Sets):
    """One apply for the template and one for each step of the partition; the old revision is deleted once."""
    await sets.running()
    await sets.settled()
    (old,) = await sets.revisions()
    before = summary(cluster)
    await sets.set_image("img:v2")
    await sets.ready()

    async def one_is_left() -> None:
        assert len(await sets.revisions()) == 1

    await cluster.eventually(one_is_left)
    await sets.settled()
    counts = summary(cluster) - before
    assert counts.pop("update leaderworkersets/llm/status") <= 16
    assert counts == {
        "create controllerrevisions": 1,
        "patch statefulsets/llm": 3,
        "create statefulsets": 2,
        f"delete controllerrevisions/{old['metadata']['name']}": 1,
    }
    none_failed(cluster)
