"""What a cluster looked like when a test failed: pytest prints it with the failure."""

from __future__ import annotations

from collections.abc import Iterator

from lwskit.runtime.errors import ApiError
from lwskit.runtime.kinds import CONTROLLER_REVISION, EVENT, POD, SERVICE, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, is_deleting
from lwskit.testing.arguments import kinds_of
from lwskit.testing.cluster import TestCluster

SHOWN = (STATEFUL_SET, POD, SERVICE, CONTROLLER_REVISION)
_LEFT_OUT = ("/events", "/pods", "/services")
EVENTS = 30
REQUESTS = 25


async def describe(cluster: TestCluster, *kinds: Kind) -> str:
    """One line for each object of the namespace, the last events, and what the programs under test asked for.

    `kinds` come before the others: those of the test's CRDs and a few usual ones, and on the embedded cluster all that
    have objects. Kinds that the cluster does not serve are left out. Cancelling it only ends the
    reading.
    """
    lines = [f"cluster: {cluster.mode}, namespace {cluster.namespace}, at {cluster.clock.now().isoformat()}"]
    for kind in dict.fromkeys((*kinds, *kinds_of(cluster.crds), *SHOWN, *_others(cluster))):
        try:
            found = await cluster.list(kind)
        except ApiError as error:
            lines.append(f"{kind.plural}: {error}")
            continue
        lines += [f"  {kind.kind} {text}" for text in map(_line, found)]
    events = sorted(await cluster.list(EVENT), key=_age)[-EVENTS:]
    lines += [f"  {_age(e)} {e['regarding'].get('kind')}/{e['regarding'].get('name')}: {_told(e)}" for e in events]
    for interceptor in cluster.interceptors:
        agent = next((r.user_agent for r in interceptor.requests), "") or "a client"
        lines.append(f"last requests of {agent}, of {len(interceptor.requests)}:")
        lines += [f"  {r.at:.2f} {r.verb} {r.request.path}: {r.status}" for r in interceptor.requests[-REQUESTS:]]
    return "\n".join(lines)


def _others(cluster: TestCluster) -> Iterator[Kind]:
    """The further kinds of which the embedded server holds something in the namespace, but for events."""
    if cluster.server is None:
        return
    backend = cluster.server.backend
    for resource in backend.registry:
        wanted = resource.namespaced and resource.stored and resource.storage not in _LEFT_OUT
        if wanted and backend.store.list(resource.storage, f"{cluster.namespace}/"):
            yield resource.as_kind()


def _line(obj: Obj) -> str:
    return " ".join([obj["metadata"]["name"], obj["metadata"]["uid"][:8], *_facts(obj)])


def _facts(obj: Obj) -> Iterator[str]:
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    if is_deleting(obj):
        yield "deleting"
    for finalizer in meta.get("finalizers") or ():
        yield f"finalizer={finalizer}"
    for owner in meta.get("ownerReferences") or ():
        yield f"owner={owner['kind']}/{owner['name']}/{owner['uid'][:8]}"
    for name, value in (("replicas", spec.get("replicas")), *status.items()):
        if isinstance(value, str | int):
            yield f"{name}={value}"
    for condition in status.get("conditions") or ():
        yield f"{condition['type']}={condition['status']}"


def _age(event: Obj) -> str:
    return event.get("eventTime") or event.get("deprecatedLastTimestamp") or event["metadata"]["creationTimestamp"]


def _told(event: Obj) -> str:
    return f"{event.get('type')} {event.get('reason')} {event.get('note')}"
