"""What the server itself sets or keeps when an object is created or updated, by kind. Pure.

Every function changes the new object, which belongs to the caller; old objects are never changed.
"""

from __future__ import annotations

from typing import Any

from lwskit.embedded import crds, quality, services, validate_resources
from lwskit.embedded.resources import Resource
from lwskit.runtime.objects import Obj
from lwskit.runtime.typed import TypeTable

SYSTEM_META = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
)
_KEEPS_STATUS_ON_CREATE = frozenset({"/nodes"})
_STATUS_KEEPS_LABELS = frozenset({"apps/deployments", "apps/replicasets"})


def prepare_create(resource: Resource, obj: Obj, types: TypeTable, now: str) -> None:
    """Reset what clients may not choose: status, generation; set what a new object of its kind has."""
    if resource.generation:
        obj["metadata"]["generation"] = 1
    storage = resource.storage
    if resource.custom is not None:
        if resource.has_status:
            obj.pop("status", None)
        return
    if resource.has_status and storage not in _KEEPS_STATUS_ON_CREATE:
        obj.pop("status", None)
        _empty_status(resource, obj, types)
    if storage == "/pods":
        _pod_requests(obj["spec"])
        if obj["spec"].get("terminationGracePeriodSeconds", 0) < 0:
            obj["spec"]["terminationGracePeriodSeconds"] = 1
        status: Obj = {"phase": "Pending", "qosClass": quality.qos_class(obj["spec"])}
        obj["status"] = status
        if obj["spec"].get("schedulingGates"):
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "lastProbeTime": None,
                    "lastTransitionTime": now,
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }
            ]
    elif storage == "/namespaces":
        obj["status"] = {"phase": "Active"}
        finalizers = obj["spec"].setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
    elif storage == "/persistentvolumeclaims":
        obj["status"] = {"phase": "Pending"}
    elif storage == "/persistentvolumes":
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": now}
    elif storage == "apiextensions.k8s.io/customresourcedefinitions":
        crds.complete(obj)


def _pod_requests(spec: dict[str, Any]) -> None:
    """A pod with limits of its own asks for what its containers ask for, or else for as much as its limits are."""
    found = spec.get("resources") or {}
    if not found.get("limits"):
        return
    requests = dict(found.get("requests") or {})
    for name, amount in validate_resources.summed(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, validate_resources.shown(amount))
    for name, amount in found["limits"].items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            requests.setdefault(name, amount)
    if requests:
        found["requests"] = requests


def _empty_status(resource: Resource, obj: Obj, types: TypeTable) -> None:
    """The status as the type writes it when nothing is set."""
    name = types.kind_type(resource.api_version, resource.kind)
    if name is not None:
        empty = types.encode(name, {}).get("status")
        if empty is not None:
            obj["status"] = empty


def prepare_update(resource: Resource, obj: Obj, old: Obj, subresource: str) -> None:
    """Keep what this endpoint may not change, and count the generation."""
    meta, before = obj["metadata"], old["metadata"]
    for name in SYSTEM_META:
        if name in before:
            meta[name] = before[name]
        elif name != "selfLink":
            meta.pop(name, None)
    if subresource == "status":
        _keep_all_but_status(resource, obj, old)
        return
    if subresource == "" and resource.has_status:
        _keep(obj, old, "status")
    if resource.storage == "/namespaces" and subresource == "":
        obj["spec"] = old["spec"]
    if resource.storage == "/pods" and obj["spec"].get("terminationGracePeriodSeconds", 0) < 0:
        obj["spec"]["terminationGracePeriodSeconds"] = 1
    if resource.storage == "/services":
        services.drop_dependent(obj, old)
    if resource.generation and subresource not in ("binding", "eviction") and _generation_differs(resource, obj, old):
        meta["generation"] = before.get("generation", 0) + 1


def _keep(obj: Obj, old: Obj, field: str) -> None:
    if field in old:
        obj[field] = old[field]
    else:
        obj.pop(field, None)


def _keep_all_but_status(resource: Resource, obj: Obj, old: Obj) -> None:
    if resource.custom is not None:
        managed = obj["metadata"].get("managedFields")
        version = obj["metadata"].get("resourceVersion")
        status = obj.get("status")
        for name in [k for k in obj if k not in old]:
            del obj[name]
        obj.update(old)
        obj["metadata"] = dict(old["metadata"])
        for name, value in (("managedFields", managed), ("resourceVersion", version)):
            if value:
                obj["metadata"][name] = value
            else:
                obj["metadata"].pop(name, None)
        if status is None:
            obj.pop("status", None)
        else:
            obj["status"] = status
        return
    for name in [k for k in obj if k not in ("metadata", "status", "apiVersion", "kind")]:
        _keep(obj, old, name)
    if resource.storage == "/pods":
        if "qosClass" in (old.get("status") or {}):
            obj.setdefault("status", {}).setdefault("qosClass", old["status"]["qosClass"])
        if "ownerReferences" in old["metadata"]:
            obj["metadata"]["ownerReferences"] = old["metadata"]["ownerReferences"]
        else:
            obj["metadata"].pop("ownerReferences", None)
    if resource.storage in _STATUS_KEEPS_LABELS:
        _keep(obj["metadata"], old["metadata"], "labels")


def _generation_differs(resource: Resource, obj: Obj, old: Obj) -> bool:
    if resource.custom is not None:
        left_out = {"metadata", "apiVersion", "kind"} | ({"status"} if resource.has_status else set())
        return {k: v for k, v in obj.items() if k not in left_out} != {
            k: v for k, v in old.items() if k not in left_out
        }
    if resource.group == "admissionregistration.k8s.io":
        return obj.get("webhooks") != old.get("webhooks")
    if resource.storage == "apps/deployments":
        annotations = obj["metadata"].get("annotations") or {}
        if annotations != (old["metadata"].get("annotations") or {}):
            return True
    if "spec" in obj or "spec" in old:
        return obj.get("spec") != old.get("spec")
    left_out = {"metadata", "apiVersion", "kind"}
    return any(obj.get(k) != old.get(k) for k in (obj.keys() | old.keys()) - left_out)
