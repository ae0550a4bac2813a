"""Every name, enumeration value and limit of the DisaggregatedSet API, written once.

Specification: 50 §1–3, §11–13, §16–17, §19.
"""

from __future__ import annotations

from typing import Final

from lwskit.api import names

# The kinds ----------------------------------------------------------------------------------------------------------

GROUP: Final = "disaggregatedset.x-k8s.io"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "DisaggregatedSet"
LIST_KIND: Final = "DisaggregatedSetList"
PLURAL: Final = "disaggregatedsets"
SINGULAR: Final = "disaggregatedset"
CRD_NAME: Final = f"{PLURAL}.{GROUP}"

SCALER_KIND: Final = "DisaggregatedSetRoleScaler"
SCALER_LIST_KIND: Final = "DisaggregatedSetRoleScalerList"
SCALER_PLURAL: Final = "disaggregatedsetrolescalers"
SCALER_SINGULAR: Final = "disaggregatedsetrolescaler"
SCALER_SHORT_NAMES: Final = ("dsrs",)
SCALER_CRD_NAME: Final = f"{SCALER_PLURAL}.{GROUP}"

CONTROLLER: Final = "disaggregatedset"
"""Name of the controller, and the reporting controller of its events (50 §20)."""

# Labels (50 §3) -----------------------------------------------------------------------------------------------------

PREFIX: Final = GROUP + "/"
"""What the keys of labels and annotations begin with."""

APP_LABEL: Final = "app"
"""Set, slice and role in one, on children and their pods."""
NAME_LABEL: Final = PREFIX + "name"
"""Name of the set, on children, pods and scalers."""
ROLE_LABEL: Final = PREFIX + "role"
"""Name of the role."""
SLICE_LABEL: Final = PREFIX + "slice"
"""Number of the slice, from 0."""
REVISION_LABEL: Final = PREFIX + "revision"
"""The set's revision that a child was made from: 8 hexadecimal digits."""
SUBROLE_LABEL: Final = PREFIX + "subrole"
"""Name of the sub-role that a group is assigned to, on all its pods; nobody else may set it."""

# Annotations (50 §3) ------------------------------------------------------------------------------------------------

INITIAL_REPLICAS_ANNOTATION: Final = PREFIX + "initial-replicas"
"""On a child: the groups that its role is to have while its revision is current, frozen when it is not any more."""
INITIAL_SUBROLE_REPLICAS_ANNOTATION: Final = PREFIX + "initial-subrole-replicas"
"""On a child: the same by sub-role, a JSON object."""
SUBROLE_REPLICAS_ANNOTATION: Final = PREFIX + "subrole-replicas"
"""On a child: how spec.replicas divides over sub-roles, a JSON object."""
SUBROLE_PLAN_ANNOTATION: Final = PREFIX + "subrole-plan"
"""On a child: the sub-role counts that it is on its way to, a JSON object."""
SUBROLE_VICTIM_ANNOTATION: Final = PREFIX + "subrole-victim"
"""On a leader in Hash mode that is the next to go: the deletion cost that it had before it was marked, if any."""
SCALE_DOWN_PENDING_ANNOTATION: Final = PREFIX + "scale-down-pending"
"""`true` on a child from a scale-down until growth safely reverses it."""
REVISION_HASH_VERSION_ANNOTATION: Final = PREFIX + "revision-hash-version"
"""On the set: which algorithm its revisions are hashed with; absent for sets of before there were two."""
HASH_VERSION: Final = "v2"

# Environment (50 §3) ------------------------------------------------------------------------------------------------

ENV_NAME: Final = "DISAGGREGATEDSET_NAME"
ENV_ROLE: Final = "DISAGGREGATEDSET_ROLE"
ENV_SLICE: Final = "DISAGGREGATEDSET_SLICE"
ENV_REVISION: Final = "DISAGGREGATEDSET_REVISION"

# Enumerations (50 §1.1) ---------------------------------------------------------------------------------------------

SCALING_STATIC: Final = "Static"
SCALING_EXTERNAL: Final = "External"
SCALING_MODES: Final = (SCALING_STATIC, SCALING_EXTERNAL)

ROLLOUT_COUPLED: Final = "RolloutCoupled"
ADVANCE_ROLLOUT: Final = "AdvanceRollout"
SCALING_POLICIES: Final = (ROLLOUT_COUPLED, ADVANCE_ROLLOUT)

PLACEMENT_NONE: Final = "None"
PLACEMENT_EXCLUSIVE_SLICE: Final = "ExclusiveSlice"
PLACEMENT_EXCLUSIVE_TOPOLOGY: Final = "ExclusiveTopology"
PLACEMENT_TYPES: Final = (PLACEMENT_NONE, PLACEMENT_EXCLUSIVE_SLICE, PLACEMENT_EXCLUSIVE_TOPOLOGY)

# Conditions (50 §2, §16) --------------------------------------------------------------------------------------------

