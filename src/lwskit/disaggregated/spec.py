"""Reading a DisaggregatedSet, with the API's defaults for what is absent. Pure.

Specification: 50 §1.1, §7.2, §11.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from lwskit.api import disaggregated_names as names
from lwskit.api.names import DEFAULT_MAX_SURGE, DEFAULT_MAX_UNAVAILABLE, DEFAULT_REPLICAS, INT32_MAX
from lwskit.disaggregated.model import Part
from lwskit.groups import spec as sets
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import Key, Obj, key_of, uid_of


class Limits(NamedTuple):
    """How many groups a rollout may add to a part, and how many it may take away."""

    max_surge: int
    max_unavailable: int


ONE_MORE = Limits(1, 0)
"""The limits of a part that the set has no more, and of one whose own limits would let nothing move (50 §7.2)."""


@dataclass(frozen=True, slots=True)
class SubRole:
    """One partition of a role's groups; `replicas` are those that its Static scaling asks for."""

    name: str
    replicas: int
    is_external: bool


@dataclass(frozen=True, slots=True)
class Role:
    """One role: `spec` is the LeaderWorkerSet spec of its children; `replicas` those that Static scaling asks for."""

    name: str
    spec: Mapping[str, Any]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    replicas: int
    is_external: bool
    subroles: tuple[SubRole, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is scaled by itself: the sub-roles in spec order, or the role where it has none."""
        return tuple(Part(self.name, sub.name) for sub in self.subroles) or (Part(self.name),)

    @property
    def external_parts(self) -> tuple[Part, ...]:
        """Those parts whose counts scalers say."""
        if not self.subroles:
            return (Part(self.name),) if self.is_external else ()
        return tuple(Part(self.name, sub.name) for sub in self.subroles if sub.is_external)

    @property
    def replacement_policy(self) -> str:
        """When the next group may take the place of one that goes: PostTermination or Immediate."""
        return sets.replacement_policy({"spec": self.spec})

    def limits(self, desired: int) -> Limits:
        """The limits of a part of this role that is to have `desired` groups (50 §7.2).

        Raises DecisionError for one that is neither a number nor a percentage.
        """
        strategy = self.spec.get("rolloutStrategy") or {}
        found = strategy.get("rollingUpdateConfiguration") or {}
        surge, unavailable = found.get("maxSurge"), found.get("maxUnavailable")
        try:
            limits = Limits(
                sets.scaled(DEFAULT_MAX_SURGE if surge is None else surge, desired, up=True, field="maxSurge"),
                sets.scaled(
                    DEFAULT_MAX_UNAVAILABLE if unavailable is None else unavailable,
                    desired,
                    up=False,
                    field="maxUnavailable",
                ),
            )
        except DecisionError as error:
            raise DecisionError(f"role {self.name}: {error}") from error
        return limits if any(limits) else ONE_MORE


@dataclass(frozen=True, slots=True)
class Placement:
    """Where slices may be, by a node label's domains; without a topology anywhere."""

    type: str
    topology: str

    @property
    def is_exclusive(self) -> bool:
        """Whether there is anything to see to."""
        return self.type not in ("", names.PLACEMENT_NONE) and bool(self.topology)


@dataclass(frozen=True, slots=True)
class SetSpec:
    """A DisaggregatedSet's spec, read once."""

    key: Key
    uid: str
    roles: tuple[Role, ...]
    slices: int
    policy: str
    """How scaling goes during a rollout: RolloutCoupled or AdvanceRollout."""
    placement: Placement

    @property
    def name(self) -> str:
        """Name of the set."""
        return self.key.name

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of all roles, in spec order."""
        return tuple(part for role in self.roles for part in role.parts)

    def role(self, name: str) -> Role | None:
        """The role with that name; None if the set has it no more."""
        return next((role for role in self.roles if role.name == name), None)


def read(ds: Obj) -> SetSpec:
    """Read a set. Raises DecisionError for one that is not what the API accepts."""
    try:
        spec = ds["spec"]
        placement = spec.get("placementPolicy") or {}
        slices = spec.get("slices")
        return SetSpec(
            key_of(ds),
            uid_of(ds),
            tuple(_role(role) for role in spec["roles"]),
            names.DEFAULT_SLICES if slices is None else int(slices),
            (spec.get("scalingPolicy") or {}).get("duringRollout") or names.ROLLOUT_COUPLED,
            Placement(placement.get("type") or names.PLACEMENT_NONE, placement.get("topology") or ""),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise DecisionError(
            f"DisaggregatedSet {key_of(ds)} cannot be read ({what}); see `kubectl explain disaggregatedset.spec.roles`"
        ) from error


def _role(role: Mapping[str, Any]) -> Role:
    metadata, spec = role.get("metadata") or {}, role["spec"]
    return Role(
        role["name"],
        spec,
        metadata.get("labels") or {},
        metadata.get("annotations") or {},
        _count(spec.get("replicas")),
        _is_external(role),
        tuple(
            SubRole(sub["name"], _count(sub.get("replicas")), _is_external(sub)) for sub in role.get("subRoles") or ()
        ),
    )


def _count(replicas: int | None) -> int:
    return DEFAULT_REPLICAS if replicas is None else min(int(replicas), INT32_MAX)


def _is_external(scaled: Mapping[str, Any]) -> bool:
    return (scaled.get("scaling") or {}).get("mode") == names.SCALING_EXTERNAL
