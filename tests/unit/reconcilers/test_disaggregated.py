"""The reconciler of DisaggregatedSets: what it observes, and how it carries out a pass (specification: 50 §5, §18)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lwskit.api.crds import crds
from lwskit.backends import registry
from lwskit.disaggregated import revision
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError
from lwskit.reconcilers.disaggregated import Again, DisaggregatedReconciler
from lwskit.reconcilers.disaggregated_watches import DisaggregatedWatches, Live, set_of_child
from lwskit.reconcilers.watches import Watches
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.store import Store
from lwskit.runtime.clock import RealClock
from lwskit.runtime.controller.handler import Create, Delete, Update
from lwskit.runtime.errors import Conflict, InternalError, ServiceUnavailable
from lwskit.runtime.execute import Executor
from lwskit.runtime.objects import Key, Obj
from lwskit.runtime.plan import Event
from lwskit.runtime.request import Request, Result
from lwskit.testing import fake
from lwskit.testing.interceptors import Matcher, matching
from tests.unit.disaggregated.scenes import child_object, ds_object, role, scaler

REQUEST = Request("prod", "chat", "DisaggregatedSet")
CHILDREN = matching("POST", r"/leaderworkersets$")
STATUS = matching("PUT", r"/disaggregatedsets/chat/status$")


class Heard:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def event(self, event: Event, related: object = None, *, at: object = None) -> None:
        self.events.append(event)


class Asked(Again):
    """Keeps what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Request, float]] = []

    def __call__(self, request: Request, after: float) -> None:
        self.asked.append((request, after))


class World:
    """A reconciler on a fake API server, whose cache knows what its watches have told."""

    def __init__(self, *objects: Obj) -> None:
        self.client = fake.client([*objects], crds=crds(), namespaces=["prod"])
        self.clock = RealClock()
        self.cache = Cache(self.client, self.clock, random.Random(1))
        watches = Watches(self.cache, registry.find(registry.DEFAULT))
        self.watches = DisaggregatedWatches(self.cache, watches, self.clock)
        self.heard = Heard()
        executor = Executor(self.client, self.cache, self.heard, self.clock)
        self.again = Asked()
        self.reconcile = DisaggregatedReconciler(self.watches, executor, self.clock, self.again)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[World]:
        task = asyncio.create_task(self.cache.run(), name="cache")
        try:
            await self.cache.wait_synced()
            yield self
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def once(self) -> Result:
        return await self.reconcile(REQUEST)

    def names(self) -> list[str]:
        return sorted(obj["metadata"]["name"] for obj in self.client.objects(LEADER_WORKER_SET))

    def status(self) -> Obj:
        (ds,) = self.client.objects(DISAGGREGATED_SET)
        return ds.get("status") or {}

    def requests(self) -> list[str]:
        return [r.verb for r in self.client.interceptor.requests if r.verb not in ("list", "watch")]


def the_set(**fields: Any) -> Obj:
    return ds_object(role("prefill"), role("decode", 2), **fields)


async def test_a_pass_makes_what_is_missing_and_tells():
    async with World(the_set(slices=2)).running() as world:
        assert await world.once() == Result()
        assert len(world.names()) == 4
        assert world.requests() == ["create"] * 4 + ["update"]
        assert await world.once() == Result()
        assert world.requests() == ["create"] * 4 + ["update"]


async def test_a_child_of_our_own_that_the_cache_does_not_show():
    """50 §18: a creation that meets an own object has succeeded; it is read live, once, and nothing is made twice."""
    async with World(the_set()).running() as world:
        with world.client.interceptor.hold_watches():
            world.client.interceptor.lose(CHILDREN, ServiceUnavailable("gone"), times=1)
            with pytest.raises(DecisionError, match=r"^slice 0: gone$"):
                await world.once()
            assert len(world.names()) == 1
            assert await world.once() == Result()
        assert len(world.names()) == 2
        assert world.requests() == ["create", "update", "create", "get", "create"]


async def test_a_child_of_somebody_else_is_found_out_once():
    """50 §18: the one that is in the way is read once; then the pass fails without asking."""
    async with World(the_set()).running() as world:
        with world.client.interceptor.hold_watches():
            await world.once()
            (first, second) = world.names()
        assert first.endswith("decode")
        stolen = {**child_object("decode", 9), "metadata": {"name": first, "namespace": "prod"}}
        other = World(the_set(), stolen)
        async with other.running():
            with pytest.raises(DecisionError, match=rf"^slice 0: LeaderWorkerSet {first} exists but is not controlled"):
                await other.once()
            assert other.names() == [first, second]
            before = other.requests()
            with pytest.raises(DecisionError, match="refusing to adopt it"):
                await other.once()
            assert other.requests() == before
            assert {event.reason for event in other.heard.events} == {"FailedCreate"}


