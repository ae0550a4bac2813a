"""Informers of an embedded API server, also of one that plays the oldest supported Kubernetes (60 §12)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.store import Store
from lwskit.embedded.transport import InProcessTransport
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import NotFound
from lwskit.runtime.kinds import CONFIG_MAP
from lwskit.runtime.objects import Obj
from lwskit.testing.interceptors import Interceptor
from lwskit.testing.oldest import OldestServer
from lwskit.testing.polling import eventually
from tests.unit.runtime.cache.conftest import Recorder


class World:
    """A server, an administrator's client of it, and an informer behind an Interceptor."""

    def __init__(self, clock: Clock, server: str, **options: Any) -> None:
        self.store = Store(history=40)
        self.api = ApiServer(self.store, clock, random.Random(2))
        self.admin = Client(InProcessTransport(self.api), clock=clock)
        inner: Any = InProcessTransport(self.api)
        self.oldest = OldestServer(inner, self.store, streaming=server != "1.34 without WatchList")
        self.wire = Interceptor(inner if server == "latest" else self.oldest)
        self.client = Client(self.wire, clock=clock)
        self.cache = Cache(self.client, clock, random.Random(3), detect_mutations=True, **options)
        self.informer: Informer = self.cache.informer(CONFIG_MAP, "default")
        self.recorder = Recorder()
        self.informer.add_handler(self.recorder)
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self.cache.run())

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait({self.task})

    async def write(self, name: str, value: str) -> Obj:
        body: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
        return await self.admin.apply(CONFIG_MAP, {**body, "data": {"value": value}}, field_manager="test")

    async def delete(self, name: str) -> None:
        try:
            await self.admin.delete(CONFIG_MAP, name, "default")
        except NotFound:
            pass

    async def live(self) -> dict[str, str]:
        listed = await self.admin.list(CONFIG_MAP, "default")
        return {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in listed["items"]}

    def stored(self) -> dict[str, str]:
        return {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in self.informer.store}

    async def agrees(self) -> bool:
        return self.informer.healthy and self.stored() == await self.live()

    def lists(self) -> list[dict[str, str]]:
        return [dict(r.request.query) for r in self.wire.select(verb="list")]


SERVERS = ("latest", "1.34", "1.34 without WatchList")


