"""The manager's checklist (specification: 70 §17, Manager), on virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import structlog

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.controller.options import ControllerDefaults
from lwskit.runtime.controller.source import FunctionSource
from lwskit.runtime.election import Elector, LeaderElectionLost
from lwskit.runtime.events import Recorder
from lwskit.runtime.kinds import POD
from lwskit.runtime.manager import Manager, ManagerError
from lwskit.runtime.request import Request
from lwskit.runtime.runnable import Group
from lwskit.runtime.signals import SignalHandler
from lwskit.runtime.tasks import TaskCancelled


class Part:
    """A runnable that notes when it starts and ends; `linger` is how long it takes to end."""

    def __init__(self, log: list[str], name: str, clock: Clock, group: Group | None = None, linger: float = 0) -> None:
        self.name = name
        self.log = log
        self.clock = clock
        self.linger = linger
        if group:
            self.group = group

    async def run(self) -> None:
        self.log.append(f"+{self.name}")
        try:
            await self.clock.sleep(10**6)
        finally:
            await self.clock.sleep(self.linger)
            self.log.append(f"-{self.name}")


class CachePart(Part):
    """A cache that syncs when it is told to."""

    def __init__(self, log: list[str], clock: Clock, linger: float = 0) -> None:
        super().__init__(log, "cache", clock, linger=linger)
        self.synced = asyncio.Event()

    async def wait_synced(self) -> None:
        await self.synced.wait()


class Stubborn(Part):
    """A runnable that takes no notice of being cancelled until it is allowed to end."""

    def __init__(self, log: list[str], clock: Clock) -> None:
        super().__init__(log, "stubborn", clock, Group.OTHERS)
        self.allowed = asyncio.Event()

    async def run(self) -> None:
        while not self.allowed.is_set():
            try:
                await self.allowed.wait()
            except asyncio.CancelledError:
                self.log.append("cancelled")


class FakeElector:
    """Wins and loses when the test says so."""

    def __init__(self, log: list[str], release_on_cancel: bool = False) -> None:
        self.log = log
        self.release_on_cancel = release_on_cancel
        self.won, self.lost = asyncio.Event(), asyncio.Event()
        self.is_leader = False

    async def acquire(self) -> None:
        await self.won.wait()
        self.is_leader = True

    async def hold(self) -> None:
        try:
            await self.lost.wait()
            raise LeaderElectionLost
        finally:
            self.is_leader = False
            self.log.append("-elector")

    async def release(self) -> None:
        self.log.append("released")


def make(clock: Clock, elector: FakeElector | None = None, **options: Any) -> Manager:
    found: Any = elector
    return Manager(clock, random.Random(1), found, **options)


@asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(manager.run())
    await asyncio.sleep(0.001)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def every_group(manager: Manager, log: list[str], clock: Clock, linger: float = 0) -> CachePart:
    cache = CachePart(log, clock, linger)
    manager.add(Part(log, "leader", clock, linger=linger))
    manager.add(Part(log, "others", clock, Group.OTHERS, linger))
    manager.add(cache)
    manager.add(Part(log, "webhooks", clock, Group.WEBHOOKS, linger))
    manager.add(Part(log, "http", clock, Group.HTTP, linger))
    return cache


async def test_a_runnable_without_an_answer_runs_only_after_election(clock: Clock) -> None:
    """70 §17 Manager 1: what does not say otherwise waits until this process leads."""
    log: list[str] = []
    elector = FakeElector(log)
    manager = make(clock, elector)
    manager.add(Part(log, "leader", clock))
    async with running(manager):
        await clock.sleep(100)
        assert log == []
        assert not manager.elected.is_set()
        elector.won.set()
        await clock.sleep(1)
        assert log == ["+leader"]
        assert manager.elected.is_set()


async def test_without_election_leader_runnables_start_and_elected_is_set(clock: Clock) -> None:
    """70 §17 Manager 2: without an election everybody leads."""
    log: list[str] = []
    manager = make(clock)
    manager.add(Part(log, "leader", clock))
    async with running(manager):
        assert log == ["+leader"]
        assert manager.elected.is_set()


async def test_caches_that_do_not_sync_hold_back_others_and_leaders_but_no_server(clock: Clock) -> None:
    """70 §17 Manager 4: what reads caches waits for them, servers do not."""
    log: list[str] = []
    manager = make(clock)
    cache = every_group(manager, log, clock)
    async with running(manager):
        await clock.sleep(100)
        assert log == ["+http", "+webhooks", "+cache"]
        cache.synced.set()
        await clock.sleep(1)
        assert log == ["+http", "+webhooks", "+cache", "+others", "+leader"]


async def test_a_controller_added_to_a_running_manager_starts(clock: Clock) -> None:
    """70 §17 Manager 5: a controller that comes late begins at once."""
    seen: list[Request] = []

    async def reconcile(request: Request) -> None:
        seen.append(request)

    manager = make(clock)
    async with running(manager):
        controller = Controller("late", reconcile, clock=clock, rng=random.Random(1))
        manager.add(controller)
        controller.queue.add(Request("n", "a"))
        await clock.sleep(1)
        assert seen == [Request("n", "a")]


async def nothing(request: Request) -> None:
    return


def named(clock: Clock, **options: Any) -> Controller:
    return Controller("twin", nothing, clock=clock, rng=random.Random(1), **options)


async def test_a_second_controller_of_a_name_is_refused_unless_names_do_not_matter(clock: Clock) -> None:
    """70 §17 Controller 13: names of controllers are unique in a manager."""
    manager = make(clock)
    manager.add(named(clock))
    with pytest.raises(ManagerError, match=r"^controller with name twin already exists\. "):
        manager.add(named(clock))
    manager.add(named(clock, unique_name=False))


async def test_a_controller_gets_what_it_leaves_open_from_the_manager(clock: Clock) -> None:
    manager = make(clock, controllers=ControllerDefaults(concurrency=3, needs_leader=False))
    plain, own = named(clock), named(clock, concurrency=1, unique_name=False)
    manager.add(plain)
    manager.add(own)
    assert [(c.concurrency, c.needs_leader) for c in (plain, own)] == [(3, False), (1, False)]


class Warming(Part):
    """A runnable with a warm-up half; both may take long to end."""

    wants_warm_up = True

    async def warm_up(self) -> None:
        self.log.append("+warm-up")
        try:
            await self.clock.sleep(10**6)
        finally:
            await self.clock.sleep(self.linger)
            self.log.append("-warm-up")


async def test_a_warm_up_begins_before_the_election_and_ends_with_the_others(clock: Clock) -> None:
    log: list[str] = []
    elector = FakeElector(log)
    manager = make(clock, elector)
    every_group(manager, log, clock, linger=1).synced.set()
    manager.add(Warming(log, "controller", clock, linger=1))
    async with running(manager):
        assert log == ["+http", "+webhooks", "+cache", "+others", "+warm-up"]
        elector.won.set()
        await clock.sleep(1)
        assert log[5:] == ["+leader", "+controller"]
        del log[:]
        manager.stop()
        await clock.sleep(1.5)
        # Both take a second, side by side.
        assert sorted(log) == ["-others", "-warm-up"]


async def test_a_controller_that_is_warmed_up_works_when_it_is_elected(clock: Clock) -> None:
    seen: list[float] = []

    async def reconcile(request: Request) -> None:
        seen.append(clock.monotonic())

    async def synced() -> None:
        await clock.sleep(5)

    source = FunctionSource(lambda queue: queue.add(Request("n", "a")))
    source.wait_synced = synced  # type: ignore[method-assign]
    elector = FakeElector([])
    manager = make(clock, elector, controllers=ControllerDefaults(warm_up=True))
    manager.add(Controller("c", reconcile, [source], clock=clock, rng=random.Random(1)))
    async with running(manager):
        await clock.sleep(10)
        assert seen == []
        elector.won.set()
        await clock.sleep(1)
    assert seen == [pytest.approx(10, abs=0.01)]


async def test_caches_of_another_cluster_are_waited_for_and_may_come_late(clock: Clock) -> None:
    log: list[str] = []
    manager = make(clock)
    first, second, late = (CachePart(log, clock) for _ in range(3))
    manager.add(first)
    manager.add(second)
    manager.add(Part(log, "leader", clock))
    async with running(manager):
        first.synced.set()
        await clock.sleep(1)
        assert log == ["+cache", "+cache"]
        second.synced.set()
        await clock.sleep(1)
        assert log == ["+cache", "+cache", "+leader"]
        manager.add(late)
        await clock.sleep(1)
        assert log == ["+cache", "+cache", "+leader", "+cache"]


async def test_a_stray_cancellation_within_a_runnable_stops_the_manager(clock: Clock) -> None:
    class Silent:
        name = "listener"
        group = Group.HTTP

        async def run(self) -> None:
            await clock.sleep(5)
            raise asyncio.CancelledError

    manager = make(clock)
    manager.add(Silent())
    with pytest.raises(TaskCancelled, match=r"^Silent listener was cancelled, but not by its owner"):
        await manager.run()
    assert clock.monotonic() == 5


class Deaf:
    """A cluster that never answers."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    async def get(self, *args: Any, **options: Any) -> None:
        await self.clock.sleep(10**6)

    list = create = update = get

    @asynccontextmanager
    async def watch(self, *args: Any, **options: Any) -> AsyncIterator[None]:
        await self.clock.sleep(10**6)
        yield


