"""Which objects of a document are ours: sets of both kinds, Lists taken apart, the rest counted. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from lwskit.api import disaggregated_names, names
from lwskit.lint.findings import SCALER_BY_HAND, UNKNOWN_KIND, Fault
from lwskit.lint.source import Part

_VERSIONS: Final = {names.KIND: names.API_VERSION, disaggregated_names.KIND: disaggregated_names.API_VERSION}
"""The kinds that are checked, and their versions."""
_RESERVED: Final = "k8s.io"
"""How the groups end that only the Kubernetes project gives out."""
_KINDS: Final = {names.GROUP: names.KIND, disaggregated_names.GROUP: disaggregated_names.KIND}


@dataclass(frozen=True, slots=True)
class Found:
    """A set of a file, as it is written, and the places of its parts."""

    data: dict[str, Any]
    part: Part


@dataclass(frozen=True, slots=True)
class Other:
    """An object, or something that is none, that lint has nothing to say of."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """An object that no server would take for the set that it means to be, or that does not belong in a file.

    `kind` is that of the set which is meant, empty for what is none.
    """

    fault: Fault
    part: Part
    kind: str = ""


def of(data: Any, part: Part) -> Iterator[Found | Other | Wrong]:
    """What a document holds."""
    if not isinstance(data, dict):
        yield Other()
        return
    kind, version = data.get("kind"), data.get("apiVersion")
    items = data.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        places = part.fields["items"].items
        for item, place in zip(items, places, strict=True):
            yield from of(item, place)
        return
    group = version.partition("/")[0] if isinstance(version, str) else ""
    if isinstance(kind, str) and kind in _VERSIONS and _has_no_others(group):
        yield Found(data, part) if version == _VERSIONS[kind] else Wrong(_version_fault(kind, version), part, kind)
    elif (kind, version) == (disaggregated_names.SCALER_KIND, disaggregated_names.API_VERSION):
        yield Wrong(_scaler_fault(), part)
    elif group in _KINDS:
        yield Wrong(_kind_fault(kind, group), part, _KINDS[group])
    else:
        yield Other()


def _has_no_others(group: str) -> bool:
    """Whether a group can have no sets of somebody else's under our names: none of Kubernetes' own has any."""
    return "." not in group or group.endswith(_RESERVED)


def _version_fault(kind: str, version: Any) -> Fault:
    wanted = _VERSIONS[kind]
    if version is None:
        return Fault(UNKNOWN_KIND, "apiVersion", f"apiVersion is missing; write apiVersion: {wanted}")
    text = f"there is no {kind} in version {version!r}; the only one is {wanted}"
    return Fault(UNKNOWN_KIND, "apiVersion", text)


def _kind_fault(kind: Any, group: str) -> Fault:
    wanted = _KINDS[group]
    if kind is None:
        return Fault(UNKNOWN_KIND, "kind", f"kind is missing; write kind: {wanted}")
    return Fault(UNKNOWN_KIND, "kind", f"there is no kind {kind!r} in {group}; the only one is {wanted}")


def _scaler_fault() -> Fault:
    text = (
        "scalers are made by the manager, for roles with scaling.mode External; one that is made by hand keeps the "
        "role of its name from being counted"
    )
    return Fault(SCALER_BY_HAND, "kind", text, "leave it out, and set the count with kubectl scale or an autoscaler")
