"""Prometheus metrics of LeaderWorkerSets, read from the caches and the counts when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from lwskit.groups import hashed, spec, status
from lwskit.groups.model import COUNTED, LeaderState
from lwskit.reconcilers.stats import SetStats
from lwskit.reconcilers.watches import Watches
from lwskit.runtime.objects import Obj, key_of, uid_of

_SET = ("namespace", "name")


class SetMetrics:
    """A collector for a registry of prometheus_client. A set that is gone from the cache has no series any more."""

    def __init__(self, watches: Watches, stats: SetStats) -> None:
        self._watches = watches
        self._stats = stats

    def describe(self) -> list[Metric]:
        """Nothing: names are not checked for collisions before the first collection."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The current numbers of all sets; called by the registry."""
        groups = GaugeMetricFamily("lwskit_groups", "Groups of a set by state.", labels=(*_SET, "state"))
        partition = GaugeMetricFamily("lwskit_rollout_partition", "The first group of the new revision.", labels=_SET)
        left = GaugeMetricFamily("lwskit_rollout_groups_left", "Groups that are still to be updated.", labels=_SET)
        sets = {key_of(lws): lws for lws in self._watches.sets.store}
        for key, lws in sorted(sets.items(), key=lambda item: item[0]):
            leaders = self._watches.backends.leaders_of(lws)
            workload = self._watches.workloads[leaders.kind].store.get(key)
            states, step = self._of_set(lws, leaders.observe(workload) if workload is not None else None)
            for state, count in states.items():
                groups.add_metric([*key, state], count)
            if step.partition is not None:
                partition.add_metric([*key], step.partition)
            if step.left is not None:
                left.add_metric([*key], step.left)
        yield from (groups, partition, left)
        self._stats.keep(sets.keys())
        restarts = CounterMetricFamily("lwskit_group_restarts", "Restarts of groups by cause.", labels=(*_SET, "cause"))
        for key, counts in sorted(self._stats.restarts.items(), key=lambda item: item[0]):
            for cause, count in counts.items():
                restarts.add_metric([*key, cause], count)
        yield restarts
        times = HistogramMetricFamily("lwskit_change_to_ready_seconds", "From a set's change to all groups ready.")
        times.add_metric([], self._stats.change_to_ready.cumulative(), self._stats.change_to_ready.total)
        yield times

    def _of_set(self, lws: Obj, now: LeaderState | None) -> tuple[dict[str, int], _Step]:
        """Groups by state; then where the rollout is, if the set has leaders."""
        wanted = {"wanted": spec.replicas(lws)}
        if now is None:
            return {**wanted, "created": 0, "ready": 0, "updated": 0, "exhausted": 0}, _Step()
        if spec.is_hashed(lws):
            pool = self._watches.pool.state_of(key_of(lws))
            found = hashed.count(now, pool, spec.replicas(lws), now.revision)
            states = {"created": found.created, "ready": found.ready_sound, "updated": found.updated}
            return {**wanted, **states, "exhausted": found.degraded}, _Step(left=max(0, found.created - found.updated))
        state = self._watches.index.state_of(uid_of(lws))
        groups = state.groups(now.revision, alone=spec.size(lws) == 1)
        counts = status.count(groups, spec.replicas(lws), spec.partition(lws))
        found = {
            **wanted,
            "created": groups.count(COUNTED),
            "ready": counts.ready,
            "updated": counts.updated,
            "exhausted": counts.degraded,
        }
        return found, _Step(now.partition, counts.window - counts.window_updated)


class _Step(NamedTuple):
    """Where a rollout is: its partition, which sets in Hash mode do not have, and the groups that are left."""

    partition: int | None = None
    left: int | None = None
