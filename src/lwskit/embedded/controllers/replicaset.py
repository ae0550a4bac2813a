"""The ReplicaSet controller: observes, asks `replicaset_plan` what to do, and does it."""

from __future__ import annotations

import random
from collections.abc import Iterable

from lwskit.embedded.controllers import owned
from lwskit.embedded.controllers.replicaset_plan import (
    SetPlan,
    Snapshot,
    batches,
    decide,
    event,
    is_terminating,
    new_pod,
    next_look,
    status_differs,
    status_of,
)
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.handler import from_map
from lwskit.runtime.errors import ApiError, LwskitError
from lwskit.runtime.execute import Executor, RecorderLike
from lwskit.runtime.kinds import POD, REPLICA_SET
from lwskit.runtime.objects import Obj, Selector, controller_of, labels_of, uid_of
from lwskit.runtime.plan import Plan
from lwskit.runtime.ranking import is_active
from lwskit.runtime.request import DONE, Request, Result

COMPONENT = "replicaset-controller"
"""Who the events of this controller are from."""
TURN = 0.001
"""Seconds between the creation of pods and the next look, about what a request takes elsewhere: time for a Deployment
to see that there were fewer."""


class ReplicaSets:
    """Brings ReplicaSets to what they ask for, one request a set.

    Source: Kubernetes documentation, "ReplicaSet".
    """

    def __init__(self, client: Client, cache: Cache, clock: Clock, recorder: RecorderLike, manager: str) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        self._recorder = recorder
        self._manager = manager
        self._sets = cache.informer(REPLICA_SET)
        self._pods = cache.informer(POD)
        self._executor = Executor(client, cache, recorder, clock, manager)
        for informer in (self._pods, self._sets):
            owned.index(informer)

    async def reconcile(self, request: Request) -> Result:
        """One round for the set that the request names. Cancelling leaves the round half done, for the next one."""
        replica_set = self._sets.store.get(request.key)
        if replica_set is None:
            return DONE
        active = await owned.take(
            self._client, self._executor, replica_set, REPLICA_SET, self._pods, concerns=is_active
        )
        if active is None:
            return Result(requeue=True, reason="what the set controls has changed meanwhile")
        selector = Selector.from_object(replica_set["spec"].get("selector"))
        terminating = [
            p for p in owned.controlled(self._pods, replica_set) if is_terminating(p) and selector.matches(labels_of(p))
        ]
        snapshot = Snapshot(replica_set, active, terminating, self._related(replica_set), self._clock.now())
        plan = decide(snapshot)
        error = await self._carry_out(replica_set, plan)
        status = status_of(snapshot, str(error) if error else "")
        written = await self._write_status(replica_set, status)
        if plan.create:
            await self._clock.sleep(TURN)
        if error is not None:
            raise error
        if not written:
            return Result(requeue=True, reason="the set has changed meanwhile")
        after = next_look(snapshot, status)
        return Result(after=after) if after else DONE

    def _related(self, replica_set: Obj) -> list[Obj]:
        """The pods of all sets that have the same controller."""
        owner = controller_of(replica_set)
        if owner is None:
            return []
        namespace = replica_set["metadata"]["namespace"]
        found: dict[str, Obj] = {}
        for sibling in self._sets.store.by_index(owned.OWNER_INDEX, owner["uid"]):
            selector = Selector.from_object(sibling["spec"].get("selector"))
            found |= {uid_of(p): p for p in self._pods.store.list(namespace, selector)}
        return list(found.values())

    async def _carry_out(self, replica_set: Obj, plan: SetPlan) -> LwskitError | None:
        """Create in batches, up to the first with a failure, or delete; returns the first failure."""
        for size in batches(plan.create):
            found = [await self._create(replica_set) for _ in range(size)]
            if errors := [e for e in found if e is not None]:
                return errors[0]
        failed: LwskitError | None = None
        for action in plan.deletions:
            try:
                await self._executor.execute(Plan((action,)))
            except LwskitError as error:
                failed = failed or LwskitError(f"unable to delete pods: {error}")
        return failed

    async def _create(self, replica_set: Obj) -> LwskitError | None:
        try:
            pod = await self._client.create(POD, new_pod(replica_set), field_manager=self._manager)
        except LwskitError as error:
            if isinstance(error, ApiError) and namespace_ends(error):
                return None
            self._recorder.event(event(replica_set, "FailedCreate", f"Error creating: {error}", "Warning"))
            return error
        self._cache.ingest(POD, pod)
        self._recorder.event(event(replica_set, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}"))
        return None

    async def _write_status(self, replica_set: Obj, status: Obj) -> bool:
        """Write a status that differs; returns False when the set has changed meanwhile."""
        if not status_differs(replica_set, status):
            return True
        written = replica_set | {"status": status}
        return await owned.write(self._executor, REPLICA_SET, written, "the pods have changed")

    def requests_for_pod(self, pod: Obj) -> Iterable[Request]:
        """The set that controls a pod; for an orphan every set that might adopt it."""
        return owned.requests_for(self._sets.store, REPLICA_SET, pod)


def namespace_ends(error: ApiError) -> bool:
    """Whether nothing can be created any more since the namespace is being deleted: no failure worth telling of."""
    return any(c.get("reason") == "NamespaceTerminating" for c in error.details.get("causes") or ())


def build(
    client: Client,
    cache: Cache,
    clock: Clock,
    rng: random.Random,
    recorder: RecorderLike,
    *,
    manager: str = "kube-controller-manager",
    concurrency: int = 5,
) -> Controller:
    """The ReplicaSet controller, to be run with the cache and the recorder; `manager` is its field manager."""
    sets = ReplicaSets(client, cache, clock, recorder, manager)
    builder = Builder(sets.reconcile, clock=clock, rng=rng, name="replicaset")
    return (
        builder.for_(cache.informer(REPLICA_SET))
        .watches(cache.informer(POD), from_map(sets.requests_for_pod))
        .build(concurrency=concurrency)
    )
