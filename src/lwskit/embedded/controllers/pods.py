"""Reading pods the way the controllers of a cluster do. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from lwskit.runtime.clock import parse_time
from lwskit.runtime.objects import condition_of, is_deleting, is_true

TERMINAL = frozenset({"Succeeded", "Failed"})
"""The phases that a pod never leaves."""


def phase_of(pod: Mapping[str, Any]) -> str:
    """`status.phase`, empty before the pod exists."""
    return (pod.get("status") or {}).get("phase", "")


def is_terminal(pod: Mapping[str, Any]) -> bool:
    """Whether the pod has Succeeded or Failed."""
    return phase_of(pod) in TERMINAL


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether the condition Ready is True."""
    return is_true(pod, "Ready")


def is_running_and_ready(pod: Mapping[str, Any]) -> bool:
    """Whether the phase is Running and the condition Ready is True."""
    return phase_of(pod) == "Running" and is_ready(pod)


def ready_since(pod: Mapping[str, Any]) -> datetime | None:
    """When Ready last became True, None while it is not True or carries no time."""
    condition = condition_of(pod, "Ready")
    if not condition or condition.get("status") != "True" or not condition.get("lastTransitionTime"):
        return None
    return parse_time(condition["lastTransitionTime"])


def is_available(pod: Mapping[str, Any], min_ready_seconds: int, now: datetime) -> bool:
    """Whether the pod has been Ready for that many seconds (API reference: StatefulSetSpec, minReadySeconds)."""
    if not is_ready(pod):
        return False
    if not min_ready_seconds:
        return True
    since = ready_since(pod)
    return since is not None and since + timedelta(seconds=min_ready_seconds) <= now


def is_unavailable(pod: Mapping[str, Any], min_ready_seconds: int, now: datetime) -> bool:
    """Whether the pod counts against a budget: not available, or terminating."""
    return is_deleting(pod) or not is_available(pod, min_ready_seconds, now)


def node_of(pod: Mapping[str, Any]) -> str:
    """The node that the pod is bound to, or an empty string."""
    return (pod.get("spec") or {}).get("nodeName", "")
