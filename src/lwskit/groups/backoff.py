"""How long a group has to have lived before it is recreated. Pure.

Specification: 20 §12.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from lwskit.api import names
from lwskit.groups import spec
from lwskit.runtime.objects import Obj

_MOST_DOUBLINGS = 30


def delay(count: int, base: int | None = None, cap: int | None = None) -> int:
    """Seconds that a group which was restarted `count` times has to live before its next restart.

    The base doubles with each restart, up to the cap; values that are missing or not positive are the defaults.
    """
    base = base if base is not None and base > 0 else names.DEFAULT_BACKOFF_BASE_SECONDS
    cap = cap if cap is not None and cap > 0 else names.DEFAULT_BACKOFF_CAP_SECONDS
    if count > _MOST_DOUBLINGS:
        return cap
    return min(cap, base << max(count, 0))


def settings(lws: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """`spec.leaderWorkerTemplate.restartBackoff` of a set, None if groups are recreated at once."""
    return spec.template_of(lws).get("restartBackoff")


def remaining(lws: Mapping[str, Any], leader: Obj, count: int, now: datetime) -> float:
    """Seconds until a group that was restarted `count` times may be recreated, 0 if it may be now.

    They count from its leader's creation, not from the failure. A leader from the future waits the whole delay.
    """
    wanted = settings(lws)
    created = leader["metadata"].get("creationTimestamp")
    if wanted is None or not created:
        return 0.0
    whole = float(delay(count, wanted.get("baseSeconds"), wanted.get("capSeconds")))
    elapsed = (now - datetime.fromisoformat(created.replace("Z", "+00:00")).astimezone(UTC)).total_seconds()
    return min(whole, max(0.0, whole - elapsed))
