"""The delete verbs: one object, or a collection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lwskit.embedded import builtin_admission, commits, delete_options, deletion
from lwskit.embedded.admission import Attributes
from lwskit.embedded.backend import Backend
from lwskit.embedded.call import Call
from lwskit.embedded.failures import modified, not_found
from lwskit.embedded.reads import Reader
from lwskit.embedded.resources import Resource
from lwskit.embedded.store import StaleError, key
from lwskit.embedded.writes import ATTEMPTS
from lwskit.runtime.errors import NotFound
from lwskit.runtime.objects import Obj


class Remover:
    """The delete verbs over one backend."""

    def __init__(self, backend: Backend) -> None:
        self._b = backend

    async def delete(self, call: Call) -> tuple[int, Obj]:
        """Delete one object; returns it while it lingers (or for some kinds always), else a Status.

        Before it stands the HTTP status.
        """
        options = self._options(call)
        obj = await self._delete(call, call.name, options)
        meta = obj.get("metadata") or {}
        lingers = "deletionTimestamp" in meta and meta.get("finalizers")
        return (202 if options.cascading and lingers else 200), obj

    async def delete_with(self, call: Call, options: Any) -> Obj:
        """Delete the call's object with DeleteOptions that come from elsewhere than its body."""
        read = delete_options.from_document(self._b.codec, options)
        return await self._delete(call, call.name, replace(read, dry_run=read.dry_run or call.dry_run))

    async def delete_collection(self, call: Call) -> Obj:
        """Delete what the selectors in the query match; returns the list of what was there."""
        b, resource = self._b, call.resource
        reader = Reader(b)
        reader.check_page(call)
        options = self._options(call)
        listed, _ = reader.page(call, whole=True)
        items = []
        for entry in listed:
            items.append(_item(resource, b.codec.from_stored(resource, entry.obj)))
            namespace = entry.obj["metadata"].get("namespace", "")
            one = Call(call.request, call.user, "delete", resource, namespace, "", "", call.params, call.warnings)
            try:
                await self._delete(one, entry.obj["metadata"]["name"], options)
            except NotFound:
                continue
        return {
            "kind": resource.list_kind,
            "apiVersion": resource.api_version,
            "metadata": {"resourceVersion": str(b.store.version)},
            "items": items,
        }

    def _options(self, call: Call) -> delete_options.Options:
        given = call.request.headers.get("content-type", "")
        return delete_options.from_request(self._b.codec, call.request.body, given, call.params)

    async def _delete(self, call: Call, name: str, options: delete_options.Options) -> Obj:
        b, resource = self._b, call.resource
        dry_run = options.dry_run
        place = key(call.namespace if resource.namespaced else "", name)
        for _ in range(ATTEMPTS):
            entry = b.store.get(resource.storage, place)
            if entry is None:
                raise not_found(resource, name)
            old = b.codec.from_stored(resource, entry.obj)
            deletion.check_preconditions(resource, old, options)
            builtin_admission.delete(resource, name)
            attributes = Attributes(
                "DELETE", resource, "", call.namespace, name, call.user, dry_run, _as_object(options), call.warnings
            )
            await b.admission.mutate(attributes, None, old)
            await b.admission.validate(attributes, None, old)
            outcome = deletion.decide(resource, old, options, b.clock.now())
            if dry_run:
                if outcome.remove and outcome.marked is None and old["metadata"].get("finalizers"):
                    # A real server then answers with an object in which nothing is set.
                    named = {"apiVersion": resource.api_version, "kind": resource.kind}
                    return named if resource.custom is not None else {**b.fields.empty(resource), **named}
                return self._answer(call, name, outcome.marked or old, gone=outcome.remove)
            try:
                if outcome.marked is not None:
                    entry = b.store.update(resource.storage, place, b.codec.to_stored(resource, outcome.marked), entry)
                    if not outcome.remove:
                        commits.after(b, resource, entry, removed=False)
                if outcome.remove:
                    entry = b.store.delete(resource.storage, place, entry)
                    commits.after(b, resource, entry, removed=True)
            except StaleError:
                continue
            return self._answer(call, name, b.codec.from_stored(resource, entry.obj), gone=outcome.remove)
        raise modified(resource, name)

    def _answer(self, call: Call, name: str, obj: Obj, *, gone: bool) -> Obj:
        if not gone or deletion.answers_with_object(call.resource):
            return obj
        details = {
            "name": name,
            "group": call.resource.group,
            "kind": call.resource.plural,
            "uid": obj["metadata"]["uid"],
        }
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {k: v for k, v in details.items() if v},
        }


def _item(resource: Resource, obj: Obj) -> Obj:
    """An object in a list: built-in ones do not repeat the kind there."""
    if resource.custom is not None:
        return obj
    return {k: v for k, v in obj.items() if k not in ("apiVersion", "kind")}


def _as_object(options: delete_options.Options) -> Obj:
    """The options as a webhook sees them."""
    found: Obj = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
    if options.grace is not None:
        found["gracePeriodSeconds"] = options.grace
    if options.policy:
        found["propagationPolicy"] = options.policy
    preconditions = {k: v for k, v in (("uid", options.uid), ("resourceVersion", options.resource_version)) if v}
    if preconditions:
        found["preconditions"] = preconditions
    if options.dry_run:
        found["dryRun"] = ["All"]
    return found
