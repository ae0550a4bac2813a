"""What the reconcilers watch, and how an event becomes their work (specification: 20 §2.1, §10.1)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from lwskit.api import names
from lwskit.backends.registry import Backends
from lwskit.groups import budget, counters, gates, identity, ownership, spec
from lwskit.groups.index import GroupIndex
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError
from lwskit.groups.owners import LeaderOwners
from lwskit.groups.pool import GroupPool, facts_of
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.cache.store import Store
from lwskit.runtime.controller.handler import Create, Delete, Event, Update, objects_of
from lwskit.runtime.execute import Fresh
from lwskit.runtime.kinds import CONTROLLER_REVISION, NAMESPACE, POD, SERVICE, Kind
from lwskit.runtime.objects import (
    Key,
    Obj,
    annotations_of,
    controller_of,
    generation_of,
    is_deleting,
    is_of,
    is_true,
    key_of,
    labels_of,
    uid_of,
)
from lwskit.runtime.request import Request

OF_SETS = names.NAME_LABEL
"""The label selector of everything that belongs to any set: the label exists."""
REVISIONS_OF_SETS = f"{OF_SETS},!controller.kubernetes.io/hash"
"""The same for revisions, without those of StatefulSets, which carry a hash and the labels of their pods: there is one
for every group."""
BY_SET = "set"
BY_GROUP = "group"
BY_HOST = "host"
"""The index of leaders in Hash mode, by the name that their workers' workload and their Service have."""
HELD = "held"
"""The index of pods that something else may set free, by set: kept ones, leaders that wait for their recreation or at
their gate, and leaders let in that may still take over a count. All of a namespace are found under OF_ANY_SET."""
OF_ANY_SET = ""


@dataclass(frozen=True, slots=True)
class PodWork:
    """What a request about a pod carries along: its group, and the pod as last seen if it is gone.

    `bereft` is the UID of the leader whose workers or Service have just gone, where that is why the request is made.
    """

    group: tuple[str, str]
    last_seen: Obj | None = None
    bereft: str = ""


