"""The patch verb: picks the kind of patch, applies it to the object or a subresource of it, and stores the result."""

from __future__ import annotations

from typing import Any

import orjson

from lwskit.embedded import patch, strategic
from lwskit.embedded.apply import Applier
from lwskit.embedded.backend import Backend
from lwskit.embedded.call import Call
from lwskit.embedded.codec import UndecodableError, read_body
from lwskit.embedded.failures import bad_request
from lwskit.embedded.writes import Writer
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.errors import ApiError, Invalid, InvalidRequest, UnsupportedMediaType
from lwskit.runtime.objects import Obj


def json_patched(document: Any, body: Any) -> Any:
    """The document, which is changed, after a JSON patch. Raises InvalidRequest and Invalid."""
    try:
        return patch.json_patch(document, body)
    except patch.PatchError as e:
        if e.malformed:
            raise InvalidRequest(f"error decoding patch: {e}") from e
        raise Invalid("the server rejected our request due to an error in our request", details={}) from e


def invalid_patch(shown: str, detail: str) -> Invalid:
    """422 for a patch whose result is no object of the kind."""
    message = f"Invalid value: {orjson.dumps(shown).decode()}: {detail}"
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]
    return Invalid(f' "" is invalid: patch: {message}', details={"causes": causes})


class Patcher:
    """The patch verb over one backend."""

    def __init__(self, backend: Backend, writer: Writer) -> None:
        self._b = backend
        self._writer = writer
        self._applier = Applier(backend)

    async def patch(self, call: Call) -> tuple[Obj, bool]:
        """Patch and return the stored object, and whether it was created. Raises the ApiError of a refusal."""
        if call.content_type == PatchType.APPLY:
            return await self._apply(call)
        if call.content_type == PatchType.STRATEGIC and call.resource.custom is not None:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
            )
        body = self._read(call)

        def transform(current: Obj) -> Obj:
            new = self.apply_to(call, current, body)
            try:
                decoded = self._b.codec.decode(call.resource, new, call.validation, None, call.warnings.append)
            except UndecodableError as e:
                shown = (
                    strategic.go_text(body) if call.content_type == PatchType.STRATEGIC else orjson.dumps(new).decode()
                )
                raise invalid_patch(shown, e.detail) from e
            self._b.fields.updated(call.resource, current, decoded, call.manager, call.subresource)
            return decoded

        return await self._writer.change(call, transform), False

    def _read(self, call: Call) -> Any:
        if call.content_type not in (PatchType.JSON, PatchType.MERGE, PatchType.STRATEGIC):
            raise UnsupportedMediaType("415: Unsupported Media Type", details={})
        try:
            body = orjson.loads(call.request.body or b"")
        except orjson.JSONDecodeError as e:
            raise InvalidRequest("invalid JSON patch") from e
        if call.content_type == PatchType.STRATEGIC and not isinstance(body, dict):
            raise InvalidRequest("json: cannot unmarshal array into Go value of type map[string]interface {}")
        if call.content_type == PatchType.MERGE and not isinstance(body, dict):
            raise InvalidRequest(
                "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
            )
        return body

    def apply_to(self, call: Call, current: Obj, body: Any) -> Obj:
        """A fresh object: the current one after the patch in `body`. Raises InvalidRequest and Invalid."""
        document = orjson.loads(orjson.dumps(current))
        if call.content_type == PatchType.JSON:
            return json_patched(document, body)
        if call.content_type == PatchType.MERGE:
            return patch.merge(document, body)
        kind = self._b.codec.type_of(call.resource)
        return strategic.merge(document, body, self._b.codec.types, kind)

    async def _apply(self, call: Call) -> tuple[Obj, bool]:
        if not call.params.get("fieldManager"):
            raise ApiError(
                'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
                code=422,
                reason="Invalid",
                details={
                    "group": "meta.k8s.io",
                    "kind": "PatchOptions",
                    "causes": [
                        {
                            "reason": "FieldValueRequired",
                            "message": "Required value: is required for apply patch",
                            "field": "fieldManager",
                        }
                    ],
                },
            )
        config = read_body(call.request.body, call.content_type, call.resource.kind)
        if not isinstance(config, dict):
            raise bad_request("error decoding YAML: the body must be an object")
        existed = self._b.find(call.resource, call.namespace, call.name) is not None
        missing = None if call.subresource else (lambda: self._applier.created(call, config))
        obj = await self._writer.change(
            call, lambda current: self._applier.applied(call, current, config), missing=missing
        )
        return obj, not existed
