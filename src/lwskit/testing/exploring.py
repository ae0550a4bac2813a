"""The exploring part of the pytest plugin: tests run again for each point at which their programs can be disturbed."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from _pytest.runner import runtestprotocol

from lwskit.runtime.errors import ConfigurationError
from lwskit.testing.disturbances import Disturber, Point, parse_names, parse_point, points
from lwskit.testing.endstate import EndState, changed, end_state
from lwskit.testing.explore import Failure, Report, Scenario, Settings, chosen, explore, missed, settled
from lwskit.testing.plugin import FAILED, VISIT
from lwskit.testing.process import processes

if TYPE_CHECKING:
    from lwskit.testing.cluster import Runnable, TestCluster

MARKER = "undisturbed"


class Visit:
    """One run of a test: how it is disturbed, and what the cluster looked like at its end."""

    def __init__(self, point: Point | None, plain: Visit | None) -> None:
        self.disturber = Disturber(point)
        self.plain = plain
        self.state: EndState = {}
        self.known = ""

    def runnables(self, runnables: Sequence[Runnable], settings: Settings) -> Sequence[Callable[[TestCluster], Any]]:
        """The programs under test as processes that can die."""

        @asynccontextmanager
        async def run(cluster: TestCluster) -> AsyncIterator[object]:
            def died() -> None:
                self.known = settings.known(cluster) or ""

            self.disturber.died = died
            async with processes(cluster, runnables, self.disturber.connected, self.disturber.processes) as made:
                yield made

        return (run,) if runnables else ()

    async def finish(self, cluster: TestCluster, settings: Settings) -> None:
        """Let the cluster settle after the test, and compare what is there with the undisturbed run.

        Raises AssertionError when it does not settle, or ends otherwise. Cancelling only ends the wait.
        """
        __tracebackhide__ = True
        most = settings.most * len(self.plain.disturber.writes) + 100 if self.plain else None
        async with AsyncExitStack() as stack:
            for service in settings.services:
                await stack.enter_async_context(service(cluster))
            await settled(cluster, self.disturber, settings, most)
        self.state = end_state(cluster, settings.compared)
        if self.plain is not None and self.plain.state:
            lines = changed(self.state, self.plain.state, settings.compared)
            assert not lines, "the cluster ends otherwise than undisturbed:\n  " + "\n  ".join(lines)


class Explorer:
    """Runs tests again and again, and counts."""

    def __init__(self, config: pytest.Config) -> None:
        self._logging: dict[str, Any] | None = None
        try:
            self.names = parse_names(config.getoption("explore") or "")
            self.only = [parse_point(text) for text in config.option.disturb]
        except ConfigurationError as error:
            raise pytest.UsageError(str(error)) from None
        if config.getoption("explore") and config.option.verbose <= 0:
            # A log of every run would be written and thrown away; whoever runs a point alone gets it.
            self._logging = structlog.get_config()
            structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        self.sample: int | None = config.option.explore_sample
        self.seed: int = config.option.explore_seed
        self.reports: list[Report] = []
        self.left_out: Counter[str] = Counter()

    def pytest_unconfigure(self) -> None:
        """Have log lines again."""
        if self._logging is not None:
            structlog.configure(**self._logging)

    @property
    def reruns(self) -> bool:
        """Whether tests of `cluster` are run again."""
        return bool(self.names or self.only)

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a test undisturbed and then at each of its points."""
        if not self.reruns or "cluster" not in getattr(item, "fixturenames", ()):
            return None
        marker = item.get_closest_marker(MARKER)
        if marker is not None:
            self.left_out[marker.kwargs.get("reason") or marker.args[0]] += 1
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        try:
            self._explore(item)
        finally:
            item.session._setupstate.teardown_exact(nextitem)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _explore(self, item: pytest.Item) -> None:
        plain = Visit(None, None)
        reports = self._run(item, plain)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        if any(not r.passed for r in reports):
            return
        writes, watched = len(plain.disturber.writes), plain.disturber.watched
        found = list(points(self.names, writes, watched))
        report = Report(item.nodeid, writes, len(found))
        self.reports.append(report)
        for point in self.only or chosen(found, self.sample or None, self.seed):
            self._visit(item, point, plain, report)

    def _visit(self, item: pytest.Item, point: Point, plain: Visit, report: Report) -> None:
        visit = Visit(point, plain)
        reports = self._run(item, visit)
        report.points[point.name] += 1
        if not visit.disturber.reached:
            report.unreached += 1
        failed = [r for r in reports if r.failed]
        if failed and visit.known:
            report.known[visit.known] += 1
            return
        plainly = plain.disturber
        said = missed(point, visit.disturber.reached, len(plainly.writes), plainly.watched) if self.only else ""
        if said and not failed:
            report.failures.append(Failure(item.nodeid, point, "", [said]))
            where = f"{item.nodeid} at {point}"
            told = pytest.TestReport(where, item.location, {}, "failed", said, "call")
            item.ihook.pytest_runtest_logreport(report=told)
        for one in failed:
            one.nodeid = f"{item.nodeid} at {point}"
            where = visit.disturber.at or point.disturbance.text
            one.sections.append(("disturbed", f"{where}\nalone: pytest '{item.nodeid}' --disturb {point}"))
            report.failures.append(Failure(item.nodeid, point, visit.disturber.at, [_line(one)]))
            item.ihook.pytest_runtest_logreport(report=one)

    def _run(self, item: pytest.Item, visit: Visit) -> list[pytest.TestReport]:
        item.stash[VISIT] = visit
        item.stash[FAILED] = False
        item._initrequest()  # type: ignore[attr-defined]
        try:
            # The parent as the next item has just this one torn down.
            return runtestprotocol(item, log=False, nextitem=item.parent)  # type: ignore[arg-type]
        finally:
            # Else the clusters of all runs would be kept.
            del item.stash[VISIT]

    def explored(self, scenario: Scenario, settings: Settings, sample: int | None, nodeid: str) -> Report:
        """What the fixture `explore` does."""
        __tracebackhide__ = True
        if self.names:
            settings = replace(settings, disturbances=self.names)
        if self.sample is not None:
            sample = self.sample or None
        report = explore(scenario, settings, only=map(str, self.only), sample=sample, seed=self.seed)
        report.hint = f"alone: pytest '{nodeid}' --disturb POINT"
        self.reports.append(report)
        report.check()
        return report

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """How much was explored."""
        if not self.reports:
            return
        by_name: Counter[str] = sum((r.points for r in self.reports), Counter())
        known: Counter[str] = sum((r.known for r in self.reports), Counter())
        failures = [failure for r in self.reports for failure in r.failures]
        write = terminalreporter.write_line
        terminalreporter.section("explored")
        scenarios = sum(1 for r in self.reports if r.points)
        seed = f", seed {self.seed}" if any(r.points.total() < r.possible for r in self.reports) else ""
        write(f"{scenarios} scenarios, {sum(r.writes for r in self.reports)} writes, {by_name.total()} points{seed}")
        for name, count in by_name.items():
            write(f"  {name}: {count}")
        for name, count in known.items():
            write(f"  ended otherwise, as documented ({name}): {count}")
        if unreached := sum(r.unreached for r in self.reports):
            write(f"  not reached: {unreached}")
        if idle := sum(1 for r in self.reports if not r.writes):
            write(f"  tests whose programs write nothing, or that run them by themselves: {idle}")
        for reason, count in self.left_out.items():
            write(f"  left out ({reason}): {count}")
        write(f"  failed: {len(failures)}")
        for failure in failures:
            write(f"    {failure.scenario} --disturb {failure.point}")


def _line(report: pytest.TestReport) -> str:
    """The last words of a failed report."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message.splitlines()[0] if crash is not None and crash.message else str(report.longrepr)[-200:]
