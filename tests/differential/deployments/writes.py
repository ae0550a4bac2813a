"""Requests as data, about objects whose names every cluster gives by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.clock import Clock, parse_time, rfc3339
from lwskit.runtime.errors import ApiError
from lwskit.runtime.kinds import DEPLOYMENT, POD, REPLICA_SET
from lwskit.runtime.objects import Obj
from tests.differential.deployments.view import NAME, View
from tests.differential.side_by_side.game import Write

NOW = "@now"
"""Stands for the time at which the request is sent."""
LONG_AGO = "2020-01-01T00:00:00Z"
AGO = "@ago "
"""Before a power of two: stands for 1.5 times as many seconds before the sequence began."""
HASH_OF = "@hash "
"""Before the symbol of a ReplicaSet: stands for the hash in its labels."""
TRIES, WAIT = 10, 0.1
"""How often an object is looked for, and the seconds in between."""
GONE = "there is none"
"""The answer for an object that does not exist."""

_KINDS = {k.plural: k for k in (DEPLOYMENT, REPLICA_SET, POD)}


def create(kind: str, name: str, body: Obj, sub: str | None = None) -> Write:
    """Create an object, or a subresource of one."""
    return {"verb": "create", "kind": kind, "name": name, "body": body, "sub": sub}


def patch(kind: str, name: str, body: Obj, sub: str | None = None) -> Write:
    """A merge patch; `name` is the Deployment's name, the symbol of a ReplicaSet or the class of a pod."""
    return {"verb": "patch", "kind": kind, "name": name, "body": body, "sub": sub}


def delete(kind: str, name: str, **options: Any) -> Write:
    """Delete an object; `propagation` and `grace_seconds` are options."""
    return {"verb": "delete", "kind": kind, "name": name, "options": options}


def spec(**fields: Any) -> Write:
    """Change the Deployment."""
    return patch("deployments", NAME, {"spec": fields})


async def send(
    client: Client, namespace: str, write: Write, clock: Clock, began: str, place: View
) -> tuple[str, Obj | None]:
    """Send one request: `ok` or the reason of the refusal, and the object that was answered."""
    kind = _KINDS[write["kind"]]
    name = _name(write, place)
    for _ in range(TRIES):
        if name is None:
            # What the request before has brought about may not have been told yet.
            await clock.sleep(WAIT)
            name = _name(write, place)
    if name is None:
        return GONE, None
    body = _filled(write.get("body"), rfc3339(clock.now()), began, place)
    try:
        match write["verb"]:
            case "create":
                meta = {**body.get("metadata", {}), "name": name, "namespace": namespace}
                return "ok", await client.create(kind, {**body, "metadata": meta}, subresource=write["sub"])
            case "patch":
                options = {"subresource": write["sub"], "patch_type": PatchType.MERGE}
                return "ok", await client.patch(kind, name, body, namespace, **options)
            case _:
                return "ok", await client.delete(kind, name, namespace, **write["options"])
    except ApiError as error:
        return error.reason, None


def _name(write: Write, place: View) -> str | None:
    """What the object is called on this cluster."""
    if write["kind"] == "deployments" or (write["verb"] == "create" and not write["sub"]):
        return write["name"]
    found = place.set_of(write["name"]) if write["kind"] == "replicasets" else place.pod_of(write["name"])
    return found["metadata"]["name"] if found is not None else None


def _filled(value: Any, now: str, began: str, place: View) -> Any:
    if isinstance(value, dict):
        return {k: _filled(v, now, began, place) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(v, now, began, place) for v in value]
    if not isinstance(value, str):
        return value
    if value == NOW:
        return now
    if value.startswith(AGO):
        return rfc3339(parse_time(began) - timedelta(seconds=1.5 * 2 ** int(value.removeprefix(AGO))))
    return place.hash_of(value.removeprefix(HASH_OF)) if value.startswith(HASH_OF) else value


def told(write: Write) -> str:
    """A request in one line."""
    where = f"{write['kind']}/{write['name'].partition(' {')[0]}"
    if write["verb"] == "delete":
        return f"delete {where} {' '.join(f'{k}={v}' for k, v in write['options'].items())}".rstrip()
    return f"{write['verb']} {where}{'/' + write['sub'] if write['sub'] else ''} {write['body']}"