def whole(clock: Clock) -> Manager:
    """A manager with a bit of everything."""
    client: Any = Deaf(clock)
    manager = Manager(clock, random.Random(1), Elector(client, clock, random.Random(1), "n", "lock", "me"))
    cache = Cache(client, clock, random.Random(1))
    cache.informer(POD)
    cache.wait_synced = partial(asyncio.sleep, 0)  # type: ignore[method-assign]
    manager.add(cache)
    manager.add(Recorder(client, clock, "c", "i", random.Random(1)))
    manager.add(Part([], "http", clock, Group.HTTP))
    manager.add(Controller("c", nothing, clock=clock, rng=random.Random(1), needs_leader=False, concurrency=2))
    return manager


async def test_no_background_task_dies_unnoticed(clock: Clock) -> None:
    before = asyncio.all_tasks()

    async def start() -> tuple[asyncio.Task[None], dict[str, asyncio.Task[Any]]]:
        run = asyncio.create_task(whole(clock).run(), name="run")
        await clock.sleep(1)
        return run, {task.get_name(): task for task in asyncio.all_tasks() - before - {run}}

    run, tasks = await start()
    names = sorted(tasks)
    assert {name.split(":")[0] for name in names} >= {"caches", "events of c", "manager", "controller c worker 1"}
    for name in names:
        waits_for = tasks[name]._fut_waiter  # type: ignore[attr-defined]
        if isinstance(waits_for, asyncio.Task):
            # It ends with the task that it waits for, whose turn comes too.
            continue
        waits_for.set_exception(ConnectionResetError(name))
        await clock.sleep(5)
        if run.done():
            assert isinstance(run.exception(), ConnectionResetError | TaskCancelled), name
        else:
            # It recovered.
            alive = {task.get_name() for task in asyncio.all_tasks()}
            assert name in alive, name
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
        run, tasks = await start()
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


