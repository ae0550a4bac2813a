"""The scale subresource: objects seen as a Scale, written through one, and who owns the replicas. Pure.

The owners of a Scale's fields are the owners of the replicas of its object, and the other way round.
Source: API reference, Scale v1 autoscaling; Kubernetes documentation, "Server-Side Apply", on transferring replicas.
"""

from __future__ import annotations

from typing import Any

from lwskit.embedded import managedfields
from lwskit.embedded.fieldset import Path
from lwskit.embedded.managedfields import Managers, Owned
from lwskit.embedded.resources import Resource
from lwskit.runtime.objects import Obj, Selector

SCALE = Resource("autoscaling", "v1", "Scale", "scales", "scale", namespaced=True, verbs=("get", "patch", "update"))
"""What scales are written as."""

_REPLICAS: Path = ("f:spec", "f:replicas")
_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def spec_path(resource: Resource) -> str:
    """Where objects of a resource keep the wanted number of replicas; dots between the names."""
    custom = resource.custom
    return custom.scale.spec_replicas if custom is not None and custom.scale is not None else "spec.replicas"


def of(resource: Resource, obj: Obj) -> Obj:
    """The Scale of an object."""
    custom = resource.custom
    if custom is not None and custom.scale is not None:
        wanted = read(obj, custom.scale.spec_replicas) or 0
        actual = read(obj, custom.scale.status_replicas) or 0
        selector = (read(obj, custom.scale.label_selector) or "") if custom.scale.label_selector else ""
    else:
        wanted = (obj.get("spec") or {}).get("replicas", 0)
        actual = (obj.get("status") or {}).get("replicas", 0)
        given = (obj.get("spec") or {}).get("selector")
        if given is not None and "matchLabels" not in given and "matchExpressions" not in given:
            given = {"matchLabels": given}
        selector = str(Selector.from_object(given))
    status: Obj = {"replicas": actual}
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {k: obj["metadata"][k] for k in _KEPT if k in obj["metadata"]},
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def read(obj: Obj, path: str) -> Any:
    """The value at a path of names with dots between, or None."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def write(obj: Obj, path: str, value: Any) -> None:
    """Set the value at a path of names with dots between, in place."""
    *parents, last = path.split(".")
    target = obj
    for part in parents:
        target = target.setdefault(part, {})
    target[last] = value


def owned(resource: Resource, obj: Obj) -> list[Obj]:
    """The managed fields of the object's Scale: those who own the replicas."""
    place = _place(resource)
    found: Managers = {}
    for who, fields in managedfields.decode(obj["metadata"].get("managedFields")).items():
        if fields.api_version == resource.api_version and place in fields.paths:
            found[who] = Owned({_REPLICAS}, SCALE.api_version, fields.time)
    return managedfields.encode(found)


def give_back(resource: Resource, obj: Obj, entries: list[Obj]) -> list[Obj]:
    """The managed fields of the object after its Scale was written; `entries` are those of the Scale."""
    place = _place(resource)
    before = managedfields.decode(obj["metadata"].get("managedFields"))
    after = managedfields.decode(entries)
    found: Managers = {}
    for who, fields in before.items():
        if place not in fields.paths:
            found[who] = fields
        elif who in after:
            found[who] = fields
            del after[who]
        elif left := fields.paths - {place}:
            found[who] = Owned(left, fields.api_version, fields.time)
    for who, fields in after.items():
        if _REPLICAS in fields.paths:
            last = before.get(who)
            found[who] = Owned({place}, resource.api_version, last.time if last else None)
    return managedfields.encode(found)


def _place(resource: Resource) -> Path:
    return tuple(f"f:{name}" for name in spec_path(resource).split("."))
