"""Every name, enumeration value and limit of the LeaderWorkerSet API, written once.

Specification: 10 §1, §2.7, §4, §6 and 20 §8, §9, §12. Everything else imports these.
"""

from __future__ import annotations

from typing import Final

# The kind -----------------------------------------------------------------------------------------------------------

GROUP: Final = "leaderworkerset.x-k8s.io"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "LeaderWorkerSet"
LIST_KIND: Final = "LeaderWorkerSetList"
PLURAL: Final = "leaderworkersets"
SINGULAR: Final = "leaderworkerset"
SHORT_NAMES: Final = ("lws",)
CRD_NAME: Final = f"{PLURAL}.{GROUP}"

FIELD_MANAGER: Final = "lws"
"""The field manager of server-side applies (20 §1)."""

EVENT_CONTROLLER: Final = "leaderworkerset"
"""The reporting controller of the events of both reconcilers (20 §9)."""

# Labels (10 §4.1) ---------------------------------------------------------------------------------------------------

PREFIX: Final = "leaderworkerset.sigs.k8s.io/"
"""What the keys of labels, annotations, gates and finalizers begin with."""

NAME_LABEL: Final = PREFIX + "name"
"""Name of the set, on every object that belongs to it."""

REVISION_LABEL: Final = PREFIX + "template-revision-hash"
"""Key of the revision that an object was made from."""

WORKER_INDEX_LABEL: Final = PREFIX + "worker-index"
"""Place of a pod in its group; `LEADER_INDEX` is the leader."""

GROUP_INDEX_LABEL: Final = PREFIX + "group-index"
"""Which group of its set: the ordinal, or the group key in Hash mode."""

GROUP_KEY_LABEL: Final = PREFIX + "group-key"
"""Key of the group that is unique in the namespace: 40 hexadecimal digits."""

SUBGROUP_INDEX_LABEL: Final = PREFIX + "subgroup-index"
"""Which sub-group of its group a pod is in."""

SUBGROUP_KEY_LABEL: Final = PREFIX + "subgroup-key"
"""Key of the sub-group that is unique in the namespace: 40 hexadecimal digits."""

ROLE_LABEL: Final = PREFIX + "role"
"""`ROLE_LEADER` or `ROLE_WORKER`, on the workloads of a set."""

SCHEDULING_LEVEL_LABEL: Final = PREFIX + "scheduling-level"
"""Level of a PodGroup: lws, replica or role."""

LEADER_INDEX: Final = "0"
"""The worker index of a leader."""

ROLE_LEADER: Final = "leader"
ROLE_WORKER: Final = "worker"

# Annotations (10 §4.2) ----------------------------------------------------------------------------------------------

SIZE_ANNOTATION: Final = PREFIX + "size"
"""Pods of the group, leader included; on every pod of a set."""

REPLICAS_ANNOTATION: Final = PREFIX + "replicas"
"""spec.replicas of the set without surge, on the leader workload."""

LEADER_NAME_ANNOTATION: Final = PREFIX + "leader-name"
"""Name of the leader pod, on worker pods."""

LEADER_ADDRESS_ANNOTATION: Final = PREFIX + "leader-address"
"""Address of the leader, on worker pods: host.subdomain.namespace."""

EXCLUSIVE_TOPOLOGY_ANNOTATION: Final = PREFIX + "exclusive-topology"
"""Node label key whose domain a group has for itself; set by the user on the set, copied to pods."""

SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION: Final = PREFIX + "subgroup-exclusive-topology"
"""Node label key whose domain a sub-group has for itself; set by the user on the set, copied to pods."""

SUBGROUP_SIZE_ANNOTATION: Final = PREFIX + "subgroup-size"
"""Pods of a sub-group, on pods of sets with a sub-group policy."""

SUBGROUP_POLICY_TYPE_ANNOTATION: Final = PREFIX + "subgroup-policy-type"
"""Type of the sub-group policy, on pods of sets with one."""

SUBDOMAIN_POLICY_ANNOTATION: Final = PREFIX + "subdomainPolicy"
"""`UniquePerReplica`, on leader pods of sets with that policy."""

LEADER_REQUESTS_TPUS_ANNOTATION: Final = PREFIX + "leader-requests-tpus"
"""`true` on worker pods whose leader requests TPUs."""

RECREATE_AFTER_START_ANNOTATION: Final = PREFIX + "experimental-recreate-group-after-start"
"""Its mere presence on a set has the effect of restart policy RecreateGroupAfterStart."""