@pytest.fixture(params=SERVERS)
async def world(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[World]:
    made = World(clock, request.param)
    yield made
    await made.stop()


async def test_nothing_is_lost_between_the_list_and_the_watch(world: World, clock: Clock) -> None:
    """F136: what changes after the list was answered and before the watch is open comes with the watch."""
    await world.write("a", "1")
    with world.wire.hold_watches():
        world.start()
        await clock.sleep(1)
        await world.write("b", "1")
        await world.delete("a")
    await eventually(world.agrees, 60)
    assert set(world.stored()) == {"b"}


async def test_after_a_gap_that_the_server_has_forgotten_deletions_are_told(world: World, clock: Clock) -> None:
    """F127: a watch that is answered 410 leads to a new list, and what went meanwhile is told as gone."""
    await world.write("goes", "1")
    await world.write("stays", "1")
    world.start()
    await eventually(world.agrees, 60)
    world.recorder.take()
    with world.wire.watches_down():
        await world.delete("goes")
        await world.write("comes", "1")
        world.store.compact()
    await eventually(world.agrees, 60)
    told = {(call[0], call[1].partition("@")[0]) for call in world.recorder.take()}
    assert told == {("delete", "goes"), ("add", "comes")}
    assert all(q.get("resourceVersion", "0") == "0" or int(q["resourceVersion"]) > 1 for q in world.lists())


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_happens_to_watches_the_store_ends_as_the_server_is(
    world: World, clock: Clock, seed: int
) -> None:
    rng = random.Random(seed)
    world.start()
    books: dict[str, str] = {}
    for _ in range(60):
        match rng.choice(["write"] * 6 + ["delete"] * 2 + ["cut", "compact", "wait", "own"]):
            case "write":
                await world.write(rng.choice("abcdef"), str(rng.random()))
            case "delete":
                await world.delete(rng.choice("abcdef"))
            case "own":
                world.cache.ingest(CONFIG_MAP, await world.write(rng.choice("abcdef"), str(rng.random())))
            case "cut":
                world.wire.cut_watches()
            case "compact":
                world.store.compact()
            case "wait":
                await clock.sleep(rng.random() * 5)
    await eventually(world.agrees, 300)
    for call in world.recorder.calls:
        name, _, version = call[-1 if call[0] == "update" else 1].partition("@")
        if call[0] == "delete":
            assert name in books
            del books[name]
        else:
            assert (name in books) is (call[0] == "update")
            books[name] = version
    assert books == world.stored()


@pytest.fixture(params=SERVERS[1:])
async def oldest(request: pytest.FixtureRequest, clock: Clock) -> AsyncIterator[World]:
    made = World(clock, request.param, streaming=False)
    yield made
    await made.stop()


async def test_a_first_list_from_a_cache_that_is_behind_is_caught_up_with(oldest: World, clock: Clock) -> None:
    await oldest.write("a", "1")
    await oldest.write("b", "1")
    with oldest.oldest.lagging():
        await oldest.delete("a")
        await oldest.write("c", "1")
        oldest.start()
        await oldest.cache.wait_synced()
        assert set(oldest.stored()) == {"a", "b"}
        assert oldest.lists() == [{"limit": "500", "resourceVersion": "0"}]
        answer = await oldest.write("b", "2")
        oldest.cache.ingest(CONFIG_MAP, answer)
        assert oldest.stored()["b"] == answer["metadata"]["resourceVersion"]
    await eventually(oldest.agrees, 60)
    assert set(oldest.stored()) == {"b", "c"}
    assert [call[0] for call in oldest.recorder.take()] == ["add", "add", "update", "delete", "add"]


async def test_a_list_at_a_version_that_the_cache_has_not_reached_is_made_without_one(
    oldest: World, clock: Clock
) -> None:
    oldest.start()
    await oldest.write("a", "1")
    await oldest.write("b", "1")
    await eventually(oldest.agrees, 60)
    with oldest.wire.watches_down():
        await oldest.delete("a")
        oldest.store.compact()
    with oldest.oldest.lagging(behind=2):
        begin = clock.monotonic()
        await eventually(lambda: len(oldest.lists()) == 3, 60)
        assert clock.monotonic() - begin >= 3.0
        await eventually(lambda: set(oldest.stored()) == {"b"}, 60)
    first, at_version, without = oldest.lists()
    assert (first["resourceVersion"], "resourceVersion" in without) == ("0", False)
    assert int(at_version["resourceVersion"]) == oldest.store.version - 1
    await eventually(oldest.agrees, 60)


async def test_a_server_without_streaming_lists_refuses_them_in_its_words(clock: Clock) -> None:
    world = World(clock, "1.34 without WatchList")
    world.start()
    await eventually(world.agrees, 60)
    assert [r.status for r in world.wire.requests][:2] == [422, 200]
    await world.stop()


async def test_pages_end_when_the_history_is_forgotten(clock: Clock) -> None:
    """A list in pages whose token has expired is made once more, whole; nothing of the first pages is shown."""
    world = World(clock, "1.34", streaming=False)
    world.start()
    for n in range(3):
        await world.write(f"a{n}", "1")
    await eventually(world.agrees, 60)
    world.recorder.take()
    send, pages = world.oldest.send, list[dict[str, str]]()

    async def in_small_pages(request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        query = dict(request.query)
        pages.append(query)
        if "limit" in query:
            query["limit"] = "2"
        if "continue" in query:
            await world.delete("a0")
            world.store.compact()
        return await send(replace(request, query=tuple(query.items())), timeout=timeout)

    world.oldest.send = in_small_pages  # type: ignore[method-assign]
    with world.wire.watches_down():
        await world.write("a3", "1")
        world.store.compact()
    with world.oldest.lagging(behind=2):
        await eventually(lambda: len(pages) == 4, 60)
    await eventually(world.agrees, 60)
    assert [sorted(q) for q in pages] == [["resourceVersion"], ["limit"], ["continue", "limit"], []]
    assert set(world.stored()) == {"a1", "a2", "a3"}
    assert {(c[0], c[1][:2]) for c in world.recorder.take()} == {("delete", "a0"), ("add", "a3")}
    await world.stop()
