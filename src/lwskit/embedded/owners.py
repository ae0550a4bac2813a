"""Owner references that stand there twice are dropped, with a warning (API server behaviour since 1.20). Pure."""

from __future__ import annotations

from collections.abc import Callable

from lwskit.runtime.objects import Obj

BEFORE_ADMISSION = "duplicate entries"
AFTER_ADMISSION = "duplicate entries after mutating admission happens"


def deduplicate(obj: Obj, warn: Callable[[str], None], when: str) -> None:
    """Drop, in place, owner references that equal an earlier one; `when` is one of the constants of this module."""
    refs = obj["metadata"].get("ownerReferences")
    if not refs or len(refs) < 2:
        return
    kept: list[Obj] = []
    doubled: list[str] = []
    for ref in refs:
        if ref in kept:
            doubled.append(ref.get("uid", ""))
        else:
            kept.append(ref)
    if doubled:
        warn(
            f".metadata.ownerReferences contains {when}; API server dedups owner references in 1.20+, and may reject "
            f"such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {', '.join(doubled)}"
        )
        obj["metadata"]["ownerReferences"] = kept
