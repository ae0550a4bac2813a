"""OpenAPI v3 documents, one for each group and version, for `kubectl explain`, `apply` and validation; v2 in brief."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from lwskit.embedded.backend import Backend
from lwskit.embedded.openapi_schemas import Schemas, gvk
from lwskit.embedded.resources import Resource
from lwskit.runtime.client.transport import HttpRequest, HttpResponse

_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_VERBS = {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}


class OpenApi:
    """Makes documents when they are first asked for, and again after custom resources changed."""

    def __init__(self, backend: Backend) -> None:
        self._b = backend
        self._revision = -1
        self._documents: dict[str, bytes] = {}

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """The answer to a path under `/openapi/`, None for one that is not there."""
        path = request.path.rstrip("/")
        if path == "/openapi/v2":
            return _json(self._second())
        if not path.startswith("/openapi/v3"):
            return None
        if self._revision != self._b.registry.revision:
            self._documents.clear()
            self._revision = self._b.registry.revision
        place = path.removeprefix("/openapi/v3").strip("/")
        if not place:
            return _json(orjson.dumps({"paths": {p: self._entry(p) for p in self._places()}}))
        if place not in self._places():
            return None
        return _json(self._document(place))

    def _places(self) -> list[str]:
        found = {f"apis/{r.group}/{r.version}" if r.group else f"api/{r.version}" for r in self._b.registry}
        return sorted(found)

    def _entry(self, place: str) -> dict[str, str]:
        digest = hashlib.sha256(self._document(place)).hexdigest().upper()
        return {"serverRelativeURL": f"/openapi/v3/{place}?hash={digest}"}

    def _document(self, place: str) -> bytes:
        found = self._documents.get(place)
        if found is None:
            found = self._documents[place] = orjson.dumps(self._build(place))
        return found

    def _build(self, place: str) -> dict[str, Any]:
        parts = place.split("/")
        group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
        schemas = Schemas(self._b.codec.types)
        paths: dict[str, Any] = {}
        for resource in self._b.registry:
            if (resource.group, resource.version) == (group, version):
                name = schemas.resource(resource, self._b.codec.type_of(resource))
                paths |= _paths(f"/{place}", resource, name)
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "v1.37.2"},
            "paths": paths,
            "components": {"schemas": schemas.components},
        }

    def _second(self) -> bytes:
        """A version 2 document without paths: it exists, but what clients need is in version 3."""
        body = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1.37.2"}, "paths": {}, "definitions": {}}
        return orjson.dumps(body)


def _paths(base: str, resource: Resource, schema: str) -> dict[str, Any]:
    """The operations on a collection, on one object and on its subresources."""
    collection = (
        f"{base}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{base}/{resource.plural}"
    )
    found: dict[str, Any] = {collection: {}}
    if "list" in resource.verbs:
        found[collection]["get"] = _operation("list", resource, schema)
    if "create" in resource.verbs:
        found[collection]["post"] = _operation("post", resource, schema)
    if not resource.stored:
        return found
    one = f"{collection}/{{name}}"
    found[one] = {_VERBS[v]: _operation(_VERBS[v], resource, schema) for v in resource.verbs if v in _VERBS}
    if resource.namespaced and "list" in resource.verbs:
        found[f"{base}/{resource.plural}"] = {"get": _operation("list", resource, schema)}
    return found


def _operation(action: str, resource: Resource, schema: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    operation: dict[str, Any] = {
        "tags": [f"{resource.group.partition('.')[0] or 'core'}_{resource.version}"],
        "operationId": f"{action}{resource.version.capitalize()}{resource.kind}",
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk(resource),
    }
    if action in ("post", "put", "patch"):
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            for name in _WRITE_PARAMETERS
        ]
        operation["requestBody"] = {"content": content, "required": True}
    return operation


def _json(body: bytes) -> HttpResponse:
    return HttpResponse(200, body, {"content-type": "application/json", "vary": "Accept"})
