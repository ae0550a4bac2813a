"""What admission says of a DisaggregatedSet, apart from how it is asked. Pure (specification: 50 §19)."""

from __future__ import annotations

from typing import NamedTuple

from lwskit.api.validation import FieldError
from lwskit.api.validation.disaggregatedset import Remark, remarks, validate
from lwskit.runtime.objects import Obj


class Verdict(NamedTuple):
    """Why a set is refused, nothing if it is not, and what its author is warned of in any case."""

    faults: list[FieldError]
    remarks: list[Remark]


def judged(new: Obj, old: Obj | None) -> Verdict:
    """What is said of a new set, or of a change of `old`.

    Nothing is of a set that is being deleted: what its spec says does not matter any more.
    """
    meta = new.get("metadata")
    if old is not None and isinstance(meta, dict) and meta.get("deletionTimestamp") is not None:
        return Verdict([], [])
    return Verdict(validate(new), remarks(new))
