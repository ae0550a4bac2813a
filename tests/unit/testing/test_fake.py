"""The client without a cluster (specification: 70 §13)."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.interceptor import InterceptedClient
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.errors import (
    AlreadyExists,
    ApiError,
    ConfigurationError,
    Conflict,
    Invalid,
    InvalidRequest,
    NotFound,
    ServiceUnavailable,
)
from lwskit.runtime.kinds import CONFIG_MAP, LEASE, NAMESPACE, POD, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj
from lwskit.testing import fake
from lwskit.testing.clock import FakeClock
from lwskit.testing.interceptors import matching
from lwskit.testing.virtual import EPOCH, VirtualClock

WIDGET = Kind("example.com", "v1", "Widget", "widgets")
SHELF = Kind("example.com", "v1", "Shelf", "shelves", namespaced=False)


def config_map(name: str = "c", data: dict[str, str] | None = None, **meta: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "t", **meta},
        "data": data or {"a": "1"},
    }


def pod(name: str = "p", node: str = "", **meta: Any) -> Obj:
    spec: Obj = {"containers": [{"name": "c", "image": "i"}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "t", **meta}, "spec": spec}


def widget(**fields: Any) -> Obj:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "t"}, **fields}


async def test_a_finalizer_keeps_a_deleted_object_until_it_is_removed() -> None:
    """70 §17 Helpers and fakes 5: deleted with a finalizer, an object stays with the time until that is taken away."""
    client = fake.client([config_map(finalizers=["example.com/keep"])])
    answer = await client.delete(CONFIG_MAP, "c", "t")
    held = await client.get(CONFIG_MAP, "c", "t")
    assert held["metadata"]["deletionTimestamp"]
    assert answer["metadata"]["uid"] == held["metadata"]["uid"]
    again = await client.update(CONFIG_MAP, {**held, "metadata": {**held["metadata"], "deletionTimestamp": None}})
    assert again["metadata"]["deletionTimestamp"] == held["metadata"]["deletionTimestamp"]
    del again["metadata"]["finalizers"]
    await client.update(CONFIG_MAP, again)
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAP, "c", "t")


async def test_the_object_and_its_status_are_written_each_through_its_own_endpoint() -> None:
    """70 §17 Helpers and fakes 6: an update of the object keeps the status, one of the status keeps the rest."""
    client = fake.client([widget(spec={"size": 1}, status={"ready": 1})], kinds=[WIDGET])
    stored = await client.get(WIDGET, "w", "t")
    after = await client.update(WIDGET, {**stored, "spec": {"size": 2}, "status": {"ready": 9}})
    assert (after["spec"], after["status"]) == ({"size": 2}, {"ready": 1})
    after = await client.update(WIDGET, {**after, "spec": {"size": 9}, "status": {"ready": 2}}, subresource="status")
    assert (after["spec"], after["status"]) == ({"size": 2}, {"ready": 2})
    with pytest.raises(Conflict):
        await client.update(WIDGET, stored, subresource="status")


async def test_injected_errors_surface() -> None:
    """70 §17 Helpers and fakes 7: an error from a function in a verb's place, or from a rule on requests, comes out."""
    client = fake.client([config_map()])

    async def refuse(inner: Any, *args: Any, **options: Any) -> Obj:
        raise Conflict("injected")

    with pytest.raises(Conflict, match="injected"):
        await InterceptedClient(client, update=refuse).update(CONFIG_MAP, config_map())
    client.interceptor.fail(matching("GET", "configmaps"), ServiceUnavailable("down"))
    with pytest.raises(ServiceUnavailable, match="down"):
        await client.get(CONFIG_MAP, "c", "t")
    assert (await client.get(CONFIG_MAP, "c", "t"))["data"] == {"a": "1"}


