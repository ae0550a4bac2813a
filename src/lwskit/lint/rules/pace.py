"""How fast and how far a rollout goes: budgets, surge, partition (specification: 10 §2.5, §6.2; 20 §7). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lwskit.api import names
from lwskit.groups import spec
from lwskit.lint.findings import (
    ALL_GROUPS_GO_DOWN,
    BUDGET_ROUNDS_TO_ZERO,
    ONE_GROUP_GOES_DOWN,
    PARTITION_HOLDS_ALL,
    PARTITION_WITH_SURGE,
    REFUSED_WHEN_SCALED,
    SURGE_IS_CAPPED,
    Fault,
)
from lwskit.lint.rules.paths import ROLLING
from lwskit.runtime.objects import Obj

_UNAVAILABLE = f"{ROLLING}.maxUnavailable"
_SURGE = f"{ROLLING}.maxSurge"
_PARTITION = f"{ROLLING}.partition"


def check(lws: Obj) -> Iterator[Fault]:
    """What a rollout will do that its author may not have meant."""
    rolling = lws["spec"]["rolloutStrategy"].get("rollingUpdateConfiguration") or {}
    replicas = spec.replicas(lws)
    given = rolling.get("maxUnavailable", names.DEFAULT_MAX_UNAVAILABLE)
    surge_given = rolling.get("maxSurge", names.DEFAULT_MAX_SURGE)
    unavailable = spec.max_unavailable(lws)
    surge = spec.max_surge(lws)
    yield from _scaled_later(given, surge_given, replicas)
    if not replicas:
        return
    if unavailable == 0 and not _is_zero(given):
        text = f"{given} of {_groups(replicas)} is rounded down to 0: a rollout goes on only through maxSurge"
        yield Fault(BUDGET_ROUNDS_TO_ZERO, _UNAVAILABLE, text, "write a number if one group may be down at a time")
    yield from _outage(replicas, unavailable, surge, given)
    whole = spec.scaled(surge_given, replicas, up=True, field="maxSurge")
    if whole > replicas:
        text = f"{whole} is more than the {_groups(replicas)} of the set: at most {replicas} are added"
        yield Fault(SURGE_IS_CAPPED, _SURGE, text)
    yield from _partition(spec.partition(lws), replicas, surge)


def _is_zero(given: Any) -> bool:
    return given == 0 if isinstance(given, int) else int(given.removesuffix("%")) == 0


def _groups(number: int) -> str:
    return "1 group" if number == 1 else f"{number} groups"


def _outage(replicas: int, unavailable: int, surge: int, given: Any) -> Iterator[Fault]:
    if unavailable < replicas:
        return
    if replicas == 1:
        if not surge:
            text = "the only group goes down in every rollout: nothing serves until it is back"
            hint = "set maxSurge to 1 and maxUnavailable to 0, which needs room for a second group, or run two groups"
            yield Fault(ONE_GROUP_GOES_DOWN, "spec.replicas", text, hint)
        return
    shown = given if given == unavailable else f"{given} ({unavailable} groups)"
    text = f"{shown} allows all {replicas} groups to be down at once: a rollout may replace them all at the same time"
    yield Fault(ALL_GROUPS_GO_DOWN, _UNAVAILABLE, text, "allow fewer groups than there are replicas")


def _partition(partition: int, replicas: int, surge: int) -> Iterator[Fault]:
    if not partition:
        return
    if partition >= replicas:
        text = f"groups below {partition} keep their revision, and there are {replicas}: no change reaches any group"
        yield Fault(PARTITION_HOLDS_ALL, _PARTITION, text, "lower the partition to let groups be updated")
    if surge:
        text = (
            f"while the partition is not 0, the {_groups(surge)} that maxSurge adds stay, and may be made as soon as "
            "groups are not ready although nothing is rolled out"
        )
        yield Fault(PARTITION_WITH_SURGE, _PARTITION, text, "set the partition to 0 at the end of the rollout")


def _scaled_later(given: Any, surge: Any, replicas: int) -> Iterator[Fault]:
    """Both budgets are 0 for fewer groups, which only a write of the whole set is refused for."""
    if not _is_zero(surge):
        return
    limit = max(replicas - 1, 1) if replicas else names.MAX_REPLICAS
    if not isinstance(given, str):
        most = 0 if given else limit
    else:
        share = int(given[:-1])
        # The largest number of groups of which the share is less than one.
        most = min(limit, 99 // share) if share else limit
    if most < 1 or most >= replicas > 0:
        return
    many = f"{_groups(most)} or fewer" if most > 1 else "1 group"
    if most == names.MAX_REPLICAS:
        many = "any number of groups"
    text = (
        f"scaled to {many}, the set has maxUnavailable and maxSurge 0: the scale subresource, as autoscalers use it, "
        "allows that, and every later change of the set is refused"
    )
    yield Fault(REFUSED_WHEN_SCALED, _UNAVAILABLE, text, "write maxUnavailable as a number, or a maxSurge")
