"""Server-side apply: merge, prune what the manager no longer says, conflicts, ownership.

Source: Kubernetes documentation, "Server-Side Apply".
"""

from __future__ import annotations

from typing import Any

import orjson

from lwskit.embedded import failures, fieldset, managedfields, merging
from lwskit.embedded.backend import Backend
from lwskit.embedded.call import Call
from lwskit.embedded.codec import UndecodableError
from lwskit.embedded.failures import bad_request
from lwskit.embedded.fieldset import Path, Paths
from lwskit.embedded.managedfields import BEFORE_FIRST_APPLY, Identity, Managers, Owned
from lwskit.embedded.resources import Resource
from lwskit.embedded.structure import Node
from lwskit.runtime.errors import ApiError, Conflict
from lwskit.runtime.objects import Obj

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL = "kubectl"


class Applier:
    """Applies configurations over one backend."""

    def __init__(self, backend: Backend) -> None:
        self._b = backend

    def created(self, call: Call, config: Obj) -> Obj:
        """The object that an apply makes when there is none. Raises the ApiError of a refusal."""
        meta: Obj = {"name": call.name}
        if call.resource.namespaced:
            meta["namespace"] = call.namespace
        empty = orjson.loads(orjson.dumps(self._b.fields.empty(call.resource)))
        empty |= {"apiVersion": call.resource.api_version, "kind": call.resource.kind}
        empty["metadata"] = {**empty.get("metadata", {}), **meta}
        new = self.applied(call, empty, config)
        uid = new["metadata"].get("uid")
        if uid:
            text = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise failures.conflict(call.resource.group, call.resource.plural, call.name, text)
        return new

    def applied(self, call: Call, current: Obj, config: Obj) -> Obj:
        """The current object after an apply, a fresh object. Raises the ApiError of a refusal."""
        b, resource = self._b, call.resource
        self._check(call, config)
        node = b.fields.node(resource)
        if node is None:
            raise ApiError(
                f"{resource.kind} has no schema: it cannot be applied server-side", code=422, reason="Invalid"
            )
        try:
            merging.check(node, config)
        except merging.UndeclaredError as e:
            text = f"failed to create typed patch object ({_place(resource, config)}): {e}"
            raise ApiError(text, code=500, reason="") from e
        live = {**current, "metadata": {k: v for k, v in current["metadata"].items() if k != "managedFields"}}
        managers = managedfields.decode(current["metadata"].get("managedFields"))
        who = managedfields.identity(call.manager, "Apply", resource.api_version, call.subresource)
        if not managers and "uid" in current["metadata"]:
            ignored = managedfields.reset_fields(resource, call.subresource)
            before = managedfields.identity(BEFORE_FIRST_APPLY, "Update", resource.api_version, call.subresource)
            managers = b.fields.take({}, node, b.fields.empty(resource), live, before, ignored)
        force = call.params.get("force", "").lower() in ("1", "true", "t")
        merged, found = self._apply(node, live, config, managers, who, call, force)
        whole = resource.custom is not None and call.subresource == ""
        call.untidy = whole and any(map(_untidy, merged["metadata"].values()))
        meta = {**merged["metadata"], "managedFields": managedfields.encode(found)}
        if not found:
            del meta["managedFields"]
        new = orjson.loads(orjson.dumps({**merged, "metadata": meta}))
        self._sync_last_applied(call, new, config, current)
        try:
            return b.codec.decode(resource, new, "Ignore", keep_nulls=True)
        except UndecodableError as e:
            kind = f"{_shown_version(resource.api_version)}, Kind={resource.kind}"
            text = (
                f"failed to convert new object ({_place(resource, config)}) to proper version: "
                f"unable to convert unstructured object to {kind}: {e.restored}"
            )
            raise ApiError(text, code=500, reason="") from e

    def _check(self, call: Call, config: Obj) -> None:
        resource = call.resource
        given = config.get("metadata")
        meta: Obj = given if isinstance(given, dict) else {}
        version, kind = (v if isinstance(v, str) else "" for v in (config.get("apiVersion"), config.get("kind")))
        if (version, kind) != (resource.api_version, resource.kind):
            raise bad_request(f"invalid object type: {_shown_version(version)}, Kind={kind}")
        if meta.get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")

    def _apply(
        self, node: Node, live: Obj, config: Obj, managers: Managers, who: Identity, call: Call, force: bool
    ) -> tuple[Obj, Managers]:
        """The merged object without managed fields, and the managers after it."""
        ignored = managedfields.reset_fields(call.resource, call.subresource)
        merged = merging.merge(node, live, config)
        paths = (
            fieldset.drop_below(fieldset.of_object(node, config), ignored)
            if ignored
            else fieldset.of_object(node, config)
        )
        last = managers.get(who)
        now = Owned(paths, call.resource.api_version, last.time if last else None)
        with_new = {**managers, who: now}
        if last is not None and last.paths:
            merged = self._prune(node, merged, with_new, last.paths)
        difference = fieldset.compare(node, live, merged).without(ignored)
        conflicts = {
            other: overlap
            for other, owned in with_new.items()
            if other != who and (overlap := owned.paths & (difference.added | difference.modified))
        }
        if conflicts and not force and not self._adopts(call, node, live, conflicts):
            raise conflict(conflicts)
        found: Managers = {}
        for other, owned in with_new.items():
            if other == who:
                left = managedfields.strip(owned.paths)
            else:
                left = owned.paths - conflicts.get(other, set()) - difference.removed
            if left:
                found[other] = Owned(left, owned.api_version, owned.time)
        if who in found and merged != live:
            found[who] = Owned(found[who].paths, found[who].api_version, self._b.fields.now())
        return merged, found

    def _prune(self, node: Node, merged: Obj, managers: Managers, last: Paths) -> Obj:
        """Take away what this manager said before, says no more, and nobody else owns."""
        pruned = fieldset.remove(node, merged, fieldset.members(node, last)) or {}
        owned: Paths = set()
        for other in managers.values():
            owned |= other.paths
        before = fieldset.members(node, fieldset.of_object(node, merged))
        gone = before - fieldset.members(node, fieldset.of_object(node, pruned))
        gone -= fieldset.members(node, owned)
        pruned = fieldset.remove(node, merged, gone) or {}
        # What vanished only because something above it went, without this manager having owned it, stays.
        gone = before - fieldset.members(node, fieldset.of_object(node, pruned))
        gone &= fieldset.members(node, last)
        return fieldset.remove(node, merged, gone) or {}

    def _adopts(self, call: Call, node: Node, live: Obj, conflicts: dict[Identity, Paths]) -> bool:
        """kubectl may take over what its client-side apply recorded in an annotation and what is still so."""
        if call.manager != _KUBECTL:
            return False
        try:
            recorded = orjson.loads((live["metadata"].get("annotations") or {}).get(LAST_APPLIED, ""))
        except orjson.JSONDecodeError:
            return False
        changed = fieldset.compare(node, recorded, live)
        allowed = fieldset.members(node, fieldset.of_object(node, recorded) - changed.modified - changed.removed)
        return all(paths <= allowed for paths in conflicts.values())

    def _sync_last_applied(self, call: Call, new: Obj, config: Obj, current: Obj) -> None:
        annotations = new["metadata"].get("annotations")
        if call.manager != _KUBECTL or LAST_APPLIED not in (current["metadata"].get("annotations") or {}):
            return
        if annotations and LAST_APPLIED in annotations:
            annotations[LAST_APPLIED] = orjson.dumps(config).decode() + "\n"


