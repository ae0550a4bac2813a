"""Finalizers: what keeps an object while something has to be done first (specification: 70 §12). Pure.

Functions that add or remove change the object they are given: hand them your own, never one of a cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.runtime.objects import Obj

FOREGROUND = "foregroundDeletion"
"""Keeps an object whose deletion waits for what it owns (Kubernetes documentation: garbage collection)."""


def has_finalizer(obj: Mapping[str, Any], name: str) -> bool:
    """Whether the object has that finalizer."""
    return name in (obj["metadata"].get("finalizers") or ())


def add_finalizer(obj: Obj, name: str) -> bool:
    """Add a finalizer to `obj`, which is changed; True unless it was there. The server refuses it on a deleted object.

    Specification: 70 §12.
    """
    if has_finalizer(obj, name):
        return False
    obj["metadata"]["finalizers"] = [*(obj["metadata"].get("finalizers") or ()), name]
    return True


def remove_finalizer(obj: Obj, name: str) -> bool:
    """Remove every mention of a finalizer from `obj`, which is changed; True if there was one.

    Without its last finalizer a deleted object goes. Specification: 70 §12.
    """
    if not has_finalizer(obj, name):
        return False
    kept = [other for other in obj["metadata"]["finalizers"] if other != name]
    if kept:
        obj["metadata"]["finalizers"] = kept
    else:
        del obj["metadata"]["finalizers"]
    return True
