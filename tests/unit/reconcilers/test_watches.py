"""Which event makes which work (specification: 20 §2.1, §10.1): every function, lanes, predicates, and the wiring."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lwskit.api import names
from lwskit.backends.registry import Backends, find
from lwskit.backends.statefulset import StatefulSetLeaders, StatefulSetWorkers
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.ports import Capability
from lwskit.reconcilers import watches as module
from lwskit.reconcilers.setup import group_controller, set_controller
from lwskit.reconcilers.watches import (
    BY_GROUP,
    BY_SET,
    PodWork,
    Watches,
    group_lane,
    group_of_pod,
    is_gone,
    leader_changed,
    owner_pod_requests,
    pod_requests,
    set_asks_otherwise,
    set_requests,
    workload_asks_otherwise,
    workload_came_or_went,
)
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.listwatch import Applied, Replace
from lwskit.runtime.client.client import Client
from lwskit.runtime.controller.handler import Create, Delete, Event, Generic, Update
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import CONTROLLER_REVISION, DEPLOYMENT, NAMESPACE, NODE, POD, SERVICE, STATEFUL_SET
from lwskit.runtime.objects import Key, Obj
from lwskit.runtime.request import Request
from lwskit.testing.scripted import Script
from lwskit.testing.virtual import VirtualClock


def thing(name: str, labels: Mapping[str, str | None] | None = None, **meta: Any) -> Obj:
    """An object of set `llm`; labels by their short names, and a label of None is left out."""
    marks = {names.PREFIX + k: v for k, v in {"name": "llm", **(labels or {})}.items() if v is not None}
    return {"metadata": {"namespace": "ns", "name": name, "uid": f"uid-{name}", "labels": marks, **meta}}


def leader(name: str = "llm-0", *, ready: bool = False, phase: str = "Pending", **meta: Any) -> Obj:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    pod = thing(name, {"worker-index": "0", "group-index": name.rpartition("-")[2]}, **meta)
    return {**pod, "status": {"phase": phase, "conditions": conditions}}


def worker(name: str = "llm-0-1", **meta: Any) -> Obj:
    return thing(name, {"worker-index": name.rpartition("-")[2], "group-index": "0"}, **meta)


def owned(obj: Obj, kind: str, name: str, api_version: str = "v1") -> Obj:
    """The object with a controller."""
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [reference]}}


def relabelled(obj: Obj, labels: dict[str, str]) -> Obj:
    """The object with more labels."""
    return {**obj, "metadata": {**obj["metadata"], "labels": {**obj["metadata"]["labels"], **labels}}}


SET = Request("ns", "llm", "LeaderWorkerSet")


def every(old: Obj, new: Obj) -> list[Event]:
    return [Create(new), Create(new, initial=True), Update(old, new), Delete(new), Delete(new, True), Generic(new)]


# Sets ---------------------------------------------------------------------------------------------------------------


def test_what_happens_to_an_object_concerns_its_set() -> None:
    for event in every(thing("x"), thing("x")):
        assert list(set_requests(event)) == [SET]


def test_an_object_that_changes_hands_concerns_both_sets() -> None:
    event = Update(thing("x", {"name": "old"}), thing("x", {"name": "new"}))
    assert [r.name for r in set_requests(event)] == ["old", "new"]
    event = Update(thing("x", {"name": "old"}), thing("x", {"name": None}))
    assert [r.name for r in set_requests(event)] == ["old"]


def test_an_object_of_no_set_concerns_none() -> None:
    """F55: a workload without the label of a set, or with an empty one, makes no request."""
    assert not list(set_requests(Create(thing("x", {"name": ""}))))
    stray = {"metadata": {"namespace": "ns", "name": "x"}}
    assert not list(set_requests(Create(stray)))


def test_deletions_only() -> None:
    assert [is_gone(e) for e in every(thing("x"), thing("x"))] == [False, False, False, True, True, False]


# Leaders, as far as their set is concerned --------------------------------------------------------------------------


def test_a_leader_that_comes_or_goes_concerns_its_set() -> None:
    assert all(leader_changed(e) for e in (Create(leader()), Delete(leader()), Generic(leader())))


def test_workers_never_do() -> None:
    assert not any(leader_changed(e) for e in every(worker(), worker()))


@pytest.mark.parametrize(
    "new",
    [
        leader(ready=True),
        leader(phase="Running"),
        leader(deletionTimestamp="2026-01-01T00:00:00Z"),
        relabelled(leader(), {names.REVISION_LABEL: "next"}),
        leader(annotations={names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION: "true"}),
        {k: v for k, v in leader().items() if k != "status"},
    ],
)
def test_what_counts_of_a_leader(new: Obj) -> None:
    assert leader_changed(Update(leader(), new))
    assert leader_changed(Update(new, leader()))


def test_what_does_not_count_of_a_leader() -> None:
    new = leader(resourceVersion="9", annotations={"other": "x"})
    new["status"] |= {"podIP": "10.0.0.1", "containerStatuses": [{"restartCount": 1}]}
    assert not leader_changed(Update(leader(), new))


def test_a_pod_that_becomes_a_leader_or_ceases_to_be_one_concerns_its_set() -> None:
    plain = thing("llm-0", {"group-index": "0"})
    assert leader_changed(Update(plain, leader()))
    assert leader_changed(Update(leader(), plain))


# Pods ---------------------------------------------------------------------------------------------------------------


def test_a_pod_is_reconciled_by_name_and_uid() -> None:
    for event in (Create(worker()), Update(leader("llm-9"), worker()), Generic(worker())):
        (request,) = pod_requests(event)
        assert request == Request("ns", "llm-0-1", "Pod", "uid-llm-0-1")
        assert request.payload == PodWork(("llm", "0"))


@pytest.mark.parametrize("unknown", [False, True])
def test_a_deletion_is_work_of_its_own_with_the_pod_as_it_was(unknown: bool) -> None:
    pod = worker()
    (gone,) = pod_requests(Delete(pod, unknown))
    assert gone.deleted
    assert gone.payload.last_seen is pod
    assert gone.payload.group == ("llm", "0")


def test_a_deletion_is_never_folded_into_work_for_the_successor() -> None:
    (gone,) = pod_requests(Delete(worker()))
    (present,) = pod_requests(Create(worker()))
    (successor,) = pod_requests(Create(worker(uid="another")))
    assert len({gone, present, successor}) == 3
    assert len({gone, *pod_requests(Delete(worker(resourceVersion="2")))}) == 1


def test_the_pods_of_a_group_are_in_one_lane() -> None:
    def lane(event: Event) -> object:
        (request,) = pod_requests(event)
        return group_lane(request)

    in_group = [lane(e) for e in (Create(leader()), Delete(worker()), Create(worker("llm-0-2")))]
    assert len(set(in_group)) == 1
    other_group, other_set = leader("llm-1"), thing("x-0", {"name": "x", "worker-index": "0", "group-index": "0"})
    other_namespace = copy.deepcopy(leader())
    other_namespace["metadata"]["namespace"] = "elsewhere"
    lanes = {*in_group, *(lane(Create(pod)) for pod in (other_group, other_set, other_namespace))}
    assert len(lanes) == 4


def test_a_pod_without_labels_has_a_lane_too() -> None:
    pod = {"metadata": {"namespace": "ns", "name": "p"}}
    assert group_of_pod(pod) == ("", "")
    (request,) = pod_requests(Create(pod))
    assert group_lane(request) == ("ns", "", "")


# Workloads of workers -----------------------------------------------------------------------------------------------


def workload(owner: str = "llm-0", **meta: Any) -> Obj:
    return owned(thing("llm-0", {"group-index": "0"}, **meta), "Pod", owner)


def test_a_workload_of_workers_concerns_the_leader_that_owns_it_by_name() -> None:
    for event in (Create(workload()), Delete(workload()), Update(workload(), workload())):
        requests = dict.fromkeys(owner_pod_requests(event))
        assert list(requests) == [Request("ns", "llm-0", "Pod")]
        owner = workload()["metadata"]["ownerReferences"][0]["uid"]
        bereft = owner if isinstance(event, Delete) else ""
        assert all(r.payload == PodWork(("llm", "0"), bereft=bereft) for r in requests)
        assert {group_lane(r) for r in requests} == {("ns", "llm", "0")}


def test_a_workload_that_changes_hands_concerns_both_leaders() -> None:
    event = Update(workload("llm-0"), workload("llm-7"))
    assert [r.name for r in owner_pod_requests(event)] == ["llm-0", "llm-7"]


def test_workers_without_an_owner_concern_the_leader_of_their_name() -> None:
    orphan = thing("llm-0", {"group-index": "0"})
    assert [r.name for r in owner_pod_requests(Delete(orphan))] == ["llm-0"]


@pytest.mark.parametrize(
    "obj",
    [
        thing("llm"),
        owned(thing("llm"), "LeaderWorkerSet", "llm", names.API_VERSION),
        owned(thing("llm"), "Pod", "llm-0", "pods.example.com/v1"),
    ],
)
def test_other_workloads_concern_no_pod(obj: Obj) -> None:
    assert not list(owner_pod_requests(Create(obj)))


def test_of_a_workload_only_its_coming_going_and_owner_count() -> None:
    scaled = workload(resourceVersion="2")
    events = every(workload(), scaled)
    assert [workload_came_or_went(e) for e in events] == [True, True, False, True, True, False]
    assert workload_came_or_went(Update(workload("llm-0"), workload("llm-7")))


# Reading ------------------------------------------------------------------------------------------------------------


def test_what_was_read_live_counts_even_when_it_was_not_there() -> None:
    made = watches()
    made.pods.handle(Replace([leader()], "1"))
    key, store = Key("ns", "llm-0"), made.pods.store
    live = leader(ready=True)
    assert module.read({}, POD, key, store) == leader()
    assert module.read({(POD, key): live}, POD, key, store) is live
    assert module.read({(POD, key): None}, POD, key, store) is None
    assert module.read({}, NODE, Key("", "n")) is None


# Pods that something else sets free ---------------------------------------------------------------------------------

FINALIZER = names.GROUP_RESTART_BUDGET_FINALIZER
GATE = {"schedulingGates": [{"name": names.GROUP_REPLACEMENT_GATE}]}
PENDING = {names.GROUP_RECREATE_PENDING_ANNOTATION: "llm-2-1"}


def versioned(obj: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1"}}


def held() -> Watches:
    """One kept group, a leader whose recreation waits, one at its gate, and a group that nothing is held of."""
    made = watches()
    pods = [
        leader("llm-0", finalizers=[FINALIZER]),
        worker("llm-0-1", finalizers=[FINALIZER]),
        leader("llm-1"),
        leader("llm-2", annotations=PENDING),
        {**leader("llm-3"), "spec": GATE},
        thing("x-0", {"name": "x", "worker-index": "0", "group-index": "0"}, finalizers=[FINALIZER]),
    ]
    made.pods.handle(Replace([versioned(p) for p in pods], "1"))
    return made


def asked(handle: Callable[[Event], Any], event: Event) -> list[str]:
    requests = list(handle(event))
    assert all(r == Request("ns", r.name, "Pod", f"uid-{r.name}") for r in requests)
    assert all(r.payload.group[1] == r.name.split("-")[1] for r in requests if r.name.startswith("llm-"))
    return sorted(r.name for r in requests)


def test_a_pod_that_goes_concerns_the_leaders_at_their_gates() -> None:
    made = held()
    assert asked(made.freed_by_pod, Delete(worker("llm-1-1"))) == ["llm-3"]
    assert asked(made.freed_by_pod, Create(worker("llm-1-1"))) == []
    assert asked(made.freed_by_pod, Create({**leader("llm-4"), "spec": GATE})) == ["llm-3"]
    assert asked(made.freed_by_pod, Update(worker(), worker())) == []
    assert asked(made.freed_by_pod, Delete(thing("x-0-1", {"name": "x"}))) == []


def test_a_leader_that_goes_concerns_the_workers_that_are_kept_for_it() -> None:
    made = held()
    assert asked(made.freed_by_pod, Delete(leader("llm-0", finalizers=[FINALIZER]))) == ["llm-0", "llm-0-1", "llm-3"]
    assert asked(made.freed_by_pod, Delete(leader("llm-1"))) == ["llm-3"]


def test_a_leader_workload_concerns_the_kept_leaders_of_its_set() -> None:
    made = held()
    workload_of_set = owned(thing("llm"), "LeaderWorkerSet", "llm", names.API_VERSION)
    for event in (Create(workload_of_set), Delete(workload_of_set), Update(workload_of_set, thing("llm"))):
        assert asked(made.freed_by_workload, event) == ["llm-0"]
    for other in (workload(), thing("llm"), owned(thing("llm"), "LeaderWorkerSet", "llm", "other.example.com/v1")):
        assert asked(made.freed_by_workload, Create(other)) == []


def test_of_a_leader_workload_its_spec_and_labels_count() -> None:
    old = thing("llm", resourceVersion="1") | {"spec": {"replicas": 2}}
    same = thing("llm", resourceVersion="2") | {"spec": {"replicas": 2}, "status": {"replicas": 2}}
    assert not workload_asks_otherwise(Update(old, same))
    assert workload_asks_otherwise(Update(old, same | {"spec": {"replicas": 1}}))
    assert workload_asks_otherwise(Update(old, relabelled(same, {names.REVISION_LABEL: "next"})))
    goes = same | {"metadata": same["metadata"] | {"deletionTimestamp": "2026-10-20T10:00:00Z"}}
    assert workload_asks_otherwise(Update(old, goes))
    assert workload_asks_otherwise(Update(old, thing("llm", uid="next") | {"spec": {"replicas": 2}}))
    assert all(workload_asks_otherwise(e) for e in (Create(old), Delete(old), Generic(old)))


def test_a_set_concerns_its_held_leaders_and_if_it_goes_its_kept_workers() -> None:
    made = held()
    going = thing("llm", deletionTimestamp="2026-01-01T00:00:00Z")
    leaders = ["llm-0", "llm-2", "llm-3"]
    assert asked(made.freed_by_set, Create(thing("llm"))) == leaders
    assert asked(made.freed_by_set, Update(thing("llm"), thing("llm", generation=2))) == leaders
    assert asked(made.freed_by_set, Update(thing("llm"), going)) == ["llm-0", "llm-0-1", "llm-2", "llm-3"]
    assert asked(made.freed_by_set, Delete(thing("llm"))) == ["llm-0", "llm-0-1", "llm-2", "llm-3"]
    assert asked(made.freed_by_set, Delete(thing("other"))) == []


def test_once_restarts_can_be_counted_again_all_pods_of_the_set_are_looked_at() -> None:
    made = held()

    def counting(text: str) -> Obj:
        return thing("llm", annotations={names.GROUP_RESTART_COUNTS_ANNOTATION: text})

    mended = Update(counting("null"), counting("{}"))
    assert set_asks_otherwise(mended)
    assert asked(made.freed_by_set, mended) == ["llm-0", "llm-0-1", "llm-1", "llm-2", "llm-3"]
    assert not set_asks_otherwise(Update(counting("{}"), counting('{"a/0":1}')))
    assert not set_asks_otherwise(Update(counting("null"), counting("null")))


def test_of_a_set_its_spec_and_its_deletion_count() -> None:
    old, going = thing("llm", generation=1), thing("llm", generation=1, deletionTimestamp="2026-01-01T00:00:00Z")
    assert not set_asks_otherwise(Update(old, thing("llm", generation=1, annotations={"other": "x"})))
    assert set_asks_otherwise(Update(old, thing("llm", generation=2)))
    assert set_asks_otherwise(Update(old, going))
    assert set_asks_otherwise(Update(old, thing("llm", generation=1, uid="next")))
    assert all(set_asks_otherwise(e) for e in (Create(old), Delete(old), Generic(old)))


def test_a_namespace_that_goes_concerns_every_held_pod_in_it() -> None:
    made = held()
    namespace = {"metadata": {"name": "ns"}}
    going = {"metadata": {"name": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert asked(made.freed_by_namespace, Update(namespace, going)) == ["llm-0", "llm-0-1", "llm-2", "llm-3", "x-0"]
    assert asked(made.freed_by_namespace, Create(namespace)) == []
    elsewhere = {"metadata": {**going["metadata"], "name": "elsewhere"}}
    assert asked(made.freed_by_namespace, Create(elsewhere)) == []
    assert made.namespaces.kind == NAMESPACE


# Wiring -------------------------------------------------------------------------------------------------------------


def watches(backends: Backends | None = None) -> Watches:
    cache = Cache(Client(Script()), VirtualClock(), random.Random(1))
    return Watches(cache, backends or find())


def test_only_objects_of_sets_are_watched() -> None:
    """And all Services: one that has the name of a set's need not have its label."""
    made = watches()
    selected = {
        i.kind: i.label_selector
        for i in (made.sets, made.pods, made.services, made.revisions, *made.workloads.values())
    }
    assert selected == {
        LEADER_WORKER_SET: None,
        POD: names.NAME_LABEL,
        SERVICE: None,
        DEPLOYMENT: names.NAME_LABEL,
        CONTROLLER_REVISION: f"{names.NAME_LABEL},!controller.kubernetes.io/hash",
        STATEFUL_SET: names.NAME_LABEL,
    }
    assert made.namespaces.label_selector is None


