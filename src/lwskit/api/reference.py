"""What is to be known of each name of `names`: on which objects, with which value, who writes and who reads it.

Specification: 10 §4, 20 §12, 30 §2, 40. The page docs/names.md is made from this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lwskit.api import names

EARLIER: Final = "0.10"
"""In v0.10 or before."""
NEWEST: Final = "1.0"

USER: Final = "user"
PARENT: Final = "user or a parent's controller"
SETS: Final = "set controller"
GROUPS: Final = "group controller"
BOTH: Final = "set and group controller"
ADMISSION: Final = "admission of pods"
CONTROLLERS: Final = f"{BOTH}, {ADMISSION}"
SCHEDULING: Final = "scheduler provider"
NOT_YET: Final = "(not yet)"
"""Marks what belongs to `spec.scheduling`, which this version does not serve."""

_WORKLOADS: Final = "StatefulSets, Deployments, their pods"
_PODS: Final = "all pods"
_LEADERS: Final = "leader pods"
_WORKERS: Final = "worker pods"
_SUBGROUPED: Final = "pods of sets with sub-groups"
_IN_SUBGROUPS: Final = f"{_SUBGROUPED}; not leaders with `{names.SUBGROUP_LEADER_EXCLUDED}`"
_TPU: Final = "containers that ask for TPUs; with sub-groups only the first of a pod"
_CONTAINERS: Final = "all containers and init containers"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name: its text, the objects it is on, its value, who writes and who reads it, and since which version."""

    name: str
    on: str
    value: str
    written: str
    read: str
    since: str = EARLIER


LABELS: Final = (
    Entry(
        names.NAME_LABEL,
        f"everything that belongs to a set: StatefulSets, Deployments, pods, Services, revisions, PodGroups {NOT_YET}",
        "name of the set",
        CONTROLLERS,
        f"{BOTH}, {ADMISSION}, selectors of Services and StatefulSets",
    ),
    Entry(names.REVISION_LABEL, f"{_WORKLOADS}, revisions, PodGroups {NOT_YET}", "key of the revision", BOTH, BOTH),
    Entry(
        names.WORKER_INDEX_LABEL,
        _PODS,
        f"`{names.LEADER_INDEX}` on leaders, 1 to size - 1 on workers",
        f"{SETS} (leaders), {ADMISSION} (workers)",
        f"{BOTH}, {ADMISSION}, selector of leaders",
    ),
    Entry(
        names.GROUP_INDEX_LABEL,
        f"pods, StatefulSets of workers, Services of one group, PodGroups {NOT_YET}",
        "ordinal of the group; the group key in Hash mode",
        f"{ADMISSION} (leaders), {GROUPS} (workers)",
        f"{BOTH}, {ADMISSION}, selectors",
    ),
    Entry(
        names.GROUP_KEY_LABEL,
        "pods, StatefulSets of workers",
        "40 hexadecimal digits, unique in the namespace",
        f"{ADMISSION} (leaders), {GROUPS} (workers)",
        f"{GROUPS}, selectors, terms of exclusive placement",
    ),
    Entry(names.SUBGROUP_INDEX_LABEL, _IN_SUBGROUPS, "number of the sub-group", ADMISSION, f"{ADMISSION} (TPUs)"),
    Entry(
        names.SUBGROUP_KEY_LABEL,
        _IN_SUBGROUPS,
        "40 hexadecimal digits, unique in the namespace",
        ADMISSION,
        "terms of exclusive placement",
    ),
    Entry(
        names.ROLE_LABEL,
        f"StatefulSets and Deployments, not their pods; PodGroups of one role {NOT_YET}",
        f"`{names.ROLE_LEADER}` or `{names.ROLE_WORKER}`",
        BOTH,
        "people and other programs",
        NEWEST,
    ),
    Entry(
        names.SCHEDULING_LEVEL_LABEL,
        "PodGroups",
        ", ".join(f"`{level}`" for level in names.SCHEDULING_LEVELS),
        f"{SCHEDULING} {NOT_YET}",
        "people and other programs",
        NEWEST,
    ),
)

