"""What objects are stripped of before they are stored. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lwskit.runtime.objects import Obj

Transform: TypeAlias = Callable[[Obj], Obj]
"""From an object as it came to the one to store; must not change its argument and must be idempotent."""


class StripManagedFields:
    """Drops `metadata.managedFields`, except a manager's own Apply entry."""

    def __init__(self, keep_manager: str | None = None) -> None:
        self._keep = keep_manager

    def __call__(self, obj: Obj) -> Obj:
        """The object without them; a copy where something is dropped."""
        meta = obj["metadata"]
        entries = meta.get("managedFields")
        if entries is None:
            return obj
        kept = self._kept(entries)
        if len(kept) == len(entries) and kept:
            return obj
        rest = {name: value for name, value in meta.items() if name != "managedFields"}
        if kept:
            rest["managedFields"] = kept
        return {**obj, "metadata": rest}

    def in_place(self, obj: Obj) -> Obj:
        """The same for an object that nobody else has: it is changed itself."""
        meta = obj["metadata"]
        entries = meta.get("managedFields")
        if entries is not None:
            kept = self._kept(entries)
            del meta["managedFields"]
            if kept:
                meta["managedFields"] = kept
        return obj

    def _kept(self, entries: list[Obj]) -> list[Obj]:
        if not self._keep:
            return []
        return [
            entry
            for entry in entries
            if entry.get("manager") == self._keep and entry.get("operation") == "Apply" and not entry.get("subresource")
        ]


def strip_managed_fields(keep_manager: str | None = None) -> Transform:
    """A transform that drops `metadata.managedFields`.

    With `keep_manager` that field manager's own Apply entry stays, so that an apply that would change nothing can be
    recognised. Specification: 70 §2.11; architecture, rule 5.
    """
    return StripManagedFields(keep_manager)


def of_own(transform: Transform) -> Transform:
    """What to apply to objects that nobody else has, such as those just decoded: the same without copying."""
    return transform.in_place if isinstance(transform, StripManagedFields) else transform
