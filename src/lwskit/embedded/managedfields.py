"""Who owns which field: `metadata.managedFields` of created, updated and applied objects. Pure but for the clock.

Source: Kubernetes documentation, "Server-Side Apply", on field management.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import orjson

from lwskit.embedded import fieldset, merging
from lwskit.embedded.codec import Codec
from lwskit.embedded.fieldset import Path, Paths
from lwskit.embedded.resources import Resource
from lwskit.embedded.structure import Node, Structures
from lwskit.runtime.clock import Clock, rfc3339
from lwskit.runtime.objects import Obj

MAX_UPDATERS = 10
"""How many updating managers an object remembers; older ones become one."""

ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"

_SYSTEM: frozenset[Path] = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",), ()}
    | {
        ("f:metadata", f"f:{n}")
        for n in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    }
)
"""Paths that nobody owns."""

_STATUS: tuple[Path, ...] = (("f:status",),)
_STATUS_RESETS: dict[str, tuple[Path, ...]] = {
    "/pods": (("f:spec",), ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")),
    "apps/deployments": (("f:spec",), ("f:metadata", "f:labels")),
    "apps/replicasets": (("f:spec",), ("f:metadata", "f:labels")),
    "apiextensions.k8s.io/customresourcedefinitions": (("f:spec",), ("f:metadata",)),
}


@dataclass(frozen=True, slots=True)
class Identity:
    """Who: one entry of managedFields. The API version of an applier is not part of who it is."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def sort_key(self) -> str:
        """Its place among others: they are sorted as JSON."""
        names = ("manager", "operation", "apiVersion", "subresource")
        values = (self.manager, self.operation, self.api_version, self.subresource)
        return orjson.dumps({n: v for n, v in zip(names, values, strict=True) if v}).decode()

    @property
    def shown(self) -> str:
        """How messages name it."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == "Update" else text


@dataclass(frozen=True, slots=True)
class Owned:
    """What a manager owns, in which version it said so, and when."""

    paths: Paths
    api_version: str
    time: str | None


Managers = dict[Identity, Owned]


def identity(manager: str, operation: str, api_version: str, subresource: str) -> Identity:
    """The identity of a manager; appliers are the same in every version."""
    return Identity(manager, operation, "" if operation == "Apply" else api_version, subresource)


def decode(entries: Iterable[Obj] | None) -> Managers:
    """From `metadata.managedFields`."""
    found: Managers = {}
    for e in entries or ():
        who = identity(e.get("manager", ""), e.get("operation", ""), e.get("apiVersion", ""), e.get("subresource", ""))
        found[who] = Owned(fieldset.decode(e.get("fieldsV1")), e.get("apiVersion", ""), e.get("time"))
    return found


def encode(managers: Managers) -> list[Obj]:
    """As `metadata.managedFields`, appliers first, then by time."""
    entries = []
    for who, owned in managers.items():
        entry: Obj = {"manager": who.manager, "operation": who.operation, "apiVersion": owned.api_version}
        if owned.time:
            entry["time"] = owned.time
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": fieldset.encode(owned.paths)}
        if who.subresource:
            entry["subresource"] = who.subresource
        entries.append(entry)
    entries.sort(
        key=lambda e: (e["operation"], e.get("time", ""), e["manager"], e["apiVersion"], e.get("subresource", ""))
    )
    return entries


def same_but_times(new: Obj, old: Obj) -> bool:
    """Whether two objects differ in nothing but the times of their managed fields: such a write changes nothing."""
    entries, before = (o["metadata"].get("managedFields") or [] for o in (new, old))
    if not entries or len(entries) != len(before) or _timeless(entries) != _timeless(before):
        return False
    metas = ({k: v for k, v in o["metadata"].items() if k != "managedFields"} for o in (new, old))
    return next(metas) == next(metas) and {**new, "metadata": None} == {**old, "metadata": None}


def _timeless(entries: Iterable[Obj]) -> list[Obj]:
    return [{k: v for k, v in e.items() if k != "time"} for e in entries]


def strip(paths: Paths) -> Paths:
    """Without what nobody owns."""
    return paths - _SYSTEM


def reset_fields(resource: Resource, subresource: str) -> tuple[Path, ...]:
    """What a write to this endpoint never changes, so that it owns nothing of it either."""
    if subresource == "status":
        if resource.custom is not None:
            return (("f:metadata",), ("f:spec",))
        return _STATUS_RESETS.get(resource.storage, (("f:spec",),))
    if subresource == "" and resource.has_status:
        return _STATUS
    return ()


class FieldManager:
    """Keeps managed fields for all kinds; `clock` gives the time of entries."""

    def __init__(self, codec: Codec, clock: Clock) -> None:
        self._codec = codec
        self._clock = clock
        self._structures = Structures(codec.types)
        self._empty: dict[str, Obj] = {}

    def node(self, resource: Resource) -> Node | None:
        """The structure of a resource's objects, None for a built-in kind without a type."""
        if resource.custom is not None:
            return self._structures.custom(resource.custom.schema)
        name = self._codec.type_of(resource)
        return None if name is None else self._structures.builtin(name)

    def empty(self, resource: Resource) -> Obj:
        """What an object of the kind has when nothing is set; its fields are not new in a first object."""
        name = self._codec.type_of(resource)
        if name is None:
            return {"apiVersion": "", "kind": "", "metadata": {}}
        found = self._empty.get(name)
        if found is None:
            found = self._empty[name] = self._codec.types.encode(name, {})
        return found

    def now(self) -> str:
        """The time of a new entry."""
        return rfc3339(self._clock.now())

    def updated(self, resource: Resource, live: Obj | None, new: Obj, manager: str, subresource: str) -> None:
        """Set the managed fields of an object that a create, update or patch made, in place.

        `live` is the object before, None for a new one. The manager takes over what it changed or added; what went
        belongs to nobody. An object that has no managed fields gets none by an update.
        """
        node = self.node(resource)
        meta = new["metadata"]
        if node is None:
            meta.pop("managedFields", None)
            return
        given = meta.pop("managedFields", None)
        entries = live["metadata"].get("managedFields") if live else None
        if subresource == "" and given is not None:
            if given == []:
                # A client may reset all managed fields with an empty list.
                entries = None
            elif _sound(given):
                entries = given
        managers = decode(entries)
        if live is None:
            live = self.empty(resource)
        elif not managers:
            return
        else:
            live = {**live, "metadata": {k: v for k, v in live["metadata"].items() if k != "managedFields"}}
        who = identity(manager, "Update", resource.api_version, subresource)
        ignored = reset_fields(resource, subresource)
        kind = (new["apiVersion"], new["kind"])
        known = kind == (resource.api_version, resource.kind)
        if resource.custom is not None and not (known and _fits(node, new, ignored)):
            if entries:
                meta["managedFields"] = entries
            return
        managers = self.take(managers, node, live, new, who, ignored)
        if managers:
            meta["managedFields"] = encode(_cap(managers))

    def take(
        self, managers: Managers, node: Node, live: Obj, new: Obj, who: Identity, ignored: tuple[Path, ...]
    ) -> Managers:
        """The managers after `who` changed `live` to `new`."""
        difference = fieldset.compare(node, live, new).without(ignored)
        if difference.empty:
            return managers
        changed = difference.added | difference.modified
        before = managers.get(who)
        taken = strip(changed)
        found: Managers = {}
        for other, owned in managers.items():
            left = owned.paths - changed - difference.removed
            if left:
                found[other] = owned if len(left) == len(owned.paths) else replace(owned, paths=left)
        if taken:
            kept = before.paths - difference.removed if before else set()
            found[who] = Owned(kept | taken, who.api_version, self.now())
        return found