ANNOTATIONS: Final = (
    Entry(
        names.EXCLUSIVE_TOPOLOGY_ANNOTATION,
        "sets, copied to pods",
        "key of a node label, in whose domain a group is alone",
        USER,
        f"{ADMISSION} (leaders), {GROUPS} (workers follow)",
    ),
    Entry(
        names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION,
        "sets, copied to pods of sets with sub-groups",
        "key of a node label, in whose domain a sub-group is alone",
        USER,
        ADMISSION,
    ),
    Entry(
        names.RECREATE_AFTER_START_ANNOTATION,
        "sets",
        f"any; being there means `{names.RESTART_RECREATE_GROUP_AFTER_START}`",
        USER,
        GROUPS,
    ),
    Entry(names.SIZE_ANNOTATION, _PODS, "pods of the group", BOTH, ADMISSION),
    Entry(
        names.REPLICAS_ANNOTATION,
        "workload of the leaders",
        "`spec.replicas`, without surge",
        SETS,
        SETS,
    ),
    Entry(names.LEADER_NAME_ANNOTATION, _WORKERS, "name of the leader pod", GROUPS, f"{GROUPS}, {ADMISSION}"),
    Entry(
        names.LEADER_ADDRESS_ANNOTATION,
        _WORKERS,
        "host, subdomain and namespace of the leader, with dots",
        GROUPS,
        ADMISSION,
        NEWEST,
    ),
    Entry(names.SUBGROUP_SIZE_ANNOTATION, _SUBGROUPED, "pods of a sub-group", BOTH, ADMISSION),
    Entry(
        names.SUBGROUP_POLICY_TYPE_ANNOTATION,
        _SUBGROUPED,
        " or ".join(f"`{kind}`" for kind in names.SUBGROUP_POLICY_TYPES),
        BOTH,
        ADMISSION,
    ),
    Entry(
        names.SUBDOMAIN_POLICY_ANNOTATION,
        _LEADERS,
        f"`{names.SUBDOMAIN_UNIQUE_PER_REPLICA}`, if that is the policy",
        SETS,
        ADMISSION,
    ),
    Entry(names.LEADER_REQUESTS_TPUS_ANNOTATION, _WORKERS, "`true`, if the leader does", GROUPS, ADMISSION),
    Entry(
        names.GROUP_RESTART_COUNTS_ANNOTATION,
        "sets",
        "JSON object: `<revision>/<group index>` to the number of restarts",
        f"{GROUPS}; {SETS} (drops what is gone)",
        BOTH,
        NEWEST,
    ),
    Entry(
        names.GROUP_RESTART_LEADERS_ANNOTATION,
        "sets; of this implementation alone",
        "JSON object: `<revision>/<group index>` to the UID of the leader that was counted last",
        f"{GROUPS}; {SETS} (drops what is gone)",
        GROUPS,
        NEWEST,
    ),
    Entry(
        names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION,
        "leader pods of groups without a restart left",
        "`true`",
        GROUPS,
        BOTH,
        NEWEST,
    ),
    Entry(
        names.GROUP_RECREATE_PENDING_ANNOTATION,
        "leader pods of groups that wait for the end of a back-off",
        "name of the pod that failed",
        GROUPS,
        GROUPS,
        NEWEST,
    ),
    Entry(
        names.RECOVER_ANNOTATION,
        "leader pods of groups without a restart left",
        "`true`, set while the leader terminates, gives the group a fresh budget",
        USER,
        GROUPS,
        NEWEST,
    ),
    Entry(
        names.GROUP_IDENTITY_ANNOTATION,
        "pods in Hash mode",
        f"`{names.IDENTITY_HASH}`",
        BOTH,
        f"{GROUPS}, {ADMISSION}",
        NEWEST,
    ),
    Entry(
        names.POD_TERMINATION_POLICY_ANNOTATION,
        _LEADERS,
        " or ".join(f"`{policy}`" for policy in names.POD_TERMINATION_POLICIES),
        SETS,
        GROUPS,
        NEWEST,
    ),
    Entry(
        names.WORKLOAD_AWARE_SCHEDULING_ANNOTATION,
        "pods of sets with `spec.scheduling`",
        f"level: {', '.join(f'`{level}`' for level in names.SCHEDULING_LEVELS)}; "
        f"`{names.LEVEL_REPLICA_LEGACY}` of old means `{names.LEVEL_REPLICA}`",
        f"{BOTH} {NOT_YET}",
        f"{GROUPS}, {ADMISSION}",
        NEWEST,
    ),
    Entry(
        names.WORKLOAD_NAME_ANNOTATION,
        "pods of sets with `spec.scheduling`",
        "name of the Workload; on Ordinal leaders a dot and the incarnation of the group follow",
        f"{CONTROLLERS} {NOT_YET}",
        f"{GROUPS}, {ADMISSION}",
        NEWEST,
    ),
    Entry(
        names.GROUP_TEMPLATE_NAME_ANNOTATION,
        "sets",
        "template in a Workload that a parent of the set owns",
        PARENT,
        f"{SCHEDULING} {NOT_YET}",
        NEWEST,
    ),
    Entry(
        names.PARENT_COMPOSITE_POD_GROUP_ANNOTATION,
        "sets",
        "name of the parent's CompositePodGroup",
        PARENT,
        f"{SCHEDULING} {NOT_YET}",
        NEWEST,
    ),
    Entry(
        names.VOLCANO_GROUP_NAME_ANNOTATION,
        "pods, with the Volcano provider",
        "name of the PodGroup: `<set>-<group index>-<revision>`",
        f"{ADMISSION} {NOT_YET}",
        "Volcano",
    ),
    Entry(
        names.POD_DELETION_COST_ANNOTATION,
        "leader pods in Hash mode that wait at their gate",
        f"`{names.GATED_DELETION_COST}`: they are removed first",
        f"{ADMISSION}, {GROUPS}",
        "ReplicaSet controller",
        NEWEST,
    ),
)

