"""The client's contract, a test for each line of its checklist (specification: 70 §17, Client)."""

from __future__ import annotations

import asyncio
from typing import TypedDict

import orjson
import pytest

from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import AlreadyExists, Conflict, InternalError, InvalidRequest, TooManyRequests
from lwskit.runtime.kinds import CONFIG_MAP, POD, Kind
from lwskit.runtime.objects import Obj, version_of
from lwskit.testing import fake
from lwskit.testing.scripted import Fail, Listing, Script
from lwskit.testing.virtual import VirtualClock

WIDGET = Kind("example.com", "v1", "Widget", "widgets")


def config_map(**data: str) -> Obj:
    meta = {"name": "c", "namespace": "t"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **({"data": data} if data else {})}


def widget(**fields: object) -> Obj:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "t"}, **fields}


def last_body(client: fake.FakeClient) -> Obj:
    return orjson.loads(client.interceptor.requests[-1].request.body or b"")


async def test_a_write_returns_what_the_server_has_now() -> None:
    """70 §17 Client 1: what a write returns has the new resourceVersion and what the server set, in dry runs too."""
    client = fake.client(namespaces=["t"])
    created = await client.create(CONFIG_MAP, config_map(a="1"))
    assert created["metadata"]["uid"]
    updated = await client.update(CONFIG_MAP, {**created, "data": {"a": "2"}})
    patched = await client.patch(CONFIG_MAP, "c", {"data": {"a": "3"}}, "t")
    applied = await client.apply(CONFIG_MAP, config_map(a="4"), field_manager="m")
    versions = [int(version_of(o)) for o in (created, updated, patched, applied)]
    assert versions == sorted(set(versions))
    assert applied == await client.get(CONFIG_MAP, "c", "t")
    dry = await client.create(CONFIG_MAP, {**config_map(), "metadata": {"name": "d", "namespace": "t"}}, dry_run=True)
    assert dry["metadata"]["uid"]


async def test_a_patch_from_a_copy_says_what_differs_and_lists_whole() -> None:
    """70 §17 Client 2: without a change `{}` is sent; a changed list is sent whole, a removed key as null."""
    client = fake.client([widget(spec={"size": 1, "colors": ["red", "blue"], "old": True})], kinds=[WIDGET])
    original = await client.get(WIDGET, "w", "t")
    await client.patch_from(WIDGET, original, original)
    assert last_body(client) == {}
    modified = {**original, "spec": {"size": 1, "colors": ["red", "green"]}}
    after = await client.patch_from(WIDGET, original, modified)
    assert last_body(client) == {"spec": {"colors": ["red", "green"], "old": None}}
    assert after["spec"] == {"size": 1, "colors": ["red", "green"]}


async def test_an_optimistic_lock_notices_a_concurrent_change() -> None:
    """70 §17 Client 3: with the lock, a patch of what somebody has changed since it was read is a conflict."""
    client = fake.client([config_map(a="1")])
    original = await client.get(CONFIG_MAP, "c", "t")
    modified = {**original, "data": {"a": "2"}}
    await client.patch(CONFIG_MAP, "c", {"data": {"b": "theirs"}}, "t")
    with pytest.raises(Conflict):
        await client.patch_from(CONFIG_MAP, original, modified, optimistic_lock=True)
    assert last_body(client) == {"data": {"a": "2"}, "metadata": {"resourceVersion": version_of(original)}}
    assert (await client.patch_from(CONFIG_MAP, original, modified))["data"] == {"a": "2", "b": "theirs"}
    with pytest.raises(InvalidRequest, match="an optimistic lock needs the resourceVersion"):
        await client.patch_from(CONFIG_MAP, config_map(), config_map(a="1"), optimistic_lock=True)


