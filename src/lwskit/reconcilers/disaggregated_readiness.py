"""What is ready of the children of DisaggregatedSets, from what the controllers of LeaderWorkerSets watch anyway.

Specification: 50 §7.5, §7.6. What it means is decided in `lwskit.disaggregated.readiness`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import readiness, sight
from lwskit.disaggregated.model import Child, Readiness
from lwskit.disaggregated.readiness import Seen
from lwskit.groups import ownership, spec
from lwskit.groups.identity import is_leader
from lwskit.reconcilers.disaggregated_partitions import Partitions
from lwskit.reconcilers.watches import BY_GROUP, BY_SET, Watches
from lwskit.runtime.clock import Clock
from lwskit.runtime.objects import Key, Obj, generation_of, is_deleting, key_of, labels_of, uid_of

LEAVING = "disaggregated-leaving"
"""The index of pods of children that are being deleted, by child."""
WITHOUT_NODE = "disaggregated-without-node"
"""The index of pods of children that the scheduler has found no node for, by child."""


class Observer:
    """Says what is ready of children, without a request and without a walk over their pods.

    It remembers since when a child has not been observed as it was asked for last. Make it before the cache runs.
    """

    def __init__(self, watches: Watches, clock: Clock) -> None:
        self._watches = watches
        self._clock = clock
        self.partitions = Partitions(watches)
        """The groups of children that are divided among sub-roles."""
        self._waiting: dict[str, tuple[int, float]] = {}
        watches.pods.add_index(LEAVING, _leaving_values)
        watches.pods.add_index(WITHOUT_NODE, _without_node_values)
        watches.sets.add_view(_Forgetting(self._waiting))

    def of(self, lws: Obj) -> Readiness:
        """What is ready of one child."""
        child = Child.of(lws)
        seen = self._seen(child)
        return readiness.of(child, seen, waited=self._waited(child, seen))

    def all_of(self, children: Iterable[Obj]) -> Mapping[str, Readiness]:
        """What is ready of each of these children by UID, found out when it is asked for.

        It speaks of the moment at which it is asked: to be used before the next await.
        """
        return _Lazy(self, children)

    def _waited(self, child: Child, seen: Seen) -> float:
        """Seconds that the child has been as it is now without its leader workload having caught up."""
        if readiness.is_current(child, seen):
            self._waiting.pop(child.uid, None)
            return 0.0
        now = self._clock.monotonic()
        generation = generation_of(child.obj)
        known = self._waiting.get(child.uid)
        if known is None or known[0] != generation:
            known = self._waiting[child.uid] = (generation, now)
        return now - known[1]

    # What is seen -------------------------------------------------------------------------------------------------

    def _seen(self, child: Child) -> Seen:
        watches, key = self._watches, key_of(child.obj)
        backend = watches.backends.leaders_of(child.obj)
        workload = sight.workload_of(child.obj, watches.workloads[backend.kind].store.get(key))
        if workload is None:
            # Leaders without a workload are taken over by the next one, or about to go.
            return Seen(is_whole=watches.healthy and not self._has_leaders(key))
        is_hashed = spec.is_hashed(child.obj)
        is_known = is_hashed or watches.knows(child.obj)
        return sight.seen(
            child,
            backend.observe(workload),
            watches.pool.state_of(key) if is_hashed else watches.index.state_of(child.uid),
            ordinals=backend.ordinals(workload),
            is_whole=watches.healthy and is_known,
            leaving=watches.pods.store.by_index(LEAVING, key.name, key.namespace),
            waiting=readiness.unschedulable(self._without_node(key), self._clock.now()),
            leaders_of=lambda group: self._leaders(key, group),
            partition=self.partitions.of(child.obj),
        )

    def _has_leaders(self, key: Key) -> bool:
        pods = self._watches.pods.store.by_index(BY_SET, key.name, key.namespace)
        return any(is_leader(pod) and not is_deleting(pod) for pod in pods)

    def _without_node(self, key: Key) -> Sequence[Obj]:
        return self._watches.pods.store.by_index(WITHOUT_NODE, key.name, key.namespace)

    def _leaders(self, key: Key, group: str) -> list[Obj]:
        pods = self._watches.pods.store.by_index(BY_GROUP, f"{key.name}/{group}", key.namespace)
        return [pod for pod in pods if is_leader(pod)]


class _Forgetting:
    """Drops what is remembered of children that are gone."""

    def __init__(self, remembered: dict[str, tuple[int, float]]) -> None:
        self._remembered = remembered

    def apply(self, old: Obj | None, new: Obj | None) -> None:
        """Take in one change."""
        if old is not None and (new is None or uid_of(new) != uid_of(old)):
            self._remembered.pop(uid_of(old), None)

    def replace(self, objects: Iterable[Obj]) -> None:
        """Take in that these are all LeaderWorkerSets there are."""
        there = {uid_of(obj) for obj in objects}
        for uid in [u for u in self._remembered if u not in there]:
            del self._remembered[uid]


class _Lazy(Mapping[str, Readiness]):
    """What is ready of children, each found out once."""

    def __init__(self, observer: Observer, children: Iterable[Obj]) -> None:
        self._observer = observer
        self._children = {uid_of(child): child for child in children}
        self._found: dict[str, Readiness] = {}

    def __getitem__(self, uid: str) -> Readiness:
        found = self._found.get(uid)
        if found is None:
            found = self._found[uid] = self._observer.of(self._children[uid])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._children)

    def __len__(self) -> int:
        return len(self._children)


def _leaving_values(pod: Obj) -> Sequence[str]:
    return (ownership.set_name(pod),) if _is_of_child(pod) and is_deleting(pod) else ()


def _without_node_values(pod: Obj) -> Sequence[str]:
    return (ownership.set_name(pod),) if _is_of_child(pod) and readiness.waits_for_node(pod) else ()


def _is_of_child(pod: Obj) -> bool:
    return names.NAME_LABEL in labels_of(pod)
