"""Rules of services, new and changed, and of their status. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from lwskit.embedded import names, validate_meta
from lwskit.embedded.failures import FieldError, duplicate, forbidden_field, invalid_value, not_supported, required
from lwskit.embedded.validate_container import PORT_RANGE
from lwskit.runtime.objects import Obj

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_TRAFFIC = ("Cluster", "Local")
_ONCE = "may not change once set"
_DAY = 86400
_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
Spec = Mapping[str, Any]


def headless(spec: Spec) -> bool:
    """Whether a service has no address of its own."""
    return spec.get("clusterIPs") == ["None"]


def externally_accessible(spec: Spec) -> bool:
    """Whether a service can be reached from outside of the cluster."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def needs_health_check(spec: Spec) -> bool:
    """Whether nodes tell load balancers if they have endpoints of the service."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def create(obj: Obj, old: Obj | None = None) -> Iterator[FieldError]:
    """The broken rules of a service; `old` is what it was before."""
    spec: Spec = obj["spec"]
    before: Spec | None = old["spec"] if old else None
    kind, ports = spec.get("type", ""), spec.get("ports") or []
    if not ports and not headless(spec) and kind != "ExternalName":
        yield required("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and headless(spec):
        yield invalid_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name(spec)
    yield from _ports(ports)
    yield from validate_meta.labels(spec.get("selector"), "spec.selector")
    yield from _affinity(spec)
    yield from addresses(spec, before)
    yield from _external_addresses(spec)
    if kind not in _TYPES:
        yield not_supported("spec.type", kind, _TYPES)
    yield from _port_pairs(kind, ports)
    yield from _load_balancer(spec)
    yield from _traffic(spec)


def _external_name(spec: Spec) -> Iterator[FieldError]:
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield forbidden_field(f"spec.{name}", "may not be set for ExternalName services")
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        yield required("spec.externalName")
    else:
        for text in names.subdomain(name):
            yield invalid_value("spec.externalName", name, text)


def _ports(ports: list[dict[str, Any]]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, port in enumerate(ports):
        where, name = f"spec.ports[{i}]", port.get("name", "")
        if not name and len(ports) > 1:
            yield required(f"{where}.name")
        elif name:
            for text in names.label(name):
                yield invalid_value(f"{where}.name", name, text)
            if name in seen:
                yield duplicate(f"{where}.name", name)
            seen.add(name)
        number, target = port.get("port", 0), port.get("targetPort")
        if not 0 < number < 65536:
            yield invalid_value(f"{where}.port", number, PORT_RANGE)
        if port.get("protocol") not in _PROTOCOLS:
            yield not_supported(f"{where}.protocol", port.get("protocol"), _PROTOCOLS)
        if isinstance(target, str):
            for text in names.port_name(target):
                yield invalid_value(f"{where}.targetPort", target, text)
        elif target is not None and not 0 < target < 65536:
            yield invalid_value(f"{where}.targetPort", target, PORT_RANGE)
        if port.get("appProtocol"):
            for text in names.qualified(port["appProtocol"]):
                yield invalid_value(f"{where}.appProtocol", port["appProtocol"], text)


def _affinity(spec: Spec) -> Iterator[FieldError]:
    kind, config = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig")
    if kind not in ("ClientIP", "None"):
        yield not_supported("spec.sessionAffinity", kind, ("ClientIP", "None"))
    if kind == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds", 0)
        if not 0 < seconds <= _DAY:
            where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
            yield invalid_value(where, seconds, f"must be greater than 0 and less than {_DAY}")
    elif kind == "None" and config is not None:
        yield forbidden_field("spec.sessionAffinityConfig", "must not be set when session affinity is None")


def addresses(spec: Spec, before: Spec | None) -> list[FieldError]:
    """The broken rules of the cluster addresses and their families."""
    if spec.get("type") == "ExternalName":
        return []
    errors: list[FieldError] = []
    one, many = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    families = spec.get("ipFamilies") or []
    if one and not many:
        errors.append(required("spec.clusterIPs"))
    elif one and many[0] != one:
        errors.append(invalid_value("spec.clusterIPs", many, "first value must match `clusterIP`"))
    elif not one and many:
        errors.append(invalid_value("spec.clusterIPs", many, "must be empty when `clusterIP` is not specified"))
    for i, family in enumerate(families):
        if family not in _FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{i}]", family, _FAMILIES))
        if family in families[:i]:
            errors.append(duplicate(f"spec.ipFamilies[{i}]", family))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, _POLICIES))
    broken = _address_errors(many, (before or {}).get("clusterIPs") or [])
    errors.extend(broken)
    if len(many) > 2:
        errors.append(invalid_value("spec.clusterIPs", many, "may only hold up to 2 values"))
    if broken:
        return errors
    versions = [ipaddress.ip_address(a).version for a in many if a != "None"]
    if len(versions) > 1 and sorted(versions) != [4, 6]:
        text = "may specify no more than one IP for each IP family"
        errors.append(invalid_value("spec.clusterIPs", many, text))
    for i, (version, family) in enumerate(zip(versions, families, strict=False)):
        if family in _FAMILIES and family != f"IPv{version}":
            article = "an"
            text = f"expected {article} {family} value as indicated by `ipFamilies[{i}]`"
            errors.append(invalid_value(f"spec.clusterIPs[{i}]", many[i], text))
    return errors


def _address_errors(many: list[str], known: list[str]) -> list[FieldError]:
    errors = []
    for i, address in enumerate(many):
        if i == 0 and address == "None":
            if len(many) > 1:
                errors.append(invalid_value("spec.clusterIPs", many, "'None' must be the first and only value"))
        elif address not in known and not _is_address(address):
            errors.append(invalid_value(f"spec.clusterIPs[{i}]", address, _ADDRESS))
    return errors


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _external_addresses(spec: Spec) -> Iterator[FieldError]:
    for i, text in enumerate(spec.get("externalIPs") or ()):
        where = f"spec.externalIPs[{i}]"
        if not _is_address(text):
            yield invalid_value(where, text, _ADDRESS)
            continue
        address = ipaddress.ip_address(text)
        if address.is_unspecified:
            yield invalid_value(where, text, f"may not be unspecified ({text})")
        if address.is_loopback:
            yield invalid_value(where, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
        if address.is_link_local:
            yield invalid_value(where, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")


def _port_pairs(kind: str, ports: list[dict[str, Any]]) -> Iterator[FieldError]:
    if kind == "ClusterIP":
        for i, port in enumerate(ports):
            if port.get("nodePort"):
                yield forbidden_field(f"spec.ports[{i}].nodePort", "may not be used when `type` is 'ClusterIP'")
    seen: set[tuple[str, str, int]] = set()
    for name in ("nodePort", "port"):
        for i, port in enumerate(ports):
            key = (name, port.get("protocol", "TCP"), port.get(name, 0))
            if key in seen:
                where = f"spec.ports[{i}]"
                if name == "port":
                    yield duplicate(where, _internal_port(port))
                elif key[2]:
                    yield duplicate(f"{where}.nodePort", key[2])
            seen.add(key)


def _internal_port(port: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "Name": "",
        "Protocol": port.get("protocol", "TCP"),
        "AppProtocol": None,
        "Port": port.get("port", 0),
        "TargetPort": 0,
        "NodePort": 0,
    }


def _load_balancer(spec: Spec) -> Iterator[FieldError]:
    if spec.get("type") == "LoadBalancer":
        if spec.get("loadBalancerClass"):
            for text in names.qualified(spec["loadBalancerClass"]):
                yield invalid_value("spec.loadBalancerClass", spec["loadBalancerClass"], text)
        return
    text = "may only be used when `type` is 'LoadBalancer'"
    if spec.get("loadBalancerSourceRanges"):
        yield forbidden_field("spec.LoadBalancerSourceRanges", text)
    for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
        if spec.get(name) is not None:
            yield forbidden_field(f"spec.{name}", text)


def _traffic(spec: Spec) -> Iterator[FieldError]:
    policy = spec.get("externalTrafficPolicy", "")
    if not externally_accessible(spec):
        if policy:
            text = "may only be set for externally-accessible services"
            yield invalid_value("spec.externalTrafficPolicy", policy, text)
    elif not policy:
        yield required("spec.externalTrafficPolicy")
    elif policy not in _TRAFFIC:
        yield not_supported("spec.externalTrafficPolicy", policy, _TRAFFIC)
    health = spec.get("healthCheckNodePort", 0)
    if not needs_health_check(spec):
        if health:
            text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            yield invalid_value("spec.healthCheckNodePort", health, text)
    elif not 0 < health < 65536:
        yield invalid_value("spec.healthCheckNodePort", health, PORT_RANGE)
    inside = spec.get("internalTrafficPolicy")
    if inside is not None and inside not in _TRAFFIC:
        yield not_supported("spec.internalTrafficPolicy", inside, _TRAFFIC)
    wanted = spec.get("trafficDistribution")
    if wanted is not None and wanted not in _DISTRIBUTIONS:
        yield not_supported("spec.trafficDistribution", wanted, _DISTRIBUTIONS)


def update(new: Obj, old: Obj) -> Iterator[FieldError]:
    """The broken rules of what may change in a service, before those of the whole."""
    spec, before = new["spec"], old["spec"]
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        one, two = before.get("clusterIPs") or [], spec.get("clusterIPs") or []
        if not (headless(spec) and headless(before)):
            if one and not two:
                yield invalid_value("spec.clusterIPs[0]", two or None, "primary clusterIP can not be unset")
            elif one and one[0] != two[0]:
                yield invalid_value("spec.clusterIPs[0]", two, _ONCE)
        if not headless(spec) and not headless(before):
            families, others = before.get("ipFamilies") or [], spec.get("ipFamilies") or []
            if families and others and families[0] != others[0]:
                yield invalid_value("spec.ipFamilies[0]", others, _ONCE)
    if spec.get("type") == before.get("type") == "LoadBalancer":
        if spec.get("loadBalancerClass") != before.get("loadBalancerClass"):
            yield invalid_value("spec.loadBalancerClass", spec.get("loadBalancerClass"), _ONCE)
        both = needs_health_check(spec) and needs_health_check(before)
        if both and spec.get("healthCheckNodePort") != before.get("healthCheckNodePort"):
            yield forbidden_field("spec.healthCheckNodePort", "field is immutable")


def status(new: Obj) -> Iterator[FieldError]:
    """The broken rules of a service's status."""
    ingress = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    where = "status.loadBalancer.ingress"
    if ingress and new["spec"].get("type") != "LoadBalancer":
        yield forbidden_field(where, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for i, item in enumerate(ingress):
        address, mode, name = item.get("ip", ""), item.get("ipMode"), item.get("hostname", "")
        if address and not _is_address(address):
            yield invalid_value(f"{where}[{i}].ip", address, _ADDRESS)
        if mode is not None and not address:
            yield forbidden_field(f"{where}[{i}].ipMode", "may not be specified when `ip` is not set")
        elif mode is not None and mode not in ("Proxy", "VIP"):
            yield not_supported(f"{where}[{i}].ipMode", mode, ("Proxy", "VIP"))
        if name:
            for text in names.subdomain(name):
                yield invalid_value(f"{where}[{i}].hostname", name, text)
            if _is_address(name):
                yield invalid_value(f"{where}[{i}].hostname", name, "must be a DNS name, not an IP address")


def warnings(new: Obj) -> Iterator[str]:
    """What a client is told of a service that is accepted."""
    spec = new["spec"]
    bare = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    if bare:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if spec.get("externalIPs"):
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    elif spec.get("externalIPs") and spec.get("type") != "ExternalName":
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    if spec.get("type") == "ExternalName" and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.get("type") != "ExternalName" and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
