"""The kinds DisaggregatedSet and DisaggregatedSetRoleScaler as pydantic models: for building objects and for the CRDs.

Specification: 50 §1, §2. What a role's groups are like is said with the models of LeaderWorkerSet.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from lwskit.api import disaggregated_names as names
from lwskit.api import names as shared
from lwskit.api.leaderworkerset import Condition, Int32, Int64, LeaderWorkerSetTemplateSpec, Model

RoleName = Annotated[
    str, Field(min_length=1, max_length=names.MAX_ROLE_NAME, json_schema_extra={"pattern": names.ROLE_NAME_PATTERN})
]
"""Name of a role or sub-role."""

Count = Annotated[int, Field(strict=True, ge=0, le=shared.INT32_MAX, json_schema_extra={"format": "int32"})]
"""A number of groups."""


def _map(key: str) -> dict[str, Any]:
    """What a schema says of a list whose entries are told apart by a field."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


def _rule(rule: str, message: str) -> dict[str, Any]:
    """What a schema says of objects for which an expression has to hold."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message}]}


_EXTERNAL = f"has({{0}}.scaling) && has({{0}}.scaling.mode) && {{0}}.scaling.mode == '{names.SCALING_EXTERNAL}'"
_COUNTED = f"self.roles.filter(r, !({_EXTERNAL.format('r')}) && !has(r.subRoles))"
_PAUSED = "!has(r.spec.replicas) || r.spec.replicas == 0"
_RUNNING = "has(r.spec.replicas) && r.spec.replicas > 0"


class Scaling(Model):
    """Who says how many groups there are."""

    mode: Literal["Static", "External"] | None = Field(
        "Static",
        description="Static: the count in the set. External: spec.replicas of a DisaggregatedSetRoleScaler that the "
        "manager makes, for an autoscaler or for kubectl scale.",
    )


class SubRole(Model):
    """A share of a role's groups that is counted and scaled by itself."""

    model_config = ConfigDict(
        json_schema_extra=_rule(
            f"!({_EXTERNAL.format('self')}) || !has(self.replicas)", names.MESSAGE_EXTERNAL_REPLICAS
        )
    )

    name: RoleName = Field(description="Name of the sub-role, unique in its role.")
    replicas: Count | None = Field(
        None, description="Number of groups in each slice; 1 if unset. Not with scaling.mode External."
    )
    scaling: Scaling | None = Field(None, description="Who says how many groups there are; the set if unset.")


class Role(LeaderWorkerSetTemplateSpec):
    """A role: the LeaderWorkerSet that each slice has for it."""

    model_config = ConfigDict(json_schema_extra={"required": ["name", "spec"]})

    name: RoleName = Field(description="Name of the role, unique in the set.")
    scaling: Scaling | None = Field(
        None, description="Who says how many groups the role has; spec.replicas if unset. Not with subRoles."
    )
    sub_roles: list[SubRole] | None = Field(
        None,
        min_length=1,
        max_length=names.MAX_SUBROLES,
        description="Shares of the role's groups; their counts add up to those of the role, spec.replicas is ignored.",
        json_schema_extra=_map("name"),
    )


class ScalingPolicy(Model):
    """How counts and a rollout meet."""

    during_rollout: Literal["RolloutCoupled", "AdvanceRollout"] | None = Field(
        "RolloutCoupled",
        description="What a changed count does while a rollout goes on. RolloutCoupled: the new revision does not "
        "shrink before the old one is gone. AdvanceRollout: the count wanted now holds at once.",
    )


class PlacementPolicy(Model):
    """Where the slices of a set may run."""

    type: Literal["None", "ExclusiveSlice", "ExclusiveTopology"] | None = Field(
        "None",
        description="ExclusiveSlice: each slice has a topology domain of which other slices of the set stay out. "
        "ExclusiveTopology: other sets stay out of it too.",
    )
    topology: str | None = Field(
        None, description="Key of the node label that names the domain; needed unless type is None."
    )


