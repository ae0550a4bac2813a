"""Streams without an order between them: the end of a group's workers is told before the end of their leader."""

from __future__ import annotations

import pytest

from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.kinds import POD
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import all_new
from tests.scenarios.support import Sets

pytestmark = pytest.mark.undisturbed("it disturbs its manager by itself")


async def test_no_workers_are_made_for_a_leader_that_is_gone(cluster: TestCluster, sets: Sets):
    """20 §3.8, §10.3: each pod of the group is made once more, and not once for the leader before."""
    await sets.running(replicas=1, size=2)

    def lag(request: HttpRequest) -> float:
        return 3.0 if request.path.endswith("/pods") else 0.0

    async with cluster.observe(sets.workload) as workloads, cluster.observe(POD) as pods:
        with cluster.slow_watches(lag):
            before = await sets.pod_uids()
            await cluster.delete(POD, "llm-0")
            await all_new(sets, before)
            await sets.ready()
        await sets.settled()
    assert pods.born == {"llm-0": 1, "llm-0-1": 1}
    assert workloads.born == {"llm-0": 1}
