"""What the rollout planner is told and what it answers: counts by role, nothing of objects. Pure.

Specification: 50 §8.1. All vectors of a state have the same length: one place for each role, in the planner's order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lwskit.api import disaggregated_names as names

Vector: TypeAlias = tuple[int, ...]
"""A number for each role."""
Flags: TypeAlias = tuple[bool, ...]
"""A truth for each role."""


@dataclass(frozen=True, slots=True)
class OldRevision:
    """An old revision: the groups its roles were meant to have (`initial`, never less than `spec`), are asked to have
    (`spec`), and have Ready: all seen (`raw`), and those that outlive the deletions already ordered (`committed`).

    `required` are the roles it cannot serve without: those with an initial count.
    """

    required: Flags
    initial: Vector
    spec: Vector
    raw: Vector
    committed: Vector


@dataclass(frozen=True, slots=True)
class TargetRevision:
    """The revision a rollout leads to; `desired` are the groups wanted in the end, and `required` the roles that want
    any. `unschedulable` are the roles with a pod that has long found no node."""

    required: Flags
    spec: Vector
    raw: Vector
    committed: Vector
    desired: Vector
    unschedulable: Flags


@dataclass(frozen=True, slots=True)
class RolloutState:
    """What one step of a rollout is chosen from: the old revision to be drained now, those that stay as they are
    meanwhile (`parked`), and the target.

    `baseline` is what the availability of each role is measured by while replicas are coupled to the rollout
    (`baseline`); `policy` is the API's word for the scaling policy.
    """

    active: OldRevision
    parked: tuple[OldRevision, ...]
    target: TargetRevision
    baseline: Vector
    max_surge: Vector
    max_unavailable: Vector
    policy: str = names.ROLLOUT_COUPLED

    @property
    def advances(self) -> bool:
        """Whether new desired counts hold at once, for limits and floors too (50 §11.4)."""
        return self.policy == names.ADVANCE_ROLLOUT


@dataclass(frozen=True, slots=True)
class Step:
    """The counts to ask for next: of the active old revision and of the target. A step with a marker exceeds a limit
    on purpose and is told as a Warning."""

    old: Vector
    target: Vector
    bootstrap_surge: bool = False
    availability_fallback: bool = False


def baseline(active: OldRevision, parked: Iterable[OldRevision]) -> Vector:
    """The availability baseline: by role, the most that any old revision that still asks for groups was meant to have.

    Specification: 50 §8.1, B.
    """
    counted = [active.initial, *(revision.initial for revision in parked if any(revision.spec))]
    return tuple(map(max, zip(*counted, strict=True)))


def usable(required: Flags, ready: Vector) -> Vector:
    """Ready groups as far as they serve: none where a required role has none, or no role is required (50 §8.1)."""
    return ready if _complete(required, ready) else (0,) * len(ready)


def structural(required: Flags, spec: Vector, ready: Vector) -> Vector:
    """Ready groups of a revision that asks for groups in all its required roles, else none (50 §8.1)."""
    return ready if _complete(required, spec) else (0,) * len(ready)


def total(vectors: Sequence[Vector], length: int) -> Vector:
    """The sum by role of vectors of that length, of none too."""
    return tuple(map(sum, zip(*vectors, strict=True))) if vectors else (0,) * length


def _complete(required: Flags, counts: Vector) -> bool:
    return any(required) and all(count > 0 for need, count in zip(required, counts, strict=True) if need)
