"""A server without controllers and a client of it, for the tests of this folder."""

from __future__ import annotations

import random
from typing import Any

import orjson

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.store import Store
from lwskit.embedded.transport import InProcessTransport
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.kinds import Kind

WIDGET = Kind("example.com", "v1", "Widget", "widgets")


def server(**store: int) -> ApiServer:
    """A fresh server."""
    return ApiServer(Store(**store), rng=random.Random(1))


def client(of: ApiServer, manager: str | None = "tester") -> Client:
    """A client in process."""
    return Client(InProcessTransport(of), field_manager=manager)


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    """A pod in the default namespace."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "app:1"}], **spec},
    }


def config_map(name: str = "a", labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    """A config map in the default namespace."""
    meta: dict[str, Any] = {"name": name, "namespace": "default"}
    if labels:
        meta["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def widget_crd(**version: Any) -> dict[str, Any]:
    """A CRD with a status, a scale and a default."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["color"],
                "properties": {
                    "replicas": {"type": "integer", "default": 1, "minimum": 0},
                    "color": {"type": "string", "enum": ["red", "blue"]},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            },
            "status": {
                "type": "object",
                "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
            },
        },
    }
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}, "scale": scale},
                    **version,
                }
            ],
        },
    }


def widget(name: str = "w", **spec: Any) -> dict[str, Any]:
    """A widget in the default namespace."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"color": "red", **spec},
    }


async def ask(of: ApiServer, path: str, accept: str = "application/json", method: str = "GET", **body: Any) -> Any:
    """The decoded answer to any request; the path may have a query."""
    place, _, query = path.partition("?")
    pairs = tuple((k, v) for k, _, v in (p.partition("=") for p in query.split("&") if p))
    raw = orjson.dumps(body) if body else None
    headers = {"accept": accept, "content-type": "application/json"}
    return orjson.loads((await of.handle(HttpRequest(method, place, pairs, headers, raw))).body)