async def test_what_it_begins_with_is_kept_as_given_and_completed() -> None:
    full = {
        **pod(uid="u-1", creationTimestamp="2025-01-01T00:00:00Z", generation=7, labels={"app": "x"}),
        "status": {"phase": "Running"},
    }
    client = fake.client([full, config_map()], rng=random.Random(5), clock=FakeClock())
    seen = await client.get(POD, "p", "t")
    assert (seen["metadata"]["uid"], seen["metadata"]["generation"]) == ("u-1", 7)
    assert (seen["metadata"]["creationTimestamp"], seen["status"]["phase"]) == ("2025-01-01T00:00:00Z", "Running")
    assert seen["spec"]["restartPolicy"] == "Always"
    made = await client.get(CONFIG_MAP, "c", "t")
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert len(made["metadata"]["uid"]) == 36
    again = fake.client([full, config_map()], rng=random.Random(5), clock=FakeClock())
    assert await again.get(CONFIG_MAP, "c", "t") == made


def test_what_no_server_could_hold_is_refused_in_a_sentence() -> None:
    for objects, text in [
        ([config_map(deletionTimestamp="2026-01-01T00:00:00Z")], "deletionTimestamp and no finalizer"),
        ([config_map(), config_map()], "holds ConfigMap t/c already"),
        ([{**config_map(), "dta": {}}], r"cannot hold ConfigMap t/c: .*unknown field \"dta\""),
        ([widget()], r'no kind "Widget" in "example.com/v1"; give its CustomResourceDefinition'),
        ([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}], "needs metadata.namespace"),
        ([{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "t"}}], "needs metadata.name"),
    ]:
        with pytest.raises(ConfigurationError, match=text):
            fake.client(objects)
    with pytest.raises(ConfigurationError, match='no kind "Widget"'):
        fake.client().objects(WIDGET)


async def test_creation_follows_the_server() -> None:
    client = fake.client(namespaces=["t"])
    with pytest.raises(ApiError, match="resourceVersion should not be set on objects to be created"):
        await client.create(CONFIG_MAP, config_map(resourceVersion="5"))
    made = await client.create(CONFIG_MAP, config_map(deletionTimestamp="2026-01-01T00:00:00Z"))
    assert "deletionTimestamp" not in made["metadata"]
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAP, config_map())
    with pytest.raises(Invalid, match="name or generateName is required"):
        await client.create(CONFIG_MAP, {"metadata": {"namespace": "t"}})
    generated = await client.create(CONFIG_MAP, {"metadata": {"namespace": "t", "generateName": "x" * 70}})
    assert (generated["metadata"]["name"][:58], len(generated["metadata"]["name"])) == ("x" * 58, 63)
    with pytest.raises(NotFound, match='namespaces "elsewhere" not found'):
        await client.create(CONFIG_MAP, {"metadata": {"namespace": "elsewhere", "name": "c"}})
    with pytest.raises(Invalid, match=r"spec\.containers"):
        await client.create(POD, {"metadata": {"namespace": "t", "name": "p"}})


