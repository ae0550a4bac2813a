"""Lists with pages and selectors, watches, tables, metadata only."""

from __future__ import annotations

import orjson
import pytest
import yaml

from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import Expired, InvalidRequest, NotFound
from lwskit.runtime.kinds import CONFIG_MAP, CORE_EVENT, EVENT, POD

from .serving import ask, client, config_map, pod, server

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


async def lines(stream) -> list[dict]:
    return [orjson.loads(line) for line in (await stream.read()).splitlines()]


async def filled(count: int = 5):
    api = server()
    c = client(api)
    for i in range(count):
        await c.create(CONFIG_MAP, config_map(f"c{i}", {"even": str(i % 2 == 0).lower()}))
    return api, c


async def test_items_of_builtin_lists_do_not_repeat_their_kind():
    _, c = await filled(1)
    found = await c.list(CONFIG_MAP)
    assert found["kind"] == "ConfigMapList"
    assert "kind" not in found["items"][0]


async def test_pages_show_one_moment():
    _, c = await filled()
    first = await c.list(CONFIG_MAP, "default", limit=2)
    assert first["metadata"]["remainingItemCount"] == 3
    await c.delete(CONFIG_MAP, "c4", "default")
    await c.create(CONFIG_MAP, config_map("c33"))
    second = await c.list(CONFIG_MAP, "default", limit=2, continue_=first["metadata"]["continue"])
    third = await c.list(CONFIG_MAP, "default", limit=2, continue_=second["metadata"]["continue"])
    names = [o["metadata"]["name"] for page in (first, second, third) for o in page["items"]]
    assert names == ["c0", "c1", "c2", "c3", "c4"]
    assert first["metadata"]["resourceVersion"] == third["metadata"]["resourceVersion"]
    assert "continue" not in third["metadata"]


async def test_a_page_that_is_too_old_says_how_to_go_on():
    api, c = await filled()
    token = (await c.list(CONFIG_MAP, limit=2))["metadata"]["continue"]
    await c.create(CONFIG_MAP, config_map("z"))
    api.store.compact()
    with pytest.raises(Expired):
        await c.list(CONFIG_MAP, limit=2, continue_=token)
    status = await ask(api, f"/api/v1/configmaps?limit=2&continue={token}")
    rest = await c.list(CONFIG_MAP, continue_=status["metadata"]["continue"])
    assert [o["metadata"]["name"] for o in rest["items"]] == ["c2", "c3", "c4", "z"]


async def test_selectors():
    _, c = await filled()
    assert len((await c.list(CONFIG_MAP, label_selector="even=true"))["items"]) == 3
    assert len((await c.list(CONFIG_MAP, label_selector="even notin (true)", limit=1))["items"]) == 1
    assert [o["metadata"]["name"] for o in (await c.list(CONFIG_MAP, field_selector="metadata.name=c1"))["items"]] == [
        "c1"
    ]
    with pytest.raises(InvalidRequest, match="not a known field selector"):
        await c.list(CONFIG_MAP, field_selector="data.a=1")


async def test_pods_are_selected_by_node():
    c = client(server())
    await c.create(POD, pod("a", nodeName="n1"))
    await c.create(POD, pod("b"))
    assert [o["metadata"]["name"] for o in (await c.list(POD, field_selector="spec.nodeName=n1"))["items"]] == ["a"]
    assert [o["metadata"]["name"] for o in (await c.list(POD, field_selector="spec.nodeName!=n1"))["items"]] == ["b"]


async def test_a_version_from_the_future():
    api, _ = await filled(1)
    status = await ask(api, "/api/v1/configmaps?resourceVersion=99999")
    assert (status["code"], status["reason"]) == (504, "Timeout")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_a_watch_with_initial_events_ends_them_with_a_bookmark():
    _, c = await filled(2)
    params = {
        "sendInitialEvents": True,
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": True,
        "timeoutSeconds": 1,
    }
    async with c.watch(CONFIG_MAP, None, **params) as stream:
        chunks = stream.chunks()
        first = [orjson.loads(line) for line in (await anext(chunks)).splitlines()]
    assert [e["type"] for e in first] == ["ADDED", "ADDED", "BOOKMARK"]
    assert first[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_from_an_outrun_version_is_an_error_event():
    api, c = await filled(2)
    version = (await c.list(CONFIG_MAP))["metadata"]["resourceVersion"]
    await c.create(CONFIG_MAP, config_map("z"))
    api.store.compact()
    async with c.watch(CONFIG_MAP, None, resourceVersion=version) as stream:
        events = await lines(stream)
    assert [(e["type"], e["object"]["code"], e["object"]["reason"]) for e in events] == [("ERROR", 410, "Expired")]


async def test_leaving_a_watch_stops_it():
    api, c = await filled(1)
    async with c.watch(CONFIG_MAP, None, resourceVersion="0") as stream:
        await anext(stream.chunks())
    api.store.close_watches()
    await c.create(CONFIG_MAP, config_map("later"))


async def test_events_have_two_forms():
    c = client(server())
    await c.create(
        EVENT,
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "regarding": {"kind": "Pod", "name": "a", "namespace": "default"},
            "reason": "Started",
            "action": "Start",
            "type": "Normal",
            "note": "text",
            "reportingController": "example.com/c",
            "reportingInstance": "i",
        },
    )
    core = await c.get(CORE_EVENT, "e", "default")
    assert core["involvedObject"]["name"] == "a"
    assert core["message"] == "text"
    found = await c.list(CORE_EVENT, field_selector="involvedObject.name=a,reason=Started")
    assert len(found["items"]) == 1
    assert len((await c.list(EVENT, field_selector="regarding.name=b"))["items"]) == 0


async def test_tables_and_metadata_only():
    api = server()
    c = client(api)
    await c.create(POD, pod("a"))
    table = await ask(api, "/api/v1/namespaces/default/pods", TABLE)
    assert [d["name"] for d in table["columnDefinitions"]][:4] == ["Name", "Ready", "Status", "Restarts"]
    assert table["rows"][0]["cells"][:4] == ["a", "0/1", "Pending", "0"]
    bare = await ask(api, "/api/v1/pods", METADATA)
    assert bare["kind"] == "PartialObjectMetadataList"
    assert bare["items"][0].keys() == {"kind", "apiVersion", "metadata"}


async def test_absent_objects_and_paths():
    api = server()
    with pytest.raises(NotFound, match='pods "x" not found'):
        await client(api).get(POD, "x", "default")
    assert (await ask(api, "/api/v1/nothing"))["message"] == "the server could not find the requested resource"


async def test_an_answer_in_yaml():
    api, _ = await filled(1)
    request = HttpRequest("GET", "/api/v1/namespaces/default/configmaps/c0", (), {"accept": "application/yaml"})
    answer = await api.handle(request)
    assert answer.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(answer.body)["metadata"]["name"] == "c0"


async def test_an_answer_that_cannot_be_written():
    request = HttpRequest("GET", "/api/v1/pods", (), {"accept": "text/html"})
    assert (await server().handle(request)).status == 406


async def test_a_bookmark_of_a_table_carries_its_metadata_in_a_row():
    query = (
        ("watch", "1"),
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", "1"),
    )
    stream = server().open_watch(HttpRequest("GET", "/api/v1/pods", query, {"accept": TABLE}))
    first = orjson.loads((await anext(stream.chunks())).splitlines()[0])
    [row] = first["object"]["rows"]
    assert row["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
