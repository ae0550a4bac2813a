"""What a real server's own admission plugins change and refuse, as far as it touches pods, claims and namespaces.

Source: Kubernetes documentation, "Admission Controllers Reference" (DefaultTolerationSeconds, Priority,
TaintNodesByCondition, StorageObjectInUseProtection).
"""

from __future__ import annotations

from typing import Any

from lwskit.embedded.backend import Backend
from lwskit.embedded.failures import forbidden
from lwskit.embedded.resources import Resource
from lwskit.runtime.objects import Obj

PRIORITY_CLASSES = "scheduling.k8s.io/priorityclasses"
_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_TOLERATION_SECONDS = 300


def create(b: Backend, resource: Resource, obj: Obj) -> None:
    """Change a new object in place, or refuse it. Raises Forbidden."""
    if resource.storage == "/pods":
        if obj["spec"].get("overhead") is not None and not obj["spec"].get("runtimeClassName"):
            text = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise forbidden(resource, obj["metadata"].get("name", ""), text)
        _priority(b, resource, obj)
        _tolerations(obj["spec"])
    elif resource.storage == "/nodes":
        taints = obj["spec"].setdefault("taints", [])
        if not any(t.get("key") == _NOT_READY and t.get("effect") == "NoSchedule" for t in taints):
            taints.append({"effect": "NoSchedule", "key": _NOT_READY})
    elif resource.storage in ("/persistentvolumeclaims", "/persistentvolumes"):
        name = "kubernetes.io/pvc-protection" if resource.plural.endswith("claims") else "kubernetes.io/pv-protection"
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if name not in finalizers:
            finalizers.append(name)


def update(resource: Resource, obj: Obj, old: Obj, subresource: str) -> None:
    """Change a changed object in place: pods get back the tolerations that every pod has, and their priority."""
    if resource.storage == "/pods" and subresource == "":
        for name in ("priority", "preemptionPolicy"):
            if name not in obj["spec"] and name in old["spec"]:
                obj["spec"][name] = old["spec"][name]
        _tolerations(obj["spec"])


def _priority(b: Backend, resource: Resource, obj: Obj) -> None:
    spec = obj["spec"]
    name = spec.get("priorityClassName")
    value, policy = 0, "PreemptLowerPriority"
    if name:
        entry = b.store.get(PRIORITY_CLASSES, name)
        if entry is None:
            text = f"no PriorityClass with name {name} was found"
            raise forbidden(resource, obj["metadata"].get("name", ""), text)
        value, policy = entry.obj["value"], entry.obj.get("preemptionPolicy") or policy
    else:
        for entry in b.store.list(PRIORITY_CLASSES):
            if entry.obj.get("globalDefault"):
                spec["priorityClassName"] = entry.obj["metadata"]["name"]
                value, policy = entry.obj["value"], entry.obj.get("preemptionPolicy") or policy
    if "priority" in spec and spec["priority"] != value:
        text = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission "
            f"controller computed {value} from the given PriorityClass name"
        )
        raise forbidden(resource, obj["metadata"].get("name", ""), text)
    if spec.get("preemptionPolicy", policy) != policy:
        text = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise forbidden(resource, obj["metadata"].get("name", ""), text)
    spec["priority"] = value
    spec["preemptionPolicy"] = policy


def _tolerations(spec: dict[str, Any]) -> None:
    """Pods tolerate a node's failure for some minutes, unless they say otherwise."""
    tolerations: list[dict[str, Any]] = list(spec.get("tolerations") or ())
    missing = [k for k in (_NOT_READY, _UNREACHABLE) if not any(_covers(t, k) for t in tolerations)]
    for name in missing:
        tolerations.append(
            {"effect": "NoExecute", "key": name, "operator": "Exists", "tolerationSeconds": _TOLERATION_SECONDS}
        )
    if missing:
        spec["tolerations"] = tolerations


def _covers(toleration: dict[str, Any], name: str) -> bool:
    return toleration.get("key") in (name, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def delete(resource: Resource, name: str) -> None:
    """Some namespaces can never be deleted. Raises Forbidden."""
    if resource.storage == "/namespaces" and name in ("default", "kube-system", "kube-public"):
        raise forbidden(resource, name, "this namespace may not be deleted")
