"""In Ordinal mode only the highest ordinal can be drained (`lwskit drain-group`)."""

from __future__ import annotations

import pytest

from lwskit.cli import draining
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import annotations_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import ALL_KINDS, Sets


async def test_the_highest_goes_and_no_other(cluster: TestCluster, sets: Sets) -> None:
    await sets.running(replicas=3, size=2)
    await cluster.settled(*ALL_KINDS)
    before = await sets.pods()
    now = cluster.clock.now
    with pytest.raises(DecisionError, match="would remove llm-2: a StatefulSet removes the highest ordinal first"):
        await draining.look(cluster.client, cluster.namespace, "llm-0", now())
    of_set, drain = await draining.look(cluster.client, cluster.namespace, "llm-2", now())
    await draining.carry_out(cluster.client, cluster.namespace, of_set, drain, now)

    async def gone() -> None:
        after = await sets.pods()
        assert set(after) == set(before) - {"llm-2", "llm-2-1"}
        assert {annotations_of(p).get("controller.kubernetes.io/pod-deletion-cost") for p in after.values()} == {None}

    await cluster.eventually(gone)
