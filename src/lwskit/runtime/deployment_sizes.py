"""How many pods each ReplicaSet of a Deployment is to have, and what tells that it does not get them. Pure.

Source: Kubernetes documentation, "Deployments": max unavailable, max surge, proportional scaling.
Specification: 30 §13.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lwskit.runtime.objects import Obj, annotations_of

PROGRESSING = "Progressing"
"""The condition of a Deployment that is False when it has made no progress for too long."""
FAILURE = "ReplicaFailure"
"""The condition of a Deployment or ReplicaSet whose pods cannot be created or deleted."""
DESIRED = "deployment.kubernetes.io/desired-replicas"
"""The annotation of a ReplicaSet with the size of its Deployment when it was last sized."""
MOST = "deployment.kubernetes.io/max-replicas"
"""The annotation with the most pods that the Deployment might have then."""


def age_of(replica_set: Mapping[str, Any]) -> tuple[str, str]:
    """What ReplicaSets are sorted by from the oldest to the newest; one not created yet is the oldest."""
    return replica_set["metadata"].get("creationTimestamp", ""), replica_set["metadata"]["name"]


def size_in(replica_set: Mapping[str, Any], annotation: str) -> int | None:
    """The number in one of these annotations, None where there is none."""
    text = annotations_of(replica_set).get(annotation, "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) < 2**31 else None


def wanted(workload: Mapping[str, Any]) -> int:
    """`spec.replicas` of a Deployment or a ReplicaSet."""
    return workload["spec"].get("replicas", 1)


def total(sets: Iterable[Mapping[str, Any]]) -> int:
    """How many pods ReplicaSets want together."""
    return sum(wanted(s) for s in sets)


def counted(sets: Iterable[Mapping[str, Any]], field: str) -> int:
    """The sum of a count in the status of ReplicaSets."""
    return sum((s.get("status") or {}).get(field, 0) for s in sets)


def available(replica_set: Mapping[str, Any]) -> int:
    """The available pods of one ReplicaSet."""
    return counted((replica_set,), "availableReplicas")


def is_rolling(deployment: Mapping[str, Any]) -> bool:
    """Whether the strategy is RollingUpdate, as it is by default."""
    return (deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate") == "RollingUpdate"


def limits(deployment: Mapping[str, Any]) -> tuple[int, int]:
    """maxSurge rounded up and maxUnavailable rounded down, in pods; where both are 0 one may be unavailable."""
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    replicas = wanted(deployment)
    surge = -(-_hundredths(rolling.get("maxSurge", 0), replicas) // 100)
    unavailable = _hundredths(rolling.get("maxUnavailable", 0), replicas) // 100
    return surge, unavailable if surge or unavailable else 1


def _hundredths(value: int | str, replicas: int) -> int:
    return int(value.removesuffix("%")) * replicas if isinstance(value, str) else value * 100


def max_surge(deployment: Mapping[str, Any]) -> int:
    """How many pods more than wanted there may be; none with Recreate."""
    return limits(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Mapping[str, Any]) -> int:
    """How many of the wanted pods may be unavailable; none with Recreate, and never more than are wanted."""
    return min(limits(deployment)[1], wanted(deployment)) if is_rolling(deployment) else 0


def size_of_new(deployment: Mapping[str, Any], new: int, everything: int) -> int:
    """How many pods the new ReplicaSet may have, which has `new`, when all together have `everything`."""
    if not is_rolling(deployment):
        return wanted(deployment)
    room = wanted(deployment) + max_surge(deployment) - everything
    return new + min(room, wanted(deployment) - new) if room > 0 else new


def is_saturated(deployment: Mapping[str, Any], new: Mapping[str, Any] | None) -> bool:
    """Whether the new ReplicaSet is of the whole size, was meant to be, and all its pods are available."""
    if new is None:
        return False
    sizes = wanted(new), size_in(new, DESIRED), available(new)
    return all(size == wanted(deployment) for size in sizes)


def proportional(deployment: Mapping[str, Any], sets: Sequence[Obj]) -> list[tuple[Obj, int]]:
    """The sizes of several active ReplicaSets of a Deployment that was scaled in the middle of a rollout.

    What is to be added or taken away is shared out by size, the largest first; of equal ones the newest gets, and the
    oldest loses. What is left over by rounding goes to the first.
    """
    replicas = wanted(deployment)
    change = (replicas + max_surge(deployment) if replicas > 0 else 0) - total(sets)
    if not change:
        return [(s, wanted(s)) for s in sets]
    ordered = sorted(sets, key=age_of, reverse=change > 0)
    ordered.sort(key=wanted, reverse=True)
    sizes: list[int] = []
    shared = 0
    for one in ordered:
        share, left = _share(deployment, one), change - shared
        share = 0 if not left else min(share, left) if change > 0 else max(share, left)
        sizes.append(wanted(one) + share)
        shared += share
    sizes[0] = max(0, sizes[0] + change - shared)
    return list(zip(ordered, sizes, strict=True))


def _share(deployment: Mapping[str, Any], one: Mapping[str, Any]) -> int:
    """By how much a ReplicaSet grows when it keeps its part of the whole."""
    size = wanted(one)
    if wanted(deployment) == 0:
        return -size
    before = size_in(one, MOST) or (deployment.get("status") or {}).get("replicas", 0)
    if not before:
        return 0
    # Half is rounded up.
    return (2 * size * (wanted(deployment) + max_surge(deployment)) + before) // (2 * before) - size
