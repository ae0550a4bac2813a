"""Conditions in an object's status, by the conventions of the Kubernetes API (API reference: Condition). Pure.

Nothing that is given is changed: what is in a cache may be given, and the answer may be written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lwskit.runtime.objects import Obj

STATUSES = ("True", "False", "Unknown")


def find_condition(conditions: Sequence[Mapping[str, Any]] | None, type: str) -> Mapping[str, Any] | None:
    """The condition of that type, None if there is none."""
    return next((c for c in conditions or () if c.get("type") == type), None)


def is_true(conditions: Sequence[Mapping[str, Any]] | None, type: str) -> bool:
    """Whether there is a condition of that type with status `True`."""
    found = find_condition(conditions, type)
    return found is not None and found.get("status") == "True"


def set_condition(
    conditions: Sequence[Mapping[str, Any]] | None, condition: Mapping[str, Any], now: datetime
) -> list[Obj]:
    """The conditions with this one in the place of that of its type, or at the end.

    `condition` has `type`, `status` (True and False stand for their words), `reason`, and perhaps `message` and
    `observedGeneration`. Its `lastTransitionTime` is that of the old one while the status is the same, else its own
    or else `now`. So nothing changes, and nothing needs to be written, while a reconciler finds the same again.
    Raises ValueError for a condition that no API server takes.
    """
    new = _complete(condition)
    if now.tzinfo is None:
        raise ValueError("the time of a condition needs a time zone; take that of a Clock")
    old = find_condition(conditions, new["type"])
    if old is not None and old.get("status") == new["status"] and old.get("lastTransitionTime"):
        new["lastTransitionTime"] = old["lastTransitionTime"]
    elif not new.get("lastTransitionTime"):
        new["lastTransitionTime"] = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = [new if c is old else {**c} for c in conditions or ()]
    return found if old is not None else [*found, new]


def remove_condition(conditions: Sequence[Mapping[str, Any]] | None, type: str) -> list[Obj]:
    """The conditions without that of this type."""
    return [{**c} for c in conditions or () if c.get("type") != type]


def _complete(condition: Mapping[str, Any]) -> Obj:
    """The condition with all fields that servers require but its time."""
    new: Obj = {**condition}
    status = new.get("status")
    new["status"] = str(status) if isinstance(status, bool) else status
    new.setdefault("message", "")
    for field in ("type", "reason"):
        if not isinstance(new.get(field), str) or not new[field]:
            raise ValueError(f"a condition needs a {field}, a word in CamelCase; got {new.get(field)!r}")
    if new["status"] not in STATUSES:
        raise ValueError(f"condition {new['type']}: the status is one of {', '.join(STATUSES)}, not {new['status']!r}")
    return new
