"""The controller's checklist (specification: 70 §17, Controller), on virtual time."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import structlog

from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller, ControllerError
from lwskit.runtime.controller.handler import Delete, for_object, from_async_map
from lwskit.runtime.controller.options import ControllerDefaults
from lwskit.runtime.controller.source import (
    AsyncDispatcher,
    ChannelSource,
    FunctionSource,
    InformerSource,
    KindSource,
)
from lwskit.runtime.errors import ConfigurationError, Conflict, Forbidden, TerminalError
from lwskit.runtime.kinds import POD, STATEFUL_SET, Kind
from lwskit.runtime.queue import WorkQueue
from lwskit.runtime.request import Request, Result
from lwskit.runtime.tasks import TaskCancelled

A, B = Request("default", "a"), Request("default", "b")


class FakeInformer:
    """Tells its handlers what a test says."""

    def __init__(self, kind: Kind = POD, synced: bool = True) -> None:
        self.kind = kind
        self.handlers: list[Any] = []
        self.synced = asyncio.Event()
        if synced:
            self.synced.set()

    last_error: Exception | None = None

    def add_handler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def add_async_handler(self, handler: Any) -> FakeInformer:
        self.handlers.append(handler)
        return self

    async def wait_synced(self) -> None:
        await self.synced.wait()


def make(clock: Clock, reconcile: Callable[[Request], Awaitable[Result | None]], **options: Any) -> Controller:
    return Controller("test", reconcile, options.pop("sources", ()), clock=clock, rng=random.Random(1), **options)


@asynccontextmanager
async def running(controller: Controller) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(0)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Script:
    """A reconcile that answers from a list and remembers when it was called; what is left out succeeds."""

    def __init__(self, clock: Clock, *answers: Result | Exception) -> None:
        self.clock = clock
        self.answers = list(answers)
        self.times: list[float] = []
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Result | None:
        self.times.append(self.clock.monotonic())
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_no_reconcile_before_sources_have_synced_and_an_error_when_they_do_not(clock: Clock) -> None:
    """70 §17 Controller 1: nothing is reconciled before sources have synced; not synced in time is an error that names
    them.
    """
    informer = FakeInformer(synced=False)
    script = Script(clock)
    controller = make(clock, script, sources=[KindSource(informer, for_object(POD))])
    async with running(controller):
        controller.queue.add(A)
        await clock.sleep(60)
        assert script.times == []
        informer.synced.set()
        await clock.sleep(1)
        assert script.times == [60]
    late = make(clock, script, sources=[KindSource(FakeInformer(synced=False), for_object(POD))])
    text = "failed to wait for test caches to sync kind source: Pod: timed out waiting for cache to be synced for kind"
    before = clock.monotonic()
    with pytest.raises(ControllerError, match=text):
        await late.run()
    assert clock.monotonic() == before + 120


async def test_one_key_with_many_events_is_reconciled_by_one_worker_at_a_time(clock: Clock) -> None:
    """70 §17 Controller 2: many workers, but one of them at most for one key."""
    active: dict[str, int] = {}
    most: dict[str, int] = {}
    calls = 0

    async def reconcile(request: Request) -> None:
        nonlocal calls
        calls += 1
        active[request.name] = active.get(request.name, 0) + 1
        most[request.name] = max(most.get(request.name, 0), active[request.name])
        together.append(sum(active.values()))
        await clock.sleep(1)
        active[request.name] -= 1

    together: list[int] = []
    controller = make(clock, reconcile)
    async with running(controller):
        for tick in range(40):
            controller.queue.add(A)
            controller.queue.add(Request("default", f"other-{tick % 20}"))
            await clock.sleep(0.1)
    assert set(most.values()) == {1}
    assert max(together) == 8
    assert calls > 10


async def test_a_deleted_request_and_one_for_its_successor_do_not_overlap(clock: Clock) -> None:
    spans: list[tuple[str, float]] = []

    async def reconcile(request: Request) -> None:
        spans.append((str(request), clock.monotonic()))
        await clock.sleep(1)

    controller = make(clock, reconcile)
    async with running(controller):
        controller.queue.add(Request("default", "a", uid="1", deleted=True))
        controller.queue.add(A)
        await clock.sleep(5)
    assert spans == [("deleted default/a", 0.0), ("default/a", 1.0)]


async def test_an_error_is_retried_with_growing_delay_and_success_resets_it(clock: Clock) -> None:
    """70 §17 Controller 3: back-off grows with failures, and a success forgets them."""
    script = Script(clock, Conflict("x"), Conflict("x"), Conflict("x"))
    controller = make(clock, script)
    async with running(controller):
        controller.queue.add(A)
        await clock.sleep(10)
        assert script.times == pytest.approx([0, 0.005, 0.015, 0.035])
        assert controller.queue.failures(A) == 0
        assert controller.stats.results == {"error": 3, "requeue_after": 0, "requeue": 0, "success": 1}
        assert controller.stats.errors == 3
        assert controller.stats.panics == 0


async def test_a_terminal_error_also_wrapped_is_not_retried_until_a_later_event(clock: Clock) -> None:
    """70 §17 Controller 4: a terminal error, also as a cause, waits for the next event."""
    wrapped = Conflict("outer")
    wrapped.__cause__ = TerminalError("no use")
    script = Script(clock, Conflict("first"), TerminalError("no use"), wrapped)
    controller = make(clock, script)
    async with running(controller):
        controller.queue.add(A)
        await clock.sleep(10)
        assert len(script.times) == 2
        assert controller.queue.failures(A) == 1
        controller.queue.add(A)
        await clock.sleep(10)
        assert len(script.times) == 3
        controller.queue.add(A)
        await clock.sleep(10)
        assert len(script.times) == 4
        assert controller.stats.terminal == 2
    assert str(TerminalError("no use")) == "terminal error: no use"


async def test_requeue_with_after_waits_that_long_and_forgets_failures(clock: Clock) -> None:
    """70 §17 Controller 6: with both wishes the delay holds and is what is counted."""
    script = Script(clock, Conflict("x"), Result(requeue=True, after=5))
    controller = make(clock, script)
    async with running(controller):
        controller.queue.add(A)
        await clock.sleep(20)
        assert script.times == pytest.approx([0, 0.005, 5.005])
        assert controller.stats.results["requeue_after"] == 1
        assert controller.queue.failures(A) == 0


async def test_requeue_after_is_the_latest_time_and_an_event_before_it_takes_its_place(clock: Clock) -> None:
    script = Script(clock, Result(after=5))
    controller = make(clock, script)
    async with running(controller):
        controller.queue.add(A)
        await clock.sleep(2)
        controller.queue.add(A)
        await clock.sleep(20)
        assert script.times == [0, 2]


async def test_requeue_alone_is_rate_limited(clock: Clock) -> None:
    """70 §17 Controller 7: asking to run again without a delay means back-off."""
    script = Script(clock, Result(requeue=True), Result(requeue=True), Result(requeue=True))
    controller = make(clock, script)
    async with running(controller):
        controller.queue.add(A)
        await clock.sleep(10)
        assert script.times == pytest.approx([0, 0.005, 0.015, 0.035])
        assert controller.stats.results["requeue"] == 3


async def test_an_unexpected_exception_is_recovered_and_counted_or_with_recovery_off_propagates(clock: Clock) -> None:
    """70 §17 Controller 8: an exception counts as an error and a panic; without recovery it goes on up."""
    script = Script(clock, KeyError("x"))
    controller = make(clock, script)
    with structlog.testing.capture_logs() as logs:
        async with running(controller):
            controller.queue.add(A)
            await clock.sleep(1)
    assert len(script.times) == 2
    assert controller.stats.panics == 1
    assert controller.stats.errors == 1
    assert [entry["error"] for entry in logs if "error" in entry] == ["panic: KeyError('x') [recovered]"]
    frank = make(clock, Script(clock, KeyError("y")), recover=False)
    frank.queue.add(A)
    with pytest.raises(KeyError, match="y"):
        await frank.run()


async def test_a_reconcile_over_its_timeout_is_cancelled_and_counted(clock: Clock) -> None:
    """70 §17 Controller 9: a reconcile that takes too long is cut off and counted; one cut off by the end is not."""
    ended: list[float] = []

    async def reconcile(request: Request) -> None:
        try:
            await clock.sleep(100)
        finally:
            ended.append(clock.monotonic())

    controller = make(clock, reconcile, reconcile_timeout=3, grace=0.5)
    async with running(controller):
        controller.queue.add(A)
        await clock.sleep(3.001)
        assert ended == [3]
        assert controller.stats.timeouts == 1
        assert controller.stats.errors == 1
        await clock.sleep(1)
    # The second try was cut off by the shutdown, which is no timeout.
    assert len(ended) == 2
    assert controller.stats.timeouts == 1


async def test_priority_is_kept_on_failure_and_overridden_by_a_result(clock: Clock) -> None:
    """70 §17 Controller 10: the next try has the priority of the last, or the result's own."""
    priorities: list[int] = []
    script = Script(clock, Conflict("x"), Result(requeue=True, priority=7))
    controller = make(clock, script)
    add = controller.queue.add

    def spy(request: Request, priority: int = 0, after: float = 0.0, rate_limited: bool = False) -> None:
        priorities.append(priority)
        add(request, priority, after, rate_limited)

    controller.queue.add = spy  # type: ignore[method-assign]
    async with running(controller):
        controller.queue.add(A, -100)
        await clock.sleep(1)
    assert priorities == [-100, -100, 7]