CONDITION_AVAILABLE: Final = names.CONDITION_AVAILABLE
CONDITION_PROGRESSING: Final = names.CONDITION_PROGRESSING
CONDITION_SUBROLES_ASSIGNED: Final = "SubRolesAssigned"
CONDITION_READY: Final = "Ready"
"""Of a scaler."""

REASON_ALL_ROLES_READY: Final = "AllRolesReady"
REASON_ROLLOUT_IN_PROGRESS: Final = "RolloutInProgress"
REASON_TARGETS_UNRESOLVED: Final = "ReplicaTargetsUnresolved"
REASON_BOUND: Final = "Bound"
REASON_GROUPS_ASSIGNED: Final = "AllGroupsAssigned"
REASON_GROUPS_UNASSIGNED: Final = "GroupsUnassigned"

MESSAGE_ALL_ROLES_READY: Final = (
    "All roles have reached their desired replica count, ready and updated to the current revision"
)
MESSAGE_ROLLOUT_IN_PROGRESS: Final = (
    "Not all roles have reached their desired replica count, ready and updated to the current revision"
)
MESSAGE_TARGETS_UNRESOLVED: Final = "DisaggregatedSetRoleScaler could not be created or adopted for roles: {roles}"
MESSAGE_GROUPS_ASSIGNED: Final = "Every group of every role with subRoles is assigned to one of them"
MESSAGE_GROUPS_UNASSIGNED: Final = "Groups without a sub-role that all their pods agree on: {groups}"
MESSAGE_BOUND: Final = "Scaler bound to a live DisaggregatedSet role"

# Events (50 §17) ----------------------------------------------------------------------------------------------------

EVENT_ROLLING_UPDATE_STARTED: Final = "RollingUpdateStarted"
EVENT_ROLLING_UPDATE_COMPLETED: Final = "RollingUpdateCompleted"
EVENT_SCALING_UP: Final = "ScalingUp"
EVENT_SCALING_DOWN: Final = "ScalingDown"
EVENT_FAILED_CREATE: Final = names.EVENT_FAILED_CREATE
"""Of a child, also where somebody else has its name."""
EVENT_FAILED_UPDATE: Final = names.EVENT_FAILED_UPDATE
"""Of a change of a child."""
EVENT_LWS_DELETED: Final = "LWSDeleted"
EVENT_BOOTSTRAP_SURGE: Final = "BootstrapSurge"
EVENT_AVAILABILITY_FALLBACK: Final = "AvailabilityFallback"
EVENT_REVISION_DRAIN_BLOCKED: Final = "RevisionDrainBlocked"
EVENT_INITIAL_REPLICAS_MISSING: Final = "InitialReplicasMissing"
EVENT_SCALER_CREATED: Final = "ScalerCreated"
EVENT_SCALER_DELETED: Final = "ScalerDeleted"
EVENT_SCALER_CONFLICT: Final = "ScalerConflict"

ACTION_CREATE: Final = names.ACTION_CREATE
ACTION_UPDATE: Final = names.ACTION_UPDATE
ACTION_DELETE: Final = names.ACTION_DELETE
ACTION_BOOTSTRAP: Final = "Bootstrap"
ACTION_RELEASE_CAPACITY: Final = "ReleaseCapacity"
ACTION_WAIT: Final = "Wait"
ACTION_RECOVER: Final = "Recover"
ACTION_CONFLICT: Final = "Conflict"

# Limits and defaults (50 §1.1, §7, §11) -----------------------------------------------------------------------------

MIN_ROLES: Final = 1
MAX_ROLES: Final = 10
MAX_SUBROLES: Final = 32
MIN_SLICES: Final = 1
MAX_SLICES: Final = 100
DEFAULT_SLICES: Final = 1
DEFAULT_SCALER_REPLICAS: Final = 0
SCALER_SEED: Final = 1
"""Groups that a new scaler asks for where none exist: with 0 a stock HPA would be disabled."""
MAX_SCALER_NAME: Final = 253
ROLE_NAME_PATTERN: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
MAX_ROLE_NAME: Final = 63
REVISION_LENGTH: Final = 8
WAIT_SECONDS: Final = 1.0
"""How long a pass waits that cannot go on with what it sees."""
UNSCHEDULABLE_SECONDS: Final = 60.0
"""How long a pod of the target must have found no node before capacity is released for it (50 §7.4)."""

# Webhook (50 §19) ---------------------------------------------------------------------------------------------------

VALIDATE_PATH: Final = "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset"
VALIDATE_WEBHOOK: Final = "vdisaggregatedset.kb.io"

MESSAGE_ALL_OR_NOTHING: Final = (
    "replicas must be zero for all non-External unpartitioned roles "
    "or non-zero for all non-External unpartitioned roles"
)
MESSAGE_EXTERNAL_REPLICAS: Final = "replicas must be omitted when scaling.mode is External"


def scaler_name(set_name: str, role: str, subrole: str = "") -> str:
    """The name of the scaler of a role, or of a sub-role (50 §3)."""
    return f"{set_name}-{role}-{subrole}" if subrole else f"{set_name}-{role}"
