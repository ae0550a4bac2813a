"""What the client offers beside the bare verbs: defaults, pages, handles, warnings, functions in the place of verbs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
import structlog

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.discovery import Discovery
from lwskit.runtime.client.interceptor import InterceptedClient
from lwskit.runtime.client.requests import PatchType, warnings
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.client.wrapping import WrappedClient
from lwskit.runtime.errors import (
    ApiError,
    ConfigurationError,
    ConnectionFailed,
    Expired,
    InvalidRequest,
    NotFound,
    TooManyRequests,
)
from lwskit.runtime.kinds import CONFIG_MAP, NODE, POD, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj
from lwskit.testing import fake
from lwskit.testing.interceptors import matching
from lwskit.testing.scripted import Fail, Listing, Script
from lwskit.testing.virtual import VirtualClock


def config_map(name: str = "c", **labels: str) -> Obj:
    meta = {"name": name, "namespace": "t", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "1"}}


@pytest.fixture
def client() -> fake.FakeClient:
    return fake.client([config_map(f"c{n}", n=str(n)) for n in range(5)])


def queries(client: fake.FakeClient, name: str) -> list[str | None]:
    return [dict(r.request.query).get(name) for r in client.interceptor.requests]


async def test_all_objects_come_in_pages_and_name_their_kind(client: fake.FakeClient) -> None:
    found = await client.list_all(CONFIG_MAP, "t", page=2)
    assert [o["metadata"]["name"] for o in found] == [f"c{n}" for n in range(5)]
    assert {(o["apiVersion"], o["kind"]) for o in found} == {("v1", "ConfigMap")}
    assert queries(client, "limit") == ["2", "2", "2"]


async def test_pages_that_the_server_has_forgotten_are_read_again_as_a_whole(client: fake.FakeClient) -> None:
    client.interceptor.fail(lambda r: "continue" in dict(r.query), Expired("too old"))
    found = await client.list_all(CONFIG_MAP, "t", page=2, label_selector="n!=3")
    assert [o["metadata"]["name"] for o in found] == ["c0", "c1", "c2", "c4"]
    assert queries(client, "limit") == ["2", "2", None]
    client.interceptor.fail(matching("GET"), Expired("too old"))
    with pytest.raises(Expired):
        await client.list_all(CONFIG_MAP, "t")


async def test_options_that_the_client_has_no_name_for_can_be_given(client: fake.FakeClient) -> None:
    listed = await client.list(CONFIG_MAP, "t", params={"limit": 1, "resourceVersionMatch": None})
    assert len(listed["items"]) == 1
    await client.delete_collection(CONFIG_MAP, "t", label_selector="n in (0,1)", params={"pretty": True})
    assert queries(client, "pretty") == [None, "true"]
    assert len(client.objects(CONFIG_MAP, "t")) == 3


async def test_a_collection_is_deleted_by_selectors_and_for_trial(client: fake.FakeClient) -> None:
    await client.delete_collection(CONFIG_MAP, "t", dry_run=True, propagation="Foreground", grace_seconds=0)
    body = orjson.loads(client.interceptor.requests[-1].request.body or b"")
    assert body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
    }
    assert len(client.objects(CONFIG_MAP, "t")) == 5
    await client.delete_collection(CONFIG_MAP, "t", field_selector="metadata.name=c1")
    await client.delete_collection(CONFIG_MAP, "t", label_selector="n=2")
    assert [o["metadata"]["name"] for o in client.objects(CONFIG_MAP, "t")] == ["c0", "c3", "c4"]


async def test_unknown_fields_are_dropped_warned_of_or_refused(client: fake.FakeClient) -> None:
    typo = {**config_map("x"), "dta": {}}
    with structlog.testing.capture_logs() as logs:
        await client.create(CONFIG_MAP, typo, field_validation="Ignore", dry_run=True)
        assert logs == []
        await client.create(CONFIG_MAP, typo, dry_run=True)
    assert [(e["log_level"], e["warning"], e["path"]) for e in logs] == [
        ("warning", 'unknown field "dta"', "/api/v1/namespaces/t/configmaps")
    ]
    strict = client.with_defaults(field_validation="Strict")
    for write in (
        strict.create(CONFIG_MAP, typo),
        strict.update(CONFIG_MAP, {**typo, "metadata": {"name": "c0", "namespace": "t"}}),
        strict.patch(CONFIG_MAP, "c0", {"dta": {}}, "t"),
        strict.apply(CONFIG_MAP, {**typo, "metadata": {"name": "c0", "namespace": "t"}}, field_manager="m"),
    ):
        with pytest.raises(ApiError, match="dta"):
            await write
    await strict.update(CONFIG_MAP, config_map("c0") | {"dta": {}}, field_validation="Ignore")


def test_warnings_are_read_one_by_one() -> None:
    text = '299 - "one, \\"two\\"", 299 kube "three" "Sat, 01 Jan 2026 00:00:00 GMT"'
    assert warnings({"warning": text}) == ['one, "two"', "three"]
    assert warnings({"warning": "nonsense"}) == []
    assert warnings({}) == []


async def test_a_client_can_write_for_trial_only(client: fake.FakeClient) -> None:
    trial = client.with_defaults(dry_run=True)
    await trial.create(CONFIG_MAP, config_map("x"))
    await trial.patch(CONFIG_MAP, "c0", {"data": {"a": "2"}}, "t")
    await trial.delete(CONFIG_MAP, "c0", "t")
    await trial.delete_collection(CONFIG_MAP, "t")
    assert [o["data"] for o in client.objects(CONFIG_MAP, "t")] == [{"a": "1"}] * 5
    await trial.delete(CONFIG_MAP, "c0", "t", dry_run=False)
    assert len(client.objects(CONFIG_MAP, "t")) == 4
    assert client.dry_run is False


async def test_an_apply_says_its_type_and_refuses_what_no_server_takes(client: fake.FakeClient) -> None:
    intent = {"metadata": {"name": "c0", "namespace": "t"}, "data": {"b": "2"}}
    assert (await client.apply(CONFIG_MAP, intent, field_manager="m"))["data"] == {"a": "1", "b": "2"}
    assert "kind" not in intent
    with pytest.raises(InvalidRequest, match=r"a ConfigMap to be applied needs metadata\.name"):
        await client.apply(CONFIG_MAP, {"metadata": {"namespace": "t"}}, field_manager="m")
    live = await client.get(CONFIG_MAP, "c0", "t")
    with pytest.raises(InvalidRequest, match=r"must not have metadata\.managedFields"):
        await client.apply(CONFIG_MAP, live, field_manager="m")


async def test_raw_requests_may_have_a_body(client: fake.FakeClient) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x"}}
    answer = await client.raw("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert answer["kind"] == "TokenReview"
    assert (await client.raw("GET", "/version"))["major"] == "1"


async def test_a_handle_knows_its_kind_and_its_namespace(client: fake.FakeClient) -> None:
    maps = client.kind(CONFIG_MAP, namespace="t")
    await maps.create({"metadata": {"name": "x"}, "data": {"a": "1"}})
    assert [o["metadata"]["name"] for o in await maps.list(field_selector="metadata.name=x")] == ["x"]
    seen = await maps.get("x")
    changed = await maps.update({**seen, "data": {"a": "2"}})
    assert (await maps.patch_from(changed, {**changed, "data": {"a": "3"}}, optimistic_lock=True))["data"]["a"] == "3"
    replace = [{"op": "replace", "path": "/data/a", "value": "4"}]
    assert (await maps.patch("x", replace, patch_type=PatchType.JSON))["data"]["a"] == "4"
    assert (await maps.apply({"metadata": {"name": "y"}, "data": {"b": "1"}}, field_manager="m"))["data"]["b"] == "1"
    await maps.delete("x", uid=seen["metadata"]["uid"])
    await maps.delete_collection(label_selector="n")
    assert [o["metadata"]["name"] for o in await maps.list()] == ["y"]
    assert await maps.in_namespace("default").list() == []
    async with maps.watch(resourceVersion="0") as response:
        assert b'"name":"y"' in await anext(response.chunks())


async def test_a_handle_leaves_cluster_scoped_objects_without_namespace(client: fake.FakeClient) -> None:
    node = await client.kind(NODE, namespace="t").create({"metadata": {"name": "n"}})
    assert "namespace" not in node["metadata"]


async def test_handles_reach_every_subresource() -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    meta = {"name": "p", "namespace": "t", "labels": {"app": "x"}}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
    sets: Obj = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s", "namespace": "t"}}
    sets["spec"] = {"serviceName": "s", "selector": {"matchLabels": {"app": "x"}}, "template": template}
    client = fake.client([{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, sets])
    pods = client.kind(POD, namespace="t")
    before = await pods.status.get("p")
    running = {**before, "status": {**before["status"], "phase": "Running"}}
    assert (await pods.status.update(running))["status"]["phase"] == "Running"
    failed = await pods.status.patch_from(running, {**running, "status": {**running["status"], "phase": "Failed"}})
    assert failed["status"]["phase"] == "Failed"
    condition = {"type": "example.com/x", "status": "True"}
    applied = {"metadata": {"name": "p", "namespace": "t"}, "status": {"conditions": [condition]}}
    after = await pods.status.apply(applied, field_manager="m")
    assert condition["type"] in {c["type"] for c in after["status"]["conditions"]}
    scale = client.kind(STATEFUL_SET).scale
    assert (await scale.patch("s", {"spec": {"replicas": 4}}, "t"))["spec"]["replicas"] == 4
    await pods.subresource("eviction").create({"metadata": {"name": "p", "namespace": "t"}})
    with pytest.raises(NotFound):
        await pods.get("p")


async def test_every_verb_can_be_taken_over(client: fake.FakeClient) -> None:
    seen: list[tuple[Any, ...]] = []

    def hook(name: str) -> Any:
        async def call(inner: Client, *args: Any, **options: Any) -> Obj:
            assert inner is client
            seen.append((name, *(a for a in args if isinstance(a, str)), *sorted(options)))
            return {"metadata": {}, "items": []}

        return call

    @asynccontextmanager
    async def watch(inner: Client, *args: Any, **options: Any) -> AsyncIterator[Any]:
        seen.append(("watch", *sorted(options)))
        yield None

    verbs = ("get", "list", "create", "update", "patch", "apply", "delete", "delete_collection")
    subs = ("subresource_get", "subresource_create", "subresource_update", "subresource_patch", "subresource_apply")
    taken = InterceptedClient(client, **{name: hook(name) for name in (*verbs, *subs)}, watch=watch)
    obj = config_map("c0")
    await taken.get(CONFIG_MAP, "c0", "t")
    await taken.get(CONFIG_MAP, "c0", "t", "status")
    await taken.list_all(CONFIG_MAP, "t", page=7)
    for verb in (taken.create, taken.update, taken.apply):
        await verb(CONFIG_MAP, obj)
        await verb(CONFIG_MAP, obj, subresource="status")
    await taken.patch_from(CONFIG_MAP, obj, obj)
    await taken.kind(CONFIG_MAP, namespace="t").status.patch("c0", {})
    await taken.delete(CONFIG_MAP, "c0", "t", grace_seconds=0)
    await taken.delete_collection(CONFIG_MAP, "t")
    async with taken.watch(CONFIG_MAP, "t", resourceVersion="0"):
        pass
    assert [call[0] for call in seen] == [
        "get",
        "subresource_get",
        "list",
        "create",
        "subresource_create",
        "update",
        "subresource_update",
        "apply",
        "subresource_apply",
        "patch",
        "subresource_patch",
        "delete",
        "delete_collection",
        "watch",
    ]
    assert seen[1] == ("subresource_get", "c0", "t", "status")
    assert seen[-3] == ("delete", "c0", "t", "grace_seconds")
    assert client.interceptor.requests == []


async def test_what_is_not_taken_over_goes_through(client: fake.FakeClient) -> None:
    async def late(inner: Client, *args: Any, **options: Any) -> Obj:
        return await inner.update(*args, **options, field_manager="late")

    passing = InterceptedClient(client, update=late).with_defaults(field_manager="outer")
    assert passing.field_manager == "outer"
    obj = await passing.create(CONFIG_MAP, config_map("x"))
    await passing.update(CONFIG_MAP, obj)
    assert len((await passing.list(CONFIG_MAP, "t"))["items"]) == 6
    await passing.patch(CONFIG_MAP, "x", {}, "t")
    await passing.apply(CONFIG_MAP, config_map("y"))
    await passing.get(CONFIG_MAP, "y", "t")
    await passing.delete(CONFIG_MAP, "y", "t")
    await passing.delete_collection(CONFIG_MAP, "t")
    async with passing.watch(CONFIG_MAP, "t", resourceVersion="0") as response:
        assert response.status == 200
    assert queries(client, "fieldManager")[:2] == ["outer", "late"]


async def test_a_wrapper_passes_everything_on(client: fake.FakeClient) -> None:
    wrapped = WrappedClient(client)
    assert (await wrapped.raw("GET", "/version"))["major"] == "1"
    obj = await wrapped.get(CONFIG_MAP, "c0", "t")
    assert (await wrapped.update(CONFIG_MAP, obj)) == obj
    assert len(await wrapped.list_all(CONFIG_MAP, "t", page=2)) == 5
    await wrapped.close()
    with pytest.raises(ConnectionFailed, match="closed"):
        await client.get(CONFIG_MAP, "c0", "t")


async def test_a_read_whose_connection_failed_is_repeated_after_a_second_and_a_write_is_not(
    clock: VirtualClock,
) -> None:
    script = Script(ConnectionFailed("reset"), ConnectionFailed("reset"), Listing(), ConnectionFailed("reset"))
    client = Client(script, clock=clock)
    await client.get(POD, "p", "t")
    assert script.times == [0, 1, 2]
    with pytest.raises(ConnectionFailed):
        await client.patch(POD, "p", {}, "t")
    assert len(script.seen) == 4
    for code in (409, 500, 503):
        with pytest.raises(ApiError):
            await Client(Script(Fail(code, "")), clock=clock).get(POD, "p", "t")
    assert clock.monotonic() == 2


async def test_a_read_is_not_repeated_where_that_cannot_help_nor_for_ever(clock: VirtualClock) -> None:
    hopeless = Script(ConnectionFailed("not trusted", retryable=False))
    with pytest.raises(ConnectionFailed, match="not trusted"):
        await Client(hopeless, clock=clock).get(POD, "p", "t")
    assert hopeless.times == [0]

    class BlackHole:
        asked = 0

        async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
            self.asked += 1
            await clock.sleep(30)
            raise ConnectionFailed("no answer within 30 s")

    hole = BlackHole()
    with pytest.raises(ConnectionFailed, match="no answer"):
        await Client(hole, clock=clock).list_all(POD)  # type: ignore[arg-type]
    assert (hole.asked, clock.monotonic()) == (2, 61)


@pytest.mark.parametrize("after", ["61", "4000000000", "9" * 400, "-5", "nan", "inf", "soon", "\u00b2"])
async def test_a_server_does_not_make_a_call_wait_for_ever(clock: VirtualClock, after: str) -> None:
    script = Script(Fail(429, "TooManyRequests", headers={"retry-after": after}))
    with pytest.raises(TooManyRequests) as e:
        await Client(script, clock=clock).get(POD, "p", "t")
    assert clock.monotonic() == 0
    assert e.value.retry_after == (float(after) if after in ("61", "4000000000") else None)
    script = Script(
        Fail(503, "", headers={"retry-after": "60"}), Fail(429, "", headers={"retry-after": "0"}), Listing()
    )
    await Client(script, clock=clock).get(POD, "p", "t")
    assert script.times == [0, 60, 60]


async def test_kinds_are_looked_up_once_and_again_when_one_is_missing() -> None:
    client = fake.client()
    discovery = Discovery(client)
    assert await discovery.find("v1", "Node") == NODE
    assert await discovery.find("v1", "Pod") == POD
    assert len(client.interceptor.requests) == 1
    with pytest.raises(ConfigurationError, match=r'no kind "Widget" in "example\.com/v1"; is its CustomResource'):
        await discovery.find("example.com/v1", "Widget")
    widget = Kind("example.com", "v1", "Widget", "widgets")
    client.add(fake.crd_of(widget))
    assert await discovery.find("example.com/v1", "Widget") == widget
    assert (await discovery.find("apps/v1", "StatefulSet")).namespaced


async def test_several_warnings_are_logged_with_an_error_too() -> None:
    class Warns:
        async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
            return HttpResponse(404, b"{}", {"warning": '299 - "old", 299 - "very old"'})

    with structlog.testing.capture_logs() as logs, pytest.raises(NotFound):
        await Client(Warns()).get(POD, "p", "t")  # type: ignore[arg-type]
    assert [e["warning"] for e in logs] == ["old", "very old"]