async def test_a_request_is_reconciled_although_its_object_is_gone(clock: Clock) -> None:
    """70 §17 Controller 11: the reconcile is called although there is nothing left to look at."""
    informer = FakeInformer()
    script = Script(clock)
    controller = make(clock, script, sources=[KindSource(informer, for_object(POD))])
    async with running(controller):
        informer.handlers[0].on_delete({"metadata": {"namespace": "default", "name": "a", "uid": "1"}}, False)
        await clock.sleep(1)
    assert script.requests == [Request("default", "a", "Pod")]


async def test_cancellation_lets_the_running_reconcile_end_and_drops_what_is_queued(clock: Clock) -> None:
    """70 §17 Controller 12: at the end what runs is waited for and what waits is dropped."""
    ended: list[str] = []

    async def reconcile(request: Request) -> None:
        await clock.sleep(2)
        ended.append(request.name)

    controller = make(clock, reconcile, concurrency=1)
    controller.queue.add(A)
    controller.queue.add(B)
    task = asyncio.create_task(controller.run())
    await clock.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["a"]
    assert clock.monotonic() == 2


async def test_a_second_cancellation_cancels_the_running_reconcile(clock: Clock) -> None:
    async def reconcile(request: Request) -> None:
        await clock.sleep(1000)

    controller = make(clock, reconcile)
    controller.queue.add(A)
    task = asyncio.create_task(controller.run())
    await clock.sleep(1)
    task.cancel()
    await clock.sleep(1)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.monotonic() == 2


