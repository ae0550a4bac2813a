"""Rounds of list and watch, by the lines of the checklist (specification: 70 §17, Cache)."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import structlog

from lwskit.runtime.cache.backoff import Backoff
from lwskit.runtime.cache.watcher import Watcher
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConnectionFailed
from lwskit.runtime.kinds import POD
from lwskit.testing.scripted import Fail, Listing, Script, Stream, bookmark, event, pod, status

Start = Callable[..., Awaitable[Any]]

WATCH = {"watch": "true"}


async def test_an_empty_informer_lists_first_at_version_0_in_pages_of_500(start: Start) -> None:
    """70 §17 Cache 1: the first plain list asks for version 0 in pages of 500."""
    run = await start(Listing([pod("a", 5)], 7))
    assert run.script.queries == [{"limit": "500", "resourceVersion": "0"}, WATCH | {"resourceVersion": "7"}]
    assert run.recorder.take() == [("add", "a@5", True)]
    assert run.informer.synced.is_set()


async def test_after_410_in_the_watch_the_list_is_at_the_last_version(start: Start, clock: Clock) -> None:
    """70 §17 Cache 2: a watch that is answered 410 leads to a list at the version seen last."""
    gone = event("ERROR", status(410, "Expired", "too old"))
    run = await start(Listing([], 7), Stream(2.0, bookmark(9), gone), Listing([pod("b", 10)], 11), settle=5)
    assert run.script.queries[1:] == [
        WATCH | {"resourceVersion": "7"},
        {"resourceVersion": "9"},
        WATCH | {"resourceVersion": "11"},
    ]
    assert run.stored() == ["b@10"]


async def test_when_that_list_says_410_too_it_is_repeated_without_a_version_and_only_once(start: Start) -> None:
    """70 §17 Cache 3: where that list is answered 410 too, one without a version follows; after it versions count
    again.
    """
    gone = event("ERROR", status(410, "Expired", "too old"))
    expired = Fail(410, "Expired")
    run = await start(
        Listing([], 7),
        Stream(2.0, gone),
        expired,
        Listing([], 20),
        Stream(2.0, gone),
        Listing([], 30),
        settle=10,
    )
    lists = [q for q in run.script.queries if "watch" not in q]
    assert lists[1:] == [{"resourceVersion": "7"}, {"limit": "500"}, {"resourceVersion": "20"}]


async def test_a_version_the_server_has_not_reached_is_treated_like_one_that_is_gone(start: Start) -> None:
    too_large = Fail(504, "Timeout", "Too large resource version: 9, current: 3")
    gone = event("ERROR", status(410, "Expired"))
    run = await start(Listing([], 9), Stream(2.0, gone), too_large, Listing([], 3), settle=5)
    assert [q for q in run.script.queries if "watch" not in q][1:] == [{"resourceVersion": "9"}, {"limit": "500"}]
    assert run.script.queries[-1] == WATCH | {"resourceVersion": "3"}


async def test_after_a_clean_end_a_watch_opens_at_the_last_version_at_once(start: Start, clock: Clock) -> None:
    """70 §17 Cache 4: after a watch that ended by itself the next one goes on where it stopped, at once and
    without a list.
    """
    run = await start(Listing([], 7), Stream(3.0, event("ADDED", pod("a", 8))), settle=3)
    assert run.script.queries[1:] == [WATCH | {"resourceVersion": "7"}, WATCH | {"resourceVersion": "8"}]
    assert run.script.times[1:] == [0.0, 3.0]
    assert run.informer.healthy


async def test_a_connection_that_breaks_in_mid_line_is_reopened_and_the_half_line_dropped(start: Start) -> None:
    whole, half = event("ADDED", pod("a", 8)), event("ADDED", pod("b", 9))[:30]
    run = await start(Listing([], 7), Stream(3.0, whole + half, ConnectionFailed("cut off")), settle=3)
    assert run.script.queries[-1] == WATCH | {"resourceVersion": "8"}
    assert run.stored() == ["a@8"]


async def test_a_bookmark_moves_the_last_version_and_no_handler_is_called(start: Start) -> None:
    """70 §17 Cache 5: a bookmark only moves the version to go on from."""
    run = await start(Listing([], 7), Stream(2.0, bookmark(12)), settle=3)
    assert run.script.queries[-1] == WATCH | {"resourceVersion": "12"}
    assert run.recorder.calls == []


async def test_in_a_watch_from_0_added_events_do_not_move_the_version(start: Start) -> None:
    """70 §17 Cache 6: what a watch without a version brings at first says nothing of how far it is."""
    version = "0"
    first = Stream(2.0, event("ADDED", pod("b", 90)), event("ADDED", pod("a", 5)))
    second = Stream(2.0, event("ADDED", pod("c", 91)), event("MODIFIED", pod("a", 92)))
    run = await start(Listing([], version), first, second, settle=5)
    opened = [q.get("resourceVersion", "") for q in run.script.queries if "watch" in q]
    assert opened == [version, version, "92"]
    assert run.stored() == ["a@92", "b@90", "c@91"]


async def test_a_watch_that_ends_at_once_without_events_leads_to_a_wait_and_a_list(start: Start, clock: Clock) -> None:
    """70 §17 Cache 7: a watch that ends within a second without a word is answered with a pause and a list."""
    run = await start(Listing([], 7), Stream(), Listing([], 8), settle=0.1)
    assert len(run.script.seen) == 2
    assert not run.informer.healthy
    await clock.sleep(2)
    assert run.script.queries[2:] == [{"resourceVersion": "7"}, WATCH | {"resourceVersion": "8"}]
    assert 0.8 <= run.script.times[2] <= 1.6
    assert run.informer.healthy


@pytest.mark.parametrize(
    "trouble",
    [Fail(429, "TooManyRequests"), ConnectionFailed("refused"), Stream(event("ERROR", status(429, "TooManyRequests")))],
)
async def test_429_or_a_refused_connection_leads_to_a_wait_and_no_list(start: Start, trouble: Fail | Exception) -> None:
    """70 §17 Cache 8: a server that is busy or not there is waited for, and then the watch is opened where it was."""
    run = await start(Listing([], 7), trouble, settle=2)
    assert run.script.queries[1:] == [WATCH | {"resourceVersion": "7"}] * 2
    assert 0.8 <= run.script.times[2] <= 1.6


async def test_retry_after_is_honoured(start: Start) -> None:
    run = await start(Fail(429, "TooManyRequests", headers={"retry-after": "9"}), Listing([], 1), settle=10)
    assert run.script.times[1] == 9.0


async def test_another_error_when_opening_a_watch_ends_the_round(start: Start) -> None:
    run = await start(Listing([], 7), Fail(403, "Forbidden"), Listing([], 8), settle=2)
    assert run.script.queries[2] == {"resourceVersion": "7"}


async def test_delays_double_from_the_first_to_at_most_a_minute() -> None:
    """70 §17 Cache 9: pauses double from 0.8–1.6 s up to a minute at most, and begin anew after two minutes of
    health.
    """
    backoff, now, waits = Backoff(random.Random(1)), 0.0, []
    for _ in range(12):
        waits.append(backoff.step(now))
        now += waits[-1]
    for n, wait in enumerate(waits):
        assert min(0.8 * 2**n, 30) <= wait <= 2 * min(0.8 * 2**n, 30) <= 60
    assert len(set(waits)) == 12
    assert backoff.step(now + 119) >= 30
    assert backoff.step(now + 10_000) <= 1.6


async def test_a_list_is_tried_for_ever(start: Start) -> None:
    """F118: a first list that fails, however often, is tried again with growing pauses until it works."""
    failures = [Fail(503, "ServiceUnavailable")] * 5
    run = await start(*failures, Listing([pod("a", 1)], 2), settle=200)
    gaps = [b - a for a, b in itertools.pairwise(run.script.times[:6])]
    for n, gap in enumerate(gaps):
        assert 0.8 * 2**n <= gap <= 1.6 * 2**n + 1e-6
    assert run.stored() == ["a@1"]


async def test_a_kind_that_is_not_served_is_asked_for_every_ten_seconds_at_most(start: Start) -> None:
    run = await start(*[Fail(404, "NotFound")] * 20, Listing([], 2), settle=190)
    assert all(b - a <= 10.0 for a, b in itertools.pairwise(run.script.times[:21]))
    assert run.informer.synced.is_set()
    assert run.informer.last_error is None


async def test_pages_are_joined_and_continuations_carry_only_limit_and_token(start: Start) -> None:
    run = await start(Listing([pod("a", 1)], 7, token="t1"), Listing([pod("b", 2)], 7), settle=0.1)
    assert run.script.queries[:2] == [
        {"limit": "500", "resourceVersion": "0"},
        {"limit": "500", "continue": "t1"},
    ]
    assert run.stored() == ["a@1", "b@2"]


async def test_a_server_that_really_pages_is_asked_for_pages_from_then_on(start: Start) -> None:
    gone = event("ERROR", status(410, "Expired"))
    run = await start(Listing([], 7, token="t1"), Listing([], 7), Stream(2.0, gone), Listing([], 9), settle=5)
    assert run.script.queries[3] == {"limit": "500", "resourceVersion": "7"}


async def test_an_expired_continue_token_leads_to_one_whole_list(start: Start) -> None:
    run = await start(Listing([pod("a", 1)], 7, token="t"), Fail(410, "Expired"), Listing([pod("b", 2)], 8), settle=0.1)
    assert run.script.queries[2] == {"resourceVersion": "0"}
    assert run.stored() == ["b@2"]


async def test_an_error_event_is_no_object(start: Start) -> None:
    wrong = Stream(2.0, event("ERROR", status(500, "InternalError", "etcd is away")))
    run = await start(Listing([pod("a", 1)], 7), wrong, settle=2.5)
    assert run.stored() == ["a@1"]
    assert not run.informer.healthy
    assert "etcd is away" in str(run.informer.last_error)


@pytest.mark.parametrize("line", [b"not json\n", b'{"type":"ADDED"}\n', b"[]\n", b'"x"\n'])
async def test_a_line_that_cannot_be_read_ends_the_round(start: Start, line: bytes) -> None:
    run = await start(Listing([], 7), Stream(2.0, line), Listing([], 9), settle=5)
    assert run.script.queries[2] == {"resourceVersion": "7"}


async def test_events_that_are_no_objects_of_the_kind_are_skipped(start: Start) -> None:
    odd = [
        event("ADDED", {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x"}}),
        event("ADDED", {"kind": "Pod", "apiVersion": "v1"}),
        event("STRANGE", pod("s", 9)),
        event("ADDED", {**pod("s", 9), "kind": "Service"}),
        event("ADDED", [1]),
    ]
    with structlog.testing.capture_logs() as logs:
        run = await start(Listing([], 7), Stream(2.0, *odd, event("ADDED", pod("a", 8))), settle=3)
    assert run.stored() == ["a@8"]
    assert [entry["what"] for entry in logs if entry["event"] == "passed over in a watch"] == [
        "ADDED of Table",
        "ADDED of Pod with no metadata",
        "STRANGE of Pod",
        "ADDED of Service",
        "ADDED of no object",
    ]
    assert run.script.queries[-1] == WATCH | {"resourceVersion": "8"}


async def test_a_large_object_in_many_chunks_arrives(start: Start) -> None:
    """70 §17 Cache 30: an object of 1.5 MB whose line is cut into many chunks arrives whole."""
    big = event("ADDED", pod("big", 8, annotations={"x": "y" * 1_500_000}))
    cut = [big[i : i + 7001] for i in range(0, len(big), 7001)]
    run = await start(Listing([], 7), Stream(*cut, event("ADDED", pod("b", 9)) + b"\n", 1e6), settle=1)
    assert run.stored() == ["b@9", "big@8"]


async def test_a_line_without_end_ends_the_round(start: Start) -> None:
    run = await start(Listing([], 7), Stream(2.0, *[b"x" * 1_000_000] * 9), settle=3)
    assert "8388608" in str(run.informer.last_error)


async def test_a_silent_watch_is_reopened_after_its_timeout_and_a_margin(start: Start, clock: Clock) -> None:
    """70 §17 Cache 31: a connection that stays open and says nothing is given up when its time is over."""
    run = await start(Listing([], 7), Stream(1e6))
    seconds = int(dict(run.script.seen[1][1].query)["timeoutSeconds"])
    assert 300 <= seconds < 600
    await clock.sleep(seconds + 4.9)
    assert len(run.script.seen) == 2
    await clock.sleep(0.2)
    assert run.script.queries[2:] == [WATCH | {"resourceVersion": "7"}]


async def test_a_quiet_watch_with_bookmarks_is_kept(start: Start, clock: Clock) -> None:
    beats = [part for n in range(20) for part in (60.0, bookmark(10 + n))]
    run = await start(Listing([], 7), Stream(*beats, 1e6), settle=1201)
    assert len(run.script.seen) == 2


async def test_timeouts_differ_from_watch_to_watch(start: Start) -> None:
    run = await start(Listing([], 7), *[Stream(2.0, bookmark(9))] * 20, settle=60)
    seconds = {dict(r.query)["timeoutSeconds"] for _, r in run.script.seen if ("watch", "true") in r.query}
    assert len(seconds) > 10


# Streaming lists.

STREAMED = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


async def test_at_the_end_bookmark_the_store_is_replaced_once_and_the_stream_goes_on(
    start: Start, clock: Clock
) -> None:
    """70 §17 Cache 10: the bookmark that ends the initial objects makes them the content in one step; the stream
    stays.
    """
    stream = Stream(
        event("ADDED", pod("a", 5)),
        event("ADDED", pod("b", 6)),
        bookmark(6),
        1.0,
        event("DELETED", pod("b", 7)),
        bookmark(8, end=True),
        1.0,
        event("ADDED", pod("c", 9)),
        1e6,
    )
    run = await start(stream, streaming=True, settle=0.5)
    assert run.stored() == []
    assert not run.informer.synced.is_set()
    await clock.sleep(1)
    assert run.recorder.take() == [("add", "a@5", True)]
    assert run.informer.healthy
    await clock.sleep(1)
    assert run.recorder.take() == [("add", "c@9", False)]
    assert run.script.queries == [STREAMED]


@pytest.mark.parametrize("refusal", [Fail(422, "Invalid"), Fail(400, "BadRequest"), Stream(), Stream(b"?\n")])
async def test_a_server_that_refuses_streaming_lists_is_listed_plainly(start: Start, refusal: Fail | Stream) -> None:
    """70 §17 Cache 11: a server that will not stream a list is asked for a plain one."""
    run = await start(refusal, Listing([pod("a", 1)], 7), streaming=True)
    assert run.script.queries == [
        STREAMED,
        {"limit": "500", "resourceVersion": "0"},
        WATCH | {"resourceVersion": "7"},
    ]


async def test_a_server_that_ignores_the_wish_for_initial_events_is_listed_plainly(start: Start) -> None:
    with structlog.testing.capture_logs() as logs:
        run = await start(Stream(1e6), Listing([pod("a", 1)], 7), streaming=True, settle=31)
    assert run.stored() == ["a@1"]
    # After ten and twenty seconds; after thirty it is given up.
    assert [entry["event"].split(" of ")[0] for entry in logs[:2]] == ["nothing new for a while"] * 2


async def test_a_stream_that_ends_before_the_end_bookmark_shows_nothing(start: Start, clock: Clock) -> None:
    """70 §17 Cache 12: half a streamed list is never seen by anybody."""
    partial = Stream(event("ADDED", pod("a", 5)), 2.0)
    run = await start(
        partial, Stream(event("ADDED", pod("b", 6)), bookmark(6, end=True), 1e6), streaming=True, settle=3
    )
    assert run.script.times == [0.0, 2.0]
    assert run.recorder.take() == [("add", "b@6", True)]
    assert run.stored() == ["b@6"]


async def test_a_streaming_list_waits_on_429_and_drops_a_version_that_is_gone(start: Start) -> None:
    gone = event("ERROR", status(410, "Expired"))
    run = await start(
        Fail(429, "TooManyRequests"),
        Stream(bookmark(9, end=True), 2.0, gone),
        Stream(gone),
        Stream(bookmark(12, end=True), 1e6),
        streaming=True,
        settle=20,
    )
    assert run.script.queries == [STREAMED, STREAMED, STREAMED | {"resourceVersion": "9"}, STREAMED]
    assert 0.8 <= run.script.times[1] <= 1.6
    assert run.informer.healthy


async def test_cancelling_closes_the_stream(clock: Clock) -> None:
    script = Script()
    task = asyncio.create_task(Watcher(POD, Client(script), clock, random.Random(1)).run(lambda event: None))
    await clock.sleep(1)
    assert script.open == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert script.open == 0
