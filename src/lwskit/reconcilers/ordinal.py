"""The LeaderWorkerSet reconciler of Ordinal mode: a set's leaders, revisions, shared Service and status.

What is decided stands in `lwskit.groups.ordinal`; this is observing for it and executing what it says.
"""

from __future__ import annotations

from lwskit.groups import ordinal
from lwskit.groups.model import SetSnapshot
from lwskit.reconcilers.watches import BY_SET, Watches, read
from lwskit.runtime.clock import Clock
from lwskit.runtime.execute import Executor, Fresh, reconcile
from lwskit.runtime.objects import uid_of
from lwskit.runtime.plan import Decision
from lwskit.runtime.request import Request, Result


class OrdinalReconciler:
    """Reconciles one set at a time (specification: 20 §2).

    Raises ConfigurationError when built with a backend that cannot keep ordinals or pause at a partition.
    """

    def __init__(self, watches: Watches, executor: Executor, clock: Clock) -> None:
        ordinal.check(watches.backends.leaders)
        self._watches = watches
        self._executor = executor
        self._clock = clock

    async def __call__(self, request: Request) -> Result:
        """Observe, decide, execute. Raises what the decision or a request raises; cancelling ends it between writes."""
        return await reconcile(lambda fresh: self.observe(request, fresh), self.decide, self._executor)

    def observe(self, request: Request, fresh: Fresh) -> SetSnapshot:
        """All that a decision about the set is made from, without a request to the server."""
        watches, key = self._watches, request.key
        lws = read(fresh, watches.sets.kind, key, watches.sets.store)
        if lws is None:
            return SetSnapshot(now=self._clock.now(), lws=None)
        kind = watches.backends.leaders.kind
        return SetSnapshot(
            now=self._clock.now(),
            lws=lws,
            workload=read(fresh, kind, key, watches.workloads[kind].store),
            revisions=watches.revisions.store.by_index(BY_SET, key.name, key.namespace),
            shared_service=watches.services.store.get(key),
            state=watches.index.state_of(uid_of(lws)),
            healthy=watches.healthy,
        )

    def decide(self, snapshot: SetSnapshot) -> Decision:
        """What to do about it: pure."""
        return ordinal.decide(snapshot, self._watches.backends.leaders)
