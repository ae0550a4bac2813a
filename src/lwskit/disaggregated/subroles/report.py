"""What the status tells of sub-roles: a row of each, and whether all groups are assigned to one. Pure.

Specification: 50 §13, §16, §11.3. A group that its pods do not agree about is one of no sub-role.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.model import Child, Part
from lwskit.disaggregated.subroles.groups import LabelledGroup, Partition

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Row:
    """Groups of one sub-role over all slices and revisions; `updated` are those of the set's revision."""

    replicas: int = 0
    ready: int = 0
    updated: int = 0


NO_ROW = Row()


@dataclass(frozen=True, slots=True)
class Assignment:
    """The condition SubRolesAssigned, without its times."""

    is_true: bool
    reason: str
    message: str


def rows(children: Iterable[Child], partitions: Mapping[str, Partition], revision: str) -> dict[Part, Row]:
    """The row of every sub-role that a living group is assigned to, whether the set still has it or not."""
    found: dict[Part, Row] = {}
    for child in children:
        partition = partitions.get(child.uid)
        for group in partition.alive if partition is not None else ():
            if group.subrole:
                part = Part(child.role, group.subrole)
                row = found.get(part, NO_ROW)
                updated = row.updated + (child.revision == revision)
                found[part] = Row(row.replicas + 1, row.ready + group.ready, updated)
    return found


def assignment(
    children: Iterable[Child], partitions: Mapping[str, Partition], known: Mapping[str, frozenset[str]]
) -> Assignment | None:
    """Whether every living group of every role with sub-roles has one that all its pods agree on.

    `known` has the names of the sub-roles by role, for the roles that have some; None if there are none.
    """
    if not known:
        return None
    missing: list[str] = []
    for child in children:
        if child.role not in known or child.is_terminating:
            continue
        partition = partitions.get(child.uid)
        if partition is None:
            if child.replicas:
                missing.append(f"those of {child.name}")
            continue
        missing += [g.name for g in partition.alive if not _is_assigned(g, known[child.role])]
    if not missing:
        return Assignment(True, names.REASON_GROUPS_ASSIGNED, names.MESSAGE_GROUPS_ASSIGNED)
    shown = sorted(missing)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    groups = ", ".join(shown[:_SHOWN]) + more
    return Assignment(False, names.REASON_GROUPS_UNASSIGNED, names.MESSAGE_GROUPS_UNASSIGNED.format(groups=groups))


def _is_assigned(group: LabelledGroup, known: frozenset[str]) -> bool:
    return bool(group.subrole) and group.subrole in known
