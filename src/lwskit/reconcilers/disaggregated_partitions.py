"""The groups of children that are divided among sub-roles, as the shared cache has them (specification: 50 §13)."""

from __future__ import annotations

from collections.abc import Iterable

from lwskit.disaggregated import sight
from lwskit.disaggregated.subroles.groups import Partition
from lwskit.groups import ownership
from lwskit.reconcilers.watches import BY_SET, Watches
from lwskit.runtime.objects import Key, Obj, key_of, uid_of


class Partitions:
    """Reads the groups of divided children; each anew only after something of it has changed.

    Make it before the cache runs.
    """

    def __init__(self, watches: Watches) -> None:
        self._watches = watches
        self._known: dict[Key, tuple[str, Partition]] = {}
        # After the group index, which was there before: what it says is asked for below.
        for informer in watches.feeding:
            informer.add_view(self)

    def apply(self, old: Obj | None, new: Obj | None) -> None:
        """Take in one change of a set, a workload or a pod."""
        for obj in (old, new):
            if obj is not None:
                namespace, name = key_of(obj)
                self._known.pop(Key(namespace, ownership.set_name(obj) or name), None)

    def replace(self, objects: Iterable[Obj]) -> None:
        """Take in that a watch began anew."""
        self._known.clear()

    def of(self, lws: Obj) -> Partition | None:
        """The groups of one child; None for one that is not divided."""
        if not sight.is_divided(lws):
            return None
        known = self._known.get(key_of(lws))
        if known is not None and known[0] == uid_of(lws):
            return known[1]
        found = self._read(lws)
        self._known[key_of(lws)] = uid_of(lws), found
        return found

    def all_of(self, children: Iterable[Obj]) -> dict[str, Partition]:
        """The groups of those of these children that are divided, by UID."""
        found = ((uid_of(child), self.of(child)) for child in children)
        return {uid: partition for uid, partition in found if partition is not None}

    def _read(self, lws: Obj) -> Partition:
        key, watches = key_of(lws), self._watches
        backend = watches.backends.leaders_of(lws)
        workload = sight.workload_of(lws, watches.workloads[backend.kind].store.get(key))
        pods = watches.pods.store.by_index(BY_SET, key.name, key.namespace)
        uid, index = uid_of(lws), watches.index
        return sight.partition_of(
            lws,
            backend,
            workload,
            pods,
            lambda: index.state_of(uid),
            lambda leader: index.set_of(uid_of(leader)) == uid,
        )
