"""The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure. Pure.

Source: Kubernetes documentation, "Deployments": deployment status, progress deadline seconds; API reference:
DeploymentStatus.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from lwskit.runtime.clock import parse_time, rfc3339
from lwskit.runtime.deployment_sizes import FAILURE, PROGRESSING, counted, max_unavailable, total, wanted
from lwskit.runtime.objects import Obj, generation_of

AVAILABLE = "Available"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"
CREATED, FOUND, CREATE_ERROR = "NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetCreateError"
UPDATED, COMPLETE, TIMED_OUT = "ReplicaSetUpdated", "NewReplicaSetAvailable", "ProgressDeadlineExceeded"

_FOREVER = 2**31 - 1
_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")

Conditions = list[Obj]


def has_deadline(deployment: Mapping[str, Any]) -> bool:
    """Whether progress is watched."""
    return deployment["spec"].get("progressDeadlineSeconds") not in (None, _FOREVER)


def condition(type_: str, status: str, reason: str, message: str, now: datetime) -> Obj:
    """A condition that began to hold now."""
    moment = rfc3339(now)
    times = {"lastUpdateTime": moment, "lastTransitionTime": moment}
    return {"type": type_, "status": status, "reason": reason, "message": message} | times


def find(conditions: Iterable[Obj], type_: str) -> Obj | None:
    """The condition of a type, or None."""
    return next((c for c in conditions if c["type"] == type_), None)


def without(conditions: Iterable[Obj], type_: str) -> Conditions:
    """The conditions but that of a type."""
    return [c for c in conditions if c["type"] != type_]


def put(conditions: Sequence[Obj], new: Obj) -> Conditions:
    """The conditions with a new one; one that has its status and reason stays, with its message and times."""
    old = find(conditions, new["type"])
    if old is not None and old["status"] == new["status"]:
        if old.get("reason") == new["reason"]:
            return list(conditions)
        new = new | {"lastTransitionTime": old.get("lastTransitionTime")}
    return [*without(conditions, new["type"]), new]


def counts(deployment: Mapping[str, Any], sets: Sequence[Obj], new: Obj | None, conditions: Sequence[Obj]) -> Obj:
    """The status without what a rollout has to say, from the conditions that there are."""
    ready = counted(sets, "availableReplicas")
    found = {
        "replicas": counted(sets, "replicas"),
        "updatedReplicas": counted([new] if new else [], "replicas"),
        "readyReplicas": counted(sets, "readyReplicas"),
        "availableReplicas": ready,
        "unavailableReplicas": max(0, total(sets) - ready),
    }
    status: Obj = {"observedGeneration": generation_of(deployment)} | {k: v for k, v in found.items() if v}
    terminating = _terminating(sets)
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    collisions = (deployment.get("status") or {}).get("collisionCount")
    if collisions is not None:
        status["collisionCount"] = collisions
    if conditions:
        status["conditions"] = list(conditions)
    return status


def _terminating(sets: Iterable[Obj]) -> int | None:
    """The pods that are being deleted; None where a ReplicaSet was looked at by a controller that does not say."""
    found = 0
    for one in sets:
        status = one.get("status") or {}
        if "terminatingReplicas" in status:
            found += status["terminatingReplicas"]
        elif status.get("observedGeneration"):
            return None
    return found


def availability(deployment: Mapping[str, Any], status: Obj, now: datetime) -> Obj:
    """The status with the condition Available."""
    if status.get("availableReplicas", 0) >= wanted(deployment) - max_unavailable(deployment):
        text = "Deployment has minimum availability."
        new = condition(AVAILABLE, "True", "MinimumReplicasAvailable", text, now)
    else:
        text = "Deployment does not have minimum availability."
        new = condition(AVAILABLE, "False", "MinimumReplicasUnavailable", text, now)
    return status | {"conditions": put(status.get("conditions") or (), new)}


def is_complete(deployment: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether all pods that are wanted are updated and available, and no others are there."""
    names = ("updatedReplicas", "replicas", "availableReplicas")
    same = all(status.get(name, 0) == wanted(deployment) for name in names)
    return same and status.get("observedGeneration", 0) >= generation_of(deployment)


