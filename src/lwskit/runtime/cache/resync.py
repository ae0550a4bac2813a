"""Telling handlers again, now and then, of everything that is stored."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from lwskit.runtime.cache.handlers import Audience, Registration
from lwskit.runtime.cache.settings import Scope
from lwskit.runtime.cache.store import Store
from lwskit.runtime.clock import Clock
from lwskit.runtime.objects import Obj, key_of
from lwskit.runtime.tasks import TaskOwner

BATCH = 500


class Resync:
    """The resync of one informer: handlers whose period has passed get an update with the identical object.

    Nothing runs, and nothing is drawn at random, until a handler asks for it. Specification: 70 §2.10.
    """

    def __init__(
        self, store: Store, audience: Audience, clock: Clock, rng: random.Random, scopes: Sequence[Scope]
    ) -> None:
        self._store = store
        self._audience = audience
        self._clock = clock
        self._rng = rng
        self._scopes = scopes
        self._periods: list[float] = []
        self._handlers: list[Registration] = []
        self._check = 0.0

    def add(self, registration: Registration, owner: TaskOwner) -> None:
        """Count for a handler from now on; one that comes later than others does not get more frequent checks."""
        if registration.resync == 0:
            return
        if not self._periods:
            self._periods = [scope.resync * (0.9 + 0.2 * self._rng.random()) for scope in self._scopes]
        wanted = [period for default in self._periods if (period := registration.period(default))]
        if not wanted:
            return
        if self._check == 0.0:
            # Those that are added in the same step count too: the task starts after it.
            owner.start(self._run(), "resync")
        elif self._check > 0 and registration.resync is not None:
            registration.resync = max(registration.resync, self._check)
        self._check = self._check or -1.0
        self._handlers.append(registration)
        for scope, default in enumerate(self._periods):
            registration.begin(scope, self._clock.monotonic(), default)

    def remove(self, registration: Registration) -> None:
        """Forget a handler."""
        if registration in self._handlers:
            self._handlers.remove(registration)

    def stopped(self) -> None:
        """The informer does not run any more; when it runs again, everything is added anew."""
        self._handlers.clear()
        self._check = 0.0

    async def _run(self) -> None:
        periods = [p for r in self._handlers for default in self._periods if (p := r.period(default))]
        self._check = min(periods)
        while True:
            await self._clock.sleep(self._check)
            now = self._clock.monotonic()
            for number, (scope, default) in enumerate(zip(self._scopes, self._periods, strict=True)):
                due = [r for r in [*self._handlers] if r.check(number, now, default)]
                if due:
                    await self._replay(scope, due)

    async def _replay(self, scope: Scope, handlers: Sequence[Registration]) -> None:
        for n, obj in enumerate(self._store.list(), 1):
            if scope.has(key_of(obj).namespace) and self._is_current(obj):
                self._audience.tell_only(handlers, "on_update", obj, obj)
            if n % BATCH == 0:
                await asyncio.sleep(0)

    def _is_current(self, obj: Obj) -> bool:
        return self._store.get(key_of(obj)) is obj
