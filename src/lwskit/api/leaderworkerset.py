"""The LeaderWorkerSet kind as pydantic models: for building objects, for reading them by name, and for the CRD.

Specification: 10 §2 and §3. Objects of the cluster stay plain dicts; a model keeps fields that it does not know, and
`to_dict` writes exactly what was set. Defaults are those that the CRD has.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from lwskit.api import names

Int32 = Annotated[
    int, Field(strict=True, ge=names.INT32_MIN, le=names.INT32_MAX, json_schema_extra={"format": "int32"})
]
"""An integer of 32 bits; as for an API server, neither texts nor truth values are numbers."""

Int64 = Annotated[
    int, Field(strict=True, ge=names.INT64_MIN, le=names.INT64_MAX, json_schema_extra={"format": "int64"})
]
"""An integer of 64 bits."""

IntOrString = Annotated[
    Annotated[int, Field(strict=True)] | str,
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}),
]
"""A number, or a percentage as text such as `25%`."""

PodTemplate = Annotated[dict[str, Any], WithJsonSchema({"x-template": "core.v1.PodTemplateSpec"})]
"""A pod template as a plain dict; the CRD has its whole schema."""

ClaimTemplate = Annotated[dict[str, Any], WithJsonSchema({"x-template": "core.v1.PersistentVolumeClaim"})]
"""A claim template as a plain dict; the CRD has its whole schema."""

EmbeddedMetadata = Annotated[dict[str, Any], WithJsonSchema({"x-template": "meta.v1.ObjectMeta"})]
"""Metadata of what is made later: labels and annotations, name, namespace and finalizers."""

Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time as text: RFC 3339, UTC."""


def _required(*fields: str) -> dict[str, Any]:
    """Configuration of a model whose schema requires `fields` even where a default is filled in for them."""
    return {"required": list(fields)}


class Model(BaseModel):
    """What all models share: camelCase names in JSON, both spellings in Python, unknown fields kept."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")

    def to_dict(self) -> dict[str, Any]:
        """The object as JSON data: the fields that were set, those unknown to the model included."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class EmptyPolicy(Model):
    """A choice without settings."""


class CompositeGang(Model):
    """All groups are scheduled together or none is."""

    min_group_count: Int32 | None = Field(None, description="Least number of groups; not supported.")


class CompositePolicy(Model):
    """How the pods of several groups are scheduled: one of its fields."""

    basic: EmptyPolicy | None = Field(None, description="Pods are scheduled one by one.")
    gang: CompositeGang | None = Field(None, description="Pods are scheduled together or not at all.")


class LeafGang(Model):
    """The pods of one role are scheduled together or none is."""

    min_count: Int32 | None = Field(None, description="Number of pods; if set, that of all pods of the role.")


class LeafPolicy(Model):
    """How the pods of one role are scheduled: one of its fields."""

    basic: EmptyPolicy | None = Field(None, description="Pods are scheduled one by one.")
    gang: LeafGang | None = Field(None, description="Pods are scheduled together or not at all.")


class TopologyConstraint(Model):
    """A topology domain that all pods share."""

    key: str = Field(description="Key of the node label that names the domain.")


