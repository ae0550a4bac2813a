"""Recorded answers of a real API server: requests in order, and how answers are made comparable."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from lwskit.runtime.client.transport import HttpRequest

FOLDER = Path(__file__).parent / "answers"
NAMESPACE = "NAMESPACE"
_CHANCE = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "lastTransitionTime")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GENERATED = re.compile(r"\b(B-)[a-z0-9]{5}\b")


def load(name: str) -> dict[str, Any]:
    """A recording: `about`, `setup` (objects that must be there) and `steps`."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def request(step: dict[str, Any], namespace: str) -> HttpRequest:
    """The request of a step, in that namespace."""
    path, _, query = step["path"].replace(NAMESPACE, namespace).partition("?")
    body = step.get("body")
    raw = None
    if body is not None:
        raw = (body if isinstance(body, str) else json.dumps(body)).replace(NAMESPACE, namespace).encode()
    headers = {"content-type": step["type"], "user-agent": "kubectl/v1", "accept": "application/json"}
    return HttpRequest(step["method"], path, tuple(parse_qsl(query, keep_blank_values=True)), headers, raw)


def normal(answer: bytes, namespace: str, drop: list[str]) -> Any:
    """An answer without what chance decides: identities, versions, times, addresses."""
    try:
        return _normal(json.loads(answer.decode().replace(namespace, NAMESPACE)), set(drop))
    except json.JSONDecodeError:
        return {"text": answer.decode()}


def _normal(value: Any, drop: set[str]) -> Any:
    if isinstance(value, dict):
        out = {}
        for name, item in value.items():
            if name in drop:
                continue
            if (name in _CHANCE and isinstance(item, str)) or (
                name in ("clusterIP", "clusterIPs", "nodePort") and item not in ("None", ["None"])
            ):
                item = "*"
            out[name] = _normal(item, drop)
        if "managedFields" in out:
            # Their order is that of time, to the second.
            out["managedFields"].sort(key=lambda e: json.dumps(e, sort_keys=True))
        return out
    if isinstance(value, list):
        return [_normal(item, drop) for item in value]
    if isinstance(value, str):
        return _GENERATED.sub(r"\1*", _UUID.sub("UID", value))
    return value