def _place(resource: Resource, config: Obj) -> str:
    """Which object a configuration is of, as refusals of it say."""
    given = config.get("metadata")
    meta: Obj = given if isinstance(given, dict) else {}
    where = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
    return f"{where}; {_shown_version(resource.api_version)}, Kind={resource.kind}"


def _shown_version(version: str) -> str:
    """A group and version as the server prints them: the core group is empty."""
    return version if "/" in version else f"/{version}"


def conflict(conflicts: dict[Identity, Paths]) -> Conflict:
    """409 that names every field and its owner."""
    pairs: list[tuple[str, Path]] = [
        (who.shown, path)
        for who, paths in sorted(conflicts.items(), key=lambda item: item[0].sort_key)
        for path in sorted(paths, key=_members_first)
    ]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": fieldset.text(path)}
        for who, path in pairs
    ]
    if len(pairs) == 1:
        who, path = pairs[0]
        message = f"Apply failed with 1 conflict: conflict with {who}: {fieldset.text(path)}"
    else:
        lines: list[str] = []
        for who in dict.fromkeys(w for w, _ in pairs):
            lines.append(f"conflicts with {who}:")
            lines.extend(f"- {fieldset.text(p)}" for w, p in pairs if w == who)
        message = f"Apply failed with {len(pairs)} conflicts: " + "\n".join(lines)
    details: dict[str, Any] = {"causes": causes}
    return Conflict(message, details=details)


def _members_first(path: Path) -> list[tuple[bool, str]]:
    """The order of fields in refusals: in each place, what is owned as a whole comes before what is owned inside."""
    last = len(path) - 1
    return [(i < last, element) for i, element in enumerate(path)]


def _untidy(value: Any) -> bool:
    """Whether a value of metadata is one that nobody sees, or has one."""
    return value in (None, {}, []) or (isinstance(value, dict) and None in value.values())
