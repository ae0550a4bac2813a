"""Exploration: a scenario is run once undisturbed, then once for each point at which its program can be disturbed.

Every run is on a fresh embedded cluster in virtual time, and has to end at the same objects as the undisturbed one.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.objects import Obj
from lwskit.testing import virtual
from lwskit.testing.cluster import EMBEDDED, ClusterOptions, Runnable, TestCluster
from lwskit.testing.disturbances import DISTURBANCES, Disturber, Point, Scope, parse_point, points
from lwskit.testing.endstate import Compared, EndState, changed, end_state, last_change
from lwskit.testing.process import controlling, processes
from lwskit.testing.provide import provide

Scenario = Callable[[TestCluster], Awaitable[None]]
"""Drives a fresh cluster on which the program runs. It waits with `cluster.eventually`, and at its end not at all."""

ALL = tuple(DISTURBANCES)
CRASHES = tuple(d.name for d in DISTURBANCES.values() if d.crash)
SHOWN = 20
"""Lines of difference that a report shows of one failure."""


class ExplorationFailed(AssertionError):
    """A scenario does not end as it should when it is disturbed; the text is the report."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a scenario is explored.

    `programs` are under test, and can die; `services` go on (a kubelet that is played, webhooks). `disturbances` are
    names of `DISTURBANCES`. A run has settled when nothing that is compared has changed and no program has written for
    `quiet` seconds, which has to be longer than any of its back-offs. One that has not after `limit` seconds fails, and
    so does one with more writes than `most` times those of the undisturbed run, plus a hundred. `known` is called at
    the moment of a death and returns the name of a documented exception if the death can bring it about: then the run
    may end in another way, and is counted.
    """

    programs: Sequence[Runnable] = ()
    crds: Sequence[Obj] = ()
    options: ClusterOptions = field(default_factory=ClusterOptions)
    services: Sequence[Runnable] = ()
    disturbances: Sequence[str] = ALL
    compared: Compared = field(default_factory=Compared)
    quiet: float = 60.0
    limit: float = 1800.0
    most: int = 5
    known: Callable[[TestCluster], str | None] = lambda cluster: None


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one run: the writes in their order, what was watched, and the end state or what failed."""

    point: Point | None
    writes: Sequence[str]
    watched: frozenset[str]
    state: EndState
    reached: bool
    failure: str = ""
    known: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A point at which a scenario does not end as it should: the request there, and what is wrong, a line each."""

    scenario: str
    point: Point
    request: str
    lines: Sequence[str]

    def __str__(self) -> str:
        where = f"at {self.request}" if self.request else self.point.disturbance.text
        shown = [*self.lines[:SHOWN], *([f"and {len(self.lines) - SHOWN} more lines"] if self.lines[SHOWN:] else [])]
        return "\n".join([f"{self.scenario} {self.point} ({where}):", *(f"    {line}" for line in shown)])


@dataclass(slots=True)
class Report:
    """What an exploration has found.

    `points` counts what was tried by the name of the disturbance; `possible` is how many points there are. `known`
    counts the runs that ended otherwise for a documented exception. `unreached` counts points that nothing came to;
    one that was asked for by name fails. `hint` says how to run a point alone.
    """

    scenario: str
    writes: int = 0
    possible: int = 0
    points: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    unreached: int = 0
    failures: list[Failure] = field(default_factory=list)
    hint: str = "alone: explore(…, only=POINT)"

    def check(self) -> None:
        """Raise ExplorationFailed unless every point that was tried ended as it should."""
        __tracebackhide__ = True
        if self.failures:
            raise ExplorationFailed(str(self))

    def __str__(self) -> str:
        tried = self.points.total()
        of = f" of {self.possible}" if tried < self.possible else ""
        lines = [f"{self.scenario}: {self.writes} writes, {tried}{of} points, {len(self.failures)} failed"]
        lines += [f"  {name}: {count}" for name, count in self.points.items()]
        lines += [f"  ended otherwise, as documented ({name}): {count}" for name, count in self.known.items()]
        if self.unreached:
            lines.append(f"  not reached: {self.unreached}")
        return "\n".join([*lines, *map(str, self.failures), *([self.hint] if self.failures else [])])


def explore(
    scenario: Scenario,
    settings: Settings,
    *,
    only: str | Iterable[str] = (),
    sample: int | None = None,
    seed: int = 1,
) -> Report:
    """Run a scenario undisturbed, and then once for each point of the settings' disturbances.

    `only` names points, as a report does, to try instead (`dies-before@7`). `sample` is how many are tried at most,
    chosen by `seed`. Raises ExplorationFailed when the scenario fails undisturbed; what fails disturbed is in the
    report, and so is a point of `only` that nothing came to. Called outside of an event loop, since every run has one
    of its own.
    """
    __tracebackhide__ = True
    name = getattr(scenario, "__name__", "scenario")
    wanted = [parse_point(p) for p in ([only] if isinstance(only, str) else only) if p]
    plain = run_once(scenario, settings)
    if plain.failure:
        raise ExplorationFailed(f"{name} fails already when nothing is disturbed:\n{plain.failure}")
    found = list(points(settings.disturbances, len(plain.writes), plain.watched))
    report = Report(name, len(plain.writes), len(found))
    for point in wanted or chosen(found, sample, seed):
        run = run_once(scenario, settings, point, len(plain.writes))
        _take(report, point, run, plain, settings)
        said = missed(point, run.reached, len(plain.writes), plain.watched) if wanted else ""
        if said:
            report.failures.append(Failure(name, point, "", [said]))
    return report


def missed(point: Point, reached: bool, writes: int, watched: Collection[str]) -> str:
    """Why nothing was disturbed at a point that was asked for, in a sentence; empty where something was.

    `writes` and `watched` are those of the undisturbed run.
    """
    if point.disturbance.scope is Scope.KIND and point.at not in watched:
        there = ", ".join(sorted(watched))
        return f"{point} was not reached: the programs watch {there or 'nothing'}"
    if reached:
        return ""
    if not writes:
        return f"{point} was not reached: undisturbed the programs write nothing"
    if point.write > writes:
        made = f"{writes} write{'' if writes == 1 else 's'}"
        return f"{point} was not reached: undisturbed the programs make {made}, counted from 1"
    return f"{point} was not reached: the disturbed run ended before"


def chosen(found: Sequence[Point], sample: int | None, seed: int) -> list[Point]:
    """All of these points, or as many of them as are wanted, in their order, chosen by a seed."""
    if sample is None or sample >= len(found):
        return list(found)
    picked = sorted(random.Random(seed).sample(range(len(found)), sample))
    return [found[i] for i in picked]


def run_once(scenario: Scenario, settings: Settings, point: Point | None = None, writes: int | None = None) -> Run:
    """One run of a scenario, disturbed at a point; `writes` is how many there are in an undisturbed one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise ConfigurationError("explore runs event loops of its own: call it from a test that is no coroutine")
    disturber = Disturber(point)
    most = None if writes is None else settings.most * writes + 100
    try:
        return virtual.run(_run(scenario, settings, disturber, most), limit=4 * settings.limit)
    except (Exception, ExceptionGroup) as error:
        return _made(disturber, {}, failure=_told(error))


