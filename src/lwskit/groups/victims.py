"""Which groups go when a set gets fewer of them, and why these: for both modes. Pure.

Specification: 30 §13 (how a Deployment shares a smaller size out among its ReplicaSets), §14 (which pods these remove);
Kubernetes documentation, "StatefulSets", for groups with ordinals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lwskit.groups import spec
from lwskit.groups.identity import is_leader, parse_ordinal
from lwskit.groups.model import Victim
from lwskit.runtime.deployment_sizes import age_of, proportional, wanted
from lwskit.runtime.objects import Obj, controller_of, uid_of
from lwskit.runtime.ranking import Ranked, is_active, ranked

SHOWN = 5
"""Victims that are named one by one."""
ALL_GO = "all groups go"
"""The reason where nothing stays that a group could be compared with."""


def victims(
    lws: Obj, workload: Obj, pods: Sequence[Obj], now: datetime, replicas: int, *, sets: Sequence[Obj] = ()
) -> list[Victim]:
    """The leaders whose groups go when the set wants `replicas` groups instead, the first to go first.

    `workload` is the leaders' StatefulSet or Deployment, `pods` the pods of the set, `sets` the ReplicaSets of the
    Deployment; where they are not known, their pods stand for them. None go if there are not to be fewer. In the middle
    of a Deployment's rollout these are the ones that the smaller size costs; the rollout itself then goes on.
    """
    leaders = [pod for pod in pods if is_leader(pod)]
    if replicas >= wanted(workload):
        return []
    if spec.is_hashed(lws):
        return _of_deployment(workload, leaders, now, replicas, sets)
    return _of_statefulset(workload, leaders, replicas, spec.replicas(lws))


def by_ordinal(pods: Sequence[Obj]) -> list[Victim]:
    """Leaders of a StatefulSet in the order in which they go: the highest ordinal first."""
    numbered = sorted(((_ordinal(pod), pod) for pod in pods), key=lambda pair: -pair[0])
    return [Victim(_name(pod), uid_of(pod), _highest(ordinal)) for ordinal, pod in numbered]


def by_service(pods: Sequence[Obj], now: datetime) -> list[Victim]:
    """Leaders of one ReplicaSet in the order in which they go: those whose groups serve least first (30 §14)."""
    return [_victim(found) for found in ranked([pod for pod in pods if is_active(pod)], pods, now)]


def told(before: int, after: int, found: Sequence[Victim]) -> str:
    """What a smaller size costs, in words: `scaling 4 → 3 would remove llm-6d5f-x2kkp: not scheduled`."""
    groups = "; ".join(f"{victim.name}: {victim.why}" for victim in found[:SHOWN])
    if len(found) > SHOWN:
        groups += f"; and {len(found) - SHOWN} more"
    return f"scaling {before} → {after} would remove {groups or 'no group'}"


# Groups with ordinals -------------------------------------------------------------------------------------------------


def _of_statefulset(workload: Obj, leaders: Sequence[Obj], replicas: int, before: int) -> list[Victim]:
    """All from `replicas` on, whether their leaders exist at the moment or not."""
    pods = {_ordinal(pod): pod for pod in leaders if _made_by(pod) == uid_of(workload)}
    most = max(wanted(workload), 1 + max(pods, default=-1))
    found: list[Victim] = []
    for ordinal in reversed(range(replicas, most)):
        pod = pods.get(ordinal)
        why = _highest(ordinal) if ordinal < before else "a group of a rollout's surge, which goes at its end anyway"
        found.append(Victim(f"{_name(workload)}-{ordinal}", uid_of(pod) if pod is not None else "", why))
    return found


def _highest(ordinal: int) -> str:
    return f"a StatefulSet removes the highest ordinal first, here {ordinal}"


def _ordinal(pod: Obj) -> int:
    return parse_ordinal(_name(pod))[1]


# Groups with keys -----------------------------------------------------------------------------------------------------


def _of_deployment(
    workload: Obj, leaders: Sequence[Obj], now: datetime, replicas: int, sets: Sequence[Obj]
) -> list[Victim]:
    mine = [one for one in sets if _made_by(one) == uid_of(workload)] or _stand_ins(leaders)
    owners = {uid_of(one) for one in mine}
    related = [pod for pod in leaders if _made_by(pod) in owners]
    sizes = _sizes(workload, mine, replicas)
    several = len(sizes) > 1
    found: list[Victim] = []
    for one, size in sorted(sizes, key=lambda pair: age_of(pair[0])):
        pods = [pod for pod in related if _made_by(pod) == uid_of(one) and is_active(pod)]
        going = _going(pods, related, now, max(0, len(pods) - size))
        share = f"its ReplicaSet gives up {len(going)} of {len(pods)}: " if several else ""
        found += [Victim(v.name, v.uid, share + v.why) for v in going]
    return found


def _sizes(workload: Obj, sets: Sequence[Obj], replicas: int) -> list[tuple[Obj, int]]:
    """The sizes of the ReplicaSets that have pods once their Deployment wants `replicas`."""
    active = [one for one in sets if wanted(one) > 0]
    if len(active) <= 1:
        return [(one, replicas) for one in active]
    smaller = {**workload, "spec": {**workload["spec"], "replicas": replicas}}
    return proportional(smaller, active)


def _going(pods: Sequence[Obj], related: Sequence[Obj], now: datetime, count: int) -> list[Victim]:
    """The first `count` of a ReplicaSet's pods, each with what puts it before the first one that stays."""
    order = ranked(pods, related, now)
    stays = order[count].pod if count < len(order) else None
    found: list[Victim] = []
    for one in order[:count]:
        if stays is None:
            found.append(Victim(_name(one.pod), uid_of(one.pod), ALL_GO))
            continue
        first = ranked([one.pod, stays], related, now)[0]
        found.append(_victim(first if first.pod is one.pod else one))
    return found


def _stand_ins(leaders: Sequence[Obj]) -> list[Obj]:
    """ReplicaSets as their pods let them be known: of the size that they have."""
    found: dict[str, list[Obj]] = {}
    for pod in leaders:
        owner = controller_of(pod)
        if owner is not None and is_active(pod):
            found.setdefault(owner["uid"], []).append(pod)
    return [_stand_in(uid, pods) for uid, pods in found.items()]


def _stand_in(uid: str, pods: Sequence[Obj]) -> Obj:
    created = min(pod["metadata"].get("creationTimestamp", "") for pod in pods)
    return {"metadata": {"name": uid, "uid": uid, "creationTimestamp": created}, "spec": {"replicas": len(pods)}}


def _made_by(obj: Mapping[str, Any]) -> str:
    owner = controller_of(obj)
    return owner["uid"] if owner is not None else ""


def _victim(found: Ranked) -> Victim:
    return Victim(_name(found.pod), uid_of(found.pod), found.why)


def _name(obj: Mapping[str, Any]) -> str:
    return obj["metadata"]["name"]
