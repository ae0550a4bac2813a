"""From change to notification, by the lines of the checklist (specification: 70 §17, Cache)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
import structlog

from lwskit.runtime.cache.transform import strip_managed_fields
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed
from lwskit.runtime.objects import Key, Obj, Selector, labels_of
from lwskit.testing.scripted import Fail, Listing, Stream, bookmark, event, pod, status

Start = Callable[..., Awaitable[Any]]
GONE = event("ERROR", status(410, "Expired"))


def marks(objects: Iterable[Obj]) -> list[str]:
    return sorted(f"{o['metadata']['name']}@{o['metadata']['resourceVersion']}" for o in objects)


class Mirror:
    """A view that keeps what it is told and can be made to fail."""

    def __init__(self) -> None:
        self.content: dict[str, Obj] = {}
        self.calls: list[tuple[Any, Any]] = []
        self.replaced = 0
        self.failures = 0

    def apply(self, old: Obj | None, new: Obj | None) -> None:
        self._fail()
        self.calls.append((old and old["metadata"]["uid"], new and new["metadata"]["uid"]))
        if old is not None:
            del self.content[old["metadata"]["uid"]]
        if new is not None:
            self.content[new["metadata"]["uid"]] = new

    def replace(self, objects: Iterable[Obj]) -> None:
        self._fail()
        self.replaced += 1
        self.content = {o["metadata"]["uid"]: o for o in objects}

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the view cannot")


async def test_a_modified_of_an_unknown_key_is_an_add_and_an_added_of_a_known_one_an_update(start: Start) -> None:
    """70 §17 Cache 13: what handlers are told follows from what is stored, not from the type of the event."""
    watch = Stream(event("MODIFIED", pod("a", 8)), event("ADDED", pod("a", 9)), 1e6)
    run = await start(Listing([], 7), watch)
    assert run.recorder.take() == [("add", "a@8", False), ("update", "a@8", "a@9")]


async def test_a_deletion_is_told_with_the_last_state_even_of_an_unknown_key(start: Start) -> None:
    watch = Stream(event("DELETED", pod("a", 8)), event("DELETED", pod("x", 9)), 1e6)
    run = await start(Listing([pod("a", 5)], 7), watch)
    assert run.recorder.take()[1:] == [("delete", "a@8", False), ("delete", "x@9", False)]
    assert run.stored() == []


async def test_versions_are_compared_as_numbers(start: Start) -> None:
    """F131: version 10 is later than version 9."""
    run = await start(Listing([], 7), Stream(event("ADDED", pod("a", 9)), event("MODIFIED", pod("a", 10)), 1e6))
    assert run.stored() == ["a@10"]


async def test_opaque_versions_work(start: Start) -> None:
    watch = Stream(event("ADDED", pod("a", "x9")), event("MODIFIED", pod("a", "b1")), 2.0)
    run = await start(Listing([pod("b", "q")], "q0"), watch, settle=3)
    assert run.stored() == ["a@b1", "b@q"]
    assert run.script.queries[-1]["resourceVersion"] == "b1"


async def test_what_vanished_in_a_relist_is_told_with_the_last_object_after_the_store_was_swapped(start: Start) -> None:
    """70 §17 Cache 14: what a new list lacks is told as gone, with its last known state and when the store has the
    list.
    """

    class Looker:
        def __init__(self) -> None:
            self.saw: list[list[str]] = []

        def on_add(self, obj: Obj, initial: bool) -> None:
            pass

        def on_update(self, old: Obj, new: Obj) -> None:
            pass

        def on_delete(self, obj: Obj, unknown: bool) -> None:
            self.saw.append(marks(run.informer.store.list()))

    looker = Looker()
    relist = Listing([pod("b", 6), pod("c", 9), pod("d", 8)], 10)
    run = await start(Listing([pod("a", 5), pod("b", 6), pod("c", 4)], 7), Stream(2.0, GONE), relist, settle=0)
    run.recorder.take()
    run.informer.add_handler(looker)
    await run.informer._clock.sleep(5)
    assert run.recorder.take() == [("delete", "a@5", True), ("update", "c@4", "c@9"), ("add", "d@8", False)]
    assert looker.saw == [["b@6", "c@9", "d@8"]]


@pytest.mark.parametrize("by", ["watch", "relist"])
async def test_another_uid_under_the_same_name_is_a_deletion_and_an_addition(start: Start, by: str) -> None:
    new = pod("a", 9, uid="second")
    tail = [Stream(event("MODIFIED", new), 1e6)] if by == "watch" else [Stream(2.0, GONE), Listing([new], 10)]
    view = Mirror()
    run = await start(Listing([pod("a", 5, uid="first")], 7), *tail, settle=5, views=[view])
    assert run.recorder.take()[1:] == [("delete", "a@5", True), ("add", "a@9", False)]
    assert set(view.content) == {"second"}
    if by == "watch":
        assert view.calls == [("first", None), (None, "second")]


async def test_a_handler_sees_the_store_and_the_views_at_its_version_or_later(start: Start) -> None:
    """70 §17 Cache 15: whoever is told of a version finds it, or a later one, in the store and in the views."""
    view = Mirror()
    saw: list[tuple[str, str, str]] = []

    class Looker:
        def on_add(self, obj: Obj, initial: bool) -> None:
            key = Key(obj["metadata"]["namespace"], obj["metadata"]["name"])
            stored = run.informer.store.get(key)
            uid = obj["metadata"]["uid"]
            versions = (obj, stored, view.content[uid])
            saw.append(tuple(o["metadata"]["resourceVersion"] for o in versions))  # type: ignore[arg-type]

        def on_update(self, old: Obj, new: Obj) -> None:
            self.on_add(new, False)

        def on_delete(self, obj: Obj, unknown: bool) -> None:
            assert obj["metadata"]["uid"] not in view.content

    watch = Stream(
        1.0, event("ADDED", pod("a", 8)), event("MODIFIED", pod("a", 9)), event("DELETED", pod("a", 10)), 1e6
    )
    run = await start(Listing([], 7), watch, views=[view])
    run.informer.add_handler(Looker())
    await run.informer._clock.sleep(2)
    assert saw == [("8", "8", "8"), ("9", "9", "9")]


async def test_a_raising_handler_is_told_further_and_affects_no_other(start: Start, clock: Clock) -> None:
    """70 §17 Cache 16: a handler that raises is told of what comes next, and nobody else notices."""

    class Raiser:
        told = 0

        def on_add(self, obj: Obj, initial: bool) -> None:
            self.told += 1
            raise RuntimeError("handler cannot")

        def on_update(self, old: Obj, new: Obj) -> None:
            self.on_add(new, False)

        def on_delete(self, obj: Obj, unknown: bool) -> None:
            self.on_add(obj, False)

    watch = [part for n in range(8, 11) for part in (1.0, event("MODIFIED", pod("a", n)))]
    run = await start(Listing([], 7), Stream(*watch, 1e6))
    raiser = Raiser()
    run.informer.add_handler(raiser)
    late = type(run.recorder)()
    run.informer.add_handler(late)
    with structlog.testing.capture_logs() as logs:
        await clock.sleep(5)
    assert raiser.told == 3
    assert len(late.calls) == len(run.recorder.calls) == 3
    assert [entry["event"] for entry in logs] == ["handler failed"] * 3


async def test_a_late_handler_gets_everything_as_initial_adds(start: Start, clock: Clock) -> None:
    run = await start(
        Listing([pod("a", 5)], 7), Stream(event("ADDED", pod("b", 8)), 10.0, event("ADDED", pod("c", 9)), 1e6)
    )
    late = type(run.recorder)()
    run.informer.add_handler(late)
    assert sorted(late.take()) == [("add", "a@5", True), ("add", "b@8", True)]
    await clock.sleep(10)
    assert late.take() == [("add", "c@9", False)]
    run.informer.remove_handler(late)
    run.informer.ingest(pod("d", 10))
    assert late.calls == []


async def test_a_relist_with_unchanged_objects_tells_no_handler(start: Start) -> None:
    same = [pod("a", 5), pod("b", 6)]
    run = await start(Listing(same, 7), Stream(2.0, GONE), Listing(same, 12), settle=5)
    assert run.script.queries[-1]["resourceVersion"] == "12"
    assert len(run.recorder.take()) == 2


async def test_a_resync_reaches_only_handlers_that_want_it_and_sends_no_request(start: Start, clock: Clock) -> None:
    """70 §17 Cache 18: a resync tells those whose period has passed the identical object twice, and asks the
    server nothing.
    """
    run = await start(Listing([pod("a", 5)], 7), resync=100.0)
    keen = type(run.recorder)()
    run.informer.add_handler(keen, resync=True)
    await clock.sleep(111)
    assert keen.take() == [("add", "a@5", True), ("update", "a@5", "a@5")]
    assert run.recorder.take() == [("add", "a@5", True)]
    assert len(run.script.seen) == 2


async def test_waiting_for_the_first_list(start: Start, clock: Clock) -> None:
    run = await start(ConnectionFailed("refused"), Listing([], 7))
    assert not run.informer.synced.is_set()
    assert not run.informer.healthy
    await run.informer.wait_synced()
    assert 0.8 <= clock.monotonic() <= 1.7


async def test_health_follows_the_watch_and_returns_when_what_was_missed_had_time_to_come(
    start: Start, clock: Clock
) -> None:
    changes: list[tuple[float, bool]] = []
    run = await start(Listing([], 7), Stream(2.0, ConnectionFailed("gone")), Fail(429, "TooManyRequests"))
    assert run.informer.healthy

    def note(healthy: bool) -> None:
        changes.append((clock.monotonic(), healthy))

    def fail(healthy: bool) -> None:
        raise RuntimeError("listener cannot")

    run.informer.add_health_handler(fail)
    run.informer.add_health_handler(note)
    with structlog.testing.capture_logs() as logs:
        await clock.sleep(2)
        assert not run.informer.healthy
        assert run.informer.last_error is not None
        await clock.sleep(10)
    reopened = run.script.times[-1]
    assert changes == [(2.0, False), (pytest.approx(reopened + 1), True)]
    assert run.informer.last_error is None
    assert [e["event"] for e in logs if "health" not in e["event"]] == [
        "list or watch failed; trying again",
        "watch works again",
    ]


async def test_a_watch_that_breaks_again_at_once_is_not_healthy_in_between(start: Start, clock: Clock) -> None:
    breaks = [Stream(0.5, bookmark(8), ConnectionFailed("gone"))] * 3
    run = await start(Listing([], 7), *breaks)
    changes: list[bool] = []
    run.informer.add_health_handler(changes.append)
    await clock.sleep(5)
    assert changes == [False, True]
    assert len(run.script.seen) == 5


# Views.


async def test_a_view_that_fails_is_given_everything_again(start: Start, clock: Clock) -> None:
    view = Mirror()
    watch = [part for n in range(8, 12) for part in (1.0, event("MODIFIED", pod(f"p{n}", n)))]
    run = await start(Listing([pod("a", 5)], 7), Stream(*watch, 1e6), views=[view])
    assert view.replaced == 1
    view.failures = 1
    with structlog.testing.capture_logs():
        await clock.sleep(1)
    assert (view.replaced, len(view.content)) == (2, 2)
    view.failures = 2
    with structlog.testing.capture_logs():
        await clock.sleep(1)
    assert (view.replaced, len(view.content)) == (2, 2)
    await clock.sleep(1)
    assert (view.replaced, len(view.content)) == (3, 4)
    await clock.sleep(1)
    assert (view.replaced, len(view.content), len(run.recorder.calls)) == (3, 5, 5)


async def test_a_late_view_starts_with_everything(start: Start) -> None:
    run = await start(Listing([pod("a", 5)], 7))
    view = Mirror()
    run.informer.add_view(view)
    assert list(view.content) == ["uid-a"]


# Answers to our own writes.


async def test_an_answer_to_our_own_write_is_taken_and_its_event_is_told_once(start: Start, clock: Clock) -> None:
    watch = Stream(
        2.0, event("MODIFIED", pod("a", 8)), event("MODIFIED", pod("a", 9)), event("MODIFIED", pod("a", 11)), 1e6
    )
    run = await start(Listing([pod("a", 5)], 7), watch)
    run.recorder.take()
    assert run.informer.ingest(pod("a", 9))
    assert run.stored() == ["a@9"]
    assert not run.informer.ingest(pod("a", 9))
    assert not run.informer.ingest(pod("a", 8))
    await clock.sleep(3)
    assert run.recorder.take() == [("update", "a@5", "a@9"), ("update", "a@9", "a@11")]


async def test_the_answer_to_a_create_is_an_add(start: Start, clock: Clock) -> None:
    run = await start(Listing([], 7), Stream(2.0, event("ADDED", pod("n", 8)), event("DELETED", pod("n", 9)), 1e6))
    assert run.informer.ingest(pod("n", 8))
    assert run.recorder.take() == [("add", "n@8", False)]
    await clock.sleep(3)
    assert run.recorder.take() == [("delete", "n@9", False)]


async def test_what_the_watch_said_is_gone_does_not_come_back(start: Start) -> None:
    watch = Stream(event("ADDED", pod("n", 8)), event("DELETED", pod("n", 9)), 1e6)
    run = await start(Listing([], 7), watch)
    assert not run.informer.ingest(pod("n", 8))
    assert run.stored() == []


async def test_a_watch_that_repeats_itself_brings_nothing_back_and_tells_nothing_twice(start: Start) -> None:
    old = [event("ADDED", pod("n", 8)), event("MODIFIED", pod("n", 9)), event("DELETED", pod("n", 10))]
    run = await start(Listing([pod("a", 5)], 7), Stream(*old, *old, *reversed(old), event("ADDED", pod("b", 11)), 1e6))
    assert run.stored() == ["a@5", "b@11"]
    told = [call for call in run.recorder.take() if call[1] != "a@5"]
    assert told == [("add", "n@8", False), ("update", "n@8", "n@9"), ("delete", "n@10", False), ("add", "b@11", False)]


async def test_what_came_and_went_in_a_gap_does_not_come_back_either(start: Start) -> None:
    run = await start(Listing([], 7), Stream(2.0, GONE), Listing([], 12), settle=5)
    assert not run.informer.ingest(pod("n", 9))
    assert not run.informer.ingest(pod("n", 12))
    assert run.informer.ingest(pod("n", 13))


async def test_a_bookmark_past_an_answer_makes_it_old(start: Start) -> None:
    run = await start(Listing([], 7), Stream(bookmark(20), 1e6))
    assert not run.informer.ingest(pod("n", 19))


async def test_the_answer_to_a_delete_with_finalizers_is_an_update(start: Start) -> None:
    run = await start(Listing([pod("a", 5)], 7))
    run.recorder.take()
    assert run.informer.ingest(pod("a", 8, deletionTimestamp="2026-01-01T00:00:00Z"))
    assert run.recorder.take() == [("update", "a@5", "a@8")]
    assert not run.informer.ingest(status(200, ""))


async def test_what_we_have_removed_is_told_once_and_stays_gone(start: Start, clock: Clock) -> None:
    stale = [event("MODIFIED", pod("a", 8, uid="one")), event("DELETED", pod("a", 9, uid="one"))]
    watch = Stream(2.0, *stale, event("ADDED", pod("a", 10, uid="two")), 1e6)
    mirror = Mirror()
    run = await start(Listing([pod("a", 5, uid="one")], 7), watch, views=[mirror])
    run.recorder.take()
    assert not run.informer.forget(Key("t", "a"), "two")
    assert run.informer.forget(Key("t", "a"), "one")
    assert not run.informer.forget(Key("t", "a"), "one")
    assert run.recorder.take() == [("delete", "a@5", False)]
    assert not run.informer.ingest(pod("a", 8, uid="one"))
    assert (run.stored(), mirror.content) == ([], {})
    await clock.sleep(3)
    assert run.recorder.take() == [("add", "a@10", False)]
    assert list(mirror.content) == ["two"]


async def test_a_list_from_before_our_deletion_does_not_bring_the_object_back(start: Start, clock: Clock) -> None:
    run = await start(
        Listing([pod("a", 5), pod("b", 6)], 7),
        Stream(2.0, GONE),
        Listing([pod("a", 5), pod("b", 6)], 8),
        Stream(2.0, event("DELETED", pod("a", 9)), event("ADDED", pod("c", 10)), 1e6),
    )
    run.recorder.take()
    assert run.informer.forget(Key("t", "a"), "uid-a")
    await clock.sleep(20)
    assert run.stored() == ["b@6", "c@10"]
    assert run.recorder.take() == [("delete", "a@5", False), ("add", "c@10", False)]


async def test_events_of_a_predecessor_do_not_replace_an_ingested_successor(start: Start, clock: Clock) -> None:
    stale = [event("MODIFIED", pod("a", 8, uid="one")), event("DELETED", pod("a", 9, uid="one"))]
    watch = Stream(
        2.0, *stale, event("ADDED", pod("a", 10, uid="two")), event("MODIFIED", pod("a", 11, uid="two")), 1e6
    )
    run = await start(Listing([pod("a", 5, uid="one")], 7), watch)
    run.recorder.take()
    assert run.informer.ingest(pod("a", 10, uid="two"))
    await clock.sleep(3)
    assert run.recorder.take() == [("delete", "a@5", True), ("add", "a@10", False), ("update", "a@10", "a@11")]


async def test_a_relist_that_is_older_than_an_answer_keeps_the_answer(start: Start, clock: Clock) -> None:
    run = await start(Listing([pod("a", 5)], 7), Stream(2.0, GONE), Listing([pod("a", 5)], 8), settle=0)
    run.recorder.take()
    run.informer.ingest(pod("a", 20))
    run.informer.ingest(pod("n", 21))
    await clock.sleep(5)
    assert run.stored() == ["a@20", "n@21"]
    assert run.recorder.take() == [("update", "a@5", "a@20"), ("add", "n@21", False)]


async def test_after_a_restore_from_a_backup_the_list_counts(start: Start) -> None:
    restored = [Fail(504, "Timeout", "Too large resource version"), Listing([pod("a", 3)], 4)]
    run = await start(Listing([pod("a", 50), pod("b", 51)], 60), Stream(2.0, GONE), *restored, settle=5)
    assert run.stored() == ["a@3"]
    assert run.recorder.take()[2:] == [("delete", "b@51", True), ("update", "a@50", "a@3")]


async def test_answers_outside_the_selection_or_before_the_first_list_are_left_to_the_watch(start: Start) -> None:
    run = await start(Fail(503, "ServiceUnavailable"), Listing([], 7), namespace="t", label_selector="app=x")
    mine = pod("n", 8, labels={"app": "x"})
    assert not run.informer.ingest(mine)
    await run.informer.wait_synced()
    assert not run.informer.ingest(pod("n", 8, labels={"app": "y"}))
    assert not run.informer.ingest(pod("n", 8, namespace="other", labels={"app": "x"}))
    assert run.informer.ingest(mine)


async def test_with_a_field_selector_only_known_objects_are_ingested(start: Start) -> None:
    run = await start(Listing([pod("a", 5)], 7), field_selector="spec.nodeName=n")
    assert not run.informer.ingest(pod("b", 8))
    assert run.informer.ingest(pod("a", 8))
    assert dict(run.script.seen[0][1].query)["fieldSelector"] == "spec.nodeName=n"


# Transform.

ENTRIES = [
    {"manager": "me", "operation": "Apply"},
    {"manager": "me", "operation": "Apply", "subresource": "status"},
    {"manager": "me", "operation": "Update"},
    {"manager": "kubelet", "operation": "Update"},
]


async def test_stored_objects_have_no_managed_fields_and_a_tombstone_is_not_transformed_again(start: Start) -> None:
    """70 §17 Cache 20: the usual transform strips managed fields once; what is told as gone is not transformed
    again.
    """
    seen: list[str] = []
    strip = strip_managed_fields()

    def transform(obj: Obj) -> Obj:
        seen.append(obj["metadata"]["name"])
        return strip(obj)

    listed = [pod("a", 5, managedFields=ENTRIES)]
    run = await start(Listing(listed, 7), Stream(2.0, GONE), Listing([], 9), settle=5, transform=transform)
    assert seen == ["a"]
    assert run.recorder.take()[1:] == [("delete", "a@5", True)]


def test_our_own_apply_entry_can_be_kept_and_the_argument_is_not_changed() -> None:
    whole = pod("a", 5, managedFields=ENTRIES)
    strip = strip_managed_fields("me")
    assert strip(whole)["metadata"]["managedFields"] == ENTRIES[:1]
    assert whole["metadata"]["managedFields"] == ENTRIES
    assert strip(strip(whole)) == strip(whole)
    assert "managedFields" not in strip_managed_fields()(whole)["metadata"]
    bare = pod("a", 5)
    assert strip(bare) is bare


async def test_a_transform_that_raises_costs_only_itself(start: Start) -> None:
    def transform(obj: Obj) -> Obj:
        raise ValueError("transform cannot")

    run = await start(Listing([pod("a", 5)], 7), transform=transform)
    assert run.stored() == ["a@5"]


# Indexes and selections.


def by_app(obj: Obj) -> list[str]:
    return [labels_of(obj)["app"]]


async def test_a_changed_value_is_no_longer_found_under_the_old_one(start: Start, clock: Clock) -> None:
    """70 §17 Cache 24: an object whose indexed value changes is found under the new one only."""
    first, second = pod("a", 5, labels={"app": "x"}), pod("a", 8, labels={"app": "y"})
    run = await start(Listing([first], 7), Stream(1.0, event("MODIFIED", second), 1.0, event("DELETED", second), 1e6))
    run.informer.add_index("app", by_app)
    store = run.informer.store
    assert marks(store.by_index("app", "x")) == ["a@5"]
    await clock.sleep(1)
    assert (store.by_index("app", "x"), marks(store.by_index("app", "y"))) == ([], ["a@8"])
    await clock.sleep(1)
    assert store.by_index("app", "y") == []


async def test_an_index_value_in_two_namespaces(start: Start) -> None:
    """70 §17 Cache 25: an index finds a value in one namespace and in all of them."""
    listed = [pod("a", 5, labels={"app": "x"}), pod("a", 6, namespace="u", labels={"app": "x"}), pod("odd", 6)]
    run = await start(Listing(listed, 7))
    run.informer.add_index("app", by_app)
    store = run.informer.store
    assert marks(store.by_index("app", "x", "u")) == ["a@6"]
    assert marks(store.by_index("app", "x")) == ["a@5", "a@6"]
    assert store.by_index("app", "x", "none") == []
    assert len(store) == 3
    assert marks(store.list("t")) == ["a@5", "odd@6"]
    assert marks(store.list(selector=Selector.parse("app=x"))) == ["a@5", "a@6"]
    with pytest.raises(ConfigurationError, match="exists already"):
        run.informer.add_index("app", by_app)
    with pytest.raises(ConfigurationError, match="'no' does not exist"):
        store.by_index("no", "x")