async def _run(scenario: Scenario, settings: Settings, disturber: Disturber, most: int | None) -> Run:
    known = ""

    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(provide(EMBEDDED, settings.options, settings.crds, ()))

        def died() -> None:
            nonlocal known
            known = settings.known(cluster) or ""

        disturber.died = died
        for service in settings.services:
            await stack.enter_async_context(service(cluster))
        started = processes(cluster, list(settings.programs), disturber.connected, disturber.processes)
        await stack.enter_async_context(started)
        try:
            with controlling(disturber.processes):
                await scenario(cluster)
            await settled(cluster, disturber, settings, most)
            return _made(disturber, end_state(cluster, settings.compared), known=known)
        except Exception as error:
            return _made(disturber, {}, failure=_told(error), known=known)
        finally:
            disturber.close()


async def settled(cluster: TestCluster, disturber: Disturber, settings: Settings, most: int | None = None) -> None:
    """Wait until nothing that is compared changes and nothing is written. Raises AssertionError when that never comes.

    Cancelling only ends the wait.
    """
    began = since = cluster.clock.monotonic()
    seen: Any = None
    while cluster.clock.monotonic() - since < settings.quiet:
        await cluster.clock.sleep(0.5)
        for process in disturber.processes:
            process.check()
        now = last_change(cluster, settings.compared), len(disturber.writes)
        if now != seen or not all(p.up for p in disturber.processes):
            seen, since = now, cluster.clock.monotonic()
        last = "\n".join(disturber.writes[-8:])
        if most is not None and len(disturber.writes) > most:
            raise AssertionError(f"{len(disturber.writes)} writes are more than {most}; the last are\n{last}")
        if cluster.clock.monotonic() - began > settings.limit:
            raise AssertionError(f"it has not settled after {settings.limit:g} s; the last writes are\n{last}")


def _made(disturber: Disturber, state: EndState, *, failure: str = "", known: str = "") -> Run:
    watched = frozenset(disturber.watched)
    return Run(disturber.point, list(disturber.writes), watched, state, disturber.reached, failure, known)


def _told(error: BaseException) -> str:
    """An error with its notes and, of a group, those in it."""
    if isinstance(error, BaseExceptionGroup):
        return "\n".join(map(_told, error.exceptions))
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error}{notes}"


def _take(report: Report, point: Point, run: Run, plain: Run, settings: Settings) -> None:
    """Put the outcome of one disturbed run into the report."""
    report.points[point.name] += 1
    if not run.reached:
        report.unreached += 1
    lines = run.failure.splitlines() or changed(run.state, plain.state, settings.compared)
    if lines and run.known:
        report.known[run.known] += 1
    elif lines:
        number = point.write
        request = run.writes[number - 1] if 0 < number <= len(run.writes) else ""
        report.failures.append(Failure(report.scenario, point, request, lines))
