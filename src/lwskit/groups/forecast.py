"""What the controller of a leader StatefulSet will do next to the leaders of the groups. Pure.

Source: Kubernetes documentation, "StatefulSets": parallel pod management, partitioned rolling updates, maximum
unavailable pods. A small model of its own: leaders are ordinals with a revision, ready or not. Specification: 20 §5,
§6; architecture, part 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Leader:
    """A leader pod as its StatefulSet sees it. `revision` is that of the StatefulSet, not of the LeaderWorkerSet."""

    revision: str
    ready: bool = False
    """Its condition Ready is true."""
    terminating: bool = False
    """It is being deleted, and keeps its place until it is gone."""
    ended: bool = False
    """It has failed or succeeded."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What a leader StatefulSet asks for; `current` and `update` are the revisions below and from its partition."""

    replicas: int
    partition: int
    max_unavailable: int
    current: str
    update: str
    start: int = 0
    """Its first ordinal."""

    @property
    def ordinals(self) -> range:
        """The ordinals that it wants leaders at."""
        return range(self.start, self.start + self.replicas)


@dataclass(frozen=True, slots=True)
class Round:
    """One round of the controller: which leaders it makes and of which revision, and which it deletes, in order."""

    create: Mapping[int, str] = field(default_factory=dict)
    ended: tuple[int, ...] = ()
    """Leaders that have failed or succeeded, which others take the place of."""
    condemned: tuple[int, ...] = ()
    """Leaders beyond the ordinals that are wanted."""
    replaced: tuple[int, ...] = ()
    """Leaders of an older revision."""

    @property
    def deleted(self) -> tuple[int, ...]:
        """Every leader that is deleted."""
        return self.ended + self.condemned + self.replaced

    def __bool__(self) -> bool:
        return bool(self.create or self.deleted)


def next_round(workload: Workload, leaders: Mapping[int, Leader]) -> Round:
    """What the controller does for these leaders, by ordinal.

    It makes every leader that lacks and deletes every one too many at once. From the partition upwards, highest first,
    it deletes old leaders: all that are down anyway, and healthy ones while fewer than `max_unavailable` are down.
    """
    wanted = workload.ordinals
    create = {o: _revision_at(workload, o) for o in wanted if o not in leaders}
    ended = tuple(o for o in wanted if o in leaders and leaders[o].ended and not leaders[o].terminating)
    condemned = tuple(o for o in sorted(leaders, reverse=True) if o not in wanted and not leaders[o].terminating)
    return Round(create, ended, condemned, _replaced(workload, leaders, create))


def _revision_at(workload: Workload, ordinal: int) -> str:
    below = ordinal < workload.start + workload.partition
    return workload.current if below else workload.update


def _replaced(workload: Workload, leaders: Mapping[int, Leader], create: Mapping[int, str]) -> tuple[int, ...]:
    wanted = workload.ordinals
    down = len(create) + sum(_is_down(leaders[o]) for o in wanted if o in leaders)
    room = max(0, workload.max_unavailable - down)
    old = [
        o
        for o in reversed(wanted[workload.partition :])
        if o in leaders and leaders[o].revision != workload.update and not leaders[o].terminating
    ]
    broken = [o for o in old if not leaders[o].ready and not leaders[o].ended]
    healthy = [o for o in old if leaders[o].ready]
    return tuple(broken + healthy[:room])


def _is_down(leader: Leader) -> bool:
    return leader.terminating or not leader.ready


def settle_revision(workload: Workload, leaders: Mapping[int, Leader]) -> Workload:
    """The workload after its controller has counted: once all leaders are updated and ready, the update is current."""
    there = [leaders[o] for o in sorted(leaders)]
    counts = (
        len(there),
        sum(leader.ready for leader in there),
        sum(leader.revision == workload.update and not leader.terminating for leader in there),
    )
    if all(count == workload.replicas for count in counts):
        return replace(workload, current=workload.update)
    return workload
