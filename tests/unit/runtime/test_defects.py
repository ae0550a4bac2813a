"""Mistakes in the functions that a controller is given are told in one sentence and end nothing."""

from __future__ import annotations

import asyncio
import functools
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import AsyncMock

import pytest
import structlog

from lwskit.runtime.clock import Clock, RealClock
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller, ControllerError
from lwskit.runtime.controller.defects import Defect
from lwskit.runtime.controller.handler import Event, for_object, from_async_map, from_map
from lwskit.runtime.controller.source import AsyncDispatcher, ChannelSource
from lwskit.runtime.errors import ConfigurationError, Conflict, ConnectionFailed, TerminalError
from lwskit.runtime.kinds import POD
from lwskit.runtime.queue import WorkQueue
from lwskit.runtime.request import Request, Result

A, B = Request("default", "a"), Request("default", "b")
POD_A = {"metadata": {"namespace": "default", "name": "a"}}


async def nothing(request: Request) -> None:
    return


def make(clock: Clock, reconcile: Any, **options: Any) -> Controller:
    return Controller("test", reconcile, options.pop("sources", ()), clock=clock, rng=random.Random(1), **options)


@asynccontextmanager
async def running(controller: Controller) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(0)
    try:
        yield task
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("value", [True, False, 60, {}, {"a": 1}, "", [], A])
@pytest.mark.parametrize("priorities", [True, False])
async def test_what_is_no_result_is_a_recovered_panic_that_says_so(clock: Clock, value: Any, priorities: bool) -> None:
    answers = [value]

    async def reconcile(request: Request) -> Any:
        return answers.pop() if answers else None

    controller = make(clock, reconcile, priorities=priorities)
    with structlog.testing.capture_logs() as logs:
        async with running(controller):
            logs.clear()
            controller.queue.add(A)
            await clock.sleep(10)
    assert controller.stats.results == {"error": 1, "requeue_after": 0, "requeue": 0, "success": 1}
    assert (controller.stats.panics, controller.stats.active) == (1, 0)
    text = f"reconcile of controller test returned {type(value).__name__}; return None or a Result"
    assert [entry["error"] for entry in logs if entry["log_level"] == "error"] == [f"panic: {text} [recovered]"]
    assert not any("exc_info" in entry for entry in logs)


