"""The patch verb: picks the kind of patch, applies it to the object or a subresource of it, and stores the result."""

from __future__ import annotations

from typing import Any

import orjson

from lwskit.embedded import patch, schema, strategic
from lwskit.embedded.apply import Applier
from lwskit.embedded.backend import Backend
from lwskit.embedded.call import Call
from lwskit.embedded.codec import UndecodableError, read_body
from lwskit.embedded.failures import bad_request
from lwskit.embedded.writes import CREATED_BY_UPDATE, Writer
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.errors import Invalid, InvalidRequest
from lwskit.runtime.objects import Obj

_NO_OBJECT = "json: cannot unmarshal {} into Go value of type map[string]interface {{}}"


def json_patched(document: Any, body: Any, *, loose: bool = False) -> Any:
    """The document, which is changed, after a JSON patch; `loose` is read without looking for mistakes.

    Raises InvalidRequest and Invalid.
    """
    try:
        return patch.json_patch(document, body)
    except patch.PatchError as e:
        if e.malformed:
            if loose:
                text = str(e).replace("handlers.jsonPatchOp", "jsonpatch.Operation")
                raise InvalidRequest(text.replace("[]jsonpatch.Operation", "jsonpatch.Patch")) from e
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
        body = self._read(call)
        return await self._writer.change(call, lambda current: self._patched(call, current, body)), False

    def transformed(self, call: Call, current: Obj) -> Obj:
        """What a patch of any type makes of an object that is not stored as it is. Raises the ApiError of a refusal."""
        if call.content_type == PatchType.APPLY:
            return self._applier.applied(call, current, self._read_config(call))
        return self._patched(call, current, self._read(call))

    def _patched(self, call: Call, current: Obj, body: Any) -> Obj:
        new = self.apply_to(call, current, body)
        try:
            decoded = self._b.codec.decode(
                call.resource, new, call.validation, None, call.warnings.append, patched=call.name
            )
        except UndecodableError as e:
            if call.content_type == PatchType.STRATEGIC:
                raise invalid_patch(strategic.go_text(body), e.restored) from e
            raise invalid_patch(orjson.dumps(new).decode(), e.detail) from e
        self._b.fields.updated(call.resource, current, decoded, call.manager, call.subresource)
        return decoded

    def _read(self, call: Call) -> Any:
        try:
            body = orjson.loads(call.request.body or b"")
        except orjson.JSONDecodeError as e:
            raise InvalidRequest("invalid JSON patch") from e
        if call.content_type == PatchType.STRATEGIC and not isinstance(body, dict):
            raise InvalidRequest(_NO_OBJECT.format(patch.json_kind(body)))
        if call.content_type == PatchType.MERGE and not isinstance(body, dict):
            raise InvalidRequest(f"error decoding patch: {_NO_OBJECT.format(patch.json_kind(body))}")
        return body

    def apply_to(self, call: Call, current: Obj, body: Any) -> Obj:
        """A fresh object: the current one after the patch in `body`. Raises InvalidRequest and Invalid."""
        document = orjson.loads(orjson.dumps(current))
        if call.content_type == PatchType.JSON:
            return json_patched(document, body, loose=call.validation == "Ignore")
        if call.content_type == PatchType.MERGE:
            return patch.merge(document, body)
        kind = self._b.codec.type_of(call.resource)
        # What such a patch says of the kind is not looked at.
        named = {"apiVersion": call.resource.api_version, "kind": call.resource.kind}
        return strategic.merge(document, body, self._b.codec.types, kind) | named

    async def _apply(self, call: Call) -> tuple[Obj, bool]:
        config = self._read_config(call)
        existed = self._b.find(call.resource, call.namespace, call.name) is not None
        creates = call.subresource == "" or call.resource.storage in CREATED_BY_UPDATE
        missing = (lambda: self._applier.created(call, config)) if creates else None
        obj = await self._writer.change(
            call, lambda current: self._applier.applied(call, current, config), missing=missing
        )
        return obj, not existed

    def _read_config(self, call: Call) -> Obj:
        config = read_body(call.request.body, call.content_type, call.resource.kind)
        config = {} if config is None else config
        if not isinstance(config, dict):
            text = _NO_OBJECT.format(patch.json_kind(config))
            raise bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {text}")
        schema.whole_numbers(config)
        return config
