"""What all parts of the server share: the store, the registry, types, time, randomness, admission, field managers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from lwskit.embedded.admission import Admission
from lwskit.embedded.codec import Codec
from lwskit.embedded.managedfields import FieldManager
from lwskit.embedded.resources import Registry, Resource
from lwskit.embedded.store import Entry, Store, key
from lwskit.runtime.clock import Clock, rfc3339

NAMESPACES = "/namespaces"


@dataclass(slots=True)
class Backend:
    """The shared state of one API server."""

    store: Store
    registry: Registry
    codec: Codec
    clock: Clock
    rng: random.Random
    admission: Admission
    fields: FieldManager
    tokens: dict[str, str] = field(default_factory=dict)
    """The bearer tokens that the server knows, and whose they are."""

    def now(self) -> str:
        """The time as objects carry it."""
        return rfc3339(self.clock.now())

    def find(self, resource: Resource, namespace: str, name: str) -> Entry | None:
        """The stored state of one object."""
        return self.store.get(resource.storage, key(namespace if resource.namespaced else "", name))

    def namespace(self, name: str) -> Entry | None:
        """The stored state of a namespace."""
        return self.store.get(NAMESPACES, name)
