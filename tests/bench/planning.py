"""What planning a whole rollout over several roles costs, each step with its check, however many groups there are.

python -m tests.bench.planning [--rounds 5] [--strict]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.bench.rounds import Measure, Report, medians
from tests.unit.disaggregated.simulator import Revision, World, at_once

ROLES = 10
SIZES = (10, 100, 1_000)
"""Groups of each role, of which a tenth may come on top while the target grows."""
MOST = 2.0
"""Seconds that the plans for ten roles of 100 groups may take."""


def rollout(groups: int, roles: int = ROLES) -> World:
    """A rollout that has not begun."""
    counts, none = (groups,) * roles, (0,) * roles
    old, new = Revision("old", counts, counts, counts), Revision("new", counts, none, none)
    return World([old], new, counts, (-(-groups // 10),) * roles, none)


def planning(groups: int) -> Measure:
    """The processor seconds of all plans of a rollout whose groups are Ready at once."""

    def measure() -> float:
        world = rollout(groups)
        begin = time.process_time()
        for _ in world.run(at_once, most=1_000):
            pass
        seconds = time.process_time() - begin
        assert world.is_finished()
        return seconds

    return measure


def measure(report: Report, rounds: int) -> None:
    """Add what plans cost to the report."""
    report.say(f"all plans of a rollout over {ROLES} roles, maxSurge 10 %")
    found = medians({str(size): planning(size) for size in SIZES}, rounds)
    for size in SIZES:
        report.figure(f"{size} groups each", found[str(size)] * 1e3, "ms", most=MOST * 1e3 if size == 100 else None)
    for size in SIZES[1:]:
        report.ratio(f"{size} groups each, per {SIZES[0]}", found[str(size)] / found[str(SIZES[0])])


def main(argv: Sequence[str]) -> int:
    """Measure all sizes; with `--strict` a missed target is a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.planning", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args(argv)
    report = Report()
    measure(report, options.rounds)
    report.done()
    return 1 if options.strict and report.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
