"""What is ready of a DisaggregatedSet's children, as the shared cache tells it (specification: 50 §7.5, §7.6)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.backends.registry import find
from lwskit.disaggregated.model import Ready
from lwskit.disaggregated.readiness import PATIENCE
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.reconcilers.disaggregated_readiness import Observer
from lwskit.reconcilers.watches import Watches
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.listwatch import Replace
from lwskit.runtime.client.client import Client
from lwskit.runtime.kinds import DEPLOYMENT, REPLICA_SET, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj
from lwskit.testing.clock import EPOCH, FakeClock
from lwskit.testing.scripted import Script

OTHER = "other"


@pytest.fixture(autouse=True)
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watches are believed to work, although none is open."""
    monkeypatch.setattr(Watches, "healthy", True)


def child(replicas: int = 2, size: int = 1, *, hashed: bool = False, generation: int = 3, **status: int) -> Obj:
    """A child whose controller has seen what it was asked for."""
    spec: Obj = {"replicas": replicas, "leaderWorkerTemplate": {"size": size}}
    if hashed:
        spec["groupIdentity"] = base.IDENTITY_HASH
    seen = {"observedGeneration": generation, "replicas": replicas, "readyReplicas": replicas, **status}
    meta = {"name": "c", "namespace": "ns", "uid": "c-uid", "generation": generation, "resourceVersion": "1"}
    return {"metadata": {**meta, "labels": {names.NAME_LABEL: "chat"}}, "spec": spec, "status": seen}


def owned(obj: Obj, kind: Kind, name: str, uid: str) -> Obj:
    """The object with that controller."""
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": uid, "controller": True}
    obj["metadata"]["ownerReferences"] = [reference]
    return obj


def labelled(name: str, **labels: str) -> Obj:
    """An object of the child."""
    own = {base.PREFIX + key.replace("_", "-"): value for key, value in labels.items()}
    own |= {base.NAME_LABEL: "c", base.REVISION_LABEL: "r", names.NAME_LABEL: "chat"}
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"{name}-uid", "resourceVersion": "1", "labels": own}}


def workload(replicas: int = 2, **status: int) -> Obj:
    """The leader workload of the child, past what it was asked for."""
    found = owned(labelled("c"), LEADER_WORKER_SET, "c", "c-uid")
    found["metadata"] |= {"uid": "w-uid", "generation": 5}
    found["spec"] = {"replicas": replicas}
    return {**found, "status": {"observedGeneration": 5, "replicas": replicas, "readyReplicas": replicas, **status}}


