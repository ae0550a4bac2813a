"""Owner references: setting, removing and looking for them (specification: 70 §12). Pure.

Functions that set or remove change the object they are given: hand them your own, never one of a cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.runtime.errors import LwskitError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj, controller_of, controller_reference, group_of


class OwnerError(LwskitError):
    """An owner reference that cannot be set or removed; the text says why."""


class AlreadyOwned(OwnerError):
    """The object has a controller, which is another one."""

    def __init__(self, obj: Mapping[str, Any], ref: Mapping[str, Any]) -> None:
        meta = obj["metadata"]
        super().__init__(
            f"Object {meta.get('namespace', '')}/{meta.get('name', '')} is already owned by another "
            f"{ref.get('kind', '')} controller {ref.get('name', '')}"
        )
        self.ref = dict(ref)
        """The reference of the controller that it has."""


def set_controller_reference(
    obj: Obj, owner: Mapping[str, Any], kind: Kind, *, block_owner_deletion: bool = True
) -> None:
    """Make `owner`, of `kind`, the controller of `obj`, which is changed.

    A reference to the same owner, whatever its UID and version, is replaced in its place; else one is appended. Raises
    AlreadyOwned when another object is the controller, and OwnerError for an owner without UID or of a scope that may
    not own the object. Specification: 70 §12.
    """
    _check_scope(obj, owner)
    ref = {**controller_reference(_with_uid(owner, kind), kind), "blockOwnerDeletion": block_owner_deletion}
    current = controller_of(obj)
    if current is not None and not _same_owner(current, ref):
        raise AlreadyOwned(obj, current)
    _put(obj, ref)


def set_owner_reference(
    obj: Obj, owner: Mapping[str, Any], kind: Kind, *, block_owner_deletion: bool | None = None
) -> None:
    """Make `owner`, of `kind`, one of the owners of `obj`, which is changed; it does not become its controller.

    A reference to the same owner, whatever its UID and version, is replaced in its place; else one is appended. Raises
    OwnerError for an owner without UID or of a scope that may not own the object. Specification: 70 §12.
    """
    _check_scope(obj, owner)
    whole = controller_reference(_with_uid(owner, kind), kind)
    ref = {name: whole[name] for name in ("apiVersion", "kind", "name", "uid")}
    if block_owner_deletion is not None:
        ref["blockOwnerDeletion"] = block_owner_deletion
    _put(obj, ref)


def remove_owner_reference(obj: Obj, owner: Mapping[str, Any], kind: Kind) -> None:
    """Take the reference to `owner`, of `kind`, away from `obj`, which is changed.

    Raises OwnerError when it has none. Specification: 70 §12.
    """
    refs = _references(obj)
    kept = [ref for ref in refs if not _names(ref, owner, kind)]
    if len(kept) == len(refs):
        raise OwnerError(f"{_name(obj)} has no owner reference to {kind.kind} {owner['metadata']['name']}")
    _store(obj, kept)


def remove_controller_reference(obj: Obj, owner: Mapping[str, Any], kind: Kind) -> None:
    """Take the reference to its controller `owner`, of `kind`, away from `obj`, which is changed.

    Raises OwnerError when it has no controller, or another one. Specification: 70 §12.
    """
    current = controller_of(obj)
    if current is None:
        raise OwnerError(f"{_name(obj)} has no controller")
    if not _names(current, owner, kind):
        raise OwnerError(
            f"the controller of {_name(obj)} is {current.get('kind')} {current.get('name')}, "
            f"not {kind.kind} {owner['metadata']['name']}"
        )
    _store(obj, [ref for ref in _references(obj) if ref is not current])


def has_owner_reference(obj: Mapping[str, Any], owner: Mapping[str, Any], kind: Kind) -> bool:
    """Whether `obj` has a reference to `owner`, of `kind`, by group, kind and name (specification: 70 §12)."""
    return any(_names(ref, owner, kind) for ref in _references(obj))


def has_controller_reference(obj: Mapping[str, Any]) -> bool:
    """Whether `obj` has a controller. `objects.is_controlled_by` tells which (specification: 70 §12)."""
    return controller_of(obj) is not None


def _check_scope(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> None:
    owner_namespace = owner["metadata"].get("namespace", "")
    if not owner_namespace:
        return
    namespace = obj["metadata"].get("namespace", "")
    if not namespace:
        raise OwnerError(
            f"cluster-scoped resource must not have a namespace-scoped owner, owner's namespace {owner_namespace}"
        )
    if namespace != owner_namespace:
        raise OwnerError(
            f"cross-namespace owner references are disallowed, owner's namespace {owner_namespace}, "
            f"obj's namespace {namespace}"
        )


def _with_uid(owner: Mapping[str, Any], kind: Kind) -> Mapping[str, Any]:
    meta = owner["metadata"]
    if not meta.get("uid"):
        raise OwnerError(f"{kind.kind} {meta.get('name', '')} has no UID; create it before it becomes an owner")
    return owner


def _same_owner(ref: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two references are to one owner: by group, kind and name."""
    return (
        ref.get("kind") == other.get("kind")
        and ref.get("name") == other.get("name")
        and group_of(ref.get("apiVersion", "")) == group_of(other.get("apiVersion", ""))
    )


def _names(ref: Mapping[str, Any], owner: Mapping[str, Any], kind: Kind) -> bool:
    return _same_owner(ref, {"apiVersion": kind.api_version, "kind": kind.kind, "name": owner["metadata"]["name"]})


def _references(obj: Mapping[str, Any]) -> list[Obj]:
    return obj["metadata"].get("ownerReferences") or []


def _put(obj: Obj, ref: Obj) -> None:
    refs = [*_references(obj)]
    for place, other in enumerate(refs):
        if _same_owner(other, ref):
            refs[place] = ref
            break
    else:
        refs.append(ref)
    obj["metadata"]["ownerReferences"] = refs


def _store(obj: Obj, refs: list[Obj]) -> None:
    if refs:
        obj["metadata"]["ownerReferences"] = refs
    else:
        obj["metadata"].pop("ownerReferences", None)


def _name(obj: Mapping[str, Any]) -> str:
    meta = obj["metadata"]
    place = f"{meta['namespace']}/{meta.get('name', '')}" if meta.get("namespace") else meta.get("name", "")
    return f"{obj.get('kind') or 'object'} {place}"