def test_pods_are_found_by_group_and_revisions_by_set() -> None:
    made = watches()
    made.pods.handle(Replace([leader("llm-0"), worker("llm-0-1"), leader("llm-1")], "1"))
    made.revisions.handle(Replace([thing("llm-abc"), thing("x-abc", {"name": "x"})], "1"))
    in_group = made.pods.store.by_index(BY_GROUP, "llm/0", "ns")
    assert sorted(p["metadata"]["name"] for p in in_group) == ["llm-0", "llm-0-1"]
    assert [r["metadata"]["name"] for r in made.revisions.store.by_index(BY_SET, "llm", "ns")] == ["llm-abc"]
    assert made.pods.store.by_index(BY_GROUP, "llm/0", "elsewhere") == []


def test_the_group_index_hears_of_sets_workloads_and_pods_before_handlers_do() -> None:
    made = watches()
    lws = {
        "metadata": {"namespace": "ns", "name": "llm", "uid": "uid-llm", "resourceVersion": "1"},
        "spec": {"leaderWorkerTemplate": {"size": 1}},
    }
    leaders = owned(thing("llm", uid="uid-sts", resourceVersion="1"), "LeaderWorkerSet", "llm", names.API_VERSION)
    leaders["spec"] = {"replicas": 1}
    pod = owned(leader(ready=True, phase="Running", resourceVersion="1"), "StatefulSet", "llm", "apps/v1")
    pod["metadata"]["ownerReferences"][0]["uid"] = "uid-sts"
    heard: list[int] = []

    class Handler:
        def on_add(self, obj: Obj, initial: bool) -> None:
            heard.append(len(made.index.state_of("uid-llm").flags))

        def on_update(self, old: Obj, new: Obj) -> None: ...

        def on_delete(self, obj: Obj, unknown: bool) -> None: ...

    made.pods.add_handler(Handler())
    made.sets.handle(Replace([lws], "1"))
    made.workloads[STATEFUL_SET].handle(Replace([leaders], "1"))
    made.pods.handle(Replace([], "1"))
    made.pods.handle(Applied({**pod, "metadata": {**pod["metadata"], "resourceVersion": "2"}}))
    assert heard == [1]
    assert made.index.state_of("uid-llm").groups("", alone=True)[0].ready


