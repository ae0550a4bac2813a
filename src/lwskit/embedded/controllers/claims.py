"""The protection of volume claims: a deleted one goes when no pod that runs uses it any more."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.store import Store
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.handler import from_map
from lwskit.runtime.controller.predicate import where
from lwskit.runtime.errors import NotFound
from lwskit.runtime.finalizers import has_finalizer, remove_finalizer
from lwskit.runtime.kinds import PERSISTENT_VOLUME_CLAIM, POD
from lwskit.runtime.objects import Key, Obj, is_deleting
from lwskit.runtime.request import DONE, Request, Result

FINALIZER = "kubernetes.io/pvc-protection"
"""What admission puts on every claim, and this controller takes off."""
USED = "claims used"
"""The index of pods by the claims that they mount."""


def claims_used(pod: Obj) -> list[str]:
    """The names of the claims that a pod mounts, those made for its ephemeral volumes included."""
    used: list[str] = []
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim") is not None:
            used.append(volume["persistentVolumeClaim"]["claimName"])
        elif volume.get("ephemeral") is not None:
            used.append(f"{pod['metadata']['name']}-{volume['name']}")
    return used


class Claims:
    """Takes the finalizer off deleted claims that no scheduled pod mounts.

    A pod without a node does not count: no kubelet starts one whose claim is being deleted.
    Source: Kubernetes documentation, "Persistent Volumes": storage object in use protection.
    """

    def __init__(self, client: Client, claims: Store, pods: Store) -> None:
        self._client = client
        self._claims = claims
        self._pods = pods

    async def reconcile(self, request: Request) -> Result:
        """Look at the claim that the request names. A failed write is raised, and tried again."""
        claim = self._claims.get(Key(request.namespace, request.name))
        if claim is None or not is_deleting(claim) or not has_finalizer(claim, FINALIZER):
            return DONE
        users = self._pods.by_index(USED, request.name, request.namespace)
        if any(pod["spec"].get("nodeName") for pod in users):
            return DONE
        freed = {**claim, "metadata": {**claim["metadata"]}}
        remove_finalizer(freed, FINALIZER)
        with contextlib.suppress(NotFound):
            await self._client.update(PERSISTENT_VOLUME_CLAIM, freed)
        return DONE


def _requests(pod: Obj) -> Iterable[Request]:
    namespace = pod["metadata"]["namespace"]
    return [Request(namespace, name, PERSISTENT_VOLUME_CLAIM.kind) for name in claims_used(pod)]


def build(client: Client, cache: Cache, clock: Clock, rng: random.Random, *, concurrency: int = 1) -> Controller:
    """The controller, to be run with the cache."""
    claims, pods = cache.informer(PERSISTENT_VOLUME_CLAIM), cache.informer(POD)
    pods.add_index(USED, claims_used)
    builder = Builder(Claims(client, claims.store, pods.store).reconcile, clock=clock, rng=rng, name="claims")
    return builder.for_(claims, where(is_deleting)).watches(pods, from_map(_requests)).build(concurrency=concurrency)
