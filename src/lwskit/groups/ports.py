"""What the domain asks of others: how leaders and workers exist in a cluster, and who schedules them. Pure.

Specification: architecture, part 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Literal, Protocol

from lwskit.groups.model import GroupId, GroupPlan, LeaderPlan, LeaderState, Victim, WorkerState
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj
from lwskit.runtime.plan import AnyAction

Write = Literal["apply", "create"]
"""How a workload is written: applied at every reconcile, or created once and never touched again."""


Draw = Callable[[int], str]
"""So many random characters of `names.SAFE_ALPHABET`."""


class Capability(Enum):
    """What a kind of leader workload can do; a reconciler says what it needs and refuses a backend that lacks it."""

    ORDINALS = "ordinals"
    """Pods have stable ordinals."""
    PARTITION = "partition"
    """An update touches only ordinals from a partition upwards."""
    READINESS_PACED = "readiness-paced"
    """It rolls out by itself, at the pace of its pods' readiness."""
    RANKED_SCALE_DOWN = "ranked-scale-down"
    """It chooses what to remove by a ranking of pods."""
    CLAIM_TEMPLATES = "claim-templates"
    """It makes volume claims per pod."""
    IN_PLACE_UPDATE = "in-place-update"
    """It updates pods without making new ones."""


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule of a role: which verbs on which resources of an API group (RBAC manifests are generated from these)."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


class LeaderBackend(Protocol):
    """How the leaders of a set exist as a Kubernetes object."""

    @property
    def kind(self) -> Kind:
        """The kind of the workload: owned by the set and watched."""
        ...

    @property
    def watches(self) -> tuple[Kind, ...]:
        """Further kinds between the workload and its pods, outermost first; usually none."""
        ...

    @property
    def write(self) -> Write:
        """How it is written."""
        ...

    @property
    def rbac(self) -> tuple[PolicyRule, ...]:
        """What the manager must be allowed to do for it."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it can do."""
        ...

    def render(self, plan: LeaderPlan) -> Obj:
        """The full object to write."""
        ...

    def observe(self, obj: Obj) -> LeaderState:
        """What a live object says of itself."""
        ...

    def group_of(self, pod: Obj) -> GroupId | None:
        """Which group a pod leads, by its controller reference and labels; None for a pod that is no leader."""
        ...

    def ordinals(self, obj: Obj) -> Sequence[int]:
        """The ordinals of the leaders that the object asks for, ascending."""
        ...

    def rank(self, pods: Sequence[Obj], now: datetime) -> list[Victim]:
        """In which order leaders go at `now` when there are fewer, first to go first."""
        ...


class WorkerBackend(Protocol):
    """How the workers of one group exist as a Kubernetes object."""

    @property
    def kind(self) -> Kind:
        """The kind of the workload: owned by the leader pod and watched."""
        ...

    @property
    def write(self) -> Write:
        """How it is written."""
        ...

    @property
    def rbac(self) -> tuple[PolicyRule, ...]:
        """What the manager must be allowed to do for it."""
        ...

    def render(self, plan: GroupPlan) -> Obj:
        """The full object to write."""
        ...

    def observe(self, obj: Obj) -> WorkerState:
        """What a live object says of itself."""
        ...


class Scheduler(Protocol):
    """A gang scheduler's part in a group: what is created for it before its workers (specification: 20 §10.2)."""

    def group_actions(self, lws: Obj, leader: Obj) -> tuple[AnyAction, ...]:
        """Actions to carry out for the group of `leader` before its workers exist; `lws` is the set as of the group's
        revision. Raises DecisionError where a leftover of another group is in the way."""
        ...


class PodScheduler(Protocol):
    """A gang scheduler's part in the admission of pods (specification: 10 §8.8)."""

    def scheduled(self, pod: Obj, draw: Draw) -> Obj:
        """The pod with what tells its scheduler which group it belongs to; a copy where anything changes.

        Called for leaders and workers that have their labels already, before variables are added; again for a pod that
        was admitted before, which must then stay as it is. Raises DecisionError with the sentence that the pod is
        denied with.
        """
        ...
