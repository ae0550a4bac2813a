"""What the reconciler of DisaggregatedSets watches, and how an event becomes its work (specification: 50 §5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import decide, sight
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.disaggregated.model import Snapshot
from lwskit.groups import ownership
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.reconcilers.disaggregated_readiness import Observer
from lwskit.reconcilers.watches import Watches
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.store import Store
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.handler import Delete, Event, objects_of
from lwskit.runtime.execute import Fresh
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import (
    Key,
    Obj,
    controller_of,
    is_of,
    key_of,
    labels_of,
    newer,
    uid_of,
    version_of,
)
from lwskit.runtime.request import Request

BY_DISAGGREGATED_SET = "disaggregated-set"
"""The index of children and scalers by the DisaggregatedSet that their label names."""


class DisaggregatedWatches:
    """The informers of DisaggregatedSets and of what they own. Children and pods are those of the other reconcilers."""

    def __init__(self, cache: Cache, watches: Watches, clock: Clock) -> None:
        self.sets = cache.informer(DISAGGREGATED_SET)
        # All of them, for one that is in the way of a wanted one need not have the label.
        self.scalers = cache.informer(ROLE_SCALER)
        self.children = watches.sets
        self.pods = watches.pods
        self.readiness = Observer(watches, clock)
        for informer in (self.scalers, self.children):
            informer.add_index(BY_DISAGGREGATED_SET, _set_values)

    def snapshot(self, key: Key, now: datetime, live: Live) -> Snapshot:
        """All that a pass is decided on, without a request to the server."""
        ds = live.get(DISAGGREGATED_SET, key, self.sets.store)
        children = self._labelled(LEADER_WORKER_SET, self.children.store, key, live)
        needed = decide.named(ds, [*children.values()])
        self._add(LEADER_WORKER_SET, self.children.store, key, needed.children, live, children)
        scalers = self._labelled(ROLE_SCALER, self.scalers.store, key, live)
        self._add(ROLE_SCALER, self.scalers.store, key, needed.scalers, live, scalers)
        found = tuple(children.values())
        return Snapshot(
            ds=ds,
            children=found,
            scalers=tuple(scalers.values()),
            readiness=self.readiness.all_of(found),
            partitions=self.readiness.partitions.all_of(found),
            now=now,
            looked=live.has(DISAGGREGATED_SET, key),
        )

    def waiting_for_name(self, event: Event) -> Iterable[Request]:
        """The DisaggregatedSets that may have waited for the name of a LeaderWorkerSet that is gone."""
        if not isinstance(event, Delete):
            return
        namespace, name = key_of(event.obj)
        for ds in self.sets.store.list(namespace):
            if name.startswith(ds["metadata"]["name"] + "-"):
                yield Request(namespace, ds["metadata"]["name"], names.KIND)

    def sets_of_pod(self, event: Event) -> Iterable[Request]:
        """The DisaggregatedSet that a pod belongs to, if its child's groups are divided among sub-roles (50 §13)."""
        found: dict[Request, None] = {}
        for pod in objects_of(event):
            namespace, _ = key_of(pod)
            name = labels_of(pod).get(names.NAME_LABEL)
            child = self.children.store.get(Key(namespace, ownership.set_name(pod))) if name else None
            if name and child is not None and sight.is_divided(child):
                found[Request(namespace, name, names.KIND)] = None
        return found

    def cached(self, kind: Kind, key: Key) -> Obj | None:
        """The object with that key as the cache has it; of sets, children and scalers."""
        stores = {i.kind: i.store for i in (self.sets, self.children, self.scalers)}
        return stores[kind].get(key)

    def _labelled(self, kind: Kind, store: Store, key: Key, live: Live) -> dict[str, Obj]:
        """Those with the set's name in their label, by name and in the order of names."""
        names_ = sorted(
            obj["metadata"]["name"] for obj in store.by_index(BY_DISAGGREGATED_SET, key.name, key.namespace)
        )
        found: dict[str, Obj] = {}
        self._add(kind, store, key, names_, live, found)
        return found

    def _add(
        self, kind: Kind, store: Store, key: Key, wanted: Iterable[str], live: Live, found: dict[str, Obj]
    ) -> None:
        for name in wanted:
            obj = live.get(kind, Key(key.namespace, name), store)
            if obj is not None:
                found.setdefault(name, obj)


class Live:
    """What one reconcile has read live, against the cache, which may have caught up meanwhile."""

    def __init__(self) -> None:
        self._found: dict[tuple[Kind, Key], Obj | None] = {}
        self._gone: set[str] = set()

    def take(self, found: Fresh, before: Iterable[Obj | None]) -> None:
        """Take in what was read; `before` are the objects that the cache had of the same keys when it was asked for."""
        self._found |= found
        for (_, obj), cached in zip(found.items(), before, strict=True):
            if obj is None and cached is not None:
                self._gone.add(uid_of(cached))

    def has(self, kind: Kind, key: Key) -> bool:
        """Whether that object was read live, found or not."""
        return (kind, key) in self._found

    def get(self, kind: Kind, key: Key, store: Store) -> Obj | None:
        """The object with that key as it was last seen, in the cache or live."""
        cached = store.get(key)
        if cached is not None and uid_of(cached) in self._gone:
            cached = None
        read = self._found.get((kind, key))
        if read is None or (cached is not None and not newer(version_of(read), version_of(cached))):
            return cached
        return read


def set_of_child(event: Event) -> Iterable[Request]:
    """The DisaggregatedSets that a child or a scaler belongs to, by its label and by its controller."""
    found: dict[Request, None] = {}
    for obj in objects_of(event):
        namespace, _ = key_of(obj)
        owner = controller_of(obj)
        if name := labels_of(obj).get(names.NAME_LABEL):
            found[Request(namespace, name, names.KIND)] = None
        if owner is not None and is_of(owner, DISAGGREGATED_SET):
            found[Request(namespace, owner["name"], names.KIND)] = None
    return found


def _set_values(obj: Obj) -> Sequence[str]:
    name = labels_of(obj).get(names.NAME_LABEL)
    return (name,) if name else ()
