"""How fast the controller core is, as ratios to something else measured in the same run (docs/performance.md).

python -m tests.bench.runtime [--rounds 7] [--pods 100000] [--strict] [watch|queue|admission|cache …]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.bench import filling, queueing, reviewing, watching
from tests.bench.rounds import Report

PARTS = ("watch", "queue", "admission", "cache")


def main(argv: Sequence[str]) -> int:
    """Measure all parts, or those named; with `--strict` a missed target is a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.runtime", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pods", type=int, default=filling.PODS)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="part")
    options = parser.parse_args(argv)
    report = Report()
    for part in options.parts or PARTS:
        match part:
            case "watch":
                watching.measure(report, options.rounds)
            case "queue":
                queueing.measure(report, options.rounds)
            case "admission":
                reviewing.measure(report, options.rounds)
            case _:
                filling.measure(report, options.pods)
    report.done()
    return 1 if options.strict and report.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
