"""The Deployment controller: observes, asks `deployment_plan` what to do, and does it."""

from __future__ import annotations

import random
from collections.abc import Iterable

import structlog

from lwskit.embedded.controllers import deployment_status as conditions
from lwskit.embedded.controllers import owned
from lwskit.embedded.controllers.deployment_plan import Snapshot, decide
from lwskit.embedded.controllers.replicaset import namespace_ends
from lwskit.runtime import deployment_sizes as scale
from lwskit.runtime import deployment_templates as templates
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.handler import Delete, Event, from_map
from lwskit.runtime.deployment_sizes import PROGRESSING
from lwskit.runtime.errors import AlreadyExists, ApiError
from lwskit.runtime.execute import Executor, RecorderLike
from lwskit.runtime.kinds import DEPLOYMENT, POD, REPLICA_SET
from lwskit.runtime.objects import Obj, is_controlled_by, key_of, uid_of
from lwskit.runtime.plan import Create, Plan
from lwskit.runtime.request import DONE, Request, Result

COMPONENT = "deployment-controller"
"""Who the events of this controller are from."""
TURN = 0.002
"""Seconds between a change of a ReplicaSet and the next one, about what a request takes elsewhere: time for their
controller to act on every size that they are given."""

_log = structlog.get_logger(__name__)


class Deployments:
    """Brings Deployments to what they ask for, one request a Deployment.

    Source: Kubernetes documentation, "Deployments".
    """

    def __init__(self, client: Client, cache: Cache, clock: Clock, recorder: RecorderLike, manager: str) -> None:
        self._client = client
        self._clock = clock
        self._deployments = cache.informer(DEPLOYMENT)
        self._sets = cache.informer(REPLICA_SET)
        self._pods = cache.informer(POD)
        self._executor = Executor(client, cache, recorder, clock, manager)
        for informer in (self._sets, self._pods):
            owned.index(informer)

    async def reconcile(self, request: Request) -> Result:
        """One round for the Deployment that the request names. Cancelled, the round is half done, for the next one."""
        deployment = self._deployments.store.get(request.key)
        if deployment is None:
            return DONE
        sets = await owned.take(self._client, self._executor, deployment, DEPLOYMENT, self._sets)
        if sets is None:
            return Result(requeue=True, reason="what the Deployment controls has changed meanwhile")
        pods = {} if scale.is_rolling(deployment) else {uid_of(s): owned.controlled(self._pods, s) for s in sets}
        plan = decide(Snapshot(deployment, sets, pods, self._clock.now()))
        again = plan.again
        if plan.create is not None:
            try:
                await self._executor.execute(Plan((plan.create,)))
            except ApiError as error:
                return await self._not_created(deployment, plan.create, error)
        for action in plan.actions:
            if (await self._executor.execute(Plan((action,)))).requeue:
                return Result(requeue=True, reason="the ReplicaSets have changed meanwhile")
            await self._clock.sleep(TURN)
        if plan.written is not None and not await self._write_status(plan.written):
            again = True
        if plan.create is not None:
            await self._clock.sleep(TURN)
        if again:
            return Result(requeue=True, reason="this was only the beginning")
        return Result(after=plan.after) if plan.after else DONE

    async def _not_created(self, deployment: Obj, create: Create, error: ApiError) -> Result:
        """Say why the new ReplicaSet could not be created; raises the error again unless it will be otherwise soon."""
        if namespace_ends(error):
            return DONE
        if isinstance(error, AlreadyExists):
            await self._collided(deployment, create.obj)
            return Result(requeue=True, reason=str(error))
        if conditions.has_deadline(deployment):
            text = f'Failed to create new replica set "{create.obj["metadata"]["name"]}": {error}'
            failed = conditions.condition(PROGRESSING, "False", conditions.CREATE_ERROR, text, self._clock.now())
            status = deployment.get("status") or {}
            told = conditions.put(status.get("conditions") or (), failed)
            if told != status.get("conditions"):
                await self._write_status(deployment | {"status": status | {"conditions": told}})
        raise error

    async def _collided(self, deployment: Obj, made: Obj) -> None:
        """A ReplicaSet of that name is there: unless it is ours after all, the next one has another name."""
        meta = made["metadata"]
        there = await self._client.get(REPLICA_SET, meta["name"], meta["namespace"])
        same = templates.same_template(there["spec"].get("template") or {}, deployment["spec"]["template"])
        if is_controlled_by(there, DEPLOYMENT, uid_of(deployment)) and same:
            return
        status = deployment.get("status") or {}
        count = (status.get("collisionCount") or 0) + 1
        _log.info("another ReplicaSet has the name of the new one", name=meta["name"], collisions=count)
        await self._write_status(deployment | {"status": status | {"collisionCount": count}})

    async def _write_status(self, deployment: Obj) -> bool:
        """Write the status and the annotations; returns False when the Deployment has changed meanwhile."""
        return await owned.write(self._executor, DEPLOYMENT, deployment, "its ReplicaSets have changed")

    def requests_for_set(self, replica_set: Obj) -> Iterable[Request]:
        """The Deployment that controls a ReplicaSet; for an orphan every one that might adopt it."""
        return owned.requests_for(self._deployments.store, DEPLOYMENT, replica_set)

    def requests_for_pod(self, event: Event) -> Iterable[Request]:
        """The Deployment of a pod that is gone, if it waits for that: only with Recreate."""
        if not isinstance(event, Delete):
            return
        replica_set = owned.owner_in(self._sets.store, REPLICA_SET, event.obj)
        owner = owned.owner_in(self._deployments.store, DEPLOYMENT, replica_set) if replica_set is not None else None
        if owner is not None and not scale.is_rolling(owner):
            yield Request(*key_of(owner), DEPLOYMENT.kind)


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
    """The Deployment controller, to be run with the cache and the recorder; `manager` is its field manager."""
    deployments = Deployments(client, cache, clock, recorder, manager)
    builder = Builder(deployments.reconcile, clock=clock, rng=rng, name="deployment")
    return (
        builder.for_(cache.informer(DEPLOYMENT))
        .watches(cache.informer(REPLICA_SET), from_map(deployments.requests_for_set))
        .watches(cache.informer(POD), deployments.requests_for_pod)
        .build(concurrency=concurrency)
    )
