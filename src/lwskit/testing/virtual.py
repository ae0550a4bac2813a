"""An asyncio event loop whose time is virtual: waiting costs nothing, and a run repeats itself exactly.

The loop jumps to the next timer when nothing is ready. Nothing outside the process takes part, so sockets, threads,
subprocesses and signals are errors; a main task that nothing can wake is an error too instead of a test that hangs.
"""

from __future__ import annotations

import asyncio
import selectors
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import CodeType, FrameType
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The date at which virtual time starts."""

LIMIT = 24 * 3600.0
"""Virtual seconds that one run may take unless the loop is given another limit."""

STEPS = 1_000_000
"""Rounds of the loop that may pass at one instant."""

_SHOWN = 25
_NUDGE = 1e-6


class VirtualTimeError(RuntimeError):
    """Something that has no meaning on a virtual loop was asked of it."""


class Deadlock(VirtualTimeError):
    """The main task waits, and neither a timer nor another task can ever wake it."""


class TimeLimitExceeded(VirtualTimeError):
    """The main task did not end within the virtual seconds that a run may take."""


class Livelock(VirtualTimeError):
    """Tasks wake each other for ever, and time does not pass."""


class _NoSelector(selectors.BaseSelector):
    """Takes the place where a loop waits for the outside world: there is none, so waiting moves the time."""

    def __init__(self) -> None:
        self.wait: Callable[[float | None], None] = lambda timeout: None

    def register(self, fileobj: Any, events: int, data: Any = None) -> NoReturn:
        _refuse("watching a file descriptor")

    def unregister(self, fileobj: Any) -> NoReturn:
        _refuse("watching a file descriptor")

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.wait(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        raise KeyError(fileobj)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time, starting at 0 s.

    `limit` is how many virtual seconds one `run_until_complete` may take; then the main task is cancelled and
    TimeLimitExceeded raised. When nothing can wake the main task, it is cancelled likewise and Deadlock raised; so it
    is with Livelock when `steps` rounds have passed at one instant. The errors list the tasks that failed without
    anybody taking notice, then the pending tasks and the line at which each of them waits.
    """

    def __init__(self, limit: float = LIMIT, steps: int = STEPS) -> None:
        selector = _NoSelector()
        super().__init__(selector)
        selector.wait = self._wait
        self._now = 0.0
        self._limit = limit
        self._steps = steps
        self._rounds = 0
        self._deadline = float("inf")
        self._main: asyncio.Future[Any] | None = None
        self._failure: VirtualTimeError | None = None
        self._made: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """Run a coroutine as a task, and remember it for as long as somebody holds it."""
        task: asyncio.Task[Any] = super().create_task(coro, **options)
        self._made.add(task)
        return task

    def unnoticed(self) -> list[asyncio.Task[Any]]:
        """The tasks whose exception nobody has asked for, by name."""
        found = [task for task in self._made if task.done() and getattr(task, "_log_traceback", False)]
        return sorted(found, key=lambda task: task.get_name())

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def run_until_complete(self, future: Any) -> Any:
        """Run until the future is done and return its result.

        Raises Deadlock, Livelock or TimeLimitExceeded, after the main task was cancelled and could clean up.
        """
        main = asyncio.ensure_future(future, loop=self)
        before = self._main, self._deadline
        self._main, self._deadline, self._failure = main, self._now + self._limit, None
        try:
            return super().run_until_complete(main)
        except asyncio.CancelledError:
            if self._failure is None:
                raise
            raise self._failure from None
        finally:
            self._main, self._deadline = before
            self._failure = None

    def _wait(self, timeout: float | None) -> None:
        """Called by the loop where a real one would wait for input: `timeout` is None when it would wait for ever."""
        if timeout is None:
            self._fail(Deadlock, "nothing is ready and no timer is set, but the main task still waits")
        elif timeout > 0:
            if self._now >= self._deadline:
                self._fail(TimeLimitExceeded, f"the main task still waits after {self._limit:g} virtual seconds")
            self._now = self._target(timeout)
            self._rounds = 0
        else:
            self._now = self._reached()
            self._rounds += 1
            if self._rounds > self._steps:
                self._fail(Livelock, f"time has not passed for {self._steps} rounds of the loop")

    def _target(self, timeout: float) -> float:
        """When the next timer is due: its own time and not a rounded sum, so that timers fire exactly."""
        target = self._now + timeout
        scheduled = getattr(self, "_scheduled", None)
        when = scheduled[0].when() if scheduled else target
        return when if abs(when - target) < _NUDGE and when > self._now else target

    def _reached(self) -> float:
        """The time of the timer that fires in this round although it is due a rounding error later than now.

        Without it two tasks that wait for such instants would keep each other ready, and time would stand still.
        """
        scheduled = getattr(self, "_scheduled", None)
        when = scheduled[0].when() if scheduled else self._now
        early: float = getattr(self, "_clock_resolution", 0.0)
        return when if self._now < when < self._now + early else self._now

    def _fail(self, kind: type[VirtualTimeError], text: str) -> None:
        """Cancel the main task once; if that does not end it, leave the loop."""
        first = self._failure is None
        if first:
            self._failure = kind(f"{text} (at {self._now:g} s)\n{describe_tasks(self, self._main)}")
        assert self._failure is not None
        if self._main is None or self._main.done() or not first:
            raise self._failure
        self._deadline = self._now + self._limit
        self._rounds = 0
        self._main.cancel()

    def _make_self_pipe(self) -> None:
        """No pipe: nothing outside this thread wakes the loop."""

    def _close_self_pipe(self) -> None:
        """Nothing to close."""

    def _write_to_self(self) -> None:
        """The loop never sleeps, so it need not be woken."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> NoReturn:
        """Refused: a thread runs in real time."""
        _refuse(f"a thread ({getattr(func, '__name__', func)})")

    def add_signal_handler(self, sig: int, callback: Any, *args: Any) -> NoReturn:
        """Refused: signals come from outside."""
        _refuse("a signal handler")


def _refuse(what: str) -> NoReturn:
    raise VirtualTimeError(f"{what} is not available on a virtual loop: only tasks and timers of this process are")


_REFUSED = {
    "a connection": ("create_connection", "create_unix_connection", "connect_accepted_socket", "start_tls"),
    "a server socket": ("create_server", "create_unix_server"),
    "a datagram socket": ("create_datagram_endpoint",),
    "a socket": (
        *("sock_accept", "sock_connect", "sock_recv", "sock_recv_into", "sock_recvfrom", "sock_recvfrom_into"),
        *("sock_sendall", "sock_sendfile", "sock_sendto", "sendfile"),
    ),
    "watching a file descriptor": ("add_reader", "add_writer"),
    "a pipe": ("connect_read_pipe", "connect_write_pipe"),
    "a subprocess": ("subprocess_exec", "subprocess_shell"),
    "a name look-up": ("getaddrinfo", "getnameinfo"),
}


def _refusal(what: str, name: str) -> Callable[..., NoReturn]:
    def refuse(self: VirtualLoop, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse(f"{what} ({name})")

    refuse.__name__ = name
    refuse.__doc__ = f"Refused: {what} is outside the process."
    return refuse


for _what, _names in _REFUSED.items():
    for _name in _names:
        setattr(VirtualLoop, _name, _refusal(_what, _name))


def describe_tasks(loop: asyncio.AbstractEventLoop, main: asyncio.Future[Any] | None = None) -> str:
    """The tasks of a loop, one a line: those that failed unnoticed, `main`, and the others with where each waits."""
    failed = loop.unnoticed() if isinstance(loop, VirtualLoop) else []
    errors = [f"  task {t.get_name()!r} failed, and nobody took notice: {t.exception()!r}" for t in failed[:_SHOWN]]
    tasks = sorted(asyncio.all_tasks(loop), key=lambda t: (t is not main, t.get_name()))
    lines = [f"  {'main task' if t is main else 'task'} {t.get_name()!r} waits at {_place(t)}" for t in tasks[:_SHOWN]]
    if len(tasks) > _SHOWN:
        lines.append(f"  and {len(tasks) - _SHOWN} more tasks")
    return "\n".join([*errors, *lines]) or "  there is no pending task"


def _place(task: asyncio.Task[Any]) -> str:
    spots = [(f.f_code, f.f_lineno) for f in _frames(task.get_coro())]
    outside = [s for s in spots if "asyncio" not in s[0].co_filename.replace("\\", "/").split("/")[-2:-1]] or spots
    if not outside:
        return "an unknown place"
    return " < ".join(_spot(code, line) for code, line in reversed(outside[-3:]))


def _spot(code: CodeType, line: int) -> str:
    return f"{code.co_filename.rsplit('/', 1)[-1]}:{line} ({code.co_qualname})"


def _frames(awaited: Any) -> Iterator[FrameType]:
    """The frames of a coroutine and of what it awaits, outermost first."""
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is None:
            frame = getattr(awaited, "gi_frame", None)
        if frame is not None:
            yield frame
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)


class VirtualClock:
    """The clock of the running virtual loop: dates count from EPOCH. Implements `lwskit.runtime.clock.Clock`."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop

    def now(self) -> datetime:
        """The virtual date and time, in UTC."""
        __tracebackhide__ = True
        return EPOCH + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Virtual seconds since the loop was made. Raises VirtualTimeError outside a loop unless one was given."""
        __tracebackhide__ = True
        try:
            return (self._loop or asyncio.get_running_loop()).time()
        except RuntimeError:
            raise VirtualTimeError(
                "virtual time is that of an event loop, and none runs here: make the test `async def`, "
                "or take lwskit.testing.clock.FakeClock, which needs none"
            ) from None

    async def sleep(self, seconds: float) -> None:
        """Let that many virtual seconds pass, which takes no real time. Cancelling it ends the wait."""
        await asyncio.sleep(seconds)


def run(main: Coroutine[Any, Any, T], *, limit: float = LIMIT) -> T:
    """Run a coroutine on a fresh virtual loop, as `asyncio.run` does on a real one, and return its result.

    `limit` is how many virtual seconds it may take. Raises Deadlock, Livelock and TimeLimitExceeded.
    """
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(limit)) as runner:
        return runner.run(main)
