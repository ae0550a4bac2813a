"""Who owns whom, by UID, and what that means for an object's life. Pure.

Source: Kubernetes documentation, "Garbage Collection": cascading deletion, owner references across namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj, is_deleting, key_of, uid_of

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Identity:
    """An object as the graph knows it: kind, place and UID."""

    kind: Kind
    key: Key
    uid: str


@dataclass(slots=True)
class Node:
    """An observed object: who it is, its owner references, and the UIDs of those that name it as owner."""

    identity: Identity
    owners: tuple[Obj, ...] = ()
    deleting: bool = False
    foreground: bool = False
    orphaning: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the state of its owners means for an object.

    `solid`, `dangling` (gone) and `waiting` (deleting in the foreground) are owner references of it.
    """

    solid: tuple[Obj, ...] = ()
    dangling: tuple[Obj, ...] = ()
    waiting: tuple[Obj, ...] = ()


@dataclass(slots=True)
class Graph:
    """The ownership graph. Changes go in, UIDs of objects that must be looked at come out."""

    nodes: dict[str, Node] = field(default_factory=dict)
    dependents: dict[str, dict[str, None]] = field(default_factory=dict)

    def observe(self, kind: Kind, obj: Mapping[str, Any]) -> list[str]:
        """Take in an object that exists; returns the UIDs to look at."""
        meta = obj["metadata"]
        uid = uid_of(obj)
        old = self.nodes.get(uid)
        finalizers = meta.get("finalizers") or ()
        deleting = is_deleting(obj)
        node = Node(
            Identity(kind, key_of(obj), uid),
            tuple(meta.get("ownerReferences") or ()),
            deleting,
            deleting and FOREGROUND in finalizers,
            deleting and ORPHAN in finalizers,
        )
        self.nodes[uid] = node
        look: dict[str, None] = {}
        before = {r["uid"]: r for r in (old.owners if old else ())}
        after = {r["uid"]: r for r in node.owners}
        for owner in before.keys() - after.keys():
            self._forget(owner, uid)
        for owner, ref in after.items():
            self.dependents.setdefault(owner, {})[uid] = None
            if owner not in before and self._is_suspect(node, ref):
                look[uid] = None
        for owner, ref in before.items():
            # An owner that is deleted in the foreground may be free of this dependent now.
            if ref.get("blockOwnerDeletion") and not after.get(owner, {}).get("blockOwnerDeletion"):
                look[owner] = None
        if node.orphaning and not (old and old.orphaning):
            look[uid] = None
        elif node.foreground and not (old and old.foreground):
            look.update(dict.fromkeys(self.dependents.get(uid, ())))
            look[uid] = None
        return [u for u in look if u in self.nodes]

    def remove(self, uid: str) -> list[str]:
        """Take out an object that is gone; returns the UIDs to look at: its dependents and owners waiting for it."""
        node = self.nodes.pop(uid, None)
        if node is None:
            return []
        look: dict[str, None] = dict.fromkeys(self.dependents.get(uid, ()))
        for ref in node.owners:
            self._forget(ref["uid"], uid)
            owner = self.nodes.get(ref["uid"])
            if owner is not None and owner.foreground:
                look[ref["uid"]] = None
        return [u for u in look if u in self.nodes]

    def dependents_of(self, uid: str) -> list[Node]:
        """The observed objects that name this one as an owner."""
        return [self.nodes[u] for u in self.dependents.get(uid, ()) if u in self.nodes]

    def blocking(self, uid: str) -> list[Node]:
        """The dependents whose reference blocks the owner's foreground deletion."""
        return [
            n for n in self.dependents_of(uid) if any(r["uid"] == uid and r.get("blockOwnerDeletion") for r in n.owners)
        ]

    def owner_of(self, node: Node, ref: Mapping[str, Any]) -> Node | None:
        """The observed object that a reference of `node` rightly names: UID, kind, name equal, namespace visible."""
        owner = self.nodes.get(ref["uid"])
        if owner is None:
            return None
        kind, key = owner.identity.kind, owner.identity.key
        same = kind.kind == ref.get("kind") and key.name == ref.get("name")
        visible = not key.namespace or key.namespace == node.identity.key.namespace
        return owner if same and visible else None

    def drop_kind(self, kind: Kind) -> list[str]:
        """Take out all objects of a kind that is served no more; returns the UIDs to look at."""
        look: dict[str, None] = {}
        for uid in [u for u, n in self.nodes.items() if n.identity.kind == kind]:
            look.update(dict.fromkeys(self.remove(uid)))
        return [u for u in look if u in self.nodes]

    def _is_suspect(self, node: Node, ref: Mapping[str, Any]) -> bool:
        """Whether a new reference names something that is not known to exist, or that is being deleted around it."""
        owner = self.owner_of(node, ref)
        return owner is None or owner.foreground

    def _forget(self, owner: str, dependent: str) -> None:
        found = self.dependents.get(owner)
        if found is not None:
            found.pop(dependent, None)
            if not found:
                del self.dependents[owner]


def without_owners(refs: Iterable[Mapping[str, Any]], uids: Iterable[str]) -> list[Obj]:
    """The owner references other than those to these UIDs."""
    gone = set(uids)
    return [dict(r) for r in refs if r["uid"] not in gone]


def unblocked(refs: Iterable[Mapping[str, Any]]) -> list[Obj]:
    """The owner references with none of them blocking."""
    return [dict(r) | {"blockOwnerDeletion": False} if r.get("blockOwnerDeletion") else dict(r) for r in refs]


def without_finalizer(finalizers: Sequence[str], finalizer: str) -> list[str] | None:
    """The finalizers without one of them, None when it is not there."""
    return [f for f in finalizers if f != finalizer] if finalizer in finalizers else None


def propagation_for(obj: Mapping[str, Any]) -> str:
    """How a garbage object is deleted: as its own finalizers ask, else in the background."""
    finalizers = obj["metadata"].get("finalizers") or ()
    if ORPHAN in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in finalizers else "Background"