class Watches:
    """The informers that both reconcilers share, with their indexes and the group index as a view on them."""

    def __init__(self, cache: Cache, backends: Backends) -> None:
        self.backends = backends
        self.index = GroupIndex(backends.leaders, backends.workers)
        """The groups of sets in Ordinal mode."""
        self.pool = GroupPool()
        """The groups of sets in Hash mode."""
        self.owners = LeaderOwners(backends.leaders.kind)
        self.sets = cache.informer(LEADER_WORKER_SET)
        self.pods = cache.informer(POD, label_selector=OF_SETS)
        # All of them, for one that is in the way of a set's or a group's need not have the label.
        self.services = cache.informer(SERVICE)
        self.namespaces = cache.informer(NAMESPACE)
        self.revisions = cache.informer(CONTROLLER_REVISION, label_selector=REVISIONS_OF_SETS)
        # What makes the pods of a workload that rolls out by itself decides nothing: the workload's status tells all.
        kinds = dict.fromkeys(
            (backends.leaders.kind, backends.workers.kind, *backends.leaders.watches, backends.hashed.kind)
        )
        self.workloads: dict[Kind, Informer] = {k: cache.informer(k, label_selector=OF_SETS) for k in kinds}
        self.pods.add_index(BY_GROUP, _group_values)
        self.pods.add_index(BY_SET, _set_values)
        self.pods.add_index(BY_HOST, _host_values)
        self.pods.add_index(HELD, _held_values)
        self.revisions.add_index(BY_SET, _set_values)
        self.feeding: tuple[Informer, ...] = (self.sets, self.pods, *self.workloads.values())
        """What the group index is fed from."""
        for informer in self.feeding:
            informer.add_view(_Feed(self.index, informer.kind))
        self.pods.add_view(_Feed(self.pool, POD))
        self.pods.add_view(_Feed(self.owners, POD))

    @property
    def healthy(self) -> bool:
        """Whether all watches that the group index is fed from are believed to work."""
        return all(informer.healthy for informer in self.feeding)

    def knows(self, lws: Obj) -> bool:
        """Whether all groups of a set in Ordinal mode are known: there is a leader workload, and the leaders are its.

        Leaders without an owner it is about to take over, and those of the one before it too, whom nobody has told yet
        that this is gone, unless the collector removes them.
        """
        workload = self.index.workload_of(uid_of(lws))
        return workload is not None and not self.owners.has_others(key_of(lws), workload)

    def unclaimed(self, key: Key) -> int:
        """How many leaders of a set in Hash mode are not at their gate any more and may still take over a count."""
        return sum(_is_unclaimed(pod) for pod in self._held(key.namespace, key.name))

    def pods_of_workers(self, event: Event) -> Iterable[Request]:
        """The leaders that workers belong to or keep waiting for their name; in Hash mode a worker too, of those that
        have no owner: the leader may be gone, and somebody has to tell."""
        requests = dict.fromkeys(owner_pod_requests(event))
        for workers in objects_of(event):
            namespace, name = key_of(workers)
            for leader in self._named(namespace, name):
                requests.setdefault(Request(*key_of(leader), POD.kind, payload=PodWork(group_of_pod(leader))))
            if controller_of(workers) is None and _is_of_key(workers) and not isinstance(event, Delete):
                group = self.pods.store.by_index(BY_GROUP, "/".join(group_of_pod(workers)), namespace)
                there = [p for p in group if not identity.is_leader(p) and not is_deleting(p)]
                if there:
                    requests[_live(min(there, key=lambda p: p["metadata"]["name"]))] = None
        return requests

    def workers_concern_leader(self, event: Event) -> bool:
        """Whether an event about workers concerns their leader: they appeared, went or changed hands, or in Hash mode
        became ready or unready all together. The rest of their status concerns the set."""
        if workload_came_or_went(event):
            return True
        if not isinstance(event, Update) or not _is_of_key(event.new):
            return False
        observe = self.backends.workers.observe
        return observe(event.old).ready != observe(event.new).ready

    def freed_by_pod(self, event: Event) -> Iterable[Request]:
        """Held pods that a pod's coming or going may set free: gated leaders of its set, and workers kept for it."""
        if isinstance(event, Update):
            yield from self._next_in_row(event)
            return
        pod = event.obj
        if not isinstance(event, Delete) and not self._makes_room(pod):
            return
        alone = isinstance(event, Delete) and identity.is_leader(pod)
        for held in self._held(pod["metadata"]["namespace"], ownership.set_name(pod)):
            if gates.is_gated(held) or (alone and budget.is_kept(held) and group_of_pod(held) == group_of_pod(pod)):
                yield _live(held)

    def freed_by_workload(self, event: Event) -> Iterable[Request]:
        """The kept leaders of the set that a leader workload belongs to; their workers are let go with them. In Hash
        mode also those at their gate, who wait for the workload's revision."""
        for obj in objects_of(event):
            owner = controller_of(obj)
            if owner is not None and is_of(owner, LEADER_WORKER_SET):
                for pod in self._held(obj["metadata"]["namespace"], owner["name"]):
                    waits = budget.is_kept(pod) or (identity.has_hash_identity(pod) and gates.is_gated(pod))
                    if waits and identity.is_leader(pod):
                        yield _live(pod)

    def sets_of_service(self, event: Event) -> Iterable[Request]:
        """The sets that a Service belongs to by its label, and the one whose name it has."""
        meta = event.obj["metadata"] if not isinstance(event, Update) else event.new["metadata"]
        requests = dict.fromkeys(set_requests(event))
        if self.sets.store.get(Key(meta["namespace"], meta["name"])) is not None:
            requests[Request(meta["namespace"], meta["name"], names.KIND)] = None
        return requests

    def freed_by_service(self, event: Event) -> Iterable[Request]:
        """The leaders whose groups need the name of a Service that is gone: they may have waited for it."""
        if not isinstance(event, Delete):
            return
        namespace, name = key_of(event.obj)
        owner = controller_of(event.obj)
        leader = owner["name"] if owner is not None and is_of(owner, POD) else name
        named = self.pods.store.get(Key(namespace, leader))
        found = (*((named,) if named is not None else ()), *self._named(namespace, name))
        bereft = owner["uid"] if owner is not None else ""
        yield from dict.fromkeys(_live(pod, bereft) for pod in found if identity.is_leader(pod))

    def freed_by_set(self, event: Event) -> Iterable[Request]:
        """The held leaders of a set; its kept workers too if it goes; all pods once restarts can be counted again."""
        lws = event.new if isinstance(event, Update) else event.obj
        goes = isinstance(event, Delete) or is_deleting(lws)
        if isinstance(event, Update) and counters_mended(event.old, event.new):
            namespace, name = key_of(lws)
            yield from (_live(pod) for pod in self.pods.store.by_index(BY_SET, name, namespace))
            return
        for pod in self._held(*key_of(lws)):
            if goes or identity.is_leader(pod):
                yield _live(pod)

    def freed_by_namespace(self, event: Event) -> Iterable[Request]:
        """The held pods of a namespace that is being deleted: its deletion goes on only once its pods are gone."""
        namespace = event.new if isinstance(event, Update) else event.obj
        if is_deleting(namespace):
            yield from (_live(pod) for pod in self._held(namespace["metadata"]["name"], OF_ANY_SET))

    def _makes_room(self, pod: Obj) -> bool:
        """Whether a new leader may let one go that waits at its gate: the youngest wait for the groups that go, and it
        is the youngest now."""
        if not gates.is_gated(pod):
            return False
        if not identity.has_hash_identity(pod):
            return True
        return self.pool.state_of(Key(pod["metadata"]["namespace"], ownership.set_name(pod))).torn_down > 0

    def _next_in_row(self, event: Update) -> Iterable[Request]:
        """The gated leader that may be let in because one leader fewer of what its ReplicaSet made is there to stay:
        no more of them than are wanted are let in."""
        pod = event.new
        if not (identity.is_leader(pod) and identity.has_hash_identity(pod)):
            return
        was, now = facts_of(event.old), facts_of(pod)
        key = Key(pod["metadata"]["namespace"], ownership.set_name(pod))
        lws = self.sets.store.get(key)
        if lws is None or was.gated or not was.alive or not now.leaving or now.exhausted:
            return
        line = self.pool.state_of(key).line(now.revision, now.maker)
        rank = spec.replicas(lws) - line.taken - 1
        uid = line.gated[rank].uid if 0 <= rank < len(line.gated) else ""
        yield from (_live(held) for held in self._held(*key) if uid_of(held) == uid)

    def _held(self, namespace: str, set_name: str) -> Sequence[Obj]:
        return self.pods.store.by_index(HELD, set_name, namespace)

    def _named(self, namespace: str, name: str) -> Sequence[Obj]:
        """The leaders in Hash mode whose groups need that name."""
        return self.pods.store.by_index(BY_HOST, name, namespace)

    def when_recovered(self, tell: Callable[[Request], None]) -> None:
        """Ask for every set once all watches work again: what was held back meanwhile has no event of its own."""

        def changed(healthy: bool) -> None:
            if healthy and self.healthy:
                for lws in self.sets.store:
                    tell(Request(*key_of(lws), names.KIND))

        for informer in self.feeding:
            informer.add_health_handler(changed)