class SchedulingConstraints(Model):
    """Where pods that are scheduled together may run."""

    topology: list[TopologyConstraint] | None = Field(
        None,
        description="Topology domains that the pods share.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )


class DisruptionMode(Model):
    """What a disruption of one pod means for the others: one of its fields."""

    single: EmptyPolicy | None = Field(None, description="Pods are disrupted one by one.")
    all: EmptyPolicy | None = Field(None, description="All pods are disrupted together.")


class RoleResourceClaim(Model):
    """A resource claim that the pods of a role share."""

    name: str = Field(description="Name of the claim in the pod template.")
    resource_claim_name: str | None = Field(None, description="Name of an existing ResourceClaim.")
    resource_claim_template_name: str | None = Field(None, description="Name of a ResourceClaimTemplate.")


class RoleScheduling(Model):
    """Scheduling of the leader, or of the workers, of each group."""

    scheduling_policy: LeafPolicy | None = Field(None, description="How the pods are scheduled; basic if unset.")
    scheduling_constraints: SchedulingConstraints | None = Field(None, description="Where the pods may run.")
    disruption_mode: DisruptionMode | None = Field(None, description="What a disruption of one pod means for all.")
    resource_claims: list[RoleResourceClaim] | None = Field(
        None,
        max_length=names.MAX_RESOURCE_CLAIMS,
        description="Resource claims that the pods of the role share; the pod template has the same.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )


class ReplicaScheduling(Model):
    """Scheduling of each group."""

    scheduling_policy: CompositePolicy | None = Field(
        None, description="How a group's pods are scheduled; gang if unset."
    )
    scheduling_constraints: SchedulingConstraints | None = Field(None, description="Where the pods of a group may run.")
    disruption_mode: DisruptionMode | None = Field(
        None, description="What a disruption of one pod means for its group."
    )
    leader: RoleScheduling | None = Field(None, description="Scheduling of the leaders by themselves.")
    worker: RoleScheduling | None = Field(None, description="Scheduling of the workers of a group by themselves.")


class Scheduling(Model):
    """Scheduling of pods together; fixed when the set is created."""

    scheduling_policy: CompositePolicy | None = Field(None, description="How all pods of the set are scheduled.")
    scheduling_constraints: SchedulingConstraints | None = Field(None, description="Where the pods of the set may run.")
    disruption_mode: DisruptionMode | None = Field(None, description="What a disruption of one pod means for the set.")
    replica: ReplicaScheduling | None = Field(None, description="Scheduling of each group by itself.")


class RollingUpdateConfiguration(Model):
    """Pace of a rolling update."""

    partition: Int32 | None = Field(
        names.DEFAULT_PARTITION,
        description="Groups with an index below this keep their revision.",
    )
    max_unavailable: IntOrString | None = Field(
        names.DEFAULT_MAX_UNAVAILABLE,
        description="Groups that may be unavailable during an update: a number or a percentage of replicas, "
        "rounded down. Must not be 0 when maxSurge is 0.",
    )
    max_surge: IntOrString | None = Field(
        names.DEFAULT_MAX_SURGE,
        description="Groups that may exist beyond replicas during an update: a number or a percentage of replicas, "
        "rounded up.",
    )


class RolloutStrategy(Model):
    """How a change of the templates reaches the groups."""

    model_config = ConfigDict(json_schema_extra=_required("type"))

    type: Literal["RollingUpdate"] = Field("RollingUpdate", description="RollingUpdate: groups one after another.")
    rolling_update_configuration: RollingUpdateConfiguration | None = Field(None, description="Pace of the update.")


class SubGroupPolicy(Model):
    """Sub-groups: parts of a group that share a topology domain."""

    sub_group_policy_type: Literal["LeaderWorker", "LeaderExcluded"] | None = Field(
        "LeaderWorker",
        description="LeaderWorker: the leader is in the first sub-group. LeaderExcluded: the leader is in none.",
    )
    sub_group_size: Int32 | None = Field(
        None,
        description="Pods of a sub-group; size or size - 1 must be a multiple of it. Fixed when the set is created.",
    )


class NetworkConfig(Model):
    """Names of pods in DNS."""

    model_config = ConfigDict(json_schema_extra=_required("subdomainPolicy"))

    subdomain_policy: Literal["Shared", "UniquePerReplica"] | None = Field(
        None,
        description="Shared: one headless Service for the set. UniquePerReplica: one for each group.",
        json_schema_extra={"default": None},
    )


class RestartBackoff(Model):
    """Delay before a group is recreated; it doubles with each restart of the group."""

    base_seconds: Int32 | None = Field(names.DEFAULT_BACKOFF_BASE_SECONDS, ge=1, description="First delay in seconds.")
    cap_seconds: Int32 | None = Field(names.DEFAULT_BACKOFF_CAP_SECONDS, ge=1, description="Greatest delay in seconds.")


class ClaimRetentionPolicy(Model):
    """What becomes of the claims made from the claim templates."""

    when_deleted: str | None = Field(None, description="Retain or Delete, when the workload is deleted.")
    when_scaled: str | None = Field(None, description="Retain or Delete, when the workload is scaled down.")


class LeaderWorkerTemplate(Model):
    """What one group looks like."""

    leader_template: PodTemplate | None = Field(None, description="Template of the leader pod; the worker's if unset.")
    worker_template: PodTemplate = Field(description="Template of the worker pods.")
    size: Int32 | None = Field(
        names.DEFAULT_SIZE,
        description="Pods of a group, the leader included; at least 1. With 1 a group has only a leader.",
    )
    restart_policy: Literal["Default", "RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None"] | None = Field(
        "RecreateGroupOnPodRestart",
        description="RecreateGroupOnPodRestart: the group is recreated when a container restarts or a pod is deleted. "
        "RecreateGroupAfterStart: the same once all pods of the group have started. None: only the pod itself is "
        "replaced. Default: an old name of None.",
    )
    max_group_restarts: Int32 | None = Field(
        None, ge=0, description="How often a group may be recreated before automatic recovery stops; no limit if unset."
    )
    restart_backoff: RestartBackoff | None = Field(
        None, description="Delay before a group is recreated; none if unset."
    )
    sub_group_policy: SubGroupPolicy | None = Field(
        None, description="Divides a group into sub-groups. Cannot be added or removed later."
    )
    volume_claim_templates: list[ClaimTemplate] | None = Field(
        None, description="Claims for each pod, as StatefulSets have them: name, access modes, class, mode, resources."
    )
    persistent_volume_claim_retention_policy: ClaimRetentionPolicy | None = Field(
        None, description="What becomes of the claims when a workload is deleted or scaled down."
    )


class LeaderWorkerSetSpec(Model):
    """What the user wants."""

    replicas: Int32 | None = Field(names.DEFAULT_REPLICAS, ge=0, le=names.MAX_REPLICAS, description="Number of groups.")
    leader_worker_template: LeaderWorkerTemplate = Field(description="What one group looks like.")
    rollout_strategy: RolloutStrategy | None = Field(None, description="How a change reaches the groups.")
    startup_policy: Literal["LeaderCreated", "LeaderReady"] | None = Field(
        "LeaderCreated",
        description="LeaderCreated: workers are created with their leader. LeaderReady: once the leader is ready.",
    )
    network_config: NetworkConfig | None = Field(None, description="Names of pods in DNS.")
    scheduling: Scheduling | None = Field(
        None,
        description="Scheduling of pods together; one of set, group and role level. Fixed when the set is created. "
        "Needs the feature gate WorkloadAwareScheduling.",
    )
    group_identity: Literal["Ordinal", "Hash"] | None = Field(
        "Ordinal",
        description="Ordinal: groups are numbered and keep their names. Hash: groups have random names. Immutable.",
    )
    group_replacement_policy: Literal["Immediate", "PostTermination"] | None = Field(
        "PostTermination",
        description="PostTermination: a group is replaced once it is gone. Immediate: as soon as it ends.",
    )
    pod_termination_policy: Literal["Default", "Parallel"] | None = Field(
        "Default", description="Order in which the pods of a group end. Immutable."
    )


class Condition(Model):
    """One condition of a status."""

    last_transition_time: Timestamp = Field(description="When the status last changed.")
    message: str = Field(max_length=32768, description="What the reason means, for people.")
    observed_generation: Int64 | None = Field(None, ge=0, description="Generation that the condition is about.")
    reason: str = Field(
        min_length=1,
        max_length=1024,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        description="Why the condition has its status, in one word.",
    )
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    type: str = Field(
        max_length=316,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        description="Available, Progressing, UpdateInProgress, Degraded or WorkloadSchedulingCreated.",
    )


class LeaderWorkerSetStatus(Model):
    """What the manager has seen."""

    conditions: list[Condition] | None = Field(
        None,
        description="Conditions of the set.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    ready_replicas: Int32 | None = Field(None, description="Groups that are ready, updated or not.")
    updated_replicas: Int32 | None = Field(None, description="Groups of the current revision, ready or not.")
    replicas: Int32 | None = Field(None, description="Groups that exist, those beyond replicas included.")
    hpa_pod_selector: str | None = Field(None, description="Selects the leader pods, for autoscalers.")
    observed_generation: Int64 | None = Field(None, description="Generation that the status is about.")


class LeaderWorkerSetTemplateSpec(Model):
    """A set inside of another kind: metadata and what the user wants."""

    metadata: EmbeddedMetadata | None = Field(None, description="Labels and annotations of the LeaderWorkerSet.")
    spec: LeaderWorkerSetSpec | None = Field(None, description="What the LeaderWorkerSet is like.")


class LeaderWorkerSet(Model):
    """Groups of pods, each a leader with its workers, that are created, updated and restarted as units."""

    api_version: str = Field(names.API_VERSION, description="Group and version of the kind.")
    kind: str = Field(names.KIND, description="Name of the kind.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Name, labels and annotations.")
    spec: LeaderWorkerSetSpec | None = Field(None, description="What the user wants.")
    status: LeaderWorkerSetStatus | None = Field(None, description="What the manager has seen.")

    def to_dict(self) -> dict[str, Any]:
        """The object as JSON data: apiVersion and kind, and the fields that were set."""
        return {"apiVersion": self.api_version, "kind": self.kind} | super().to_dict()
