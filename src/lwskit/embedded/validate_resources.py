"""Rules of requests and limits, of containers and of pods as a whole. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import Any

from lwskit.embedded import names
from lwskit.embedded.failures import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from lwskit.embedded.validate_values import NOT_NEGATIVE
from lwskit.runtime import quantity

_HUGE = "hugepages-"
_CONTAINER = ("cpu", "memory", "ephemeral-storage")
_STANDARD = frozenset(
    {
        *_CONTAINER,
        *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _CONTAINER),
        *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "persistentvolumeclaims"),
        *("configmaps", "storage", "requests.storage", "services.nodeports", "services.loadbalancers"),
    }
)
_OF_PODS = ("cpu", _HUGE, "memory")
_RESIZED = ("cpu", "memory")
_RESIZING = ("NotRequired", "RestartContainer")


def resources(
    found: Mapping[str, Any], where: str, claims: Collection[str] = (), *, whole_pod: bool = False
) -> Iterator[FieldError]:
    """The broken rules of requests and limits; `claims` are the pod's, `whole_pod` says that they are the pod's own."""
    limits, requests = found.get("limits") or {}, found.get("requests") or {}
    for name, amount in limits.items():
        yield from _resource(name, amount, f"{where}.limits[{name}]", whole_pod)
        yield from _pages(name, amount, f"{where}.limits[{name}]")
    for name, amount in requests.items():
        yield from _resource(name, amount, f"{where}.requests[{name}]", whole_pod)
        yield from _within(name, amount, limits.get(name), where)
        yield from _pages(name, amount, f"{where}.requests[{name}]")
    if any(n.startswith(_HUGE) for n in (*limits, *requests)) and not {"cpu", "memory"} & {*limits, *requests}:
        yield forbidden_field(where, "HugePages require cpu or memory")
    yield from _claims(found.get("claims") or [], f"{where}.claims", claims)


def overcommitted(name: str) -> bool:
    """Whether a node may promise more of a resource than it has."""
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith(_HUGE)


def _extended(name: str) -> bool:
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not names.qualified(f"requests.{name}")


def _within(name: str, amount: str, limit: str | None, where: str) -> Iterator[FieldError]:
    if limit is None:
        if not overcommitted(name):
            yield required(f"{where}.limits", "Limit must be set for non overcommitable resources")
    elif not overcommitted(name) and not quantity.equal(amount, limit):
        yield invalid_value(f"{where}.requests", amount, f"must be equal to {name} limit of {limit}")
    elif quantity.parse(amount) > quantity.parse(limit):
        yield invalid_value(f"{where}.requests", amount, f"must be less than or equal to {name} limit of {limit}")


def _resource(name: str, amount: str, where: str, whole_pod: bool) -> Iterator[FieldError]:
    yield from _name(name, where, whole_pod)
    if quantity.parse(amount) < 0:
        yield invalid_value(where, amount, NOT_NEGATIVE)
    if _extended(name) and (quantity.parse(amount) * 1000) % 1000:
        yield invalid_value(where, amount, "must be an integer")


def _name(name: str, where: str, whole_pod: bool) -> Iterator[FieldError]:
    errors = [invalid_value(where, name, text) for text in names.qualified(name)]
    plain = "/" not in name
    if not errors and plain and name not in _STANDARD and not name.startswith((_HUGE, f"requests.{_HUGE}")):
        errors = [invalid_value(where, name, "must be a standard resource type or fully qualified")]
    yield from errors
    if whole_pod:
        if not errors and name not in _OF_PODS and not name.startswith(_HUGE):
            yield not_supported(where, name, _OF_PODS)
    elif name.count("/") == 0:
        if name not in _CONTAINER and not name.startswith(_HUGE):
            yield invalid_value(where, name, "must be a standard resource for containers")
    elif "kubernetes.io/" not in name and not _extended(name):
        yield invalid_value(where, name, "doesn't follow extended resource name standard")


def _pages(name: str, amount: str, where: str) -> Iterator[FieldError]:
    """Huge pages come whole."""
    if not name.startswith(_HUGE):
        return
    try:
        size = quantity.parse(name.removeprefix(_HUGE))
    except ValueError:
        size = Fraction(0)
    if size <= 0 or size % 1 or math.ceil(quantity.parse(amount)) % size:
        yield invalid_value(where, amount, f"{amount} is not positive integer multiple of {name}")


def _claims(found: list[dict[str, Any]], where: str, claims: Collection[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, claim in enumerate(found):
        name, request = claim.get("name", ""), claim.get("request", "")
        if not name:
            yield required(f"{where}[{i}]")
            continue
        key = f"{name}/{request}" if request else name
        for text in names.label(request) if request else ():
            yield invalid_value(f"{where}[{i}].request", request, text)
        if name in seen or key in seen:
            yield duplicate(f"{where}[{i}]", name if name in seen else key)
        elif not request and any(k.partition("/")[0] == name for k in seen):
            yield duplicate(f"{where}[{i}]", name)
        seen.add(key)
        if name not in claims:
            listed = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            text = f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims{listed}'
            yield FieldError("FieldValueNotFound", f"{where}[{i}]", text)


def resizing(found: list[dict[str, Any]], where: str, restart: str | None) -> Iterator[FieldError]:
    """The broken rules of what happens to a container when its resources change; `restart` is the pod's policy."""
    seen: set[str] = set()
    for i, policy in enumerate(found):
        name, then = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            yield duplicate(f"{where}[{i}]", name)
        seen.add(name)
        for value, allowed in ((name, _RESIZED), (then, _RESIZING)):
            if not value:
                yield required(where)
            elif value not in allowed:
                yield not_supported(where, value, allowed)
        if restart == "Never" and then != "NotRequired":
            yield invalid_value(where, then, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def of_pod(spec: Mapping[str, Any], where: str, claims: Collection[str]) -> Iterator[FieldError]:
    """The broken rules of resources of a pod as a whole, at `where`, the spec's path."""
    found = spec.get("resources")
    if found is None:
        return
    at = f"{where}.resources"
    if found.get("claims"):
        yield forbidden_field(f"{at}.claims", "claims may not be set for Resources at pod-level")
    yield from resources(found, at, claims, whole_pod=True)
    limits: Mapping[str, str] = found.get("limits") or {}
    for name, total in summed(spec, "requests").items():
        asked = (found.get("requests") or {}).get(name)
        if asked is not None and total > quantity.parse(asked):
            text = f"must be greater than or equal to aggregate container requests of {shown(total)}"
            yield invalid_value(f"{at}.requests[{name}]", asked, text)
    for name, total in summed(spec, "limits").items():
        if name.startswith(_HUGE) and name in limits and total > quantity.parse(limits[name]):
            text = f"must be greater than or equal to aggregate container limits of {shown(total)}"
            yield invalid_value(f"{at}.limits[{name}]", limits[name], text)
    containers: list[dict[str, Any]] = spec.get("containers") or []
    for i, container in enumerate(containers):
        own: Mapping[str, str] = (container.get("resources") or {}).get("limits") or {}
        for name, limit in own.items():
            if name in limits and quantity.parse(limit) > quantity.parse(limits[name]):
                text = f"must be less than or equal to pod limits of {limits[name]}"
                yield invalid_value(f"{at}.containers[{i}][{name}].limits", limit, text)


def shown(amount: Fraction) -> str:
    """An amount as a server writes it; thousandths are the smallest part."""
    thousandths = amount * 1000
    return quantity.canonical(f"{-(-thousandths.numerator // thousandths.denominator)}m")


def summed(spec: Mapping[str, Any], kind: str) -> dict[str, Fraction]:
    """What the containers of a pod need together: those that run side by side, or one of those before them."""

    def of(container: Mapping[str, Any]) -> dict[str, Fraction]:
        amounts = (container.get("resources") or {}).get(kind) or {}
        return {name: quantity.parse(amount) for name, amount in amounts.items()}

    total: dict[str, Fraction] = {}
    for container in spec.get("containers") or ():
        for name, amount in of(container).items():
            total[name] = total.get(name, Fraction(0)) + amount
    beside: dict[str, Fraction] = {}
    most: dict[str, Fraction] = {}
    for container in spec.get("initContainers") or ():
        own = of(container)
        if container.get("restartPolicy") == "Always":
            for name, amount in own.items():
                beside[name] = beside.get(name, Fraction(0)) + amount
                total[name] = total.get(name, Fraction(0)) + amount
            own = dict(beside)
        else:
            own = {n: own.get(n, Fraction(0)) + beside.get(n, Fraction(0)) for n in {*own, *beside}}
        for name, amount in own.items():
            most[name] = max(most.get(name, Fraction(0)), amount)
    return {n: max(total.get(n, Fraction(0)), most.get(n, Fraction(0))) for n in sorted({*total, *most})}
