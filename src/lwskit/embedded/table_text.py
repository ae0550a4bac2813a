"""Texts of table cells: ages, states of pods, ports, selectors. Pure.

Source: what `kubectl get` prints against a real server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from lwskit.runtime.clock import parse_time
from lwskit.runtime.objects import Obj, Selector

NONE = "<none>"
UNKNOWN = "<unknown>"
_TERMINAL = ("Succeeded", "Failed")


def duration(seconds: float) -> str:
    """A length of time in at most two units."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"


def since(text: str | None, now: datetime) -> str:
    """How long ago a time is, `<unknown>` for none."""
    if not text:
        return UNKNOWN
    try:
        return duration((now - parse_time(text)).total_seconds())
    except ValueError:
        return "<invalid>"


def age(obj: Obj, now: datetime) -> str:
    """How long ago an object was created."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def joined(items: Iterable[str]) -> str:
    """Texts with commas between them."""
    return ",".join(items)


def labels(found: Mapping[str, str] | None) -> str:
    """Labels as `a=b,c=d`, `<none>` for none."""
    return joined(f"{k}={v}" for k, v in sorted((found or {}).items())) or NONE


def selector(found: Mapping[str, Any] | None) -> str:
    """A label selector as text, `<none>` for an empty one."""
    return str(Selector.from_object(found)) or NONE


def containers(spec: Mapping[str, Any]) -> tuple[str, str]:
    """The names and the images of a pod template's containers."""
    found = spec.get("containers") or ()
    return joined(c["name"] for c in found), joined(c.get("image", "") for c in found)


def access_modes(modes: Sequence[str] | None) -> str:
    """Access modes of volumes, abbreviated."""
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    order = [m for m in short if m in (modes or ())]
    return joined(short[m] for m in order)


def service_ports(ports: Iterable[Mapping[str, Any]]) -> str:
    """Ports of a service as `80/TCP,443:30001/TCP`."""
    texts = []
    for port in ports:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port['port']}{node}/{port.get('protocol', 'TCP')}")
    return joined(texts) or NONE


def external_addresses(service: Obj) -> str:
    """Where a service can be reached from outside."""
    spec = service["spec"]
    kind, given = spec.get("type", "ClusterIP"), list(spec.get("externalIPs") or ())
    if kind == "ExternalName":
        return spec.get("externalName") or NONE
    if kind == "LoadBalancer":
        ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        found = [i.get("ip") or i.get("hostname", "") for i in ingress] + given
        return joined(found) or "<pending>"
    return joined(given) or NONE


class PodState:
    """How a pod is doing, in the words of `kubectl get pods`."""

    def __init__(self, pod: Obj, now: datetime) -> None:
        self._pod = pod
        self._now = now
        self._status = pod.get("status") or {}
        self._spec = pod["spec"]
        self.total = len(self._spec.get("containers") or ())
        self.ready = 0
        self.restarts = 0
        self._last_restart: str | None = None
        self.reason = self._status.get("reason") or self._status.get("phase", "")
        self._read()

    def _condition(self, kind: str) -> Mapping[str, Any]:
        return next((c for c in self._status.get("conditions") or () if c["type"] == kind), {})

    def _read(self) -> None:
        if self._condition("PodScheduled").get("reason") == "SchedulingGated":
            self.reason = "SchedulingGated"
        sidecars = {c["name"] for c in self._spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
        self.total += len(sidecars)
        initializing = self._initializing(sidecars)
        if not initializing or self._condition("Initialized").get("status") == "True":
            self._running(sidecars)
        meta = self._pod["metadata"]
        if meta.get("deletionTimestamp"):
            if self._status.get("reason") == "NodeLost":
                self.reason = "Unknown"
            elif self._status.get("phase") not in _TERMINAL:
                self.reason = "Terminating"

    def _count(self, status: Mapping[str, Any]) -> None:
        self.restarts += status.get("restartCount", 0)
        finished = ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        if finished and (self._last_restart is None or finished > self._last_restart):
            self._last_restart = finished

    def _initializing(self, sidecars: set[str]) -> bool:
        total = len(self._spec.get("initContainers") or ())
        for i, status in enumerate(self._status.get("initContainerStatuses") or ()):
            self._count(status)
            state = status.get("state") or {}
            terminated, waiting = state.get("terminated"), state.get("waiting")
            sidecar = status["name"] in sidecars
            if sidecar and status.get("ready"):
                self.ready += 1
            if terminated is not None and terminated.get("exitCode", 0) == 0:
                continue
            if sidecar and status.get("started"):
                continue
            if terminated is not None:
                self.reason = "Init:" + (terminated.get("reason") or _exit(terminated))
            elif waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
                self.reason = "Init:" + waiting["reason"]
            else:
                self.reason = f"Init:{i}/{total}"
            return True
        return False

    def _running(self, sidecars: set[str]) -> None:
        self.restarts = sum(
            s.get("restartCount", 0) for s in self._status.get("initContainerStatuses") or () if s["name"] in sidecars
        )
        running = False
        for status in reversed(self._status.get("containerStatuses") or ()):
            self._count(status)
            state = status.get("state") or {}
            terminated, waiting = state.get("terminated"), state.get("waiting")
            if waiting is not None and waiting.get("reason"):
                self.reason = waiting["reason"]
            elif terminated is not None:
                self.reason = terminated.get("reason") or _exit(terminated)
            elif status.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed" and running:
            self.reason = "Running" if self._condition("Ready").get("status") == "True" else "NotReady"

    @property
    def restarts_text(self) -> str:
        """The number of restarts, and when the last one was."""
        if self.restarts and self._last_restart:
            return f"{self.restarts} ({since(self._last_restart, self._now)} ago)"
        return str(self.restarts)

    @property
    def gates_text(self) -> str:
        """How many readiness gates are fulfilled."""
        gates = self._spec.get("readinessGates") or ()
        if not gates:
            return NONE
        met = sum(1 for g in gates if self._condition(g["conditionType"]).get("status") == "True")
        return f"{met}/{len(gates)}"


def _exit(terminated: Mapping[str, Any]) -> str:
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def node_status(node: Obj) -> str:
    """Ready or not, and whether pods are kept away."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = next((c for c in conditions if c["type"] == "Ready"), None)
    text = "Unknown" if ready is None else ("Ready" if ready.get("status") == "True" else "NotReady")
    return f"{text},SchedulingDisabled" if node["spec"].get("unschedulable") else text


def node_roles(node: Obj) -> str:
    """Roles from the labels that name them."""
    prefix = "node-role.kubernetes.io/"
    found = node["metadata"].get("labels") or {}
    roles = {k.removeprefix(prefix) for k in found if k.startswith(prefix)}
    if found.get("kubernetes.io/role"):
        roles.add(found["kubernetes.io/role"])
    return joined(sorted(r for r in roles if r)) or NONE
