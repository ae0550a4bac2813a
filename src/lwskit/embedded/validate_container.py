"""Rules of containers; those of their parts are in modules of their own. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lwskit.embedded import names, validate_probe, validate_security, validate_volume
from lwskit.embedded.failures import FieldError, duplicate, forbidden_field, invalid_value, not_supported, required
from lwskit.embedded.validate_environment import environment, sources
from lwskit.embedded.validate_resources import resizing, resources
from lwskit.embedded.validate_values import PORT_RANGE, PULL_POLICIES, chosen

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TERMINATION = ("File", "FallbackToLogsOnError")
_RESTARTS = ("Always", "Never", "OnFailure")
_HOOKS = ("lifecycle", *validate_probe.KINDS)


@dataclass(frozen=True, slots=True)
class Around:
    """What of a pod its containers are checked against."""

    volumes: Mapping[str, Mapping[str, Any]]
    claims: Collection[str]
    grace: int | None
    restart: str | None
    host_users: bool


def containers(found: list[dict[str, Any]], field: str, pod: Around) -> Iterator[FieldError]:
    """The broken rules of a pod's containers."""
    if not found:
        yield required(field)
    taken: set[str] = set()
    for i, container in enumerate(found):
        where = f"{field}[{i}]"
        yield from _common(container, where, pod)
        name = container.get("name", "")
        if name in taken:
            yield duplicate(f"{where}.name", name)
        taken.add(name)
        yield from _hooks(container, where, pod)
        yield from _restarting(container, where)
    yield from _host_ports(found, field)


def init_containers(found: list[dict[str, Any]], field: str, pod: Around, taken: set[str]) -> Iterator[FieldError]:
    """The broken rules of containers that run first; `taken` are the names of the others, to which these are added."""
    for i, container in enumerate(found):
        where = f"{field}[{i}]"
        yield from _common(container, where, pod)
        yield from _restarting(container, where)
        name = container.get("name", "")
        if name in taken:
            yield duplicate(f"{where}.name", name)
        elif name:
            taken.add(name)
        yield from _host_ports([container], field)
        if container.get("restartPolicy") == "Always":
            yield from _hooks(container, where, pod)
            continue
        for hook in _HOOKS:
            if container.get(hook) is not None:
                text = "may not be set for init containers without restartPolicy=Always"
                yield forbidden_field(f"{where}.{hook}", text)
        for j, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                yield invalid_value(f"{where}.resizePolicy[{j}].restartPolicy", "RestartContainer", text)


def images(found: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    """The errors of images that only pods have: templates may have any."""
    for i, container in enumerate(found):
        image = container.get("image", "")
        if image != image.strip():
            yield invalid_value(f"{field}[{i}].image", image, "must not have leading or trailing whitespace")


def _common(container: Mapping[str, Any], where: str, pod: Around) -> Iterator[FieldError]:
    name = container.get("name", "")
    if not name:
        yield required(f"{where}.name")
    for text in names.label(name) if name else ():
        yield invalid_value(f"{where}.name", name, text)
    if not container.get("image"):
        yield required(f"{where}.image")
    yield from chosen(container.get("terminationMessagePolicy"), f"{where}.terminationMessagePolicy", _TERMINATION)
    yield from _ports(container.get("ports") or [], f"{where}.ports")
    yield from environment(container.get("env") or [], f"{where}.env")
    yield from sources(container.get("envFrom") or [], f"{where}.envFrom")
    yield from validate_volume.mounts(container, where, pod.volumes)
    yield from validate_volume.devices(container, where, pod.volumes)
    yield from chosen(container.get("imagePullPolicy"), f"{where}.imagePullPolicy", PULL_POLICIES)
    yield from resources(container.get("resources") or {}, f"{where}.resources", pod.claims)
    yield from resizing(container.get("resizePolicy") or [], f"{where}.resizePolicy", pod.restart)
    security = container.get("securityContext") or {}
    yield from validate_security.of_container(security, f"{where}.securityContext", host_users=pod.host_users)


def _hooks(container: Mapping[str, Any], where: str, pod: Around) -> Iterator[FieldError]:
    if container.get("lifecycle") is not None:
        yield from validate_probe.lifecycle(container["lifecycle"], f"{where}.lifecycle", pod.grace)
    for kind in validate_probe.KINDS:
        if container.get(kind) is not None:
            yield from validate_probe.probe(container[kind], f"{where}.{kind}", kind)


def _restarting(container: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None:
        if rules:
            text = "must specify restartPolicy when restart rules are used"
            yield required(f"{where}.restartPolicy", text)
    elif policy not in _RESTARTS:
        yield not_supported(f"{where}.restartPolicy", policy, _RESTARTS)


def _ports(ports: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, port in enumerate(ports):
        where = f"{field}[{i}]"
        name, number = port.get("name"), port.get("containerPort", 0)
        if name:
            texts = names.port_name(name)
            for text in texts:
                yield invalid_value(f"{where}.name", name, text)
            if name in seen:
                yield duplicate(f"{where}.name", name)
            elif not texts:
                seen.add(name)
        if not number:
            yield required(f"{where}.containerPort")
        elif not 0 < number < 65536:
            yield invalid_value(f"{where}.containerPort", number, PORT_RANGE)
        if port.get("hostPort") and not 0 < port["hostPort"] < 65536:
            yield invalid_value(f"{where}.hostPort", port["hostPort"], PORT_RANGE)
        yield from chosen(port.get("protocol"), f"{where}.protocol", _PROTOCOLS)


def _host_ports(found: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    """No two containers may take the same port of their node."""
    seen: set[str] = set()
    for i, container in enumerate(found):
        for j, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                key = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if key in seen:
                    yield duplicate(f"{field}[{i}].ports[{j}].hostPort", key)
                seen.add(key)
