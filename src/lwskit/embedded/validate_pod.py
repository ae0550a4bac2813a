"""Rules of pods and pod templates, new and changed. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lwskit.embedded import (
    names,
    validate_meta,
    validate_placement,
    validate_resources,
    validate_security,
    validate_volume,
)
from lwskit.embedded.failures import FieldError, forbidden_field, invalid_value, required, too_long
from lwskit.embedded.validate_container import Around, containers, images, init_containers
from lwskit.embedded.validate_values import address, chosen, labels
from lwskit.runtime.objects import Obj
from lwskit.runtime.ranking import DELETION_COST, is_deletion_cost

_RESTART = ("Always", "OnFailure", "Never")
_SYSTEMS = ("linux", "windows")
_PREEMPTION = ("PreemptLowerPriority", "Never")
_MOST_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES, _LONGEST_HOSTNAME = 3, 32, 2048, 64
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MUTABLE_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def spec(found: Mapping[str, Any], field: str, *, template: bool = False) -> Iterator[FieldError]:
    """The broken rules of a pod's spec that stands at `field`; `template` says that it is not yet that of a pod."""
    volumes = yield from validate_volume.volumes(found.get("volumes") or [], f"{field}.volumes")
    claims = [claim.get("name", "") for claim in found.get("resourceClaims") or ()]
    around = Around(
        volumes,
        claims,
        found.get("terminationGracePeriodSeconds"),
        found.get("restartPolicy"),
        found.get("hostUsers") is not False,
    )
    own, first = found.get("containers") or [], found.get("initContainers") or []
    yield from containers(own, f"{field}.containers", around)
    taken = {container.get("name", "") for container in own}
    yield from init_containers(first, f"{field}.initContainers", around, taken)
    yield from validate_resources.of_pod(found, field, claims)
    yield from _network(found, field, template)
    yield from chosen(found.get("restartPolicy"), f"{field}.restartPolicy", _RESTART)
    yield from chosen(found.get("dnsPolicy"), f"{field}.dnsPolicy", _DNS)
    yield from labels(found.get("nodeSelector"), f"{field}.nodeSelector")
    yield from validate_security.of_pod(found.get("securityContext") or {}, found, f"{field}.securityContext")
    if found.get("shareProcessNamespace") and found.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid_value(f"{field}.shareProcessNamespace", True, text)
    yield from validate_placement.affinity(found.get("affinity") or {}, f"{field}.affinity")
    yield from _names_of_hosts(found, field)
    yield from validate_placement.gates(found, field)
    constraints = found.get("topologySpreadConstraints") or []
    yield from validate_placement.spreading(constraints, f"{field}.topologySpreadConstraints")
    yield from _identity(found, field)
    yield from validate_placement.tolerations(found.get("tolerations") or [], f"{field}.tolerations")
    yield from _classes(found, field)
    system = found.get("os")
    if system is not None:
        if not system.get("name"):
            yield required(f"{field}.os.name")
        else:
            yield from chosen(system["name"], f"{field}.os", _SYSTEMS)
            if system["name"] == "windows":
                yield from validate_security.of_windows(found, field)
    if not template:
        yield from _of_pods(found, field)


def _network(found: Mapping[str, Any], field: str, template: bool) -> Iterator[FieldError]:
    """On its node's network a pod's ports are the node's; in a template they may still be missing."""
    for i, container in enumerate(found.get("containers") or () if found.get("hostNetwork") else ()):
        for j, port in enumerate(container.get("ports") or ()):
            taken = port.get("hostPort", 0)
            if taken != port.get("containerPort", 0) and not (template and not taken):
                text = "must match `containerPort` when `hostNetwork` is true"
                yield invalid_value(f"{field}.containers[{i}].ports[{j}].hostPort", taken, text)


