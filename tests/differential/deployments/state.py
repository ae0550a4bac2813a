"""What is compared of a namespace: everything that the Deployment and ReplicaSet controllers bring about."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lwskit.runtime.kinds import DEPLOYMENT, REPLICA_SET
from lwskit.runtime.objects import Obj, annotations_of, is_deleting, labels_of
from tests.differential.deployments.view import View

_TIMES = ("lastUpdateTime", "lastTransitionTime")


def state(place: View) -> dict[str, Any]:
    """The namespace in comparable form.

    Pods are counted by class, since nobody can tell which of two equal ones is deleted; no times, versions and UIDs.
    """
    found: dict[str, Any] = {}
    for kind in (DEPLOYMENT, REPLICA_SET):
        for obj in place.of(kind).values():
            found[place.symbol(obj)] = _described(place, obj)
    found["pods"] = dict(sorted(Counter(c for c, _ in place.pods()).items()))
    found["lost"] = dict(sorted(Counter(place.lost).items()))
    found["born"] = place.born()
    return found


def _described(place: View, obj: Obj) -> dict[str, Any]:
    meta, spec = obj["metadata"], obj["spec"]
    status = dict(obj.get("status") or {})
    conditions = [{k: v for k, v in c.items() if k not in _TIMES} for c in status.pop("conditions", ())]
    described = {
        "generation": meta.get("generation"),
        "labels": dict(labels_of(obj)),
        "annotations": dict(annotations_of(obj)),
        "finalizers": sorted(meta.get("finalizers") or ()),
        "owner": place.owner(obj),
        "deleting": is_deleting(obj),
        "replicas": spec.get("replicas"),
        "minReadySeconds": spec.get("minReadySeconds", 0),
        "selector": spec.get("selector"),
        "template": spec.get("template"),
        "status": status,
        "conditions": sorted(conditions, key=lambda c: c["type"]),
    }
    return place.masked(described)
