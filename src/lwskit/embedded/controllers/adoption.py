"""Which objects a workload controls, takes over and lets go, by its selector. Pure.

Source: Kubernetes documentation, "Labels and Selectors" and "Owners and Dependents"; design of controller references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import (
    Obj,
    Selector,
    controller_of,
    controller_reference,
    is_deleting,
    key_of,
    labels_of,
    uid_of,
)
from lwskit.runtime.plan import OnError, Patch


@dataclass(slots=True)
class Claims:
    """What a workload holds, what it wants to adopt and what it lets go."""

    held: list[Obj] = field(default_factory=list)
    adopt: list[Obj] = field(default_factory=list)
    release: list[Obj] = field(default_factory=list)


def claim(
    owner: Mapping[str, Any],
    selector: Selector,
    candidates: Iterable[Obj],
    belongs: Callable[[Obj], bool] = lambda _: True,
) -> Claims:
    """Sort candidates by what `owner` does with them; `belongs` is asked besides the selector.

    A workload that is being deleted neither adopts nor releases; nobody adopts an object that is being deleted.
    """
    claims = Claims()
    uid = uid_of(owner)
    for obj in candidates:
        controller = controller_of(obj)
        if controller is not None and controller["uid"] != uid:
            continue
        matches = selector.matches(labels_of(obj)) and belongs(obj)
        if controller is not None:
            if matches:
                claims.held.append(obj)
            elif not is_deleting(owner):
                claims.release.append(obj)
        elif matches and not is_deleting(owner) and not is_deleting(obj):
            claims.adopt.append(obj)
    return claims


def adoption(owner: Mapping[str, Any], owner_kind: Kind, kind: Kind, obj: Obj) -> Patch:
    """The patch that makes `owner` the controller of an orphan, as it was seen."""
    return _owners(kind, obj, [*_refs(obj), controller_reference(owner, owner_kind)], "it matches the selector")


def release(owner: Mapping[str, Any], kind: Kind, obj: Obj) -> Patch:
    """The patch that takes away the reference to `owner`."""
    rest = [r for r in _refs(obj) if r["uid"] != uid_of(owner)]
    return _owners(kind, obj, rest, "it does not match the selector any more")


def _owners(kind: Kind, obj: Obj, refs: list[Obj], why: str) -> Patch:
    # The whole list is sent, so it must be the list that was seen.
    body = {"metadata": {"ownerReferences": refs, "resourceVersion": obj["metadata"]["resourceVersion"]}}
    errors = {"NotFound": OnError.REQUEUE, "Conflict": OnError.REQUEUE}
    return Patch(why=why, kind=kind, key=key_of(obj), body=body, uid=uid_of(obj), errors=errors)


def _refs(obj: Mapping[str, Any]) -> list[Obj]:
    return list(obj["metadata"].get("ownerReferences") or ())
