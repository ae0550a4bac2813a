"""The namespaces of a test; on a real cluster they go while its programs still run, and what stays is told."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import ApiError, Conflict, LwskitError, NotFound
from lwskit.runtime.kinds import NAMESPACE, Kind
from lwskit.runtime.objects import Obj
from lwskit.testing.arguments import kinds_of

if TYPE_CHECKING:
    from lwskit.testing.cluster import TestCluster

TEST_LABEL = "lwskit.test/namespace"
"""The label of all namespaces that one test made; its value is the name of the first."""
STEP = 0.25

_OF_THE_CLUSTER = ("foregroundDeletion", "orphan", "kubernetes")
"""Finalizers that the cluster's own controllers remove; what begins with `kubernetes` is theirs, too."""
_WRITES = ("POST", "PUT", "PATCH")
_PATH = re.compile(r"/apis?/(?:([^/]+)/)?([^/]+)/namespaces/[^/]+/([^/]+)")


class LeftBehind(LwskitError):
    """A namespace of a test stays, for something in it has a finalizer that nobody removes."""


async def add_namespace(client: Client, name: str, first: str, labels: Mapping[str, str] | None = None) -> None:
    """Make a namespace of a test. Raises AlreadyExists. When cancelled, it may or may not be there."""
    meta = {"name": name, "labels": {**(labels or {}), TEST_LABEL: first}}
    await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


async def clear(cluster: TestCluster) -> None:
    """Delete the namespaces of a test, and first what is of its own kinds or has a finalizer of its programs.

    Waits for the latter, and for nothing else. Raises LeftBehind, with what is left, after the cluster's timeout. When
    cancelled, some may be left.
    """
    __tracebackhide__ = True
    deadline = cluster.clock.monotonic() + cluster.timeout
    own = {kind for kind in kinds_of(cluster.crds) if kind.namespaced}
    held = []
    for namespace in cluster.namespaces:
        for kind in dict.fromkeys((*own, *_written(cluster))):
            found = await _objects(cluster, kind, namespace)
            if any(map(_finalizers, found)):
                held.append((kind, namespace))
            for obj in found:
                if kind in own or _finalizers(obj):
                    with contextlib.suppress(ApiError):
                        await cluster.client.delete(kind, obj["metadata"]["name"], namespace)
        with contextlib.suppress(NotFound, Conflict):
            await cluster.client.delete(NAMESPACE, namespace)
    while held:
        left = [
            f"{kind.plural} {obj['metadata']['name']} has the finalizer {_finalizers(obj)[0]}"
            for kind, namespace in held
            for obj in await _objects(cluster, kind, namespace)
            if _finalizers(obj)
        ]
        if not left:
            return
        if cluster.clock.monotonic() >= deadline:
            raise LeftBehind(
                f"namespace {' and '.join(cluster.namespaces)} cannot go: after {cluster.timeout:g} s "
                f"{', '.join(left[:5])}; let the controller under test remove it when the object is deleted"
            )
        await cluster.clock.sleep(STEP)


def _written(cluster: TestCluster) -> set[Kind]:
    """The resources with namespaces that the programs under test have written; only their plurals are known."""
    paths = {r.request.path for i in cluster.interceptors for r in i.requests if r.request.method in _WRITES}
    found = (_PATH.match(path) for path in paths)
    return {Kind(m[1] or "", m[2], m[3], m[3]) for m in found if m}


async def _objects(cluster: TestCluster, kind: Kind, namespace: str) -> list[Obj]:
    try:
        return (await cluster.client.list(kind, namespace)).get("items") or []
    except ApiError:
        return []  # What cannot be listed is no object, such as a review.


def _finalizers(obj: Obj) -> list[str]:
    """The finalizers of an object that somebody else than the cluster removes."""
    given = obj["metadata"].get("finalizers") or []
    return [name for name in given if not name.startswith(_OF_THE_CLUSTER)]