class _Fed(Protocol):
    def apply(self, kind: Kind, old: Obj | None, new: Obj | None) -> None: ...

    def replace(self, kind: Kind, objects: Iterable[Obj]) -> None: ...


class _Feed:
    """Hands one informer's changes to the group index."""

    def __init__(self, index: _Fed, kind: Kind) -> None:
        self.apply = partial(index.apply, kind)
        self.replace = partial(index.replace, kind)


def _group_values(pod: Obj) -> Sequence[str]:
    return ("/".join(group_of_pod(pod)),)


def _held_values(pod: Obj) -> Sequence[str]:
    pending = names.GROUP_RECREATE_PENDING_ANNOTATION in annotations_of(pod)
    held = pending or budget.is_kept(pod) or gates.is_gated(pod) or _is_unclaimed(pod)
    return (ownership.set_name(pod), OF_ANY_SET) if held else ()


def _is_unclaimed(pod: Obj) -> bool:
    leads = identity.is_leader(pod) and identity.has_hash_identity(pod)
    return leads and gates.is_unclaimed(pod) and not is_deleting(pod)


def _host_values(pod: Obj) -> Sequence[str]:
    return (ownership.workers_name(pod),) if identity.is_leader(pod) and identity.has_hash_identity(pod) else ()


def _live(pod: Obj, bereft: str = "") -> Request:
    """The request about a pod that exists; `bereft` as in `PodWork`."""
    meta, work = pod["metadata"], PodWork(group_of_pod(pod), bereft=bereft)
    return Request(meta["namespace"], meta["name"], POD.kind, uid_of(pod), payload=work)


def _set_values(obj: Obj) -> Sequence[str]:
    return (ownership.set_name(obj),)


def read(fresh: Fresh, kind: Kind, key: Key, store: Store | None = None) -> Obj | None:
    """An object as read live in this reconcile, else as the cache has it; without a store only the live one."""
    if (kind, key) in fresh:
        return fresh[kind, key]
    return store.get(key) if store is not None else None


