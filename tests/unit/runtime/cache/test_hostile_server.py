"""What no API server should send: it fails a request or is passed over, and never ends the informer or empties it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
import structlog

from lwskit.runtime.cache.listwatch import Applied, Replace, WatchEvent
from lwskit.runtime.cache.watcher import Watcher
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj
from lwskit.runtime.tasks import TaskOwner
from lwskit.testing.scripted import Listing, Script, Stream, bookmark, event, pod, status

Start = Callable[..., Awaitable[Any]]

GONE = Stream(2.0, event("ERROR", status(410, "Expired")))
LIST = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}
NAMED = {"name": "a", "namespace": "t", "uid": "u", "resourceVersion": "8"}


@dataclass
class Body(Listing):
    """A list answer that is anything."""

    anything: Any = None

    def body(self) -> bytes:
        return orjson.dumps(self.anything)


NO_LISTS: dict[str, Any] = {
    "null": None,
    "an array": [],
    "a text": "x",
    "a failure": status(503, "ServiceUnavailable", "proxy"),
    "a success": {"kind": "Status", "status": "Success", "metadata": {"resourceVersion": "9"}, "items": []},
    "bare metadata": {"metadata": {}},
    "without kind": {"metadata": {"resourceVersion": "9"}, "items": []},
    "a pod": pod("x", 9),
    "a table": {"kind": "Table", "metadata": {"resourceVersion": "9"}, "rows": []},
    "without version": {"kind": "PodList", "metadata": {}, "items": []},
    "a version that is a number": {"kind": "PodList", "metadata": {"resourceVersion": 9}, "items": []},
    "metadata that are a list": {"kind": "PodList", "metadata": [], "items": []},
    "items that are a text": LIST | {"items": "x"},
    "a token that is a number": {**LIST, "metadata": {"resourceVersion": "9", "continue": 5}, "items": []},
    "an item that is a text": LIST | {"items": ["x"]},
    "an item without metadata": LIST | {"items": [{}]},
    "metadata of an item that are a text": LIST | {"items": [{"metadata": "name"}]},
    "metadata of an item that are a list": LIST | {"items": [{"metadata": ["name"]}]},
    "an item without name": LIST | {"items": [{"metadata": {"namespace": "t"}}]},
    "a name that is a list": LIST | {"items": [{"metadata": NAMED | {"name": ["x"]}}]},
    "a namespace that is a list": LIST | {"items": [{"metadata": NAMED | {"namespace": ["x"]}}]},
    "a version of an item that is a number": LIST | {"items": [{"metadata": NAMED | {"resourceVersion": 8}}]},
    "labels that are a list": LIST | {"items": [{"metadata": NAMED | {"labels": ["x"]}}]},
}


@pytest.mark.parametrize("answer", NO_LISTS.values(), ids=NO_LISTS.keys())
async def test_an_answer_that_is_no_list_fails_the_round_and_changes_nothing(start: Start, answer: Any) -> None:
    """70 §2.7: whatever is wrong with a list ends the round."""
    failed: list[str] = []
    run = await start(
        Listing([pod("a", 5)], 7),
        GONE,
        Body(anything=answer),
        on_watch_error=lambda scope, error: failed.append(str(error)),
        settle=3.7,
    )
    assert run.recorder.take() == [("add", "a@5", True)]
    assert run.stored() == ["a@5"]
    assert not run.informer.healthy
    assert len(failed) == 1
    assert str(run.informer.last_error) == failed[0]


async def test_after_an_answer_that_was_no_list_another_one_is_asked_for(start: Start) -> None:
    run = await start(Body(anything={"metadata": {}}), Listing([pod("a", 5)], 7), settle=2)
    assert run.stored() == ["a@5"]
    assert run.informer.healthy


@pytest.mark.parametrize("answer", [LIST, LIST | {"items": None}, {**LIST, "kind": "Podding", "items": []}])
async def test_an_empty_list_is_one_however_it_is_written(start: Start, answer: Obj) -> None:
    run = await start(Listing([pod("a", 5)], 7), GONE, Body(anything=answer), settle=4)
    assert run.stored() == []
    assert run.informer.healthy


async def test_null_in_metadata_is_as_if_it_were_absent(start: Start) -> None:
    nulls: Any = {"namespace": None, "labels": None, "annotations": None}
    listed = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "8"} | nulls}
    watched = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "b", "uid": "v", "resourceVersion": "10"} | nulls,
    }
    run = await start(Body(anything=LIST | {"items": [listed]}), Stream(event("ADDED", watched), 1e6))
    assert run.stored() == ["a@8", "b@10"]
    assert [obj["metadata"].get("namespace", "") for obj in run.informer.store] == ["", ""]


ODD: dict[str, dict[str, Any]] = {
    "no name": {"name": ""},
    "a name that is a number": {"name": 7},
    "a name that is a list": {"name": ["x"]},
    "a name that is a mapping": {"name": {"x": 1}},
    "a namespace that is a list": {"namespace": ["t"]},
    "a UID that is a list": {"uid": ["u"]},
    "a version that is a number": {"resourceVersion": 9},
    "a version that is a list": {"resourceVersion": ["9"]},
    "labels that are a text": {"labels": "x"},
    "annotations that are a list": {"annotations": ["x"]},
}


@pytest.mark.parametrize("meta", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
async def test_an_event_whose_object_cannot_be_read_is_passed_over(start: Start, kind: str, meta: Obj) -> None:
    """70 §2.6: log, skip."""
    odd = {"kind": "Pod", "apiVersion": "v1", "metadata": NAMED | meta}
    with structlog.testing.capture_logs() as logs:
        run = await start(
            Listing([pod("a", 5)], 7), Stream(event(kind, odd), event("ADDED", pod("b", 10)), 1e6), settle=2
        )
    assert run.stored() == ["a@5", "b@10"]
    assert run.informer.healthy
    assert len([entry for entry in logs if entry["event"] == "passed over in a watch"]) == 1


@pytest.mark.parametrize("version", [77, None, "", ["9"]])
async def test_a_bookmark_without_a_version_is_passed_over(start: Start, version: Any) -> None:
    odd = event("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": version}})
    run = await start(Listing([], 7), Stream(odd, event("ADDED", pod("b", 9)), 2.0), settle=3)
    assert run.stored() == ["b@9"]
    assert run.script.queries[-1]["resourceVersion"] == "9"


@pytest.mark.parametrize("meta", ODD.values(), ids=ODD.keys())
async def test_a_streamed_list_with_an_object_that_cannot_be_read_is_asked_for_plainly(start: Start, meta: Obj) -> None:
    odd = {"kind": "Pod", "apiVersion": "v1", "metadata": NAMED | meta}
    stream = Stream(event("ADDED", odd), bookmark(9, end=True), 1e6)
    run = await start(stream, Listing([pod("a", 5)], 9), streaming=True)
    assert run.stored() == ["a@5"]
    assert run.informer.healthy


@pytest.mark.parametrize("meta", [{"annotations": ["x"]}, {"resourceVersion": 9}, {"resourceVersion": ""}])
async def test_a_streamed_list_that_does_not_end_properly_is_asked_for_plainly(start: Start, meta: Obj) -> None:
    whole: Obj = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}
    end = event("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": whole | meta})
    run = await start(Stream(event("ADDED", pod("b", 5)), end, 1e6), Listing([pod("a", 5)], 9), streaming=True)
    assert run.stored() == ["a@5"]


async def test_a_server_that_wants_to_be_left_alone_for_ever_is_asked_again(start: Start) -> None:
    busy = event("ERROR", status(429, "TooManyRequests", retryAfterSeconds=1e300))
    run = await start(Listing([], 7), Stream(busy), settle=301)
    assert len(run.script.queries) == 3


# Exceptions that nobody thought of.


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_exception_that_nobody_foresaw_is_a_failed_round(start: Start, clock: Clock, streaming: bool) -> None:
    failed: list[str] = []
    with structlog.testing.capture_logs() as logs:
        run = await start(
            RuntimeError("transport broken"),
            Listing([pod("a", 5)], 7),
            streaming=streaming,
            on_watch_error=lambda scope, error: failed.append(str(error)),
        )
        assert failed == ["following pods failed with RuntimeError: transport broken"]
        assert not run.informer.healthy
        assert len(run.script.seen) == 1
        await clock.sleep(2)
    assert run.stored() == ["a@5"]
    assert run.informer.healthy
    assert [entry.get("exc_info") for entry in logs if entry["log_level"] == "error"] == [True]


async def test_a_sink_that_fails_gets_the_whole_list_again(clock: Clock) -> None:
    told: list[WatchEvent] = []

    def sink(told_now: WatchEvent) -> None:
        told.append(told_now)
        if isinstance(told_now, Applied):
            raise KeyError("metadata")

    script = Script(Listing([], 7), Stream(event("ADDED", pod("a", 8)), 1e6), Listing([pod("a", 8)], 8))
    watcher = Watcher(POD, Client(script), clock, random.Random(1), streaming=False)
    async with TaskOwner("test") as owner:
        task = owner.start(watcher.run(sink), "watcher")
        await clock.sleep(0.5)
        assert not watcher.healthy
        assert script.open == 0
        await clock.sleep(2)
        task.cancel()
    assert [type(one) for one in told] == [Replace, Applied, Replace]


async def test_a_handler_of_watch_errors_that_fails_ends_nothing(start: Start) -> None:
    def handler(scope: Any, error: Exception) -> None:
        raise ValueError("no")

    run = await start(Body(anything=[]), Listing([pod("a", 5)], 7), on_watch_error=handler, settle=2)
    assert run.stored() == ["a@5"]


# Watches that end as soon as they begin.

LINES = {
    "a bookmark": bookmark(7),
    "a line that is passed over": event("ADDED", {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}}),
    "an event": event("MODIFIED", pod("a", 8)),
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
async def test_watches_that_end_at_once_with_a_line_each_are_not_opened_in_a_hot_loop(
    start: Start, line: bytes
) -> None:
    shown = [part for _ in range(50) for part in (Stream(line),)]
    run = await start(Listing([pod("a", 7)], 7), *shown, settle=0)
    opened = len(run.script.seen) - 1
    assert opened <= 4
    assert not run.informer.healthy
    assert run.informer.last_error is not None


async def test_three_short_watches_in_a_row_are_followed_up_at_once_and_a_long_one_starts_anew(start: Start) -> None:
    def short(version: int) -> Stream:
        return Stream(event("MODIFIED", pod("a", version)))

    shorts = [short(n) for n in (8, 9, 10)]
    run = await start(
        Listing([pod("a", 7)], 7), *shorts, Stream(2.0, bookmark(11)), *(short(n) for n in (12, 13, 14)), settle=2.5
    )
    assert run.script.times == [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0]
    assert run.stored() == ["a@14"]
    assert run.informer.healthy


# Functions of the user.


def _logged(logs: list[Any], text: str) -> list[Any]:
    return [entry for entry in logs if entry["event"].startswith(text)]


def renamed(obj: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "name": "z"}}


@pytest.mark.parametrize("result", [None, {}, "x", {"metadata": "x"}, {"metadata": {}}, renamed])
async def test_an_object_is_stored_as_it_came_where_a_transform_returns_none(start: Start, result: Any) -> None:
    def spoil(obj: Obj) -> Any:
        if obj["metadata"]["name"] == "c":
            return {**obj, "kept": True}
        return result(obj) if callable(result) else result

    with structlog.testing.capture_logs() as logs:
        run = await start(
            Listing([pod("a", 5), pod("c", 6)], 7), Stream(event("ADDED", pod("b", 8)), 1e6), transform=spoil
        )
    assert run.stored() == ["a@5", "b@8", "c@6"]
    assert [obj["metadata"]["name"] for obj in run.informer.store if "kept" in obj] == ["c"]
    told = _logged(logs, "transform failed")
    assert [entry["object"] for entry in told] == ["t/a", "t/b"]
    assert all("spoil" in entry["function"] and entry["error"] for entry in told)


@pytest.mark.parametrize("values", ["abc", None, [["x"]], ["good", {}], 5])
async def test_an_object_is_not_indexed_where_a_function_returns_no_values(start: Start, values: Any) -> None:
    def spoil(obj: Obj) -> Any:
        return ["good"] if obj["metadata"]["name"] == "c" or obj["metadata"]["resourceVersion"] == "5" else values

    run = await start(Listing([pod("a", 5), pod("c", 6)], 7), Stream(1.0, event("MODIFIED", pod("a", 8)), 1e6))
    run.informer.add_index("by", spoil)
    assert len(run.informer.store.by_index("by", "good")) == 2
    with structlog.testing.capture_logs() as logs:
        run.informer.handle(Applied(pod("a", 8)))
        run.informer.handle(Applied(pod("a", 9)))
    assert run.stored() == ["a@9", "c@6"]
    assert [obj["metadata"]["name"] for obj in run.informer.store.by_index("by", "good")] == ["c"]
    assert run.informer.store.by_index("by", "a") == []
    told = _logged(logs, "index function failed")
    assert [entry["object"] for entry in told] == ["t/a", "t/a"]
    assert all("spoil" in entry["function"] and entry["index"] == "by" for entry in told)
