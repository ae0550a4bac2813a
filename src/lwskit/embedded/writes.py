"""Creating, updating and patching: from a request to a stored object. One pipeline for all resources."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from lwskit.embedded import builtin_admission, commits, deletion, managedfields, owners, strategy, validation, warnings
from lwskit.embedded.admission import Attributes
from lwskit.embedded.backend import Backend
from lwskit.embedded.call import Call
from lwskit.embedded.codec import read_body
from lwskit.embedded.failures import (
    FieldError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid_object,
    modified,
    not_found,
)
from lwskit.embedded.resources import Resource
from lwskit.embedded.store import Entry, StaleError, key
from lwskit.runtime.clock import random_uuid
from lwskit.runtime.errors import ApiError, NotFound
from lwskit.runtime.objects import Obj

_UNTIDY = "untidy"
_KEPT = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
ATTEMPTS = 8
"""How often a write is computed again when the object changed while a webhook was asked."""

_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_NAME_LIMIT = 63
_SUFFIX = 5


CREATED_BY_UPDATE = frozenset(
    {
        "/services",
        "/limitranges",
        "/endpoints",
        "/events",
        "coordination.k8s.io/leases",
        "rbac.authorization.k8s.io/roles",
        "rbac.authorization.k8s.io/rolebindings",
        "rbac.authorization.k8s.io/clusterroles",
        "rbac.authorization.k8s.io/clusterrolebindings",
        "scheduling.k8s.io/priorityclasses",
        "storage.k8s.io/storageclasses",
    }
)
"""Resources whose update makes the object when there is none."""


def generated_name(base: str, rng: random.Random) -> str:
    """A name for `generateName`: the base, cut, and five random letters (API conventions: generated values)."""
    return base[: _NAME_LIMIT - _SUFFIX] + "".join(rng.choice(_NAME_LETTERS) for _ in range(_SUFFIX))


class Writer:
    """The write verbs over one backend. Its coroutines await nothing unless a webhook has to be asked."""

    def __init__(self, backend: Backend) -> None:
        self._b = backend

    # -- create ------------------------------------------------------------------------------------------------------

    async def create(self, call: Call) -> Obj:
        """Create from the request's body; returns the object in the call's version. Raises the ApiError of a refusal.

        When cancelled while a webhook is asked, nothing was stored.
        """
        body = read_body(call.request.body, call.content_type, call.resource.kind)
        obj = self._decode(call, body, call.request.body)
        self.place(call, obj)
        owners.deduplicate(obj, call.warnings.append, owners.BEFORE_ADMISSION)
        return await self.create_decoded(call, obj, apply=False)

    async def create_decoded(self, call: Call, obj: Obj, *, apply: bool) -> Obj:
        """Create a decoded object; with `apply` its managed fields are already right."""
        b, resource, meta = self._b, call.resource, obj["metadata"]
        given = meta.get("resourceVersion", "")
        if call.verb == "create":
            _wipe(meta)
        elif given:
            _check_number(given)
        if not apply:
            b.fields.updated(resource, None, obj, call.manager, call.subresource)
        _wipe(meta)
        self._check_namespace(call, meta.get("name") or meta.get("generateName", ""))
        builtin_admission.create(b, resource, obj)
        attributes = self._attributes(call, "CREATE", meta.get("name", ""))
        obj = await self._mutated(call, attributes, obj, None)
        owners.deduplicate(obj, call.warnings.append, owners.AFTER_ADMISSION)
        meta = obj["metadata"]
        if not call.subresource:
            commits.begin_create(b, resource, obj, dry_run=call.dry_run)
        strategy.prepare_create(resource, obj, b.codec.types, b.now())
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = generated_name(meta["generateName"], b.rng)
        meta["uid"] = random_uuid(b.rng)
        meta["creationTimestamp"] = b.now()
        commits.before_create(b, resource, obj)
        _refuse(resource, obj, meta.get("name", ""), validation.create(resource, obj, call.warnings.append))
        call.warnings.extend(warnings.of(resource, obj, None, ""))
        await b.admission.validate(replace(attributes, name=meta["name"]), obj, None)
        if call.verb == "create" and given.isdecimal() and int(given) and not call.dry_run:
            raise ApiError("resourceVersion should not be set on objects to be created", code=500, reason="")
        place = key(meta.get("namespace"), meta["name"])
        found = b.store.get(resource.storage, place)
        if found is not None:
            raise _taken(resource, meta, found.obj)
        if call.dry_run:
            if given:
                meta["resourceVersion"] = given
            return obj
        entry = b.store.create(resource.storage, place, b.codec.to_stored(resource, obj))
        if call.untidy:
            entry.views[_UNTIDY] = True
        commits.after(b, resource, entry, removed=False)
        return b.codec.from_stored(resource, entry.obj)

    def _decode(self, call: Call, body: Any, raw: bytes | None = None) -> Obj:
        return self._b.codec.decode(call.resource, body, call.validation, raw, call.warnings.append)

    def place(self, call: Call, obj: Obj) -> None:
        """The namespace and name in a body must be those of the path; sets the namespace. Raises InvalidRequest."""
        meta = obj["metadata"]
        if call.resource.namespaced:
            if meta.get("namespace") not in (None, "", call.namespace):
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            meta["namespace"] = call.namespace
        else:
            meta.pop("namespace", None)
        if call.name:
            if not meta.get("name"):
                raise bad_request(
                    f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
                )
            if meta["name"] != call.name:
                raise bad_request(
                    f"the name of the object ({meta['name']}) does not match the name on the URL ({call.name})"
                )

    def _check_namespace(self, call: Call, name: str) -> None:
        """New objects need a namespace that exists and is not on its way out."""
        if not call.resource.namespaced:
            return
        entry = self._b.namespace(call.namespace)
        if entry is None:
            raise NotFound(
                f'namespaces "{call.namespace}" not found', details={"name": call.namespace, "kind": "namespaces"}
            )
        if "deletionTimestamp" in entry.obj["metadata"]:
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {call.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            text = f"unable to create new content in namespace {call.namespace} because it is being terminated"
            raise forbidden(call.resource, name, text, [cause])

    def _attributes(self, call: Call, operation: str, name: str) -> Attributes:
        options: Obj = {"kind": f"{operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
        if "fieldManager" in call.params:
            options["fieldManager"] = call.params["fieldManager"]
        if "fieldValidation" in call.params:
            options["fieldValidation"] = call.params["fieldValidation"]
        if call.dry_run:
            options["dryRun"] = ["All"]
        namespace = call.namespace if call.resource.namespaced else ""
        return Attributes(
            operation, call.resource, call.subresource, namespace, name, call.user, call.dry_run, options, call.warnings
        )

    async def _mutated(self, call: Call, attributes: Attributes, obj: Obj, old: Obj | None) -> Obj:
        """The object after the mutating webhooks; if they changed it, decoded again for types and defaults."""
        changed = await self._b.admission.mutate(attributes, obj, old)
        if changed is obj or changed is None:
            return obj
        decoded = self._b.codec.decode(call.resource, changed, "Ignore")
        self.place(call, decoded)
        return decoded

    # -- update ------------------------------------------------------------------------------------------------------

    async def update(self, call: Call) -> tuple[Obj, bool]:
        """Replace the object by the request's body; also whether it was created. Raises the ApiError of a refusal."""
        body = read_body(call.request.body, call.content_type, call.resource.kind)
        obj = self._decode(call, body, call.request.body)
        self.place(call, obj)
        owners.deduplicate(obj, call.warnings.append, owners.BEFORE_ADMISSION)

        def replaced(current: Obj) -> Obj:
            new = orjson.loads(orjson.dumps(obj))
            self._b.fields.updated(call.resource, current, new, call.manager, call.subresource)
            return new

        found = self._b.find(call.resource, call.namespace, call.name)
        if found is None and call.resource.storage in CREATED_BY_UPDATE and not call.subresource:
            if obj["metadata"].get("uid"):
                raise other_uid(call, obj["metadata"]["uid"], "")
            return await self.create_decoded(call, obj, apply=False), True
        return await self.change(call, replaced), False

    async def change(
        self,
        call: Call,
        transform: Callable[[Obj], Obj],
        *,
        missing: Callable[[], Obj] | None = None,
    ) -> Obj:
        """Read, transform, admit, validate, store; again from the start when it changed in between.

        `transform` gets the object in the call's version, which it must not change, and returns a new one. `missing`
        makes the object when there is none.
        """
        b, resource = self._b, call.resource
        for _ in range(ATTEMPTS):
            entry = b.find(resource, call.namespace, call.name)
            if entry is None:
                if missing is None:
                    raise not_found(resource, call.name)
                new = missing()
                self.place(call, new)
                return await self.create_decoded(call, new, apply=True)
            try:
                return await self._change_once(call, entry, transform)
            except StaleError:
                continue
        raise modified(resource, call.name)

    async def _change_once(self, call: Call, entry: Entry, transform: Callable[[Obj], Obj]) -> Obj:
        b, resource = self._b, call.resource
        old = b.codec.from_stored(resource, entry.obj)
        new = transform(old)
        self.place(call, new)
        self._check_uid(call, new, old)
        builtin_admission.update(resource, new, old, call.subresource)
        attributes = self._attributes(call, "UPDATE", call.name)
        new = await self._mutated(call, attributes, new, old)
        owners.deduplicate(new, call.warnings.append, owners.AFTER_ADMISSION)
        self._check_version(call, new, old)
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        given = {k: new["metadata"][k] for k in _KEPT if k in new["metadata"]}
        if resource.custom is not None and call.subresource == "status":
            given = {}
        commits.begin_update(b, resource, new, old, call.subresource)
        strategy.prepare_update(resource, new, old, call.subresource)
        commits.before_update(b, resource, new, old, call.subresource)
        _refuse(
            resource,
            new,
            call.name,
            validation.update(resource, new, old, call.subresource, call.warnings.append, given),
        )
        call.warnings.extend(warnings.of(resource, new, old, call.subresource))
        if managedfields.same_but_times(new, old):
            new["metadata"]["managedFields"] = old["metadata"]["managedFields"]
        await b.admission.validate(attributes, new, old)
        link = new["metadata"].pop("selfLink", None)
        untidy = bool(entry.views.get(_UNTIDY))
        call.untidy = call.untidy or (untidy and call.subresource == "scale")
        if new == old and call.untidy == untidy and not (link and call.dry_run):
            return old
        if call.dry_run:
            if link:
                new["metadata"]["selfLink"] = link
            return new
        place = key(call.namespace if resource.namespaced else "", call.name)
        if deletion.gone_by_update(resource, new, old):
            gone = b.store.delete(resource.storage, place, entry)
            commits.after(b, resource, gone, removed=True)
            if link:
                new["metadata"]["selfLink"] = link
            return new
        stored = b.store.update(resource.storage, place, b.codec.to_stored(resource, new), entry)
        if call.untidy:
            stored.views[_UNTIDY] = True
        commits.after(b, resource, stored, removed=False)
        return b.codec.from_stored(resource, stored.obj)

    def _check_uid(self, call: Call, new: Obj, old: Obj) -> None:
        uid, known = new["metadata"].get("uid"), old["metadata"]["uid"]
        if call.verb == "update" and uid and uid != known:
            raise other_uid(call, uid, known)

    def _check_version(self, call: Call, new: Obj, old: Obj) -> None:
        """An empty version or "0" stands for any, where any will do. Raises Conflict and Invalid."""
        resource, version = call.resource, new["metadata"].get("resourceVersion") or "0"
        _check_number(version)
        if int(version) and version != old["metadata"]["resourceVersion"]:
            raise modified(resource, call.name)
        if not int(version) and not resource.unconditional_update:
            error = FieldError(
                "FieldValueInvalid", "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
            )
            raise invalid_object(resource.group, resource.plural, call.name, [error])


