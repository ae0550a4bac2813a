"""Putting the controllers together, for the manager and for whoever embeds them."""

from __future__ import annotations

import random
from functools import partial

from lwskit.api import disaggregated_names
from lwskit.groups import spec
from lwskit.reconcilers.disaggregated import Again, DisaggregatedReconciler
from lwskit.reconcilers.disaggregated_watches import DisaggregatedWatches, set_of_child
from lwskit.reconcilers.group import GroupReconciler
from lwskit.reconcilers.hashed import HashReconciler
from lwskit.reconcilers.ordinal import OrdinalReconciler
from lwskit.reconcilers.stats import ChangeTimes, SetStats
from lwskit.reconcilers.watches import (
    Watches,
    group_lane,
    is_gone,
    leader_changed,
    pod_requests,
    set_asks_otherwise,
    set_requests,
    workload_asks_otherwise,
)
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.handler import LOW_PRIORITY
from lwskit.runtime.controller.source import FunctionSource
from lwskit.runtime.execute import Executor
from lwskit.runtime.request import Request, Result

CONCURRENCY = 8
SETTLE = 0.1
"""Seconds that a set's events wait for others like them: the pods of a group get ready one after the other, and what is
decided in between would be written, told in an event, and be out of date at once."""


class SetsReconciler:
    """Reconciles sets, each in its mode.

    Raises ConfigurationError when built with a backend of leaders that cannot serve its mode.
    """

    def __init__(self, watches: Watches, executor: Executor, clock: Clock, stats: SetStats | None = None) -> None:
        stats = stats or SetStats()
        self._sets = watches.sets.store
        self._ordinal = OrdinalReconciler(watches, executor, clock, stats)
        self._hashed = HashReconciler(watches, executor, clock, stats)

    async def __call__(self, request: Request) -> Result:
        """Reconcile one set. Raises what its reconciler raises; cancelling ends it between writes."""
        lws = self._sets.get(request.key)
        return await (self._hashed if lws is not None and spec.is_hashed(lws) else self._ordinal)(request)


def set_controller(
    watches: Watches,
    executor: Executor,
    clock: Clock,
    rng: random.Random,
    concurrency: int = CONCURRENCY,
    stats: SetStats | None = None,
) -> Controller:
    """The controller `leaderworkerset`: `concurrency` sets at once, whatever their mode (20 §2.1, 30 §3)."""
    reconciler = SetsReconciler(watches, executor, clock, stats)
    builder = Builder(reconciler, clock=clock, rng=rng, name="leaderworkerset")
    builder.for_(watches.sets)
    for informer in watches.workloads.values():
        builder.watches(informer, set_requests)
    builder.watches(watches.services, watches.sets_of_service)
    builder.watches(watches.revisions, set_requests, is_gone)
    builder.watches(watches.pods, set_requests, leader_changed)
    builder.watches_source(FunctionSource(lambda q: watches.when_recovered(partial(q.add, priority=LOW_PRIORITY))))
    return builder.build(concurrency=concurrency, debounce=SETTLE)


def group_controller(
    watches: Watches,
    executor: Executor,
    clock: Clock,
    rng: random.Random,
    concurrency: int = CONCURRENCY,
    stats: SetStats | None = None,
) -> Controller:
    """The controller `pod`: `concurrency` groups at once, the pods of one group one after another (20 §10.1)."""
    builder = Builder(GroupReconciler(watches, executor, clock, stats), clock=clock, rng=rng, name="pod")
    builder.watches(watches.pods, pod_requests)
    workers = watches.workloads[watches.backends.workers.kind]
    builder.watches(workers, watches.pods_of_workers, watches.workers_concern_leader)
    builder.watches(watches.pods, watches.freed_by_pod)
    for kind in dict.fromkeys(backend.kind for backend in watches.backends.leading):
        builder.watches(watches.workloads[kind], watches.freed_by_workload, workload_asks_otherwise)
    builder.watches(watches.services, watches.freed_by_service)
    builder.watches(watches.sets, watches.freed_by_set, set_asks_otherwise)
    builder.watches(watches.namespaces, watches.freed_by_namespace)
    return builder.build(concurrency=concurrency, lane=group_lane)


def disaggregated_controller(
    watches: DisaggregatedWatches,
    executor: Executor,
    clock: Clock,
    rng: random.Random,
    concurrency: int = CONCURRENCY,
    times: ChangeTimes | None = None,
) -> Controller:
    """The controller `disaggregatedset`: `concurrency` DisaggregatedSets at once (50 §5)."""
    again = Again()
    reconciler = DisaggregatedReconciler(watches, executor, clock, again, times)
    builder = Builder(reconciler, clock=clock, rng=rng, name=disaggregated_names.CONTROLLER)
    builder.for_(watches.sets)
    builder.watches(watches.children, set_of_child)
    builder.watches(watches.children, watches.waiting_for_name)
    builder.watches(watches.scalers, set_of_child)
    builder.watches(watches.pods, watches.sets_of_pod)
    builder.watches_source(FunctionSource(again.start))
    return builder.build(concurrency=concurrency, debounce=SETTLE)
