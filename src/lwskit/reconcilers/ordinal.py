"""The LeaderWorkerSet reconciler of Ordinal mode: a set's leaders, revisions, shared Service and status.

What is decided stands in `lwskit.groups.ordinal`; this is observing for it and executing what it says.
"""

from __future__ import annotations

import math

from lwskit.groups import identity, ordinal, ownership
from lwskit.groups.model import SetSnapshot
from lwskit.reconcilers.stats import SetStats
from lwskit.reconcilers.watches import BY_SET, Watches, read
from lwskit.runtime.clock import Clock
from lwskit.runtime.execute import Executor, Fresh, reconcile
from lwskit.runtime.objects import Key, Obj, controller_of, is_deleting, key_of, uid_of
from lwskit.runtime.plan import Decision, Plan, UpdateStatus
from lwskit.runtime.request import Request, Result


class OrdinalReconciler:
    """Reconciles one set at a time (specification: 20 §2).

    Raises ConfigurationError when built with a backend that cannot keep ordinals or pause at a partition.
    """

    def __init__(self, watches: Watches, executor: Executor, clock: Clock, stats: SetStats | None = None) -> None:
        ordinal.check(watches.backends.leaders)
        self._watches = watches
        self._executor = executor
        self._clock = clock
        self._stats = stats or SetStats()
        self._written: dict[Key, float] = {}
        """When the status of each set was last written, on the monotonic clock."""

    async def __call__(self, request: Request) -> Result:
        """Observe, decide, execute. Raises what the decision or a request raises; cancelling ends it between writes."""

        def done(_: SetSnapshot, plan: Plan) -> None:
            if any(isinstance(action, UpdateStatus) for action in plan.actions):
                self._written[request.key] = self._clock.monotonic()

        return await reconcile(lambda fresh: self.observe(request, fresh), self.decide, self._executor, done=done)

    def observe(self, request: Request, fresh: Fresh) -> SetSnapshot:
        """All that a decision about the set is made from, without a request to the server."""
        watches, key = self._watches, request.key
        lws = read(fresh, watches.sets.kind, key, watches.sets.store)
        self._stats.seen(key, lws, self._clock.monotonic())
        if lws is None:
            self._written.pop(key, None)
            return SetSnapshot(now=self._clock.now(), lws=None)
        kind = watches.backends.leaders.kind
        workload = read(fresh, kind, key, watches.workloads[kind].store)
        return SetSnapshot(
            now=self._clock.now(),
            lws=lws,
            workload=workload,
            revisions=watches.revisions.store.by_index(BY_SET, key.name, key.namespace),
            led_by=self._led_by(lws) if workload is None else "",
            shared_service=watches.services.store.get(key),
            state=watches.index.state_of(uid_of(lws)),
            healthy=watches.healthy,
            known=watches.index.knows(uid_of(lws)),
            live=frozenset(fresh),
            status_age=self._clock.monotonic() - self._written.get(key, -math.inf),
        )

    def _led_by(self, lws: Obj) -> str:
        """The kind that makes the leaders of a set that has no leader workload of ours; empty if nothing does."""
        namespace, name = key_of(lws)
        leaders = self._watches.backends.leaders
        for pod in self._watches.pods.store.by_index(BY_SET, name, namespace):
            owner = controller_of(pod) if identity.is_leader(pod) and not is_deleting(pod) else None
            if owner is not None and (foreign := ownership.foreign_kind(owner, leaders)):
                return foreign
        return ""

    def decide(self, snapshot: SetSnapshot) -> Decision:
        """What to do about it: pure."""
        return ordinal.decide(snapshot, self._watches.backends.leaders)
