"""What one decision about a set costs, from the index to the plan, however many groups the set has.

python -m tests.bench.decisions [--decisions 400] [--rounds 5] [--strict]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from lwskit.groups import ordinal
from tests.bench.rounds import Measure, Report, medians
from tests.unit.groups.small_cluster import LEADERS, SmallCluster, make_lws

SIZES = (10, 1_000, 10_000)
MOST = 100.0
"""Microseconds that a decision about the largest set may take."""


def steady(groups: int) -> SmallCluster:
    """A set of that many groups, all ready and of its only revision."""
    cluster = SmallCluster(make_lws(replicas=groups))
    cluster.settle()
    cluster.make_ready(*range(groups))
    cluster.settle()
    return cluster


def rolling(groups: int) -> SmallCluster:
    """A set with half of its groups updated, and the next hundredth of them on the way."""
    cluster = steady(groups)
    cluster.change(image="b", maxUnavailable=groups // 2)
    cluster.settle()
    cluster.make_ready(*range(groups // 2, groups))
    cluster.change(maxUnavailable=max(1, groups // 100))
    cluster.settle()
    return cluster


def deciding(cluster: SmallCluster, decisions: int) -> Measure:
    """The processor seconds of one decision, the median of many. Before each a group has got unready, or ready."""

    def measure() -> float:
        found, last = [], len(cluster.leaders) - 1
        for number in range(decisions):
            cluster.make_ready(last, ready=bool(number % 2))
            begin = time.process_time_ns()
            ordinal.decide(cluster.snapshot(), LEADERS)
            found.append(time.process_time_ns() - begin)
        return statistics.median(found) / 1e9

    return measure


def measure(report: Report, decisions: int, rounds: int) -> None:
    """Add what decisions cost to the report."""
    kinds: dict[str, Callable[[int], SmallCluster]] = {"at rest": steady, "in a rollout": rolling}
    for kind, made in kinds.items():
        report.say(f"one decision about a set {kind}")
        found = medians({str(size): deciding(made(size), decisions) for size in SIZES}, rounds)
        for size in SIZES:
            most = MOST if size == SIZES[-1] else None
            report.figure(f"{size} groups, {kind}", found[str(size)] * 1e6, "µs", most=most)
        for size in SIZES[1:]:
            report.ratio(f"{size} groups, {kind}, per {SIZES[0]}", found[str(size)] / found[str(SIZES[0])])


def main(argv: Sequence[str]) -> int:
    """Measure sets of all sizes; with `--strict` a missed target is a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.decisions", description=__doc__)
    parser.add_argument("--decisions", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args(argv)
    report = Report()
    measure(report, options.decisions, options.rounds)
    report.done()
    return 1 if options.strict and report.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