def _refuse(resource: Resource, obj: Obj, name: str, errors: list[FieldError]) -> None:
    if errors:
        # Events of both groups are one kind inside; of custom resources, refusals name what the client called them.
        group = "" if resource.storage == "/events" else resource.group
        kind = resource.kind
        if resource.custom is not None:
            group, kind = obj["apiVersion"].rpartition("/")[0], obj["kind"]
        raise invalid_object(group, kind, name, errors)


def other_uid(call: Call, wanted: str, found: str) -> ApiError:
    """The refusal of an update that names another UID than that of the object; `found` is empty where there is none."""
    resource = call.resource
    # A dry run has its own keys.
    prefix = resource.prefix.removeprefix("/registry") if call.dry_run else resource.prefix
    place = "/".join([prefix, *([call.namespace] if resource.namespaced else []), call.name])
    text = (
        f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return conflict(resource.group, resource.plural, call.name, text)


def _check_number(version: str) -> None:
    if not version.isdecimal():
        raise ApiError(f'strconv.ParseUint: parsing "{version}": invalid syntax', code=500, reason="")


def _wipe(meta: Obj) -> None:
    """Take away what no client may set in a new object."""
    for name in (*strategy.SYSTEM_META, "resourceVersion"):
        if name != "generation":
            meta.pop(name, None)


def _no_such_uid(call: Call, uid: str) -> ApiError:
    """The refusal of an update that names the UID of an object that is not there, and would be made."""
    resource = call.resource
    place = f"/registry/{'services/specs' if resource.storage == '/services' else resource.plural}"
    text = (
        f"StorageError: invalid object, Code: 4, Key: {place}/{call.namespace}/{call.name}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: "
    )
    return conflict(resource.group, resource.plural, call.name, text)


def _taken(resource: Resource, meta: Obj, found: Obj) -> ApiError:
    """The refusal of a name that is taken by `found`."""
    error = already_exists(resource, meta["name"])
    text, details = error.message, error.details
    if meta.get("generateName"):
        text += ", the server was not able to generate a unique name for the object"
        details = {**details, "retryAfterSeconds": 1}
    if "deletionTimestamp" in found["metadata"]:
        text = f"object is being deleted: {text}"
    return type(error)(text, details=details)
