"""Which sub-role each group of a child is for (specification: 50 §13, the assignment rule). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """A group as the assignment sees it: by what it is known, and the sub-role that its label names, if any."""

    group: str
    label: str = ""


def assign(groups: Sequence[Place], counts: Mapping[str, int]) -> dict[str, str]:
    """The sub-role of every group, an empty text for those that get none.

    In their order the groups keep their labels while the sub-role has open slots; groups that are left over fill what
    is missing elsewhere, in the order of names. Groups come in the order of the child: by ordinal, then by name.
    """
    open_slots = {name: count for name, count in sorted(counts.items()) if count > 0}
    found: dict[str, str] = {}
    for group, label in groups:
        keeps = open_slots.get(label, 0) > 0
        found[group] = label if keeps else ""
        if keeps:
            open_slots[label] -= 1
    # One by one: sub-roles may ask for far more groups than there are.
    free = (name for name, count in open_slots.items() for _ in range(count))
    for group, _ in groups:
        if not found[group]:
            found[group] = next(free, "")
    return found


def moved(groups: Iterable[Place], assigned: Mapping[str, str], counts: Mapping[str, int]) -> list[Place]:
    """The groups that lose one known sub-role for another."""
    return [place for place in groups if place.label in counts and assigned[place.group] not in ("", place.label)]
