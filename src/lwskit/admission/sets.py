"""What admission makes of a set, and what it refuses, apart from how it is asked. Pure (specification: 10 §5, §6)."""

from __future__ import annotations

from lwskit.api import defaults
from lwskit.api.validation import NO_SCHEDULING, FieldError, SchedulingSupport, validate_create, validate_update
from lwskit.groups.encoding import canonical_quantities
from lwskit.runtime.objects import Obj


def defaulted(lws: Obj) -> Obj:
    """The set with its defaults, quantities canonical; a new object."""
    return canonical_quantities(defaults.default(lws))


def faults(new: Obj, old: Obj | None, support: SchedulingSupport = NO_SCHEDULING) -> list[FieldError]:
    """What is refused of a new set, or of a change of `old`; empty if nothing is.

    Nothing is of a set that is being deleted: what its spec says does not matter any more, and the changes that still
    come take finalizers away, without which it would stay for ever.
    """
    if old is None:
        return validate_create(new, support)
    meta = new.get("metadata")
    if isinstance(meta, dict) and meta.get("deletionTimestamp") is not None:
        return []
    return validate_update(new, old, support)
