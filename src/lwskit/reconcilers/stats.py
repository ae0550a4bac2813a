"""What the reconcilers of sets count, as plain numbers; the collectors of metrics beside tell them to whoever asks."""

from __future__ import annotations

from collections.abc import Collection

from lwskit.api import names
from lwskit.groups import restarts
from lwskit.runtime.objects import Key, Obj, generation_of, uid_of
from lwskit.runtime.stats import Histogram

SECONDS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14400.0)
"""Bounds of the time from change to ready: from a set without work to do to models that load for an hour."""


class ChangeTimes:
    """How long changes of sets of one kind took until all their groups were ready."""

    def __init__(self) -> None:
        self.change_to_ready = Histogram(SECONDS)
        """Seconds."""
        self._changes: dict[Key, tuple[str, int, float | None]] = {}

    def seen(self, key: Key, obj: Obj | None, now: float) -> None:
        """Take in a set as a decision sees it, at `now` on a monotonic clock in seconds; None if it is gone.

        A change is a new generation, timed from when it is first seen until the status says of it that all groups are
        ready. What another process saw before this one is not timed, nor what a later change has overtaken.
        """
        if obj is None:
            self._changes.pop(key, None)
            return
        uid, generation = uid_of(obj), generation_of(obj)
        status = obj.get("status") or {}
        known = self._changes.get(key)
        if known is None or known[:2] != (uid, generation):
            is_new = status.get("observedGeneration", 0) < generation
            known = self._changes[key] = (uid, generation, now if is_new else None)
        since = known[2]
        if since is not None and _is_ready(status, generation):
            self.change_to_ready.observe(now - since)
            self._changes[key] = (uid, generation, None)

    def keep(self, keys: Collection[Key]) -> None:
        """Drop what is known of sets with other keys: they are gone."""
        for key in [k for k in self._changes if k not in keys]:
            del self._changes[key]


class SetStats(ChangeTimes):
    """What is counted of LeaderWorkerSets: how long changes took, and restarts by set and cause."""

    def __init__(self) -> None:
        super().__init__()
        self.restarts: dict[Key, dict[str, int]] = {}
        """By set, and by cause (`restarts.CAUSES`)."""

    def restarted(self, key: Key, cause: str) -> None:
        """Count a restart of a group of the set with that key."""
        counts = self.restarts.setdefault(key, dict.fromkeys(restarts.CAUSES, 0))
        counts[cause] = counts.get(cause, 0) + 1

    def keep(self, keys: Collection[Key]) -> None:
        """Drop what is known of sets with other keys: they are gone."""
        super().keep(keys)
        for key in [k for k in self.restarts if k not in keys]:
            del self.restarts[key]


def _is_ready(status: Obj, generation: int) -> bool:
    return any(
        c["type"] == names.CONDITION_AVAILABLE and c["status"] == "True" and c.get("observedGeneration") == generation
        for c in status.get("conditions") or ()
    )
