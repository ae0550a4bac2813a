"""The quality-of-service class of a pod. Pure.

Source: Kubernetes documentation, "Pod Quality of Service Classes".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.runtime import quantity

_COUNTED = ("cpu", "memory")


def qos_class(spec: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort, from the resources of all containers."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    named = False
    guaranteed = True
    if spec.get("resources"):
        containers = [{"resources": spec["resources"]}]
    for container in containers:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        named = named or any(_positive(r.get(c)) for r in (limits, requests) for c in _COUNTED)
        for counted in _COUNTED:
            limit, request = limits.get(counted), requests.get(counted, limits.get(counted))
            if limit is None or not _positive(limit) or not quantity.equal(limit, request or 0):
                guaranteed = False
    if not named:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _positive(value: Any) -> bool:
    return value is not None and quantity.parse(value) > 0
