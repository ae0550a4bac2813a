"""What the manager counts of sets while they live."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry

from lwskit.groups.restarts import CONTAINER_RESTART, POD_LOST
from lwskit.manager.program import Program
from lwskit.reconcilers.disaggregated_metrics import DisaggregatedMetrics
from lwskit.reconcilers.metrics import SetMetrics
from lwskit.runtime.kinds import POD
from lwskit.testing.cluster import Runnable, TestCluster
from tests.scenarios.budgets import all_new
from tests.scenarios.disaggregated.support import DisaggregatedSets, two_roles
from tests.scenarios.manager import manager
from tests.scenarios.support import Sets


@pytest.fixture
def programs() -> list[Program]:
    """The managers that have run."""
    return []


@pytest.fixture
def cluster_runnables(programs: list[Program]) -> Sequence[Runnable]:
    """The manager, remembered."""

    @asynccontextmanager
    async def remembered(cluster: TestCluster) -> AsyncIterator[Program]:
        async with manager(cluster) as program:
            programs.append(program)
            yield program

    return (remembered,)


async def test_restarts_are_counted_by_cause_and_changes_are_timed(
    cluster: TestCluster, sets: Sets, programs: list[Program]
):
    """A lost worker and a restarted container count once each; a rollout counts none, and is timed."""
    registry = CollectorRegistry()
    registry.register(SetMetrics(programs[0].watches, programs[0].stats))
    labels = {"namespace": (await sets.running())["metadata"]["namespace"], "name": "llm"}

    def restarts(cause: str) -> float | None:
        return registry.get_sample_value("lwskit_group_restarts_total", {**labels, "cause": cause})

    def changes() -> float | None:
        return registry.get_sample_value("lwskit_change_to_ready_seconds_count")

    await sets.settled()
    await cluster.eventually(lambda: changes() == 1)
    assert restarts(POD_LOST) is None
    before = await sets.pod_uids(group=0)
    await cluster.delete(POD, "llm-0-1")
    await all_new(sets, before)
    await sets.ready()
    assert (restarts(POD_LOST), restarts(CONTAINER_RESTART)) == (1, 0)
    before = await sets.pod_uids(group=1)
    await cluster.kubelet.restart_container("llm-1-2")
    await all_new(sets, before)
    await sets.ready()
    await sets.set_image("registry.example/other:2")
    await sets.ready()
    await cluster.eventually(lambda: changes() == 2)
    await sets.settled()
    assert (restarts(POD_LOST), restarts(CONTAINER_RESTART)) == (1, 1)
    assert changes() == 2


async def test_a_rollout_of_roles_is_measured(cluster: TestCluster, programs: list[Program]):
    """Groups by role as the status has them, the revisions that are there, and the time that the rollout took."""
    registry = CollectorRegistry()
    registry.register(DisaggregatedMetrics(programs[0].disaggregated, programs[0].disaggregated_times))
    sets = DisaggregatedSets(cluster)

    def value(metric: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"lwskit_disaggregated_{metric}", labels)

    live = await sets.running(*two_roles(1, 2))
    mine = {"namespace": live["metadata"]["namespace"], "name": "chat"}

    def states(role: str) -> list[float | None]:
        return [value("groups", **mine, role=role, state=s) for s in ("wanted", "created", "ready", "updated")]

    await cluster.eventually(lambda: states("prefill") == [1] * 4 and states("decode") == [2] * 4)
    await cluster.eventually(lambda: value("change_to_ready_seconds_count") == 1)
    assert value("revisions", **mine) == 1
    await sets.set_image("img:v2")
    await cluster.eventually(lambda: value("revisions", **mine) == 2)
    await sets.ready()
    await cluster.eventually(lambda: value("revisions", **mine) == 1)
    await cluster.eventually(lambda: value("change_to_ready_seconds_count") == 2)
    assert states("decode") == [2] * 4
