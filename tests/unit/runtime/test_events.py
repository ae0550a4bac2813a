"""The checklist of the event recorder (specification: 70 §17), on virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
import structlog
from hypothesis import given

from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import AlreadyExists, ConnectionFailed, Forbidden, NotFound
from lwskit.runtime.events import BUFFER, NOTE_LIMIT, Recorder, _cut
from lwskit.runtime.kinds import CORE_EVENT, EVENT, Kind
from lwskit.runtime.objects import Obj, ObjectRef
from lwskit.runtime.plan import Event

SET = ObjectRef("apps/v1", "StatefulSet", "n", "s", "uid", "7")


class EventServer:
    """Remembers creates and patches; `failures` are raised one after the other."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.created: list[Obj] = []
        self.patched: list[tuple[str, Obj]] = []
        self.failures: list[Exception] = []
        self.slow = 0.0

    async def create(self, kind: Kind, obj: Obj) -> Obj:
        assert kind in (EVENT, CORE_EVENT)
        await self.clock.sleep(self.slow)
        if self.failures:
            raise self.failures.pop(0)
        self.created.append(obj)
        return obj

    async def patch(self, kind: Kind, name: str, body: Obj, namespace: str, *, patch_type: PatchType) -> Obj:
        assert patch_type is PatchType.STRATEGIC
        if self.failures:
            raise self.failures.pop(0)
        self.patched.append((f"{namespace}/{name}", body))
        return body


def event(note: str = "note", regarding: ObjectRef = SET, **more: Any) -> Event:
    return Event(regarding, "Created", "Create", note, **more)


@asynccontextmanager
async def recording(clock: Clock, server: EventServer) -> AsyncIterator[Recorder]:
    client: Any = server
    recorder = Recorder(client, clock, "comp", "comp-host", random.Random(1))
    task = asyncio.create_task(recorder.run())
    await clock.sleep(0.1)
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_an_event_has_the_stated_fields(clock: Clock) -> None:
    server = EventServer(clock)
    related = ObjectRef("v1", "Pod", "n", "p", "u2")
    async with recording(clock, server) as recorder:
        recorder.event(event(related=related))
        await clock.sleep(1)
    assert server.created == [
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "s.18867251f3efe100", "namespace": "n"},
            "eventTime": "2026-01-01T00:00:00.100000Z",
            "type": "Normal",
            "reason": "Created",
            "action": "Create",
            "note": "note",
            "reportingController": "comp",
            "reportingInstance": "comp-host",
            "regarding": SET.as_dict(),
            "related": related.as_dict(),
        }
    ]


async def test_an_event_may_have_happened_before(clock: Clock) -> None:
    server = EventServer(clock)
    async with recording(clock, server) as recorder:
        begin = clock.now()
        await clock.sleep(2)
        recorder.event(event(), at=begin)
        recorder.named("other", "other-host").event(event(), at=begin)
        recorder.core("elector").event(event(), at=begin)
        await clock.sleep(1)
        recorder.event(event(), at=begin + timedelta(seconds=1))
        recorder.event(event(), at=begin)
        await clock.sleep(1)
    times = [e.get("eventTime") or e["lastTimestamp"] for e in server.created]
    assert times == ["2026-01-01T00:00:00.100000Z", "2026-01-01T00:00:00.100000Z", "2026-01-01T00:00:00Z"]
    assert [body["series"]["lastObservedTime"] for _, body in server.patched] == ["2026-01-01T00:00:01.100000Z"]


