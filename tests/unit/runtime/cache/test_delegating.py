"""A client that reads from a cache and writes to the server (specification: 70 §2.12, §6.1)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.delegating import DelegatingClient
from lwskit.runtime.errors import ConfigurationError, InvalidRequest, NotFound
from lwskit.runtime.kinds import CONFIG_MAP, POD, SECRET
from lwskit.runtime.objects import Obj
from lwskit.testing import fake
from lwskit.testing.virtual import VirtualClock

pytestmark = pytest.mark.virtual


def config_map(name: str, **labels: str) -> Obj:
    meta = {"name": name, "namespace": "t", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "1"}}


@dataclass
class Both:
    """The client under test, and the one of the server behind it."""

    client: DelegatingClient
    server: fake.FakeClient
    cache: Cache

    def reads(self) -> int:
        return sum(r.verb in ("get", "list") for r in self.server.interceptor.requests)


@pytest.fixture
async def both() -> AsyncIterator[Both]:
    server = fake.client([config_map("a", x="1"), config_map("b"), config_map("c", x="1")])
    cache = Cache(server, VirtualClock(), random.Random(1))
    running = asyncio.create_task(cache.run())
    await asyncio.sleep(0)
    client = DelegatingClient(server, cache, live=[SECRET])
    await client.get(CONFIG_MAP, "a", "t")
    yield Both(client, server, cache)
    running.cancel()
    await asyncio.wait({running})


async def test_reads_come_from_the_cache_as_copies_that_name_their_kind(both: Both) -> None:
    before = both.reads()
    obj = await both.client.get(CONFIG_MAP, "a", "t")
    assert (obj["kind"], obj["apiVersion"]) == ("ConfigMap", "v1")
    obj["data"]["a"] = "mine"
    assert (await both.client.get(CONFIG_MAP, "a", "t"))["data"] == {"a": "1"}
    with pytest.raises(NotFound):
        await both.client.get(CONFIG_MAP, "x", "t")
    listed = await both.client.list(CONFIG_MAP, "t", label_selector="x=1")
    assert sorted(o["metadata"]["name"] for o in listed["items"]) == ["a", "c"]
    assert (listed["kind"], {o["kind"] for o in listed["items"]}) == ("ConfigMapList", {"ConfigMap"})
    assert len(await both.client.list_all(CONFIG_MAP)) == 3
    assert len((await both.client.list(CONFIG_MAP, limit=2))["items"]) == 2
    assert both.reads() == before


async def test_field_selectors_need_an_index(both: Both) -> None:
    with pytest.raises(InvalidRequest, match="does not exist; add one for ConfigMap"):
        await both.client.list(CONFIG_MAP, field_selector="data.a=1")
    both.client.reader.add_field_index(CONFIG_MAP, "data.a", lambda obj: [obj["data"]["a"]])
    assert len((await both.client.list(CONFIG_MAP, field_selector="data.a=1"))["items"]) == 3


async def test_some_reads_are_always_live(both: Both) -> None:
    before = both.reads()
    assert await both.client.list_all(SECRET, "t") == []
    with pytest.raises(NotFound):
        await both.client.get(SECRET, "s", "t")
    await both.client.list(CONFIG_MAP, "t", resource_version="0")
    await both.client.list(CONFIG_MAP, "t", params={"pretty": "true"})
    with pytest.raises(NotFound):
        await both.client.get(POD, "p", "t", "status")
    assert (await both.client.inner.get(CONFIG_MAP, "a", "t"))["data"] == {"a": "1"}
    assert both.reads() == before + 6
    assert both.cache.find(SECRET) is None
    assert both.cache.find(POD) is None


async def test_what_was_written_is_read_back_before_the_watch_tells(both: Both) -> None:
    client = both.client
    with both.server.interceptor.hold_watches():
        await client.create(CONFIG_MAP, config_map("d"))
        obj = await client.get(CONFIG_MAP, "d", "t")
        answer = await client.update(CONFIG_MAP, {**obj, "data": {"a": "2"}})
        answer["data"]["a"] = "mine"
        assert (await client.get(CONFIG_MAP, "d", "t"))["data"] == {"a": "2"}
        await client.patch(CONFIG_MAP, "d", {"data": {"a": "3"}}, "t")
        assert (await client.get(CONFIG_MAP, "d", "t"))["data"] == {"a": "3"}
        await client.kind(CONFIG_MAP).apply(
            {"metadata": {"name": "d", "namespace": "t"}, "data": {"a": "4"}}, field_manager="m"
        )
        assert (await client.get(CONFIG_MAP, "d", "t"))["data"] == {"a": "4"}
        kept = {"metadata": {"finalizers": ["example.com/keep"]}}
        await client.patch(CONFIG_MAP, "a", kept, "t")
        await client.delete(CONFIG_MAP, "a", "t")
        assert (await client.get(CONFIG_MAP, "a", "t"))["metadata"]["deletionTimestamp"]
        await client.delete(CONFIG_MAP, "d", "t")
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAP, "d", "t")
    await asyncio.sleep(1)
    assert sorted(o["metadata"]["name"] for o in await client.list_all(CONFIG_MAP)) == ["a", "b", "c"]


async def test_a_write_for_trial_is_not_read_back(both: Both) -> None:
    await both.client.patch(CONFIG_MAP, "a", {"data": {"a": "2"}}, "t", dry_run=True)
    await both.client.with_defaults(dry_run=True).delete(CONFIG_MAP, "b", "t")
    assert [o["data"] for o in await both.client.list_all(CONFIG_MAP)] == [{"a": "1"}] * 3


async def test_before_the_cache_runs_there_is_an_error() -> None:
    server = fake.client()
    client = DelegatingClient(server, Cache(server, VirtualClock(), random.Random(1)))
    with pytest.raises(ConfigurationError, match="the cache is not started"):
        await client.get(CONFIG_MAP, "a", "t")
