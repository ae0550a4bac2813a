"""What a client is told of an object that is accepted all the same. Pure.

Source: what an API server of Kubernetes 1.37 sends in Warning headers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lwskit.embedded import names, validate_service
from lwskit.embedded.controllers import kubelet_behaviour
from lwskit.embedded.resources import Resource
from lwskit.runtime import quantity
from lwskit.runtime.objects import Obj

_WORKLOADS = frozenset({"apps/deployments", "apps/statefulsets", "apps/daemonsets", "apps/replicasets"})
_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_MATCHES_NONE = "a null labelSelector results in matching no pod"
_WHOLE_BYTES = ("memory", "ephemeral-storage")


def of(resource: Resource, new: Obj, old: Obj | None, subresource: str) -> Iterator[str]:
    """The warnings about a new object, or a changed one."""
    if resource.custom is not None:
        yield from _finalizers(new, old)
    elif subresource not in ("", "scale"):
        return
    elif resource.storage == "/services":
        yield from validate_service.warnings(new)
    elif resource.storage == "/pods" and old is None:
        texts = names.label(new["metadata"]["name"])
        if texts:
            yield (
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
                f"a DNS label is recommended: [{' '.join(texts)}]"
            )
        yield from _pod(new["spec"], "spec")
        yield from _behaviour(new)
    elif resource.storage == "/pods" and old is not None:
        known = set(_behaviour(old))
        yield from (text for text in _behaviour(new) if text not in known)
    elif resource.storage in _WORKLOADS:
        spec = new["spec"]
        if old is None or new["metadata"].get("generation") != old["metadata"].get("generation"):
            yield from _pod(spec["template"].get("spec") or {}, "spec.template.spec")
            yield from _behaviour(spec["template"])
            for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
                yield from _claim(
                    claim.get("spec") or {}, f"spec.volumeClaimTemplates[{i}]{'' if old is None else '.Spec'}"
                )
        if resource.storage == "apps/statefulsets" and spec.get("revisionHistoryLimit", 0) < 0:
            yield (
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; "
                "a value >= 0 is recommended"
            )


def _behaviour(pod: Obj) -> Iterator[str]:
    """What the embedded kubelet will not understand of a pod, or of a template: only this server says so."""
    notes = (pod.get("metadata") or {}).get("annotations") or {}
    containers = [c.get("name", "") for c in (pod.get("spec") or {}).get("containers") or ()]
    return kubelet_behaviour.problems(notes, containers)


def _finalizers(new: Obj, old: Obj | None) -> Iterator[str]:
    known = (old or {"metadata": {}})["metadata"].get("finalizers") or ()
    for name in sorted(set(new["metadata"].get("finalizers") or ()) - set(known)):
        for text in names.qualified(name):
            yield f'metadata.finalizers: "{name}": {text}'
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            yield (
                f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name{path} to avoid accidental '
                "conflicts with other finalizer writers"
            )


def _pod(spec: Mapping[str, Any], field: str) -> Iterator[str]:
    for i, spread in enumerate(spec.get("topologySpreadConstraints") or ()):
        if spread.get("labelSelector") is None:
            yield f"{field}.topologySpreadConstraints[{i}].labelSelector: {_MATCHES_NONE}"
    yield from _doubled(spec.get("hostAliases") or (), "ip", f"{field}.hostAliases")
    yield from _doubled(spec.get("imagePullSecrets") or (), "name", f"{field}.imagePullSecrets")
    for i, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{field}.imagePullSecrets[{i}].name: invalid empty name ""'
    yield from _volumes(spec.get("volumes") or (), f"{field}.volumes")
    containers: list[tuple[Mapping[str, Any], str]] = [
        (c, f"{field}.{kind}[{i}]")
        for kind in ("initContainers", "containers", "ephemeralContainers")
        for i, c in enumerate(spec.get(kind) or ())
    ]
    for container, where in containers:
        yield from _container(container, where)
    yield from _ports(containers)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{field}.terminationGracePeriodSeconds: {text}"
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _affinity((spec.get("affinity") or {}).get(kind) or {}, f"{field}.affinity.{kind}")


def _claim(spec: Mapping[str, Any], field: str) -> Iterator[str]:
    for kind in ("requests", "limits"):
        value = ((spec.get("resources") or {}).get(kind) or {}).get("storage")
        if value is not None and quantity.parse(value) % 1:
            yield f'{field}.resources.{kind}[storage]: fractional byte value "{value}" is invalid, must be an integer'


def _volumes(volumes: Sequence[Mapping[str, Any]], field: str) -> Iterator[str]:
    for i, volume in enumerate(volumes):
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if claim:
            yield from _claim(claim.get("spec") or {}, f"{field}[{i}].ephemeral.volumeClaimTemplate.spec")
        for source in (volume.get("projected") or {}).get("sources") or ():
            if not source:
                yield f'volume "{volume.get("name", "")}" (Projected) has no sources provided'


def _affinity(affinity: Mapping[str, Any], field: str) -> Iterator[str]:
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    for i, term in enumerate(affinity.get(name) or ()):
        if term.get("labelSelector") is None:
            yield f"{field}.{name}[{i}].labelSelector: {_MATCHES_NONE}"
    name = "preferredDuringSchedulingIgnoredDuringExecution"
    for i, term in enumerate(affinity.get(name) or ()):
        if (term.get("podAffinityTerm") or {}).get("labelSelector") is None:
            yield f"{field}.{name}[{i}].podAffinityTerm.labelSelector: {_MATCHES_NONE}"


def _doubled(items: Any, key: str, field: str) -> Iterator[str]:
    seen: set[str] = set()
    for i, item in enumerate(items):
        value = item.get(key, "")
        if value in seen:
            yield f'{field}[{i}].{key}: duplicate {key} "{value}"'
        seen.add(value)


def _container(container: Mapping[str, Any], where: str) -> Iterator[str]:
    for resource in _WHOLE_BYTES:
        for kind in ("limits", "requests"):
            value = ((container.get("resources") or {}).get(kind) or {}).get(resource)
            if value is not None and quantity.parse(value) % 1:
                text = f'fractional byte value "{value}" is invalid, must be an integer'
                yield f"{where}.resources.{kind}[{resource}]: {text}"
    seen: set[str] = set()
    for i, item in enumerate(container.get("env") or ()):
        name, value = item["name"], item.get("value", "")
        if name in seen and (item.get("valueFrom") or value == f"$({name})" or f"$({name})" not in value):
            text = f'hides previous definition of "{name}", which may be dropped when using apply'
            yield f"{where}.env[{i}]: {text}"
        seen.add(name)


def _ports(containers: list[tuple[Mapping[str, Any], str]]) -> Iterator[str]:
    ports = [(p, f"{where}.ports[{i}]") for c, where in containers for i, p in enumerate(c.get("ports") or ())]
    seen: dict[tuple[int, str], list[tuple[Mapping[str, Any], str]]] = {}
    for port, where in ports:
        if port.get("hostIP") and not port.get("hostPort"):
            shown = " ".join(
                f"{name}:{port.get(key, empty)}"
                for name, key, empty in (
                    ("Name", "name", ""),
                    ("HostPort", "hostPort", 0),
                    ("ContainerPort", "containerPort", 0),
                    ("Protocol", "protocol", "TCP"),
                    ("HostIP", "hostIP", ""),
                )
            )
            yield f"{where}: hostIP set without hostPort: {{{shown}}}"
        others = seen.setdefault((port.get("containerPort", 0), port.get("protocol", "TCP")), [])
        for other, place in others:
            mine, theirs = ((p.get("hostIP", ""), p.get("hostPort", 0)) for p in (port, other))
            if mine == theirs:
                yield f"{where}: duplicate port definition with {place}"
            elif not mine[1] or not theirs[1]:
                yield f"{where}: overlapping port definition with {place}"
            elif mine[1] == theirs[1] and (mine[0] == "") != (theirs[0] == ""):
                yield f"{where}: dangerously ambiguous port definition with {place}"
        others.append((port, where))
    named: dict[str, str] = {}
    for port, where in ports:
        name = port.get("name")
        if name and name in named:
            first = named[name]
            yield (
                f'{where}: duplicate port name "{name}" with {first}, services and probes that select ports by name '
                f"will use {first}"
            )
        elif name:
            named[name] = where