async def test_the_same_event_twice_is_one_create_and_one_patch_and_then_silence_until_refresh(clock: Clock) -> None:
    """70 §17 Health, metrics, events 5: a repetition is one patch, and further ones wait for the refresh."""
    server = EventServer(clock)
    async with recording(clock, server) as recorder:
        recorder.event(event("first"))
        await clock.sleep(1)
        recorder.event(event("second"))
        await clock.sleep(1)
        assert [e["note"] for e in server.created] == ["first"]
        name = f"n/{server.created[0]['metadata']['name']}"
        assert server.patched == [(name, {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.100000Z"}})]
        for _ in range(28):
            recorder.event(event("more"))
            await clock.sleep(60)
        assert len(server.patched) == 1
        for _ in range(3):
            recorder.event(event("more"))
            await clock.sleep(60)
        assert [body["series"]["count"] for _, body in server.patched] == [2, 32]
        assert len(server.created) == 1


async def test_two_at_once_are_created_before_they_are_patched(clock: Clock) -> None:
    server = EventServer(clock)
    server.slow = 5
    async with recording(clock, server) as recorder:
        recorder.event(event())
        await clock.sleep(1)
        recorder.event(event())
        await clock.sleep(1)
        assert server.patched == []
        await clock.sleep(5)
        assert len(server.created) == 1
        assert server.patched[0][1]["series"]["count"] == 2


async def test_an_idle_events_count_is_sent_and_the_event_forgotten(clock: Clock) -> None:
    server = EventServer(clock)
    async with recording(clock, server) as recorder:
        for _ in range(3):
            recorder.event(event())
            await clock.sleep(1)
        assert [body["series"]["count"] for _, body in server.patched] == [2]
        await clock.sleep(13 * 60)
        assert [body["series"]["count"] for _, body in server.patched] == [2, 3]
        recorder.event(event())
        await clock.sleep(1)
        assert len(server.created) == 2


async def test_a_changed_object_has_a_new_event(clock: Clock) -> None:
    """70 §17 Health, metrics, events 6: another version of the object is another event."""
    server = EventServer(clock)
    async with recording(clock, server) as recorder:
        recorder.event(event())
        recorder.event(event(regarding=SET._replace(resource_version="8")))
        await clock.sleep(1)
    assert len(server.created) == 2
    assert len({e["metadata"]["name"] for e in server.created}) == 2


async def test_an_event_on_a_cluster_scoped_object_is_in_default(clock: Clock) -> None:
    """70 §17 Health, metrics, events 7: without a namespace of its object an event is in `default`."""
    server = EventServer(clock)
    async with recording(clock, server) as recorder:
        recorder.event(event(regarding=ObjectRef("v1", "Node", "", "node-1")))
        await clock.sleep(1)
    assert server.created[0]["metadata"]["namespace"] == "default"


async def test_a_name_that_is_no_subdomain_becomes_a_uuid_and_a_long_note_is_cut(clock: Clock) -> None:
    server = EventServer(clock)
    async with recording(clock, server) as recorder:
        recorder.event(event("x" * 2000, regarding=SET._replace(name="system:node")))
        await clock.sleep(1)
    assert len(server.created[0]["metadata"]["name"]) == 36
    assert len(server.created[0]["note"]) == 1024


async def test_events_of_a_wrong_type_or_without_action_are_dropped(clock: Clock) -> None:
    server = EventServer(clock)
    async with recording(clock, server) as recorder:
        recorder.event(event(type="Error"))
        recorder.event(Event(SET, "Created", "", "note"))
        await clock.sleep(1)
    assert server.created == []


async def test_with_the_api_down_nobody_waits_and_events_drop_after_the_limits(clock: Clock) -> None:
    """70 §17 Health, metrics, events 8: a server that is away costs events and no time."""
    server = EventServer(clock)
    server.failures = [ConnectionFailed("down")] * 10**6
    async with recording(clock, server) as recorder:
        before = clock.monotonic()
        for number in range(BUFFER + 50):
            recorder.event(event(regarding=SET._replace(name=f"s{number}")))
        assert clock.monotonic() == before
        assert recorder.dropped == 50
        await clock.sleep(11 * 7.5 - 1)
        assert recorder.dropped == 50
        await clock.sleep(60)
        assert recorder.dropped == 58
        server.failures.clear()
        await clock.sleep(60)
        assert len(server.created) == BUFFER - 8
    recorder.event(event(regarding=SET._replace(name="late")))
    await clock.sleep(100)
    assert len(server.created) == BUFFER - 8


async def test_any_other_answer_drops_the_event(clock: Clock) -> None:
    server = EventServer(clock)
    server.failures = [Forbidden("no")]
    async with recording(clock, server) as recorder:
        recorder.event(event())
        await clock.sleep(100)
        assert (server.created, recorder.dropped) == ([], 1)


@pytest.mark.parametrize("failure", [AlreadyExists("there"), None])
async def test_a_repetition_of_an_event_that_is_gone_is_created_anew_with_its_count(
    clock: Clock, failure: Exception | None
) -> None:
    server = EventServer(clock)
    server.failures = [failure] if failure else []
    async with recording(clock, server) as recorder:
        recorder.event(event())
        await clock.sleep(1)
        server.created.clear()
        server.failures = [NotFound("gone")]
        recorder.event(event())
        await clock.sleep(1)
    assert [e["series"]["count"] for e in server.created] == [2]
    assert server.patched == []


async def test_a_named_recorder_reports_as_its_component(clock: Clock) -> None:
    server = EventServer(clock)
    async with recording(clock, server) as recorder:
        recorder.named("other", "other-host").event(event())
        recorder.event(event())
        await clock.sleep(1)
    assert [e["reportingInstance"] for e in server.created] == ["other-host", "comp-host"]


async def test_a_core_event_has_the_older_fields_and_counts_equal_texts(clock: Clock) -> None:
    server = EventServer(clock)
    lease = ObjectRef("coordination.k8s.io/v1", "Lease", "ns", "lock", "uid", "7")
    async with recording(clock, server) as recorder:
        core = recorder.core("me")
        for note in ("became leader", "stopped leading", "became leader"):
            core.event(Event(lease, "LeaderElection", "LeaderElection", note))
            await clock.sleep(1)
    first, second = server.created
    assert first == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": first["metadata"]["name"], "namespace": "ns"},
        "involvedObject": lease.as_dict(),
        "type": "Normal",
        "reason": "LeaderElection",
        "message": "became leader",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "source": {"component": "me"},
        "reportingComponent": "me",
        "reportingInstance": "",
    }
    assert second["message"] == "stopped leading"
    name = f"ns/{first['metadata']['name']}"
    assert server.patched == [(name, {"count": 2, "lastTimestamp": "2026-01-01T00:00:02Z"})]


async def test_a_name_that_another_recorder_has_taken_is_not_used(clock: Clock) -> None:
    server = EventServer(clock)
    server.failures = [AlreadyExists("taken"), AlreadyExists("taken too")]
    async with recording(clock, server) as recorder:
        recorder.event(event())
        recorder.event(event("other", ObjectRef("v1", "Pod", "n", "s", "uid-2")))
        await clock.sleep(1)
    assert [e["note"] for e in server.created] == ["note", "other"]
    assert len({e["metadata"]["name"] for e in server.created}) == 2
    assert recorder.dropped == 0


async def test_an_event_that_got_through_without_an_answer_is_not_written_twice(clock: Clock) -> None:
    server = EventServer(clock)
    server.failures = [ConnectionFailed("lost"), AlreadyExists("there")]
    async with recording(clock, server) as recorder:
        recorder.event(event())
        await clock.sleep(60)
    assert (server.created, recorder.dropped) == ([], 0)


@given(note=st.text(max_size=1500), wide=st.sampled_from(["", "é", "語", "😀"]), times=st.integers(0, 1100))
def test_a_note_is_cut_between_characters_to_what_servers_take(note: str, wide: str, times: int) -> None:
    whole = note + wide * times
    found = _cut(whole, NOTE_LIMIT, "...")
    assert len(found.encode()) <= NOTE_LIMIT
    if len(whole.encode()) <= NOTE_LIMIT:
        assert found == whole
    else:
        assert found.endswith("...")
        assert whole.startswith(found[:-3])
        assert len(found.encode()) >= NOTE_LIMIT - 3


async def test_long_words_and_notes_of_any_script_are_sent_as_far_as_servers_take_them(clock: Clock) -> None:
    server = EventServer(clock)
    async with recording(clock, server) as recorder:
        recorder.event(Event(SET, "R" * 200, "ü" * 100, "語" * 1024))
        recorder.core("c").event(Event(SET, "R" * 200, "Act", "é" * 600))
        await clock.sleep(1)
    new, old = server.created
    assert (new["reason"], new["action"], new["note"]) == ("R" * 128, "ü" * 64, "語" * 340 + "...")
    assert (old["reason"], old["message"]) == ("R" * 128, "é" * 510 + "...")


class Unhashable(ObjectRef):
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (None, "it is NoneType, not an Event"),
        ("x", "it is str, not an Event"),
        (event(note=None), "its note is NoneType, not str"),  # type: ignore[arg-type]
        (event(note="a\ud800b"), "its note has half a character (a lone surrogate), which no text in UTF-8 can have"),
        (Event(SET, "R\udfff", "A", "n"), "its reason has half a character (a lone surrogate), which no text in UTF-8"),
        (Event(SET, 5, "A", "n"), "its reason is int, not str"),  # type: ignore[arg-type]
        (Event(SET, "R", b"x", "n"), "its action is bytes, not str"),  # type: ignore[arg-type]
        (Event(None, "R", "A", "n"), "what it regards is NoneType, not an ObjectRef"),  # type: ignore[arg-type]
        (Event(Unhashable("v1", "Pod", "n", "p"), "R", "A", "n"), "TypeError("),
    ],
)
async def test_what_is_no_event_is_logged_and_dropped_and_others_go_on(clock: Clock, wrong: Any, problem: str) -> None:
    server = EventServer(clock)
    async with recording(clock, server) as recorder:
        with structlog.testing.capture_logs() as logs:
            recorder.event(wrong)
            recorder.core("c").event(wrong)
        assert [entry["event"] for entry in logs] == ["an event cannot be recorded"] * 2
        assert logs[0]["problem"].startswith(problem)
        assert logs[0]["got"].isascii()
        assert recorder.dropped == 2
        recorder.event(event())
        await clock.sleep(1)
    assert [body["note"] for body in server.created] == ["note"]


async def test_an_event_that_cannot_be_sent_for_any_reason_is_dropped_alone(clock: Clock) -> None:
    server = EventServer(clock)
    async with recording(clock, server) as recorder:
        server.failures = [TypeError("not JSON"), UnicodeEncodeError("utf-8", "x", 0, 1, "why")]
        for number in range(3):
            recorder.event(event(regarding=SET._replace(name=f"s{number}")))
        await clock.sleep(1)
        assert (recorder.dropped, len(server.created)) == (2, 1)
        recorder.event(event(regarding=SET._replace(name="s0")))
        await clock.sleep(1)
        assert recorder.dropped == 2
