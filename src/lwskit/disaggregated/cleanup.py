"""Removing old revisions that have given up all their groups. Pure.

Specification: 50 §7.7, §17.
"""

from __future__ import annotations

from collections.abc import Iterable

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.model import Child
from lwskit.disaggregated.scene import Scene
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.objects import ObjectRef, key_of, ref_of
from lwskit.runtime.plan import AnyAction, Delete, Event, OnError


def actions(scene: Scene, *, is_complete: bool = False) -> list[AnyAction]:
    """The deletions of drained revisions, the newest first, each with all its roles.

    Before the rollout is complete the last revision is kept: with it the slice stays on its rollout.
    """
    revisions = sorted(_by_revision(scene.old).items(), key=_age, reverse=True)
    drained = [children for _, children in revisions if not any(child.replicas for child in children)]
    if not is_complete and len(drained) == len(revisions):
        drained = drained[1:]
    return [deletion(scene.ref, child) for children in drained for child in children]


def deletion(ref: ObjectRef, child: Child) -> Delete:
    """The deletion of a drained child, together with what it owns; an event tells the set `ref` of it."""
    note = f"Deleted drained LWS {child.name}"
    related = ref_of(child.obj, LEADER_WORKER_SET)
    return Delete(
        kind=LEADER_WORKER_SET,
        key=key_of(child.obj),
        uid=child.uid,
        propagation="Foreground",
        why=f"all roles of revision {child.revision} have given up their groups in slice {child.slice}",
        on_success=Event(ref, names.EVENT_LWS_DELETED, names.ACTION_DELETE, note, related=related),
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
    )


def _by_revision(old: Iterable[Child]) -> dict[str, list[Child]]:
    found: dict[str, list[Child]] = {}
    for child in sorted(old, key=lambda child: child.name):
        found.setdefault(child.revision, []).append(child)
    return found


def _age(item: tuple[str, list[Child]]) -> tuple[str, str]:
    revision, children = item
    return max(child.created for child in children), revision
