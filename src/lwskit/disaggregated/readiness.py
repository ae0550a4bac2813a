"""How many groups of a child are Ready, and how many of them will stay, from what is seen of its pods. Pure.

Specification: 50 §7.5, §7.6, §7.4 item 4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.model import NONE_READY, Child, Readiness, Ready
from lwskit.groups import spec
from lwskit.groups.model import EXHAUSTED, READY, Groups, LeaderState
from lwskit.groups.poolstate import PoolState
from lwskit.groups.scene import moment
from lwskit.runtime.objects import Obj, condition_of, generation_of, is_deleting

PATIENCE = 10.0
"""Seconds for a child and its leader workload to take up what was asked last. Until then nothing is decided on a child
with Ready groups; afterwards none of them is counted on, so that a child that nobody can reconcile holds up nothing."""
_UNSCHEDULABLE = timedelta(seconds=names.UNSCHEDULABLE_SECONDS)


class Counted(NamedTuple):
    """Ready groups: all of them, and those that are there to stay as far as their own pods tell."""

    ready: int = 0
    sound: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen of the groups of a child."""

    workload: LeaderState | None = None
    """What its leader workload says; None while there is none that the child controls."""
    is_whole: bool = True
    """False while more groups may be there than are seen: a watch is broken, or leaders have lost their workload."""
    groups: Counted = field(default=Counted())
    doomed: int = 0
    """How many of the sound ones may still be removed because of a smaller size that was asked for."""
    exchanges: bool = False
    """Whether the leader workload is replacing leaders of one template by those of another, so that any may go."""
    leaders: int = 0
    """Leader pods that exist."""
    has_leaving: bool = False
    """Whether a pod is being deleted."""
    parts: Mapping[str, Counted] = field(default_factory=dict)
    """The groups by the sub-role that all their pods say."""
    unschedulable: bool = False
    unschedulable_parts: frozenset[str] = frozenset()


def of(child: Child, seen: Seen, *, waited: float = 0.0) -> Readiness:
    """What is ready of a child. `waited` is for how many seconds it has not been observed as it is now.

    Groups that are Ready are committed only once the child and its leader workload have observed what they were asked
    for and agree on the size: before, any of them may be on its way out.
    """
    observed = is_observed(child, seen.workload)
    ready = seen.groups.ready
    unclear = not observed and ready > 0 and child.replicas > 0 and waited < PATIENCE
    stands = observed and not seen.exchanges
    # A child that does not get on with an edit of its own template would hold up the rollout that replaces it.
    stays = stands or (waited >= PATIENCE and (_has_surged(child, seen.workload) or (observed and seen.exchanges)))
    return Readiness(
        ready=_ready(child, seen, seen.groups, stays),
        known=seen.is_whole and not unclear,
        settled=observed and seen.is_whole and _is_settled(child, seen),
        parts={name: _ready(child, seen, counted, stands) for name, counted in seen.parts.items()},
        unschedulable=seen.unschedulable,
        unschedulable_parts=seen.unschedulable_parts,
    )


def _ready(child: Child, seen: Seen, counted: Counted, stays: bool) -> Ready:
    if not counted.ready:
        return NONE_READY
    # What exchanges groups keeps so many of them Ready; the rest of those it wants may be any.
    most = child.replicas - spec.max_unavailable(child.obj) if seen.exchanges else child.replicas
    committed = min(max(0, most), max(0, counted.sound - seen.doomed)) if stays else 0
    return Ready(counted.ready, committed)


def _has_surged(child: Child, workload: LeaderState | None) -> bool:
    """Whether a child differs from its leader workload only by a surge of its own, as where an edit of its own template
    does not get on. Which groups outlive that is known by their ordinals; a rollout could not end without them."""
    if workload is None or spec.is_hashed(child.obj) or workload.replicas <= child.replicas:
        return False
    return is_observed(child, replace(workload, replicas=child.replicas))


def is_current(child: Child, seen: Seen) -> bool:
    """Whether a child's groups are what was asked of it last, so that nobody has to wait for it."""
    return is_observed(child, seen.workload) and not seen.exchanges


def is_observed(child: Child, workload: LeaderState | None) -> bool:
    """Whether a child and its leader workload are past what was asked of them last (50 §7.5)."""
    observed = (child.obj.get("status") or {}).get("observedGeneration", 0)
    return (
        workload is not None
        and not workload.deleting
        and observed >= generation_of(child.obj)
        and workload.observed_generation >= workload.generation
        and workload.replicas == child.replicas
    )


def _is_settled(child: Child, seen: Seen) -> bool:
    status = child.obj.get("status") or {}
    return (
        seen.workload is not None
        and seen.workload.status_replicas == child.replicas
        and status.get("replicas", 0) == child.replicas
        and status.get("readyReplicas", 0) <= child.replicas
        and not seen.has_leaving
        and seen.leaders == child.replicas
    )


# Groups ---------------------------------------------------------------------------------------------------------------


def by_ordinal(groups: Groups, ordinals: Sequence[int], leaving: Collection[int]) -> Counted:
    """The Ready groups of a child in Ordinal mode.

    Its leader workload wants `ordinals`; groups of `leaving` have a pod that is being deleted.
    """
    wanted = groups.at(ordinals)
    kept = {*ordinals} if leaving else set[int]()
    lost = sum(_is_sound(groups, ordinal) for ordinal in {*leaving} & kept)
    return Counted(groups.count(READY), wanted.count(READY, EXHAUSTED) - lost)


def _is_sound(groups: Groups, ordinal: int) -> bool:
    group = groups[ordinal]
    return group.ready and not group.exhausted


def by_key(pool: PoolState, wanted: int, leaving: int) -> tuple[Counted, int, bool]:
    """The Ready groups of a child in Hash mode, how many of them may still be removed, and whether they are exchanged.

    A workload whose leaders all come from one ReplicaSet wants as many of them as it does itself, once it has
    observed what it was asked for. While several ReplicaSets have some it exchanges them, and any may go. `leaving`
    groups have a leader that stays, and a worker that is being deleted.
    """
    made = [one for one in pool.made.values() if one.active]
    ready, sound = sum(one.ready for one in pool.made.values()), sum(one.sound for one in made)
    exchanges = len(made) > 1
    doomed = 0 if exchanges else max(0, sum(one.active for one in made) - wanted)
    return Counted(ready, max(0, sound - leaving)), doomed, exchanges


# Pods that find no node -----------------------------------------------------------------------------------------------


def waits_for_node(pod: Obj) -> bool:
    """Whether the scheduler has found no node for a pod that is there to stay."""
    if is_deleting(pod) or (pod.get("status") or {}).get("phase") != "Pending":
        return False
    found = condition_of(pod, "PodScheduled")
    return found is not None and found.get("status") == "False" and found.get("reason") == "Unschedulable"


def unschedulable(pods: Iterable[Obj], now: datetime) -> list[Obj]:
    """Those of the pods that wait for a node, and have done so for `names.UNSCHEDULABLE_SECONDS` (50 §7.4 item 4)."""
    return [pod for pod in pods if waits_for_node(pod) and now - _since(pod, now) >= _UNSCHEDULABLE]


def _since(pod: Obj, now: datetime) -> datetime:
    text = (condition_of(pod, "PodScheduled") or {}).get("lastTransitionTime") or ""
    return moment(text) or now
