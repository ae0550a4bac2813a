"""What a ReplicaSet needs next: how many pods more, which ones go, and its status. Pure.

Source: Kubernetes documentation, "ReplicaSet"; API reference: ReplicaSetStatus. Specification: 30 §14.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lwskit.embedded.controllers.pods import is_available, is_ready, is_terminal, ready_since
from lwskit.runtime.clock import rfc3339
from lwskit.runtime.deployment_sizes import FAILURE
from lwskit.runtime.kinds import POD, REPLICA_SET
from lwskit.runtime.objects import (
    Obj,
    Selector,
    condition_of,
    controller_reference,
    generation_of,
    is_deleting,
    key_of,
    labels_of,
    ref_of,
    uid_of,
)
from lwskit.runtime.plan import Delete, Event, OnError
from lwskit.runtime.ranking import ranked

BURST = 500
"""How many pods one round creates or deletes at most."""
"""The condition that tells of pods that could not be created or deleted."""

_NAME_LIMIT = 253
_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a decision is made from.

    `active` are the pods that the ReplicaSet holds and that have neither ended nor are being deleted, `terminating`
    those of its pods that are; `related` the pods of all ReplicaSets of the same Deployment, these included, and none
    where there is no such Deployment.
    """

    set: Obj
    active: Sequence[Obj]
    terminating: Sequence[Obj]
    related: Sequence[Obj]
    now: datetime


@dataclass(frozen=True, slots=True)
class SetPlan:
    """`create` so many pods, or delete these; never both."""

    create: int = 0
    deletions: tuple[Delete, ...] = ()


def decide(snapshot: Snapshot) -> SetPlan:
    """What brings the number of pods to the one wanted; nothing for a set that is being deleted."""
    if is_deleting(snapshot.set):
        return SetPlan()
    missing = wanted(snapshot.set) - len(snapshot.active)
    if missing >= 0:
        return SetPlan(create=min(missing, BURST))
    surplus = min(-missing, BURST)
    order = ranked(snapshot.active, snapshot.related, snapshot.now)
    why = [f"{-missing} too many, and it goes before the next: {r.why}" if r.why else "none is wanted" for r in order]
    return SetPlan(deletions=tuple(_delete(snapshot.set, r.pod, w) for r, w in zip(order[:surplus], why, strict=False)))


def wanted(replica_set: Mapping[str, Any]) -> int:
    """`spec.replicas`, 1 where the server gave no default."""
    return replica_set["spec"].get("replicas", 1)


def new_pod(replica_set: Mapping[str, Any]) -> Obj:
    """The pod to create; the server completes its name."""
    meta, template = replica_set["metadata"], replica_set["spec"].get("template") or {}
    prefix = f"{meta['name']}-"
    pod_meta: Obj = {
        "generateName": prefix if len(prefix) <= _NAME_LIMIT else meta["name"],
        "namespace": meta["namespace"],
        "ownerReferences": [controller_reference(replica_set, REPLICA_SET)],
    }
    given = template.get("metadata") or {}
    pod_meta |= {k: copy.copy(given[k]) for k in ("labels", "annotations", "finalizers") if given.get(k)}
    spec = copy.deepcopy(template.get("spec") or {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_meta, "spec": spec}


def batches(count: int) -> list[int]:
    """A number of creations in batches of 1, 2, 4…: how a burst finds out early that nothing can be created."""
    found: list[int] = []
    size = 1
    while count > 0:
        found.append(min(size, count))
        count -= found[-1]
        size *= 2
    return found


def event(replica_set: Obj, reason: str, note: str, kind: str = "Normal") -> Event:
    """An event about the ReplicaSet."""
    return Event(ref_of(replica_set, REPLICA_SET), reason, reason, note, kind)


def _delete(replica_set: Obj, pod: Obj, why: str) -> Delete:
    name = pod["metadata"]["name"]
    return Delete(
        why=why,
        kind=POD,
        key=key_of(pod),
        uid=uid_of(pod),
        on_success=event(replica_set, "SuccessfulDelete", f"Deleted pod: {name}"),
        on_failure=event(replica_set, "FailedDelete", "Error deleting: {error}", "Warning"),
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.IGNORE},
    )


def status_of(snapshot: Snapshot, failure: str) -> Obj:
    """The status: the pods as they were before this round, and what has failed in it."""
    replica_set, now = snapshot.set, snapshot.now
    old = replica_set.get("status") or {}
    spec = replica_set["spec"]
    template = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    selector, seconds = Selector.of(template), spec.get("minReadySeconds", 0)
    counts = {
        "replicas": len(snapshot.active),
        "fullyLabeledReplicas": sum(selector.matches(labels_of(p)) for p in snapshot.active),
        "readyReplicas": sum(is_ready(p) for p in snapshot.active),
        "availableReplicas": sum(is_available(p, seconds, now) for p in snapshot.active),
        "terminatingReplicas": len(snapshot.terminating),
    }
    always = ("replicas", "terminatingReplicas")
    status: Obj = {k: v for k, v in counts.items() if v or k in always} | {
        "observedGeneration": generation_of(replica_set)
    }
    conditions = [c for c in old.get("conditions") or () if c["type"] != FAILURE]
    if failure:
        known = condition_of(replica_set, FAILURE)
        conditions.append(known or _failure(len(snapshot.active) - wanted(replica_set), failure, now))
    if conditions:
        status["conditions"] = conditions
    return status


def _failure(surplus: int, text: str, now: datetime) -> Obj:
    condition = {"type": FAILURE, "status": "True", "lastTransitionTime": rfc3339(now), "message": text}
    if surplus:
        condition["reason"] = "FailedCreate" if surplus < 0 else "FailedDelete"
    return condition


def status_differs(replica_set: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether a status has to be written: a count or a condition differs, or the generation has moved on."""
    old = replica_set.get("status") or {}
    return (
        any(status.get(k, 0) != old.get(k, 0) for k in _COUNTS)
        or "terminatingReplicas" not in old
        or generation_of(replica_set) != old.get("observedGeneration", 0)
        or (status.get("conditions") or []) != (old.get("conditions") or [])
    )


def next_look(snapshot: Snapshot, status: Mapping[str, Any]) -> float:
    """Seconds until the next pod has been ready for minReadySeconds, 0 when none is waited for."""
    seconds = snapshot.set["spec"].get("minReadySeconds", 0)
    if not seconds or status.get("readyReplicas", 0) == status.get("availableReplicas", 0):
        return 0.0
    times = (ready_since(p) for p in snapshot.active)
    left = [(t + timedelta(seconds=seconds) - snapshot.now).total_seconds() for t in times if t is not None]
    # A timer may fire a moment early.
    return min((s for s in left if s > 0), default=float(seconds)) + 0.001


def is_terminating(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is being deleted and still runs."""
    return is_deleting(pod) and not is_terminal(pod)
