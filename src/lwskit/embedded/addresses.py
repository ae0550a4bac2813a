"""Cluster addresses of services, and the fields that go with them.

Source: API reference, ServiceSpec (clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy).
"""

from __future__ import annotations

import ipaddress
import random
from typing import Any

from lwskit.embedded.failures import FieldError, invalid_value
from lwskit.embedded.store import Store
from lwskit.runtime.objects import Obj

PREFIX = "10.96"
"""The first two numbers of the addresses that services get."""


def allocate(store: Store, rng: random.Random, service: Obj) -> None:
    """Give a service its cluster address, or what a headless one has instead, in place."""
    spec: dict[str, Any] = service["spec"]
    if spec.get("type") == "ExternalName":
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = (spec.get("clusterIPs") or [None])[0] or _free(store, rng)
    if not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    headless_without_selector = spec["clusterIP"] == "None" and not spec.get("selector")
    if not spec.get("ipFamilyPolicy"):
        spec["ipFamilyPolicy"] = "RequireDualStack" if headless_without_selector else "SingleStack"
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4", "IPv6"] if headless_without_selector else ["IPv4"]
    if spec.get("type") in ("NodePort", "LoadBalancer") and spec.get("allocateLoadBalancerNodePorts", True):
        used = {p.get("nodePort") for e in store.list("/services") for p in e.obj["spec"].get("ports") or ()}
        for port in spec.get("ports") or ():
            while not port.get("nodePort") or (port.get("nodePort") in used and "nodePort" not in port):
                port["nodePort"] = rng.randint(30000, 32767)


def check(service: Obj) -> list[FieldError]:
    """The broken rule of an address that is not one of this cluster's."""
    address = service["spec"].get("clusterIP")
    if not address or address == "None" or address.startswith(f"{PREFIX}."):
        return []
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return []
    text = f"failed to allocate IP {address}: the provided network does not match the current range"
    return [invalid_value("spec.clusterIPs", [address], text)]


def _free(store: Store, rng: random.Random) -> str:
    used = {e.obj["spec"].get("clusterIP") for e in store.list("/services")}
    while True:
        address = f"{PREFIX}.{rng.randint(0, 255)}.{rng.randint(2, 254)}"
        if address not in used:
            return address
