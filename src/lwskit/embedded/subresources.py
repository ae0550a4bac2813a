"""Subresources: status, scale, finalize, and of pods binding and eviction; and the reviews that are only answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from lwskit.embedded import delete_options, reviews, scales, schema
from lwskit.embedded.backend import Backend
from lwskit.embedded.call import Call
from lwskit.embedded.codec import UndecodableError, read_body
from lwskit.embedded.failures import bad_request, conflict, invalid_object, invalid_value, not_found
from lwskit.embedded.patching import Patcher
from lwskit.embedded.removal import Remover
from lwskit.embedded.writes import Writer, other_uid
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.errors import ApiError, InternalError
from lwskit.runtime.objects import Obj

_UNREGISTERED_SCALE = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
"""What a real server says of a Scale that it cannot read, when it is the scale of a custom resource."""
_UNOWNED_SCALE = (
    "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) to "
    "proper version: request to convert CR to an invalid group/version: autoscaling/v1"
)
"""What a real server says of an apply to the scale of a custom resource whose replicas nobody owns."""
_UNCONVERTED_SCALE = (
    "failed to convert new object (/{name}; autoscaling/v1, Kind=Scale) to proper version: "
    "request to convert CR to an invalid group/version: autoscaling/v1"
)
"""What it says of one that changes anything."""


def _same(call: Call, new: Obj, old: Obj) -> bool:
    """Whether an apply left a scale as it was; that a zero is written down is a change."""
    left, right = ({**o, "metadata": {**o["metadata"], "managedFields": None}} for o in (new, old))
    config = read_body(call.request.body, call.content_type, "Scale")
    zero = (config.get("spec") or {}).get("replicas") == 0 and not old["spec"].get("replicas")
    return left == right and not zero


class Subresources:
    """The verbs of subresources over one backend."""

    def __init__(self, backend: Backend, writer: Writer, patcher: Patcher, remover: Remover) -> None:
        self._b = backend
        self._writer = writer
        self._patcher = patcher
        self._remover = remover

    async def answer(self, call: Call) -> tuple[int, Obj]:
        """The HTTP status and the object of the answer. Raises the ApiError of a refusal."""
        match call.subresource:
            case "scale":
                return 200, await self._scale(call)
            case "binding":
                return 201, await self._bind(call)
            case "eviction":
                return 201, await self._evict(call)
            case "token":
                return 201, reviews.token_request(self._b, call)
        if call.verb == "get":
            return 200, self._current(call)
        if call.verb == "update" and call.subresource == "finalize":
            return 200, await self._finalize(call)
        if call.verb == "update":
            return 200, (await self._writer.update(call))[0]
        obj, created = await self._patcher.patch(call)
        return (201 if created else 200), obj

    def review(self, call: Call) -> tuple[int, Obj]:
        """The answer to a review, which is stored nowhere."""
        body = read_body(call.request.body, call.content_type, call.resource.kind)
        if not isinstance(body, dict):
            raise bad_request("the body of a review must be an object")
        return 201, reviews.answer(self._b, call, body)

    def _current(self, call: Call) -> Obj:
        entry = self._b.find(call.resource, call.namespace, call.name)
        if entry is None:
            raise not_found(call.resource, call.name)
        return self._b.codec.from_stored(call.resource, entry.obj)

    async def _finalize(self, call: Call) -> Obj:
        body = read_body(call.request.body, call.content_type, "Namespace")
        finalizers = list((body.get("spec") or {}).get("finalizers") or [])

        def transform(current: Obj) -> Obj:
            new = orjson.loads(orjson.dumps(current))
            new["spec"]["finalizers"] = finalizers
            if not finalizers:
                del new["spec"]["finalizers"]
            version = (body.get("metadata") or {}).get("resourceVersion")
            if version:
                new["metadata"]["resourceVersion"] = version
            return new

        return await self._writer.change(call, transform)

    # -- scale -------------------------------------------------------------------------------------------------------

    async def _scale(self, call: Call) -> Obj:
        if call.verb == "get":
            current = self._current(call)
            path = scales.spec_path(call.resource)
            if call.resource.custom is not None and scales.read(current, path) is None:
                text = f'the spec replicas field ".{path}" does not exist'
                raise InternalError(f"Internal error occurred: {text}", details={"causes": [{"message": text}]})
            return scales.of(call.resource, current)
        as_scale = replace(call, resource=scales.SCALE)
        body = None
        if call.verb == "update":
            read = read_body(call.request.body, call.content_type, "Scale")
            try:
                warn = call.warnings.append
                body = self._b.codec.decode(scales.SCALE, read, call.validation, call.request.body, warn)
            except UndecodableError:
                if call.resource.custom is None:
                    raise
                raise bad_request(_UNREGISTERED_SCALE) from None
            self._writer.place(as_scale, body)

        def transform(current: Obj) -> Obj:
            before = scales.of(call.resource, current)
            entries = scales.owned(call.resource, current)
            if entries:
                before["metadata"]["managedFields"] = entries
            if body is None and not entries and call.resource.custom and call.content_type == PatchType.APPLY:
                raise ApiError(_UNOWNED_SCALE, code=500, reason="")
            if body is None:
                scale = self._patcher.transformed(as_scale, before)
                self._writer.place(as_scale, scale)
                if call.resource.custom and call.content_type == PatchType.APPLY and not _same(call, scale, before):
                    raise ApiError(_UNCONVERTED_SCALE.format(name=call.name), code=500, reason="")
            else:
                scale = orjson.loads(orjson.dumps(body))
                self._b.fields.updated(scales.SCALE, before, scale, call.manager, "scale")
            return self._scaled(call, current, scale)

        return scales.of(call.resource, await self._writer.change(call, transform))

    def _scaled(self, call: Call, current: Obj, scale: Obj) -> Obj:
        """The object with what a new Scale says. Raises Invalid and Conflict."""
        resource, meta = call.resource, scale["metadata"]
        wanted = scale.get("spec", {}).get("replicas", 0)
        uid, version = meta.get("uid"), meta.get("resourceVersion")
        known = current["metadata"]["uid"]
        if uid and uid != known and call.verb == "update":
            raise other_uid(call, uid, known)
        if wanted < 0 and resource.custom is None:
            error = invalid_value("spec.replicas", wanted, "must be greater than or equal to 0")
            raise invalid_object("autoscaling", "Scale", call.name, [error])
        if uid and uid != known:
            text = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {known}"
            raise conflict(resource.group, f"{resource.plural}/scale", call.name, text)
        new = orjson.loads(orjson.dumps(current))
        scales.write(new, scales.spec_path(resource), wanted)
        if resource.custom is not None:
            schema.apply_defaults(new, resource.custom.schema)
        entries = scales.give_back(resource, current, meta.get("managedFields") or [])
        if entries:
            new["metadata"]["managedFields"] = entries
        else:
            new["metadata"].pop("managedFields", None)
        if version:
            new["metadata"]["resourceVersion"] = version
        elif resource.custom is None:
            del new["metadata"]["resourceVersion"]
        return new

    # -- pods --------------------------------------------------------------------------------------------------------

    async def _bind(self, call: Call) -> Obj:
        body: Any = read_body(call.request.body, call.content_type, "Binding")
        target = (body.get("target") or {}) if isinstance(body, dict) else {}
        if not target.get("name"):
            raise ApiError("target.name: Required value", code=500, reason="")

        def transform(current: Obj) -> Obj:
            node = current["spec"].get("nodeName")
            if "deletionTimestamp" in current["metadata"]:
                text = f"pod {call.name} is being deleted, cannot be assigned to a host"
                raise conflict("", "pods/binding", call.name, text)
            if node:
                text = f'pod {call.name} is already assigned to node "{node}"'
                raise conflict("", "pods/binding", call.name, text)
            if current["spec"].get("schedulingGates"):
                raise conflict("", "pods/binding", call.name, f"pod {call.name} has non-empty .spec.schedulingGates")
            new = orjson.loads(orjson.dumps(current))
            new["spec"]["nodeName"] = target["name"]
            conditions = new["status"].setdefault("conditions", [])
            old = next((c for c in conditions if c["type"] == "PodScheduled"), None)
            scheduled = {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": self._b.now(),
            }
            if old is None:
                conditions.append(scheduled)
            else:
                conditions[conditions.index(old)] = scheduled
            annotations = (body.get("metadata") or {}).get("annotations")
            if annotations:
                new["metadata"].setdefault("annotations", {}).update(annotations)
            return new

        await self._writer.change(call, transform)
        return _success()

    async def _evict(self, call: Call) -> Obj:
        body: Any = read_body(call.request.body, call.content_type, "Eviction")
        options = (body.get("deleteOptions") if isinstance(body, dict) else None) or {}
        read = delete_options.from_document(self._b.codec, options)
        if not (read.dry_run or call.dry_run):
            await self._writer.change(call, self._disrupted)
        await self._remover.delete_with(call, options)
        return _success()

    def _disrupted(self, pod: Obj) -> Obj:
        """The pod with the condition that says why it goes; as it is when it goes already."""
        if "deletionTimestamp" in pod["metadata"]:
            return pod
        new = orjson.loads(orjson.dumps(pod))
        conditions = new["status"].setdefault("conditions", [])
        conditions[:] = [c for c in conditions if c["type"] != "DisruptionTarget"]
        conditions.append(
            {
                "type": "DisruptionTarget",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": self._b.now(),
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
            }
        )
        return new


def _success() -> Obj:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
