"""The life of one pod on a node, as a machine that is told the time and answers with the pod's status. Pure.

Source: Kubernetes documentation, "Pod Lifecycle": phases, container states, conditions, readiness gates, restarts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lwskit.embedded.controllers.kubelet_behaviour import NEVER, Behaviour, problems
from lwskit.runtime.objects import Obj, annotations_of, condition_of, generation_of, is_deleting

BAD_ANNOTATION = "BadAnnotation"
"""The reason of events about annotations that the kubelet does not understand."""
LONGEST = 30.0
"""How many times the first back-off the longest is. The first restart comes at once, the next wait doubles."""

_NO_IMAGE = "not found"
_ATTEMPT = 0.1
"""The part of the first back-off after which a failed attempt to get an image counts as one that is put off."""


@dataclass(frozen=True, slots=True)
class Note:
    """An event that a kubelet records about a pod."""

    reason: str
    message: str
    type: str = "Normal"


@dataclass(slots=True)
class Container:
    """One container: how often it was restarted, since when it runs, how it ended, until when it waits."""

    name: str
    restarts: int = 0
    started: float | None = None
    started_at: str = ""
    ended: Obj | None = None
    last: Obj | None = None
    retry: float = 0.0
    settled: bool = False
    """Taken over when it was ready already, so that it is not delayed again."""

    @property
    def running(self) -> bool:
        """Whether it runs now."""
        return self.started is not None


@dataclass(slots=True)
class Step:
    """What to do after a look at the pod: write `status` if there is one, delete it, look again in `after` seconds."""

    status: Obj | None = None
    delete: bool = False
    after: float | None = None
    notes: list[Note] = field(default_factory=list)


class PodLife:
    """The kubelet's memory of one pod. `now` is in seconds that only grow, `moment` the time as objects carry it.

    `host_ips` and `ips` are the addresses of the node and the pod.
    """

    def __init__(self, pod: Obj, now: float, moment: str, host_ips: Sequence[str], ips: Sequence[str]) -> None:
        spec = pod["spec"]
        self.seen = now
        self.ips = ips
        self._host_ips = host_ips
        self._start_time = (pod.get("status") or {}).get("startTime") or moment
        self._containers = [Container(c["name"]) for c in spec.get("containers") or ()]
        self._images = {
            c["name"]: c.get("image", "") for c in (*_all(spec, "initContainers"), *_all(spec, "containers"))
        }
        self._init = _all(spec, "initContainers")
        self._restart_policy = spec.get("restartPolicy", "Always")
        self._begun: str = ""
        self._failed = ""
        self._pulled: float | None = None
        self._pulls = False
        self._stopping: float | None = None
        self._crash: dict[str, int] = {}
        self._told: set[str] = set()
        self._resume(pod, now)

    def _resume(self, pod: Obj, now: float) -> None:
        """Take over a pod that already has a life, from its status."""
        status = pod.get("status") or {}
        known = {c["name"]: c for c in status.get("containerStatuses") or ()}
        for container in self._containers:
            found = known.get(container.name) or {}
            state = found.get("state") or {}
            container.restarts = found.get("restartCount", 0)
            container.last = (found.get("lastState") or {}).get("terminated")
            if "running" in state:
                container.started_at = state["running"].get("startedAt", self._start_time)
                container.started, container.settled = now, bool(found.get("ready"))
                self._begun = self._begun or self._start_time
            elif "terminated" in state:
                container.ended = state["terminated"]
                self._begun = self._begun or self._start_time
        if status.get("phase") == "Failed":
            self._failed = status.get("reason", "")

    def crash(self, container: str, exit_code: int) -> None:
        """Let a running container (the empty name: every one) exit at the next look."""
        for c in self._containers:
            if not container or c.name == container:
                self._crash[c.name] = exit_code

    def look(self, pod: Obj, behaviour: Behaviour, now: float, moment: str) -> Step:
        """Bring the pod's life to the present and compare its status with that."""
        step = Step()
        old_phase = (pod.get("status") or {}).get("phase", "Pending")
        if old_phase in ("Succeeded", "Failed") and not is_deleting(pod):
            return step
        self._tell(pod, step)
        waits: list[float] = []
        if is_deleting(pod):
            self._stop(pod, behaviour, now, moment, step, waits)
        elif behaviour.fail and not self._failed:
            self._failed = behaviour.fail
            self._end_all(137, moment)
        elif not self._failed:
            self._live(behaviour, now, moment, step, waits)
        status = self._status(pod, behaviour, now, moment)
        ready_at = [
            c.started + behaviour.ready_delay - now for c in self._containers if c.started is not None and not c.settled
        ]
        waits += [w for w in ready_at if 0 < w < NEVER]
        if waits and not step.delete:
            step.after = min(waits)
        if differs(pod, status) and not (step.delete and old_phase in ("Pending", "Succeeded", "Failed")):
            step.status = status
        return step

    def _tell(self, pod: Obj, step: Step) -> None:
        """Note what is wrong with the pod's annotations, each mistake once."""
        for text in problems(annotations_of(pod), [c.name for c in self._containers]):
            if text not in self._told:
                self._told.add(text)
                step.notes.append(Note(BAD_ANNOTATION, text, "Warning"))

    def _live(self, behaviour: Behaviour, now: float, moment: str, step: Step, waits: list[float]) -> None:
        start = self.seen + behaviour.start_delay
        if not self._begun:
            if now < start:
                if start < NEVER:
                    waits.append(start - now)
                return
            self._pulls = behaviour.image_pull_fails
            if self._pulls:
                self._pull(behaviour, now, step, waits)
                return
            self._begun = moment
            for container in (*(c["name"] for c in self._init), *(c.name for c in self._containers)):
                _announce(container, self._images[container], step)
            for container in self._containers:
                container.started, container.started_at = now, moment
        for container in self._containers:
            self._run(container, behaviour, now, moment, step, waits)

    def _pull(self, behaviour: Behaviour, now: float, step: Step, waits: list[float]) -> None:
        """Try to get the images, in vain: at first an attempt fails, and then the next one is put off."""
        if self._pulled is None:
            self._pulled = now
            for image in dict.fromkeys(self._images[c] for c in self._lacking()):
                step.notes += [
                    Note("Pulling", f'Pulling image "{image}"'),
                    Note("Failed", f'Failed to pull image "{image}": {_NO_IMAGE}', "Warning"),
                ]
        if not self._puts_off(behaviour, now):
            waits.append(self._pulled + behaviour.backoff * _ATTEMPT - now)

    def _puts_off(self, behaviour: Behaviour, now: float) -> bool:
        return self._pulled is not None and now >= self._pulled + behaviour.backoff * _ATTEMPT

    def _lacking(self) -> list[str]:
        """The containers that would start now: the first init container, without such all."""
        return [self._init[0]["name"]] if self._init else [c.name for c in self._containers]

    def _waiting(self, name: str, behaviour: Behaviour, now: float) -> Obj:
        """Why a container that has never run does not run yet."""
        if self._pulls and not self._begun and name in self._lacking():
            image = self._images[name]
            reason, text = "ErrImagePull", f'failed to pull image "{image}": {_NO_IMAGE}'
            if self._puts_off(behaviour, now):
                reason, text = "ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: {text}'
            return {"waiting": {"reason": reason, "message": text}}
        return {"waiting": {"reason": "PodInitializing" if self._init else "ContainerCreating"}}

    def _run(
        self, container: Container, behaviour: Behaviour, now: float, moment: str, step: Step, waits: list[float]
    ) -> None:
        if container.started is not None:
            code = self._exit_of(container, behaviour, now)
            if code is None:
                left = container.started + behaviour.run_time - now
                if left < NEVER:
                    waits.append(left)
                return
            self._end(container, code, moment)
        if container.ended is None or self._stays_down(container):
            return
        if container.retry > now:
            waits.append(container.retry - now)
            return
        # It starts again: what it ended with becomes its last state.
        container.last, container.ended = container.ended, None
        container.restarts += 1
        container.started, container.started_at, container.settled = now, moment, False
        container.retry = now + behaviour.backoff * min(2.0 ** (container.restarts - 1), LONGEST)
        _announce(container.name, self._images[container.name], step)
        waits.append(0.0)

    def _exit_of(self, container: Container, behaviour: Behaviour, now: float) -> int | None:
        """What a running container exits with now, None while it goes on."""
        if container.name in self._crash:
            return self._crash.pop(container.name)
        if container.restarts < behaviour.crashes_of(container.name):
            return 1
        assert container.started is not None
        return behaviour.exit_code if now >= container.started + behaviour.run_time else None

    def _stays_down(self, container: Container) -> bool:
        code = (container.ended or {}).get("exitCode", 0)
        return self._restart_policy == "Never" or (self._restart_policy == "OnFailure" and code == 0)

    def _end(self, container: Container, code: int, moment: str) -> None:
        container.ended = {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "startedAt": container.started_at,
            "finishedAt": moment,
            "containerID": self._id(container.name, container.restarts),
        }
        container.started = None

    def _end_all(self, code: int, moment: str) -> None:
        for container in self._containers:
            if container.running:
                self._end(container, code, moment)

    def _stop(self, pod: Obj, behaviour: Behaviour, now: float, moment: str, step: Step, waits: list[float]) -> None:
        if self._stopping is None:
            self._stopping = now
            step.notes += [Note("Killing", f"Stopping container {c.name}") for c in self._containers if c.running]
        left = self._stopping + behaviour.stop_delay - now
        if left > 0 and any(c.running for c in self._containers):
            if left < NEVER:
                waits.append(left)
            return
        self._end_all(0, moment)
        # With no grace left it has been deleted already, and something else holds it back.
        step.delete = pod["metadata"].get("deletionGracePeriodSeconds") != 0

    def _phase(self) -> str:
        if self._failed:
            return "Failed"
        if not self._begun:
            return "Pending"
        ended = [c.ended for c in self._containers]
        finished = all(e is not None for e in ended) and (
            self._stopping is not None or all(self._stays_down(c) for c in self._containers)
        )
        if not finished:
            return "Running"
        return "Succeeded" if all(e and e["exitCode"] == 0 for e in ended) else "Failed"

    def _status(self, pod: Obj, behaviour: Behaviour, now: float, moment: str) -> Obj:
        phase = self._phase()
        ready = {
            c.name: c.started is not None and (c.settled or now >= c.started + behaviour.ready_delay)
            for c in self._containers
        }
        status: Obj = {
            "phase": phase,
            "hostIP": self._host_ips[0],
            "hostIPs": [{"ip": ip} for ip in self._host_ips],
            "startTime": self._start_time,
        }
        if self._begun or self._pulls:
            status |= {"podIP": self.ips[0], "podIPs": [{"ip": ip} for ip in self.ips]}
        if self._failed:
            status |= {"reason": self._failed}
        if generation_of(pod):
            status["observedGeneration"] = generation_of(pod)
        if self._init:
            status["initContainerStatuses"] = [self._init_status(c, phase, behaviour, now) for c in self._init]
        status["containerStatuses"] = [
            self._container_status(c, ready[c.name], behaviour, now) for c in self._containers
        ]
        status["conditions"] = self._conditions(pod, phase, ready, moment)
        return status

    def _init_status(self, container: Obj, phase: str, behaviour: Behaviour, now: float) -> Obj:
        sidecar = container.get("restartPolicy") == "Always"
        done = {
            "terminated": {
                "exitCode": 0,
                "reason": "Completed",
                "startedAt": self._begun,
                "finishedAt": self._begun,
                "containerID": self._id(container["name"], 0),
            }
        }
        if not self._begun:
            state: Obj = self._waiting(container["name"], behaviour, now)
        elif sidecar and phase == "Running":
            state = {"running": {"startedAt": self._begun}}
        else:
            state = done
        return self._named(container["name"], state, {}, 0, bool(self._begun), sidecar and "running" in state)

    def _container_status(self, container: Container, ready: bool, behaviour: Behaviour, now: float) -> Obj:
        if container.running:
            state: Obj = {"running": {"startedAt": container.started_at}}
        elif container.ended is not None and (
            self._stays_down(container) or self._failed or self._stopping is not None
        ):
            state = {"terminated": container.ended}
        elif container.ended is not None:
            text = f"back-off restarting failed container={container.name}"
            state = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
        else:
            state = self._waiting(container.name, behaviour, now)
        last = container.ended if "waiting" in state and container.ended else container.last
        last_state = {"terminated": last} if last else {}
        return self._named(container.name, state, last_state, container.restarts, ready, container.running)

    def _named(self, name: str, state: Obj, last: Obj, restarts: int, ready: bool, started: bool) -> Obj:
        image = self._images[name]
        begun = "waiting" not in state or bool(last)
        status: Obj = {
            "name": name,
            "image": image,
            "imageID": f"embedded.k8s.test/{image}" if begun else "",
            "restartCount": restarts,
            "ready": ready,
            "started": started,
            "state": state,
            "lastState": last,
        }
        if begun:
            status["containerID"] = self._id(name, restarts)
        return status

    def _id(self, name: str, restarts: int) -> str:
        return f"embedded://{self.ips[0]}/{name}/{restarts}"

    def _conditions(self, pod: Obj, phase: str, ready: Mapping[str, bool], moment: str) -> list[Obj]:
        sandbox = phase == "Running" if self._begun else self._pulls
        unready = [name for name, is_ready in ready.items() if not is_ready]
        not_ready = ("ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
        if phase == "Succeeded":
            problem = ("PodCompleted", "")
        elif phase == "Failed":
            problem = ("PodFailed", "")
        else:
            problem = not_ready if unready else None
        init = [c["name"] for c in self._init] if not self._begun else []
        incomplete = ("ContainersNotInitialized", f"containers with incomplete status: [{' '.join(init)}]")
        found: dict[str, tuple[str, str] | None] = {
            "PodReadyToStartContainers": None if sandbox else ("", ""),
            "Initialized": incomplete if init else None,
            "ContainersReady": problem,
            "Ready": problem or _gates(pod),
        }
        return [_condition(pod, kind, why, moment) for kind, why in found.items()]


def _all(spec: Mapping[str, Any], which: str) -> Sequence[Obj]:
    return spec.get(which) or ()


def _announce(container: str, image: str, step: Step) -> None:
    step.notes += [
        Note("Pulled", f'Container image "{image}" already present on machine and can be accessed by the pod'),
        Note("Created", "Container created"),
        Note("Started", "Container started"),
    ]


def _gates(pod: Obj) -> tuple[str, str] | None:
    """What keeps a pod with ready containers from being ready: its readiness gates."""
    texts: list[str] = []
    for gate in pod["spec"].get("readinessGates") or ():
        kind = gate["conditionType"]
        condition = condition_of(pod, kind)
        if condition is None:
            texts.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif condition.get("status") != "True":
            texts.append(f'the status of pod readiness gate "{kind}" is not "True", but {condition.get("status")}')
    return ("ReadinessGatesNotReady", ", ".join(texts)) if texts else None


def _condition(pod: Obj, kind: str, why: tuple[str, str] | None, moment: str) -> Obj:
    status = "True" if why is None else "False"
    old = condition_of(pod, kind) or {}
    same = old.get("status") == status and old.get("lastTransitionTime")
    condition: Obj = {
        "type": kind,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": old["lastTransitionTime"] if same else moment,
        # Sent as null where empty, so that an earlier text goes.
        "reason": (why[0] if why else "") or None,
        "message": (why[1] if why else "") or None,
    }
    if generation_of(pod):
        condition["observedGeneration"] = generation_of(pod)
    return condition


def differs(pod: Obj, status: Mapping[str, Any]) -> bool:
    """Whether a status says something that the pod's own does not."""
    old = pod.get("status") or {}
    for name, value in status.items():
        if name == "conditions":
            for condition in value:
                before = condition_of(pod, condition["type"]) or {}
                if any(before.get(k) != v for k, v in condition.items()):
                    return True
        elif _compact(old.get(name)) != _compact(value):
            return True
    return False


def _compact(value: Any) -> Any:
    """A value without what a server leaves out."""
    if isinstance(value, Mapping):
        return {k: c for k, v in value.items() if (c := _compact(v)) not in (None, {}, [], "")}
    if isinstance(value, list):
        return [_compact(v) for v in value]
    return value