def pod(name: str, *, ready: bool = True, leaving: bool = False, **labels: str) -> Obj:
    """A pod of the child."""
    found = labelled(name, **labels)
    if leaving:
        found["metadata"]["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    condition = {"type": "Ready", "status": str(ready)}
    return {**found, "spec": {}, "status": {"phase": "Running", "conditions": [condition]}}


def leader(i: int, *, by: str = "w-uid", **fields: Any) -> Obj:
    """The leader of group i in Ordinal mode."""
    return owned(pod(f"c-{i}", worker_index="0", group_index=str(i), **fields), STATEFUL_SET, "c", by)


def hashed_leader(i: int, *, by: str = "rs-uid", **fields: Any) -> Obj:
    """The leader of a group in Hash mode."""
    key = f"{i:08x}"
    found = owned(pod(f"c-rs-{i}", worker_index="0", group_index=key, group_key=key, **fields), REPLICA_SET, "rs", by)
    found["metadata"]["annotations"] = {base.GROUP_IDENTITY_ANNOTATION: base.IDENTITY_HASH}
    return found


def waiting(obj: Obj, seconds: int) -> Obj:
    """The pod as one that has found no node for so many seconds."""
    since = (EPOCH - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": since}
    return {**obj, "status": {"phase": "Pending", "conditions": [told]}}


class World:
    """A cache with a child, and what observes it."""

    def __init__(self, lws: Obj, workload: Obj | None, pods: Sequence[Obj], workers: Sequence[Obj] = ()) -> None:
        self.clock = FakeClock()
        self.watches = Watches(Cache(Client(Script()), self.clock, random.Random(1)), find())
        self.observer = Observer(self.watches, self.clock)
        hashed = lws["spec"].get("groupIdentity") == base.IDENTITY_HASH
        own = [workload] if workload is not None else []
        self.watches.workloads[STATEFUL_SET].handle(Replace([*workers, *([] if hashed else own)], "1"))
        self.watches.workloads[DEPLOYMENT].handle(Replace(own if hashed else [], "1"))
        self.watches.pods.handle(Replace([*pods], "1"))
        self.watches.sets.handle(Replace([lws], "1"))
        self.lws = lws

    @property
    def seen(self) -> Any:
        """What is ready of the child."""
        return self.observer.all_of([self.lws])["c-uid"]


def test_ready_groups_of_a_settled_child() -> None:
    seen = World(child(), workload(), [leader(0), leader(1)]).seen
    assert (seen.ready, seen.known, seen.settled, seen.unschedulable) == (Ready(2, 2), True, True, False)


def test_groups_beyond_the_size_are_seen_and_not_committed() -> None:
    seen = World(child(1), workload(1), [leader(0), leader(1), leader(2, ready=False)]).seen
    assert (seen.ready, seen.settled) == (Ready(2, 1), False)


def test_a_group_with_a_pod_that_is_being_deleted_is_not_committed() -> None:
    """Be it a worker: its group is about to end."""
    sets = [
        owned(labelled(f"c-{i}", worker_index="1"), Kind("", "v1", "Pod", "pods"), f"c-{i}", f"c-{i}-uid")
        for i in (0, 1)
    ]
    for one in sets:
        one |= {"spec": {"replicas": 1}, "status": {"availableReplicas": 1, "replicas": 1}}
    going = pod("c-1-1", leaving=True, worker_index="1", group_index="1")
    pods = [leader(0), leader(1), owned(going, STATEFUL_SET, "c-1", "c-1-uid")]
    seen = World(child(size=2), workload(), pods, sets).seen
    assert (seen.ready, seen.settled) == (Ready(2, 1), False)


@pytest.mark.parametrize(
    ("lws", "leaders"),
    [
        (child(generation=3, observedGeneration=2), workload()),
        (child(), workload(observedGeneration=4)),
        (child(), workload(3)),
    ],
)
def test_a_child_is_waited_for_until_it_has_taken_up_what_it_was_asked(lws: Obj, leaders: Obj) -> None:
    """For a while; then none of its groups is counted on, and the rollout goes on."""
    world = World(lws, leaders, [leader(0), leader(1)])
    assert (world.seen.known, world.seen.ready) == (False, Ready(2, 0))


async def test_patience_ends_and_begins_anew_with_what_is_asked_next() -> None:
    world = World(child(observedGeneration=2), workload(), [leader(0), leader(1)])
    assert not world.seen.known
    await world.clock.advance(PATIENCE - 0.1)
    assert not world.seen.known
    await world.clock.advance(0.2)
    assert world.seen.known
    world.lws = child(generation=4, observedGeneration=2)
    assert not world.seen.known
    world.watches.sets.handle(Replace([], "2"))
    assert world.observer._waiting == {}


def test_leaders_without_their_workload_are_not_known() -> None:
    """They serve, and whether they stay is told by the next workload."""
    assert not World(child(), None, [leader(0)]).seen.known
    assert not World(child(), owned(workload(), LEADER_WORKER_SET, "c", OTHER), [leader(0)]).seen.known
    gone = World(child(), None, [leader(0, leaving=True)]).seen
    assert (gone.known, gone.ready) == (True, Ready())


def test_leaders_that_nobody_owns_are_not_known() -> None:
    orphan = leader(1)
    orphan["metadata"]["ownerReferences"] = []
    assert not World(child(), workload(), [leader(0), orphan]).seen.known


def test_nothing_is_known_while_a_watch_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(child(), workload(), [leader(0), leader(1)])
    monkeypatch.setattr(Watches, "healthy", False)
    assert not world.seen.known


def test_groups_in_hash_mode() -> None:
    pods = [hashed_leader(1), hashed_leader(2), hashed_leader(3, leaving=True), hashed_leader(4, ready=False)]
    seen = World(child(3, hashed=True), workload(3), pods).seen
    assert (seen.ready, seen.known, seen.settled) == (Ready(3, 2), True, False)
    whole = World(child(2, hashed=True), workload(2), pods[:2]).seen
    assert (whole.ready, whole.settled) == (Ready(2, 2), True)


def test_groups_in_hash_mode_that_lose_a_worker_are_not_committed() -> None:
    going = pod("w", leaving=True, worker_index="1", group_index=f"{1:08x}", group_key=f"{1:08x}")
    seen = World(child(2, hashed=True), workload(2), [hashed_leader(1), hashed_leader(2), going]).seen
    assert seen.ready == Ready(2, 1)


def test_a_pod_without_a_node_is_told_after_a_minute() -> None:
    """50 §23 line 39."""
    assert not World(child(), workload(), [waiting(leader(0), 59)]).seen.unschedulable
    assert World(child(), workload(), [waiting(leader(0), 60)]).seen.unschedulable


def test_children_are_looked_at_when_they_are_asked_for() -> None:
    world = World(child(), workload(), [leader(0)])
    found = world.observer.all_of([world.lws])
    assert (len(found), [*found]) == (1, ["c-uid"])
    assert found["c-uid"] is found["c-uid"]
    assert found.get("another") is None
