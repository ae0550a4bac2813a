"""The LeaderWorkerSet reconciler of Ordinal mode: a set's leaders, revisions, shared Service and status.

What is decided stands in `lwskit.groups.ordinal`; this is observing for it and executing what it says.
"""

from __future__ import annotations

from dataclasses import replace

from lwskit.groups import ordinal
from lwskit.groups.model import SetSnapshot
from lwskit.reconcilers.sets import SetReconciler
from lwskit.reconcilers.stats import SetStats
from lwskit.reconcilers.watches import Watches
from lwskit.runtime.clock import Clock
from lwskit.runtime.execute import Executor
from lwskit.runtime.objects import Obj, uid_of
from lwskit.runtime.plan import Decision


class OrdinalReconciler(SetReconciler):
    """Reconciles one set at a time (specification: 20 §2).

    Raises ConfigurationError when built with a backend that cannot keep ordinals or pause at a partition.
    """

    def __init__(self, watches: Watches, executor: Executor, clock: Clock, stats: SetStats | None = None) -> None:
        ordinal.check(watches.backends.leaders)
        super().__init__(watches.backends.leaders, watches, executor, clock, stats)

    def with_groups(self, snapshot: SetSnapshot, lws: Obj) -> SetSnapshot:
        """The snapshot with the groups by ordinal."""
        watches = self.watches
        return replace(snapshot, state=watches.index.state_of(uid_of(lws)), known=watches.knows(lws))

    def decide(self, snapshot: SetSnapshot) -> Decision:
        """What to do about it: pure."""
        return ordinal.decide(snapshot, self.leaders)