async def test_a_second_start_is_refused(clock: Clock) -> None:
    """70 §17 Manager 7: a manager runs once."""
    manager = make(clock)
    async with running(manager):
        with pytest.raises(ManagerError, match=r"^manager already started$"):
            await manager.run()


async def test_a_runnable_that_raises_stops_all_groups_with_its_error(clock: Clock) -> None:
    """70 §17 Manager 8: the error of one ends all, and is what the manager raises."""
    log: list[str] = []
    manager = make(clock)
    every_group(manager, log, clock).synced.set()

    class Failing:
        async def run(self) -> None:
            await clock.sleep(5)
            raise ValueError("broken")

    manager.add(Failing())
    with pytest.raises(ValueError, match="broken"):
        await manager.run()
    assert clock.monotonic() == 5
    assert {entry for entry in log if entry.startswith("-")} == {"-leader", "-others", "-cache", "-webhooks", "-http"}


async def test_a_runnable_that_fails_at_once_does_not_wait_for_caches(clock: Clock) -> None:
    log: list[str] = []
    manager = make(clock)
    every_group(manager, log, clock)

    class Failing:
        group = Group.HTTP

        async def run(self) -> None:
            raise OSError("address in use")

    manager.add(Failing())
    with pytest.raises(OSError, match="address in use"):
        await manager.run()
    assert "+leader" not in log


