"""What a rollout of one slice is decided on: its parts, and every revision as counts by part. Pure.

Specification: 50 §7.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.model import NONE_READY, Child, Part, Ready
from lwskit.disaggregated.planner import OldRevision, TargetRevision, Vector
from lwskit.disaggregated.scene import Scene
from lwskit.disaggregated.spec import ONE_MORE, Limits
from lwskit.disaggregated.subroles import division


@dataclass(frozen=True, slots=True)
class Revision:
    """An old revision in a slice: its children by role, and its counts by part."""

    name: str
    children: Mapping[str, Child]
    counts: OldRevision
    has_ready: bool
    """Whether a group of it is Ready, were it one that is on its way out."""

    @property
    def is_drained(self) -> bool:
        """Whether none of its children asks for a group."""
        return not any(child.replicas for child in self.children.values())

    @property
    def age(self) -> tuple[str, str]:
        """What revisions are sorted by, the oldest first: when the last child was made."""
        return max(child.created for child in self.children.values()), self.name


@dataclass(frozen=True, slots=True)
class Inputs:
    """A rollout in one slice. Vectors have a place for each of `parts`."""

    parts: tuple[Part, ...]
    limits: tuple[Limits, ...]
    old: tuple[Revision, ...]
    """The newest first, drained ones too."""
    children: Mapping[str, Child]
    """Those of the target, by role."""
    target: TargetRevision
    policy: str

    @property
    def desired(self) -> Vector:
        """The groups that the target is to have in the end."""
        return self.target.desired

    @property
    def advances(self) -> bool:
        """Whether new counts hold at once, also smaller ones (50 §11.4)."""
        return self.policy == names.ADVANCE_ROLLOUT

    @property
    def texts(self) -> list[str]:
        """The names of the parts."""
        return [str(part) for part in self.parts]

    def of_role(self, vector: Vector, role: str) -> dict[str, int]:
        """The places of a role in a vector, by sub-role; the role itself has an empty name."""
        return {part.subrole: count for part, count in zip(self.parts, vector, strict=True) if part.role == role}


def read(scene: Scene) -> Inputs:
    """The inputs of a slice whose target has a child of every role.

    Raises DecisionError for a child or limits that cannot be read.
    """
    own = scene.current
    groups = {child.uid: division.counts(scene, child) for child in (*own.values(), *scene.old)}
    parts = _parts(scene, groups, (*scene.old, *own.values()))
    old = sorted((_revision(scene, name, parts, groups) for name in {c.revision for c in scene.old}), key=_age)
    overlap = [sum(revision.counts.spec[i] for revision in old) for i in range(len(parts))]
    spec = _vector(parts, own, groups)
    wanted = tuple(_desired(scene, *place) for place in zip(parts, overlap, spec, strict=True))
    ready = [_ready(scene, own.get(part.role), part) for part in parts]
    target = TargetRevision(
        required=tuple(count > 0 for count in wanted),
        spec=spec,
        raw=tuple(one.raw for one in ready),
        committed=tuple(one.committed for one in ready),
        desired=wanted,
        unschedulable=tuple(_unschedulable(scene, own.get(part.role), part) for part in parts),
    )
    limits = tuple(_limits(scene, part) for part in parts)
    return Inputs(parts, limits, tuple(reversed(old)), own, target, scene.spec.policy)


def _age(revision: Revision) -> tuple[str, str]:
    return revision.age


# Parts ----------------------------------------------------------------------------------------------------------------


def _parts(scene: Scene, groups: Mapping[str, Mapping[str, int]], children: Iterable[Child]) -> tuple[Part, ...]:
    """The parts of the set in spec order, then those that only children have, by name."""
    wanted = scene.spec.parts
    found = {Part(child.role, subrole) for child in children for subrole in groups[child.uid]}
    return (*wanted, *sorted(found - {*wanted}))


# Revisions ------------------------------------------------------------------------------------------------------------


def _revision(scene: Scene, name: str, parts: Sequence[Part], groups: Mapping[str, Mapping[str, int]]) -> Revision:
    children = {child.role: child for child in scene.old if child.revision == name}
    meant = {child.uid: division.initial(scene, child) for child in children.values()}
    spec = _vector(parts, children, groups)
    initial = tuple(map(max, _vector(parts, children, meant), spec))
    ready = [_ready(scene, children.get(part.role), part) for part in parts]
    counts = OldRevision(
        required=tuple(count > 0 for count in initial),
        initial=initial,
        spec=spec,
        raw=tuple(one.raw for one in ready),
        committed=tuple(one.committed for one in ready),
    )
    has_ready = any(scene.readiness_of(child).ready.raw for child in children.values())
    return Revision(name, children, counts, has_ready)


def _vector(parts: Iterable[Part], children: Mapping[str, Child], groups: Mapping[str, Mapping[str, int]]) -> Vector:
    found = ((children.get(part.role), part.subrole) for part in parts)
    return tuple(groups[child.uid].get(subrole, 0) if child is not None else 0 for child, subrole in found)


def _ready(scene: Scene, child: Child | None, part: Part) -> Ready:
    if child is None:
        return NONE_READY
    found = scene.readiness_of(child)
    return found.parts.get(part.subrole, NONE_READY) if part.subrole else found.ready


def _unschedulable(scene: Scene, child: Child | None, part: Part) -> bool:
    if child is None:
        return False
    found = scene.readiness_of(child)
    return part.subrole in found.unschedulable_parts if part.subrole else found.unschedulable


# What is wanted -------------------------------------------------------------------------------------------------------


def _desired(scene: Scene, part: Part, old: int, spec: int) -> int:
    """The groups that a part is to have in the end.

    While old groups of it are left, one that others scale does not shrink with RolloutCoupled: it would be scaled down
    in the middle of the rollout only to find the old ones gone next.
    """
    desired = scene.targets.parts.get(part, 0)
    role = scene.spec.role(part.role)
    is_external = role is not None and part in role.external_parts
    clamped = is_external and old > 0 and scene.spec.policy == names.ROLLOUT_COUPLED
    return max(desired, spec) if clamped else desired


def _limits(scene: Scene, part: Part) -> Limits:
    """The limits of a part, of the groups that the set asks for; those of a part that it has no more let one grow."""
    role = scene.spec.role(part.role)
    if role is None or part not in role.parts:
        return ONE_MORE
    return role.limits(scene.targets.parts[part])
