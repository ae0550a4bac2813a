"""What the rollout planner is told and what it answers: counts by role, nothing of objects. Pure.

Specification: 50 §8.1. All vectors of a state have the same length: one place for each role, in the planner's order.
What is none of that cannot be made: the steps that follow from it would be wrong, and would look like steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.planner import sound

Vector: TypeAlias = tuple[int, ...]
"""A number for each role."""
Flags: TypeAlias = tuple[bool, ...]
"""A truth for each role."""

_OF_OLD: Final = (("required", bool), ("initial", int), ("spec", int), ("raw", int), ("committed", int))
_OF_TARGET: Final = (
    ("required", bool),
    ("spec", int),
    ("raw", int),
    ("committed", int),
    ("desired", int),
    ("unschedulable", bool),
)
_OF_STATE: Final = (("baseline", int), ("max_surge", int), ("max_unavailable", int))


@dataclass(frozen=True, slots=True)
class OldRevision:
    """An old revision: the groups its roles were meant to have (`initial`, never less than `spec`), are asked to have
    (`spec`), and have Ready: all seen (`raw`), and those that outlive the deletions already ordered (`committed`).

    `required` are the roles it cannot serve without: those with an initial count. Raises DecisionError where vectors
    are of different lengths, or hold anything but counts.
    """

    required: Flags
    initial: Vector
    spec: Vector
    raw: Vector
    committed: Vector

    def __post_init__(self) -> None:
        sound.require(self, _OF_OLD)
        for number, (meant, asked) in enumerate(zip(self.initial, self.spec, strict=True)):
            if meant < asked:
                sound.refuse(f"OldRevision.initial[{number}]", meant, f"no less than spec[{number}], which is {asked}")


@dataclass(frozen=True, slots=True)
class TargetRevision:
    """The revision a rollout leads to; `desired` are the groups wanted in the end, and `required` the roles that want
    any. `unschedulable` are the roles with a pod that has long found no node. Raises DecisionError as OldRevision does.
    """

    required: Flags
    spec: Vector
    raw: Vector
    committed: Vector
    desired: Vector
    unschedulable: Flags

    def __post_init__(self) -> None:
        sound.require(self, _OF_TARGET)


@dataclass(frozen=True, slots=True)
class RolloutState:
    """What one step of a rollout is chosen from: the old revision to be drained now, those that stay as they are
    meanwhile (`parked`), and the target.

    `baseline` is what the availability of each role is measured by while replicas are coupled to the rollout
    (`baseline`); `policy` is the API's word for the scaling policy. Raises DecisionError for revisions of different
    numbers of roles, for other vectors than counts, and for a policy that there is not.
    """

    active: OldRevision
    parked: tuple[OldRevision, ...]
    target: TargetRevision
    baseline: Vector
    max_surge: Vector
    max_unavailable: Vector
    policy: str = names.ROLLOUT_COUPLED

    def __post_init__(self) -> None:
        sound.require_type(self.parked, tuple, "RolloutState.parked")
        size = _roles(self.active, self.parked)
        sound.require_type(self.target, TargetRevision, "RolloutState.target")
        if len(self.target.spec) != size:
            sound.refuse("RolloutState.target", self.target.spec, f"for {size} roles, as active is")
        sound.require(self, _OF_STATE, size)
        if self.policy not in names.SCALING_POLICIES:
            sound.refuse("RolloutState.policy", self.policy, " or ".join(names.SCALING_POLICIES))

    @property
    def advances(self) -> bool:
        """Whether new desired counts hold at once, for limits and floors too (50 §11.4)."""
        return self.policy == names.ADVANCE_ROLLOUT


@dataclass(frozen=True, slots=True)
class Step:
    """The counts to ask for next: of the active old revision and of the target. A step with a marker exceeds a limit
    on purpose and is told as a Warning. Raises DecisionError for what is no number; what may not be asked for is for
    `violations` to say.
    """

    old: Vector
    target: Vector
    bootstrap_surge: bool = False
    availability_fallback: bool = False

    def __post_init__(self) -> None:
        for name, vector in (("old", self.old), ("target", self.target)):
            if type(vector) is not tuple or not {*map(type, vector)} <= {int}:
                sound.refuse(f"Step.{name}", vector, "a tuple of whole numbers, one for each role")


def baseline(active: OldRevision, parked: Iterable[OldRevision]) -> Vector:
    """The availability baseline: by role, the most that any old revision that still asks for groups was meant to have.

    Raises DecisionError for revisions of different numbers of roles. Specification: 50 §8.1, B.
    """
    others = tuple(parked)
    _roles(active, others)
    counted = [active.initial, *(revision.initial for revision in others if any(revision.spec))]
    return tuple(map(max, zip(*counted, strict=True)))


def _roles(active: OldRevision, parked: Sequence[OldRevision]) -> int:
    """How many roles old revisions have. Raises DecisionError if not all have as many."""
    sound.require_type(active, OldRevision, "the active revision")
    size = len(active.spec)
    for number, revision in enumerate(parked):
        sound.require_type(revision, OldRevision, f"parked[{number}]")
        if len(revision.spec) != size:
            sound.refuse(f"parked[{number}]", revision.spec, f"for {size} roles, as the active revision is")
    return size


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
