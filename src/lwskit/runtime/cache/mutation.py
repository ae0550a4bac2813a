"""A switch for tests: notices that somebody changed an object that the cache shares with everybody."""

from __future__ import annotations

from typing import Any

import orjson

from lwskit.runtime.cache.store import Store
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.objects import Key, Obj, key_of

PERIOD = 1.0


class CachedObjectChanged(LwskitError):
    """A caller changed an object of the cache. Everybody else sees that change, and no watch will ever undo it."""


class MutationDetector:
    """Compares what a store holds with copies of its own.

    It costs as much memory as the store and is meant for tests. Specification: 70 §2.12.
    """

    def __init__(self, kind: str, store: Store) -> None:
        self._kind = kind
        self._store = store
        self._copies: dict[Key, tuple[Obj, bytes]] = {}

    def stored(self, obj: Obj) -> None:
        """Remember how an object looks as it goes into the store."""
        self._copies[key_of(obj)] = obj, _bytes(obj)

    def check(self) -> None:
        """Compare now. Raises CachedObjectChanged, with the path of the first field that differs."""
        for key, (obj, before) in [*self._copies.items()]:
            if self._store.get(key) is not obj:
                del self._copies[key]
            elif _bytes(obj) != before:
                path = _difference(orjson.loads(before), obj) or "metadata"
                text = f'the cached {self._kind} "{key}" was changed at {path} by somebody who had read it'
                raise CachedObjectChanged(f"{text}; copy what you change")

    async def run(self, clock: Clock) -> None:
        """Compare every second until cancelled. Raises CachedObjectChanged."""
        while True:
            await clock.sleep(PERIOD)
            self.check()


def _bytes(obj: Obj) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)


def _difference(before: Any, after: Any, path: str = "") -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                return _difference(before.get(name), after.get(name), f"{path}.{name}" if path else name)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                return _difference(old, new, f"{path}[{i}]")
    return path