async def test_updates_look_at_the_version() -> None:
    client = fake.client([config_map(), widget()], kinds=[WIDGET])
    old = await client.get(CONFIG_MAP, "c", "t")
    new = await client.update(CONFIG_MAP, config_map(data={"a": "2"}))
    assert int(new["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])
    with pytest.raises(Conflict):
        await client.update(CONFIG_MAP, {**old, "data": {"a": "3"}})
    with pytest.raises(Invalid, match="must be specified for an update"):
        await client.update(WIDGET, widget(spec={}))
    lease = {"metadata": {"name": "l", "namespace": "t"}, "spec": {"holderIdentity": "me"}}
    assert (await client.update(LEASE, lease))["spec"]["holderIdentity"] == "me"
    with pytest.raises(NotFound):
        await client.update(CONFIG_MAP, config_map("absent"))


@pytest.mark.parametrize(("graceful", "lingers"), [(False, False), (True, True)])
async def test_a_pod_on_a_node_goes_at_once_unless_asked_otherwise(graceful: bool, lingers: bool) -> None:
    client = fake.client([pod("a", "n"), pod("b", "n")], graceful_deletion=graceful)
    await client.delete(POD, "a", "t")
    await client.delete_collection(POD, "t")
    assert [p["metadata"]["name"] for p in client.objects(POD)] == (["a", "b"] if lingers else [])
    for p in client.objects(POD):
        assert p["metadata"]["deletionGracePeriodSeconds"] == 30
        await client.delete(POD, p["metadata"]["name"], "t", grace_seconds=0)
    assert client.objects(POD) == []


async def test_a_pod_can_be_on_its_way_out_from_the_beginning() -> None:
    going = pod("a", "n", deletionTimestamp="2026-01-01T00:00:30Z", deletionGracePeriodSeconds=30)
    client = fake.client([going], graceful_deletion=True)
    assert (await client.get(POD, "a", "t"))["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"


async def test_nothing_collects_garbage_and_nobody_makes_pods() -> None:
    client = fake.client([config_map("owner")])
    owner = await client.get(CONFIG_MAP, "owner", "t")
    ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await client.create(CONFIG_MAP, config_map("owned", ownerReferences=[ref]))
    await client.delete(CONFIG_MAP, "owner", "t", propagation="Background")
    assert [o["metadata"]["name"] for o in client.objects(CONFIG_MAP, "t")] == ["owned"]


async def test_a_kind_without_a_status_endpoint_has_none() -> None:
    client = fake.client([widget()], crds=[fake.crd_of(WIDGET, status=False)])
    with pytest.raises(NotFound):
        await client.patch(WIDGET, "w", {"status": {"a": 1}}, "t", subresource="status")
    assert (await client.patch(WIDGET, "w", {"status": {"a": 1}}, "t"))["status"] == {"a": 1}


async def test_every_kind_of_patch_is_understood() -> None:
    client = fake.client([pod(labels={"a": "1"})])
    steps = [{"op": "add", "path": "/metadata/labels/b", "value": "2"}]
    await client.patch(POD, "p", steps, "t", patch_type=PatchType.JSON)
    await client.patch(POD, "p", {"metadata": {"labels": {"a": None}}}, "t")
    more = {"spec": {"containers": [{"name": "c", "image": "j"}]}}
    patched = await client.patch(POD, "p", more, "t", patch_type=PatchType.STRATEGIC)
    assert patched["metadata"]["labels"] == {"b": "2"}
    assert [c["image"] for c in patched["spec"]["containers"]] == ["j"]
    for kind in PatchType:
        if kind is not PatchType.APPLY:
            with pytest.raises(NotFound):
                await client.patch(POD, "x", [] if kind is PatchType.JSON else {}, "t", patch_type=kind)


async def test_applies_keep_account_of_who_owns_what() -> None:
    client = fake.client(namespaces=["t"], kinds=[WIDGET])
    await client.apply(WIDGET, widget(spec={"size": 1, "colors": ["red"]}), field_manager="one")
    with pytest.raises(Conflict, match=r'conflict with "one"'):
        await client.apply(WIDGET, widget(spec={"size": 2}), field_manager="two", force=False)
    await client.apply(WIDGET, widget(spec={"size": 2}), field_manager="two")
    left = await client.apply(WIDGET, widget(spec={}), field_manager="one")
    assert left["spec"] == {"size": 2}
    stale = {**widget(), "metadata": {"name": "gone", "namespace": "t", "uid": "u-1"}}
    with pytest.raises(Conflict, match="the provided object specified uid u-1, and no existing object was found"):
        await client.apply(WIDGET, stale, field_manager="one")


async def test_subresources_scale_eviction_and_token() -> None:
    meta = {"name": "web", "namespace": "t"}
    selector = {"matchLabels": {"app": "web"}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod()["spec"]}
    spec = {"selector": selector, "serviceName": "web", "template": template}
    sets = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}
    client = fake.client([sets, pod(), widget(spec={"replicas": 1})], crds=[fake.crd_of(WIDGET, scale=True)])
    scale = await client.kind(STATEFUL_SET, namespace="t").scale.get("web")
    assert scale["spec"] == {"replicas": 1}
    scale["spec"]["replicas"] = 3
    await client.kind(STATEFUL_SET, namespace="t").scale.update(scale)
    assert (await client.get(STATEFUL_SET, "web", "t"))["spec"]["replicas"] == 3
    await client.kind(WIDGET, namespace="t").scale.patch("w", {"spec": {"replicas": 4}})
    assert (await client.get(WIDGET, "w", "t"))["spec"]["replicas"] == 4
    await client.create(POD, {"metadata": {"name": "p", "namespace": "t"}}, subresource="eviction")
    assert client.objects(POD) == []


async def test_lists_select_by_labels_and_by_fields_that_servers_know() -> None:
    client = fake.client([pod("a", "n1", labels={"x": "1"}), pod("b", "n2", labels={"x": "2"})])
    assert [p["metadata"]["name"] for p in await client.list_all(POD, "t", label_selector="x in (2,3)")] == ["b"]
    assert [p["metadata"]["name"] for p in await client.list_all(POD, field_selector="spec.nodeName=n1")] == ["a"]
    with pytest.raises(InvalidRequest, match=r"field label not supported: spec\.hostname"):
        await client.list(POD, field_selector="spec.hostname=h")


async def test_a_dry_run_changes_nothing() -> None:
    client = fake.client([config_map()])
    assert (await client.patch(CONFIG_MAP, "c", {"data": {"a": "2"}}, "t", dry_run=True))["data"] == {"a": "2"}
    await client.create(CONFIG_MAP, config_map("d"), dry_run=True)
    await client.delete(CONFIG_MAP, "c", "t", dry_run=True)
    assert [o["data"] for o in client.objects(CONFIG_MAP, "t")] == [{"a": "1"}]


async def test_a_cache_follows_it(clock: VirtualClock) -> None:
    client = fake.client([config_map("a")])
    cache = Cache(client, clock, random.Random(1))
    store = cache.informer(CONFIG_MAP).store
    task = asyncio.create_task(cache.run())
    await cache.wait_synced()
    client.add(config_map("b"))
    await client.delete(CONFIG_MAP, "a", "t")
    await clock.sleep(1)
    assert [o["metadata"]["name"] for o in store.list("t")] == ["b"]
    task.cancel()
    await asyncio.wait({task})


async def test_the_namespaces_of_a_cluster_can_be_described() -> None:
    labelled = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "x"}}}
    client = fake.client([labelled], kinds=[SHELF])
    client.add({"apiVersion": "example.com/v1", "kind": "Shelf", "metadata": {"name": "s", "namespace": "ignored"}})
    found = await client.list_all(NAMESPACE, label_selector="team")
    assert [(o["metadata"]["name"], o["status"]["phase"]) for o in found] == [("default", "Active")]
    assert "namespace" not in (await client.get(SHELF, "s"))["metadata"]


async def test_time_is_the_loops(clock: VirtualClock) -> None:
    client = fake.client(namespaces=["t"])
    await clock.sleep(60)
    made = await client.create(CONFIG_MAP, config_map())
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:01:00Z"
    assert EPOCH.year == 2026


def test_outside_of_a_loop_time_is_this_machines() -> None:
    made = fake.client([config_map()]).objects(CONFIG_MAP, "t")[0]
    age = datetime.now(UTC) - datetime.fromisoformat(made["metadata"]["creationTimestamp"])
    assert abs(age.total_seconds()) < 60


async def test_other_defaults_keep_what_is_special_about_it() -> None:
    client = fake.client([pod("a", "n")]).with_defaults(field_manager="me")
    await client.delete(POD, "a", "t")
    assert isinstance(client, fake.FakeClient)
    assert client.objects(POD) == []