GROUP_RESTART_COUNTS_ANNOTATION: Final = PREFIX + "group-restart-counts"
"""JSON object on the set: `revision/groupIndex` to the number of restarts."""

GROUP_RESTART_LEADERS_ANNOTATION: Final = PREFIX + "group-restart-leaders"
"""JSON object on the set, ours alone: `revision/groupIndex` to the UID of the leader that the last count is for."""

GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION: Final = PREFIX + "group-restart-budget-exhausted"
"""`true` on the leader of a group that used up its restarts."""

GROUP_RECREATE_PENDING_ANNOTATION: Final = PREFIX + "group-recreate-pending"
"""On a leader whose recreation waits for the back-off to end: the name of the pod that failed (20 §12.1)."""

RECOVER_ANNOTATION: Final = PREFIX + "recover"
"""`true`, set by the user on an exhausted leader, gives its group a fresh budget."""

GROUP_IDENTITY_ANNOTATION: Final = PREFIX + "group-identity"
"""`Hash` on pods of sets with that identity."""

POD_TERMINATION_POLICY_ANNOTATION: Final = PREFIX + "pod-termination-policy"
"""The pod termination policy, on leader pods."""

WORKLOAD_AWARE_SCHEDULING_ANNOTATION: Final = PREFIX + "workload-aware-scheduling"
"""Level at which pods of a set are scheduled together: lws, replica, role or the old true."""

WORKLOAD_NAME_ANNOTATION: Final = PREFIX + "workload-name"
"""Name of the Workload, with the incarnation of the group after a dot on Ordinal leaders."""

GROUP_TEMPLATE_NAME_ANNOTATION: Final = "scheduling.k8s.io/group-template-name"
"""Name of the template in a Workload that a parent of the set owns."""

PARENT_COMPOSITE_POD_GROUP_ANNOTATION: Final = "scheduling.k8s.io/parent-compositepodgroup"
"""Name of the CompositePodGroup of a parent of the set."""

VOLCANO_GROUP_NAME_ANNOTATION: Final = "scheduling.k8s.io/group-name"
"""Name of the Volcano PodGroup, on pods."""

POD_DELETION_COST_ANNOTATION: Final = "controller.kubernetes.io/pod-deletion-cost"
"""Which pods of a ReplicaSet go first, Kubernetes' own; `GATED_DELETION_COST` on Hash leaders that wait (30 §7)."""

# Finalizers, gates, conditions of pods (10 §4.3) ----------------------------------------------------------------------

GROUP_RESTART_BUDGET_FINALIZER: Final = PREFIX + "group-restart-budget-cleanup"
"""Keeps the pods of a group that used up its restarts."""

GROUP_REPLACEMENT_GATE: Final = PREFIX + "group-replacement"
"""Scheduling gate of leaders: lifted when the group may take its place."""

GATED_DELETION_COST: Final = "-100"
"""Removed before leaders that wait for nothing."""

GROUP_READY_GATE: Final = PREFIX + "group-ready"
"""Readiness gate and pod condition of leaders: the whole group is ready."""

# Environment and devices (10 §4.3) ------------------------------------------------------------------------------------

ENV_LEADER_ADDRESS: Final = "LWS_LEADER_ADDRESS"
ENV_GROUP_SIZE: Final = "LWS_GROUP_SIZE"
ENV_WORKER_INDEX: Final = "LWS_WORKER_INDEX"
ENV_TPU_WORKER_HOSTNAMES: Final = "TPU_WORKER_HOSTNAMES"
ENV_TPU_WORKER_ID: Final = "TPU_WORKER_ID"
ENV_TPU_NAME: Final = "TPU_NAME"
ENV_TPU_PROCESS_ADDRESSES: Final = "TPU_PROCESS_ADDRESSES"
ENV_TPU_PROCESS_PORT: Final = "TPU_PROCESS_PORT"
TPU_PROCESS_PORT_DEFAULT: Final = 8476
TPU_RESOURCE: Final = "google.com/tpu"

# Enumerations (10 §2.7) -----------------------------------------------------------------------------------------------

RESTART_DEFAULT: Final = "Default"
"""Deprecated spelling of None; the defaulting webhook rewrites it."""
RESTART_NONE: Final = "None"
RESTART_RECREATE_GROUP: Final = "RecreateGroupOnPodRestart"
RESTART_RECREATE_GROUP_AFTER_START: Final = "RecreateGroupAfterStart"
RESTART_POLICIES: Final = (
    RESTART_DEFAULT,
    RESTART_RECREATE_GROUP,
    RESTART_RECREATE_GROUP_AFTER_START,
    RESTART_NONE,
)

