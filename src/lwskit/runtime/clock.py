"""Time and randomness of the real world, in one place. Everything else is given a Clock or a random.Random."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import time
import uuid
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where a component gets its time from."""

    def now(self) -> datetime:
        """The date and time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long. Cancelling it ends the wait."""
        ...


class RealClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """The date and time, in UTC."""
        return datetime.now(UTC)

    monotonic = staticmethod(time.monotonic)
    """Seconds that only grow; the clock of asyncio's own loops, without asking for the loop each time."""

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds. Cancelling it ends the wait."""
        await asyncio.sleep(seconds)


def real_random() -> random.Random:
    """A generator seeded by the operating system."""
    return random.Random(os.urandom(16))


def new_secret() -> str:
    """A token of letters and digits that nobody can guess, whatever a run is seeded with: 256 bits of the system's.

    Nothing in it looks like an option to a command that is given it.
    """
    return secrets.token_hex(32)


def random_uuid(rng: random.Random) -> str:
    """A version 4 UUID drawn from `rng`, so that a seeded run repeats itself."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def rfc3339(moment: datetime) -> str:
    """A time as objects carry it: `2026-10-21T10:00:00Z` (Kubernetes API reference: Time)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(moment: datetime) -> str:
    """A time with microseconds, as Leases and events carry it (Kubernetes API reference: MicroTime)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Read either of the two forms. Raises ValueError for anything else."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