async def test_an_apply_needs_a_manager_and_takes_fields_only_by_force() -> None:
    """70 §17 Client 4: no apply without a field manager; a field of another is a conflict, or taken with force."""
    client = fake.client(namespaces=["t"])
    with pytest.raises(InvalidRequest, match="needs a field manager"):
        await client.apply(CONFIG_MAP, config_map(a="1"))
    await client.apply(CONFIG_MAP, config_map(a="1"), field_manager="one")
    with pytest.raises(Conflict, match=r'"one".*\.data\.a'):
        await client.apply(CONFIG_MAP, config_map(a="2"), field_manager="two", force=False)
    assert (await client.apply(CONFIG_MAP, config_map(a="2"), field_manager="two"))["data"] == {"a": "2"}


async def test_an_explicit_field_manager_wins_over_the_default() -> None:
    """70 §17 Client 5: writes carry the client's field manager unless the call names one; reads carry none."""
    client = fake.client(namespaces=["t"]).with_defaults(field_manager="default")
    assert isinstance(client, fake.FakeClient)
    obj = await client.create(CONFIG_MAP, config_map(a="1"))
    await client.update(CONFIG_MAP, obj, field_manager="explicit")
    await client.apply(CONFIG_MAP, config_map(b="1"))
    await client.get(CONFIG_MAP, "c", "t")
    await client.delete(CONFIG_MAP, "c", "t")
    sent = [dict(r.request.query).get("fieldManager") for r in client.interceptor.requests]
    assert sent == ["default", "explicit", "default", None, None]


async def test_only_the_servers_retry_after_has_a_write_repeated(clock: VirtualClock) -> None:
    """70 §17 Client 6: a 429 that names a second is repeated once after it; a 500 that names none is not repeated."""
    busy = Fail(429, "TooManyRequests", headers={"retry-after": "1"})
    script = Script(busy, Listing(), Fail(500, "InternalError"))
    client = Client(script, clock=clock)
    await client.create(CONFIG_MAP, config_map())
    assert script.times == [0, 1]
    with pytest.raises(InternalError):
        await client.create(CONFIG_MAP, config_map())
    assert len(script.seen) == 3
    endless = Client(Script(*[busy] * 20), clock=clock)
    with pytest.raises(TooManyRequests):
        await endless.get(POD, "p", "t")
    assert asyncio.get_running_loop().time() == 1 + 10


async def test_two_meanings_of_409_are_two_errors() -> None:
    """70 §17 Client 7: that an object exists and that it has changed are different errors."""
    client = fake.client([config_map(a="1")])
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAP, config_map())
    with pytest.raises(Conflict) as e:
        await client.update(
            CONFIG_MAP, {**config_map(), "metadata": {**config_map()["metadata"], "resourceVersion": "1"}}
        )
    assert not isinstance(e.value, AlreadyExists)


async def test_a_patch_of_the_status_changes_nothing_else() -> None:
    """70 §17 Client 8: what a patch of the status says of the spec has no effect, and the other way round."""
    client = fake.client([widget(spec={"size": 1})], kinds=[WIDGET])
    widgets = client.kind(WIDGET, namespace="t")
    after = await widgets.status.patch("w", {"spec": {"size": 2}, "status": {"ready": 1}})
    assert (after["spec"], after["status"]) == ({"size": 1}, {"ready": 1})
    after = await widgets.patch("w", {"spec": {"size": 3}, "status": {"ready": 9}})
    assert (after["spec"], after["status"]) == ({"size": 3}, {"ready": 1})


class Spec(TypedDict):
    size: int


class Shape(TypedDict):
    metadata: Obj
    spec: Spec


async def test_fields_that_this_program_does_not_know_survive() -> None:
    """70 §17 Client 9: what a newer version of a kind brings is still there after an object was read and updated."""
    newer = widget(spec={"size": 1, "novelty": {"deep": [1, None, "x"]}}, extra={"top": True})
    client = fake.client([newer], kinds=[WIDGET])
    widgets = client.kind(WIDGET, Shape, namespace="t")
    obj = await widgets.get("w")
    obj["spec"]["size"] += 1
    await widgets.update(obj)
    stored = await client.get(WIDGET, "w", "t")
    assert stored["spec"] == {"size": 2, "novelty": {"deep": [1, None, "x"]}}
    assert stored["extra"] == {"top": True}