STARTUP_LEADER_CREATED: Final = "LeaderCreated"
STARTUP_LEADER_READY: Final = "LeaderReady"
STARTUP_POLICIES: Final = (STARTUP_LEADER_CREATED, STARTUP_LEADER_READY)

ROLLING_UPDATE: Final = "RollingUpdate"
ROLLOUT_STRATEGIES: Final = (ROLLING_UPDATE,)

SUBGROUP_LEADER_WORKER: Final = "LeaderWorker"
SUBGROUP_LEADER_EXCLUDED: Final = "LeaderExcluded"
SUBGROUP_POLICY_TYPES: Final = (SUBGROUP_LEADER_WORKER, SUBGROUP_LEADER_EXCLUDED)

SUBDOMAIN_SHARED: Final = "Shared"
SUBDOMAIN_UNIQUE_PER_REPLICA: Final = "UniquePerReplica"
SUBDOMAIN_POLICIES: Final = (SUBDOMAIN_SHARED, SUBDOMAIN_UNIQUE_PER_REPLICA)

IDENTITY_ORDINAL: Final = "Ordinal"
IDENTITY_HASH: Final = "Hash"
GROUP_IDENTITIES: Final = (IDENTITY_ORDINAL, IDENTITY_HASH)

REPLACEMENT_IMMEDIATE: Final = "Immediate"
REPLACEMENT_POST_TERMINATION: Final = "PostTermination"
GROUP_REPLACEMENT_POLICIES: Final = (REPLACEMENT_IMMEDIATE, REPLACEMENT_POST_TERMINATION)

TERMINATION_DEFAULT: Final = "Default"
TERMINATION_PARALLEL: Final = "Parallel"
POD_TERMINATION_POLICIES: Final = (TERMINATION_DEFAULT, TERMINATION_PARALLEL)

# Scheduling of pods together (10 §2.6, §6.6; 40 §1, §4) ---------------------------------------------------------------

LEVEL_LWS: Final = "lws"
LEVEL_REPLICA: Final = "replica"
LEVEL_ROLE: Final = "role"
SCHEDULING_LEVELS: Final = (LEVEL_LWS, LEVEL_REPLICA, LEVEL_ROLE)
"""What is scheduled together: the pods of the whole set, of each group, or of each role of each group."""
LEVEL_REPLICA_LEGACY: Final = "true"
"""The older spelling of the level replica in the annotation of pods."""

PROVIDER_KUBERNETES: Final = "kubernetes"
PROVIDER_VOLCANO: Final = "volcano"
SCHEDULER_PROVIDERS: Final = (PROVIDER_KUBERNETES, PROVIDER_VOLCANO)

WORKLOAD_AWARE_SCHEDULING_GATE: Final = "WorkloadAwareScheduling"
"""The feature gate that `spec.scheduling` needs."""

SCHEDULING_API_VERSION: Final = "scheduling.k8s.io/v1beta1"
SCHEDULING_KINDS: Final = ("Workload", "PodGroup")
"""Kinds of that version that the provider `kubernetes` writes."""

# Conditions (10 §3, 20 §8.3) ------------------------------------------------------------------------------------------

CONDITION_AVAILABLE: Final = "Available"
CONDITION_PROGRESSING: Final = "Progressing"
CONDITION_UPDATE_IN_PROGRESS: Final = "UpdateInProgress"
CONDITION_DEGRADED: Final = "Degraded"
CONDITION_WORKLOAD_SCHEDULING_CREATED: Final = "WorkloadSchedulingCreated"

REASON_ALL_GROUPS_READY: Final = "AllGroupsReady"
REASON_GROUPS_PROGRESSING: Final = "GroupsProgressing"
REASON_WORKERS_READY: Final = "WorkerStatefulSetReady"
REASON_WORKERS_NOT_READY: Final = "WorkerStatefulSetNotReady"
"""Of the condition `GROUP_READY_GATE` of a leader (30 §9)."""
REASON_GROUPS_UPDATING: Final = "GroupsUpdating"
REASON_RESTART_BUDGET_EXCEEDED: Final = "ReplicaRestartBudgetExceeded"
REASON_OTHER_LEADER_WORKLOAD: Final = "OtherLeaderWorkload"
REASON_AS_EXPECTED: Final = "AsExpected"

