"""Which objects of a document are ours: LeaderWorkerSets, Lists taken apart, the rest counted. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lwskit.api import names
from lwskit.lint.findings import UNKNOWN_KIND, Fault
from lwskit.lint.source import Part


@dataclass(frozen=True, slots=True)
class Found:
    """A LeaderWorkerSet of a file, as it is written, and the places of its parts."""

    data: dict[str, Any]
    part: Part


@dataclass(frozen=True, slots=True)
class Other:
    """An object, or something that is none, that lint has nothing to say of."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """An object that means to be a LeaderWorkerSet but that no server would take for one."""

    fault: Fault
    part: Part


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
    if kind == names.KIND and version == names.API_VERSION:
        yield Found(data, part)
        return
    group = version.partition("/")[0] if isinstance(version, str) else ""
    if kind == names.KIND and group in ("", names.GROUP):
        yield Wrong(_version_fault(version), part)
    elif group == names.GROUP:
        yield Wrong(_kind_fault(kind), part)
    else:
        yield Other()


def _version_fault(version: Any) -> Fault:
    if version is None:
        return Fault(UNKNOWN_KIND, "apiVersion", f"apiVersion is missing; write apiVersion: {names.API_VERSION}")
    text = f"there is no {names.KIND} in version {version!r}; the only one is {names.API_VERSION}"
    return Fault(UNKNOWN_KIND, "apiVersion", text)


def _kind_fault(kind: Any) -> Fault:
    if kind is None:
        return Fault(UNKNOWN_KIND, "kind", f"kind is missing; write kind: {names.KIND}")
    return Fault(UNKNOWN_KIND, "kind", f"there is no kind {kind!r} in {names.GROUP}; the only one is {names.KIND}")
