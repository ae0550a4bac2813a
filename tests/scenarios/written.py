"""What the manager has written: for the scenarios that count it."""

from __future__ import annotations

from collections import Counter

from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import Recorded

READS = ("get", "list", "watch")


def everything(cluster: TestCluster) -> Counter[str]:
    """How often each request was sent, events among them, by verb and path below the namespace.

    Two recorders may name two events alike, as virtual time stands still meanwhile; the second, named anew, counts.
    """
    (manager,) = cluster.interceptors
    root = f"/namespaces/{cluster.namespace}/"
    mine = [r for r in manager.requests if root in r.request.path]
    counted = [r for r in mine if not ("/events" in r.request.path and r.status == 409)]
    return Counter(f"{r.verb} {r.request.path.partition(root)[2]}" for r in counted)


async def nothing_at_rest(cluster: TestCluster) -> None:
    """Nothing is written about sets at rest, whatever their watches do."""
    before = len(writes(cluster))
    cluster.cut_watches()
    await cluster.consistently(lambda: None, duration=6)
    assert writes(cluster)[before:] == []


def writes(cluster: TestCluster) -> list[Recorded]:
    """Requests of the manager that write, without those about events."""
    (manager,) = cluster.interceptors
    mine = [r for r in manager.requests if f"/namespaces/{cluster.namespace}/" in r.request.path]
    return [r for r in mine if r.verb not in READS and "/events" not in r.request.path]


def summary(cluster: TestCluster) -> Counter[str]:
    """How often each write was sent, by verb and path below the namespace."""
    root = f"/namespaces/{cluster.namespace}/"
    return Counter(f"{r.verb} {r.request.path.partition(root)[2]}" for r in writes(cluster))


def none_failed(cluster: TestCluster) -> None:
    """No write was refused, so none was sent in vain."""
    failed = [(r.verb, r.request.path, r.status) for r in writes(cluster) if r.status not in (200, 201)]
    assert failed == []