async def test_what_is_no_result_ends_the_controller_without_recovery(clock: Clock) -> None:
    controller = make(clock, AsyncMock(return_value=5), recover=False)
    controller.queue.add(A)
    with pytest.raises(Defect, match=r"^reconcile of controller test returned int; return None or a Result$"):
        await controller.run()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"after": timedelta(seconds=1)}, r"^Result\(after=…\) is timedelta; give a number of seconds$"),
        ({"after": "5"}, r"^Result\(after=…\) is str; give"),
        ({"after": True}, r"^Result\(after=…\) is bool; give"),
        ({"after": float("nan")}, r"^Result\(after=nan\) is no time; give a finite number"),
        ({"after": float("inf")}, r"^Result\(after=inf\) is no time"),
        ({"requeue": 5}, r"^Result\(requeue=…\) is int; give True or False, or after=seconds$"),
        ({"error": "boom"}, r"^Result\(error=…\) is str; give an exception or None$"),
        ({"error": ValueError}, r"^Result\(error=…\) is type; give an exception or None$"),
        ({"priority": "high"}, r"^Result\(priority=…\) is str; give an int or None$"),
        ({"priority": False}, r"^Result\(priority=…\) is bool; give an int or None$"),
    ],
)
async def test_a_result_of_wrong_fields_is_refused_and_within_a_reconcile_a_recovered_panic(
    clock: Clock, fields: dict[str, Any], text: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        Result(**fields)
    wrong = [fields]

    async def reconcile(request: Request) -> Result:
        return Result(**wrong.pop()) if wrong else Result()

    controller = make(clock, reconcile)
    async with running(controller):
        controller.queue.add(A)
        await clock.sleep(10)
    assert (controller.stats.panics, controller.stats.results["success"]) == (1, 1)


class Callable_:
    async def __call__(self, request: Request) -> None:
        return

    async def method(self, request: Request, more: int = 0) -> None:
        return

    @staticmethod
    async def static(request: Request) -> None:
        return


@functools.wraps(nothing)
def wrapper(request: Request) -> Any:
    return nothing(request)


@pytest.mark.parametrize(
    "reconcile",
    [
        nothing,
        Callable_(),
        Callable_().method,
        Callable_.static,
        functools.partial(Callable_().method, more=1),
        functools.partial(functools.partial(Callable_())),
        wrapper,
        AsyncMock(),
    ],
)
def test_whatever_gives_a_coroutine_is_taken_as_reconcile(clock: Clock, reconcile: Any) -> None:
    assert make(clock, reconcile).name == "test"
    Builder(reconcile, clock=clock, rng=random.Random(1))


def plain(request: Request) -> None:
    return


class Plain:
    def __call__(self, request: Request) -> None:
        return


@pytest.mark.parametrize(
    ("reconcile", "text"),
    [
        (plain, "plain is not a coroutine function; write `async def`"),
        (functools.partial(plain), "plain is not a coroutine function; write `async def`"),
        (Plain(), "Plain is not a coroutine function; write `async def`"),
        (Callable_, "reconcile is the class Callable_; give an instance of it"),
        (None, "reconcile is None, not a coroutine function; write `async def`"),
        (5, "reconcile is int, not a coroutine function; write `async def`"),
    ],
)
def test_a_reconcile_that_is_no_coroutine_function_is_refused_at_once(clock: Clock, reconcile: Any, text: str) -> None:
    with pytest.raises(ControllerError, match=f"^controller test: {text}$"):
        make(clock, reconcile)
    with pytest.raises(ControllerError, match=f"^no controller can be built: {text}$"):
        Builder(reconcile, clock=clock, rng=random.Random(1))
    with pytest.raises(ControllerError, match=f"^controller c: {text}$"):
        Builder(reconcile, clock=clock, rng=random.Random(1), name="c")


async def test_causes_in_a_circle_are_no_more_than_an_error(clock: Clock) -> None:
    other = Conflict("y")

    async def reconcile(request: Request) -> None:
        try:
            raise Conflict("x")
        except Conflict as error:
            other.__cause__ = error
            raise error from other

    deep: BaseException = TerminalError("no use")
    for _ in range(5000):
        above = ValueError("above")
        above.__cause__ = deep
        deep = above

    async def itself(request: Request) -> None:
        error = Conflict("z")
        raise error from (deep if request == B else error)

    for function in (reconcile, itself):
        controller = make(clock, function)
        async with running(controller):
            controller.queue.add(A)
            await clock.sleep(0.03)
        assert (controller.stats.errors, controller.stats.terminal) == (3, 0)
    controller = make(clock, itself)
    async with running(controller):
        controller.queue.add(B)
        await clock.sleep(10)
    assert (controller.stats.errors, controller.stats.terminal) == (1, 1)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class MuteConflict(Conflict):
    __str__ = Mute.__str__


@pytest.mark.parametrize("error", [Mute(), MuteConflict("x")])
async def test_an_error_whose_text_cannot_be_read_is_retried_too(clock: Clock, error: Exception) -> None:
    errors = [error]

    async def reconcile(request: Request) -> None:
        if errors:
            raise errors.pop()

    controller = make(clock, reconcile)
    with structlog.testing.capture_logs() as logs:
        async with running(controller):
            logs.clear()
            controller.queue.add(A)
            await clock.sleep(10)
    assert controller.stats.results["success"] == 1
    assert f"{type(error).__name__} (its text cannot be read: RuntimeError)" in logs[0]["error"]


async def test_a_cancellation_that_nobody_asked_for_is_a_recovered_panic(clock: Clock) -> None:
    calls: list[Request] = []

    async def reconcile(request: Request) -> None:
        calls.append(request)
        if len(calls) == 1:
            helper = asyncio.create_task(clock.sleep(10))
            await asyncio.sleep(0)
            helper.cancel()
            await helper

    controller = make(clock, reconcile, reconcile_timeout=5)
    with structlog.testing.capture_logs() as logs:
        async with running(controller):
            logs.clear()
            controller.queue.add(A)
            await clock.sleep(10)
    assert len(calls) == 2
    assert (controller.stats.panics, controller.stats.results["success"]) == (1, 1)
    assert logs[0]["error"].startswith("panic: reconcile of controller test was cancelled, but not by the controller:")


def one(obj: Any) -> Any:
    return A


def tuples(obj: Any) -> Any:
    return [("default", "a")]


def none(obj: Any) -> Any:
    return None


def text(obj: Any) -> Any:
    return "default/a"


async def coroutine(obj: Any) -> Iterable[Request]:
    return [A]


async def several(obj: Any) -> AsyncIterator[Request]:
    yield A


WRONG = [
    (one, "one returned one Request; return a list of them"),
    (tuples, "tuples returned tuple among its requests; return Requests only"),
    (none, "none returned None; return a list of Requests, an empty one for none"),
    (text, "text returned str; return a list of Requests, an empty one for none"),
    (coroutine, "coroutine returned a coroutine; make the handler with from_async_map"),
    (several, "several returned async_generator; return a list of Requests, an empty one for none"),
]


@pytest.mark.parametrize(("function", "sentence"), WRONG)
@pytest.mark.parametrize("wrap", [from_map, lambda function: function])
async def test_what_a_handler_returns_wrongly_is_logged_and_others_go_on(
    clock: Clock, function: Any, sentence: str, wrap: Callable[[Any], Any]
) -> None:
    wrong, right = ChannelSource(wrap(function)), ChannelSource(for_object(POD))
    seen: list[Request] = []

    async def reconcile(request: Request) -> None:
        seen.append(request)

    controller = make(clock, reconcile, sources=[wrong, right])
    with structlog.testing.capture_logs() as logs:
        async with running(controller):
            wrong.send(POD_A)
            right.send(POD_A)
            await clock.sleep(1)
    assert seen == [Request("default", "a", "Pod")]
    assert controller.stats.panics == 1
    [entry] = [entry for entry in logs if entry["log_level"] == "error"]
    assert entry["error"] == f"panic: {sentence} [recovered]"
    assert entry["controller"] == "test"


async def test_a_generator_of_requests_is_as_good_as_a_list(clock: Clock) -> None:
    def pair(obj: Any) -> Iterator[Request]:
        yield A
        yield B

    def handle(event: Event) -> Iterator[Request]:
        yield A

    for handler, expected in ((from_map(pair), 2), (handle, 1)):
        source = ChannelSource(handler)
        queue: WorkQueue[Request] = WorkQueue(clock)
        source.start(queue)
        source.send(POD_A)
        assert len(queue) == expected


async def test_what_an_async_map_does_wrongly_is_counted_and_what_it_raises_on_purpose_is_not(clock: Clock) -> None:
    async def returns_one(obj: Any) -> Any:
        return A

    async def unreachable(obj: Any) -> list[Request]:
        raise ConnectionFailed("no route")

    async def divides(obj: Any) -> list[Request]:
        raise ZeroDivisionError

    controller = make(clock, nothing)
    with structlog.testing.capture_logs() as logs:
        for function in (returns_one, unreachable, divides, tuples):
            await AsyncDispatcher(controller.queue, from_async_map(function)).on_add(POD_A, False)
    assert controller.stats.panics == 3
    assert [entry["error"] for entry in logs if entry["log_level"] == "error"] == [
        f"panic: {returns_one.__qualname__} returned one Request; return a list of them [recovered]",
        "no route",
        "panic: ZeroDivisionError() [recovered]",
        "panic: tuples is not a coroutine function; make its handler with from_map [recovered]",
    ]


async def test_a_predicate_that_raises_drops_its_event_only(clock: Clock) -> None:
    source = ChannelSource(for_object(POD), [lambda event: event.obj["metadata"]["labels"]])  # type: ignore[union-attr]
    controller = make(clock, nothing, sources=[source])
    async with running(controller):
        source.send(POD_A)
        source.send({"metadata": {"namespace": "default", "name": "b", "labels": {"a": "b"}}})
        await clock.sleep(1)
    assert (controller.stats.panics, controller.stats.results["success"]) == (1, 1)


async def test_without_a_controller_what_a_handler_does_wrongly_is_logged(clock: Clock) -> None:
    source = ChannelSource(from_map(none))
    source.start(WorkQueue(clock))
    with structlog.testing.capture_logs() as logs:
        source.send(POD_A)
    assert "none returned None" in logs[0]["error"]


def divides(request: Request) -> int:
    return 1 // 0


def listed(request: Request) -> Any:
    return [request.namespace]


@pytest.mark.parametrize("priorities", [True, False])
@pytest.mark.parametrize(
    ("lane", "sentence"),
    [
        (divides, "raised ZeroDivisionError('integer division or modulo by zero') for default/a"),
        (listed, "returned list for default/a, which has no hash"),
    ],
)
async def test_a_lane_that_fails_is_the_place_of_the_request(
    clock: Clock, lane: Any, sentence: str, priorities: bool
) -> None:
    calls: list[Awaitable[None] | float] = []

    async def reconcile(request: Request) -> None:
        calls.append(clock.monotonic())
        await clock.sleep(1)

    controller = make(clock, reconcile, lane=lane, priorities=priorities)
    with structlog.testing.capture_logs() as logs:
        async with running(controller):
            logs.clear()
            controller.queue.add(A)
            await clock.sleep(0.5)
            controller.queue.add(A)
            await clock.sleep(5)
    assert calls == [0, 1]
    assert controller.stats.panics >= 2
    assert (
        logs[0]["error"]
        == f"panic: lane of controller test {sentence}; its namespace and name are used instead [recovered]"
    )


@pytest.mark.parametrize("priorities", [True, False])
async def test_a_lane_that_changes_its_answer_blocks_nothing(clock: Clock, priorities: bool) -> None:
    answers = iter(range(1000))
    calls: list[Request] = []

    async def reconcile(request: Request) -> None:
        calls.append(request)
        await clock.sleep(1)

    controller = make(clock, reconcile, lane=lambda request: next(answers), priorities=priorities)
    async with running(controller):
        controller.queue.add(A)
        await clock.sleep(5)
        assert controller.queue.processing_since() == []
        controller.queue.add(A)
        await clock.sleep(5)
    assert calls == [A, A]


def test_a_builder_wants_informers_and_handlers(clock: Clock) -> None:
    builder = Builder(nothing, clock=clock, rng=random.Random(1))
    wrong: Any = POD
    for method, call in (
        ("for_", lambda: builder.for_(wrong)),
        ("owns", lambda: builder.owns(wrong)),
        ("watches", lambda: builder.watches(wrong, for_object(POD))),
    ):
        with pytest.raises(ControllerError) as caught:
            call()
        assert str(caught.value).startswith(f"{method}() was given the kind Pod; give the informer of its cache")
    wrong = None
    with pytest.raises(ControllerError, match=r"^for_\(\) was given None; give an informer, as cache.informer\(kind\)"):
        builder.for_(wrong)
    informer: Any = AsyncMock()
    with pytest.raises(ControllerError, match=r"^watches\(\) was given 5 as its handler; make one with"):
        builder.watches(informer, wrong or 5)  # type: ignore[arg-type]


def test_a_channel_may_be_sent_to_from_any_thread() -> None:
    """On a real loop that sleeps for an hour: only a wake-up from outside lets it see the object."""
    source = ChannelSource(for_object(POD))
    seen: list[Request] = []
    done = threading.Event()

    async def reconcile(request: Request) -> None:
        seen.append(request)
        done.set()

    async def main() -> None:
        controller = Controller("c", reconcile, [source], clock=RealClock(), rng=random.Random(1))
        async with running(controller):
            worker = asyncio.create_task(asyncio.to_thread(send))
            async with asyncio.timeout(3600):
                await worker
        closed.append(asyncio.get_running_loop())

    def send() -> None:
        source.send(POD_A)
        assert done.wait(10)

    closed: list[asyncio.AbstractEventLoop] = []
    asyncio.run(main())
    assert seen == [Request("default", "a", "Pod")]
    assert closed[0].is_closed()
    with pytest.raises(ConfigurationError, match=r"^a channel source cannot send any more: Event loop is closed$"):
        source.send(POD_A)