async def test_slices_do_not_stop_each_other_and_the_status_is_written():
    """50 §23 line 40: errors are collected by slice; the other role, the other slices and the status are seen to."""
    async with World(the_set(slices=3)).running() as world:
        world.client.interceptor.fail(CHILDREN, InternalError("boom"), times=1)
        with pytest.raises(DecisionError, match=r"^slice 0: boom$"):
            await world.once()
        assert [name.split("-")[1] for name in world.names()] == ["0", "1", "1", "2", "2"]
        assert world.status()["conditions"][0]["type"] == "Progressing"
        (failed,) = world.heard.events
        assert (failed.reason, failed.type, failed.note.endswith(": boom")) == ("FailedCreate", "Warning", True)
        await world.once()
        assert len(world.names()) == 6


async def test_a_slice_that_waits_does_not_wait_for_one_that_fails():
    """50 §23 line 40: what one slice fails with does not lengthen the delays of the others."""
    ds = the_set(slices=2)
    async with World(ds).running() as first:
        # With the defaults that the server has put in.
        (seen,) = first.watches.sets.store
    current = revision.resolve(seen, ()).revision
    stolen = {"name": f"chat-0-{current}-decode", "namespace": "prod"}
    name = f"chat-1-{current}-decode"
    kept = {"deletionTimestamp": "2026-11-30T11:00:00Z", "finalizers": ["test/kept"]}
    leaving = child_object("decode", 2, slice=1, revision=current, **kept)
    async with World(ds, {**child_object("decode"), "metadata": stolen}, leaving).running() as world:
        with pytest.raises(DecisionError, match=r"^slice 0: .* refusing to adopt it$"):
            await world.once()
        assert name in world.names()
        assert world.again.asked == [(REQUEST, 1.0)]


async def test_a_status_that_cannot_be_written_is_told_with_the_rest():
    async with World(the_set()).running() as world:
        world.client.interceptor.fail(CHILDREN, InternalError("boom"), times=1)
        world.client.interceptor.fail(STATUS, InternalError("bang"), times=1)
        with pytest.raises(DecisionError, match=r"^slice 0: boom; bang$"):
            await world.once()


async def test_a_status_that_has_changed_meanwhile_is_decided_again():
    async with World(the_set()).running() as world:
        world.client.interceptor.fail(STATUS, Conflict("busy"), times=1)
        found = await world.once()
        assert found.requeue
        assert len(world.names()) == 2


async def test_scalers_come_first():
    """50 §5: what fails before the slices ends the pass."""
    ds = ds_object(role("prefill"), role("decode", mode="External"))
    async with World(ds).running() as world:
        world.client.interceptor.fail(matching("POST", r"/disaggregatedsetrolescalers$"), InternalError("boom"))
        with pytest.raises(InternalError):
            await world.once()
        assert (world.names(), world.status()) == ([], {})
        await world.once()
        assert len(world.names()) == 2
        assert len(world.client.objects(ROLE_SCALER)) == 1


async def test_what_has_changed_meanwhile_is_looked_at_before_the_slices():
    """50 §5: a mark or a scaler that cannot be written as decided ends the pass, without an error."""
    ds = ds_object(role("prefill"), metadata={"annotations": {}})
    async with World(ds).running() as world:
        world.client.interceptor.fail(matching("PATCH", r"/disaggregatedsets/chat$"), Conflict("busy"), times=1)
        assert (await world.once()).requeue
        assert world.names() == []
    names = ("chat-decode", "chat-old")
    scalers = [scaler(name, "decode" if name == "chat-decode" else "old") for name in names]
    ds = ds_object(role("prefill"), role("decode", mode="External"))
    async with World(ds, *scalers).running() as world:
        stale = matching("DELETE", r"/disaggregatedsetrolescalers/chat-old$")
        world.client.interceptor.fail(stale, Conflict("another one"), times=1)
        assert await world.once() == Result()
        assert [r.verb for r in world.client.interceptor.select(matching(None, "chat-old"))] == [
            "delete",
            "get",
            "delete",
        ]
        assert [obj["metadata"]["name"] for obj in world.client.objects(ROLE_SCALER)] == ["chat-decode"]
        told = world.client.objects(ROLE_SCALER)[0]["status"]
        assert told["selector"].endswith("role=decode,leaderworkerset.sigs.k8s.io/worker-index=0")


async def test_a_scaler_without_labels_that_is_in_the_way():
    """50 §11.2: whose it is is known before one of its name is made."""
    ds = ds_object(role("prefill"), role("decode", mode="External"))
    other = scaler("chat-decode", "decode", 9, labels={}, ownerReferences=[])
    async with World(ds, other).running() as world:
        assert (await world.once()).after == 1.0
        assert [event.reason for event in world.heard.events] == ["ScalerConflict"]
        assert world.names() == []
        assert world.requests() == ["update"]