async def test_a_runnable_that_returns_leaves_the_manager_running(clock: Clock) -> None:
    """70 §17 Manager 9: work that is done ends nothing else."""

    class Short:
        async def run(self) -> None:
            return

    manager = make(clock)
    manager.add(Short())
    async with running(manager) as task:
        await clock.sleep(100)
        assert not task.done()


@pytest.mark.parametrize("cancelled", [True, False])
async def test_groups_end_one_after_the_other(clock: Clock, cancelled: bool) -> None:
    """70 §17 Manager 10: groups end in order, each after the one before."""
    log: list[str] = []
    manager = make(clock)
    every_group(manager, log, clock, linger=1).synced.set()
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    log.clear()
    if cancelled:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        manager.stop()
        await task
    assert log == ["-others", "-leader", "-cache", "-webhooks", "-http"]
    assert clock.monotonic() == 6


async def test_a_runnable_that_ignores_cancellation_is_the_grace_period_error(clock: Clock) -> None:
    """70 §17 Manager 11: what does not end within 30 s is named in an error."""
    log: list[str] = []
    manager = make(clock)
    stubborn = Stubborn(log, clock)
    manager.add(stubborn)
    manager.add(Part(log, "http", clock, Group.HTTP))
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    task.cancel()
    text = "failed waiting for all runnables to end within grace period of 30s: still running: Stubborn stubborn"
    with pytest.raises(ManagerError, match=text):
        await task
    assert 31 <= clock.monotonic() <= 33
    assert "-http" in log
    stubborn.allowed.set()
    await clock.sleep(0)


async def test_an_error_is_kept_when_the_grace_period_passes_too(clock: Clock) -> None:
    class Failing:
        async def run(self) -> None:
            raise ValueError("broken")

    manager = make(clock)
    stubborn = Stubborn([], clock)
    manager.add(stubborn)
    manager.add(Failing())
    with pytest.raises(ValueError, match="broken") as caught:
        await manager.run()
    assert "grace period of 30s" in caught.value.__notes__[0]
    stubborn.allowed.set()
    await clock.sleep(0)


async def test_graceful_timeout_zero_returns_at_once_without_that_error(clock: Clock) -> None:
    """70 §17 Manager 12: with no time to end nothing is waited for and nothing is wrong."""
    log: list[str] = []
    manager = make(clock, graceful_timeout=0)
    stubborn = Stubborn(log, clock)
    manager.add(stubborn)
    manager.add(Part(log, "slow", clock, linger=100))
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    manager.stop()
    await task
    assert clock.monotonic() == 1
    assert "cancelled" in log
    stubborn.allowed.set()
    await clock.sleep(0)