VARIABLES: Final = (
    Entry(names.ENV_LEADER_ADDRESS, _CONTAINERS, "host name of the leader in the cluster", ADMISSION, "programs"),
    Entry(names.ENV_GROUP_SIZE, _CONTAINERS, "pods of the group", ADMISSION, "programs"),
    Entry(names.ENV_WORKER_INDEX, _CONTAINERS, "place in the group, 0 for the leader", ADMISSION, "programs"),
    Entry(names.ENV_TPU_WORKER_HOSTNAMES, _TPU, "hosts that work together, with commas", ADMISSION, "libtpu"),
    Entry(names.ENV_TPU_WORKER_ID, _TPU, "place among these hosts", ADMISSION, "libtpu"),
    Entry(names.ENV_TPU_NAME, _TPU, "name of the leader", ADMISSION, "libtpu"),
    Entry(names.ENV_TPU_PROCESS_ADDRESSES, _TPU, "the hosts with their ports", ADMISSION, "libtpu"),
    Entry(
        names.ENV_TPU_PROCESS_PORT,
        _TPU,
        f"port, from {names.TPU_PROCESS_PORT_DEFAULT} on; a user's own stays",
        f"{ADMISSION}, or {USER}",
        f"{ADMISSION}, libtpu",
    ),
)

FINALIZERS: Final = (
    Entry(
        names.GROUP_RESTART_BUDGET_FINALIZER,
        "pods of groups without a restart left",
        "",
        GROUPS,
        "Kubernetes keeps the pods until it is gone",
        NEWEST,
    ),
)

GATES: Final = (
    Entry(
        names.GROUP_REPLACEMENT_GATE,
        "leader pods, as scheduling gate",
        "lifted when the group may take its place",
        f"{ADMISSION}; lifted by the {GROUPS}",
        "scheduler",
        NEWEST,
    ),
    Entry(
        names.GROUP_READY_GATE,
        "leader pods in Hash mode, as readiness gate and condition",
        "whether the whole group is ready",
        GROUPS,
        "Deployment controller",
        NEWEST,
    ),
)

CONDITIONS: Final = (
    Entry(names.CONDITION_AVAILABLE, "sets", "all groups are ready", SETS, USER),
    Entry(names.CONDITION_PROGRESSING, "sets", "groups are made or get ready", SETS, USER),
    Entry(names.CONDITION_UPDATE_IN_PROGRESS, "sets", "a rollout is going on", SETS, USER),
    Entry(names.CONDITION_DEGRADED, "sets", "a group has no restart left", SETS, USER, NEWEST),
    Entry(
        names.CONDITION_WORKLOAD_SCHEDULING_CREATED,
        "sets with `spec.scheduling`",
        "the objects for scheduling are there",
        f"{SETS} {NOT_YET}",
        USER,
        NEWEST,
    ),
)

FEATURES: Final = (
    Entry(
        names.WORKLOAD_AWARE_SCHEDULING_GATE,
        "the manager's configuration, `featureGates`",
        "whether sets may have `spec.scheduling`; off unless given",
        USER,
        "validation of sets",
        NEWEST,
    ),
)
