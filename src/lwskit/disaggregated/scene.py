"""What the decision about one slice of a DisaggregatedSet is made from. Pure.

Specification: 50 §5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.disaggregated.model import Child, Part, Readiness
from lwskit.disaggregated.spec import SetSpec
from lwskit.disaggregated.subroles.groups import NO_PARTITION, Partition
from lwskit.runtime.objects import Obj, ObjectRef, is_controlled_by, ref_of

UNKNOWN = Readiness(known=False, settled=False)


@dataclass(frozen=True, slots=True)
class Targets:
    """How many groups each part and each role is to have in a slice (50 §11.1).

    A part that is not in `parts` has no count yet: it is External, and its scaler is not there. A role that is not in
    `roles` is unresolved for that reason, or because its sub-roles ask for more than a set can have.
    """

    parts: Mapping[Part, int] = field(default_factory=dict)
    roles: Mapping[str, int] = field(default_factory=dict)
    unresolved: tuple[Part, ...] = ()
    """What has no count, in spec order: parts, and roles whose sum is too large."""

    def of_subroles(self, role: str) -> dict[str, int]:
        """The counts of a role's sub-roles by name; empty for a role without."""
        return {part.subrole: count for part, count in self.parts.items() if part.role == role and part.subrole}

    @property
    def too_large(self) -> dict[str, int]:
        """The roles that are unresolved though each of their sub-roles has a count, and the sum of those."""
        roles = (part.role for part in self.unresolved if not part.subrole)
        return {role: sum(counts.values()) for role in roles if (counts := self.of_subroles(role))}


@dataclass(frozen=True, slots=True)
class Scene:
    """One slice. All targets are resolved.

    `children` are the set's own in this slice, terminating ones too. `named` has the LeaderWorkerSets of any owner
    that stand under a name which a child of the set's revision has, in any slice.
    """

    ds: Obj
    spec: SetSpec
    revision: str
    slice: int
    targets: Targets
    children: tuple[Child, ...] = ()
    named: Mapping[str, Obj] = field(default_factory=dict)
    readiness: Mapping[str, Readiness] = field(default_factory=dict)
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    now: datetime | None = None

    @property
    def ref(self) -> ObjectRef:
        """What events are about: the set."""
        return ref_of(self.ds, DISAGGREGATED_SET)

    @property
    def current(self) -> dict[str, Child]:
        """The children of the set's revision that are there to stay, by role."""
        return {c.role: c for c in self.children if c.revision == self.revision and not c.is_terminating}

    @property
    def old(self) -> tuple[Child, ...]:
        """The children of other revisions that are there to stay."""
        return tuple(c for c in self.children if c.revision != self.revision and not c.is_terminating)

    @property
    def terminating(self) -> tuple[Child, ...]:
        """The children that are being deleted."""
        return tuple(c for c in self.children if c.is_terminating)

    def readiness_of(self, child: Child) -> Readiness:
        """What is ready of a child; not known if nothing was said of it."""
        return self.readiness.get(child.uid, UNKNOWN)

    def partition_of(self, child: Child) -> Partition:
        """The groups of a child as sub-roles see them; none where nobody has looked."""
        return self.partitions.get(child.uid, NO_PARTITION)

    def is_own(self, obj: Obj) -> bool:
        """Whether an object belongs to this very set, not to one of the same name before it (50 §18)."""
        return is_controlled_by(obj, DISAGGREGATED_SET, self.spec.uid)