MESSAGE_AVAILABLE: Final = "All replicas are ready"
MESSAGE_NOT_AVAILABLE: Final = "Not all replicas are ready"
MESSAGE_PROGRESSING: Final = "Replicas are progressing"
MESSAGE_UPDATE_IN_PROGRESS: Final = "Rolling Upgrade is in progress"
MESSAGE_NO_UPDATE_IN_PROGRESS: Final = "No rolling update is in progress"
MESSAGE_DEGRADED: Final = "Automatic recovery is stopped for one or more replicas"
MESSAGE_NOT_DEGRADED: Final = "No replica has exhausted its restart budget"

# Events (20 §9) -------------------------------------------------------------------------------------------------------

EVENT_CREATING_REVISION: Final = "CreatingRevision"
EVENT_GROUPS_PROGRESSING: Final = REASON_GROUPS_PROGRESSING
EVENT_GROUPS_UPDATING: Final = REASON_GROUPS_UPDATING
EVENT_FAILED_CREATE: Final = "FailedCreate"
EVENT_FAILED_UPDATE: Final = "FailedUpdate"
EVENT_RECREATE_GROUP: Final = "RecreateGroup"
EVENT_RESTART_BUDGET_EXCEEDED: Final = REASON_RESTART_BUDGET_EXCEEDED
EVENT_GROUP_RESTART_BACKOFF: Final = "GroupRestartBackoff"
EVENT_RESTART_COUNTS_UNREADABLE: Final = "RestartCountsUnreadable"
EVENT_GROUP_REPLACEMENT_DEFERRED: Final = "GroupReplacementDeferred"
EVENT_GROUP_REPLACEMENT_ADMITTED: Final = "GroupReplacementAdmitted"
EVENT_UNEXPECTED_POD_GROUP_OWNER: Final = "UnexpectedPodGroupOwner"

ACTION_CREATE: Final = "Create"
ACTION_UPDATE: Final = "Update"
ACTION_DELETE: Final = "Delete"

# Limits and defaults (10 §2, §6, §7; 20 §3.2, §12) --------------------------------------------------------------------

DEFAULT_REPLICAS: Final = 1
DEFAULT_SIZE: Final = 1
DEFAULT_PARTITION: Final = 0
DEFAULT_MAX_UNAVAILABLE: Final = 1
DEFAULT_MAX_SURGE: Final = 0
DEFAULT_BACKOFF_BASE_SECONDS: Final = 10
DEFAULT_BACKOFF_CAP_SECONDS: Final = 300

MAX_REPLICAS: Final = 1_000_000
MAX_PODS: Final = 2_147_483_647
"""Greatest product of replicas and size."""
MAX_RESOURCE_CLAIMS: Final = 4
"""Entries of a role's `resourceClaims` under `spec.scheduling`."""
MAX_TOPOLOGY_CONSTRAINTS: Final = 1
"""Entries of `topology` in scheduling constraints."""
MAX_NAME_LENGTH: Final = 63
HASH_KEY_PREFIX: Final = 8
"""Characters of a group key in the host name of a Hash leader."""
HASH_KEY_SOURCE: Final = 16
"""Random characters that the key of a Hash group is made from."""
SAFE_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of random names: no vowels, and none that are mistaken for each other."""
STATEFUL_SET_HASH_SUFFIX: Final = 11
"""What the label `controller-revision-hash` of a StatefulSet's pods adds to its name at most: a dash and a hash."""
HASH_LEADER_SUFFIX: Final = 9
"""Characters that a Hash leader's host name adds to the name of its set."""
HASH_WORKER_SUFFIX: Final = 20
"""The same, with the revision label of the pods of a worker StatefulSet."""
MAX_REVISION_PREFIX: Final = 220
"""Characters of the set's name that the name of a revision keeps."""
INT32_MAX: Final = 2_147_483_647
INT32_MIN: Final = -2_147_483_648
INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

# Webhooks (10 §12) ----------------------------------------------------------------------------------------------------

MUTATE_LWS_PATH: Final = "/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
VALIDATE_LWS_PATH: Final = "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
MUTATE_POD_PATH: Final = "/mutate--v1-pod"
VALIDATE_POD_PATH: Final = "/validate--v1-pod"
MUTATE_LWS_WEBHOOK: Final = "mleaderworkerset.kb.io"
VALIDATE_LWS_WEBHOOK: Final = "vleaderworkerset.kb.io"
MUTATE_POD_WEBHOOK: Final = "mpod.kb.io"
VALIDATE_POD_WEBHOOK: Final = "vpod.kb.io"
MUTATING_CONFIGURATION: Final = "lws-mutating-webhook-configuration"
VALIDATING_CONFIGURATION: Final = "lws-validating-webhook-configuration"
