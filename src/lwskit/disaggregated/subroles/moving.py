"""What a change of sub-role counts asks of the groups: who stays, who changes its sub-role, who goes. Pure.

Specification: 50 §13, the decrease of a child.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lwskit.disaggregated.subroles import victims
from lwskit.disaggregated.subroles.assignment import Place, assign
from lwskit.disaggregated.subroles.groups import LabelledGroup, Partition, label_of
from lwskit.disaggregated.subroles.tally import Counts


@dataclass(frozen=True, slots=True)
class Moves:
    """The way from one division to another.

    `assigned` has the sub-role of each group of `staying` by the leader's UID; `going` are those that get none.
    `hole` is a sentence if groups that are to stay are not there or not all ready.
    """

    staying: tuple[LabelledGroup, ...]
    going: tuple[LabelledGroup, ...]
    assigned: dict[str, str]
    hole: str = ""
    marks: tuple[LabelledGroup, ...] = ()
    """In Hash mode, the groups that must be marked before it is sure that just `going` go."""
    unready_stay: bool = False

    @property
    def moving(self) -> tuple[LabelledGroup, ...]:
        """The groups that would lose one sub-role for another, none of which has begun to."""
        return tuple(group for group in self.staying if is_move(group, self.assigned[group.uid]))


def is_move(group: LabelledGroup, subrole: str) -> bool:
    """Whether a group has to give up a sub-role for this one; not one that is half-way there, and counts for nobody."""
    if not group.label or group.label == subrole:
        return False
    return not any(label_of(pod) == subrole for pod in group.workers)


def find(
    partition: Partition, current: int, counts: Counts, now: datetime | None, *, unready_stay: bool = False
) -> Moves:
    """The way of a child of `current` groups to these counts.

    With `unready_stay` groups that are not ready keep their sub-roles before all others, so that what is taken from
    one sub-role for another are groups that serve. `now` is for Hash mode, where the groups that go are those that a
    ReplicaSet removes.
    """
    wanted = sum(counts.values())
    if partition.ordinals is None:
        chosen = victims.choose(partition.alive, counts, max(0, len(partition.alive) - wanted), now)
        gone = {group.uid for group in chosen.going}
        staying = tuple(group for group in partition.alive if group.uid not in gone)
        marks = chosen.marks
    else:
        staying, marks = partition.first(wanted), ()
    order = sorted(staying, key=lambda g: (g.ready, g.order)) if unready_stay else staying
    kept = {group.uid for group in staying}
    return Moves(
        staying,
        tuple(group for group in partition.alive if group.uid not in kept),
        assign([Place(group.uid, group.label) for group in order], counts),
        _hole(partition, staying, min(current, wanted)),
        marks,
        unready_stay,
    )


def _hole(partition: Partition, staying: Sequence[LabelledGroup], expected: int) -> str:
    unready = [group.name for group in staying if not group.ready]
    if unready:
        return f"group {unready[0]} is not ready"
    if len(staying) < expected:
        if partition.ordinals is None:
            return f"{expected - len(staying)} of the groups that stay are not there"
        there = {group.ordinal for group in staying}
        missing = next((o for o in partition.ordinals[:expected] if o not in there), None)
        return f"group {missing} is not there" if missing is not None else "not all groups were asked for yet"
    return ""


def is_harmless(moves: Moves, partition: Partition, counts: Counts, wanted: Counts) -> bool:
    """Whether no sub-role has fewer ready groups afterwards than if as many ready ones went as it loses.

    That is all that the planner reckons with when it takes groups from an old revision. Also where a sub-role has no
    ready group at all: then the child serves nobody, and nothing is lost.
    """
    before = Counter(group.subrole for group in partition.alive if group.ready)
    if any(count and not before[name] for name, count in counts.items()):
        return True
    after = Counter(moves.assigned[group.uid] for group in moves.staying if group.ready)
    return all(after[name] >= before[name] - max(0, count - wanted.get(name, 0)) for name, count in counts.items())
