"""A restart budget with nodes: containers crash by themselves, and kept pods give their node back (20 §12.3)."""

from __future__ import annotations

import pytest

from lwskit.runtime.kinds import POD
from lwskit.testing.cluster import ClusterOptions, TestCluster
from tests.scenarios.budgets import FINALIZER, all_new, counts, limited, recover
from tests.scenarios.support import Sets

CRASH = "embedded.k8s.test/crash"
HALF = {"requests": {"cpu": "30"}}


@pytest.fixture
def cluster_options() -> ClusterOptions:
    """One node, with a kubelet and a scheduler."""
    return ClusterOptions(without=frozenset(), nodes=1)


@pytest.mark.virtual_only("its pods run on a kubelet that lets them crash")
async def test_a_container_that_always_crashes(cluster: TestCluster, sets: Sets):
    """20 §14 line 79: two recreations, then the group is kept, stopped, and its place on the node is free."""
    container = {"name": "c", "image": "img", "resources": HALF}
    worker = {"metadata": {"annotations": {CRASH: "always"}}, "spec": {"containers": [container]}}
    leader = {"spec": {"containers": [container]}}
    async with cluster.observe(POD) as observer:
        await sets.create(replicas=1, size=2, leader=leader, template=worker, group=limited(2))

        async def stopped() -> None:
            pods = await sets.pods()
            assert sorted(pods) == ["llm-0", "llm-0-1"]
            assert {p["status"]["phase"] for p in pods.values()} <= {"Failed", "Succeeded"}
            assert all(FINALIZER in p["metadata"]["finalizers"] for p in pods.values())

        await cluster.eventually(stopped)
        await sets.settled()
        await stopped()
    assert observer.born["llm-0"] == 3
    assert await counts(sets) == {"0": 2}

    async def degraded() -> None:
        assert (await sets.conditions())["Degraded"] == "True"

    await cluster.eventually(degraded)
    big = {"containers": [{"name": "c", "image": "img", "resources": {"requests": {"cpu": "50"}}}]}
    await cluster.create(POD, {"metadata": {"name": "other"}, "spec": big})

    async def runs() -> None:
        assert (await cluster.get(POD, "other"))["status"]["phase"] == "Running"

    await cluster.eventually(runs)
    await cluster.delete(POD, "other")
    old = await sets.pod_uids()
    await recover(cluster, "llm-0")
    await all_new(sets, old, playing=False)
