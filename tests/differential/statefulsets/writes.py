"""Requests as data, to be sent to any cluster: what people, nodes and other controllers do to one StatefulSet."""

from __future__ import annotations

from typing import Any

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.clock import Clock, rfc3339
from lwskit.runtime.errors import ApiError
from lwskit.runtime.kinds import CONFIG_MAP, CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj

SET = "web"
"""The name of the StatefulSet."""
NOW = "@now"
"""Stands for the time at which the request is sent."""
BOSS = "@boss"
"""Stands for the UID of the ConfigMap `boss`, which is there from the beginning."""
LONG_AGO = "2020-01-01T00:00:00Z"

Write = dict[str, Any]

KINDS = {k.plural: k for k in (STATEFUL_SET, POD, CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM)}


def create(kind: str, body: Obj, sub: str | None = None) -> Write:
    """Create an object, or a subresource of one."""
    return {"verb": "create", "kind": kind, "name": body["metadata"]["name"], "body": body, "sub": sub}


def patch(kind: str, name: str, body: Obj, sub: str | None = None) -> Write:
    """A merge patch."""
    return {"verb": "patch", "kind": kind, "name": name, "body": body, "sub": sub}


def delete(kind: str, name: str, **options: Any) -> Write:
    """Delete an object; `propagation` and `grace_seconds` are options."""
    return {"verb": "delete", "kind": kind, "name": name, "options": options}


def nudge(number: int) -> Write:
    """Touch the StatefulSet, so that its controller looks now and not when its back-off is over."""
    return patch("statefulsets", SET, {"metadata": {"labels": {"nudge": str(number)}}})


def pod_status(name: str, phase: str, ready: bool, since: str = LONG_AGO) -> Write:
    """What a kubelet says of a pod."""
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since}
    return patch("pods", name, {"status": {"phase": phase, "conditions": [condition]}}, "status")


async def send(client: Client, namespace: str, write: Write, clock: Clock, boss: str) -> tuple[str, Obj | None]:
    """Send one request: `ok` or the reason of the refusal, and the object that was answered."""
    kind, name = KINDS[write["kind"]], write["name"]
    body = _filled(write.get("body"), {NOW: rfc3339(clock.now()), BOSS: boss})
    try:
        match write["verb"]:
            case "create":
                made = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
                return "ok", await client.create(kind, made, subresource=write["sub"])
            case "patch":
                options = {"subresource": write["sub"], "patch_type": PatchType.MERGE}
                return "ok", await client.patch(kind, name, body, namespace, **options)
            case _:
                return "ok", await client.delete(kind, name, namespace, **write["options"])
    except ApiError as error:
        return error.reason, None


async def make_boss(client: Client, namespace: str) -> str:
    """Make the ConfigMap that claims may belong to; its UID."""
    body = {"metadata": {"name": "boss", "namespace": namespace}}
    return (await client.create(CONFIG_MAP, body))["metadata"]["uid"]


def _filled(value: Any, found: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {k: _filled(v, found) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(v, found) for v in value]
    return found.get(value, value) if isinstance(value, str) else value


def told(write: Write) -> str:
    """A request in one line."""
    if write["verb"] == "delete":
        options = " ".join(f"{k}={v}" for k, v in write["options"].items())
        return f"delete {write['kind']}/{write['name']} {options}".rstrip()
    where = f"{write['kind']}/{write['name']}" + (f"/{write['sub']}" if write["sub"] else "")
    return f"{write['verb']} {where} {write['body']}"
