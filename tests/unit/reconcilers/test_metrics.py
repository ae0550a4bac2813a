"""Metrics of sets: groups by state, the step of a rollout, restarts by cause, time from change to ready."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from lwskit.api import names
from lwskit.backends.registry import Backends
from lwskit.groups import restarts
from lwskit.reconcilers.metrics import SetMetrics
from lwskit.reconcilers.stats import SetStats
from lwskit.runtime.kinds import STATEFUL_SET
from lwskit.runtime.objects import Key
from tests.unit.groups.small_cluster import LEADERS, WORKERS, SmallCluster, make_lws

KEY = Key("ns", "x")
SET = {"namespace": "ns", "name": "x"}


class Seen:
    """A registry that reads a small cluster."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster, self.stats, self.gone = cluster, SetStats(), False
        self.registry = CollectorRegistry()
        watches: Any = SimpleNamespace(
            backends=Backends(LEADERS, WORKERS),
            index=cluster.index,
            sets=SimpleNamespace(store=self),
            workloads={STATEFUL_SET: SimpleNamespace(store=SimpleNamespace(get=lambda _: cluster.workload))},
        )
        self.registry.register(SetMetrics(watches, self.stats))

    def __iter__(self) -> Any:
        return iter([] if self.gone else [self.cluster.lws])

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {**SET, **labels})

    def states(self) -> dict[str, float | None]:
        names = ("wanted", "created", "ready", "updated", "exhausted")
        return {state: self.value("lwskit_groups", state=state) for state in names}


def test_groups_by_state_through_a_rollout() -> None:
    seen = Seen(SmallCluster(make_lws(replicas=4)))
    cluster = seen.cluster
    assert seen.states() == {"wanted": 4, "created": 0, "ready": 0, "updated": 0, "exhausted": 0}
    assert seen.value("lwskit_rollout_partition") is None
    cluster.settle()
    cluster.make_ready(0, 1, 2)
    assert seen.states() == {"wanted": 4, "created": 4, "ready": 3, "updated": 4, "exhausted": 0}
    cluster.make_ready(3)
    cluster.settle()
    assert (seen.value("lwskit_rollout_partition"), seen.value("lwskit_rollout_groups_left")) == (0, 0)
    cluster.change(image="b")
    cluster.settle()
    assert seen.states() == {"wanted": 4, "created": 4, "ready": 3, "updated": 1, "exhausted": 0}
    assert (seen.value("lwskit_rollout_partition"), seen.value("lwskit_rollout_groups_left")) == (3, 3)


def test_the_series_of_a_deleted_set_go_away() -> None:
    seen = Seen(SmallCluster(make_lws()))
    seen.cluster.settle()
    seen.stats.restarted(KEY, restarts.POD_LOST)
    names = ("lwskit_groups", "lwskit_rollout_partition", "lwskit_rollout_groups_left", "lwskit_group_restarts")

    def told() -> set[str]:
        return {metric.name for metric in seen.registry.collect() if metric.name in names and metric.samples}

    assert told() == {*names}
    assert seen.value("lwskit_group_restarts_total", cause="pod_lost") == 1
    assert seen.value("lwskit_group_restarts_total", cause="container_restart") == 0
    seen.gone = True
    assert told() == set()
    assert not seen.stats.restarts


def lws(generation: int, observed: int, available: bool = False, uid: str = "u") -> dict[str, Any]:
    condition = {
        "type": names.CONDITION_AVAILABLE,
        "status": str(available),
        "observedGeneration": observed,
    }
    status = {"observedGeneration": observed, "conditions": [condition]}
    return {"metadata": {"uid": uid, "generation": generation}, "status": status}


@pytest.mark.parametrize(
    ("told", "times"),
    [
        ([(0, lws(1, 0)), (1, lws(1, 1)), (9, lws(1, 1, True)), (11, lws(1, 1, True))], [9.0]),
        ([(0, lws(1, 1)), (9, lws(1, 1, True))], []),
        ([(0, lws(1, 1, True)), (2, lws(2, 1, True)), (7, lws(2, 2, True))], [5.0]),
        ([(0, lws(1, 0)), (2, lws(2, 1)), (4, lws(2, 2)), (7, lws(2, 2, True))], [5.0]),
        ([(0, lws(1, 0)), (1, None), (2, lws(1, 0, uid="v")), (5, lws(1, 1, True, uid="v"))], [3.0]),
        ([(0, lws(1, 0)), (2, lws(1, 0, uid="v")), (5, lws(1, 1, True, uid="v"))], [3.0]),
        ([(0, lws(1, 1, True)), (3, lws(1, 1, False)), (8, lws(1, 1, True))], []),
    ],
    ids=["created", "seen too late", "changed", "changed again", "deleted", "made anew", "pods failed"],
)
def test_from_change_to_ready(told: list[tuple[float, dict[str, Any] | None]], times: list[float]) -> None:
    stats = SetStats()
    for now, obj in told:
        stats.seen(KEY, obj, now)
    assert (sum(stats.change_to_ready.counts), stats.change_to_ready.total) == (len(times), sum(times))
