"""The database and its watches."""

from __future__ import annotations

import pytest

from lwskit.embedded.store import ADDED, DELETED, MODIFIED, OutrunError, StaleError, Store


def obj(name: str, **labels: str) -> dict:
    return {"metadata": {"name": name, "labels": labels}}


def seen(watch) -> list[tuple[str, str]]:
    return [(kind, entry.obj["metadata"]["name"]) for kind, entry in watch.take()]


def test_versions_grow_over_all_tables():
    store = Store()
    first, second = store.create("a", "x", obj("x")), store.create("b", "y", obj("y"))
    assert second.version == first.version + 1
    assert second.obj["metadata"]["resourceVersion"] == str(second.version)


def test_a_write_from_an_old_state_is_refused():
    store = Store()
    first = store.create("t", "x", obj("x"))
    store.update("t", "x", obj("x"), first)
    with pytest.raises(StaleError):
        store.update("t", "x", obj("x"), first)
    with pytest.raises(StaleError):
        store.delete("t", "x", first)
    with pytest.raises(StaleError):
        store.create("t", "x", obj("x"))


def test_lists_are_in_key_order_and_by_prefix():
    store = Store()
    for place in ("b/1", "a/2", "a-b/1", "a/1"):
        store.create("t", place, obj(place))
    assert [e.obj["metadata"]["name"] for e in store.list("t")] == ["a-b/1", "a/1", "a/2", "b/1"]
    assert [e.obj["metadata"]["name"] for e in store.list("t", "a/")] == ["a/1", "a/2"]
    assert store.count("t", "a/") == 2


async def test_a_watch_from_a_version_gets_what_came_after():
    store = Store()
    first = store.create("t", "x", obj("x"))
    second = store.update("t", "x", obj("x"), first)
    watch = store.watch("t", "", first.version)
    store.delete("t", "x", second)
    assert seen(watch) == [(MODIFIED, "x"), (DELETED, "x")]


async def test_a_watch_without_version_begins_with_what_is_there():
    store = Store()
    store.create("t", "x", obj("x"))
    watch = store.watch("t", "", None)
    store.create("t", "y", obj("y"))
    assert seen(watch) == [(ADDED, "x"), (ADDED, "y")]


async def test_an_object_enters_and_leaves_a_selection():
    store = Store()
    watch = store.watch("t", "", store.version, lambda o: o["metadata"]["labels"].get("in") == "yes")
    entry = store.create("t", "x", obj("x"))
    entry = store.update("t", "x", obj("x", **{"in": "yes"}), entry)
    entry = store.update("t", "x", obj("x", **{"in": "yes", "more": "1"}), entry)
    left = store.update("t", "x", obj("x"), entry)
    store.delete("t", "x", left)
    events = watch.take()
    assert [kind for kind, _ in events] == [ADDED, MODIFIED, DELETED]
    gone = events[-1][1]
    assert gone.obj["metadata"]["labels"] == {"in": "yes", "more": "1"}
    assert gone.obj["metadata"]["resourceVersion"] == str(left.version)


async def test_a_watch_that_is_outrun_is_told():
    store = Store(history=2)
    entry = store.create("t", "x", obj("x"))
    begin = entry.version
    for _ in range(3):
        entry = store.update("t", "x", obj("x"), entry)
    with pytest.raises(OutrunError) as caught:
        store.watch("t", "", begin)
    assert caught.value.asked == begin
    assert len(store.watch("t", "", caught.value.oldest).take()) == 2


def test_a_list_at_an_older_version():
    store = Store()
    first = store.create("t", "x", obj("x"))
    store.create("t", "y", obj("y"))
    store.update("t", "x", obj("x", new="1"), first)
    store.delete("t", "y", store.get("t", "y"))
    then = store.list_at("t", "", first.version)
    assert [(e.obj["metadata"]["name"], e.obj["metadata"]["labels"]) for e in then] == [("x", {})]
    assert [e.obj["metadata"]["name"] for e in store.list_at("t", "", first.version + 1)] == ["x", "y"]


def test_compaction_forgets():
    store = Store()
    first = store.create("t", "x", obj("x"))
    store.create("t", "y", obj("y"))
    store.compact()
    with pytest.raises(OutrunError):
        store.list_at("t", "", first.version)


async def test_a_watch_that_is_not_read_is_closed():
    store = Store(pending=2)
    watch = store.watch("t", "", store.version)
    for name in "abc":
        store.create("t", name, obj(name))
    assert watch.closed
    assert store.create("t", "d", obj("d"))


def test_objects_are_encoded_once():
    entry = Store().create("t", "x", obj("x"))
    assert entry.json is entry.json