def _fits(node: Node, new: Obj, ignored: tuple[Path, ...]) -> bool:
    """Whether the parts of an object that its rules do not see, because they are set back, are of its type."""
    for head, *rest in ignored:
        child = node.child(head[2:])
        if not rest and child is not None and merging.broken(child, new.get(head[2:])):
            return False
    return True


def _sound(entries: Any) -> bool:
    """Whether managed fields that a client sent can be kept."""
    return isinstance(entries, list) and all(
        isinstance(e, dict)
        and e.get("operation") in ("Apply", "Update")
        and e.get("fieldsType") == "FieldsV1"
        and e.get("apiVersion")
        for e in entries
    )


def _cap(managers: Managers) -> Managers:
    """Fold the oldest updaters of a version into one when there are too many."""
    updaters = [w for w in managers if w.operation == "Update"]
    if len(updaters) <= MAX_UPDATERS:
        return managers
    found = dict(managers)
    left = len(updaters)
    first: dict[str, Identity] = {}
    for who in sorted(updaters, key=lambda w: (managers[w].time or "", w.sort_key)):
        if left <= MAX_UPDATERS:
            break
        version = who.api_version
        if version not in first:
            first[version] = who
            continue
        bucket = Identity(ANCIENT, "Update", version)
        if bucket not in found:
            found[bucket] = found.pop(first[version])
        owned = found.pop(who)
        found[bucket] = Owned(owned.paths | found[bucket].paths, version, owned.time)
        left -= 1
    return found