def _names_of_hosts(found: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """How a pod looks up names."""
    config = found.get("dnsConfig")
    where = f"{field}.dnsConfig"
    servers = (config or {}).get("nameservers") or []
    if found.get("dnsPolicy") == "None" and not servers:
        if config is None:
            yield required(where, "must provide `dnsConfig` when `dnsPolicy` is None")
        else:
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{where}.nameservers", text)
        return
    if config is None:
        return
    if len(servers) > _MOST_SERVERS:
        yield invalid_value(f"{where}.nameservers", servers, f"must not have more than {_MOST_SERVERS} nameservers")
    for i, server in enumerate(servers):
        yield from address(server, f"{where}.nameservers[{i}]")
    searches = config.get("searches") or []
    if len(searches) > _MOST_SEARCHES:
        yield invalid_value(f"{where}.searches", searches, f"must not have more than {_MOST_SEARCHES} search paths")
    if len(" ".join(searches)) > _LONGEST_SEARCHES:
        text = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        yield invalid_value(f"{where}.searches", searches, text)
    for i, search in enumerate(searches):
        for text in names.subdomain_with_underscores(search.removesuffix(".")) if search != "." else ():
            yield invalid_value(f"{where}.searches[{i}]", search.removesuffix("."), text)
    for i, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(f"{where}.options[{i}]", "must not be empty")


def _identity(found: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Whose users and whose name a pod has, and where it is."""
    if found.get("hostUsers") is False:
        for name, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if found.get(name):
                yield forbidden_field(f"{field}.{shown}", "when `hostUsers` is false")
    override = found.get("hostnameOverride")
    if override is not None:
        where = f"{field}.hostnameOverride"
        for name in ("setHostnameAsFQDN", "hostNetwork"):
            if found.get(name):
                yield forbidden_field(where, f"may not be specified when {name} is true")
        if len(override) > _LONGEST_HOSTNAME:
            yield too_long(where, _LONGEST_HOSTNAME)
        for text in names.subdomain(override):
            yield invalid_value(where, override, text)
    for name, check in (("serviceAccountName", names.subdomain), ("nodeName", names.subdomain)):
        for text in check(found[name]) if found.get(name) else ():
            yield invalid_value(f"{field}.{name}", found[name], text)
    seconds = found.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= 2**31 - 1:
        text = "must be between 1 and 2147483647, inclusive"
        yield invalid_value(f"{field}.activeDeadlineSeconds", seconds, text)
    for name in ("hostname", "subdomain"):
        for text in names.label(found[name]) if found.get(name) else ():
            yield invalid_value(f"{field}.{name}", found[name], text)


def _classes(found: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    for i, alias in enumerate(found.get("hostAliases") or ()):
        where = f"{field}.hostAliases[{i}]"
        yield from address(alias.get("ip", ""), f"{where}.ip")
        for j, name in enumerate(alias.get("hostnames") or ()):
            for text in names.subdomain(name):
                yield invalid_value(f"{where}.hostnames[{j}]", name, text)
    for text in names.subdomain(found["priorityClassName"]) if found.get("priorityClassName") else ():
        yield invalid_value(f"{field}.priorityClassName", found["priorityClassName"], text)
    runtime = found.get("runtimeClassName")
    for text in names.subdomain(runtime) if runtime is not None else ():
        yield invalid_value(f"{field}.runtimeClassName", runtime, text)
    if found.get("preemptionPolicy") is not None:
        yield from chosen(found["preemptionPolicy"], f"{field}.preemptionPolicy", _PREEMPTION)
    if found.get("overhead"):
        yield from validate_resources.resources({"limits": found["overhead"]}, f"{field}.overhead")


def _of_pods(found: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Rules that templates need not follow."""
    if not found.get("serviceAccountName"):
        for i, volume in enumerate(found.get("volumes") or ()):
            for j, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    where = f"{field}.volumes[{i}].projected.sources[{j}].serviceAccountToken"
                    yield forbidden_field(where, "must not be specified when serviceAccountName is not set")
    for name in ("containers", "initContainers"):
        yield from images(found.get(name) or [], f"{field}.{name}")


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


def known_annotations(found: Mapping[str, str] | None, field: str) -> Iterator[FieldError]:
    """The broken rules of those annotations of pods and templates that say something to Kubernetes."""
    cost = (found or {}).get(DELETION_COST)
    if cost is not None and not is_deletion_cost(cost):
        yield invalid_value(f"{field}[{DELETION_COST}]", cost, "must be a 32bit integer")


def template(found: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """The broken rules of a pod template."""
    meta = found.get("metadata") or {}
    yield from validate_meta.labels(meta.get("labels"), f"{field}.labels")
    yield from validate_meta.annotation_keys(meta.get("annotations"), f"{field}.annotations")
    yield from known_annotations(meta.get("annotations"), f"{field}.annotations")
    yield from spec(found.get("spec") or {}, f"{field}.spec", template=True)
    if (found.get("spec") or {}).get("ephemeralContainers"):
        yield forbidden_field(f"{field}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


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
