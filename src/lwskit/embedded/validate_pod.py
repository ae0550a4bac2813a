"""Rules of pods and pod templates, new and changed. Pure."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from lwskit.embedded import names, validate_meta
from lwskit.embedded.failures import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from lwskit.embedded.validate_container import containers
from lwskit.runtime.objects import Obj

_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MUTABLE_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def spec(found: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """The broken rules of a pod's spec that stands at `field`."""
    volumes = yield from _volumes(found.get("volumes") or [], f"{field}.volumes")
    taken: set[str] = set()
    if not found.get("containers"):
        yield required(f"{field}.containers")
    yield from containers(found.get("containers") or [], f"{field}.containers", volumes, taken)
    yield from _host_ports(found.get("containers") or [], f"{field}.containers")
    yield from containers(found.get("initContainers") or [], f"{field}.initContainers", volumes, taken, first=True)
    if found.get("restartPolicy") not in _RESTART:
        yield not_supported(f"{field}.restartPolicy", found.get("restartPolicy"), _RESTART)
    if found.get("dnsPolicy") not in _DNS:
        yield not_supported(f"{field}.dnsPolicy", found.get("dnsPolicy"), _DNS)
    for name in found.get("nodeSelector") or {}:
        for text in names.qualified(name):
            yield invalid_value(f"{field}.nodeSelector", name, text)
    for name, check in (
        ("serviceAccountName", names.subdomain),
        ("nodeName", names.subdomain),
        ("hostname", names.label),
        ("subdomain", names.label),
    ):
        if found.get(name):
            for text in check(found[name]):
                yield invalid_value(f"{field}.{name}", found[name], text)
    seconds = found.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= 2**31 - 1:
        text = "must be between 1 and 2147483647, inclusive"
        yield invalid_value(f"{field}.activeDeadlineSeconds", seconds, text)
    yield from _tolerations(found.get("tolerations") or [], f"{field}.tolerations")
    yield from _placement(found, field)


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


def status(new: Obj, old: Obj | None) -> Iterator[FieldError]:
    """The broken rules of a pod's changed status."""
    before = old or new
    name = (new.get("status") or {}).get("nominatedNodeName")
    if before["spec"].get("nodeName") and name and name != (before.get("status") or {}).get("nominatedNodeName"):
        yield forbidden_field("status.nominatedNodeName", "may not be set on pods that are already bound to a node")
    addresses = (new.get("status") or {}).get("podIPs") or []
    families = [":" in a.get("ip", "") for a in addresses]
    if len(set(families)) < len(families):
        text = "may specify no more than one IP for each IP family"
        yield invalid_value("status.podIPs", [{"IP": a.get("ip", "")} for a in addresses], text)


def _volumes(volumes: list[dict[str, Any]], field: str) -> Generator[FieldError, None, set[str]]:
    """The errors of volumes; returns the names of those without one, which alone can be mounted."""
    seen: set[str] = set()
    for i, volume in enumerate(volumes):
        name = volume.get("name", "")
        errors = list(_volume(volume, name, f"{field}[{i}]", seen))
        yield from errors
        if not errors:
            seen.add(name)
    return seen


def _volume(volume: dict[str, Any], name: str, where: str, seen: set[str]) -> Iterator[FieldError]:
    if not name:
        yield required(f"{where}.name")
    else:
        for text in names.label(name):
            yield invalid_value(f"{where}.name", name, text)
        if name in seen:
            yield duplicate(f"{where}.name", name)
    sources = [k for k in volume if k != "name"]
    for extra in sorted(sources)[1:] if len(sources) > 1 else ():
        yield forbidden_field(f"{where}.{extra}", "may not specify more than 1 volume type")


