"""The StatefulSet controller: observes, asks `statefulset_plan` what to do, and does it."""

from __future__ import annotations

import random
from collections.abc import Iterable

from lwskit.embedded.controllers import adoption, owned
from lwskit.embedded.controllers import statefulset_revisions as history
from lwskit.embedded.controllers.statefulset_plan import SetPlan, Snapshot, batches, decide, status_differs
from lwskit.embedded.controllers.statefulset_pods import is_member
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.handler import Handler, from_map
from lwskit.runtime.errors import AlreadyExists, LwskitError
from lwskit.runtime.execute import Executor, RecorderLike
from lwskit.runtime.kinds import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, Selector, key_of, uid_of
from lwskit.runtime.plan import Delete, OnError, Plan
from lwskit.runtime.request import DONE, Request, Result

COMPONENT = "statefulset-controller"
"""Who the events of this controller are from."""


class StatefulSets:
    """Brings StatefulSets to what they ask for, one request a set.

    Source: Kubernetes documentation, "StatefulSets".
    """

    def __init__(self, client: Client, cache: Cache, clock: Clock, recorder: RecorderLike, manager: str) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        self._sets = cache.informer(STATEFUL_SET)
        self._pods = cache.informer(POD)
        self._revisions = cache.informer(CONTROLLER_REVISION)
        self._claims = cache.informer(PERSISTENT_VOLUME_CLAIM)
        self._executor = Executor(client, cache, recorder, clock, manager)
        for informer in (self._pods, self._revisions):
            owned.index(informer)

    async def reconcile(self, request: Request) -> Result:
        """One round for the set that the request names. Cancelling leaves the round half done, for the next one."""
        stateful_set = self._sets.store.get(request.key)
        if stateful_set is None:
            return DONE
        revisions = await self._own_revisions(stateful_set)
        pods = await self._own_pods(stateful_set)
        if revisions is None or pods is None:
            return Result(requeue=True, reason="what the set controls has changed meanwhile")
        current, update, collisions = await self._choose(stateful_set, revisions)
        namespace = request.namespace
        claims = (
            {c["metadata"]["name"]: c for c in self._claims.store.list(namespace)}
            if stateful_set["spec"].get("volumeClaimTemplates")
            else {}
        )
        plan = decide(Snapshot(stateful_set, pods, current, update, self._clock.now(), claims, collisions))
        done: list[int] = []
        try:
            again = await self._carry_out(plan, done)
        finally:
            # A failure is no reason to keep the counts from those who watch the set, nor to let the history grow.
            updates = done[-1] if plan.updates and len(done) == len(plan.phases) else 0
            written = await self._write_status(stateful_set, plan.status_after(updates))
            live = {current["metadata"]["name"], update["metadata"]["name"]}
            await self._truncate(history.outdated(stateful_set, revisions, pods, live))
        if again or not written:
            return Result(requeue=True, reason="the set or its pods have changed meanwhile")
        return Result(after=plan.after) if plan.after else DONE

    async def _own_revisions(self, stateful_set: Obj) -> list[Obj] | None:
        candidates = owned.candidates(self._revisions, stateful_set)
        selector = Selector.from_object(stateful_set["spec"].get("selector"))
        claims = adoption.claim(stateful_set, selector, candidates)
        if claims.adopt:
            adopted = [adoption.adoption(stateful_set, STATEFUL_SET, CONTROLLER_REVISION, r) for r in claims.adopt]
            allowed = await owned.may_adopt(self._client, STATEFUL_SET, stateful_set)
            if not allowed or await self._execute(Plan(tuple(adopted))):
                return None
            claims = adoption.claim(stateful_set, selector, owned.candidates(self._revisions, stateful_set))
        return history.sort(claims.held)

    async def _own_pods(self, stateful_set: Obj) -> list[Obj] | None:
        def belongs(pod: Obj) -> bool:
            return is_member(stateful_set, pod)

        return await owned.take(self._client, self._executor, stateful_set, STATEFUL_SET, self._pods, belongs)

    async def _choose(self, stateful_set: Obj, revisions: list[Obj]) -> tuple[Obj, Obj, int]:
        """The current and the update revision, the latter created or renumbered where needed; and the collisions."""
        choice = history.choose(stateful_set, revisions)
        collisions = history.collisions_of(stateful_set)
        update = choice.update
        if choice.create:
            update, collisions = await self._create(stateful_set, update, collisions)
        elif choice.bump is not None:
            body = {"metadata": {"uid": uid_of(update)}, "revision": choice.bump}
            meta = update["metadata"]
            update = await self._client.patch(CONTROLLER_REVISION, meta["name"], body, meta["namespace"])
            self._cache.ingest(CONTROLLER_REVISION, update)
        return history.current_of(stateful_set, revisions, update), update, collisions

    async def _create(self, stateful_set: Obj, revision: Obj, collisions: int) -> tuple[Obj, int]:
        while True:
            try:
                created = await self._client.create(CONTROLLER_REVISION, revision)
            except AlreadyExists:
                meta = revision["metadata"]
                created = await self._client.get(CONTROLLER_REVISION, meta["name"], meta["namespace"])
                if created.get("data") != revision["data"]:
                    collisions += 1
                    revision = history.new_revision(stateful_set, revision["revision"], collisions)
                    continue
            self._cache.ingest(CONTROLLER_REVISION, created)
            return created, collisions

    async def _carry_out(self, plan: SetPlan, done: list[int]) -> bool:
        """Run the phases; returns whether to run again soon. Raises the first failure, after the batch it was in.

        `done` gets a number for each phase that was begun: how many of its items were carried out.
        """
        for phase in plan.phases:
            done.append(0)
            for batch in batches(phase.items) if phase.burst else [phase.items]:
                failures: list[Exception] = []
                again = False
                for item in batch:
                    try:
                        again |= await self._execute(Plan(item.actions))
                        if item.refused:
                            raise LwskitError(item.refused)
                        done[-1] += 1
                    except LwskitError as error:
                        if not phase.burst:
                            raise
                        failures.append(error)
                    if again and not phase.burst:
                        return True
                if failures:
                    raise failures[0]
                if again:
                    return True
        return False

    async def _execute(self, plan: Plan) -> bool:
        """Run a plan; returns whether it stopped because what it was made from has changed."""
        return bool(plan.actions) and (await self._executor.execute(plan)).requeue

    async def _write_status(self, stateful_set: Obj, status: Obj) -> bool:
        """Write a status that differs; returns False when the set has changed meanwhile."""
        if not status_differs(stateful_set, status):
            return True
        written = stateful_set | {"status": status}
        return await owned.write(self._executor, STATEFUL_SET, written, "the pods have changed")

    async def _truncate(self, revisions: list[Obj]) -> None:
        actions = [
            Delete(
                why="the history is longer than its limit",
                kind=CONTROLLER_REVISION,
                key=key_of(r),
                uid=uid_of(r),
                errors={"NotFound": OnError.IGNORE, "Conflict": OnError.IGNORE},
            )
            for r in revisions
        ]
        await self._execute(Plan(tuple(actions)))

    def requests_for_pod(self, pod: Obj) -> Iterable[Request]:
        """The set that controls a pod; for an orphan every set that might adopt it."""
        return owned.requests_for(self._sets.store, STATEFUL_SET, pod, is_member)


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
    """The StatefulSet controller, to be run with the cache and the recorder; `manager` is its field manager."""
    sets = StatefulSets(client, cache, clock, recorder, manager)
    handler: Handler = from_map(sets.requests_for_pod)
    builder = Builder(sets.reconcile, clock=clock, rng=rng, name="statefulset")
    return (
        builder.for_(cache.informer(STATEFUL_SET))
        .watches(cache.informer(POD), handler)
        .watches(cache.informer(CONTROLLER_REVISION), lambda _: ())
        .watches(cache.informer(PERSISTENT_VOLUME_CLAIM), lambda _: ())
        .build(concurrency=concurrency)
    )