async def test_reconciles_that_never_wait_leave_others_their_turns(clock: Clock) -> None:
    """Neither watches nor the renewal of a Lease stand still while a long queue is worked off."""
    turns: list[int] = []
    done: list[Request] = []
    finished = asyncio.Event()

    async def reconcile(request: Request) -> None:
        done.append(request)
        if len(done) == 500:
            finished.set()
        if len(done) % 2 == 0:
            raise TerminalError("at once")

    async def other() -> None:
        while not finished.is_set():
            turns.append(len(done))
            await asyncio.sleep(0)
        turns.append(len(done))

    controller = make(clock, reconcile, concurrency=2)
    for number in range(500):
        controller.queue.add(Request("default", str(number)))
    task = asyncio.create_task(other())
    async with running(controller):
        await task
    assert max(after - before for before, after in itertools.pairwise(turns)) <= 4


async def test_a_second_start_is_refused(clock: Clock) -> None:
    controller = make(clock, Script(clock))
    async with running(controller):
        with pytest.raises(ControllerError, match="started already"):
            await controller.run()


async def test_a_source_added_after_start_begins_at_once(clock: Clock) -> None:
    script = Script(clock)
    controller = make(clock, script)
    channel = ChannelSource(for_object(POD))
    async with running(controller):
        controller.watch(channel)
        channel.send({"metadata": {"namespace": "default", "name": "a"}})
        await clock.sleep(1)
        channel.close()
        channel.send({"metadata": {"namespace": "default", "name": "b"}})
        await clock.sleep(1)
    assert [r.name for r in script.requests] == ["a"]


async def test_the_reconcile_id_and_the_request_are_in_the_log_context(clock: Clock) -> None:
    seen: list[dict[str, Any]] = []

    async def reconcile(request: Request) -> None:
        seen.append(structlog.contextvars.get_contextvars())

    controller = make(clock, reconcile)
    async with running(controller):
        controller.queue.add(Request("default", "a", "Pod"))
        controller.queue.add(B)
        await clock.sleep(1)
    other = make(clock, reconcile, kind=STATEFUL_SET)
    async with running(other):
        other.queue.add(A)
        await clock.sleep(1)
    place = {"namespace": "default", "name": "a"}
    assert seen[0] == {"controller": "test", "controllerKind": "Pod", "Pod": place, **place} | {
        "reconcileID": seen[0]["reconcileID"]
    }
    assert seen[2].items() >= {"controllerGroup": "apps", "controllerKind": "StatefulSet", "StatefulSet": place}.items()
    assert len({s["reconcileID"] for s in seen[:2]}) == 2


