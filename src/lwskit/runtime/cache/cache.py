"""The informers of one program: made on first use, one per kind and selection, run and stopped together."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.cache.settings import RESYNC, CacheSettings, Scope, scope_for, scopes_of
from lwskit.runtime.cache.store import IndexFunction, Store, field_index
from lwskit.runtime.cache.transform import Transform, strip_managed_fields
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError, LwskitError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj
from lwskit.runtime.tasks import TaskOwner

WatchErrorHandler: TypeAlias = Callable[[Kind, str, LwskitError], None]
"""Told of each round of list and watch that failed: the kind, the namespace (empty for all), and why."""

_Selection: TypeAlias = tuple[Kind, tuple[tuple[str, str, str], ...]]


class SyncTimeout(LwskitError):
    """An informer did not bring its first list in the time that was given."""


class Cache:
    """All informers of a program, shared by its controllers.

    `keep_manager` is the field manager whose Apply entries of managedFields stay in stored objects. `streaming` asks
    for streaming lists. `resync` is the period in seconds after which handlers that want it get everything again.
    `settings` say what is kept of which kind and how. `idle` is the silence in seconds after which a watch is opened
    anew; without it that is 5 s more than the five to ten minutes that a watch is asked to last. `on_watch_error` is
    told of failed rounds, which are logged anyway. `detect_mutations`, for tests, ends the run when somebody has
    changed a stored object. Specification: 70 §2.9, §2.11.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        rng: random.Random,
        *,
        keep_manager: str | None = None,
        streaming: bool = True,
        resync: float | None = None,
        settings: CacheSettings | None = None,
        idle: float | None = None,
        on_watch_error: WatchErrorHandler | None = None,
        detect_mutations: bool = False,
    ) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._streaming = streaming
        self._settings = settings or CacheSettings()
        self._resync = RESYNC if resync is None else resync
        self._idle = idle
        self._on_watch_error = on_watch_error
        self._detect_mutations = detect_mutations
        self._default_transform = strip_managed_fields(keep_manager)
        self._informers: dict[_Selection, Informer] = {}
        self._tasks: dict[Informer, asyncio.Task[None]] = {}
        self._owner: TaskOwner | None = None
        self._started = asyncio.Event()
        for kind in self._settings.kinds:
            self._scopes(kind)

    def informer(
        self,
        kind: Kind,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        transform: Transform | None = None,
    ) -> Informer:
        """The informer of a kind, namespace and selectors; made on the first call, and started if the cache runs.

        What is not given is as the settings say. Raises ConfigurationError for a namespace on a cluster-scoped kind or
        one in which the kind is not kept, and InvalidRequest for a bad selector.
        """
        scopes = self._scopes(kind, namespace, label_selector, field_selector)
        selection = (kind, tuple(scope.selection for scope in scopes))
        found = self._informers.get(selection)
        if found is None:
            tell = self._on_watch_error

            def failed(scope: Scope, error: LwskitError) -> None:
                if tell is not None:
                    tell(kind, scope.namespace, error)

            found = self._informers[selection] = Informer(
                kind,
                self._client,
                self._clock,
                self._rng,
                transform=transform or self._default_transform,
                streaming=self._streaming,
                idle=self._idle,
                on_watch_error=failed,
                detect_mutations=self._detect_mutations,
                scopes=[replace(scope, transform=None) for scope in scopes] if transform else scopes,
            )
            if self._owner is not None:
                self._start(self._owner, found)
        return found

    def _scopes(
        self,
        kind: Kind,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> tuple[Scope, ...]:
        if namespace and not kind.namespaced:
            raise ConfigurationError(f"{kind.kind} is cluster-scoped; it cannot be cached for namespace {namespace!r}")
        scopes = scopes_of(self._settings, kind, self._resync)
        if namespace:
            scopes = (scope_for(scopes, kind, namespace),)
        if label_selector is not None:
            scopes = tuple(replace(scope, label_selector=label_selector) for scope in scopes)
        if field_selector is not None:
            scopes = tuple(scope.with_field_selector(field_selector) for scope in scopes)
        return scopes

    async def synced_informer(
        self, kind: Kind, namespace: str | None = None, *, timeout: float | None = None
    ) -> Informer:
        """The informer of a kind once it has its first list; before the cache runs, at once.

        `timeout` is in seconds. Raises SyncTimeout, and what `informer` raises. Cancelling it only ends the wait.
        """
        found = self.informer(kind, namespace)
        if self._owner is not None:
            await self.wait_for(found, timeout)
        return found

    async def wait_for(self, informer: Informer, timeout: float | None = None) -> None:
        """Wait for an informer's first list, at most `timeout` seconds. Raises SyncTimeout.

        Cancelling it only ends the wait.
        """
        try:
            async with asyncio.timeout(timeout):
                await informer.wait_synced()
        except TimeoutError:
            raise SyncTimeout(f"failed waiting for {informer.kind.qualified} Informer to sync") from informer.last_error

    def informers(self, kind: Kind | None = None) -> list[Informer]:
        """The informers that exist, all or those of one kind."""
        return [i for i in self._informers.values() if kind is None or i.kind == kind]

    def find(self, kind: Kind) -> Informer | None:
        """The informer of a kind as the settings say, or its only one; None when it has none.

        Raises ConfigurationError when it has several that are all selected otherwise.
        """
        found = self._informers.get((kind, tuple(scope.selection for scope in self._scopes(kind))))
        if found is not None:
            return found
        several = self.informers(kind)
        if len(several) > 1:
            raise ConfigurationError(f"{kind.qualified} has {len(several)} informers; take the store of one of them")
        return several[0] if several else None

    def store(self, kind: Kind) -> Store:
        """The store of a kind: of its informer as the settings say, or of its only one.

        Raises ConfigurationError when the kind has no informer, or several that are all selected otherwise.
        """
        found = self.find(kind)
        if found is None:
            raise ConfigurationError(f"{kind.qualified} is not cached; ask the cache for its informer before reading")
        return found.store

    def add_field_index(self, kind: Kind, field: str, function: IndexFunction) -> None:
        """Let field selectors of a Reader use a field. Raises ConfigurationError for one that is indexed already."""
        self.informer(kind).add_index(field_index(field), function)

    async def remove(self, kind: Kind | Informer) -> None:
        """Stop the informer of a kind, or the one given, and forget it with its store; without one nothing is done.

        Whoever still holds it is told nothing more; a later read makes a new one. When cancelled it is removed
        nevertheless, but may still be ending.
        """
        found = self.find(kind) if isinstance(kind, Kind) else kind
        for selection in [s for s, informer in self._informers.items() if informer is found]:
            task = self._tasks.pop(self._informers.pop(selection), None)
            if task is not None:
                task.cancel()
                await asyncio.wait({task})

    def ingest(self, kind: Kind, obj: Obj) -> None:
        """Hand the server's answer to a write of our own to the informers of its kind."""
        for informer in self.informers(kind):
            informer.ingest(obj)

    def forget(self, kind: Kind, key: Key, uid: str) -> None:
        """Tell the informers of a kind that a deletion of our own has removed an object."""
        for informer in self.informers(kind):
            informer.forget(key, uid)

    @property
    def healthy(self) -> bool:
        """Whether every informer's watch is believed to work."""
        return all(informer.healthy for informer in self._informers.values())

    async def wait_synced(self) -> None:
        """Wait until the cache runs and every informer known now has handed out its first list.

        Cancelling it only ends the wait.
        """
        informers = [*self._informers.values()]
        await self._started.wait()
        for informer in informers:
            await informer.wait_synced()

    @property
    def running(self) -> bool:
        """Whether `run` is under way."""
        return self._owner is not None

    async def run(self) -> None:
        """Run all informers, also those asked for later, until cancelled.

        Raises ConfigurationError when it runs already, CachedObjectChanged where mutations are detected.
        """
        if self._owner is not None:
            raise ConfigurationError("this cache runs already")
        try:
            async with TaskOwner("cache") as owner:
                self._owner = owner
                self._started.set()
                for informer in [*self._informers.values()]:
                    self._start(owner, informer)
                # Stay even without informers: those asked for later are started here.
                owner.start(_for_ever(), "stays open")
        finally:
            self._owner = None
            self._tasks.clear()
            self._started.clear()

    def _start(self, owner: TaskOwner, informer: Informer) -> None:
        where = f" in {informer.namespace}" if informer.namespace else ""
        self._tasks[informer] = owner.start(informer.run(), f"informer {informer.kind.qualified}{where}")


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()
