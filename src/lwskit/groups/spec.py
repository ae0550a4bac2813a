"""Reading a set's spec, with the API's defaults for what is absent. Pure.

Specification: 10 §2, §5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.api import names
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import Obj, annotations_of

_Set = Mapping[str, Any]
_DIGITS = len(str(names.INT32_MAX))
_SHOWN = 40


def is_count(text: str) -> bool:
    """Whether a text is a number as annotations, labels and percentages have it: decimal digits, no more than a count
    can have. A number of more means nothing, and one of thousands takes long to read."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def template_of(lws: _Set) -> Mapping[str, Any]:
    """`spec.leaderWorkerTemplate`."""
    return lws["spec"]["leaderWorkerTemplate"]


def replicas(lws: _Set) -> int:
    """How many groups are wanted."""
    value = lws["spec"].get("replicas")
    return names.DEFAULT_REPLICAS if value is None else value


def size(lws: _Set) -> int:
    """Pods of a group, its leader included."""
    value = template_of(lws).get("size")
    return names.DEFAULT_SIZE if value is None else value


def identity(lws: _Set) -> str:
    """How groups are told apart: Ordinal or Hash."""
    return lws["spec"].get("groupIdentity") or names.IDENTITY_ORDINAL


def is_hashed(lws: _Set) -> bool:
    """Whether groups are told apart by keys."""
    return identity(lws) == names.IDENTITY_HASH


def replacement_policy(lws: _Set) -> str:
    """When the next group may take the place of one that goes: PostTermination or Immediate."""
    return lws["spec"].get("groupReplacementPolicy") or names.REPLACEMENT_POST_TERMINATION


def startup_policy(lws: _Set) -> str:
    """When the workers of a group are made: LeaderCreated or LeaderReady."""
    return lws["spec"].get("startupPolicy") or names.STARTUP_LEADER_CREATED


def restart_policy(lws: _Set) -> str:
    """What follows when a pod of a group is lost, with the deprecated `Default` read as `None`."""
    policy = template_of(lws).get("restartPolicy") or names.RESTART_RECREATE_GROUP
    return names.RESTART_NONE if policy == names.RESTART_DEFAULT else policy


def termination_policy(lws: _Set) -> str:
    """`podTerminationPolicy`, by default Default."""
    return lws["spec"].get("podTerminationPolicy") or names.TERMINATION_DEFAULT


def subdomain_policy(lws: _Set) -> str:
    """Which headless Services there are: Shared or UniquePerReplica."""
    return (lws["spec"].get("networkConfig") or {}).get("subdomainPolicy") or names.SUBDOMAIN_SHARED


def subgroup_policy(lws: _Set) -> Mapping[str, Any] | None:
    """`spec.leaderWorkerTemplate.subGroupPolicy`, None if absent."""
    return template_of(lws).get("subGroupPolicy")


def exclusive_topology(lws: _Set) -> str | None:
    """Node label key whose domain a group has for itself; None without the annotation, which may also be empty."""
    return annotations_of(lws).get(names.EXCLUSIVE_TOPOLOGY_ANNOTATION)


def strategy(lws: _Set) -> str:
    """`spec.rolloutStrategy.type`."""
    return (lws["spec"].get("rolloutStrategy") or {}).get("type") or names.ROLLING_UPDATE


def _rolling(lws: _Set) -> Obj:
    return (lws["spec"].get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}


def partition(lws: _Set) -> int:
    """The user's partition: groups below it keep their revision."""
    return max(0, _rolling(lws).get("partition") or names.DEFAULT_PARTITION)


def rolling_update(lws: _Set) -> tuple[int | str, int | str]:
    """`maxUnavailable` and `maxSurge` as they are written, integers or percentages."""
    found = _rolling(lws)
    unavailable, surge = found.get("maxUnavailable"), found.get("maxSurge")
    return (
        names.DEFAULT_MAX_UNAVAILABLE if unavailable is None else unavailable,
        names.DEFAULT_MAX_SURGE if surge is None else surge,
    )


def max_unavailable(lws: _Set) -> int:
    """Groups that a rollout may take down, of the replicas wanted now; percentages are rounded down."""
    return scaled(rolling_update(lws)[0], replicas(lws), up=False, field="maxUnavailable")


def max_surge(lws: _Set) -> int:
    """Groups that a rollout may add, at most as many as are wanted; percentages are rounded up."""
    return min(scaled(rolling_update(lws)[1], replicas(lws), up=True, field="maxSurge"), replicas(lws))


def scaled(value: int | str, total: int, *, up: bool, field: str) -> int:
    """An integer as it is, a percentage of `total`. Raises DecisionError for any other text."""
    if isinstance(value, int):
        return value
    number = value.removesuffix("%")
    if number == value or not is_count(number):
        shown = repr(value) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}…"
        raise DecisionError(
            f"spec.rolloutStrategy.rollingUpdateConfiguration.{field} is {shown}; it must be an integer or a percentage"
        )
    product = int(number) * total
    return -(-product // 100) if up else product // 100
