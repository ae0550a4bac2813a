"""The garbage collector of a process that caches a hundred thousand objects (specification: 70 §15, rule 7).

Collections walk over everything that was made since the last one of their kind, and filling a cache makes millions of
containers. Objects of an API are trees without cycles, so there is next to nothing to find in them. Measured with
100,000 pods: the interpreter's own settings stop the event loop for 1.0 s at worst and triple the time that filling
takes; raised thresholds alone for 1.2 s; with what is done here for 0.01 s.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable
from typing import Any, Protocol

import structlog

from lwskit.runtime.clock import Clock
from lwskit.runtime.runnable import Group

log = structlog.get_logger(__name__)

THRESHOLDS = (20_000, 20, 1000)
"""How many containers more, and how many collections of the younger generation, precede one of each generation."""


class Synced(Protocol):
    """Something that has a first filling, such as a cache."""

    def wait_synced(self) -> Awaitable[None]:
        """Return once it is filled."""
        ...


class GcPolicy:
    """Raises the collector's thresholds, and freezes what survives until the caches are filled.

    What is frozen is not walked over again; it is still freed when its last reference goes, unless it has become part
    of a cycle by then. Once the caches are filled only what is new is collected. This concerns
    the whole process, so only a program should use it, and only once. At the end everything is as before.
    """

    group = Group.EVENTS
    name = "garbage collector"

    def __init__(self, clock: Clock, *caches: Synced, thresholds: tuple[int, int, int] = THRESHOLDS) -> None:
        self._filled = False
        self._clock = clock
        self._caches = [*caches]
        self._thresholds = thresholds

    @property
    def frozen(self) -> int:
        """How many containers are frozen since the caches were filled; 0 before that. Counting stops the event loop.

        A hundred thousand pods take a third of a second.
        """
        return gc.get_freeze_count() if self._filled else 0

    async def run(self) -> None:
        """Apply the policy until cancelled, then restore what was in force before."""
        before = gc.get_threshold()
        gc.set_threshold(*self._thresholds)
        gc.callbacks.append(_freeze_survivors)
        try:
            try:
                for cache in self._caches:
                    await cache.wait_synced()
            finally:
                gc.callbacks.remove(_freeze_survivors)
            began = self._clock.monotonic()
            gc.collect()
            gc.freeze()
            self._filled = True
            log.debug("caches are filled and frozen", pause=self._clock.monotonic() - began)
            await asyncio.get_running_loop().create_future()
        finally:
            self._filled = False
            gc.unfreeze()
            gc.set_threshold(*before)


def _freeze_survivors(phase: str, info: dict[str, Any]) -> None:
    """Called by the collector before and after each collection."""
    if phase == "stop":
        gc.freeze()
