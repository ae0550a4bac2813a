"""What the manager has written: for the scenarios that count it."""

from __future__ import annotations

from collections import Counter

from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import Recorded

READS = ("get", "list", "watch")


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
