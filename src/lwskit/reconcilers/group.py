"""The pod reconciler: a group's workers and Service, and what follows when one of its pods is lost.

What is decided stands in `lwskit.groups.member`; this is observing for it and executing what it says.
"""

from __future__ import annotations

from collections.abc import Sequence

from lwskit.api import names
from lwskit.groups import gates, identity, member, ownership, restarts
from lwskit.groups.model import DecisionError, MemberSnapshot
from lwskit.groups.poolstate import NO_POOL
from lwskit.reconcilers.stats import SetStats
from lwskit.reconcilers.watches import BY_GROUP, BY_SET, PodWork, Watches, group_of_pod, read
from lwskit.runtime.clock import Clock
from lwskit.runtime.execute import Executor, Fresh, reconcile
from lwskit.runtime.kinds import NAMESPACE, NODE, POD
from lwskit.runtime.objects import Key, Obj, annotations_of, controller_of, labels_of, uid_of
from lwskit.runtime.plan import Decision, Emit, Plan
from lwskit.runtime.request import Request, Result


class GroupReconciler:
    """Reconciles one pod of a group at a time (specification: 20 §10)."""

    def __init__(self, watches: Watches, executor: Executor, clock: Clock, stats: SetStats | None = None) -> None:
        self._watches = watches
        self._executor = executor
        self._clock = clock
        self._stats = stats or SetStats()
        self._told: set[str] = set()
        """The leaders at their gate that were said to wait, by UID."""

    async def __call__(self, request: Request) -> Result:
        """Observe, decide, execute. Raises what the decision or a request raises; cancelling ends it between writes."""

        def done(snapshot: MemberSnapshot, plan: Plan) -> None:
            self._remember(snapshot, plan)
            if cause := restarts.cause(snapshot, plan):
                self._stats.restarted(Key(request.namespace, ownership.set_name(snapshot.pod or {})), cause)

        return await reconcile(lambda fresh: self.observe(request, fresh), self.decide, self._executor, done=done)

    def _remember(self, snapshot: MemberSnapshot, plan: Plan) -> None:
        """Note that a leader was said to wait at its gate, until it waits no more."""
        pod = snapshot.pod
        if pod is None:
            return
        if snapshot.deleted or not gates.is_gated(pod):
            self._told.discard(uid_of(pod))
        elif names.EVENT_GROUP_REPLACEMENT_DEFERRED in (
            action.event.reason for action in plan.actions if isinstance(action, Emit)
        ):
            self._told.add(uid_of(pod))

    def decide(self, snapshot: MemberSnapshot) -> Decision:
        """What to do about it: pure."""
        backends = self._watches.backends
        return member.decide(snapshot, backends.leaders_of(snapshot.lws), backends.workers)

    def observe(self, request: Request, fresh: Fresh) -> MemberSnapshot:
        """All that a decision about the pod is made from, without a request to the server."""
        pod = self._pod(request, fresh)
        empty = MemberSnapshot(now=self._clock.now(), pod=pod, deleted=request.deleted, live=frozenset(fresh))
        if pod is None or not {names.NAME_LABEL, names.WORKER_INDEX_LABEL} <= labels_of(pod).keys():
            return empty
        watches, namespace = self._watches, request.namespace
        work: PodWork | None = request.payload
        set_key = Key(namespace, ownership.set_name(pod))
        is_leader = identity.is_leader(pod)
        leader = self._leader(pod, fresh)
        head = pod if is_leader else leader
        lws = read(fresh, watches.sets.kind, set_key, watches.sets.store)
        kind = watches.backends.leaders_of(lws).kind
        hashed = is_leader and identity.has_hash_identity(pod)
        counted = lws is not None and names.GROUP_RESTART_COUNTS_ANNOTATION in annotations_of(lws)
        return MemberSnapshot(
            now=self._clock.now(),
            pod=pod,
            deleted=request.deleted,
            lws=lws,
            leader=leader,
            owner=None if is_leader else self._owner(pod, fresh),
            workers=self._workload(Key(namespace, ownership.workers_name(head)), fresh) if head is not None else None,
            workload=read(fresh, kind, set_key, watches.workloads[kind].store),
            service=watches.services.store.get(Key(namespace, ownership.service_name(pod))) if is_leader else None,
            revisions=watches.revisions.store.by_index(BY_SET, set_key.name, namespace),
            namespace=read(fresh, NAMESPACE, Key("", namespace), watches.namespaces.store),
            group_pods=watches.pods.store.by_index(BY_GROUP, "/".join(group_of_pod(pod)), namespace),
            set_pods=self._pods_of_set(set_key) if is_leader and not hashed and gates.is_gated(pod) else (),
            pool=watches.pool.state_of(set_key) if hashed else NO_POOL,
            owned=watches.pool.owned(set_key, ownership.revision_key(pod)) if hashed and counted else frozenset(),
            told=uid_of(pod) in self._told,
            node=read(fresh, NODE, Key("", (pod.get("spec") or {}).get("nodeName", ""))),
            bereft=work.bereft if work is not None else "",
            live=frozenset(fresh),
        )

    def _pod(self, request: Request, fresh: Fresh) -> Obj | None:
        """The pod that the request is about: as last seen if it is gone, and no other one of the same name."""
        work: PodWork = request.payload
        if request.deleted:
            return work.last_seen
        pod = read(fresh, POD, request.key, self._watches.pods.store)
        return pod if pod is not None and request.uid in ("", uid_of(pod)) else None

    def _leader(self, pod: Obj, fresh: Fresh) -> Obj | None:
        """The pod that leads the group now: for a leader the one of its name, which may be a successor."""
        try:
            name = ownership.leader_name(pod)
        except DecisionError:
            # A worker that tells no leader; whether that matters is for the decision to say.
            return None
        return read(fresh, POD, Key(pod["metadata"]["namespace"], name), self._watches.pods.store)

    def _pods_of_set(self, key: Key) -> Sequence[Obj]:
        return self._watches.pods.store.by_index(BY_SET, key.name, key.namespace)

    def _owner(self, worker: Obj, fresh: Fresh) -> Obj | None:
        reference = controller_of(worker)
        if reference is None or reference["kind"] != self._watches.backends.workers.kind.kind:
            return None
        return self._workload(Key(worker["metadata"]["namespace"], reference["name"]), fresh)

    def _workload(self, key: Key, fresh: Fresh) -> Obj | None:
        kind = self._watches.backends.workers.kind
        return read(fresh, kind, key, self._watches.workloads[kind].store)