class Deployed(StatefulSetLeaders):
    capabilities = frozenset({Capability.READINESS_PACED})


def test_both_controllers_are_put_together() -> None:
    made, executor, clock, rng = watches(), object(), VirtualClock(), random.Random(1)
    controllers = [
        make(made, executor, clock, rng, concurrency=3)  # type: ignore[arg-type]
        for make in (set_controller, group_controller)
    ]
    assert [c.name for c in controllers] == ["leaderworkerset", "pod"]
    assert [c.concurrency for c in controllers] == [3, 3]


def test_a_backend_that_cannot_keep_ordinals_is_refused_when_the_controller_is_built() -> None:
    made = watches(Backends(Deployed(), StatefulSetWorkers()))
    with pytest.raises(ConfigurationError, match="cannot lead sets in Ordinal mode"):
        set_controller(made, object(), VirtualClock(), random.Random(1))  # type: ignore[arg-type]


class Watched:
    """An informer as far as its health goes."""

    def __init__(self) -> None:
        self.healthy = False
        self.handlers: list[Callable[[bool], None]] = []

    def add_health_handler(self, handler: Callable[[bool], None]) -> None:
        self.handlers.append(handler)

    def becomes(self, healthy: bool) -> None:
        self.healthy = healthy
        for handler in self.handlers:
            handler(healthy)


def test_all_sets_are_looked_at_again_once_every_watch_works_again() -> None:
    made = watches()
    made.sets.handle(Replace([thing("llm"), thing("other")], "1"))
    first, second = Watched(), Watched()
    made.feeding = (first, second)  # type: ignore[assignment]
    asked: list[Request] = []
    made.when_recovered(asked.append)
    first.becomes(True)
    assert not asked
    second.becomes(True)
    assert {r.name for r in asked} == {"llm", "other"}
    asked.clear()
    second.becomes(False)
    assert not asked