async def test_a_negative_graceful_timeout_waits(clock: Clock) -> None:
    """70 §17 Manager 13: with a negative time the end may take as long as it likes."""
    log: list[str] = []
    manager = make(clock, graceful_timeout=-1)
    manager.add(Part(log, "slow", clock, linger=1000))
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    manager.stop()
    await task
    assert clock.monotonic() == 1001
    assert log == ["+slow", "-slow"]


async def test_a_manager_that_was_not_elected_never_starts_leader_runnables(clock: Clock) -> None:
    """70 §17 Manager 14: an election that is won too late starts nothing."""
    log: list[str] = []
    elector = FakeElector(log)
    manager = make(clock, elector)
    manager.add(Part(log, "leader", clock))
    manager.add(Part(log, "others", clock, Group.OTHERS, linger=5))
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    manager.stop()
    await clock.sleep(1)
    elector.won.set()
    await task
    assert "+leader" not in log
    assert not manager.elected.is_set()


async def test_a_lost_lease_ends_the_manager_without_waiting(clock: Clock) -> None:
    """70 §17 Manager 15: when the Lease is lost nothing may finish."""
    log: list[str] = []
    ended: list[float] = []

    async def reconcile(request: Request) -> None:
        try:
            await clock.sleep(1000)
        finally:
            ended.append(clock.monotonic())

    elector = FakeElector(log)
    elector.won.set()
    manager = make(clock, elector)
    controller = Controller("c", reconcile, clock=clock, rng=random.Random(1))
    manager.add(controller)
    manager.add(Part(log, "slow", clock, linger=1000))
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    controller.queue.add(Request("n", "a"))
    await clock.sleep(1)
    elector.lost.set()
    with structlog.testing.capture_logs() as logs, pytest.raises(LeaderElectionLost, match=r"^leader election lost$"):
        await task
    assert [entry["error"] for entry in logs if entry["log_level"] == "error"] == ["leader election lost"]
    assert clock.monotonic() == 2
    assert ended == [2]


async def test_a_lease_lost_while_stopping_ends_the_waiting(clock: Clock) -> None:
    log: list[str] = []
    elector = FakeElector(log)
    elector.won.set()
    manager = make(clock, elector)
    manager.add(Part(log, "slow", clock, linger=1000))
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    manager.stop()
    await clock.sleep(5)
    assert not task.done()
    elector.lost.set()
    with pytest.raises(LeaderElectionLost):
        await task
    assert clock.monotonic() == 6


@pytest.mark.parametrize("release", [True, False])
async def test_the_lease_is_released_only_after_reconcilers_ended_and_if_wanted(clock: Clock, release: bool) -> None:
    """70 §17 Manager 16: the Lease goes once nothing works under it any more."""
    log: list[str] = []
    elector = FakeElector(log, release_on_cancel=release)
    elector.won.set()
    manager = make(clock, elector)
    manager.add(Part(log, "leader", clock, linger=2))
    manager.add(Part(log, "http", clock, Group.HTTP, linger=1))
    manager.add(Part(log, "events", clock, Group.EVENTS))
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    log.clear()
    manager.stop()
    await task
    assert log == ["-leader", "-http", "-elector", *(["released"] if release else []), "-events"]


async def test_once_stop_is_engaged_a_runnable_is_refused(clock: Clock) -> None:
    """70 §17 Manager 17: who comes while it stops is turned away."""
    log: list[str] = []
    manager = make(clock)
    manager.add(Part(log, "slow", clock, linger=5))
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    manager.stop()
    await clock.sleep(1)
    with pytest.raises(ManagerError, match="can't accept new runnable as stop procedure is already engaged"):
        manager.add(Part(log, "more", clock, Group.HTTP))
    await task


async def test_a_second_cancellation_ends_the_waiting(clock: Clock) -> None:
    log: list[str] = []
    manager = make(clock)
    manager.add(Part(log, "slow", clock, linger=1000))
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    task.cancel()
    await clock.sleep(1)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.monotonic() == 2


