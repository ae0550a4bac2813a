"""Reads of the past, through an interceptor in front of an API server."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import Expired, NotFound
from lwskit.runtime.kinds import CONFIG_MAP, NAMESPACE, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj
from lwskit.testing import fake
from lwskit.testing.interceptors import matching
from lwskit.testing.stale import as_of

WIDGET = Kind("example.com", "v1", "Widget", "widgets")


def config_map(name: str, value: str = "1", **labels: str) -> Obj:
    meta = {"name": name, "namespace": "t", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": value}}


@pytest.fixture
def client() -> fake.FakeClient:
    objects = [config_map("a", x="1"), config_map("b")]
    return fake.client(objects, kinds=[WIDGET])


async def names(client: fake.FakeClient, **selectors: Any) -> list[str]:
    return [o["metadata"]["name"] for o in await client.list_all(CONFIG_MAP, "t", **selectors)]


async def test_inside_the_block_reads_do_not_see_what_was_written_since(client: fake.FakeClient) -> None:
    before = await client.get(CONFIG_MAP, "a", "t")
    async with client.interceptor.stale_reads():
        await client.patch(CONFIG_MAP, "a", {"data": {"a": "2"}, "metadata": {"labels": {"x": "2"}}}, "t")
        await client.create(CONFIG_MAP, config_map("c"))
        await client.delete(CONFIG_MAP, "b", "t")
        assert await client.get(CONFIG_MAP, "a", "t") == before
        with pytest.raises(NotFound, match='configmaps "c" not found'):
            await client.get(CONFIG_MAP, "c", "t")
        assert (await client.get(CONFIG_MAP, "b", "t"))["kind"] == "ConfigMap"
        assert await names(client) == ["a", "b"]
        assert await names(client, label_selector="x=1", page=1) == ["a"]
        listed = await client.list(CONFIG_MAP, "t", resource_version="0")
        assert [o["metadata"]["name"] for o in listed["items"]] == ["a", "b"]
    assert (await client.get(CONFIG_MAP, "a", "t"))["data"] == {"a": "2"}
    assert await names(client) == ["a", "c"]


async def test_only_some_reads_can_be_stale(client: fake.FakeClient) -> None:
    async with client.interceptor.stale_reads(matching(path="configmaps/a$")):
        await client.delete(CONFIG_MAP, "a", "t")
        assert (await client.get(CONFIG_MAP, "a", "t"))["data"] == {"a": "1"}
        assert await names(client) == ["b"]


async def test_the_status_and_cluster_scoped_objects_are_stale_too(client: fake.FakeClient) -> None:
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "t"}}
    client.add({**widget, "status": {"n": 1}})
    async with client.interceptor.stale_reads():
        await client.patch(WIDGET, "w", {"status": {"n": 2}}, "t", subresource="status")
        await client.create(NAMESPACE, {"metadata": {"name": "later"}})
        assert (await client.get(WIDGET, "w", "t", "status"))["status"] == {"n": 1}
        with pytest.raises(NotFound, match='namespaces "later" not found'):
            await client.get(NAMESPACE, "later")
        with pytest.raises(NotFound, match=r'widgets\.example\.com "x" not found'):
            await client.get(WIDGET, "x", "t")
        assert (await client.raw("GET", "/api/v1"))["kind"] == "APIResourceList"


async def test_the_innermost_block_counts(client: fake.FakeClient) -> None:
    async with client.interceptor.stale_reads():
        await client.create(CONFIG_MAP, config_map("c"))
        async with client.interceptor.stale_reads():
            await client.create(CONFIG_MAP, config_map("d"))
            assert await names(client) == ["a", "b", "c"]
        assert await names(client) == ["a", "b"]


async def test_a_past_that_the_server_has_forgotten_is_its_answer(client: fake.FakeClient) -> None:
    async with client.interceptor.stale_reads():
        await client.create(CONFIG_MAP, config_map("c"))
        client.server.store.compact()
        with pytest.raises(Expired):
            await client.get(CONFIG_MAP, "a", "t")


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("POST", "/api/v1/namespaces/t/pods", ()),
        ("GET", "/api/v1/pods", (("watch", "true"),)),
        ("GET", "/api/v1/pods", (("continue", "x"),)),
        ("GET", "/apis/apps/v1/namespaces/t/statefulsets/s/scale", ()),
        ("GET", "/apis/apps/v1", ()),
        ("GET", "/version", ()),
    ],
)
def test_what_is_no_read_of_objects_is_left_alone(method: str, path: str, query: tuple[tuple[str, str], ...]) -> None:
    assert as_of(HttpRequest(method, path, query), "5") is None


def test_a_read_becomes_a_list_at_a_version() -> None:
    past = as_of(HttpRequest("GET", STATEFUL_SET.path("t", "s"), (("resourceVersion", "0"),)), "5")
    assert past is not None
    assert (past.request.path, past.name) == (STATEFUL_SET.path("t"), "s")
    assert dict(past.request.query) == {
        "resourceVersion": "5",
        "resourceVersionMatch": "Exact",
        "fieldSelector": "metadata.name=s",
    }
