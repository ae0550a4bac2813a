"""What is not about objects: discovery, version, health, OpenAPI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from lwskit.embedded import negotiation
from lwskit.embedded.backend import Backend
from lwskit.embedded.openapi import OpenApi
from lwskit.embedded.resources import Resource
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.objects import Obj

VERSION = {
    "major": "1",
    "minor": "37",
    "emulationMajor": "1",
    "emulationMinor": "37",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "36",
    "gitVersion": "v1.37.2",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.26",
    "compiler": "gc",
    "platform": "linux/amd64",
}
"""What `/version` answers: the release whose behaviour the server follows."""

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_HEALTH = ("/healthz", "/readyz", "/livez")


class Discovery:
    """Answers for every path that is not a resource's."""

    def __init__(self, backend: Backend) -> None:
        self._b = backend
        self._openapi = OpenApi(backend)

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """The answer, or None when the path is a resource's."""
        path = request.path.rstrip("/") or "/"
        if request.method not in ("GET", "HEAD"):
            return None
        header = request.headers.get("accept", "")
        if path == "/version":
            negotiation.routed(header, negotiation.JSON)
            return _json(VERSION)
        if path.startswith(_HEALTH):
            return HttpResponse(200, b"ok", {"content-type": "text/plain; charset=utf-8"})
        if path.startswith("/openapi/"):
            return self._openapi.answer(request)
        parts = path.split("/")[1:]
        if path == "/":
            return _json({"paths": self._paths()})
        if path in ("/api", "/apis") and _wants_aggregated(header):
            return self._aggregated(core=path == "/api")
        if parts[0] in ("api", "apis") and len(parts) <= (2 if parts[0] == "api" else 3):
            if parts[0] == "api" or len(parts) == 3:
                negotiation.routed(header, *negotiation.OBJECTS)
            negotiation.output(header, objects=False)
        if path in ("/api", "/apis"):
            return _json(self._api_versions() if path == "/api" else self._groups())
        if parts[0] == "api" and len(parts) == 2:
            return self._resources("", parts[1])
        if parts[0] == "apis" and len(parts) == 2:
            return self._group(parts[1])
        if parts[0] == "apis" and len(parts) == 3:
            return self._resources(parts[1], parts[2])
        return None

    def _by_group(self) -> dict[str, dict[str, list[Resource]]]:
        found: dict[str, dict[str, list[Resource]]] = {}
        for resource in self._b.registry:
            found.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
        return {g: _by_preference(v) for g, v in found.items()}

    def _paths(self) -> list[str]:
        paths = ["/api", "/api/v1", "/apis", *_HEALTH, "/openapi/v2", "/openapi/v3", "/version"]
        for group, versions in self._by_group().items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{v}" for v in versions)]
        return sorted(paths)

    def _api_versions(self) -> Obj:
        address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address}

    def _groups(self) -> Obj:
        groups = [_group_entry(g, v) for g, v in self._by_group().items() if g]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _group(self, group: str) -> HttpResponse | None:
        versions = self._by_group().get(group)
        if not group or versions is None:
            return None
        return _json({"kind": "APIGroup", "apiVersion": "v1", **_group_entry(group, versions)})

    def _resources(self, group: str, version: str) -> HttpResponse | None:
        found = self._by_group().get(group, {}).get(version)
        if found is None:
            return None
        rows = []
        for r in sorted(found, key=lambda r: r.plural):
            row: Obj = {"name": r.plural, "singularName": r.singular, "namespaced": r.namespaced, "kind": r.kind}
            row["verbs"] = list(r.verbs)
            if r.short_names:
                row["shortNames"] = list(r.short_names)
            if r.categories:
                row["categories"] = list(r.categories)
            rows.append(row)
            for s in r.subresources.values():
                sub: Obj = {"name": f"{r.plural}/{s.name}", "singularName": "", "namespaced": r.namespaced}
                if s.group or s.version:
                    sub |= {"group": s.group, "version": s.version}
                rows.append(sub | {"kind": s.kind, "verbs": list(s.verbs)})
        group_version = f"{group}/{version}" if group else version
        return _json({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": rows})

    def _aggregated(self, *, core: bool) -> HttpResponse:
        items = []
        for group, versions in self._by_group().items():
            if (group == "") is core:
                meta = {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None}
                entries = [
                    {"version": v, "resources": [_aggregated_entry(r) for r in rs], "freshness": "Current"}
                    for v, rs in versions.items()
                ]
                items.append({"metadata": meta, "versions": entries})
        body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
        return HttpResponse(200, orjson.dumps(body), {"content-type": _AGGREGATED, "vary": "Accept"})


def _by_preference(versions: Mapping[str, list[Resource]]) -> dict[str, list[Resource]]:
    """Versions in order of preference: stable before beta before alpha, newer first (CRD versioning rules)."""

    def rank(version: str) -> tuple[int, int, int]:
        head, _, tail = version.removeprefix("v").partition("beta")
        if tail or "beta" in version:
            return (1, -int(head or 0), -int(tail or 0))
        head, _, tail = version.removeprefix("v").partition("alpha")
        if tail or "alpha" in version:
            return (2, -int(head or 0), -int(tail or 0))
        return (0, -int(head) if head.isdecimal() else 0, 0)

    return {v: versions[v] for v in sorted(versions, key=rank)}


def _group_entry(group: str, versions: Iterable[str]) -> Obj:
    entries = [{"groupVersion": f"{group}/{v}", "version": v} for v in versions]
    return {"name": group, "versions": entries, "preferredVersion": entries[0]}


def _aggregated_entry(resource: Resource) -> Obj:
    entry: Obj = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": s.name,
                "responseKind": {
                    "group": s.group or ("" if s.version else resource.group),
                    "version": s.version or resource.version,
                    "kind": s.kind,
                },
                "verbs": list(s.verbs),
            }
            for s in resource.subresources.values()
        ]
    return entry


def _wants_aggregated(header: str) -> bool:
    for media in negotiation.accepted(header):
        if media.params.get("as") == "APIGroupDiscoveryList" and media.params.get("v") == "v2":
            return media.matches(negotiation.JSON)
        if media.matches(negotiation.JSON) and "as" not in media.params:
            return False
    return False


def _json(body: Any) -> HttpResponse:
    return HttpResponse(200, orjson.dumps(body), {"content-type": "application/json"})
