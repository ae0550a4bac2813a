"""Draining one group: whether it can be made the next one to go, and by which mark. Pure.

`victims` is asked what a set of one group fewer would lose with the mark; nothing is done unless it is just that group.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lwskit.api import names
from lwskit.groups import budget, ownership, spec
from lwskit.groups import victims as going
from lwskit.groups.identity import is_leader, parse_ordinal
from lwskit.groups.model import DecisionError, Victim
from lwskit.groups.scene import Scene
from lwskit.runtime.deployment_sizes import wanted
from lwskit.runtime.objects import Obj, annotations_of, is_deleting, labels_of, uid_of
from lwskit.runtime.ranking import deletion_cost, is_active

MARK: Final = -1000
"""The deletion cost of a group that is drained, unless another one has a lower cost already."""
SHORTEST: Final = 4
"""Characters of a key that are needed to name a group."""
_LOWEST: Final = -(2**31)


@dataclass(frozen=True, slots=True)
class Drain:
    """One group that can be drained: the set is scaled from `before` to `after` groups."""

    pod: Obj
    """The leader."""
    before: int
    after: int
    why: str
    """What makes it the next to go, once it is marked."""
    cost: int | None
    """The deletion cost to mark it with; None where no mark counts, as in Ordinal mode."""

    @property
    def name(self) -> str:
        """The leader's name."""
        return self.pod["metadata"]["name"]

    def marking(self, cost: str | None) -> dict[str, Any]:
        """The merge patch that gives just this pod a deletion cost, or with None takes it away."""
        annotations = {names.POD_DELETION_COST_ANNOTATION: cost}
        return {"metadata": {"uid": uid_of(self.pod), "annotations": annotations}}

    @property
    def unmarking(self) -> dict[str, Any]:
        """The merge patch that gives it back the deletion cost that it had, if it had one."""
        return self.marking(annotations_of(self.pod).get(names.POD_DELETION_COST_ANNOTATION))


def find(pods: Sequence[Obj], name: str) -> Obj:
    """The leader of the group that a person calls `name`.

    That is the leader's name, its host name, or the beginning of the group's key, of at least `SHORTEST` characters,
    alone or after the name of the set as in a host name; an ellipsis after it, as where it is shown cut off, is
    no part of it. Raises DecisionError if there is none, or are several.
    """
    asked, name = name, name.removesuffix("…").removesuffix("...")
    leaders = [pod for pod in pods if is_leader(pod) and ownership.set_name(pod)]
    for known in (_name, _host):
        exact = [pod for pod in leaders if name and known(pod) == name]
        if exact:
            return exact[0]
    found = [pod for pod in leaders if _begins(pod, name)]
    if len(found) == 1:
        return found[0]
    if found:
        there = ", ".join(f"{_key(pod)[:12]}… ({_name(pod)})" for pod in found)
        raise DecisionError(f"several groups have a key that begins with {asked!r}: {there}")
    parent = parse_ordinal(name)[0]
    owner = next((pod for pod in leaders if parent and parent in (_name(pod), _host(pod))), None)
    if owner is not None:
        raise DecisionError(f"{name} is a worker; the group that it is of is led by {_name(owner)}: name that one")
    near = difflib.get_close_matches(name, [_name(pod) for pod in leaders], n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise DecisionError(
        f"no group is called {asked!r}: it takes the name of a leader pod, its host name, or the first {SHORTEST} or "
        f"more characters of a group key{hint}"
    )


def _begins(pod: Obj, name: str) -> bool:
    """Whether a leader's key begins with this name, or with what follows the name of its set."""
    beginnings = (name, name.removeprefix(f"{ownership.set_name(pod)}-"))
    return any(len(text) >= SHORTEST and _key(pod).startswith(text) for text in beginnings)


def decide(scene: Scene, leader: Obj, now: datetime) -> Drain:
    """How to drain the group of `leader`, a pod of the scene.

    Raises DecisionError with the reason where another group would go, or it cannot be told which.
    """
    lws, workload, name = scene.lws, scene.workload, _name(leader)
    if lws is None or is_deleting(lws):
        raise DecisionError(f"LeaderWorkerSet {scene.name} is {'gone' if lws is None else 'being deleted'}")
    if workload is None:
        raise DecisionError(f"LeaderWorkerSet {scene.name} has no leaders yet")
    if budget.is_exhausted(leader):
        far = "to the groups that run" if spec.is_hashed(lws) else "below it"
        raise DecisionError(
            f"the group of {name} has no restart left and is kept: it goes when the set is scaled {far}, with a new "
            f"template, or with annotation {names.RECOVER_ANNOTATION}=true on {name}, which has another one made"
        )
    if not is_active(leader):
        raise DecisionError(f"the group of {name} goes already: its leader has ended or is being deleted")
    before = spec.replicas(lws)
    if wanted(workload) != before:
        what = f"{workload.get('kind', 'its workload')} {scene.name}"
        raise DecisionError(
            f"{what} is of {wanted(workload)} groups where the set wants {before}: it is still being scaled, or a "
            "rollout adds groups; try again afterwards"
        )
    cost = _cost(scene, leader) if spec.is_hashed(lws) else None
    marked = _with_cost(leader, cost) if cost is not None else leader
    pods = [marked if uid_of(pod) == uid_of(leader) else pod for pod in scene.pods]
    found = going.victims(lws, workload, pods, now, before - 1, sets=scene.between)
    if [victim.uid for victim in found] != [uid_of(leader)]:
        raise DecisionError(_refusal(name, before, found, hashed=cost is not None))
    return Drain(leader, before, before - 1, found[0].why, cost)


def check(drain: Drain, scene: Scene, now: datetime) -> None:
    """Whether the marked group still is the one to go, as things are now. Raises DecisionError where it is not."""
    leader = next((pod for pod in scene.pods if uid_of(pod) == uid_of(drain.pod)), None)
    if leader is None:
        raise DecisionError(f"leader pod {drain.name} is gone")
    if decide(scene, leader, now).before != drain.before:
        raise DecisionError(f"the set was scaled meanwhile; it had {drain.before} groups")


def _refusal(name: str, before: int, found: Sequence[Victim], *, hashed: bool) -> str:
    if not found:
        return (
            f"scaling {before} → {before - 1} would remove no group now: fewer exist than are wanted; try again later"
        )
    why = "a deletion cost would not bring it before that" if hashed else "a deletion cost does not count there"
    return f"{name} would not be the one to go: {going.told(before, before - 1, found)}; {why}"


def _cost(scene: Scene, leader: Obj) -> int:
    others = [deletion_cost(p) for p in scene.pods if is_leader(p) and is_active(p) and uid_of(p) != uid_of(leader)]
    return max(_LOWEST, min(MARK, min(others, default=0) - 1))


def _with_cost(pod: Obj, cost: int) -> Obj:
    annotations = {**annotations_of(pod), names.POD_DELETION_COST_ANNOTATION: str(cost)}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


def _name(pod: Obj) -> str:
    return pod["metadata"]["name"]


def _host(pod: Obj) -> str:
    return pod["spec"].get("hostname", "")


def _key(pod: Obj) -> str:
    return labels_of(pod).get(names.GROUP_KEY_LABEL, "")
