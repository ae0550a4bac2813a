"""Slices that a set has no more: their children go. Pure.

Specification: 50 §12.
"""

from __future__ import annotations

from collections.abc import Sequence

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.disaggregated.model import Child
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.objects import Obj, key_of, ref_of
from lwskit.runtime.plan import Delete, Event, OnError


def is_removed(child: Child, slices: int) -> bool:
    """Whether a child is of a slice that a set of so many slices does not have."""
    return child.slice is not None and child.slice >= slices


def removals(ds: Obj, children: Sequence[Child], slices: int) -> tuple[Delete, ...]:
    """The deletions of the children in slices from `slices` on, the highest first; they are not drained before."""
    gone = [child for child in children if is_removed(child, slices) and not child.is_terminating]
    return tuple(_delete(ds, child) for child in sorted(gone, key=lambda c: (-(c.slice or 0), c.name)))


def _delete(ds: Obj, child: Child) -> Delete:
    event = Event(
        ref_of(ds, DISAGGREGATED_SET),
        names.EVENT_LWS_DELETED,
        names.ACTION_DELETE,
        f"Deleted LWS {child.name} for removed slice {child.slice}",
        related=ref_of(child.obj, LEADER_WORKER_SET),
    )
    return Delete(
        kind=LEADER_WORKER_SET,
        key=key_of(child.obj),
        uid=child.uid,
        propagation="Foreground",
        why=f"the set has no slice {child.slice} any more",
        on_success=event,
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.LOOK},
    )
