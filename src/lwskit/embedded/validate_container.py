"""Rules of containers: names, images, ports, environment, resources, mounts, probes. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lwskit.embedded import names
from lwskit.embedded.failures import FieldError, duplicate, forbidden_field, invalid_value, not_supported, required
from lwskit.runtime import quantity

PORT_RANGE = "must be between 1 and 65535, inclusive"
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PULL = ("Always", "IfNotPresent", "Never")
_TERMINATION = ("File", "FallbackToLogsOnError")
_STANDARD = ("cpu", "memory", "ephemeral-storage")
_FIELD_PATHS = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
_SUBSCRIPTED = re.compile(r"metadata\.(labels|annotations)\['[^']+'\]")


def containers(
    found: list[dict[str, Any]], field: str, volumes: Collection[str], taken: set[str], *, first: bool = False
) -> Iterator[FieldError]:
    """The broken rules of a list of containers; `taken` are names already used, to which these are added.

    `first` says that they are init containers: without restarts they have neither probes nor hooks.
    """
    for i, container in enumerate(found):
        where = f"{field}[{i}]"
        yield from _name(container.get("name", ""), f"{where}.name", taken)
        image = container.get("image", "")
        if not image:
            yield required(f"{where}.image")
        elif image != image.strip():
            yield invalid_value(f"{where}.image", image, "must not have leading or trailing whitespace")
        yield from _ports(container.get("ports") or [], f"{where}.ports")
        yield from _environment(container.get("env") or [], f"{where}.env")
        yield from _mounts(container.get("volumeMounts") or [], f"{where}.volumeMounts", volumes)
        once = first and container.get("restartPolicy") != "Always"
        for probe in _PROBES if not once else ():
            if container.get(probe) is not None:
                yield from _probe(container[probe], f"{where}.{probe}")
        policy = container.get("imagePullPolicy")
        if policy not in _PULL:
            yield not_supported(f"{where}.imagePullPolicy", policy, _PULL)
        if container.get("terminationMessagePolicy") not in _TERMINATION:
            yield not_supported(
                f"{where}.terminationMessagePolicy", container.get("terminationMessagePolicy"), sorted(_TERMINATION)
            )
        yield from resources(container.get("resources") or {}, f"{where}.resources")
        for name in ("lifecycle", *_PROBES) if once else ():
            if container.get(name) is not None:
                text = "may not be set for init containers without restartPolicy=Always"
                yield forbidden_field(f"{where}.{name}", text)


def _name(name: str, where: str, taken: set[str]) -> Iterator[FieldError]:
    if not name:
        yield required(where)
        return
    for text in names.label(name):
        yield invalid_value(where, name, text)
    if name in taken:
        yield duplicate(where, name)
    taken.add(name)


def _ports(ports: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, port in enumerate(ports):
        where = f"{field}[{i}]"
        name, number = port.get("name"), port.get("containerPort", 0)
        if name:
            for text in names.port_name(name):
                yield invalid_value(f"{where}.name", name, text)
            if name in seen:
                yield duplicate(f"{where}.name", name)
            seen.add(name)
        if not number:
            yield required(f"{where}.containerPort")
        elif not 0 < number < 65536:
            yield invalid_value(f"{where}.containerPort", number, PORT_RANGE)
        if port.get("hostPort") and not 0 < port["hostPort"] < 65536:
            yield invalid_value(f"{where}.hostPort", port["hostPort"], PORT_RANGE)
        if port.get("protocol") not in _PROTOCOLS:
            yield not_supported(f"{where}.protocol", port.get("protocol"), _PROTOCOLS)


def _environment(env: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    for i, variable in enumerate(env):
        where = f"{field}[{i}]"
        name, source = variable.get("name", ""), variable.get("valueFrom")
        if not name:
            yield required(f"{where}.name")
        elif not re.fullmatch(r"[ -<>-~]+", name):
            text = "a valid environment variable name must consist only of printable ASCII characters other than '='"
            yield invalid_value(f"{where}.name", name, text)
        if source is None:
            continue
        if variable.get("value"):
            yield invalid_value(f"{where}.valueFrom", "", "may not be specified when `value` is not empty")
        if not source:
            yield invalid_value(
                f"{where}.valueFrom",
                "",
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
                "`fileKeyRef`",
            )
        path = (source.get("fieldRef") or {}).get("fieldPath")
        if path is not None and path not in _FIELD_PATHS and not _SUBSCRIPTED.fullmatch(path):
            text = f"error converting fieldPath: field label not supported: {path}"
            yield invalid_value(f"{where}.valueFrom.fieldRef.fieldPath", path, text)


def _mounts(mounts: list[dict[str, Any]], field: str, volumes: Collection[str]) -> Iterator[FieldError]:
    paths: set[str] = set()
    for i, mount in enumerate(mounts):
        where = f"{field}[{i}]"
        if not mount.get("name"):
            yield required(f"{where}.name")
        if mount.get("name", "") not in volumes:
            yield FieldError("FieldValueNotFound", f"{where}.name", f'Not found: "{mount.get("name", "")}"')
        path = mount.get("mountPath")
        if not path:
            yield required(f"{where}.mountPath")
        elif path in paths:
            yield FieldError("FieldValueInvalid", f"{where}.mountPath", f'Invalid value: "{path}": must be unique')
        paths.add(path or "")


def _probe(probe: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    handlers = [h for h in ("exec", "httpGet", "tcpSocket", "grpc") if probe.get(h) is not None]
    if not handlers:
        yield required(where, "must specify a handler type")
    for name in ("httpGet", "tcpSocket", "grpc"):
        port = (probe.get(name) or {}).get("port")
        if isinstance(port, int) and not 0 < port < 65536:
            yield invalid_value(f"{where}.{name}.port", port, PORT_RANGE)
    names_ = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    for name in names_:
        if probe.get(name, 0) < 0:
            yield invalid_value(f"{where}.{name}", probe[name], "must be greater than or equal to 0")


def resources(found: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    """The broken rules of resource requests and limits."""
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for kind, values in (("limits", limits), ("requests", requests)):
        for name, amount in values.items():
            yield from _resource(name, amount, f"{where}.{kind}[{name}]")
    for name, amount in requests.items():
        limit = limits.get(name)
        extended = name not in _STANDARD and not name.startswith("hugepages-")
        if limit is not None and quantity.parse(amount) > quantity.parse(limit):
            text = f"must be less than or equal to {name} limit of {limit}"
            yield invalid_value(f"{where}.requests", amount, text)
        elif limit is not None and extended and not quantity.equal(amount, limit):
            yield invalid_value(f"{where}.requests", amount, f"must be equal to {name} limit of {limit}")
        elif limit is None and extended and "/" in name:
            yield required(f"{where}.limits", "Limit must be set for non overcommitable resources")


def _resource(name: str, amount: str, where: str) -> Iterator[FieldError]:
    if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield invalid_value(where, name, "must be a standard resource type or fully qualified")
        yield invalid_value(where, name, "must be a standard resource for containers")
    for text in names.qualified(name):
        yield invalid_value(where, name, text)
    if quantity.parse(amount) < 0:
        yield invalid_value(where, amount, "must be greater than or equal to 0")
