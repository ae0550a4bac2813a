"""What the failure of a pod does to a group in Hash mode: it is recreated, later perhaps, or kept, or left alone. Pure.

Specification: 20 §11, §12. The decisions are those of `groups.restarts` and `groups.budget`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lwskit.api import names
from lwskit.groups import backoff, budget, counters, gates, restarts
from lwskit.groups.model import DecisionError, MemberSnapshot
from lwskit.groups.pool import group_name
from lwskit.groups.scene import Scene
from lwskit.runtime.objects import Obj
from lwskit.simulate.report import Notice


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a group of which a pod fails."""

    word: str = "recreates"
    """What the manager does with the group."""
    event: str = "fails"
    """What happens to the group in the first step."""
    kept: bool = False
    """It has no restart left: its leader is marked, and stays."""
    left: bool = False
    """Nothing follows from the failure."""
    notices: tuple[Notice, ...] = ()


RECREATED = Fate()
"""It is recreated at once."""


def kept_already(lws: Obj, leader: Obj) -> str:
    """What is to be said of a group that is kept."""
    meta = leader["metadata"]
    command = f"kubectl -n {lws['metadata']['namespace']} annotate pod {meta['name']} {names.RECOVER_ANNOTATION}=true"
    return (
        f"{meta['name']} is kept without a restart left, so it is not recreated: `{command}` gives the group a fresh "
        "budget"
    )


def fate(scene: Scene, lws: Obj, leader: Obj, now: datetime) -> Fate:
    """What becomes of the group of a leader that is there to stay, if one of its pods fails now."""
    name = leader["metadata"]["name"]
    if gates.is_gated(leader):
        # It has no container that could fail: somebody deletes it.
        return Fate(event="is deleted")
    if not restarts.recreates(lws):
        text = (
            "the restart policy recreates no groups: a worker that is lost is replaced alone, and a container that "
            f"fails is restarted in its pod; the steps are those if the leader {name} is lost"
        )
        return Fate(event="is lost", notices=(Notice("restart-policy", text),))
    group = group_name(leader)
    pods = [pod for pod in scene.pods if group_name(pod) == group]
    size = restarts.size_told(leader, lws)
    if restarts.after_start(lws) and restarts.starting(pods, size):
        text = (
            f"{name} has not started yet, with {len(pods)} of {size} pods or some Pending, so the restart policy "
            "leaves it alone; the steps are those if its leader is lost"
        )
        return Fate(event="is lost", notices=(Notice("restart-policy", text),))
    snapshot = MemberSnapshot(now=now, pod=leader, lws=lws, leader=leader, group_pods=pods)
    allowed = budget.decide(snapshot, lws, leader, leader)
    if isinstance(allowed, tuple):
        return RECREATED
    try:
        count = counters.read(lws).get(counters.key_of_group(leader), 0)
    except DecisionError as error:
        text = f"{error}; restarts that cannot be counted are not made"
        return Fate("does not recreate", left=True, notices=(Notice("restart-counts-unreadable", text),))
    times = "once" if count == 1 else f"{count} times"
    if isinstance(allowed, budget.Hold):
        setting = backoff.settings(lws) or {}
        whole = backoff.delay(count, setting.get("baseSeconds"), setting.get("capSeconds"))
        text = (
            f"a group that was restarted {times} has to have lived {whole} s (restartBackoff), so {name} is recreated "
            f"{allowed.after:g} s from now if it fails now, and is not ready until then; the steps begin after that"
        )
        return Fate(notices=(Notice("restart-backoff", text),))
    text = f"{name} is kept, not recreated: maxGroupRestarts is {budget.limit_of(lws)}, and it was restarted {times}"
    return Fate("keeps", kept=True, notices=(Notice("restart-budget", text),))
