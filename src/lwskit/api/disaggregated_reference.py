"""What is to be known of each name of `disaggregated_names`, as `reference` has it for LeaderWorkerSets.

Specification: 50 §1–3, §13. Parts of the page docs/names.md are made from this.
"""

from __future__ import annotations

from typing import Final

from lwskit.api import disaggregated_names as names
from lwskit.api.reference import ADMISSION, EARLIER, NEWEST, USER, Entry

CONTROLLER: Final = "DisaggregatedSet controller"
_CHILDREN: Final = "LeaderWorkerSets of roles"
_CHILDREN_AND_PODS: Final = f"{_CHILDREN}, their pods"
_ALL: Final = f"{_CHILDREN_AND_PODS}, scalers"
_PARTED: Final = f"{_CHILDREN} with sub-roles"
_CONTAINERS: Final = "all containers and init containers of a role's pods"
_SELECTORS: Final = "selectors"
_BOTH: Final = f"{CONTROLLER}, {_SELECTORS}"

LABELS: Final = (
    Entry(names.NAME_LABEL, _ALL, "name of the set", CONTROLLER, f"{_BOTH}, {ADMISSION}"),
    Entry(names.ROLE_LABEL, _ALL, "name of the role", CONTROLLER, f"{_BOTH}, {ADMISSION}"),
    Entry(names.SLICE_LABEL, _CHILDREN_AND_PODS, "number of the slice, from 0", CONTROLLER, f"{_BOTH}, {ADMISSION}"),
    Entry(
        names.REVISION_LABEL,
        _CHILDREN_AND_PODS,
        f"revision of the set, {names.REVISION_LENGTH} hexadecimal digits",
        CONTROLLER,
        f"{_BOTH}, {ADMISSION}",
    ),
    Entry(
        names.SUBROLE_LABEL,
        "pods of groups with a sub-role, scalers of sub-roles",
        "name of the sub-role; refused in what users write",
        CONTROLLER,
        _BOTH,
        NEWEST,
    ),
    Entry(names.APP_LABEL, _CHILDREN_AND_PODS, "`<set>-<slice>-<role>`, whatever a user wrote", CONTROLLER, _SELECTORS),
)

ANNOTATIONS: Final = (
    Entry(
        names.INITIAL_REPLICAS_ANNOTATION,
        _CHILDREN,
        "groups that the role is to have; frozen when the revision is not the newest any more",
        CONTROLLER,
        CONTROLLER,
    ),
    Entry(
        names.INITIAL_SUBROLE_REPLICAS_ANNOTATION,
        _PARTED,
        "JSON object: the same by sub-role",
        CONTROLLER,
        CONTROLLER,
        NEWEST,
    ),
    Entry(
        names.SUBROLE_REPLICAS_ANNOTATION,
        _PARTED,
        "JSON object: sub-role to groups, `spec.replicas` in all",
        CONTROLLER,
        CONTROLLER,
        NEWEST,
    ),
    Entry(
        names.SUBROLE_PLAN_ANNOTATION,
        _PARTED,
        "JSON object: a change of these counts that is not done yet",
        CONTROLLER,
        CONTROLLER,
        NEWEST,
    ),
    Entry(
        names.SUBROLE_VICTIM_ANNOTATION,
        "leader pods in Hash mode that go next",
        "the pod deletion cost that it had before, if any",
        CONTROLLER,
        CONTROLLER,
        NEWEST,
    ),
    Entry(
        names.SCALE_DOWN_PENDING_ANNOTATION,
        _CHILDREN,
        "`true` from a scale-down until growth reverses it",
        CONTROLLER,
        CONTROLLER,
        NEWEST,
    ),
    Entry(
        names.REVISION_HASH_VERSION_ANNOTATION,
        "DisaggregatedSets",
        f"`{names.HASH_VERSION}`; none on sets of before there were two",
        CONTROLLER,
        CONTROLLER,
        NEWEST,
    ),
)

VARIABLES: Final = (
    Entry(names.ENV_NAME, _CONTAINERS, "name of the set", ADMISSION, "programs", NEWEST),
    Entry(names.ENV_ROLE, _CONTAINERS, "name of the role", ADMISSION, "programs", NEWEST),
    Entry(names.ENV_SLICE, _CONTAINERS, "number of the slice", ADMISSION, "programs", NEWEST),
    Entry(names.ENV_REVISION, _CONTAINERS, "revision of the set", ADMISSION, "programs", NEWEST),
)

CONDITIONS: Final = (
    Entry(
        names.CONDITION_AVAILABLE,
        "DisaggregatedSets",
        "all roles have their groups, ready and of the newest revision",
        CONTROLLER,
        USER,
        EARLIER,
    ),
    Entry(names.CONDITION_PROGRESSING, "DisaggregatedSets", "not yet", CONTROLLER, USER),
    Entry(
        names.CONDITION_SUBROLES_ASSIGNED,
        "DisaggregatedSets with sub-roles",
        "every group has a sub-role",
        CONTROLLER,
        USER,
        NEWEST,
    ),
    Entry(names.CONDITION_READY, "scalers", "the scaler counts for its role", CONTROLLER, USER),
)
