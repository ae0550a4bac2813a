"""Events are served under two groups over one table; this turns one form into the other. Pure."""

from __future__ import annotations

from typing import Any

from lwskit.runtime.objects import Obj

GROUP = "events.k8s.io"
STORAGE = "/events"

_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {core: new for new, core in _NAMES.items()}
_ALWAYS: dict[str, Any] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def to_core(obj: Obj) -> Obj:
    """A core/v1 Event from one of events.k8s.io/v1 (API reference: both Event types)."""
    out = {_NAMES.get(k, k): v for k, v in obj.items()}
    out["apiVersion"] = "v1"
    for name, value in _ALWAYS.items():
        out.setdefault(name, value)
    return out


def from_core(obj: Obj) -> Obj:
    """An events.k8s.io/v1 Event from one of core/v1."""
    out = {_BACK.get(k, k): v for k, v in obj.items()}
    out["apiVersion"] = f"{GROUP}/v1"
    for name in ("reportingController", "reportingInstance"):
        if not out.get(name):
            out.pop(name, None)
    return out
