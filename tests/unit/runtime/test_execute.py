"""The plan executor: requests, answers to the cache, events, and what errors do to a plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest, HttpResponse, StreamResponse
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import (
    AlreadyExists,
    ApiError,
    ConfigurationError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    PlanError,
)
from lwskit.runtime.execute import Executor, Fresh, reconcile
from lwskit.runtime.kinds import POD, SERVICE, STATEFUL_SET, Kind
from lwskit.runtime.objects import Key, Obj, ObjectRef
from lwskit.runtime.plan import (
    AnswerOf,
    Apply,
    Create,
    Decision,
    Delete,
    Emit,
    Event,
    Modify,
    NeedFresh,
    OnError,
    Patch,
    Plan,
    UpdateStatus,
)
from lwskit.runtime.request import Result

OWNER = ObjectRef("apps/v1", "StatefulSet", "n", "s", "u")
Answer = Obj | ApiError | Callable[[HttpRequest], Obj]


class FakeTransport:
    """Answers from a list and remembers what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[HttpRequest] = []

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            return HttpResponse(answer.code, orjson.dumps(answer.status))
        if callable(answer):
            answer = answer(request)
        return HttpResponse(200, orjson.dumps(answer))

    def stream(
        self, request: HttpRequest, *, idle_timeout: float | None = None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("nothing streams here")

    async def close(self) -> None:
        return


class FakeCache:
    """Keeps what it is given; only kinds with a store are cached."""

    def __init__(self, *kinds: Kind) -> None:
        self.stores: dict[Kind, dict[Key, Obj]] = {kind: {} for kind in kinds}
        self.ingested: list[Obj] = []
        self.forgotten: list[str] = []

    def store(self, kind: Kind) -> dict[Key, Obj]:
        if kind not in self.stores:
            raise ConfigurationError("not cached")
        return self.stores[kind]

    def ingest(self, kind: Kind, obj: Obj) -> None:
        self.ingested.append(obj)

    def forget(self, kind: Kind, key: Key, uid: str) -> None:
        self.forgotten.append(uid)


class FakeRecorder:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.times: list[datetime | None] = []

    def event(self, event: Event, related: ObjectRef | None = None, *, at: datetime | None = None) -> None:
        self.events.append(event)
        self.times.append(at)


class Bench:
    def __init__(self, clock: Clock, *answers: Answer) -> None:
        self.transport = FakeTransport(*answers)
        self.cache = FakeCache(STATEFUL_SET)
        self.recorder = FakeRecorder()
        client = Client(self.transport, clock=clock)
        self.executor = Executor(client, self.cache, self.recorder, clock, field_manager="m")

    async def run(self, *actions: Any, result: Result | None = None) -> Result:
        return await self.executor.execute(Plan(actions, result or Result()))

    @property
    def notes(self) -> list[str]:
        return [event.note for event in self.recorder.events]


def pod(name: str = "p", version: str = "2", **meta: Any) -> Obj:
    return {"metadata": {"namespace": "n", "name": name, "uid": f"u-{name}", "resourceVersion": version, **meta}}


def event(note: str, related: ObjectRef | AnswerOf | None = None) -> Event:
    return Event(OWNER, "Reason", "Act", note, related=related)


async def test_a_create_hands_its_answer_to_the_cache_and_records_success_with_the_new_object(clock: Clock) -> None:
    bench = Bench(clock, pod())
    created = Create(
        why="make it",
        kind=POD,
        obj=pod(version=""),
        name="pod",
        on_success=event("made", AnswerOf("pod", POD)),
    )
    assert await bench.run(created, result=Result(after=5)) == Result(after=5)
    assert bench.transport.requests[0].path == "/api/v1/namespaces/n/pods"
    assert ("fieldManager", "m") in bench.transport.requests[0].query
    assert bench.cache.ingested == [pod()]
    assert bench.recorder.events[0].related == ObjectRef("v1", "Pod", "n", "p", "u-p", "2")


async def test_an_event_happened_when_its_request_was_sent(clock: Clock) -> None:
    """What others do next may be told before the answer is here."""
    bench = Bench(clock, pod())
    before = clock.now()
    send = bench.transport.send

    async def slow(request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        answer = await send(request, timeout=timeout)
        await clock.sleep(3)
        return answer

    bench.transport.send = slow  # type: ignore[method-assign]
    await bench.run(Create(why="make it", kind=POD, obj=pod(version=""), on_success=event("made")))
    assert clock.now() == before + timedelta(seconds=3)
    assert bench.recorder.times == [before]


async def test_a_failure_stops_the_plan_and_its_event_carries_the_servers_text(clock: Clock) -> None:
    bench = Bench(clock, Forbidden("pods is forbidden: quota"))
    first = Create(
        why="make it",
        kind=POD,
        obj=pod(),
        on_success=event("made"),
        on_failure=event("not made: {error}", AnswerOf("x", POD)),
    )
    bad = Plan((first, Create(why="second", kind=POD, obj=pod())))
    with pytest.raises(PlanError, match="'x'"):
        await bench.executor.execute(bad)
    assert bench.transport.requests == []
    first = Create(why="make it", kind=POD, obj=pod(), on_success=event("made"), on_failure=event("not made: {error}"))
    with pytest.raises(Forbidden):
        await bench.run(first, Create(why="second", kind=POD, obj=pod()))
    assert bench.notes == ["not made: pods is forbidden: quota"]
    assert len(bench.transport.requests) == 1


async def test_an_ignored_error_goes_on_without_events_and_later_references_are_empty(clock: Clock) -> None:
    bench = Bench(clock, AlreadyExists("there"))
    await bench.run(
        Create(
            why="make it",
            kind=POD,
            obj=pod(),
            name="pod",
            errors={"AlreadyExists": OnError.IGNORE},
            on_success=event("made"),
            on_failure=event("failed"),
        ),
        Emit(why="tell", event=event("after", AnswerOf("pod", POD))),
    )
    assert bench.notes == ["after"]
    assert bench.recorder.events[0].related is None


async def test_what_does_not_depend_on_a_failure_is_done_before_the_plan_fails(clock: Clock) -> None:
    bench = Bench(clock, Forbidden("no"), pod(), Forbidden("nor this"))
    later = {"Forbidden": OnError.LATER}
    plan = [
        Create(
            why=name,
            kind=POD,
            obj=pod(),
            errors=later,
            on_success=event(f"{name} made"),
            on_failure=event(f"{name} not made: {{error}}"),
        )
        for name in ("first", "second", "third")
    ]
    with pytest.raises(Forbidden, match=r"^no$"):
        await bench.run(*plan)
    assert bench.notes == ["first not made: no", "second made", "third not made: nor this"]


async def test_an_error_may_ask_for_another_decision(clock: Clock) -> None:
    bench = Bench(clock, Conflict("changed"))
    action = UpdateStatus(why="status", kind=POD, obj=pod(), errors={"Conflict": OnError.REQUEUE})
    result = await bench.run(action, Emit(why="tell", event=event("after")), result=Result(after=60))
    assert result.requeue
    assert result.after == 0
    assert "status: changed" in result.reason
    assert bench.notes == []
    assert bench.transport.requests[0].path.endswith("/pods/p/status")


def applied(version: str = "2", replicas: int = 1) -> Obj:
    fields = {"f:spec": {"f:replicas": {}}}
    entry = {"manager": "m", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": fields}
    return {"spec": {"replicas": replicas}, **pod("s", version, managedFields=[entry])}


async def test_an_apply_that_changes_nothing_is_not_sent_and_tells_nothing(clock: Clock) -> None:
    bench = Bench(clock, applied("3", 2))
    bench.cache.stores[STATEFUL_SET][Key("n", "s")] = applied()
    intent = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"namespace": "n", "name": "s"}}
    same = Apply(
        why="keep", kind=STATEFUL_SET, obj=intent | {"spec": {"replicas": 1}}, manager="m", on_success=event("x")
    )
    await bench.run(same)
    assert bench.transport.requests == []
    assert bench.notes == []
    other = Apply(
        why="grow", kind=STATEFUL_SET, obj=intent | {"spec": {"replicas": 2}}, manager="m", on_success=event("y")
    )
    await bench.run(other)
    request = bench.transport.requests[0]
    assert request.headers["content-type"] == "application/apply-patch+yaml"
    assert set(request.query) == {("fieldManager", "m"), ("force", "true")}
    assert bench.cache.ingested == [applied("3", 2)]
    assert bench.notes == ["y"]


async def test_an_apply_of_a_kind_that_is_not_cached_is_sent(clock: Clock) -> None:
    bench = Bench(clock, pod())
    await bench.run(Apply(why="service", kind=SERVICE, obj=pod(), manager="m"))
    assert len(bench.transport.requests) == 1


async def test_a_patch_carries_the_uid_and_another_incarnation_is_a_conflict(clock: Clock) -> None:
    causes = {"causes": [{"field": "metadata.uid", "reason": "FieldValueInvalid"}]}
    bench = Bench(clock, pod(), Invalid("field is immutable", details=causes), Invalid("something else"))
    action = Patch(why="mark", kind=POD, key=Key("n", "p"), body={"metadata": {"labels": {"a": "b"}}}, uid="u-p")
    await bench.run(action)
    body = orjson.loads(bench.transport.requests[0].body or b"")
    assert body == {"metadata": {"labels": {"a": "b"}, "uid": "u-p"}}
    assert action.body == {"metadata": {"labels": {"a": "b"}}}
    with pytest.raises(Conflict):
        await bench.run(action)
    with pytest.raises(Invalid):
        await bench.run(action)


def labelled(version: str) -> Obj:
    return {"metadata": {"labels": {"a": "b"}, "resourceVersion": version}}


def guarded(anew: Callable[[Obj], Obj | None]) -> Patch:
    """A patch of what was seen at version 1."""
    return Patch(why="mark", kind=POD, key=Key("n", "p"), body=labelled("1"), uid="u-p", anew=anew)


async def test_a_patch_is_made_anew_for_what_has_changed_meanwhile(clock: Clock) -> None:
    bench = Bench(clock, Conflict("x"), pod(version="2"), Conflict("x"), pod(version="3"), pod(version="4"))
    await bench.run(guarded(lambda live: labelled(live["metadata"]["resourceVersion"])))
    assert [r.method for r in bench.transport.requests] == ["PATCH", "GET", "PATCH", "GET", "PATCH"]
    bodies = [orjson.loads(r.body or b"")["metadata"] for r in bench.transport.requests if r.method == "PATCH"]
    assert bodies == [{"labels": {"a": "b"}, "resourceVersion": v, "uid": "u-p"} for v in "123"]
    assert [o["metadata"]["resourceVersion"] for o in bench.cache.ingested] == ["2", "3", "4"]


async def test_the_conflict_of_a_patch_stands_where_what_was_decided_holds_no_more(clock: Clock) -> None:
    bench = Bench(clock, Conflict("first"), pod(version="2"), Conflict("second"), NotFound("gone"))
    with pytest.raises(Conflict, match="first"):
        await bench.run(guarded(lambda live: None))
    with pytest.raises(Conflict, match="second"):
        await bench.run(guarded(lambda live: labelled("2")))
    assert [r.method for r in bench.transport.requests] == ["PATCH", "GET"] * 2


async def test_a_patch_is_made_anew_so_often_only(clock: Clock) -> None:
    answers: list[Answer] = [Conflict("x"), pod()] * 4
    bench = Bench(clock, *answers, Conflict("last"))
    with pytest.raises(Conflict, match="last"):
        await bench.run(guarded(lambda live: labelled("2")))


async def test_a_delete_has_its_uid_as_precondition_and_tells_the_cache_what_became_of_the_object(clock: Clock) -> None:
    lingering = pod(version="9", deletionTimestamp="2026-01-01T00:00:00Z")
    bench = Bench(clock, lingering, pod(), {"kind": "Status", "status": "Success", "metadata": {}}, NotFound("gone"))
    action = Delete(why="away", kind=POD, key=Key("n", "p"), uid="u-p", propagation="Foreground", on_success=event("x"))
    for _ in range(3):
        await bench.run(action)
    body = orjson.loads(bench.transport.requests[0].body or b"")
    assert body["preconditions"] == {"uid": "u-p"}
    assert body["propagationPolicy"] == "Foreground"
    assert bench.cache.ingested == [lingering]
    assert bench.cache.forgotten == ["u-p"]
    assert bench.notes == ["x", "x", "x"]
    with pytest.raises(NotFound):
        await bench.run(action)


async def test_a_modify_reads_live_and_is_repeated_on_conflicts(clock: Clock) -> None:
    def count(obj: Obj) -> Obj:
        annotations = obj["metadata"].get("annotations") or {}
        more = {"annotations": {"n": str(int(annotations.get("n", 0)) + 1)}}
        return {**obj, "metadata": {**obj["metadata"], **more}}

    second = pod(version="3", annotations={"n": "4"})
    bench = Bench(clock, pod(), Conflict("x"), second, pod(version="4", annotations={"n": "5"}))
    await bench.run(Modify(why="count", kind=POD, key=Key("n", "p"), change=count))
    assert [r.method for r in bench.transport.requests] == ["GET", "PATCH", "GET", "PATCH"]
    body = orjson.loads(bench.transport.requests[3].body or b"")
    assert body == {"metadata": {"annotations": {"n": "5"}, "uid": "u-p", "resourceVersion": "3"}}
    assert clock.monotonic() == pytest.approx(0.01)
    assert [o["metadata"]["resourceVersion"] for o in bench.cache.ingested] == ["2", "3", "4"]


async def test_a_modify_gives_up_after_five_conflicts_and_sends_nothing_without_a_change(clock: Clock) -> None:
    answers: list[Answer] = [pod(), Conflict("x")] * 5
    bench = Bench(clock, *answers, pod())

    def change(obj: Obj) -> Obj:
        return {**obj, "spec": {}}

    with pytest.raises(Conflict):
        await bench.run(Modify(why="count", kind=POD, key=Key("n", "p"), change=change))
    assert len(bench.transport.requests) == 10
    await bench.run(Modify(why="count", kind=POD, key=Key("n", "p"), change=lambda obj: None, on_success=event("x")))
    assert bench.notes == []


async def test_cancelled_in_mid_write_the_cancellation_goes_on(clock: Clock) -> None:
    class Hanging(FakeTransport):
        async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
            await clock.sleep(1000)
            raise AssertionError

    cache, recorder = FakeCache(), FakeRecorder()
    executor = Executor(Client(Hanging(), clock=clock), cache, recorder, clock)
    create = Create(why="make", kind=POD, obj=pod(), on_success=event("x"), on_failure=event("y"))
    task = asyncio.create_task(executor.execute(Plan((create,))))
    await clock.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cache.ingested == []
    assert recorder.events == []


async def test_reconcile_reads_live_what_the_decision_needs_and_decides_again(clock: Clock) -> None:
    bench = Bench(clock, pod(), NotFound("gone"))
    keys = ((POD, Key("n", "p")), (POD, Key("n", "q")))

    def observe(fresh: Fresh) -> dict[Any, Obj | None]:
        return dict(fresh)

    def decide(snapshot: dict[Any, Obj | None]) -> Decision:
        if not snapshot:
            return NeedFresh(keys, "before deleting")
        assert snapshot == {keys[0]: pod(), keys[1]: None}
        return Plan((), Result(after=3))

    assert await reconcile(observe, decide, bench.executor) == Result(after=3)
    assert bench.cache.ingested == [pod()]


async def test_a_failed_action_may_ask_for_a_look_and_for_another_decision(clock: Clock) -> None:
    bench = Bench(clock, AlreadyExists("there"), pod("p", "7"))
    key = (POD, Key("n", "p"))

    def decide(seen: Fresh) -> Decision:
        if key in seen:
            return Plan((), Result(after=3), f"version {(seen[key] or {})['metadata']['resourceVersion']}")
        make = Create(why="make it", kind=POD, obj=pod(), errors={"AlreadyExists": OnError.LOOK})
        return Plan((make, Emit(why="tell", event=event("made"))))

    done: list[Plan] = []
    result = await reconcile(lambda f: dict(f), decide, bench.executor, done=lambda _, plan: done.append(plan))
    assert result == Result(after=3)
    assert [plan.note for plan in done] == ["version 7"]
    assert bench.notes == []


async def test_who_only_executes_is_told_to_come_back_for_a_look(clock: Clock) -> None:
    bench = Bench(clock, AlreadyExists("there"))
    result = await bench.run(Create(why="make it", kind=POD, obj=pod(), errors={"AlreadyExists": OnError.LOOK}))
    assert result.requeue
    assert result.reason == "make it: there"


async def test_reconcile_ends_after_some_rounds_with_a_requeue(clock: Clock) -> None:
    bench = Bench(clock, *[pod()] * 4)

    async def observe(fresh: Fresh) -> int:
        return len(fresh)

    result = await reconcile(observe, lambda n: NeedFresh(((POD, Key("n", "p")),), "stubborn"), bench.executor)
    assert result.requeue
    assert "stubborn" in result.reason
    assert len(bench.transport.requests) == 4


async def test_reconcile_tells_of_a_plan_that_was_carried_out_to_its_end_and_of_no_other(clock: Clock) -> None:
    made: list[tuple[str, Plan]] = []

    def decide(seen: str) -> Decision:
        rule = {"Conflict": OnError.REQUEUE}
        return Plan((Delete(why="w", kind=POD, key=Key("n", "p"), uid="u", errors=rule),), Result(after=3))

    async def run(answer: object) -> Result:
        executor = Bench(clock, answer).executor
        return await reconcile(lambda _: "seen", decide, executor, done=lambda seen, plan: made.append((seen, plan)))

    assert (await run(Conflict("changed"))).requeue
    assert made == []
    assert (await run(pod())).after == 3
    assert made == [("seen", decide("seen"))]
