"""The ControllerRevisions of a StatefulSet: contents, name, which one is current, which go. Pure.

Source: Kubernetes documentation, "StatefulSets": revision history; API reference: ControllerRevision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lwskit.embedded.controllers.statefulset_pods import revision_of
from lwskit.runtime.client.requests import encode
from lwskit.runtime.kinds import STATEFUL_SET
from lwskit.runtime.objects import Obj, controller_reference

HASH_LABEL = "controller.kubernetes.io/hash"
DEFAULT_LIMIT = 10
"""`spec.revisionHistoryLimit` where the server gave no default."""

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_PREFIX_LIMIT = 223


def data_of(stateful_set: Mapping[str, Any]) -> Obj:
    """What a revision keeps: a strategic patch that puts this pod template back."""
    return {"spec": {"template": dict(stateful_set["spec"]["template"]) | {"$patch": "replace"}}}


def template_of(revision: Mapping[str, Any]) -> Obj:
    """The pod template that a revision keeps."""
    template = dict(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return template


def hash_of(data: Mapping[str, Any], collisions: int) -> str:
    """FNV-1 of 32 bits over the data and the collision count, its decimal digits in letters that form no words."""
    value = 0x811C9DC5
    for byte in encode(data) + str(collisions).encode():
        value = (value * 0x01000193 & 0xFFFFFFFF) ^ byte
    return "".join(_SAFE[ord(c) % len(_SAFE)] for c in str(value))


def new_revision(stateful_set: Mapping[str, Any], number: int, collisions: int) -> Obj:
    """The ControllerRevision of the set's present template, to be created with that revision number."""
    meta = stateful_set["metadata"]
    data = data_of(stateful_set)
    digest = hash_of(data, collisions)
    labels = (stateful_set["spec"]["template"].get("metadata") or {}).get("labels") or {}
    revision_meta: Obj = {
        "name": f"{meta['name'][:_PREFIX_LIMIT]}-{digest}",
        "namespace": meta["namespace"],
        "labels": dict(labels) | {HASH_LABEL: digest},
        "ownerReferences": [controller_reference(stateful_set, STATEFUL_SET)],
    }
    if meta.get("annotations"):
        revision_meta["annotations"] = dict(meta["annotations"])
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": revision_meta,
        "data": data,
        "revision": number,
    }


def sort(revisions: Iterable[Obj]) -> list[Obj]:
    """By revision number, then age, then name."""
    return sorted(
        revisions,
        key=lambda r: (r.get("revision", 0), r["metadata"].get("creationTimestamp", ""), r["metadata"]["name"]),
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """Which revision the set's template is: `update`, as it is, or with `bump` as its new number, or to be created."""

    update: Obj
    create: bool = False
    bump: int | None = None


def choose(stateful_set: Mapping[str, Any], revisions: Sequence[Obj]) -> Choice:
    """Find the revision that equals the set's template among the sorted ones, or say that it must be created.

    An equal one that is not the newest is a roll-back: it gets the next number.
    """
    number = revisions[-1].get("revision", 0) + 1 if revisions else 1
    data = data_of(stateful_set)
    equal = [r for r in revisions if r.get("data") == data]
    if not equal:
        return Choice(new_revision(stateful_set, number, collisions_of(stateful_set)), create=True)
    if equal[-1]["metadata"]["name"] == revisions[-1]["metadata"]["name"]:
        return Choice(revisions[-1])
    return Choice(equal[-1], bump=number)


def current_of(stateful_set: Mapping[str, Any], revisions: Sequence[Obj], update: Obj) -> Obj:
    """The revision that `status.currentRevision` names; the update revision where there is none yet."""
    name = (stateful_set.get("status") or {}).get("currentRevision")
    return next((r for r in revisions if r["metadata"]["name"] == name), update)


def collisions_of(stateful_set: Mapping[str, Any]) -> int:
    """`status.collisionCount`, 0 before the first status."""
    return (stateful_set.get("status") or {}).get("collisionCount") or 0


def outdated(
    stateful_set: Mapping[str, Any], revisions: Sequence[Obj], pods: Iterable[Obj], live: Iterable[str]
) -> list[Obj]:
    """The sorted revisions beyond `spec.revisionHistoryLimit`, oldest first; `live` names and those of pods stay."""
    keep = set(live) | {revision_of(p) for p in pods}
    history = [r for r in revisions if r["metadata"]["name"] not in keep]
    limit = stateful_set["spec"].get("revisionHistoryLimit", DEFAULT_LIMIT)
    if limit < 0 or len(history) <= limit:
        return []
    return history[: len(history) - limit]
