"""What the reconcilers of sets share: a set is observed, decided about, and what was decided is carried out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from lwskit.backends.registry import Backends
from lwskit.groups import identity, ownership
from lwskit.groups.model import SetSnapshot
from lwskit.groups.ports import LeaderBackend
from lwskit.reconcilers.stats import SetStats
from lwskit.reconcilers.watches import BY_SET, Watches, read
from lwskit.runtime.clock import Clock
from lwskit.runtime.execute import Executor, Fresh, reconcile
from lwskit.runtime.objects import Key, Obj, controller_of, is_deleting, key_of
from lwskit.runtime.plan import Decision, Plan, UpdateStatus
from lwskit.runtime.request import Request, Result


class SetReconciler(ABC):
    """Reconciles one set at a time; what tells its groups apart is for the subclasses."""

    def __init__(
        self,
        leaders: LeaderBackend,
        watches: Watches,
        executor: Executor,
        clock: Clock,
        stats: SetStats | None = None,
    ) -> None:
        self.leaders = leaders
        """How the leaders of these sets exist."""
        self.watches = watches
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
        watches, key = self.watches, request.key
        lws = read(fresh, watches.sets.kind, key, watches.sets.store)
        self._stats.seen(key, lws, self._clock.monotonic())
        if lws is None:
            self._written.pop(key, None)
            return SetSnapshot(now=self._clock.now(), lws=None)
        kind = self.leaders.kind
        workload = read(fresh, kind, key, watches.workloads[kind].store)
        left = _leaders(watches, lws) if workload is None else ()
        snapshot = SetSnapshot(
            now=self._clock.now(),
            lws=lws,
            workload=workload,
            revisions=watches.revisions.store.by_index(BY_SET, key.name, key.namespace),
            led_by=_led_by(watches, left),
            left=left,
            shared_service=watches.services.store.get(key),
            healthy=watches.healthy,
            live=frozenset(fresh),
            status_age=self._clock.monotonic() - self._written.get(key, -math.inf),
        )
        return self.with_groups(snapshot, lws)

    @abstractmethod
    def with_groups(self, snapshot: SetSnapshot, lws: Obj) -> SetSnapshot:
        """The snapshot with what is known of the groups of the set."""

    @abstractmethod
    def decide(self, snapshot: SetSnapshot) -> Decision:
        """What to do about it: pure."""


def _leaders(watches: Watches, lws: Obj) -> Sequence[Obj]:
    """The leader pods with the set's label that are not being deleted."""
    namespace, name = key_of(lws)
    pods = watches.pods.store.by_index(BY_SET, name, namespace)
    return [pod for pod in pods if identity.is_leader(pod) and not is_deleting(pod)]


def _led_by(watches: Watches, left: Sequence[Obj]) -> str:
    """The kind that makes the leaders of a set that has no leader workload of ours; empty if nothing does.

    Leaders of the other mode are of an earlier set of this name, for a set never changes its mode: they go by
    themselves.
    """
    for pod in left:
        owner = controller_of(pod)
        if owner is not None and (foreign := foreign_to(watches.backends, owner)):
            return foreign
    return ""


def foreign_to(backends: Backends, reference: Obj) -> str:
    """The kind, with its group, that a leader's controller reference names, empty if it is one of these backends'."""
    kinds = [ownership.foreign_kind(reference, leaders) for leaders in backends.leading]
    return kinds[0] if all(kinds) else ""
