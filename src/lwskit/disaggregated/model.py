"""What the decisions about a DisaggregatedSet talk about: its children, what is ready of them, and one pass. Pure.

Specification: 50 §3, §5, §7.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from lwskit.api import disaggregated_names as names
from lwskit.api.names import INT32_MAX
from lwskit.disaggregated.subroles.groups import Partition
from lwskit.groups import spec as sets
from lwskit.runtime.objects import Obj, annotations_of, is_deleting, labels_of, uid_of
from lwskit.runtime.plan import AnyAction, NeedFresh, Patch, Plan


class Part(NamedTuple):
    """What is scaled by itself: a role, or one sub-role of it. Its text is the name of its row in the status."""

    role: str
    subrole: str = ""

    def __str__(self) -> str:
        return f"{self.role}/{self.subrole}" if self.subrole else self.role


class Ready(NamedTuple):
    """Ready groups: all that are seen (`raw`), and those that survive the deletions already ordered (`committed`)."""

    raw: int = 0
    committed: int = 0


NONE_READY = Ready()
NO_PLAN = Plan()


@dataclass(frozen=True, slots=True)
class Readiness:
    """What is ready of one child (50 §7.5).

    `known` is False while it cannot be said: the child or its leader workload has not observed what was asked last.
    `settled` says that no group is still on its way out because of a scale-down (50 §7.6). `parts` has each sub-role's
    numbers by name. `unschedulable` says that a pod of it has found no node for `names.UNSCHEDULABLE_SECONDS`.
    """

    ready: Ready = NONE_READY
    known: bool = True
    settled: bool = True
    parts: Mapping[str, Ready] = field(default_factory=dict)
    unschedulable: bool = False
    unschedulable_parts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Child:
    """A LeaderWorkerSet that a DisaggregatedSet owns, read once.

    `slice` is None where the label is no number, `initial` where the annotation is absent or no count.
    """

    obj: Obj
    name: str
    uid: str
    slice: int | None
    revision: str
    role: str
    replicas: int
    initial: int | None
    created: str
    is_terminating: bool
    has_pending_scale_down: bool

    @classmethod
    def of(cls, obj: Obj) -> Child:
        """Read a LeaderWorkerSet."""
        labels, annotations, meta = labels_of(obj), annotations_of(obj), obj["metadata"]
        return cls(
            obj,
            meta["name"],
            uid_of(obj),
            count_of(labels.get(names.SLICE_LABEL)),
            labels.get(names.REVISION_LABEL, ""),
            labels.get(names.ROLE_LABEL, ""),
            sets.replicas(obj),
            count_of(annotations.get(names.INITIAL_REPLICAS_ANNOTATION)),
            meta.get("creationTimestamp") or "",
            is_deleting(obj),
            annotations.get(names.SCALE_DOWN_PENDING_ANNOTATION) == "true",
        )


def count_of(text: str | None) -> int | None:
    """A count as a label or annotation says it: decimal digits, as many as a LeaderWorkerSet can have; None for
    anything else."""
    if text is None or not sets.is_count(text):
        return None
    count = int(text)
    return count if count <= INT32_MAX else None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one pass is decided on.

    `children` are the LeaderWorkerSets with the set's name in their label, of any owner, and `scalers` likewise.
    `readiness` is by a child's UID; what is missing there is not known. `partitions` has, also by UID, the groups of
    the children whose role has sub-roles or that were divided among some before. `status_age` is for how many seconds
    the set's status has not been written. `looked` is False where the set is only what the cache has of it.
    """

    ds: Obj | None
    children: tuple[Obj, ...] = ()
    scalers: tuple[Obj, ...] = ()
    readiness: Mapping[str, Readiness] = field(default_factory=dict)
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    now: datetime | None = None
    status_age: float = math.inf
    looked: bool = True


@dataclass(frozen=True, slots=True)
class Write:
    """What changes one child: actions in order, and with `pending` a sentence why nothing may be decided on top of them
    in this pass, nor where there are none: the next one sees what became of it."""

    actions: tuple[AnyAction, ...] = ()
    pending: str = ""

    @property
    def resizes(self) -> bool:
        """Whether the child is asked for another number of groups."""
        return any(isinstance(action, Patch) and "replicas" in action.body.get("spec", {}) for action in self.actions)


NO_WRITE = Write()


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """What to do in one slice; `error` is what makes the pass fail although nothing was tried."""

    slice: int
    plan: Plan
    error: str = ""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over a set: first `before`, then each slice whatever became of the others, then scalers and status.

    With `stop` there is nothing after `before`. `error` is what makes it fail when all is done. With `look` nothing is
    done at all before that has been read live and the pass decided on again.
    """

    before: Plan = NO_PLAN
    stop: bool = False
    slices: tuple[SlicePlan, ...] = ()
    scalers: Plan = NO_PLAN
    status: Plan = NO_PLAN
    error: str = ""
    look: NeedFresh | None = None
