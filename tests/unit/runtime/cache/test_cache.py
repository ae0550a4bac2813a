"""The informers of a program together, and reads through them (specification: 70 §17, Cache)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.listwatch import Replace
from lwskit.runtime.cache.reader import Reader
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError, InvalidRequest, NotFound
from lwskit.runtime.kinds import NODE, POD, SERVICE
from lwskit.runtime.objects import Obj, labels_of
from lwskit.testing.scripted import Listing, Script, Stream, bookmark, pod

Run = Callable[[Cache], Awaitable[None]]


@pytest.fixture
async def run(clock: Clock) -> AsyncIterator[Run]:
    tasks: list[asyncio.Task[None]] = []

    async def start(cache: Cache) -> None:
        tasks.append(asyncio.create_task(cache.run()))
        await clock.sleep(0.01)

    yield start
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, asyncio.CancelledError), outcome
    assert len(asyncio.all_tasks()) == 1


@pytest.fixture
def cache_of(clock: Clock) -> Callable[..., tuple[Cache, Script]]:
    def make(*parts: Listing | Stream, **options: object) -> tuple[Cache, Script]:
        script = Script(*parts)
        return Cache(Client(script), clock, random.Random(1), streaming=False, **options), script  # type: ignore[arg-type]

    return make


Make = Callable[..., tuple[Cache, Script]]


async def test_one_informer_for_each_kind_and_selection(cache_of: Make) -> None:
    cache, _ = cache_of()
    pods = cache.informer(POD)
    assert cache.informer(POD) is pods
    mine = cache.informer(POD, "t", "app=x")
    assert mine is not pods
    assert cache.informer(POD, "t", "app=x") is mine
    assert cache.informers() == [pods, mine]
    assert cache.informers(NODE) == []


async def test_a_namespace_on_a_cluster_scoped_kind_is_refused(cache_of: Make) -> None:
    """70 §17 Cache 23: a kind without namespaces cannot be kept for one."""
    with pytest.raises(ConfigurationError, match="Node is cluster-scoped; it cannot be cached for namespace 't'"):
        cache_of()[0].informer(NODE, "t")


async def test_the_store_of_a_kind(cache_of: Make) -> None:
    cache, _ = cache_of()
    with pytest.raises(ConfigurationError, match="Pod is not cached"):
        cache.store(POD)
    one = cache.informer(POD, "a")
    assert cache.store(POD) is one.store
    cache.informer(POD, "b")
    with pytest.raises(ConfigurationError, match="Pod has 2 informers"):
        cache.store(POD)
    everything = cache.informer(POD)
    assert cache.store(POD) is everything.store


async def test_informers_asked_for_later_are_run_too(cache_of: Make, run: Run, clock: Clock) -> None:
    cache, script = cache_of(Listing([pod("a", 5)], 7), Stream(1e6), Listing([], 8))
    pods = cache.informer(POD)
    await run(cache)
    await cache.wait_synced()
    assert cache.healthy
    services = cache.informer(SERVICE)
    assert not cache.healthy
    await services.wait_synced()
    assert [request.path for _, request in script.seen[::2]] == ["/api/v1/pods", "/api/v1/services"]
    with pytest.raises(ConfigurationError, match="runs already"):
        await cache.run()
    assert len(pods.store) == 1


async def test_an_informer_of_one_namespace_asks_for_that(cache_of: Make, run: Run) -> None:
    cache, script = cache_of(Listing([], 7))
    cache.informer(POD, "t", "app=x", "spec.nodeName=n")
    await run(cache)
    for _, request in script.seen:
        assert request.path == "/api/v1/namespaces/t/pods"
        assert {"labelSelector": "app=x", "fieldSelector": "spec.nodeName=n"}.items() <= dict(request.query).items()


async def test_an_answer_goes_to_the_informers_that_select_it(cache_of: Make) -> None:
    cache, _ = cache_of()
    everything = cache.informer(POD)
    mine = cache.informer(POD, label_selector="app=x")
    for informer in (everything, mine):
        informer.handle(Replace([], "7"))
    cache.ingest(POD, pod("a", 8, labels={"app": "y"}))
    cache.ingest(POD, pod("b", 9, labels={"app": "x"}))
    cache.ingest(SERVICE, pod("c", 10))
    assert (len(everything.store), len(mine.store)) == (2, 1)


async def test_an_informer_that_dies_ends_the_cache_with_its_error(cache_of: Make) -> None:
    cache, script = cache_of()
    cache.informer(POD)
    script.parts.append(ConfigurationError("this client has no server"))
    with pytest.raises(ConfigurationError, match="this client has no server"):
        await cache.run()
    assert not cache.running


# Reads.

LISTED = [
    pod("a", 5, labels={"app": "x"}),
    pod("b", 6, labels={"app": "x"}),
    pod("a", 7, namespace="u", labels={"app": "y"}),
]


async def test_reads_before_the_start_are_refused(cache_of: Make) -> None:
    reader = Reader(cache_of()[0])
    with pytest.raises(ConfigurationError, match="the cache is not started, can not read objects"):
        await reader.get(POD, "a", "t")


async def test_the_first_read_of_a_kind_waits_for_its_list(cache_of: Make, run: Run) -> None:
    """70 §17 Cache 29: the first read of a kind waits until its objects are there."""
    cache, script = cache_of(Listing(LISTED, 9))
    await run(cache)
    assert script.seen == []
    assert (await Reader(cache).get(POD, "b", "t"))["metadata"]["resourceVersion"] == "6"


async def test_with_fail_on_missing_a_kind_without_informer_is_refused(cache_of: Make, run: Run) -> None:
    cache, script = cache_of()
    await run(cache)
    with pytest.raises(ConfigurationError, match="Pod is not cached"):
        await Reader(cache, fail_on_missing=True).list(POD)
    assert script.seen == []


async def test_what_is_not_there_is_not_found_by_kind_and_name(cache_of: Make, run: Run) -> None:
    cache, _ = cache_of(Listing(LISTED, 9))
    await run(cache)
    with pytest.raises(NotFound) as e:
        await Reader(cache).get(POD, "x", "t")
    assert str(e.value) == 'Pod "x" not found'


async def test_a_copy_that_a_caller_changes_does_not_change_the_store(cache_of: Make, run: Run) -> None:
    """70 §17 Cache 27: what a caller does to an object that was read is not seen by the next reader."""
    cache, _ = cache_of(Listing(LISTED, 9))
    await run(cache)
    reader = Reader(cache)
    got = await reader.get(POD, "a", "t")
    got["metadata"]["labels"]["app"] = "changed"
    (await reader.list(POD, "u"))[0]["metadata"]["labels"].clear()
    assert (await reader.get(POD, "a", "t"))["metadata"]["labels"] == {"app": "x"}
    assert (await reader.get(POD, "a", "u"))["metadata"]["labels"] == {"app": "y"}
    shared = await reader.get(POD, "a", "t", copy=False)
    assert shared is await reader.get(POD, "a", "t", copy=False)


async def test_lists_by_namespace_labels_fields_and_limit(cache_of: Make, run: Run) -> None:
    def names(objects: list[Obj]) -> list[str]:
        return sorted(f"{o['metadata']['namespace']}/{o['metadata']['name']}" for o in objects)

    cache, _ = cache_of(Listing(LISTED, 9))
    reader = Reader(cache)
    reader.add_field_index(POD, "app", lambda obj: [labels_of(obj)["app"]])
    reader.add_field_index(POD, "metadata.name", lambda obj: [obj["metadata"]["name"]])
    await run(cache)
    assert names(await reader.list(POD)) == ["t/a", "t/b", "u/a"]
    assert names(await reader.list(POD, "t")) == ["t/a", "t/b"]
    assert names(await reader.list(POD, label_selector="app=x")) == ["t/a", "t/b"]
    assert names(await reader.list(POD, field_selector="app=x,metadata.name==a")) == ["t/a"]
    assert names(await reader.list(POD, "u", field_selector="metadata.name=a")) == ["u/a"]
    assert names(await reader.list(POD, field_selector="metadata.name=a", label_selector="app=y")) == ["u/a"]
    assert len(await reader.list(POD, limit=1)) == 1
    with pytest.raises(InvalidRequest, match="non-exact field matches are not supported by the cache"):
        await reader.list(POD, field_selector="app!=x")
    with pytest.raises(InvalidRequest, match=r"Index with name field:spec\.nodeName does not exist"):
        await reader.list(POD, field_selector="spec.nodeName=n")


async def test_the_namespace_of_a_cluster_scoped_kind_is_ignored(cache_of: Make, run: Run) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "1", "resourceVersion": "3"}}
    cache, _ = cache_of(Listing([node], 9), Stream(bookmark(10), 1e6))
    await run(cache)
    assert (await Reader(cache).get(NODE, "n", "anything"))["metadata"]["uid"] == "1"
