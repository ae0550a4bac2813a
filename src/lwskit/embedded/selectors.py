"""Field selectors: which fields each resource lets a list or watch select by. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lwskit.embedded import label_selectors
from lwskit.embedded.failures import bad_request
from lwskit.embedded.resources import Resource
from lwskit.embedded.store import Filter
from lwskit.runtime.objects import Obj

_EVENT = {
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
}
_FIELDS: dict[str, set[str]] = {
    "/pods": {
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    },
    "/events": _EVENT,
    "/namespaces": {"status.phase"},
    "/nodes": {"spec.unschedulable"},
    "/secrets": {"type"},
    "/services": {"spec.clusterIP", "spec.type"},
    "/replicationcontrollers": {"status.replicas"},
    "apps/replicasets": {"status.replicas"},
    "batch/jobs": {"status.successful"},
    "certificates.k8s.io/certificatesigningrequests": {"spec.signerName"},
    "certificates.k8s.io/clustertrustbundles": {"spec.signerName"},
    "certificates.k8s.io/podcertificaterequests": {"spec.signerName", "spec.nodeName"},
    "resource.k8s.io/resourceslices": {"spec.nodeName", "spec.driver"},
}
_RENAMED = {
    "reportingController": "reportingComponent",
    "regarding": "involvedObject",
}
_FALSE_WHEN_ABSENT = {"spec.hostNetwork", "spec.unschedulable"}


def read_field(obj: Obj, path: str) -> str:
    """The value of a selectable field as text; absent is the empty text."""
    if path == "source":
        source = obj.get("source") or {}
        return source.get("component", "") or obj.get("reportingComponent", "")
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return "false" if path in _FALSE_WHEN_ABSENT else ("0" if path == "status.replicas" else "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _terms(text: str) -> list[tuple[str, str, bool]]:
    found = []
    for part in re.findall(r"(?:\\.|[^,\\])+", text):
        sign = re.search(r"!=|==?", part)
        if sign is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        name, value = part[: sign.start()], _unescaped(part[sign.end() :])
        if name or value:
            found.append((name, value, sign[0] != "!="))
    return found


def _unescaped(text: str) -> str:
    """A value without the backslashes before what has a meaning of its own. Raises InvalidRequest."""
    bare = re.sub(r"\\.", "", text)
    strange = re.search(r"[,=]", bare)
    if strange:
        raise bad_request(f"invalid field selector: unescaped character in value: {ord(strange[0])}")
    return re.sub(r"\\(.)", r"\1", text)


def _known(resource: Resource, name: str) -> str:
    if name in ("metadata.name", "metadata.namespace"):
        return name
    fields = _FIELDS.get(resource.storage, set())
    if resource.storage == "/events" and resource.group:
        head, dot, rest = name.partition(".")
        name = _RENAMED.get(head, head) + dot + rest
    if resource.custom is not None:
        fields = resource.custom.selectable_fields
    if name not in fields and resource.custom is None and resource.storage not in _FIELDS:
        raise bad_request(f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"')
    if name not in fields:
        raise bad_request(f"field label not supported: {name}")
    return name


def check_syntax(labels: str, fields: str) -> None:
    """Raises InvalidRequest when these are no selectors; whether the fields are known is not looked at."""
    if labels:
        label_selectors.parse(labels)
    _terms(fields)


def wanted(resource: Resource, labels: str, fields: str) -> Filter | None:
    """The filter for a list or watch, None when everything is wanted. Raises InvalidRequest."""
    checks: list[Callable[[Obj], bool]] = []
    if labels:
        selector = label_selectors.parse(labels)
        checks.append(lambda obj: selector.matches(obj["metadata"].get("labels") or {}))
    for name, value, equal in _terms(fields) if fields else ():
        checks.append(_check(_known(resource, name), value, equal))
    if not checks:
        return None
    if len(checks) == 1:
        return checks[0]
    return lambda obj: all(check(obj) for check in checks)


def _check(path: str, value: str, equal: bool) -> Callable[[Obj], bool]:
    return lambda obj: (read_field(obj, path) == value) is equal


def exact_name(fields: str) -> str | None:
    """The name in `metadata.name=x`, if the selector asks for exactly one."""
    for name, value, equal in _terms(fields) if fields else ():
        if name == "metadata.name" and equal:
            return value
    return None
