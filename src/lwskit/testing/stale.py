"""Reads of the past: a request for what is there now, turned into one for what was there at a resourceVersion. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import NotFound

LATEST = HttpRequest("GET", "/api/v1/namespaces", (("limit", "1"),), {"accept": "application/json"})
"""A list whose answer tells the present resourceVersion, which all collections share."""

_DROPPED = ("resourceVersion", "resourceVersionMatch", "timeout")


@dataclass(frozen=True, slots=True)
class PastRead:
    """A list of the past that stands for a read: `name` is what was read, empty for a list."""

    request: HttpRequest
    name: str = ""

    def answer(self, response: HttpResponse) -> HttpResponse:
        """The answer to the read, made from the answer to the list."""
        if not self.name or response.status >= 400:
            return response
        listed = orjson.loads(response.body)
        items = listed.get("items") or []
        if not items:
            return self._not_found()
        obj = {"kind": listed["kind"].removesuffix("List"), "apiVersion": listed["apiVersion"], **items[0]}
        return HttpResponse(200, orjson.dumps(obj), response.headers)

    def _not_found(self) -> HttpResponse:
        group, plural = _group(self.request.path), self.request.path.rpartition("/")[2]
        qualified = f"{plural}.{group}" if group else plural
        details = {"name": self.name, "group": group, "kind": plural}
        error = NotFound(f'{qualified} "{self.name}" not found', details={k: v for k, v in details.items() if v})
        return HttpResponse(404, orjson.dumps(error.status), {"content-type": "application/json"})


def version_in(response: HttpResponse) -> str:
    """The resourceVersion in the answer to LATEST. Raises KeyError when it is none."""
    body: Any = orjson.loads(response.body)
    return body["metadata"]["resourceVersion"]


def as_of(request: HttpRequest, version: str) -> PastRead | None:
    """What to send instead of a read of objects, to have it answered as at `version`.

    None for what is no such read: writes, watches, discovery, further pages of a list, and subresources other than
    the status. Source: Kubernetes documentation, "API Concepts", resource versions.
    """
    query = dict(request.query)
    rest = _resource(request.path)
    if request.method != "GET" or not rest or query.get("watch") in ("true", "1") or "continue" in query:
        return None
    if len(rest) > 1 and rest[2:] not in ([], ["status"]):
        return None
    kept = [(name, value) for name, value in request.query if name not in _DROPPED]
    past = [("resourceVersion", version), ("resourceVersionMatch", "Exact")]
    if len(rest) == 1:
        return PastRead(_with(request, request.path, [*kept, *past]))
    name = rest[1]
    end = request.path.rindex(f"/{name}/status") if rest[2:] else request.path.rindex(f"/{name}")
    past.append(("fieldSelector", f"metadata.name={name}"))
    return PastRead(_with(request, request.path[:end], [*kept, *past]), name)


def _with(request: HttpRequest, path: str, query: list[tuple[str, str]]) -> HttpRequest:
    return HttpRequest(request.method, path, tuple(query), request.headers, request.body)


def _resource(path: str) -> list[str]:
    """Resource, name and subresource in a path, as far as it has them."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
    return rest[2:] if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] != "status" else rest


def _group(path: str) -> str:
    parts = path.strip("/").split("/")
    return parts[1] if parts[0] == "apis" else ""
