"""Looking at the Lease of managers without taking part in the election."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock, parse_time
from lwskit.runtime.errors import ConfigurationError, Conflict, NotFound
from lwskit.runtime.kinds import LEASE
from lwskit.runtime.objects import Obj

LOOK_EVERY = 0.5
LONG_SILENT = timedelta(minutes=10)
"""A Lease renewed longer ago than this is taken for abandoned, whatever two machines' clocks differ by."""


async def retire(
    client: Client, namespace: str, name: str, clock: Clock, waiting: Callable[[str, float], None]
) -> None:
    """Return when nobody renews the Lease, having removed one whose holder is dead, so that nobody waits for it again.

    `waiting` is told who holds it and for how many seconds it will be looked at. Raises ConfigurationError naming the
    manager that renews it. Clocks of two machines are not compared: what counts is whether the record changes while we
    look, for as long as its own duration says (specification: 70 §7). Cancelling it ends the look.
    """
    first = await _lease(client, namespace, name)
    if first is None or not _holder(first):
        return
    spec = first["spec"]
    if clock.now() - parse_time(spec.get("renewTime") or "1970-01-01T00:00:00Z") < LONG_SILENT:
        seconds = float(spec.get("leaseDurationSeconds", 15))
        waiting(_holder(first), seconds)
        deadline = clock.monotonic() + seconds
        while clock.monotonic() < deadline:
            await clock.sleep(LOOK_EVERY)
            lease = await _lease(client, namespace, name)
            if lease is None or not _holder(lease):
                return
            if lease["spec"] != spec:
                raise ConfigurationError(
                    f"another manager, {_holder(lease)}, holds the Lease {namespace}/{name} and renews it; "
                    "stop it first, or run against another cluster"
                )
    meta = first["metadata"]
    try:
        await client.delete(LEASE, name, namespace, uid=meta["uid"], resource_version=meta["resourceVersion"])
    except (Conflict, NotFound):
        # Somebody woke up at the last moment, or removed it: the election will tell.
        return


def _holder(lease: Obj) -> str:
    return (lease.get("spec") or {}).get("holderIdentity") or ""


async def _lease(client: Client, namespace: str, name: str) -> Obj | None:
    try:
        return await client.get(LEASE, name, namespace)
    except NotFound:
        return None
