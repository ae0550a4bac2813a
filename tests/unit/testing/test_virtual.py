import asyncio
import math
import signal
import socket
import time
from datetime import UTC, datetime

import pytest

from lwskit.testing.virtual import (
    Deadlock,
    Livelock,
    TimeLimitExceeded,
    VirtualClock,
    VirtualLoop,
    VirtualTimeError,
    run,
)


def test_waiting_takes_virtual_time_only():
    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.sleep(3600)
        return loop.time()

    began = time.monotonic()
    assert run(main()) == 3600
    assert time.monotonic() - began < 1


def test_timers_fire_exactly_and_in_order():
    async def main():
        loop, seen = asyncio.get_running_loop(), []

        async def sleeper(name, seconds):
            await asyncio.sleep(seconds)
            seen.append((name, loop.time()))

        async with asyncio.TaskGroup() as group:
            for name, seconds in (("c", 0.3), ("a", 0.1), ("b", 0.2), ("b2", 0.2)):
                group.create_task(sleeper(name, seconds))
        return seen

    assert run(main()) == [("a", 0.1), ("b", 0.2), ("b2", 0.2), ("c", 0.3)]


def test_two_runs_are_equal():
    async def main():
        seen = []

        async def worker(n):
            for i in range(3):
                await asyncio.sleep(0.1 * (n % 3))
                seen.append((n, i, asyncio.get_running_loop().time()))

        async with asyncio.TaskGroup() as group:
            for n in range(20):
                group.create_task(worker(n))
        return seen

    assert run(main()) == run(main())


def test_timeouts_work():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(main()) == 30


def test_deadlock_names_the_tasks_and_lets_main_clean_up():
    cleaned = []

    async def waits_for_ever():
        await asyncio.Event().wait()

    async def main():
        other = asyncio.create_task(waits_for_ever(), name="the-other")
        try:
            await waits_for_ever()
        finally:
            cleaned.append(True)
            other.cancel()

    with pytest.raises(Deadlock) as caught:
        run(main())
    text = str(caught.value)
    assert "task 'the-other' waits at test_virtual.py" in text
    assert "waits_for_ever" in text
    assert "main task" in text
    assert cleaned == [True]


def test_deadlock_in_clean_up_leaves_the_loop():
    async def main():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()

    with pytest.raises(Deadlock):
        run(main())


def test_a_main_task_that_never_ends_is_stopped():
    async def ticker():
        while True:  # noqa: ASYNC110
            await asyncio.sleep(1)

    async def main():
        task = asyncio.create_task(ticker(), name="ticker")
        await asyncio.wait({task})

    with pytest.raises(TimeLimitExceeded, match="100 virtual seconds"):
        run(main(), limit=100)


def test_tasks_that_wake_each_other_for_ever_are_stopped():
    async def spins():
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    async def main():
        task = asyncio.create_task(spins(), name="spinner")
        await asyncio.sleep(1)
        task.cancel()

    with (
        pytest.raises(Livelock, match="spinner"),
        asyncio.Runner(loop_factory=lambda: VirtualLoop(steps=500)) as runner,
    ):
        runner.run(main())


def test_cancellation_by_the_program_stays_cancellation():
    async def main():
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_later(5, task.cancel)
        await asyncio.sleep(10)

    with pytest.raises(asyncio.CancelledError):
        run(main())


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: asyncio.to_thread(time.sleep, 0), "thread"),
        (lambda: asyncio.open_connection("127.0.0.1", 1), "connection"),
        (lambda: asyncio.start_server(lambda r, w: None, "127.0.0.1", 0), "server socket"),
        (lambda: asyncio.create_subprocess_exec("true"), "subprocess"),
        (lambda: asyncio.get_running_loop().getaddrinfo("localhost", 1), "name look-up"),
    ],
)
def test_the_outside_world_is_refused(call, what):
    async def main():
        await call()

    with pytest.raises(VirtualTimeError, match=what):
        run(main())


def test_signals_and_descriptors_are_refused():
    async def main():
        loop = asyncio.get_running_loop()
        with pytest.raises(VirtualTimeError, match="signal"):
            loop.add_signal_handler(signal.SIGTERM, lambda: None)
        with socket.socket() as sock, pytest.raises(VirtualTimeError, match="descriptor"):
            loop.add_reader(sock, lambda: None)

    run(main())


def test_clock_counts_from_the_epoch():
    async def main():
        clock = VirtualClock()
        assert clock.now() == datetime(2026, 1, 1, tzinfo=UTC)
        await clock.sleep(90)
        assert clock.monotonic() == 90
        return clock.now()

    assert run(main()) == datetime(2026, 1, 1, 0, 1, 30, tzinfo=UTC)


def test_threadsafe_calls_from_the_same_thread_work():
    async def main():
        done = asyncio.Event()
        asyncio.get_running_loop().call_soon_threadsafe(done.set)
        await done.wait()

    run(main())


def test_instants_a_rounding_error_away_are_reached():
    """Timers fire up to the clock's resolution early; waiting for the rest of it must not stand still."""

    async def until(instant: float) -> int:
        loop, rounds = asyncio.get_running_loop(), 0
        while loop.time() < instant:
            rounds += 1
            try:
                async with asyncio.timeout(instant - loop.time()):
                    await asyncio.Event().wait()
            except TimeoutError:
                continue
        return rounds

    async def main():
        await asyncio.sleep(1000.1)
        instant = math.nextafter(asyncio.get_running_loop().time(), math.inf)
        first = asyncio.create_task(until(instant))
        await asyncio.sleep(0)
        second = asyncio.create_task(until(instant))
        return await first, await second

    assert max(run(main())) < 5


def test_errors_begin_with_the_tasks_that_failed_unnoticed() -> None:
    kept: list[asyncio.Task[None]] = []

    async def fail() -> None:
        raise OSError("address in use")

    async def main() -> None:
        kept.append(asyncio.create_task(fail(), name="server"))
        noticed = asyncio.create_task(fail(), name="noticed")
        await asyncio.gather(noticed, return_exceptions=True)
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock) as caught:
        run(main())
    first, second, third = str(caught.value).splitlines()
    assert first.startswith("nothing is ready")
    assert second == "  task 'server' failed, and nobody took notice: OSError('address in use')"
    assert third.startswith("  main task ")
