"""Subresources: status, scale, finalize, and of pods binding and eviction; and the reviews that are only answered."""

from __future__ import annotations

from typing import Any

import orjson

from lwskit.embedded import patch, reviews
from lwskit.embedded.backend import Backend
from lwskit.embedded.call import Call
from lwskit.embedded.codec import json_kind, read_body
from lwskit.embedded.deletion import read_options
from lwskit.embedded.failures import bad_request, conflict, invalid_object, invalid_value, modified, not_found
from lwskit.embedded.patching import Patcher, invalid_patch, json_patched
from lwskit.embedded.removal import Remover
from lwskit.embedded.writes import Writer
from lwskit.runtime.errors import ApiError
from lwskit.runtime.objects import Obj, Selector


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
        obj, _ = await self._patcher.patch(call)
        return 200, obj

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

    def _as_scale(self, call: Call, obj: Obj) -> Obj:
        custom, meta = call.resource.custom, obj["metadata"]
        if custom is not None and custom.scale is not None:
            wanted = _read(obj, custom.scale.spec_replicas) or 0
            actual = _read(obj, custom.scale.status_replicas) or 0
            selector = (_read(obj, custom.scale.label_selector) or "") if custom.scale.label_selector else ""
        else:
            wanted = (obj.get("spec") or {}).get("replicas", 0)
            actual = (obj.get("status") or {}).get("replicas", 0)
            given = (obj.get("spec") or {}).get("selector")
            if given is not None and "matchLabels" not in given and "matchExpressions" not in given:
                given = {"matchLabels": given}
            selector = str(Selector.from_object(given))
        names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        status: Obj = {"replicas": actual}
        if selector:
            status["selector"] = selector
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {k: meta[k] for k in names if k in meta},
            "spec": {"replicas": wanted} if wanted else {},
            "status": status,
        }

    async def _scale(self, call: Call) -> Obj:
        if call.verb == "get":
            return self._as_scale(call, self._current(call))
        path = (
            call.resource.custom.scale.spec_replicas
            if call.resource.custom and call.resource.custom.scale
            else "spec.replicas"
        )
        body = None
        if call.verb == "update":
            body = read_body(call.request.body, call.content_type, "Scale")
            if not isinstance(body, dict):
                raise bad_request("the body must be a Scale object")

        def transform(current: Obj) -> Obj:
            before = self._as_scale(call, current)
            scale = body if body is not None else self._patched_scale(call, before)
            wanted = (scale.get("spec") or {}).get("replicas", 0)
            if not isinstance(wanted, int) or isinstance(wanted, bool):
                detail = (
                    f"json: cannot unmarshal {json_kind(wanted)} into Go struct field ScaleSpec.spec.replicas of type "
                    "int32"
                )
                if body is None:
                    raise invalid_patch(orjson.dumps(scale).decode(), detail)
                raise bad_request(f'Scale in version "v1" cannot be handled as a Scale: {detail}')
            name = (scale.get("metadata") or {}).get("name")
            if name not in (None, call.name):
                raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
            if wanted < 0:
                error = invalid_value("spec.replicas", wanted, "must be greater than or equal to 0")
                raise invalid_object("autoscaling", "Scale", call.name, [error])
            version = (scale.get("metadata") or {}).get("resourceVersion")
            if version and version != current["metadata"]["resourceVersion"]:
                raise modified(call.resource, call.name)
            new = orjson.loads(orjson.dumps(current))
            _write(new, path, wanted)
            self._b.fields.updated(call.resource, current, new, call.manager, "scale")
            return new

        return self._as_scale(call, await self._writer.change(call, transform))

    def _patched_scale(self, call: Call, scale: Obj) -> Obj:
        body = read_body(call.request.body, call.content_type, "Scale")
        if isinstance(body, list):
            return json_patched(orjson.loads(orjson.dumps(scale)), body)
        return patch.merge(scale, body)

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
        read = read_options(options, call.params)
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


def _read(obj: Obj, path: str) -> Any:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _write(obj: Obj, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    target = obj
    for part in parents:
        target = target.setdefault(part, {})
    target[last] = value
