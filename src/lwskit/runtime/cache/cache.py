"""The informers of one program: made on first use, one per kind and selection, run and stopped together."""

from __future__ import annotations

import asyncio
import random

from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.cache.store import Store
from lwskit.runtime.cache.transform import Transform, strip_managed_fields
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj
from lwskit.runtime.tasks import TaskOwner

_Selection = tuple[Kind, str, str, str]


class Cache:
    """All informers of a program, shared by its controllers.

    `keep_manager` is the field manager whose Apply entries of managedFields stay in stored objects. `streaming` asks
    for streaming lists. `resync` is the period in seconds after which handlers that want it get everything again.
    Specification: 70 §2.9, §2.11.
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
    ) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._streaming = streaming
        self._resync = resync
        self._default_transform = strip_managed_fields(keep_manager)
        self._informers: dict[_Selection, Informer] = {}
        self._owner: TaskOwner | None = None

    def informer(
        self,
        kind: Kind,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        transform: Transform | None = None,
    ) -> Informer:
        """The informer of a kind, namespace and selectors; made on the first call, and started if the cache runs.

        Raises ConfigurationError for a namespace on a cluster-scoped kind, and InvalidRequest for a bad selector.
        """
        if namespace and not kind.namespaced:
            raise ConfigurationError(f"{kind.kind} is cluster-scoped; it cannot be cached for namespace {namespace!r}")
        selection = (kind, namespace or "", label_selector or "", field_selector or "")
        found = self._informers.get(selection)
        if found is None:
            found = self._informers[selection] = Informer(
                kind,
                self._client,
                self._clock,
                self._rng,
                namespace,
                label_selector,
                field_selector,
                transform or self._default_transform,
                streaming=self._streaming,
                resync=self._resync,
            )
            if self._owner is not None:
                self._start(self._owner, found)
        return found

    def informers(self, kind: Kind | None = None) -> list[Informer]:
        """The informers that exist, all or those of one kind."""
        return [i for i in self._informers.values() if kind is None or i.kind == kind]

    def find(self, kind: Kind) -> Informer | None:
        """The unrestricted informer of a kind, or its only one; None when it has none.

        Raises ConfigurationError when it has several that are all restricted.
        """
        found = self._informers.get((kind, "", "", ""))
        if found is not None:
            return found
        several = self.informers(kind)
        if len(several) > 1:
            raise ConfigurationError(f"{kind.qualified} has {len(several)} informers; take the store of one of them")
        return several[0] if several else None

    def store(self, kind: Kind) -> Store:
        """The store of a kind: of its unrestricted informer, or of its only one.

        Raises ConfigurationError when the kind has no informer, or several that are all restricted.
        """
        found = self.find(kind)
        if found is None:
            raise ConfigurationError(f"{kind.qualified} is not cached; ask the cache for its informer before reading")
        return found.store

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
        """Wait until every informer known now has handed out its first list. Cancelling it only ends the wait."""
        for informer in [*self._informers.values()]:
            await informer.wait_synced()

    @property
    def running(self) -> bool:
        """Whether `run` is under way."""
        return self._owner is not None

    async def run(self) -> None:
        """Run all informers, also those asked for later, until cancelled.

        Raises ConfigurationError when it runs already.
        """
        if self._owner is not None:
            raise ConfigurationError("this cache runs already")
        try:
            async with TaskOwner("cache") as owner:
                self._owner = owner
                for informer in [*self._informers.values()]:
                    self._start(owner, informer)
                # Stay even without informers: those asked for later are started here.
                owner.start(_for_ever(), "stays open")
        finally:
            self._owner = None

    @staticmethod
    def _start(owner: TaskOwner, informer: Informer) -> None:
        where = f" in {informer.namespace}" if informer.namespace else ""
        owner.start(informer.run(), f"informer {informer.kind.qualified}{where}")


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()