async def test_a_real_elector_and_a_manager_work_together(clock: Clock) -> None:
    client: Any = Deaf(clock)
    manager = Manager(clock, random.Random(1), Elector(client, clock, random.Random(1), "ns", "lock", "me"))
    task = asyncio.create_task(manager.run())
    await clock.sleep(100)
    assert not manager.elected.is_set()
    manager.stop()
    await task
    assert clock.monotonic() == 100


def test_sigterm_twice_exits_with_code_one() -> None:
    """70 §17 Manager 18: the first signal ends in order, the second at once with 1."""
    calls: list[Any] = []
    handler = SignalHandler(lambda: calls.append("stop"), calls.append)
    handler()
    assert calls == ["stop"]
    handler()
    assert calls == ["stop", 1]


async def test_signal_handlers_are_installed_on_a_real_loop_and_removed() -> None:
    import os
    import signal

    stopped = asyncio.Event()
    exits: list[int] = []
    handler = SignalHandler(stopped.set, exits.append)
    handler.install()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stopped.wait(), 30)
        assert handler.received == 1
        assert exits == []
    finally:
        handler.remove()


class SlowRelease(FakeElector):
    """An elector whose release takes a second, or for ever."""

    def __init__(self, log: list[str], clock: Clock, seconds: float) -> None:
        super().__init__(log, release_on_cancel=True)
        self.clock = clock
        self.seconds = seconds
        self.won.set()

    async def release(self) -> None:
        try:
            await self.clock.sleep(self.seconds)
        except asyncio.CancelledError:
            self.log.append("release given up")
            raise
        self.log.append("released")


@pytest.mark.parametrize("gaps", [(0.5,), (2.5,), (0.5, 0.2), (0, 0), (2.2, 0.1, 0.1, 0), (0, 0.9)])
@pytest.mark.parametrize("seconds", [0.8, 10**6])
async def test_however_often_it_is_cancelled_every_group_has_ended_when_it_returns(
    clock: Clock, gaps: tuple[float, ...], seconds: float
) -> None:
    before = asyncio.all_tasks()
    log: list[str] = []
    manager = make(clock, SlowRelease(log, clock, seconds), graceful_timeout=5)
    for group in Group:
        manager.add(Part(log, group.value, clock, group, linger=2 if group is Group.LEADER else 0))
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    log.clear()
    task.cancel()
    for gap in gaps:
        await clock.sleep(gap)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.monotonic() <= 1 + sum(gaps) + 3
    assert asyncio.all_tasks() == before
    # A part that was cancelled twice does not get to its last word.
    assert log[-1] == f"-{Group.EVENTS.value}"
    assert ("released" in log) == (seconds < 1)
    assert ("release given up" in log) == (seconds > 1)


async def test_a_release_that_is_not_hurried_has_its_time(clock: Clock) -> None:
    log: list[str] = []
    manager = make(clock, SlowRelease(log, clock, 8))
    task = asyncio.create_task(manager.run())
    await clock.sleep(1)
    manager.stop()
    await task
    assert (log[-1], clock.monotonic()) == ("released", 9)


class Failing:
    """Raises after some seconds."""

    def __init__(self, clock: Clock, error: Exception, after: float = 0, group: Group = Group.HTTP) -> None:
        self.clock, self.error, self.after, self.group = clock, error, after, group

    async def run(self) -> None:
        await self.clock.sleep(self.after)
        raise self.error


async def test_whoever_waits_for_the_election_or_the_caches_learns_that_the_manager_ended(clock: Clock) -> None:
    manager = make(clock, FakeElector([]))
    manager.add(CachePart([], clock))
    manager.add(Failing(clock, OSError("address in use"), after=3))
    task = asyncio.create_task(manager.run())
    waits = [manager.elected.wait(), manager.synced.wait(), manager.until(asyncio.Event().wait())]
    results = await asyncio.gather(*waits, manager.elected.wait(), return_exceptions=True)
    assert [str(result) for result in results] == ["the manager ended before what was waited for: address in use"] * 4
    assert all(isinstance(result, ManagerError) and isinstance(result.__cause__, OSError) for result in results)
    assert len({id(result) for result in results}) == 4
    assert clock.monotonic() == 3
    with pytest.raises(OSError, match="address in use"):
        await task
    with pytest.raises(ManagerError):
        await manager.elected.wait()


