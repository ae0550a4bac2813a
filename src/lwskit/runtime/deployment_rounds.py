"""What a Deployment does to the sizes of its ReplicaSets in one round. Pure.

Source: Kubernetes documentation, "Deployments": rolling update, proportional scaling, pausing. Specification: 30 §13.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lwskit.runtime.deployment_sizes import (
    DESIRED,
    MOST,
    available,
    counted,
    is_rolling,
    is_saturated,
    max_surge,
    max_unavailable,
    proportional,
    size_in,
    size_of_new,
    total,
    wanted,
)
from lwskit.runtime.objects import Obj


@dataclass(frozen=True, slots=True)
class Resize:
    """A ReplicaSet and the size that it gets; with `always` its annotations are brought up to date in any case."""

    set: Obj
    size: int
    always: bool = False


def with_size(annotations: Mapping[str, str], deployment: Mapping[str, Any]) -> dict[str, str]:
    """A ReplicaSet's annotations with the size of its Deployment and the most pods that this may have."""
    most = wanted(deployment) + max_surge(deployment)
    return {**annotations, DESIRED: str(wanted(deployment)), MOST: str(most)}


def active(sets: Iterable[Obj]) -> list[Obj]:
    """The ReplicaSets that are to have pods."""
    return [s for s in sets if wanted(s) > 0]


def is_scaled(deployment: Mapping[str, Any], sets: Iterable[Obj]) -> bool:
    """Whether the Deployment has another size than when its ReplicaSets got theirs: then these are shared out anew,
    before a rollout goes on."""
    return any(size_in(s, DESIRED) not in (None, wanted(deployment)) for s in active(sets))


def rescaled(deployment: Mapping[str, Any], old: Sequence[Obj], new: Obj | None) -> list[Resize]:
    """The Deployment's size shared out among the ReplicaSets there are; no rollout goes on.

    `old` are in the order of their age, `new` is that of the present template, if there is one.
    """
    sets = [*old, new] if new is not None else list(old)
    there = active(sets)
    if len(there) <= 1:
        latest = there or ([new] if new is not None else list(old[-1:]))
        return [Resize(one, wanted(deployment)) for one in latest]
    if is_saturated(deployment, new):
        return [Resize(one, 0) for one in reversed(active(old))]
    if is_rolling(deployment):
        return [Resize(one, size, always=True) for one, size in proportional(deployment, there)]
    return []


def rolled(deployment: Mapping[str, Any], old: Sequence[Obj], new: Obj) -> tuple[list[Resize], bool]:
    """The next step of a rolling update, and whether it is one: the new ReplicaSet grows, or old ones shrink.

    What is resized although it is no step is that of a round that found out too late that it has to wait.
    """
    grown = _grown(deployment, old, new)
    return ([grown], True) if grown is not None else _shrunk(deployment, old, new)


def _grown(deployment: Mapping[str, Any], old: Sequence[Obj], new: Obj) -> Resize | None:
    size = wanted(new)
    after = wanted(deployment)
    if size < after:
        after = size_of_new(deployment, size, total([*old, new]))
    return Resize(new, after) if after != size else None


def _shrunk(deployment: Mapping[str, Any], old: Sequence[Obj], new: Obj) -> tuple[list[Resize], bool]:
    """Old pods go as far as enough are available: first those that are not available anyway, the oldest sets first."""
    at_least = wanted(deployment) - max_unavailable(deployment)
    room = total([*old, new]) - at_least - (wanted(new) - available(new))
    there = active(old)
    if not there or room <= 0:
        return [], False
    left = [wanted(one) for one in there]
    found: list[Resize] = []
    unhealthy = taken = 0
    for i, one in enumerate(there):
        count = min(room - unhealthy, left[i] - available(one))
        if unhealthy >= room or left[i] == available(one):
            continue
        if count < 0:
            # The set was made smaller a moment ago; nothing can be said until it has counted its pods.
            return found, False
        left[i] -= count
        unhealthy += count
        found.append(Resize(one, left[i]))
    spare = counted([*there, new], "availableReplicas") - at_least
    for i, one in enumerate(there):
        count = min(left[i], spare - taken)
        if count > 0:
            left[i] -= count
            taken += count
            found.append(Resize(one, left[i]))
    return found, unhealthy + taken > 0
