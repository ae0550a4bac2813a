"""What objects are stripped of before they are stored. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lwskit.runtime.objects import Obj

Transform: TypeAlias = Callable[[Obj], Obj]
"""From an object as it came to the one to store; must not change its argument and must be idempotent."""


def strip_managed_fields(keep_manager: str | None = None) -> Transform:
    """A transform that drops `metadata.managedFields`.

    With `keep_manager` that field manager's own Apply entry stays, so that an apply that would change nothing can be
    recognised. Specification: 70 §2.11; architecture, rule 5.
    """

    def strip(obj: Obj) -> Obj:
        meta = obj["metadata"]
        entries = meta.get("managedFields")
        if entries is None:
            return obj
        kept = [
            entry
            for entry in entries
            if keep_manager
            and entry.get("manager") == keep_manager
            and entry.get("operation") == "Apply"
            and not entry.get("subresource")
        ]
        if len(kept) == len(entries) and kept:
            return obj
        rest = {name: value for name, value in meta.items() if name != "managedFields"}
        if kept:
            rest["managedFields"] = kept
        return {**obj, "metadata": rest}

    return strip