async def test_a_manager_that_is_stopped_first_says_so_too(clock: Clock) -> None:
    manager = make(clock, FakeElector([]))
    task = asyncio.create_task(manager.run())
    asyncio.get_running_loop().call_later(2, manager.stop)
    with pytest.raises(ManagerError, match=r"^the manager ended before what was waited for$"):
        await manager.elected.wait()
    await task


async def test_what_has_come_about_stays_so_after_the_end(clock: Clock) -> None:
    manager = make(clock)
    async with running(manager):
        assert await manager.until(asyncio.sleep(1, "slept")) == "slept"
        with pytest.raises(KeyError):
            await manager.until(Failing(clock, KeyError("x")).run())
    assert await manager.elected.wait()
    assert await manager.synced.wait()


async def test_caches_that_have_synced_are_told_of_before_the_election(clock: Clock) -> None:
    manager = make(clock, FakeElector([]))
    cache = CachePart([], clock)
    manager.add(cache)
    async with running(manager):
        assert not manager.synced.is_set()
        cache.synced.set()
        await manager.synced.wait()
        assert not manager.elected.is_set()


async def test_of_several_errors_the_first_is_raised_and_all_are_logged(clock: Clock) -> None:
    manager = make(clock)
    manager.add(Failing(clock, OSError("first"), after=1))
    manager.add(Failing(clock, ValueError("second"), after=1))
    with structlog.testing.capture_logs() as logs, pytest.raises(OSError, match=r"^first$"):
        await manager.run()
    assert [entry["error"] for entry in logs if entry["log_level"] == "error"] == ["first", "second"]


async def test_what_fails_at_once_comes_before_leader_runnables_also_without_an_election(clock: Clock) -> None:
    class Busy:
        group = Group.WEBHOOKS

        async def run(self) -> None:
            raise OSError("address in use")

    log: list[str] = []
    manager = make(clock)
    manager.add(Busy())
    manager.add(Part(log, "leader", clock))
    with pytest.raises(OSError, match="address in use"):
        await manager.run()
    assert log == []
    assert not manager.elected.is_set()


class Plain:
    def run(self) -> int:
        return 5


@pytest.mark.parametrize("wrong", [5, None, "x", nothing, Part])
async def test_what_cannot_run_is_refused_when_it_is_added(clock: Clock, wrong: Any) -> None:
    with pytest.raises(ManagerError, match=r"cannot be added: a runnable is an object with a coroutine method `run`$"):
        make(clock).add(wrong)


async def test_a_run_that_is_no_coroutine_ends_the_manager_with_a_sentence(clock: Clock) -> None:
    manager = make(clock)
    manager.add(Plain())  # type: ignore[arg-type]
    with pytest.raises(ManagerError, match=r"^Plain cannot be run: its run\(\) returned int; write `async def run`$"):
        await manager.run()


async def test_it_tells_that_it_runs_and_that_its_controllers_do(clock: Clock) -> None:
    manager = make(clock)
    manager.add(Controller("c", nothing, clock=clock, rng=random.Random(1), concurrency=2))
    with structlog.testing.capture_logs() as logs:
        async with running(manager):
            await clock.sleep(1)
    told = [entry for entry in logs if entry["log_level"] == "info"]
    assert told == [
        {"event": "manager started", "controllers": ["c"], "log_level": "info"},
        {"event": "controller started", "controller": "c", "workers": 2, "log_level": "info"},
        {"event": "manager stops", "log_level": "info"},
    ]