def has_progressed(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether more pods are updated, ready or available than before, or fewer old ones are left."""

    def left(status: Mapping[str, Any]) -> int:
        return status.get("replicas", 0) - status.get("updatedReplicas", 0)

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return left(new) < left(old) or any(new.get(name, 0) > old.get(name, 0) for name in grown)


def remaining(deployment: Mapping[str, Any], progressing: Mapping[str, Any], now: datetime) -> float:
    """Seconds until the rollout has not progressed for too long; negative afterwards."""
    updated = parse_time(progressing.get("lastUpdateTime") or "0001-01-01T00:00:00Z")
    limit = timedelta(seconds=deployment["spec"]["progressDeadlineSeconds"])
    return (updated + limit - now).total_seconds()


def progress(deployment: Mapping[str, Any], current: Obj | None, status: Obj, new: Obj | None, now: datetime) -> Obj:
    """The status with the condition Progressing; `current` is the one before, as it was to be until now."""
    conditions = status.get("conditions") or []
    if not has_deadline(deployment):
        return _with(status, without(conditions, PROGRESSING))
    updated = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    if updated and current is not None and current.get("reason") == COMPLETE:
        return status
    who = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    if is_complete(deployment, status):
        done = condition(PROGRESSING, "True", COMPLETE, f"{who} has successfully progressed.", now)
        return _with(status, put(conditions, done))
    if has_progressed(deployment.get("status") or {}, status):
        on = condition(PROGRESSING, "True", UPDATED, f"{who} is progressing.", now)
        if current is not None and current["status"] == "True":
            on["lastTransitionTime"] = current.get("lastTransitionTime")
        return _with(status, [*without(conditions, PROGRESSING), on])
    if _timed_out(deployment, find(conditions, PROGRESSING), now):
        out = condition(PROGRESSING, "False", TIMED_OUT, f"{who} has timed out progressing.", now)
        return _with(status, put(conditions, out))
    return status


def _timed_out(deployment: Mapping[str, Any], progressing: Obj | None, now: datetime) -> bool:
    if progressing is None or progressing.get("reason") == COMPLETE:
        return False
    return progressing.get("reason") == TIMED_OUT or remaining(deployment, progressing, now) < 0


def failures(status: Obj, sets: Sequence[Obj], new: Obj | None) -> Obj:
    """The status with what one of the ReplicaSets, first of all the new one, has failed at."""
    conditions = status.get("conditions") or []
    for one in [*([new] if new else []), *sets]:
        found = find((one.get("status") or {}).get("conditions") or (), FAILURE)
        if found is not None:
            return _with(status, put(conditions, found | {"lastUpdateTime": found.get("lastTransitionTime")}))
    return _with(status, without(conditions, FAILURE))


def _with(status: Obj, conditions: Conditions) -> Obj:
    rest = {k: v for k, v in status.items() if k != "conditions"}
    return rest | {"conditions": conditions} if conditions else rest


def next_look(deployment: Mapping[str, Any], status: Mapping[str, Any], now: datetime) -> float:
    """Seconds until the rollout may have taken too long, 0 when that is not waited for."""
    progressing = find(status.get("conditions") or (), PROGRESSING)
    if not has_deadline(deployment) or progressing is None:
        return 0.0
    if is_complete(deployment, status) or progressing.get("reason") == TIMED_OUT:
        return 0.0
    return max(0.0, remaining(deployment, progressing, now)) + 1


def differs(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a status has to be written."""
    names = (*_COUNTS, "observedGeneration")
    return (
        any(old.get(name, 0) != new.get(name, 0) for name in names)
        or any(old.get(name) != new.get(name) for name in ("terminatingReplicas", "collisionCount"))
        or (old.get("conditions") or []) != (new.get("conditions") or [])
    )
