"""create_or_update and create_or_patch (specification: 70 §12)."""

from __future__ import annotations

import pytest

from lwskit.runtime.errors import Conflict
from lwskit.runtime.kinds import CONFIG_MAP, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj
from lwskit.runtime.owners import set_owner_reference
from lwskit.runtime.upsert import MutateError, Outcome, create_or_patch, create_or_update
from lwskit.testing import fake

WIDGET = Kind("example.com", "v1", "Widget", "widgets")


def config_map(**data: str) -> Obj:
    meta = {"name": "c", "namespace": "t"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **({"data": data} if data else {})}


def widget(**fields: Obj) -> Obj:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "t"}, **fields}


def writes(client: fake.FakeClient) -> list[str]:
    return [r.verb for r in client.interceptor.requests if r.verb not in ("get", "list")]


async def test_an_object_that_is_as_wanted_is_left_alone() -> None:
    """70 §17 Helpers and fakes 3: nothing is written when the mutate function changes nothing, or only the spelling."""
    client = fake.client([config_map(a="1")])

    def as_it_is(obj: Obj) -> None:
        obj["data"]["a"] = "1"
        obj["binaryData"] = {}
        obj["metadata"]["labels"] = None

    for upsert in (create_or_update, create_or_patch):
        outcome, obj = await upsert(client, CONFIG_MAP, config_map(), as_it_is)
        assert outcome == "unchanged"
        assert obj["data"] == {"a": "1"}
    assert writes(client) == []


async def test_a_mutate_function_may_not_rename() -> None:
    """70 §17 Helpers and fakes 4: changing the name or the namespace in the mutate function is an error."""
    for field in ("name", "namespace"):

        def moved(obj: Obj, field: str = field) -> None:
            obj["metadata"][field] = "other"

        for upsert in (create_or_update, create_or_patch):
            for client in (fake.client(namespaces=["t"]), fake.client([config_map()])):
                with pytest.raises(MutateError, match=r"^MutateFn cannot mutate object name and/or object namespace$"):
                    await upsert(client, CONFIG_MAP, config_map(), moved)
                assert writes(client) == []


async def test_what_is_absent_is_created_as_mutated_and_the_callers_object_stays() -> None:
    owner = {"metadata": {"name": "web", "namespace": "t", "uid": "u"}}

    async def wanted(obj: Obj) -> Obj:
        set_owner_reference(obj, owner, STATEFUL_SET)
        return {**obj, "data": {"a": "2"}}

    for upsert in (create_or_update, create_or_patch):
        client, given = fake.client(namespaces=["t"]), config_map(a="1")
        outcome, obj = await upsert(client, CONFIG_MAP, given, wanted)
        assert outcome is Outcome.CREATED
        assert given == config_map(a="1")
        assert obj == await client.get(CONFIG_MAP, "c", "t")
        assert (obj["data"], obj["metadata"]["ownerReferences"][0]["name"]) == ({"a": "2"}, "web")


async def test_an_update_replaces_and_notices_who_was_faster() -> None:
    client = fake.client(namespaces=["t"], field_manager="default")
    await client.create(CONFIG_MAP, config_map(a="1"))

    async def meanwhile(obj: Obj) -> None:
        await client.patch(CONFIG_MAP, "c", {"data": {"b": "theirs"}}, "t")
        obj["data"]["a"] = "2"

    with pytest.raises(Conflict):
        await create_or_update(client, CONFIG_MAP, config_map(), meanwhile)
    outcome, obj = await create_or_update(
        client, CONFIG_MAP, config_map(), lambda obj: obj | {"data": {"a": "2"}}, field_manager="mine"
    )
    assert (outcome, obj["data"]) == (Outcome.UPDATED, {"a": "2"})
    assert "mine" in {entry["manager"] for entry in obj["metadata"]["managedFields"]}


async def test_a_patch_leaves_alone_what_others_change_meanwhile() -> None:
    client = fake.client([config_map(a="1", old="x")])

    async def meanwhile(obj: Obj) -> None:
        await client.patch(CONFIG_MAP, "c", {"data": {"b": "theirs"}}, "t")
        obj["data"]["a"] = "2"
        del obj["data"]["old"]

    outcome, obj = await create_or_patch(client, CONFIG_MAP, config_map(), meanwhile)
    assert (outcome, obj["data"]) == (Outcome.UPDATED, {"a": "2", "b": "theirs"})


async def test_spec_and_status_are_patched_each_on_its_own() -> None:
    client = fake.client([widget(spec={"size": 1})], kinds=[WIDGET])

    def both(obj: Obj) -> None:
        obj["spec"]["size"] = 2
        obj["status"] = {"ready": 1}

    def only_status(obj: Obj) -> None:
        obj["status"] = {"ready": 2}

    first = await create_or_patch(client, WIDGET, widget(), both)
    assert (first.outcome, first.obj["spec"], first.obj["status"]) == ("updatedStatus", {"size": 2}, {"ready": 1})
    second = await create_or_patch(client, WIDGET, widget(), only_status)
    assert (second.outcome, second.obj["status"]) == ("updatedStatusOnly", {"ready": 2})
    assert (await create_or_patch(client, WIDGET, widget(), only_status)).outcome is Outcome.UNCHANGED
    assert [r.request.path.rpartition("/")[2] for r in client.interceptor.requests if r.verb == "patch"] == [
        "w",
        "status",
        "status",
    ]


async def test_the_status_is_not_written_with_a_creation() -> None:
    client = fake.client(kinds=[WIDGET], namespaces=["t"])
    outcome, obj = await create_or_patch(client, WIDGET, widget(), lambda obj: obj | {"status": {"ready": 1}})
    assert outcome is Outcome.CREATED
    assert "status" not in obj


async def test_another_reader_can_say_what_is_there() -> None:
    client = fake.client([config_map(a="1")])

    class Blind:
        async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
            return config_map(a="2")

    outcome, obj = await create_or_update(client, CONFIG_MAP, config_map(), lambda obj: None, reader=Blind())
    assert (outcome, obj["data"]) == (Outcome.UNCHANGED, {"a": "2"})
