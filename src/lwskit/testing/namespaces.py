"""The namespaces of a test; on a real cluster they go while its programs still run, and what stays is told."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import ApiError, Conflict, LwskitError, NotFound
from lwskit.runtime.kinds import NAMESPACE
from lwskit.runtime.objects import Obj, condition_of
from lwskit.testing.arguments import kinds_of

if TYPE_CHECKING:
    from lwskit.testing.cluster import TestCluster

TEST_LABEL = "lwskit.test/namespace"
"""The label of all namespaces that one test made; its value is the name of the first."""
STEP = 0.25
PATIENCE = 10.0
"""Seconds that a cluster has to say in a namespace's conditions what holds it; without a word nothing is waited for."""

_FINALIZERS = "NamespaceFinalizersRemaining"


class LeftBehind(LwskitError):
    """A namespace of a test stays, for something in it has a finalizer that nobody removes."""


async def add_namespace(client: Client, name: str, first: str, labels: Mapping[str, str] | None = None) -> None:
    """Make a namespace of a test. Raises AlreadyExists."""
    meta = {"name": name, "labels": {**(labels or {}), TEST_LABEL: first}}
    await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


async def clear(cluster: TestCluster) -> None:
    """Delete the namespaces of a test, its own kinds in them first, and wait for what a finalizer holds.

    Raises LeftBehind, with what is left, after the cluster's timeout. When cancelled, some may be left.
    """
    deadline = cluster.clock.monotonic() + cluster.timeout
    own = [kind for kind in kinds_of(cluster.crds) if kind.namespaced]
    for namespace in cluster.namespaces:
        for kind in own:
            with contextlib.suppress(ApiError):
                await cluster.client.delete_collection(kind, namespace)
        with contextlib.suppress(NotFound, Conflict):
            await cluster.client.delete(NAMESPACE, namespace)
    for namespace in cluster.namespaces:
        text = await _held(cluster, namespace, deadline)
        if text:
            raise LeftBehind(
                f"namespace {namespace} is still there {cluster.timeout:g} s after its deletion: {text}; "
                "let the test delete what has a finalizer, and its controller remove that, before it ends"
            )


async def _held(cluster: TestCluster, name: str, deadline: float) -> str:
    """Why a namespace cannot go at the deadline; empty once no finalizer holds it."""
    began = cluster.clock.monotonic()
    while True:
        try:
            namespace = await cluster.client.get(NAMESPACE, name)
        except NotFound:
            return ""
        condition: Obj | None = condition_of(namespace, _FINALIZERS)
        now = cluster.clock.monotonic()
        if condition is None and now - began > PATIENCE:
            return ""
        if condition is not None and condition["status"] != "True":
            return ""
        if now >= deadline:
            return str(condition.get("message")) if condition else ""
        await cluster.clock.sleep(STEP)
