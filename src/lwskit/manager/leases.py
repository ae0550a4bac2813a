"""Looking at the Lease of managers without taking part in the election."""

from __future__ import annotations

from datetime import timedelta

from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock, parse_time
from lwskit.runtime.errors import ConfigurationError, NotFound
from lwskit.runtime.kinds import LEASE
from lwskit.runtime.objects import Obj

LOOK_EVERY = 0.5
LONG_SILENT = timedelta(minutes=10)
"""A Lease renewed longer ago than this is taken for abandoned, whatever two machines' clocks differ by."""


async def refuse_while_renewed(client: Client, namespace: str, name: str, clock: Clock) -> None:
    """Return when nobody renews the Lease. Raises ConfigurationError naming the manager that does.

    Clocks of two machines are not compared: what counts is whether the record changes while we look, for as long as
    its own duration says (specification: 70 §7). Cancelling it ends the look.
    """
    first = await _record(client, namespace, name)
    if not first or not first.get("holderIdentity"):
        return
    if clock.now() - parse_time(first.get("renewTime", "1970-01-01T00:00:00Z")) > LONG_SILENT:
        return
    deadline = clock.monotonic() + first.get("leaseDurationSeconds", 15)
    while clock.monotonic() < deadline:
        await clock.sleep(LOOK_EVERY)
        record = await _record(client, namespace, name)
        if not record or not record.get("holderIdentity"):
            return
        if record != first:
            raise ConfigurationError(
                f"another manager, {record['holderIdentity']}, holds the Lease {namespace}/{name} and renews it; "
                "stop it first, or run against another cluster"
            )


async def _record(client: Client, namespace: str, name: str) -> Obj | None:
    try:
        return (await client.get(LEASE, name, namespace)).get("spec") or {}
    except NotFound:
        return None