def _tolerations(tolerations: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    for i, toleration in enumerate(tolerations):
        where = f"{field}[{i}]"
        operator = toleration.get("operator") or "Equal"
        if toleration.get("key"):
            for text in names.qualified(toleration["key"]):
                yield invalid_value(f"{where}.key", toleration["key"], text)
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid_value(f"{where}.operator", toleration.get("operator", ""), text)
        if operator not in ("Equal", "Exists"):
            yield not_supported(f"{where}.operator", operator, ("Equal", "Exists"))
        elif operator == "Exists" and toleration.get("value"):
            text = "value must be empty when `operator` is 'Exists'"
            yield invalid_value(f"{where}.operator", toleration["value"], text)


def _placement(found: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    for i, gate in enumerate(found.get("readinessGates") or ()):
        for text in names.qualified(gate.get("conditionType", "")):
            yield invalid_value(f"{field}.readinessGates[{i}].conditionType", gate.get("conditionType", ""), text)
    seen: set[str] = set()
    for i, gate in enumerate(found.get("schedulingGates") or ()):
        name = gate.get("name", "")
        for text in names.qualified(name):
            yield invalid_value(f"{field}.schedulingGates[{i}]", name, text)
        if name in seen:
            yield duplicate(f"{field}.schedulingGates[{i}]", name)
        seen.add(name)
    affinity = found.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        name = "requiredDuringSchedulingIgnoredDuringExecution"
        for i, term in enumerate((affinity.get(kind) or {}).get(name) or ()):
            if not term.get("topologyKey"):
                where = f"{field}.affinity.{kind}.{name}[{i}].topologyKey"
                yield required(where, "can not be empty")
                for text in names.qualified(""):
                    yield invalid_value(where, "", text)
    for i, spread in enumerate(found.get("topologySpreadConstraints") or ()):
        where = f"{field}.topologySpreadConstraints[{i}]"
        if spread.get("maxSkew", 0) <= 0:
            yield invalid_value(f"{where}.maxSkew", spread.get("maxSkew", 0), "must be greater than zero")
        if not spread.get("topologyKey"):
            yield required(f"{where}.topologyKey", "can not be empty")
        pair = (spread.get("topologyKey"), spread.get("whenUnsatisfiable"))
        later = found["topologySpreadConstraints"][i + 1 :]
        if any(pair == (s.get("topologyKey"), s.get("whenUnsatisfiable")) for s in later):
            yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")
        allowed = ("DoNotSchedule", "ScheduleAnyway")
        if spread.get("whenUnsatisfiable") not in allowed:
            yield not_supported(f"{where}.whenUnsatisfiable", spread.get("whenUnsatisfiable"), allowed)


def template(found: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """The broken rules of a pod template."""
    meta = found.get("metadata") or {}
    yield from validate_meta.labels(meta.get("labels"), f"{field}.labels")
    yield from validate_meta.annotation_keys(meta.get("annotations"), f"{field}.annotations")
    yield from spec(found.get("spec") or {}, f"{field}.spec")


def update(new: Obj, old: Obj) -> Iterator[FieldError]:
    """The broken rules of a changed pod: little of a spec may change."""
    before, after = old["spec"], new["spec"]
    for kind in ("containers", "initContainers"):
        found = after.get(kind) or []
        if len(found) != len(before.get(kind) or []):
            yield forbidden_field(f"spec.{kind}", "pod updates may not add or remove containers")
            return
    deadline, limit = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if deadline is not None and not 0 <= deadline <= 2**31 - 1:
        yield invalid_value("spec.activeDeadlineSeconds", deadline, "must be between 0 and 2147483647, inclusive")
        return
    if deadline is not None and limit is not None and deadline > limit:
        yield invalid_value("spec.activeDeadlineSeconds", deadline, "must be less than or equal to previous value")
        return
    if deadline is None and limit is not None:
        text = "must not update from a positive integer to nil value"
        yield invalid_value("spec.activeDeadlineSeconds", None, text)
    gone = [t for t in before.get("tolerations") or () if not _kept(t, after.get("tolerations") or ())]
    if gone:
        yield forbidden_field(
            "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )
    yield from _gates(before, after)
    gated = bool(before.get("schedulingGates"))
    if gated:
        yield from _selector_additions(before.get("nodeSelector") or {}, after.get("nodeSelector") or {})
    for name in sorted(before.keys() | after.keys()):
        if _comparable(name, before.get(name), gated) != _comparable(name, after.get(name), gated):
            yield forbidden_field("spec", f"{_MUTABLE_TEXT}\n{_difference(name, before.get(name), after.get(name))}")
            return


def _selector_additions(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[FieldError]:
    """While a pod is gated, its node selector may only grow."""
    for key, value in before.items():
        if after.get(key) != value:
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            yield invalid_value("spec.nodeSelector", after or None, text)
            return


def _gates(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldError]:
    known = {g["name"] for g in before.get("schedulingGates") or ()}
    for i, gate in enumerate(after.get("schedulingGates") or ()):
        if gate["name"] not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden_field(f"spec.schedulingGates[{i}].name", text)


def _kept(toleration: Mapping[str, Any], found: Any) -> bool:
    def bare(t: Mapping[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in t.items() if k != "tolerationSeconds"}

    return any(bare(t) == bare(toleration) for t in found)


def _comparable(name: str, value: Any, gated: bool) -> Any:
    """What of a field must stay the same."""
    if name in ("tolerations", "activeDeadlineSeconds", "schedulingGates"):
        return None
    if name in ("containers", "initContainers"):
        return [{k: v for k, v in c.items() if k != "image"} for c in value or ()]
    if gated and name == "nodeSelector":
        return None
    if gated and name == "affinity":
        return {k: v for k, v in (value or {}).items() if k != "nodeAffinity"}
    return value


def _difference(name: str, before: Any, after: Any) -> str:
    """The changed field, as two lines of a diff."""
    title = name[0].upper() + name[1:]
    lines = [f'{sign} "{title}": {json.dumps(value)},' for sign, value in (("-", before), ("+", after))]
    return "\n".join(lines) + "\n"
