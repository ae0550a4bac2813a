"""The controller of fleets, as small as it can be: it makes and removes pods, and updates images where they run."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lwskit.api import names
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.errors import AlreadyExists, Conflict, NotFound
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, controller_reference, is_controlled_by, is_deleting, is_true, labels_of, uid_of
from lwskit.runtime.request import DONE, Request, Result
from lwskit.testing.cluster import TestCluster
from tests.fleet.kind import FLEET, ordinals_of
from tests.scenarios.manager import await_collector

AGAIN = Result(requeue=True, reason="a pod has changed meanwhile")


class Fleets:
    """Brings fleets to what they ask for. What old pods were made from is kept in the status, by revision key."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._fleets = cache.informer(FLEET)
        self._pods = cache.informer(POD)

    async def reconcile(self, request: Request) -> Result:
        """One round for one fleet."""
        fleet = self._fleets.store.get(request.key)
        if fleet is None or is_deleting(fleet):
            return DONE
        mine = [p for p in self._pods.store.list(request.namespace) if is_controlled_by(p, FLEET, uid_of(fleet))]
        pods = {int(p["metadata"]["name"].rpartition("-")[2]): p for p in mine}
        spec, template = fleet["spec"], fleet["spec"]["template"]
        status = fleet.get("status") or {}
        templates = {**(status.get("templates") or {}), _revision(template): template}
        kept = ((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition", 0)
        wanted = ordinals_of(spec)
        try:
            for ordinal, pod in pods.items():
                ended = (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")
                if (ordinal not in wanted or ended) and not is_deleting(pod):
                    await self._delete(pod)
            for place, ordinal in enumerate(wanted):
                pod = pods.get(ordinal)
                if pod is None:
                    old = status.get("kept") if place < kept else None
                    await self._client.create(POD, _pod(fleet, ordinal, templates.get(old or "", template)))
                elif place >= kept and not is_deleting(pod) and _revision(pod) != _revision(template):
                    await self._update(pod, templates.get(_revision(pod)), template)
        except (AlreadyExists, Conflict, NotFound):
            return AGAIN
        updated = [p for p in mine if _revision(p) == _revision(template) and not is_deleting(p)]
        done = len(updated) == len(mine)
        used = {_revision(p) for p in mine} | {_revision(template), status.get("kept") or ""}
        new = {
            "observedGeneration": fleet["metadata"]["generation"],
            "replicas": len(mine),
            "readyReplicas": sum(is_true(p, "Ready") for p in mine),
            "updatedReplicas": len(updated),
            "kept": _revision(template) if done else status.get("kept") or _revision(template),
            "templates": {key: one for key, one in templates.items() if key in used},
        }
        if new != status:
            await self._client.update(FLEET, {**fleet, "status": new}, subresource="status")
        return DONE

    async def _update(self, pod: Obj, old: Obj | None, template: Obj) -> None:
        """New images where the pod runs; a new pod where more than images differs."""
        if old is None or _without_images(old) != _without_images(template):
            await self._delete(pod)
            return
        meta = pod["metadata"]
        identity = {"uid": uid_of(pod)}
        # First, as a node would tell: nobody may take the pod for updated and ready before its containers are new.
        conditions = [{**c, "status": "False"} for c in (pod.get("status") or {}).get("conditions") or ()]
        status = {"metadata": identity, "status": {"conditions": conditions}}
        await self._client.patch(POD, meta["name"], status, meta["namespace"], subresource="status")
        images = {c["name"]: c["image"] for c in template["spec"]["containers"]}
        containers = [{**c, "image": images.get(c["name"], c["image"])} for c in pod["spec"]["containers"]]
        labels = {names.REVISION_LABEL: _revision(template)}
        body = {"metadata": {**identity, "labels": labels}, "spec": {"containers": containers}}
        await self._client.patch(POD, meta["name"], body, meta["namespace"])

    async def _delete(self, pod: Obj) -> None:
        await self._client.delete(POD, pod["metadata"]["name"], pod["metadata"]["namespace"], uid=uid_of(pod))


def _revision(obj: Obj) -> str:
    return labels_of(obj).get(names.REVISION_LABEL, "")


def _without_images(template: Obj) -> Obj:
    bare = copy.deepcopy(template)
    bare["metadata"]["labels"].pop(names.REVISION_LABEL, None)
    for container in bare["spec"]["containers"]:
        container.pop("image", None)
    return bare


def _pod(fleet: Obj, ordinal: int, template: Obj) -> Obj:
    meta = fleet["metadata"]
    name = f"{meta['name']}-{ordinal}"
    owner = controller_reference(fleet, FLEET)
    metadata = {**template["metadata"], "name": name, "namespace": meta["namespace"], "ownerReferences": [owner]}
    spec = {**template["spec"], "hostname": name, "subdomain": fleet["spec"]["serviceName"]}
    return {"metadata": metadata, "spec": spec}


@asynccontextmanager
async def fleets(cluster: TestCluster) -> AsyncIterator[None]:
    """The controller of fleets on a test's cluster, for the length of the block."""
    client = Client(await cluster.transport("fleets"), field_manager="fleets", clock=cluster.clock)
    cache = Cache(client, cluster.clock, cluster.rng)
    made = Fleets(client, cache)
    builder = Builder(made.reconcile, clock=cluster.clock, rng=cluster.rng, name="fleets")
    controller = builder.for_(cache.informer(FLEET)).owns(cache.informer(POD)).build(concurrency=4)
    tasks = [asyncio.create_task(one.run(), name="fleets") for one in (cache, controller)]
    try:
        probe: Obj = {"metadata": {"name": "probe"}, "spec": {"replicas": 0, "template": {"metadata": {}}}}
        await await_collector(cluster, FLEET, probe)
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await client.close()
    for task in tasks:
        if not task.cancelled():
            task.result()
