"""What a deletion does to an object: nothing more, mark it, or remove it. Pure.

Sources: Kubernetes documentation, "Garbage Collection", "Finalizers", "Pod Lifecycle" (termination).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lwskit.embedded.delete_options import Options
from lwskit.embedded.failures import conflict
from lwskit.embedded.resources import Resource
from lwskit.runtime.clock import parse_time, rfc3339
from lwskit.runtime.objects import Obj

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_RETURNED = frozenset(
    {
        "/pods",
        "/services",
        "/serviceaccounts",
        "/persistentvolumeclaims",
        "/persistentvolumes",
        "/podtemplates",
        "/resourcequotas",
        "/namespaces",
    }
)
"""Resources whose deletion answers with the object that went, not with a Status."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`marked` is the object to store (None: leave it as it is); `remove` whether it goes at once (after that)."""

    marked: Obj | None
    remove: bool


def check_preconditions(resource: Resource, obj: Obj, options: Options) -> None:
    """Raises Conflict when the object is not the one that was meant."""
    meta = obj["metadata"]
    if options.uid is not None and options.uid != meta.get("uid"):
        text = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta.get('uid')}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(resource.group, resource.kind, meta["name"], text)
    if options.resource_version is not None and options.resource_version != meta["resourceVersion"]:
        text = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({meta['resourceVersion']}). The object might have been modified"
        )
        raise conflict(resource.group, resource.kind, meta["name"], text)


def decide(resource: Resource, obj: Obj, options: Options, now: datetime) -> Outcome:
    """What this deletion does. `now` is the server's time."""
    if resource.storage == "/namespaces":
        return _namespace(obj, now)
    meta = dict(obj["metadata"])
    graceful = False
    if resource.storage == "/pods":
        pending, graceful = _pod_grace(obj, meta, options, now)
        if pending:
            return Outcome(None, False)
    finalizers = _finalizers(meta.get("finalizers") or [], options.policy)
    changed = finalizers != (meta.get("finalizers") or [])
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    if not graceful:
        if not finalizers:
            return Outcome(None, True)
        if "deletionTimestamp" in meta and not changed:
            return Outcome(None, False)
        _mark(meta, now, 0)
    marked = {**obj, "metadata": meta}
    at_once = graceful and not finalizers and meta["deletionGracePeriodSeconds"] == 0
    return Outcome(marked, at_once)


def _mark(meta: dict[str, Any], now: datetime, grace: int) -> None:
    if "deletionTimestamp" not in meta:
        if meta.get("generation"):
            meta["generation"] += 1
        meta["deletionTimestamp"] = rfc3339(now + timedelta(seconds=grace))
    elif parse_time(meta["deletionTimestamp"]) > now and grace == 0:
        meta["deletionTimestamp"] = rfc3339(now)
    meta["deletionGracePeriodSeconds"] = grace


def _finalizers(current: list[str], policy: str | None) -> list[str]:
    """The finalizers with those of the policy; without a policy, those that are there decide."""
    kept = [f for f in current if f not in (ORPHAN, FOREGROUND)]
    orphan = policy == "Orphan" or (policy is None and ORPHAN in current)
    foreground = policy == "Foreground" or (policy is None and not orphan and FOREGROUND in current)
    wanted = kept + ([ORPHAN] if orphan else []) + ([FOREGROUND] if foreground else [])
    return current if set(wanted) == set(current) else wanted


def _pod_grace(obj: Obj, meta: dict[str, Any], options: Options, now: datetime) -> tuple[bool, bool]:
    """Whether a deletion of this pod is already under way, and whether this one goes through a grace period."""
    if "deletionTimestamp" in meta:
        before = meta.get("deletionGracePeriodSeconds")
        if not before:
            return False, False
        if options.grace is not None and options.grace < before:
            start = parse_time(meta["deletionTimestamp"]) - timedelta(seconds=before)
            meta["deletionTimestamp"] = rfc3339(start + timedelta(seconds=options.grace))
            meta["deletionGracePeriodSeconds"] = options.grace
            return False, True
        return True, False
    spec, phase = obj["spec"], (obj.get("status") or {}).get("phase")
    grace = options.grace if options.grace is not None else spec.get("terminationGracePeriodSeconds", 30)
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        grace = 0
    _mark(meta, now, grace)
    return False, True


def _namespace(obj: Obj, now: datetime) -> Outcome:
    meta = obj["metadata"]
    if "deletionTimestamp" not in meta:
        marked = {
            **obj,
            "metadata": {**meta, "deletionTimestamp": rfc3339(now)},
            "status": {**(obj.get("status") or {}), "phase": "Terminating"},
        }
        if obj["spec"].get("finalizers") or meta.get("finalizers"):
            return Outcome(marked, False)
        return Outcome(marked, True)
    return Outcome(None, not obj["spec"].get("finalizers") and not meta.get("finalizers"))


def gone_by_update(resource: Resource, new: Obj, old: Obj) -> bool:
    """Whether an update took the last finalizer of an object that is being deleted, so that it goes now."""
    meta = new["metadata"]
    if "deletionTimestamp" not in old["metadata"] or meta.get("finalizers"):
        return False
    if resource.storage == "/namespaces":
        return not new["spec"].get("finalizers")
    return old["metadata"].get("deletionGracePeriodSeconds", 0) == 0


def answers_with_object(resource: Resource) -> bool:
    """Whether the answer to a deletion at once is the object itself."""
    return resource.storage in _RETURNED