async def test_a_builder_wires_for_owns_and_watches_with_the_controllers_predicates_first(clock: Clock) -> None:
    sets, pods, others = FakeInformer(STATEFUL_SET), FakeInformer(), FakeInformer()
    script = Script(clock)
    asked: list[str] = []

    def first(event: object) -> bool:
        asked.append("controller")
        return True

    def second(event: object) -> bool:
        asked.append("source")
        return False

    controller = (
        Builder(script, clock=clock, rng=random.Random(1))
        .for_(sets, typed_deletions=True)
        .owns(pods)
        .watches(others, for_object(POD), second)
        .with_predicates(first)
        .build(concurrency=2)
    )
    assert (controller.name, controller.concurrency) == ("statefulset", 2)
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "1", "controller": True}
    async with running(controller):
        pods.handlers[0].on_add({"metadata": {"namespace": "n", "name": "p", "ownerReferences": [owner]}}, False)
        others.handlers[0].on_add({"metadata": {"namespace": "n", "name": "o"}}, False)
        await clock.sleep(1)
        sets.handlers[0].on_delete({"metadata": {"namespace": "n", "name": "s", "uid": "1"}}, False)
        await clock.sleep(1)
    assert script.requests == [
        Request("n", "s", "StatefulSet"),
        Request("n", "s", "StatefulSet", "1", deleted=True),
    ]
    assert asked == ["controller", "controller", "source", "controller"]


async def test_a_builder_refuses_owns_without_for_and_nothing_to_watch(clock: Clock) -> None:
    def builder(name: str = "") -> Builder:
        return Builder(Script(clock), clock=clock, rng=random.Random(1), name=name)

    with pytest.raises(ControllerError, match="only be used together with for_"):
        builder().owns(FakeInformer()).build()
    with pytest.raises(ControllerError, match="nothing to watch"):
        builder().build()
    with pytest.raises(ControllerError, match="needs a name"):
        builder().watches(FakeInformer(), for_object(POD)).build()
    with pytest.raises(ControllerError, match="only once"):
        builder().for_(FakeInformer()).for_(FakeInformer())


async def test_a_failure_that_also_asks_for_a_delay_is_retried_with_back_off(clock: Clock) -> None:
    """70 §17 Controller 5: a failed result's delay does not count, its back-off does."""
    script = Script(clock, Result(error=Conflict("x"), after=60, priority=3))
    controller = make(clock, script)
    with structlog.testing.capture_logs() as logs:
        async with running(controller):
            controller.queue.add(A)
            await clock.sleep(10)
    assert script.times == pytest.approx([0, 0.005])
    assert controller.stats.results == {"error": 1, "requeue_after": 0, "requeue": 0, "success": 1}
    assert [entry["log_level"] for entry in logs] == ["info", "warning", "error"]


async def test_sources_sync_side_by_side_and_their_last_error_is_told(clock: Clock) -> None:
    slow, broken = FakeInformer(STATEFUL_SET, synced=False), FakeInformer(synced=False)
    broken.last_error = Forbidden("pods is forbidden")
    sources = [KindSource(informer, for_object(informer.kind)) for informer in (slow, broken)]
    controller = make(clock, Script(clock), sources=sources, sync_timeout=10)
    task = asyncio.create_task(controller.run())
    await clock.sleep(9)
    slow.synced.set()
    with pytest.raises(ControllerError, match=r"for kind source: Pod \(pods is forbidden\)$"):
        await task
    assert clock.monotonic() == 10


