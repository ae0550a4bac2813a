"""Reads that a cache refuses, waits for, or answers (specification: 70 §2.9, §2.12)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from lwskit.runtime.cache.cache import Cache, SyncTimeout
from lwskit.runtime.cache.mutation import CachedObjectChanged
from lwskit.runtime.cache.reader import Reader
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed, InvalidRequest, NotFound
from lwskit.runtime.kinds import POD, SERVICE, STATEFUL_SET
from lwskit.runtime.objects import Key, Obj, labels_of
from lwskit.testing.scripted import Fail, Listing, Part, Script, Stream, event, pod
from tests.unit.runtime.cache.conftest import Recorder

Start = Callable[..., Awaitable[tuple[Cache, Script]]]

LISTED = [pod("a", 5, labels={"app": "x"}), pod("b", 6, labels={"app": "y"})]


@pytest.fixture
async def run(clock: Clock) -> AsyncIterator[Start]:
    tasks: list[asyncio.Task[None]] = []

    async def start(*parts: Part, **options: Any) -> tuple[Cache, Script]:
        script = Script(*parts)
        cache = Cache(Client(script), clock, random.Random(5), streaming=False, **options)
        tasks.append(asyncio.create_task(cache.run()))
        await clock.sleep(0.01)
        return cache, script

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def names(objects: list[Obj]) -> list[str]:
    return sorted(o["metadata"]["name"] for o in objects)


async def test_field_selectors_need_indexes_and_exact_values(run: Start) -> None:
    """70 §17 Cache 26: a field without index and a `!=` are refused in the words that users look for."""
    cache, _ = await run(Listing(LISTED, 9))
    reader = Reader(cache)
    with pytest.raises(InvalidRequest, match="Index with name field:app does not exist"):
        await reader.list(POD, field_selector="app=x")
    reader.add_field_index(POD, "app", lambda obj: [labels_of(obj)["app"]])
    assert names(await reader.list(POD, field_selector="app=x")) == ["a"]
    with pytest.raises(InvalidRequest) as e:
        await reader.list(POD, field_selector="app!=x")
    assert str(e.value) == "non-exact field matches are not supported by the cache"
    assert cache.store(POD).has_index("field:app")


async def test_reads_too_early_or_of_what_is_not_kept(run: Start, clock: Clock) -> None:
    """70 §17 Cache 28: before the start, and where only known kinds may be read, the refusal says so."""
    early = Reader(Cache(Client(Script()), clock, random.Random(1)))
    for read in (early.get(POD, "a", "t"), early.list(POD)):
        with pytest.raises(ConfigurationError) as e:
            await read
        assert str(e.value) == "the cache is not started, can not read objects"
    cache, script = await run()
    strict = Reader(cache, fail_on_missing=True)
    with pytest.raises(ConfigurationError) as e:
        await strict.get(STATEFUL_SET, "a", "t")
    assert str(e.value) == "apps/v1, Kind=StatefulSet is not cached"
    with pytest.raises(ConfigurationError, match=r"^/v1, Kind=Pod is not cached$"):
        await strict.list(POD)
    assert script.seen == []


async def test_not_found_names_kind_and_group(run: Start) -> None:
    cache, _ = await run(Listing([], 9))
    with pytest.raises(NotFound) as e:
        await Reader(cache).get(STATEFUL_SET, "a", "t")
    assert str(e.value) == 'StatefulSet.apps "a" not found'


async def test_a_read_that_waits_too_long_says_for_what(run: Start) -> None:
    cache, _ = await run(*[ConnectionFailed("refused")] * 20)
    with pytest.raises(SyncTimeout) as e:
        await Reader(cache, timeout=5.0).get(POD, "a", "t")
    assert str(e.value) == "failed waiting for Pod Informer to sync"
    assert str(e.value.__cause__) == "refused"
    with pytest.raises(SyncTimeout):
        await cache.synced_informer(POD, timeout=1.0)


async def test_a_scope_that_ends_ends_the_wait_and_not_the_informer(run: Start, clock: Clock) -> None:
    cache, script = await run(Fail(503, "ServiceUnavailable"), Listing(LISTED, 9))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await Reader(cache).get(POD, "a", "t")
    assert names(await Reader(cache).list(POD)) == ["a", "b"]
    assert len(cache.informers(POD)) == 1
    assert len(script.seen) == 3


async def test_an_informer_may_be_had_without_waiting(run: Start, clock: Clock) -> None:
    cache, _ = await run(Listing(LISTED, 9))
    assert not cache.informer(POD).synced.is_set()
    assert (await cache.synced_informer(POD)).synced.is_set()
    stopped = Cache(Client(Script()), clock, random.Random(1))
    assert not (await stopped.synced_informer(POD)).synced.is_set()


async def test_lists_are_cut_anywhere_and_not_gone_on_with(run: Start) -> None:
    cache, _ = await run(Listing(LISTED, 9))
    reader = Reader(cache)
    assert len(await reader.list(POD, limit=1)) == 1
    with pytest.raises(InvalidRequest, match="continue list option is not supported by the cache"):
        await reader.list(POD, continue_="token")
    whole = await reader.list_object(POD, label_selector="app=x")
    assert names(whole.pop("items")) == ["a"]
    assert whole == {"apiVersion": "v1", "kind": "PodList", "metadata": {"continue": "continue-not-supported"}}


async def test_waiting_for_a_cache_begins_with_its_start(clock: Clock) -> None:
    cache = Cache(Client(Script(Listing([], 7))), clock, random.Random(1), streaming=False)
    cache.informer(POD)
    waiting = asyncio.create_task(cache.wait_synced())
    await clock.sleep(1)
    assert not waiting.done()
    running = asyncio.create_task(cache.run())
    await waiting
    running.cancel()
    await asyncio.wait({running})


async def test_an_informer_that_is_removed_stops_and_is_forgotten(run: Start, clock: Clock) -> None:
    cache, script = await run(
        Listing(LISTED, 9), Stream(100.0, event("ADDED", pod("late", 10)), 1e6), Listing([pod("c", 20)], 21)
    )
    recorder = Recorder()
    first = await cache.synced_informer(POD)
    first.add_handler(recorder)
    recorder.take()
    assert script.open == 1
    await cache.remove(POD)
    await cache.remove(POD)
    assert (script.open, cache.informers()) == (0, [])
    await clock.sleep(200)
    assert recorder.calls == []
    assert names(await Reader(cache).list(POD)) == ["c"]
    assert cache.informer(POD) is not first
    other = cache.informer(POD, "t")
    await cache.remove(other)
    assert cache.informers() == [cache.informer(POD)]


async def test_somebody_who_changes_a_shared_object_is_noticed(run: Start, clock: Clock) -> None:
    cache, _ = await run(Listing(LISTED, 9), Stream(2.0, event("MODIFIED", pod("b", 10)), 1e6), detect_mutations=True)
    informer = await cache.synced_informer(POD)
    await clock.sleep(5)
    informer.check_mutations()
    mine = await Reader(cache).get(POD, "a", "t", copy=False)
    mine["metadata"]["labels"]["app"] = "changed"
    with pytest.raises(CachedObjectChanged) as e:
        informer.check_mutations()
    expected = (
        'the cached Pod "t/a" was changed at metadata.labels.app by somebody who had read it; copy what you change'
    )
    assert str(e.value) == expected


async def test_a_cache_that_detects_mutations_ends_within_a_second(clock: Clock) -> None:
    listed = [pod("a", 5, finalizers=["one"])]
    script = Script(Listing(listed, 9))
    cache = Cache(Client(script), clock, random.Random(1), streaming=False, detect_mutations=True)
    cache.informer(POD)
    running = asyncio.create_task(cache.run())
    await cache.wait_synced()
    stored = cache.store(POD).get(Key("t", "a"))
    assert stored is not None
    stored["metadata"]["finalizers"].append("two")
    with pytest.raises(CachedObjectChanged, match=r"metadata\.finalizers"):
        await running
    assert clock.monotonic() <= 1.1


async def test_a_long_first_list_lets_others_run_and_is_seen_as_a_whole(clock: Clock) -> None:
    objects = [pod(f"p{n}", n + 1, labels={"app": str(n % 7)}) for n in range(5000)]
    script = Script(Listing(objects, 9000))
    cache = Cache(Client(script), clock, random.Random(1), streaming=False)
    informer, recorder, late, leaves = cache.informer(POD), Recorder(), Recorder(), Recorder()
    informer.add_handler(leaves)
    informer.add_index("app", lambda obj: [labels_of(obj)["app"]])
    informer.add_handler(recorder)
    running = asyncio.create_task(cache.run())
    sizes: list[int] = []
    while not informer.synced.is_set():
        sizes.append(len(informer.store))
        assert informer.healthy is False
        if len(informer.store) and late not in [r.handler for r in informer._audience.registrations]:
            informer.add_handler(late)
            informer.remove_handler(leaves)
            informer.add_index("late", lambda obj: [labels_of(obj)["app"]])
        await asyncio.sleep(0)
    assert set(sizes) == {0, 5000}
    assert len(sizes) > 15
    assert len(recorder.calls) == len(late.calls) == 5000
    assert 0 < len(leaves.calls) <= 500
    assert all(call[2] is True for call in recorder.calls + late.calls)
    for name in ("app", "late"):
        assert len(informer.store.by_index(name, "3")) == len(range(3, 5000, 7))
    running.cancel()
    await asyncio.wait({running})


async def test_several_kinds_are_kept_apart(run: Start) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "t", "uid": "s"}}
    cache, _ = await run(Listing(LISTED, 9), Stream(1e6), Listing([service], 9))
    reader = Reader(cache)
    assert (await reader.get(POD, "a", "t"))["kind"] == "Pod"
    assert (await reader.get(SERVICE, "a", "t"))["kind"] == "Service"
