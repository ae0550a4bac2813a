"""The status of a DisaggregatedSet: a row for each role, and whether all of it is as it should be. Pure.

Specification: 50 §16.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.api.names import INT32_MAX
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.disaggregated.model import Child, Part
from lwskit.disaggregated.scene import Targets
from lwskit.disaggregated.spec import SetSpec
from lwskit.disaggregated.subroles import report
from lwskit.disaggregated.subroles.groups import Partition
from lwskit.groups.status import LONGEST_PAUSE, PAUSE
from lwskit.runtime.objects import Obj, generation_of
from lwskit.runtime.plan import OnError, UpdateStatus

_TWIN = {
    names.CONDITION_AVAILABLE: names.CONDITION_PROGRESSING,
    names.CONDITION_PROGRESSING: names.CONDITION_AVAILABLE,
}


@dataclass(frozen=True, slots=True)
class Row:
    """The groups of one role or sub-role in all slices and revisions; `desired` is None while nothing says it."""

    part: Part
    desired: int | None
    replicas: int
    ready: int
    updated: int

    @property
    def is_satisfied(self) -> bool:
        """Whether there are as many groups as there are to be, all of them ready and of the set's revision."""
        return self.replicas == self.ready == self.updated == self.desired

    def as_dict(self) -> Obj:
        """The row as the status has it: without what is zero or not known, and no count beyond what its fields hold."""
        counts = {
            "desiredReplicas": self.desired,
            "replicas": self.replicas,
            "readyReplicas": self.ready,
            "updatedReplicas": self.updated,
        }
        return {"name": str(self.part), **{field: min(count, INT32_MAX) for field, count in counts.items() if count}}


@dataclass(frozen=True, slots=True)
class Requested:
    """A condition that is to be true."""

    type: str
    reason: str
    message: str


def rows(
    spec: SetSpec,
    targets: Targets,
    children: Sequence[Child],
    revision: str,
    partitions: Mapping[str, Partition] = MappingProxyType({}),
) -> tuple[Row, ...]:
    """A row for each role of the set, in spec order, each followed by those of its sub-roles.

    A role's groups are those that the statuses of all its children tell of, a sub-role's those that are assigned to it.
    """
    assigned = report.rows(children, partitions, revision)
    found: list[Row] = []
    for role in spec.roles:
        found.append(_of_role(role.name, _all_slices(targets.roles.get(role.name), spec), children, revision))
        for part in role.parts if role.subroles else ():
            counted = assigned.get(part, report.NO_ROW)
            desired = _all_slices(targets.parts.get(part), spec)
            found.append(Row(part, desired, counted.replicas, counted.ready, counted.updated))
    return tuple(found)


def _of_role(role: str, desired: int | None, children: Iterable[Child], revision: str) -> Row:
    mine = [child for child in children if child.role == role]
    current = [child for child in mine if child.revision == revision]
    counts = _sum(mine, "replicas"), _sum(mine, "readyReplicas"), _sum(current, "updatedReplicas")
    return Row(Part(role), desired, *counts)


def _all_slices(count: int | None, spec: SetSpec) -> int | None:
    return None if count is None else count * spec.slices


def _sum(children: Iterable[Child], field: str) -> int:
    return sum((child.obj.get("status") or {}).get(field) or 0 for child in children)


def requested(rows: Sequence[Row], targets: Targets) -> Requested:
    """The one of the pair Available and Progressing that is true."""
    if targets.unresolved:
        message = names.MESSAGE_TARGETS_UNRESOLVED.format(roles=", ".join(str(part) for part in targets.unresolved))
        return Requested(names.CONDITION_PROGRESSING, names.REASON_TARGETS_UNRESOLVED, message)
    if all(row.is_satisfied for row in rows):
        return Requested(names.CONDITION_AVAILABLE, names.REASON_ALL_ROLES_READY, names.MESSAGE_ALL_ROLES_READY)
    return Requested(names.CONDITION_PROGRESSING, names.REASON_ROLLOUT_IN_PROGRESS, names.MESSAGE_ROLLOUT_IN_PROGRESS)


def merged(stored: Sequence[Obj], request: Requested, generation: int, now: str) -> list[Obj]:
    """The stored conditions with the requested one true, and the other of the pair false if it is there.

    The other one takes the reason and the message of the requested one when it ceases to be true, and keeps its own
    afterwards. `now` is the time of a transition as objects carry it.
    """
    new = {
        "type": request.type,
        "status": "True",
        "reason": request.reason,
        "message": request.message,
        "observedGeneration": generation,
        "lastTransitionTime": now,
    }
    found: list[Obj] = []
    for old in stored:
        if old.get("type") == request.type:
            kept = old.get("status") == "True" and old.get("lastTransitionTime")
            found.append({**new, "lastTransitionTime": kept or now})
        elif old.get("type") == _TWIN[request.type]:
            ends = old.get("status") == "True"
            found.append({**new, "type": old["type"], "status": "False"} if ends else _observed(old, generation))
        else:
            found.append(old)
    if not any(c.get("type") == request.type for c in stored):
        found.append(new)
    return found


def _observed(condition: Obj, generation: int) -> Obj:
    return {**condition, "observedGeneration": generation}


def with_assignment(
    stored: Sequence[Obj], assignment: report.Assignment | None, generation: int, now: str
) -> list[Obj]:
    """The conditions with the one about sub-roles, which a set without any does not have (50 §13)."""
    kind = names.CONDITION_SUBROLES_ASSIGNED
    others = [c for c in stored if c.get("type") != kind]
    if assignment is None:
        return others
    old = next((c for c in stored if c.get("type") == kind), {})
    kept = old.get("status") == str(assignment.is_true) and old.get("lastTransitionTime")
    new = {
        "type": kind,
        "status": str(assignment.is_true),
        "reason": assignment.reason,
        "message": assignment.message,
        "observedGeneration": generation,
        "lastTransitionTime": kept or now,
    }
    return [new if c is old else c for c in stored] if old else [*others, new]


def pause(old: Mapping[str, object], new: Mapping[str, object]) -> float:
    """Seconds that are to pass between a set's last write of its status and the one from `old` to `new`.

    Groups get ready one after the other: where a status would only count otherwise, that of many groups is not
    written for each of them.
    """
    if _said(old) != _said(new):
        return 0.0
    return min(LONGEST_PAUSE, PAUSE * sum(desired for _, desired in _desired(new)))


def _said(status: Mapping[str, object]) -> object:
    """What a status says besides how many groups there are."""
    return {**status, "roleStatuses": _desired(status)}


def _desired(status: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(row["name"], row.get("desiredReplicas", 0)) for row in status.get("roleStatuses") or ()]


def update(ds: Obj, rows: Sequence[Row], conditions: Sequence[Mapping[str, object]]) -> UpdateStatus | None:
    """The write of the status; None if it would change nothing."""
    old = ds.get("status") or {}
    new: Obj = {
        **old,
        "observedGeneration": generation_of(ds),
        "roleStatuses": [row.as_dict() for row in rows],
        "conditions": [dict(condition) for condition in conditions],
    }
    if new == old:
        return None
    done = sum(row.is_satisfied for row in rows)
    return UpdateStatus(
        kind=DISAGGREGATED_SET,
        obj={**ds, "status": new},
        why=f"{done} of {len(rows)} roles are as they are to be",
        errors={"Conflict": OnError.REQUEUE, "NotFound": OnError.IGNORE},
    )
