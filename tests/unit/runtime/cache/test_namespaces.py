"""Caches of several namespaces, and other settings, as requests and reads show them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.listwatch import Applied, Replace
from lwskit.runtime.cache.reader import Reader
from lwskit.runtime.cache.settings import ALL_NAMESPACES, CacheSettings, KindSettings, Settings
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed, LwskitError
from lwskit.runtime.kinds import CONFIG_MAP, NODE, POD, Kind
from lwskit.runtime.objects import Obj
from lwskit.testing.scripted import FOREVER, Listing, Stream, pod
from tests.unit.runtime.cache.conftest import Recorder


class Answers:
    """A transport that answers each list by its path, in whatever order they come; watches say nothing."""

    def __init__(self, **lists: Listing | Exception) -> None:
        self.lists = lists
        self.requests: list[HttpRequest] = []

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        self.requests.append(request)
        answer = self.lists.get(_namespace(request) or "all", Listing([], 7))
        if isinstance(answer, Exception):
            raise answer
        return HttpResponse(200, answer.body())

    @asynccontextmanager
    async def stream(self, request: HttpRequest, *, idle_timeout: float | None = None) -> AsyncIterator[Stream]:
        self.requests.append(request)
        yield Stream(FOREVER)

    async def close(self) -> None:
        pass

    def of(self, *, watch: bool) -> list[tuple[str, dict[str, str]]]:
        drop = ("timeoutSeconds", "watch", "resourceVersion", "limit")
        return [
            (r.path, {k: v for k, v in r.query if k not in drop})
            for r in self.requests
            if (("watch", "true") in r.query) == watch
        ]


def _namespace(request: HttpRequest) -> str:
    return request.path.partition("/namespaces/")[2].partition("/")[0]


Run = Callable[..., Any]


@pytest.fixture
async def run(clock: Clock) -> AsyncIterator[Run]:
    tasks: list[asyncio.Task[None]] = []

    async def start(answers: Answers, *kinds: Kind, **options: Any) -> Cache:
        cache = Cache(Client(answers), clock, random.Random(3), streaming=False, **options)
        for kind in kinds:
            cache.informer(kind)
        tasks.append(asyncio.create_task(cache.run()))
        await clock.sleep(0.1)
        return cache

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def places(objects: list[Obj]) -> list[str]:
    return sorted(f"{o['metadata']['namespace']}/{o['metadata']['name']}" for o in objects)


AB = Answers(a=Listing([pod("p", 3, namespace="a")], 7), b=Listing([pod("p", 4, namespace="b")], 8))


async def test_two_namespaces(run: Run) -> None:
    """70 §17 Cache 21: of two namespaces each has a list and a watch of its own, and reads of all merge them."""
    answers = Answers(**AB.lists)
    cache = await run(answers, POD, settings=CacheSettings(namespaces=["a", "b"]))
    watched = sorted(path for path, _ in answers.of(watch=True))
    assert watched == ["/api/v1/namespaces/a/pods", "/api/v1/namespaces/b/pods"]
    reader = Reader(cache)
    assert places(await reader.list(POD)) == ["a/p", "b/p"]
    assert places(await reader.list(POD, "b")) == ["b/p"]
    assert (await reader.get(POD, "p", "a"))["metadata"]["resourceVersion"] == "3"
    assert len(await reader.list(POD, limit=1)) == 1
    with pytest.raises(ConfigurationError, match="Pod is not cached for namespace 'c', only for a, b"):
        await reader.get(POD, "p", "c")
    assert cache.informer(POD, "a") is not cache.informer(POD)
    with pytest.raises(ConfigurationError, match="not cached for namespace 'c'"):
        cache.informer(POD, "c")


async def test_all_other_namespaces(run: Run) -> None:
    """70 §17 Cache 22: beside a namespace with settings of its own, the watch of all others leaves that one out."""
    answers = Answers(a=Listing([pod("p", 3, namespace="a")], 7), all=Listing([pod("p", 4, namespace="c")], 8))
    settings = CacheSettings(namespaces={"a": Settings(label_selector="x=1"), ALL_NAMESPACES: Settings()})
    cache = await run(answers, POD, settings=settings)
    assert sorted(answers.of(watch=True), key=str) == [
        ("/api/v1/namespaces/a/pods", {"allowWatchBookmarks": "true", "labelSelector": "x=1"}),
        ("/api/v1/pods", {"allowWatchBookmarks": "true", "fieldSelector": "metadata.namespace!=a"}),
    ]
    assert places(await Reader(cache).list(POD)) == ["a/p", "c/p"]
    assert places(await Reader(cache).list(POD, "c")) == ["c/p"]


async def test_it_is_synced_and_healthy_when_every_namespace_is(run: Run, clock: Clock) -> None:
    answers = Answers(**(AB.lists | {"b": ConnectionFailed("refused")}))
    cache = await run(answers, POD, settings=CacheSettings(namespaces=["a", "b"]))
    informer = cache.informer(POD)
    changes: list[bool] = []
    informer.add_health_handler(changes.append)
    assert places(informer.store.list()) == ["a/p"]
    assert not informer.synced.is_set()
    assert str(informer.last_error) == "refused"
    answers.lists["b"] = AB.lists["b"]
    await cache.wait_synced()
    assert places(informer.store.list()) == ["a/p", "b/p"]
    await clock.sleep(0)
    assert (informer.healthy, cache.healthy, changes) == (True, True, [True])


async def test_a_new_list_of_one_namespace_leaves_the_others_alone(run: Run) -> None:
    cache = await run(Answers(**AB.lists), POD, settings=CacheSettings(namespaces=["a", "b"]))
    informer, recorder = cache.informer(POD), Recorder()
    informer.add_handler(recorder)
    recorder.take()
    informer.handle(Replace([pod("q", 9, namespace="b")], "9"), 1)
    assert recorder.take() == [("delete", "p@4", True), ("add", "q@9", False)]
    assert places(informer.store.list()) == ["a/p", "b/q"]
    informer.handle(Applied(pod("p", 10, namespace="a")), 0)
    assert recorder.take() == [("update", "p@3", "p@10")]


async def test_answers_to_own_writes_find_their_namespace(run: Run) -> None:
    settings = CacheSettings(namespaces={"a": Settings(label_selector="x=1"), ALL_NAMESPACES: Settings()})
    cache = await run(Answers(), POD, settings=settings)
    for namespace in ("a", "c"):
        cache.ingest(POD, pod("p", 9, namespace=namespace))
    cache.ingest(POD, pod("q", 9, namespace="a", labels={"x": "1"}))
    store = cache.store(POD)
    assert places(store.list()) == ["a/q", "c/p"]
    cache.forget(POD, pod_key("c", "p"), "uid-p")
    assert places(store.list()) == ["a/q"]


def pod_key(namespace: str, name: str) -> Any:
    from lwskit.runtime.objects import Key

    return Key(namespace, name)


async def test_kinds_without_namespaces_are_kept_with_the_general_settings(run: Run) -> None:
    answers = Answers()
    settings = CacheSettings(default=Settings(label_selector="g"), namespaces={"a": Settings(label_selector="x")})
    await run(answers, NODE, settings=settings)
    assert answers.of(watch=False) == [("/api/v1/nodes", {"labelSelector": "g"})]


async def test_settings_that_cannot_be_are_refused_when_the_cache_is_made(clock: Clock) -> None:
    settings = CacheSettings(kinds={NODE: KindSettings(namespaces=["a"])})
    with pytest.raises(ConfigurationError, match="cluster-scoped"):
        Cache(Client(Answers()), clock, random.Random(1), settings=settings)


async def test_a_field_selector_of_one_namespace_narrows_the_path(run: Run) -> None:
    answers = Answers()
    settings = CacheSettings(kinds={POD: KindSettings(field_selector="metadata.namespace=x")})
    cache = await run(answers, POD, settings=settings)
    expected = {"fieldSelector": "metadata.namespace=x"}
    assert answers.of(watch=False) == [("/api/v1/namespaces/x/pods", expected)]
    assert [path for path, _ in answers.of(watch=True)] == ["/api/v1/namespaces/x/pods"]
    cache.ingest(POD, pod("p", 9, namespace="y"))
    cache.ingest(POD, pod("p", 9, namespace="x"))
    assert places(cache.store(POD).list()) == ["x/p"]


async def test_watches_without_bookmarks(run: Run) -> None:
    answers = Answers()
    settings = CacheSettings(default=Settings(bookmarks=False))
    await run(answers, POD, settings=settings)
    assert answers.of(watch=True) == [("/api/v1/pods", {})]


async def test_what_an_informer_is_asked_for_goes_before_the_settings(run: Run) -> None:
    settings = CacheSettings(default=Settings(label_selector="g", field_selector="f=1"), namespaces=["a"])
    cache = await run(Answers(), settings=settings)
    configured = cache.informer(POD)
    assert (configured.namespace, configured.label_selector, configured.field_selector) == ("a", "g", "f=1")
    own = cache.informer(POD, label_selector="l", field_selector="")
    assert (own.namespace, own.label_selector, own.field_selector) == ("a", "l", None)
    assert cache.find(POD) is configured
    assert cache.informer(POD, "a", "g", "f=1") is configured


async def test_the_transform_of_a_kind_and_namespace_is_used_there(run: Run) -> None:
    def mark(text: str) -> Callable[[Obj], Obj]:
        return lambda obj: {**obj, "mark": text}

    settings = CacheSettings(
        default=Settings(transform=mark("default")),
        namespaces=["a", "b"],
        kinds={POD: KindSettings(namespaces={"a": Settings(transform=mark("a")), "b": Settings()})},
    )
    answers = Answers(**AB.lists)
    cache = await run(answers, POD, CONFIG_MAP, settings=settings)
    marks = {o["metadata"]["namespace"]: o["mark"] for o in cache.store(POD).list()}
    assert marks == {"a": "a", "b": "default"}
    own = cache.informer(POD, label_selector="z", transform=mark("own"))
    await own.wait_synced()
    assert {o["mark"] for o in own.store.list()} == {"own"}


async def test_whether_reads_are_copies_is_a_setting(run: Run) -> None:
    settings = CacheSettings(namespaces={"a": Settings(copy=False), "b": Settings()})
    cache = await run(Answers(**AB.lists), POD, settings=settings)
    reader, store = Reader(cache), cache.store(POD)
    assert await reader.get(POD, "p", "a") is store.get(pod_key("a", "p"))
    assert await reader.get(POD, "p", "a", copy=True) is not store.get(pod_key("a", "p"))
    assert await reader.get(POD, "p", "b") is not store.get(pod_key("b", "p"))
    shared = [store.get(pod_key(o["metadata"]["namespace"], "p")) is o for o in await reader.list(POD)]
    assert sorted(shared) == [False, True]


async def test_the_handler_of_watch_errors_is_told_of_each_failed_round(run: Run, clock: Clock) -> None:
    told: list[tuple[str, str, str]] = []

    def note(kind: Kind, namespace: str, error: LwskitError) -> None:
        told.append((kind.kind, namespace, str(error)))

    answers = Answers(**(AB.lists | {"b": ConnectionFailed("refused")}))
    await run(answers, POD, settings=CacheSettings(namespaces=["a", "b"]), on_watch_error=note)
    await clock.sleep(2)
    assert told
    assert set(told) == {("Pod", "b", "refused")}
