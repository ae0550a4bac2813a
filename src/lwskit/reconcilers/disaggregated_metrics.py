"""Prometheus metrics of DisaggregatedSets, read from the caches and the counts when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

from lwskit.disaggregated.decide import owned
from lwskit.reconcilers.disaggregated_watches import BY_DISAGGREGATED_SET, DisaggregatedWatches
from lwskit.reconcilers.stats import ChangeTimes
from lwskit.runtime.objects import Key, Obj, key_of

_SET = ("namespace", "name")
_STATES = {
    "wanted": "desiredReplicas",
    "created": "replicas",
    "ready": "readyReplicas",
    "updated": "updatedReplicas",
}
"""The states of groups, and the field of a row of the status that counts each."""


class DisaggregatedMetrics:
    """A collector for a registry of prometheus_client. A set that is gone from the cache has no series any more."""

    def __init__(self, watches: DisaggregatedWatches, times: ChangeTimes) -> None:
        self._watches = watches
        self._times = times

    def describe(self) -> list[Metric]:
        """Nothing: names are not checked for collisions before the first collection."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The current numbers of all sets; called by the registry."""
        groups = GaugeMetricFamily(
            "lwskit_disaggregated_groups", "Groups of a role or sub-role by state.", labels=(*_SET, "role", "state")
        )
        revisions = GaugeMetricFamily(
            "lwskit_disaggregated_revisions", "Revisions of a set that still ask for groups.", labels=_SET
        )
        sets = {key_of(ds): ds for ds in self._watches.sets.store}
        for key, ds in sorted(sets.items(), key=lambda item: item[0]):
            for row in (ds.get("status") or {}).get("roleStatuses") or ():
                for state, counted in _STATES.items():
                    groups.add_metric([*key, row["name"], state], row.get(counted) or 0)
            revisions.add_metric([*key], self._revisions(key, ds))
        yield from (groups, revisions)
        self._times.keep(sets.keys())
        found = self._times.change_to_ready
        times = HistogramMetricFamily(
            "lwskit_disaggregated_change_to_ready_seconds", "From a set's change to all roles ready."
        )
        times.add_metric([], found.cumulative(), found.total)
        yield times

    def _revisions(self, key: Key, ds: Obj) -> int:
        labelled = self._watches.children.store.by_index(BY_DISAGGREGATED_SET, key.name, key.namespace)
        return len({c.revision for c in owned(ds, labelled) if c.replicas and not c.is_terminating})
