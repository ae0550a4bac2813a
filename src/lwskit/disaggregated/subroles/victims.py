"""Hash mode: which groups a ReplicaSet would remove, and the mark that has it remove those of the right sub-role. Pure.

Specification: 50 §13, 30 §14. A mark is the lowest deletion cost: it decides among ready leaders. One that is not ready
goes before them whatever its sub-role; then a marked one stays, and takes over that one's place among the sub-roles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated.subroles.groups import LabelledGroup
from lwskit.disaggregated.subroles.tally import Counts
from lwskit.runtime.objects import Obj, annotations_of, uid_of
from lwskit.runtime.ranking import deletion_cost, ranked

_LOWEST: Final = -(2**31)


@dataclass(frozen=True, slots=True)
class Victims:
    """The groups that go, and of those to be marked the ones that are not yet."""

    going: tuple[LabelledGroup, ...] = ()
    marks: tuple[LabelledGroup, ...] = ()


def choose(groups: Sequence[LabelledGroup], counts: Counts, going: int, now: datetime | None) -> Victims:
    """The groups that go when there are to be `going` fewer, all of them alive.

    Marked are those that no sub-role has a place for, in the order in which they would go anyway. Going are those that
    come first once these are marked.
    """
    if going <= 0 or now is None:
        return Victims()
    by_uid = {group.uid: group for group in groups}
    leaders = [group.leader for group in groups]
    order = [by_uid[uid_of(found.pod)] for found in ranked(leaders, leaders, now)]
    # Those that are marked come first, so that the choice lasts while they are being marked.
    surplus = _surplus(sorted(order, key=lambda group: not is_marked(group)), counts)
    marked = {group.uid: group for group in surplus[:going]}
    costed = [with_mark(pod) if uid_of(pod) in marked else pod for pod in leaders]
    found = tuple(by_uid[uid_of(one.pod)] for one in ranked(costed, costed, now)[:going])
    return Victims(found, tuple(group for group in marked.values() if not is_marked(group)))


def _surplus(order: Sequence[LabelledGroup], counts: Counts) -> list[LabelledGroup]:
    """The groups beyond what each sub-role is to have, in this order; without a sub-role all are, and come first."""
    there: dict[str, int] = {}
    for group in order:
        there[group.subrole] = there.get(group.subrole, 0) + 1
    found: dict[str, list[LabelledGroup]] = {}
    for group in order:
        row = found.setdefault(group.subrole, [])
        if len(row) < there[group.subrole] - (counts.get(group.subrole, 0) if group.subrole else 0):
            row.append(group)
    more = {group.uid for row in found.values() for group in row}
    return sorted((group for group in order if group.uid in more), key=lambda group: bool(group.subrole))


def is_marked(group: LabelledGroup) -> bool:
    """Whether its leader was marked as the next to go, and nobody has given it another deletion cost since."""
    return has_mark(group.leader) and deletion_cost(group.leader) == _LOWEST


def has_mark(leader: Obj) -> bool:
    """Whether a leader has the note of a mark, which remembers the cost that it had."""
    return names.SUBROLE_VICTIM_ANNOTATION in annotations_of(leader)


def with_mark(leader: Obj) -> Obj:
    """The leader as it is once it is marked, a copy."""
    metadata = leader["metadata"]
    return {**leader, "metadata": {**metadata, "annotations": {**annotations_of(leader), **marking(leader)}}}


def marking(leader: Obj) -> dict[str, str]:
    """The annotations that mark a leader, and remember the deletion cost that it had."""
    notes = annotations_of(leader)
    before = notes.get(names.SUBROLE_VICTIM_ANNOTATION, notes.get(base.POD_DELETION_COST_ANNOTATION, ""))
    return {base.POD_DELETION_COST_ANNOTATION: str(_LOWEST), names.SUBROLE_VICTIM_ANNOTATION: before}


def unmarking(leader: Obj) -> dict[str, str | None]:
    """The annotations that give a leader back the deletion cost that it had."""
    notes = annotations_of(leader)
    before = notes.get(names.SUBROLE_VICTIM_ANNOTATION) or None
    own = deletion_cost(leader) == _LOWEST
    return {
        names.SUBROLE_VICTIM_ANNOTATION: None,
        **({base.POD_DELETION_COST_ANNOTATION: before} if own else {}),
    }
