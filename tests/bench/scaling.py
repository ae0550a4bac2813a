"""What all decisions for a set cost from its creation to the end of a rollout, for 2,500 groups per 500.

python -m tests.bench.scaling [--rounds 3] [--strict]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lwskit.groups import ordinal
from lwskit.groups.index import GroupIndex
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj
from lwskit.runtime.plan import Plan
from tests.bench.rounds import Measure, Report, medians
from tests.unit.groups.small_cluster import LEADERS, WORKERS, SmallCluster, make_lws

FEW, MANY = 500, 2_500
MOST = 5.5
"""How many times the processor time of FEW groups MANY may take; they are five times as many."""
EVENTS = 10
"""Groups that change between two decisions: what comes within the debounce of the set's controller."""


class Stopwatch:
    """Adds up the processor time of what is done with it running."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._running = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time within; once only where it runs already."""
        if self._running:
            yield
            return
        self._running, begin = True, time.process_time()
        try:
            yield
        finally:
            self.seconds += time.process_time() - begin
            self._running = False


class _TimedIndex(GroupIndex):
    def __init__(self, watch: Stopwatch) -> None:
        super().__init__(LEADERS, WORKERS)
        self._watch = watch

    def apply(self, kind: Kind, old: Obj | None, new: Obj | None) -> None:
        with self._watch.running():
            super().apply(kind, old, new)


class TimedCluster(SmallCluster):
    """A cluster of which only the manager's part is timed: the index, the decisions about pods and about the set."""

    def __init__(self, groups: int) -> None:
        super().__init__(make_lws(replicas=groups, size=2))
        self.watch = Stopwatch()
        self.index = _TimedIndex(self.watch)
        self.waiting: deque[int] = deque()

    def decided(self) -> None:
        """One decision about the set, carried out; then the StatefulSet controller acts where it asks for something."""
        partition = self.target[1] if self.workload is not None else len(self.leaders)
        with self.watch.running():
            plan = ordinal.decide(self.snapshot(), LEADERS)
        assert isinstance(plan, Plan)
        self.execute(plan)
        replicas, reached = self.target
        for i in range(reached, replicas if not self.leaders else partition):
            self.remove(i)
            with self.watch.running():
                self._create(i)
            self.waiting.append(i)
        self._count()

    def get_ready(self) -> None:
        """All groups that wait get ready, some at a time with a decision after each, until none is left."""
        while self.waiting:
            self.make_ready(*(self.waiting.popleft() for _ in range(min(EVENTS, len(self.waiting)))))
            self.decided()


def life(groups: int) -> TimedCluster:
    """A set of that many groups created, ready, and rolled out to a new template, a tenth of it at a time."""
    cluster = TimedCluster(groups)
    cluster.decided()
    cluster.get_ready()
    cluster.change(image="b", maxUnavailable=groups // 10)
    cluster.decided()
    cluster.decided()
    cluster.get_ready()
    assert cluster.counts == f"{groups}/{groups}", cluster.counts
    assert cluster.target == (groups, 0), cluster.target
    return cluster


def living(groups: int) -> Measure:
    """The processor seconds of a set's life."""
    return lambda: life(groups).watch.seconds


def main(argv: Sequence[str]) -> int:
    """Compare two sets; with `--strict` a missed target is a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scaling", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args(argv)
    report = Report()
    report.say("all decisions from creation to the end of one rollout")
    found = medians({str(groups): living(groups) for groups in (FEW, MANY)}, options.rounds)
    for groups in (FEW, MANY):
        report.figure(f"{groups} groups", found[str(groups)] * 1e3, "ms")
    report.ratio(f"{MANY} groups, per {FEW}", found[str(MANY)] / found[str(FEW)], most=MOST)
    report.done()
    return 1 if options.strict and report.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