async def test_a_slice_that_has_failed_is_left_alone_while_another_one_looks():
    """50 §5: looking live for one slice does not repeat the others' requests that have failed."""
    async with World(the_set(slices=2)).running() as world:
        with world.client.interceptor.hold_watches():

            def of(number: int) -> Matcher:
                return lambda request: CHILDREN(request) and f'"chat-{number}-'.encode() in (request.body or b"")

            world.client.interceptor.lose(of(1), ServiceUnavailable("gone"), times=1)
            with pytest.raises(DecisionError, match=r"^slice 1: gone$"):
                await world.once()
            first = world.client.interceptor.count(of(0))
            for name in world.names():
                if name.startswith("chat-0-"):
                    (child,) = [o for o in world.client.objects(LEADER_WORKER_SET) if o["metadata"]["name"] == name]
                    await world.client.delete(LEADER_WORKER_SET, name, "prod")
                    world.cache.forget(LEADER_WORKER_SET, Key("prod", name), child["metadata"]["uid"])
            world.client.interceptor.fail(of(0), InternalError("boom"), times=None)
            with pytest.raises(DecisionError, match=r"^slice 0: boom$"):
                await world.once()
            assert world.client.interceptor.count(of(0)) == first + 2, "each of its roles is tried once"


async def test_a_set_that_is_gone():
    async with World().running() as world:
        assert await world.once() == Result()
        assert world.requests() == []


# What was read live ------------------------------------------------------------------------------------------------


def stored(*objects: Obj) -> Store:
    store = Store()
    for obj in objects:
        store.put(Key("prod", obj["metadata"]["name"]), obj)
    return store


def test_live_reads_and_the_cache():
    """The later of the two counts; what a read has not found is gone, until there is another one of that name."""
    key, kind = Key("prod", "a"), LEADER_WORKER_SET
    old = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "9"}}
    new = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "10"}}
    next_one = {"metadata": {"name": "a", "uid": "2", "resourceVersion": "11"}}
    live = Live()
    assert live.get(kind, key, stored(old)) is old
    live.take({(kind, key): new}, [old])
    assert live.get(kind, key, stored(old)) is new
    assert live.get(kind, key, stored(next_one)) is next_one
    assert live.get(kind, key, stored()) is new
    gone = Live()
    gone.take({(kind, key): None}, [old])
    assert gone.get(kind, key, stored(old)) is None
    assert gone.get(kind, key, stored(next_one)) is next_one
    assert gone.get(kind, key, stored()) is None


# Events ------------------------------------------------------------------------------------------------------------


def test_whose_work_a_child_is():
    child = child_object("decode")
    assert [*set_of_child(Create(child, False))] == [REQUEST]
    unlabelled = {"metadata": {**child["metadata"], "labels": {}}}
    assert [*set_of_child(Update(child, unlabelled))] == [REQUEST]
    nobody = {"metadata": {"name": "x", "namespace": "prod"}}
    assert [*set_of_child(Create(nobody, False))] == []
    moved = {"metadata": {**child["metadata"], "labels": {"disaggregatedset.x-k8s.io/name": "other"}}}
    assert {r.name for r in set_of_child(Create(moved, False))} == {"other", "chat"}


async def test_who_waits_for_a_name():
    async with World(the_set(), ds_object(role("x"), name="chatter", uid="2")).running() as world:
        free = {"metadata": {"name": "chat-0-1a2b3c4d-decode", "namespace": "prod"}}
        assert [*world.watches.waiting_for_name(Delete(free, False))] == [REQUEST]
        assert [*world.watches.waiting_for_name(Create(free, False))] == []


async def test_pods_wake_a_set_only_where_they_are_divided():
    """50 §5, §13: pods of a child without sub-roles concern its own controllers only."""
    notes = {"disaggregatedset.x-k8s.io/subrole-replicas": '{"a":1}'}
    plain, divided = child_object("decode"), child_object("prefill", annotations=notes)
    for obj in (plain, divided):
        obj["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["resources"] = {}
    async with World(the_set(), plain, divided).running() as world:

        def pod(child: Obj) -> Obj:
            labels = {**child["metadata"]["labels"], "leaderworkerset.sigs.k8s.io/name": child["metadata"]["name"]}
            return {"metadata": {"name": "p", "namespace": "prod", "labels": labels}}

        assert [*world.watches.sets_of_pod(Create(pod(divided), False))] == [REQUEST]
        assert [*world.watches.sets_of_pod(Create(pod(plain), False))] == []