def group_of_pod(obj: Obj) -> tuple[str, str]:
    """Set name and group index, as a pod's or a worker workload's labels tell them."""
    labels = labels_of(obj)
    return labels.get(names.NAME_LABEL, ""), labels.get(names.GROUP_INDEX_LABEL, "")


def set_requests(event: Event) -> Iterable[Request]:
    """The sets that an object belongs to by its label; of an update also the one that it belonged to before."""
    return dict.fromkeys(
        Request(obj["metadata"]["namespace"], ownership.set_name(obj), names.KIND)
        for obj in objects_of(event)
        if ownership.set_name(obj)
    )


def leader_changed(event: Event) -> bool:
    """Whether an event about a pod can change what is decided about its set: leaders only, and what counts of them."""
    if not any(identity.is_leader(obj) for obj in objects_of(event)):
        return False
    return not isinstance(event, Update) or _leader_facts(event.old) != _leader_facts(event.new)


def _leader_facts(pod: Obj) -> tuple[object, ...]:
    status = pod.get("status") or {}
    return (
        status.get("phase"),
        is_true(pod, "Ready"),
        is_deleting(pod),
        labels_of(pod),
        controller_of(pod),
        annotations_of(pod).get(names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION),
    )


def is_gone(event: Event) -> bool:
    """Whether an event tells of a deletion."""
    return isinstance(event, Delete)


def pod_requests(event: Event) -> Iterable[Request]:
    """The pod itself. A deletion is work of its own, with the pod as it was, and never folded into other work."""
    pod = event.new if isinstance(event, Update) else event.obj
    meta = pod["metadata"]
    work = PodWork(group_of_pod(pod), pod if isinstance(event, Delete) else None)
    return (Request(meta["namespace"], meta["name"], POD.kind, uid_of(pod), isinstance(event, Delete), work),)


def owner_pod_requests(event: Event) -> Iterable[Request]:
    """The leader pods that control a workload, now and before; by name, since a successor waits for the name too.

    A workload without an owner keeps the leader of its own name waiting.
    """
    for obj in objects_of(event):
        owner = controller_of(obj)
        if owner is None and names.GROUP_INDEX_LABEL in labels_of(obj):
            name = obj["metadata"]["name"]
        elif owner is None:
            continue
        elif is_of(owner, POD):
            name = owner["name"]
        else:
            continue
        bereft = owner["uid"] if owner is not None and isinstance(event, Delete) else ""
        yield Request(obj["metadata"]["namespace"], name, POD.kind, payload=PodWork(group_of_pod(obj), bereft=bereft))


def workload_came_or_went(event: Event) -> bool:
    """Whether a workload of workers appeared, went or changed hands; its status concerns the set, not the pod."""
    if isinstance(event, Create | Delete):
        return True
    return isinstance(event, Update) and controller_of(event.old) != controller_of(event.new)


def _is_of_key(workers: Obj) -> bool:
    """Whether a workload of workers is of a group that is known by a key."""
    labels = labels_of(workers)
    return labels.get(names.GROUP_INDEX_LABEL) == labels.get(names.GROUP_KEY_LABEL, "")


def workload_asks_otherwise(event: Event) -> bool:
    """Whether a leader workload came, went, begins to go, or asks for other leaders than before; its status concerns
    no kept pod."""
    if not isinstance(event, Update):
        return True
    old, new = event.old, event.new
    return (
        uid_of(old) != uid_of(new)
        or is_deleting(old) != is_deleting(new)
        or old.get("spec") != new.get("spec")
        or labels_of(old) != labels_of(new)
    )


def set_asks_otherwise(event: Event) -> bool:
    """Whether a set came, went, begins to go, or has another spec."""
    if not isinstance(event, Update):
        return True
    old, new = event.old, event.new
    return (
        uid_of(old) != uid_of(new)
        or generation_of(old) != generation_of(new)
        or is_deleting(old) != is_deleting(new)
        or counters_mended(old, new)
    )


def counters_mended(old: Obj, new: Obj) -> bool:
    """Whether restart counters that could not be read have changed, for which restarts may have waited."""
    key = names.GROUP_RESTART_COUNTS_ANNOTATION
    if annotations_of(old).get(key) == annotations_of(new).get(key):
        return False
    try:
        counters.read(old)
    except DecisionError:
        return True
    return False


def group_lane(request: Request) -> Hashable:
    """Requests about pods of one group are worked on one after another."""
    work: PodWork = request.payload
    return (request.namespace, *work.group)
