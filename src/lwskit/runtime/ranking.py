"""Which pods of a ReplicaSet go first when it is scaled down, and why. Pure.

Source: Kubernetes documentation, "ReplicaSet", scaling a ReplicaSet; "Labels, Annotations and Taints", pod deletion
cost; feature gate LogarithmicScaleDown. Specification: 30 §14.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lwskit.runtime.objects import Obj, annotations_of, condition_of, is_deleting, uid_of

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""The annotation with which a pod says how dear its deletion is: a whole number of 32 bits, 0 where there is none."""

UNDECIDED = "nothing but the order of UIDs"
"""The reason where nothing tells a pod from the next; other ReplicaSet controllers leave that to chance."""
OF_AN_AGE = "about as old as the next, and its UID is smaller"
"""The reason between two pods whose ages are of one magnitude."""

_COST = re.compile(r"-?[0-9]+")
_ENDED = ("Succeeded", "Failed")
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


@dataclass(frozen=True, slots=True)
class Ranked:
    """A pod and what puts it before the next one, in a few words: `not ready`, `deletion cost -100`.

    The last pod has nothing to be put before, and an empty text.
    """

    pod: Obj
    why: str


def is_active(pod: Mapping[str, Any]) -> bool:
    """Whether a pod counts as one of its ReplicaSet: it has neither ended nor is it being deleted."""
    return (pod.get("status") or {}).get("phase") not in _ENDED and not is_deleting(pod)


def is_deletion_cost(text: str) -> bool:
    """Whether a text is a deletion cost: a number of 32 bits that begins neither with `+` nor with a needless 0."""
    return bool(_COST.fullmatch(text)) and (text[0] != "0" or text == "0") and -(2**31) <= int(text) < 2**31


def deletion_cost(pod: Mapping[str, Any]) -> int:
    """The pod's deletion cost; 0 without one, and for a text that is none."""
    text = annotations_of(pod).get(DELETION_COST, "")
    return int(text) if is_deletion_cost(text) else 0


def ranked(pods: Sequence[Obj], related: Sequence[Obj], now: datetime) -> list[Ranked]:
    """`pods`, the active ones of one ReplicaSet, in the order in which they go, the first to go first.

    `related` are all pods of all ReplicaSets of the same Deployment, these included; how many of the active ones are
    on a pod's node counts against it. Ages at `now` are compared by their order of magnitude (powers of two), so pods
    of about the same age go by their UID. That is no order where three ready pods are ready for about as long, two of
    them to the second, which restarts then tell apart: there the answer depends on the UIDs, and another ReplicaSet
    controller may have another one. Specification: 30 §14.
    """
    on_node = Counter(_node(p) for p in related if is_active(p))
    facts = sorted((_Facts(p, on_node[_node(p)], now) for p in pods), key=lambda f: f.uid)
    facts.sort(key=functools.cmp_to_key(_compare))
    found = [Ranked(one.pod, _difference(one, after)[1]) for one, after in itertools.pairwise(facts)]
    return [*found, *(Ranked(f.pod, "") for f in facts[-1:])]


class _Facts:
    """What of a pod is compared."""

    __slots__ = ("assigned", "born", "cost", "now", "phase", "pod", "ready", "related", "restarts", "since", "uid")

    def __init__(self, pod: Obj, related: int, now: datetime) -> None:
        self.pod = pod
        self.related = related
        self.now = now
        self.uid = uid_of(pod)
        self.assigned = bool(_node(pod))
        self.phase = (pod.get("status") or {}).get("phase", "")
        condition = condition_of(pod, "Ready") or {}
        self.ready = condition.get("status") == "True"
        self.cost = deletion_cost(pod)
        self.since = _time(condition.get("lastTransitionTime")) if self.ready else None
        self.restarts = _restarts(pod)
        self.born = _time(pod["metadata"].get("creationTimestamp"))


def _compare(a: _Facts, b: _Facts) -> int:
    return _difference(a, b)[0]


def _difference(a: _Facts, b: _Facts) -> tuple[int, str]:
    """-1 if `a` goes before `b`, 1 if after it, and by what; what nothing tells apart goes by UID."""
    if a.assigned != b.assigned:
        return (1 if a.assigned else -1), "not scheduled"
    phases = _PHASES.get(a.phase, 0), _PHASES.get(b.phase, 0)
    if phases[0] != phases[1]:
        return (-1 if phases[0] < phases[1] else 1), a.phase or "no phase yet"
    if a.ready != b.ready:
        return (1 if a.ready else -1), "not ready"
    if a.cost != b.cost:
        return (-1 if a.cost < b.cost else 1), f"deletion cost {a.cost}"
    if a.related != b.related:
        pods = "pod" if a.related == 1 else "pods"
        return (-1 if a.related > b.related else 1), f"{a.related} {pods} of the Deployment on its node"
    if a.ready and a.since != b.since:
        return _younger(a.since, b.since, a, b, _readiness(a, b))
    if a.restarts != b.restarts:
        return (-1 if a.restarts > b.restarts else 1), _restarted(a.restarts)
    if a.born != b.born:
        text = "newest" if a.born is None else f"created {_span(a.born, a.now)} ago, later than the next"
        return _younger(a.born, b.born, a, b, text)
    return _by_uid(a, b), UNDECIDED


def _younger(one: datetime | None, other: datetime | None, a: _Facts, b: _Facts, text: str) -> tuple[int, str]:
    """The later of two times that differ comes first; no time is the latest."""
    if one is None or other is None:
        return (-1 if one is None else 1), text
    scales = _scale(one, a.now), _scale(other, a.now)
    if scales[0] == scales[1]:
        return _by_uid(a, b), OF_AN_AGE
    return (-1 if scales[0] < scales[1] else 1), text


def _by_uid(a: _Facts, b: _Facts) -> int:
    return (a.uid > b.uid) - (a.uid < b.uid)


def _readiness(a: _Facts, b: _Facts) -> str:
    if a.since is None:
        return "ready, not said since when"
    text = f"ready for {_span(a.since, a.now)}"
    return f"{text}, shorter than {_span(b.since, b.now)}" if b.since is not None else text


def _restarted(restarts: tuple[int, int]) -> str:
    count = restarts[0] or restarts[1]
    return f"restarted {count} time{'' if count == 1 else 's'}" if count else "restarted as often as the next"


def _scale(since: datetime, now: datetime) -> int:
    """The power of two below an age in nanoseconds; -1 for no age at all."""
    age = now - since
    nanoseconds = (age.days * 86400 + age.seconds) * 1_000_000_000 + age.microseconds * 1000
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def _restarts(pod: Mapping[str, Any]) -> tuple[int, int]:
    """How often the container that restarted most often did, and of the init containers that run on (sidecars)."""
    status = pod.get("status") or {}
    regular = max((c.get("restartCount", 0) for c in status.get("containerStatuses") or ()), default=0)
    inits = (pod.get("spec") or {}).get("initContainers") or ()
    sidecars = {c.get("name") for c in inits if c.get("restartPolicy") == "Always"}
    found = (s.get("restartCount", 0) for s in status.get("initContainerStatuses") or () if s.get("name") in sidecars)
    return regular, max(found, default=0)


def _node(pod: Mapping[str, Any]) -> str:
    return (pod.get("spec") or {}).get("nodeName", "")


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC) if text else None


def _span(since: datetime, now: datetime) -> str:
    """How long ago, in one unit: `3m`."""
    seconds = max(0, int((now - since).total_seconds()))
    return next((f"{seconds // size}{unit}" for unit, size in _UNITS if seconds >= size), "0s")
