"""Why a pod is not ready, from its own status and its events. Pure.

Source: Kubernetes API reference, PodStatus, ContainerState, PodCondition; documentation, "Pod Lifecycle".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lwskit.groups.explanation import quoted
from lwskit.groups.scene import Happening
from lwskit.runtime.finalizers import FOREGROUND, has_finalizer
from lwskit.runtime.objects import Obj, condition_of, is_deleting, is_true, uid_of

_STARTING: Final = ("ContainerCreating", "PodInitializing")
_PULL: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable")
_GATED: Final = "SchedulingGated"
_LONGEST: Final = 300
_DEFAULT_SCHEDULER: Final = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps a pod from being ready: a stable code, and a sentence about it without its name and full stop.

    `passes` tells what ends by itself if nothing else happens.
    """

    code: str
    text: str
    passes: bool = False


def of(pod: Obj, happenings: Sequence[Happening]) -> Trouble | None:
    """Why the pod is not ready, None if it is. `happenings` are events of its namespace, oldest first."""
    mine = [
        h for h in happenings if h.kind == "Pod" and h.uid in ("", uid_of(pod)) and h.name == pod["metadata"]["name"]
    ]
    status = pod.get("status") or {}
    phase = status.get("phase", "")
    if is_deleting(pod):
        return _deleting(pod)
    if phase in ("Failed", "Succeeded"):
        why = ": ".join(t for t in (status.get("reason"), status.get("message")) if t)
        ended = "; ".join(_endings(status))
        more = why or ended
        return Trouble("pod-ended", f"has {phase.lower()}" + (f" ({_cut(more)})" if more else ""))
    if phase == "Running" and is_true(pod, "Ready"):
        return None
    return _unscheduled(pod, mine) or _containers(pod, mine) or _not_ready(pod, mine)


def _deleting(pod: Obj) -> Trouble:
    meta = pod["metadata"]
    since = f"is being deleted (deletionTimestamp {meta['deletionTimestamp']})"
    finalizers = [f for f in meta.get("finalizers") or () if f not in (FOREGROUND, "orphan")]
    if finalizers:
        return Trouble("pod-deleting", f"{since} and kept by finalizer {', '.join(finalizers)}")
    if has_finalizer(pod, FOREGROUND):
        return Trouble("pod-deleting", f"{since} and waits for what it owns to be gone", passes=True)
    return Trouble("pod-deleting", f"{since} and has not ended yet", passes=True)


def _unscheduled(pod: Obj, mine: Sequence[Happening]) -> Trouble | None:
    gates = [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]
    if gates:
        return Trouble("scheduling-gated", f"is held back from scheduling by gate {', '.join(gates)}")
    if pod["spec"].get("nodeName"):
        return None
    condition = condition_of(pod, "PodScheduled")
    # Of a gate that is gone it still tells until a scheduler has looked at the pod.
    if condition and condition.get("status") == "False" and condition.get("reason") != _GATED:
        said = condition.get("message") or _latest(mine, "FailedScheduling")
        return Trouble("unschedulable", "is on no node" + (f": {_cut(said)}" if said else ""))
    if said := _latest(mine, "FailedScheduling"):
        return Trouble("unschedulable", f"is on no node: {_cut(said)}")
    scheduler = pod["spec"].get("schedulerName") or _DEFAULT_SCHEDULER
    return Trouble("not-scheduled", f"is on no node yet; the scheduler {scheduler} has said nothing of it", passes=True)


def _containers(pod: Obj, mine: Sequence[Happening]) -> Trouble | None:
    status = pod.get("status") or {}
    for kind, field in (("init container", "initContainerStatuses"), ("container", "containerStatuses")):
        for container in status.get(field) or ():
            found = _container(f"{kind} {container['name']}", container, mine)
            if found is not None:
                return found
    return None


def _container(name: str, status: dict[str, Any], mine: Sequence[Happening]) -> Trouble | None:
    state = status.get("state") or {}
    waiting = state.get("waiting") or {}
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    last = (status.get("lastState") or {}).get("terminated") or state.get("terminated")
    if reason in _PULL:
        said = message or _latest(mine, "Failed")
        return Trouble("image-pull", f"cannot get the image of {name} ({reason}){_after(said)}")
    if reason == "CrashLoopBackOff":
        count = _restarts(status.get("restartCount", 0))
        text = f"cannot keep {name} running: it crashes again and again ({reason}, {count}{_ending(last)})"
        return Trouble("crash-loop", text)
    if reason and reason not in _STARTING:
        return Trouble("container-waiting", f"cannot start {name} ({reason}){_after(message)}")
    terminated = state.get("terminated")
    if terminated and terminated.get("exitCode", 0) != 0:
        return Trouble("container-ended", f"has lost {name}, which ended{_ending(terminated)}")
    if reason in _STARTING:
        said = _latest(mine, "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
        if said:
            return Trouble("container-waiting", f"cannot start {name} ({reason}){_after(said)}")
        return Trouble("starting", f"is starting {name} ({reason})", passes=True)
    return None


def _restarts(count: int) -> str:
    return f"{count} restart{'' if count == 1 else 's'}"


def _not_ready(pod: Obj, mine: Sequence[Happening]) -> Trouble:
    status = pod.get("status") or {}
    phase = status.get("phase") or "without a phase"
    if phase != "Running":
        return Trouble("starting", f"is {phase}; its node has not started it yet", passes=True)
    unready = [c["name"] for c in status.get("containerStatuses") or () if not c.get("ready")]
    said = _latest(mine, "Unhealthy")
    if said:
        where = f"container {', '.join(unready)} is" if unready else "it is"
        return Trouble("probe", f"runs, but {where} not ready: {_cut(said)}")
    gates = [g["conditionType"] for g in pod["spec"].get("readinessGates") or ()]
    missing = [g for g in gates if not is_true(pod, g)]
    if missing and not unready:
        return Trouble("readiness-gate", f"runs, but waits for condition {', '.join(missing)}")
    restarts = sum(c.get("restartCount", 0) for c in status.get("containerStatuses") or ())
    more = f" ({_restarts(restarts)})" if restarts else ""
    condition = condition_of(pod, "Ready") or {}
    message = condition.get("message")
    which = f"container {', '.join(unready)} is" if unready else "it is"
    return Trouble("not-ready", f"runs, but {which} not ready{more}{_after(message or '')}", passes=True)


def _latest(mine: Sequence[Happening], *reasons: str) -> str:
    return next((h.note for h in reversed(mine) if h.reason in reasons), "")


def _after(text: str) -> str:
    return f": {_cut(text)}" if text else ""


def _ending(terminated: dict[str, Any] | None) -> str:
    if not terminated:
        return ""
    reason = terminated.get("reason")
    code = f", exit code {terminated.get('exitCode', 0)}"
    return f"{code}, {reason}" if reason and reason != "Error" else code


def _endings(status: dict[str, Any]) -> Iterator[str]:
    for container in status.get("containerStatuses") or ():
        ended = (container.get("state") or {}).get("terminated")
        if ended:
            yield f"container {container['name']}{_ending(ended)}"


def _cut(text: str) -> str:
    line = quoted(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
