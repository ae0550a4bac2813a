"""What `spec.scheduling` of a set says: the level at which pods are scheduled together, and how. Pure.

Specification: 10 §2.6, 40 §4. What is missing or of a wrong type counts as not set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lwskit.api import names

BASIC: Final = "basic"
GANG: Final = "gang"
FIELDS: Final = ("schedulingPolicy", "schedulingConstraints", "disruptionMode")
"""The fields that every level has; one that is set, even to an empty object, selects its level."""
ROLES: Final = (names.ROLE_LEADER, names.ROLE_WORKER)

_DEFAULT_POLICY: Final = {names.LEVEL_LWS: BASIC, names.LEVEL_REPLICA: GANG, names.LEVEL_ROLE: BASIC}


def part(value: Any, *path: str) -> Mapping[str, Any] | None:
    """The object at a path of fields; None where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None


def active_levels(scheduling: Any) -> list[str]:
    """The levels that `spec.scheduling` selects, of which there must be exactly one. Specification: 10 §2.6.

    An object that selects none means the groups.
    """
    replica = part(scheduling, "replica")
    roles = any(part(replica, role) is not None for role in ROLES)
    active = {
        names.LEVEL_LWS: _has_fields(scheduling),
        names.LEVEL_REPLICA: _has_fields(replica) or (replica is not None and not roles),
        names.LEVEL_ROLE: roles,
    }
    return [level for level in names.SCHEDULING_LEVELS if active[level]] or [names.LEVEL_REPLICA]


def _has_fields(value: Any) -> bool:
    return any(part(value, field) is not None for field in FIELDS)


def parts_of(level: str) -> tuple[tuple[str, ...], ...]:
    """The paths within `spec.scheduling` of the objects that hold a level's fields: two for roles, else one."""
    if level == names.LEVEL_ROLE:
        return tuple(("replica", role) for role in ROLES)
    return (("replica",),) if level == names.LEVEL_REPLICA else ((),)


def policy_of(settings: Any, level: str) -> str:
    """`gang` or `basic`: the policy of one of a level's objects, the level's default if it has none."""
    policy = part(settings, "schedulingPolicy")
    if part(policy, GANG) is not None:
        return GANG
    return BASIC if part(policy, BASIC) is not None else _DEFAULT_POLICY[level]


def topology_keys(settings: Any) -> list[str]:
    """The node label keys whose domain the pods of one of a level's objects share."""
    constraints = part(settings, "schedulingConstraints")
    entries = constraints.get("topology") if constraints is not None else None
    return [
        entry["key"]
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, Mapping) and isinstance(entry.get("key"), str)
    ]


def members_of(role: str, size: int) -> int:
    """How many pods of a group have a role."""
    return 1 if role == names.ROLE_LEADER else size - 1
