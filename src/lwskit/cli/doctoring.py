"""What the doctor looks at: a saved dump, or the objects of a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from lwskit.backends import registry
from lwskit.cli import everything, observed
from lwskit.doctor.check import Report, examine
from lwskit.doctor.serving import needed
from lwskit.doctor.ward import KINDS, ward_of
from lwskit.groups import spec
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import RealClock
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj, controller_of, is_of


def from_dump(path: str, namespace: str | None) -> Report:
    """The report on a saved dump, of one namespace or of all in it. Raises ConfigurationError."""
    objects = observed.read_dump(path)
    now = observed.time_of(objects) or RealClock().now()
    if namespace is not None:
        objects = [o for o in objects if o["metadata"].get("namespace") in (None, namespace)]
    if not any(is_of(o, kind) for o in objects for kind in KINDS):
        kinds = ", ".join(sorted({o["kind"] for o in objects})) or "nothing"
        where = f" in namespace {namespace!r}" if namespace is not None else ""
        raise ConfigurationError(f"{path} has nothing that the doctor looks at{where}, only {kinds}")
    missing, unread = _missing(objects, path)
    return examine(ward_of(objects, now, missing, observed.blind_in(objects)), registry.find(), unread)


def _missing(objects: Sequence[Obj], path: str) -> tuple[frozenset[Kind], tuple[str, ...]]:
    """Kinds of which a dump has none, though it should: they may be gone, or were not saved; and that in sentences."""
    there = {kind for kind in KINDS for o in objects if is_of(o, kind)}
    owners: dict[Kind, Obj] = {}
    for obj in objects:
        reference = controller_of(obj)
        kind = next((k for k in KINDS if reference is not None and is_of(reference, k)), None)
        if kind is not None and kind not in there:
            owners.setdefault(kind, obj)
    told = [
        f"{path} has no {kind.kind}, though {o['kind']} {o['metadata']['name']} in it belongs to one"
        for kind, o in owners.items()
    ]
    missing: set[Kind] = set()
    for lws in (o for o in objects if is_of(o, LEADER_WORKER_SET) and spec.replicas(o)):
        missing |= needed(lws, registry.find()) - there
    if missing:
        kinds = ", no ".join(sorted(kind.kind for kind in missing))
        told.append(f"{path} has no {kinds}: why a set does not serve cannot be told")
    return frozenset(missing | owners.keys()), tuple(told)


async def from_cluster(
    namespace: str | None, kubeconfig: str | None, context: str | None, again: float, found: list[Report]
) -> None:
    """Add the report on a cluster to `found`, of a namespace or of all. Raises ConfigurationError, ApiError and
    ConnectionFailed. When cancelled, the connection is closed.
    """
    async with observed.connected(kubeconfig, context) as client:
        found.append(await on_cluster(client, namespace, again))


async def on_cluster(client: Client, namespace: str | None, again: float) -> Report:
    """The report on a cluster. What may pass by itself is in it if it is still there `again` seconds later.

    Raises ConfigurationError where the cluster does not know LeaderWorkerSets, ApiError and ConnectionFailed. When
    cancelled, nothing more is read.
    """
    first = await _look(client, namespace)
    if not again or not any(finding.passes for finding in first.findings):
        return first
    await client.clock.sleep(again)
    return first.lasting(await _look(client, namespace))


async def _look(client: Client, namespace: str | None) -> Report:
    found = await everything.read(client, namespace)
    ward = ward_of(found.objects, client.clock.now(), found.unread, found.blind)
    return examine(ward, registry.find(), found.told)
