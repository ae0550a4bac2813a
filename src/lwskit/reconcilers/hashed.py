"""The LeaderWorkerSet reconciler of Hash mode: a set's leaders, revisions, shared Service and status.

What is decided stands in `lwskit.groups.hashed`; this is observing for it and executing what it says.
"""

from __future__ import annotations

from dataclasses import replace

from lwskit.api import names
from lwskit.groups import hashed, ownership
from lwskit.groups.model import SetSnapshot
from lwskit.reconcilers.sets import SetReconciler
from lwskit.reconcilers.stats import SetStats
from lwskit.reconcilers.watches import Watches
from lwskit.runtime.clock import Clock
from lwskit.runtime.execute import Executor
from lwskit.runtime.objects import Obj, annotations_of, key_of
from lwskit.runtime.plan import Decision


class HashReconciler(SetReconciler):
    """Reconciles one set at a time (specification: 30 §3).

    Raises ConfigurationError when built with a backend that does not roll out and scale down by itself.
    """

    def __init__(self, watches: Watches, executor: Executor, clock: Clock, stats: SetStats | None = None) -> None:
        hashed.check(watches.backends.hashed)
        super().__init__(watches.backends.hashed, watches, executor, clock, stats)

    def with_groups(self, snapshot: SetSnapshot, lws: Obj) -> SetSnapshot:
        """The snapshot with the pool of groups; with their keys only where restarts have been counted."""
        pool, key = self.watches.pool, key_of(lws)
        counted = snapshot.workload is not None and names.GROUP_RESTART_COUNTS_ANNOTATION in annotations_of(lws)
        revision = ownership.revision_key(snapshot.workload or {"metadata": {}})
        owned = pool.owned(key, revision) if counted else frozenset[str]()
        unclaimed = self.watches.unclaimed(key) if counted else 0
        return replace(snapshot, pool=pool.state_of(key), owned=owned, unclaimed=unclaimed)

    def decide(self, snapshot: SetSnapshot) -> Decision:
        """What to do about it: pure."""
        return hashed.decide(snapshot, self.leaders)
