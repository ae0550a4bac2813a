"""What the server sets in a service by itself: addresses, ports on nodes, and what goes when the type changes.

The cluster is one of IPv4 alone. Source: API reference, ServiceSpec; Kubernetes documentation, "IPv4/IPv6 dual-stack".
"""

from __future__ import annotations

import ipaddress
import random
from typing import Any

from lwskit.embedded import validate_service
from lwskit.embedded.failures import FieldError, invalid_object, invalid_value
from lwskit.embedded.schema import clone
from lwskit.embedded.store import Store
from lwskit.embedded.validate_service import externally_accessible, headless, needs_health_check
from lwskit.runtime.objects import Obj

PREFIX = "10.96"
"""The first two numbers of the addresses that services get."""

_NODE_PORTS = (30000, 32767)
_FAMILY_FIELDS = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
Spec = dict[str, Any]


def begin_create(store: Store, rng: random.Random, service: Obj, *, dry_run: bool = False) -> None:
    """Allocate what a new service needs, in place. Raises Invalid; in a dry run, with another text."""
    spec: Spec = service["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    _families(service, None)
    _allocate_addresses(store, rng, service, dry_run=dry_run)
    if _uses_node_ports(spec):
        by_port: dict[int, int] = {}
        for port in spec.get("ports") or ():
            if not port.get("nodePort") and not _wants_node_ports(spec):
                continue
            number = port.get("port", 0)
            asked = next((p["nodePort"] for p in spec["ports"] if p.get("port") == number and p.get("nodePort")), 0)
            if not port.get("nodePort"):
                port["nodePort"] = by_port.get(number) or asked or _free_port(store, rng, spec)
            by_port.setdefault(number, port["nodePort"])
    if needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = _free_port(store, rng, spec)


def begin_update(store: Store, rng: random.Random, service: Obj, old: Obj) -> None:
    """Keep what was allocated and an update leaves out, and allocate what it needs in addition. Raises Invalid."""
    spec, before = service["spec"], old["spec"]
    _keep_allocated(spec, before)
    _agree(spec, before)
    _families(service, old)
    if before.get("type") == "ExternalName" and spec.get("type") != "ExternalName":
        _allocate_addresses(store, rng, service)
    if _uses_node_ports(spec):
        for port in spec.get("ports") or ():
            if not port.get("nodePort") and _wants_node_ports(spec):
                port["nodePort"] = _free_port(store, rng, spec)
    if needs_health_check(spec) and not needs_health_check(before) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = _free_port(store, rng, spec)


def drop_dependent(service: Obj, old: Obj) -> None:
    """Take away, in place, what the former type needed and the new one has no use for, unless the client changed it."""
    spec, before = service["spec"], old["spec"]
    if spec.get("type") == "ExternalName":
        _pop(spec, "internalTrafficPolicy")
    if before.get("type") != "ExternalName" and spec.get("type") == "ExternalName":
        if all(spec.get(n) == before.get(n) for n in ("clusterIP", "clusterIPs")):
            _pop(spec, "clusterIP", "clusterIPs")
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if spec.get(name) == before.get(name):
                _pop(spec, name)
    if _uses_node_ports(before) and not _uses_node_ports(spec) and _node_ports(spec) <= _node_ports(before):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _pop_same(spec, before, "healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _pop_same(spec, before, "allocateLoadBalancerNodePorts")
        _pop_same(spec, before, "loadBalancerClass")
    if externally_accessible(before) and not externally_accessible(spec):
        _pop_same(spec, before, "externalTrafficPolicy")
    if spec.get("type") != "LoadBalancer":
        status = service.get("status") or {}
        if "loadBalancer" in status:
            service["status"] = {**status, "loadBalancer": {}}


def _pop(spec: Spec, *names: str) -> None:
    for name in names:
        spec.pop(name, None)


def _pop_same(spec: Spec, before: Spec, name: str) -> None:
    if spec.get(name) == before.get(name):
        spec.pop(name, None)


def _keep_allocated(spec: Spec, before: Spec) -> None:
    if "ExternalName" not in (before.get("type"), spec.get("type")):
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and before.get("clusterIPs"):
            spec["clusterIPs"] = list(before["clusterIPs"])
    if _wants_node_ports(before) and _wants_node_ports(spec):
        used = _node_ports(before) & _node_ports(spec)
        named = {p.get("name", ""): p.get("nodePort", 0) for p in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            known = named.get(port.get("name", ""), 0)
            if not port.get("nodePort") and known and known not in used:
                port["nodePort"] = known
    if needs_health_check(before) and needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort", 0)


def _agree(spec: Spec, before: Spec) -> None:
    """An update of the one address, by a client that knows nothing of the list, changes the list too."""
    one, many = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    old_one, old_many = before.get("clusterIP", ""), before.get("clusterIPs") or []
    if old_many and not many and one == old_one:
        spec["clusterIPs"] = list(old_many)
    elif one != old_one and many == old_many:
        if one:
            spec["clusterIPs"] = [one]
        else:
            _pop(spec, "clusterIPs")


def _families(service: Obj, old: Obj | None) -> None:
    """Set the families of addresses. Raises Invalid for those that this cluster does not have."""
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return
    bare = spec.get("clusterIP") == "None" and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        before = old["spec"].get("ipFamilyPolicy") if old else None
        spec["ipFamilyPolicy"] = before or ("RequireDualStack" if bare else "SingleStack")
    _refuse(service, validate_service.addresses(spec, old["spec"] if old else None))
    families: list[str] = list(spec.get("ipFamilies") or ())
    errors: list[FieldError] = []
    single = spec["ipFamilyPolicy"] == "SingleStack"
    before_spec: Spec = old["spec"] if old else {}
    if old is not None and single:
        if len(spec.get("clusterIPs") or ()) > 1 and spec["clusterIPs"] == before_spec.get("clusterIPs"):
            spec["clusterIPs"] = spec["clusterIPs"][:1]
        if len(families) > 1 and families == before_spec.get("ipFamilies"):
            families = families[:1]
    if single:
        text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
        for name, found in (("cluster IPs", spec.get("clusterIPs") or ()), ("IP families", families)):
            if len(found) == 2:
                errors.append(invalid_value("spec.ipFamilyPolicy", "SingleStack", text.format(name)))
    for i, address in enumerate(spec.get("clusterIPs") or ()):
        if address == "None":
            break
        family = f"IPv{ipaddress.ip_address(address).version}"
        if i >= len(families):
            if family == "IPv4":
                families.append(family)
            else:
                text = f"{family} is not configured on this cluster"
                errors.append(invalid_value(f"spec.clusterIPs[{i}]", spec["clusterIPs"], text))
    _refuse(service, errors)
    if bare:
        families = families or ["IPv4"]
        if len(families) < 2 and not single:
            families.append("IPv6" if families[0] == "IPv4" else "IPv4")
    else:
        if spec["ipFamilyPolicy"] == "RequireDualStack":
            text = "this cluster is not configured for dual-stack services"
            errors.append(invalid_value("spec.ipFamilyPolicy", "RequireDualStack", text))
        for i, family in enumerate(families):
            if family != "IPv4":
                errors.append(invalid_value(f"spec.ipFamilies[{i}]", family, "not configured on this cluster"))
        _refuse(service, errors)
        families = families or ["IPv4"]
    spec["ipFamilies"] = families


def _refuse(service: Obj, errors: list[FieldError]) -> None:
    if errors:
        raise invalid_object("", "Service", service["metadata"].get("name", ""), errors)


def _allocate_addresses(store: Store, rng: random.Random, service: Obj, *, dry_run: bool = False) -> None:
    spec = service["spec"]
    if spec.get("type") == "ExternalName" or headless(spec):
        return
    given = spec.get("clusterIPs") or []
    if not given:
        address = _free_address(store, rng)
        spec["clusterIP"], spec["clusterIPs"] = address, [address]
        return
    used = {a for e in store.list("/services") for a in e.obj["spec"].get("clusterIPs") or ()}
    for address in given:
        if not address.startswith(f"{PREFIX}."):
            text = f"failed to allocate IP {address}: the provided network does not match the current range"
            if dry_run:
                text = (
                    f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. "
                    f"The range of valid IPs is {PREFIX}.0.0/16"
                )
            _refuse(service, [invalid_value("spec.clusterIPs", given, text)])
        if address in used:
            text = f"failed to allocate IP {address}: provided IP is already allocated"
            _refuse(service, [invalid_value("spec.clusterIPs", given, text)])
    spec["clusterIPs"] = clone(given)


def _free_address(store: Store, rng: random.Random) -> str:
    used = {e.obj["spec"].get("clusterIP") for e in store.list("/services")}
    while True:
        address = f"{PREFIX}.{rng.randint(0, 255)}.{rng.randint(2, 254)}"
        if address not in used:
            return address


def _free_port(store: Store, rng: random.Random, spec: Spec) -> int:
    used = _node_ports(spec) | {spec.get("healthCheckNodePort")}
    for entry in store.list("/services"):
        used |= _node_ports(entry.obj["spec"]) | {entry.obj["spec"].get("healthCheckNodePort")}
    while True:
        number = rng.randint(*_NODE_PORTS)
        if number not in used:
            return number


def _node_ports(spec: Spec) -> set[int | None]:
    return {p["nodePort"] for p in spec.get("ports") or () if p.get("nodePort")}


def _uses_node_ports(spec: Spec) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def _wants_node_ports(spec: Spec) -> bool:
    return spec.get("type") == "NodePort" or (
        spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True)
    )