class DisaggregatedSetSpec(Model):
    """What the user wants."""

    model_config = ConfigDict(
        json_schema_extra=_rule(
            f"{_COUNTED}.all(r, {_PAUSED}) || {_COUNTED}.all(r, {_RUNNING})", names.MESSAGE_ALL_OR_NOTHING
        )
    )

    roles: list[Role] = Field(
        min_length=names.MIN_ROLES,
        max_length=names.MAX_ROLES,
        description="Roles of the set. They roll out together.",
        json_schema_extra=_map("name"),
    )
    slices: Int32 | None = Field(
        names.DEFAULT_SLICES,
        ge=names.MIN_SLICES,
        le=names.MAX_SLICES,
        description="Copies of all roles that there are. Each rolls out by itself.",
    )
    scaling_policy: ScalingPolicy | None = Field(None, description="How counts and a rollout meet.")
    placement_policy: PlacementPolicy | None = Field(None, description="Where the slices may run.")


class RoleStatus(Model):
    """What the manager has seen of one role or sub-role, over all slices."""

    name: str = Field(description="Name of the role; of a sub-role that of its role, a slash and its own.")
    desired_replicas: Int32 | None = Field(None, description="Groups that are wanted.")
    replicas: Int32 | None = Field(None, description="Groups that exist, those of old revisions included.")
    ready_replicas: Int32 | None = Field(None, description="Groups that are ready, those of old revisions included.")
    updated_replicas: Int32 | None = Field(None, description="Groups of the current revision.")


class DisaggregatedSetStatus(Model):
    """What the manager has seen."""

    observed_generation: Int64 | None = Field(None, description="Generation that the status is about.")
    role_statuses: list[RoleStatus] | None = Field(
        None, description="Roles in the order of the spec.", json_schema_extra=_map("name")
    )
    conditions: list[Condition] | None = Field(
        None, description="Available, Progressing and SubRolesAssigned.", json_schema_extra=_map("type")
    )


class DisaggregatedSet(Model):
    """Roles of one service, each a LeaderWorkerSet, that are updated together."""

    model_config = ConfigDict(json_schema_extra={"required": ["spec"]})

    api_version: str = Field(names.API_VERSION, description="Group and version of the kind.")
    kind: str = Field(names.KIND, description="Name of the kind.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Name, labels and annotations.")
    spec: DisaggregatedSetSpec | None = Field(None, description="What the user wants.")
    status: DisaggregatedSetStatus | None = Field(None, description="What the manager has seen.")

    def to_dict(self) -> dict[str, Any]:
        """The object as JSON data: apiVersion and kind, and the fields that were set."""
        return {"apiVersion": self.api_version, "kind": self.kind} | super().to_dict()


class RoleScalerSpec(Model):
    """What an autoscaler wants."""

    replicas: Count = Field(
        default=names.DEFAULT_SCALER_REPLICAS, description="Groups of the role or sub-role in each slice."
    )


class RoleScalerStatus(Model):
    """What the manager has seen."""

    replicas: Int32 | None = Field(None, description="Groups that exist, over all revisions and slices.")
    selector: str | None = Field(None, description="Selects the leader pods, for autoscalers.")
    observed_generation: Int64 | None = Field(None, description="Generation that the status is about.")
    conditions: list[Condition] | None = Field(
        None, description="Ready: the scaler counts for its role.", json_schema_extra=_map("type")
    )


class DisaggregatedSetRoleScaler(Model):
    """Where an autoscaler says how many groups a role has; made by the manager for roles with scaling.mode External."""

    api_version: str = Field(names.API_VERSION, description="Group and version of the kind.")
    kind: str = Field(names.SCALER_KIND, description="Name of the kind.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Name, labels and annotations.")
    spec: RoleScalerSpec = Field(
        default_factory=RoleScalerSpec, description="What an autoscaler wants.", json_schema_extra={"default": {}}
    )
    status: RoleScalerStatus | None = Field(None, description="What the manager has seen.")

    def to_dict(self) -> dict[str, Any]:
        """The object as JSON data: apiVersion, kind, spec.replicas in any case, and the fields that were set."""
        written = {"apiVersion": self.api_version, "kind": self.kind} | super().to_dict()
        return written | {"spec": {"replicas": self.spec.replicas} | self.spec.to_dict()}