async def test_a_source_whose_start_blocks_is_told(clock: Clock) -> None:
    times = iter((0.0, 121.0))

    class Jumping:
        now, sleep = clock.now, clock.sleep

        def monotonic(self) -> float:
            return next(times)

    jumping: Any = Jumping()
    source = FunctionSource(lambda queue: None)
    controller = Controller("test", Script(clock), [source], clock=jumping, rng=random.Random(1))
    with pytest.raises(ControllerError, match=r"starting function source took longer than 120 s; start\(\) must"):
        await controller.run()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            KindSource(cast(Any, None), cast(Any, None)),
            "a kind source cannot start without its informer and its handler",
        ),
        (ChannelSource(cast(Any, None)), "a channel source cannot start without its handler"),
        (FunctionSource(cast(Any, None)), "a function source cannot start without its function"),
    ],
)
async def test_a_source_that_lacks_a_part_is_refused_at_the_start(clock: Clock, source: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{text}$"):
        await make(clock, Script(clock), sources=[source]).run()


async def test_an_informer_source_waits_for_nothing(clock: Clock) -> None:
    script, informer = Script(clock), FakeInformer(synced=False)
    source = InformerSource(informer, for_object(POD))
    assert str(source) == "informer source: Pod"
    async with running(make(clock, script, sources=[source])):
        informer.handlers[0].on_add({"metadata": {"namespace": "default", "name": "a"}}, True)
        await clock.sleep(1)
    assert len(script.requests) == 1


async def test_warmed_up_sources_are_not_started_again(clock: Clock) -> None:
    script, informer = Script(clock), FakeInformer(synced=False)
    controller = make(clock, script, sources=[KindSource(informer, for_object(POD))], warm_up=True)
    assert controller.wants_warm_up
    warming = asyncio.create_task(controller.warm_up())
    await clock.sleep(0)
    informer.handlers[0].on_add({"metadata": {"namespace": "default", "name": "a"}}, True)
    informer.synced.set()
    await warming
    assert script.times == []
    async with running(controller):
        await clock.sleep(1)
    assert (len(informer.handlers), len(script.times)) == (1, 1)


async def test_a_worker_that_dies_ends_the_controller(clock: Clock) -> None:
    async def stray() -> tuple[Request, int]:
        raise asyncio.CancelledError

    controller = make(clock, Script(clock))
    controller.queue.get = stray  # type: ignore[method-assign]
    with pytest.raises(TaskCancelled, match="controller test worker"):
        await controller.run()


async def test_a_manager_fills_in_what_a_controller_leaves_open(clock: Clock) -> None:
    defaults = ControllerDefaults(
        concurrency=2,
        concurrency_by_kind={"StatefulSet.apps": 5},
        needs_leader=False,
        priorities=False,
        reconcile_timeout=7,
        warm_up=True,
    )
    sets = make(clock, Script(clock), kind=STATEFUL_SET)
    pods = make(clock, Script(clock), kind=POD, needs_leader=True, priorities=True)
    own = make(clock, Script(clock), kind=STATEFUL_SET, concurrency=3)
    assert {c.concurrency for c in (sets, pods)} == {8}
    for controller in (sets, pods, own):
        controller.use_defaults(defaults)
    assert [c.concurrency for c in (sets, pods, own)] == [5, 2, 3]
    assert [c.needs_leader for c in (sets, pods)] == [False, True]
    assert [c.wants_warm_up for c in (sets, pods)] == [False, True]
    assert [type(c.queue).__name__ for c in (sets, pods)] == ["PlainQueue", "WorkQueue"]
    async with running(sets):
        with pytest.raises(ControllerError, match="started already"):
            sets.use_defaults(defaults)


async def test_a_map_function_that_waits_is_asked_in_order_beside_the_informer(clock: Clock) -> None:
    asked: list[str] = []

    async def owners(obj: dict[str, Any]) -> list[Request]:
        asked.append(obj["metadata"]["name"])
        await clock.sleep(1)
        return [Request("n", "x"), Request("n", obj["metadata"]["name"])]

    queue: WorkQueue[Request] = WorkQueue(clock)
    dispatcher = AsyncDispatcher(queue, from_async_map(owners), [lambda event: not isinstance(event, Delete)])
    old, new = ({"metadata": {"name": name, "resourceVersion": name}} for name in ("old", "new"))
    await dispatcher.on_update(old, new)
    await dispatcher.on_delete(new, False)
    await dispatcher.on_add(new, True)
    assert asked == ["old", "new", "new"]
    assert queue.depth == {0: 3}
    informer = FakeInformer()
    source = KindSource(informer, from_async_map(owners))
    source.start(queue)
    await source.wait_synced()
    assert isinstance(informer.handlers[0], AsyncDispatcher)


async def test_a_queue_that_is_handed_in_is_used_even_while_it_is_empty(clock: Clock) -> None:
    queue: WorkQueue[Request] = WorkQueue(clock)
    script = Script(clock)
    controller = make(clock, script, queue=queue)
    assert controller.queue is queue
