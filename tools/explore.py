"""Explore the manager: every life and every scenario, disturbed at every point. Prints what was tried and failed."""

from __future__ import annotations

import argparse
import logging
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

import structlog

from lwskit.api.crds import crds
from lwskit.manager import undertest
from lwskit.testing.cluster import ClusterOptions
from lwskit.testing.disturbances import parse_names
from lwskit.testing.explore import Report, explore
from tests.exploration.lives import ALL_LIVES
from tests.exploration.settings import SETTINGS

ROOT = Path(__file__).parents[1]
SCENARIOS = ROOT / "tests" / "scenarios"
_COUNT = re.compile(r"^  ([a-z-]+): (\d+)$")
_KNOWN = re.compile(r"^  ended otherwise, as documented \((.*)\): (\d+)$")
_LEFT_OUT = re.compile(r"^  (left out \(.*\)|tests whose programs .*): (\d+)$")
_FAILED = re.compile(r"^    (\S+ --disturb \S+)$")
_HEAD = re.compile(r"^(\d+) scenarios, (\d+) writes, (\d+) points")


def quiet() -> None:
    """No log lines: a hundred thousand would hide what is printed here."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


def one_life(name: str, disturbances: Sequence[str], sample: int | None, seed: int) -> Report:
    """Explore one life. Raises ExplorationFailed when it fails undisturbed."""
    life = next(life for life in ALL_LIVES if life.name == name)
    settings = replace(
        SETTINGS,
        services=(),
        programs=(undertest.restartable(),),
        crds=crds(),
        options=ClusterOptions(without=frozenset(), nodes=3),
        disturbances=disturbances,
        compared=life.compared(SETTINGS.compared),
        quiet=life.quiet,
    )
    return explore(life.scenario(), settings, sample=sample, seed=seed)


def lives_named(chosen: str) -> list[str]:
    """The names of all lives that contain `chosen`."""
    return [life.name for life in ALL_LIVES if chosen in life.name]


def files_named(chosen: str) -> list[str]:
    """The scenario files whose names contain `chosen`."""
    return sorted(str(f.relative_to(ROOT)) for f in SCENARIOS.rglob("test_*.py") if chosen in f.name)


def lives(disturbances: Sequence[str], sample: int | None, seed: int, jobs: int, chosen: str) -> Iterator[Report]:
    """The reports of all lives whose names contain `chosen`, as they are made."""
    with ProcessPoolExecutor(jobs, initializer=quiet) as pool:
        tasks = [pool.submit(one_life, name, disturbances, sample, seed) for name in lives_named(chosen)]
        for future in as_completed(tasks):
            yield future.result()


def scenarios(disturbances: Sequence[str], sample: int | None, seed: int, jobs: int, chosen: str) -> Iterator[str]:
    """What pytest says in the end of the scenario files whose names contain `chosen`, one file at a time."""
    files = files_named(chosen)
    command = [sys.executable, "-m", "pytest", "-q", "-o", "timeout=0", "--tb=no", "-p", "no:cacheprovider"]
    command += ["--explore", ",".join(disturbances), "--explore-sample", str(sample or 0), "--explore-seed", str(seed)]

    def run(file: str) -> str:
        done = subprocess.run([*command, file], cwd=ROOT, capture_output=True, text=True)
        return f"{file}\n{done.stdout}{done.stderr}"

    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(run, file) for file in files]):
            yield future.result()


class Total:
    """What was tried in all."""

    def __init__(self) -> None:
        self.scenarios = self.writes = 0
        self.points: Counter[str] = Counter()
        self.known: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.failed: list[str] = []

    def take(self, report: Report) -> None:
        """A life's report."""
        self.scenarios += 1
        self.writes += report.writes
        self.points += report.points
        self.known += report.known
        self.failed += [f"{failure.scenario} {failure.point}" for failure in report.failures]

    def read(self, text: str) -> None:
        """What pytest has printed of one file."""
        for line in text.splitlines():
            if found := _HEAD.match(line):
                self.scenarios += int(found[1])
                self.writes += int(found[2])
            elif found := _COUNT.match(line):
                if found[1] != "failed":
                    self.points[found[1]] += int(found[2])
            elif found := _KNOWN.match(line):
                self.known[found[1]] += int(found[2])
            elif found := _LEFT_OUT.match(line):
                self.left_out[found[1]] += int(found[2])
            elif found := _FAILED.match(line):
                self.failed.append(found[1])

    def lines(self, seed: int) -> Iterator[str]:
        """The summary."""
        yield f"{self.scenarios} scenarios, {self.writes} writes, {self.points.total()} points, seed {seed}"
        yield from (f"  {name}: {count}" for name, count in self.points.items())
        yield from (f"  ended otherwise, as documented ({name}): {count}" for name, count in self.known.items())
        yield from (f"  {what}: {count}" for what, count in self.left_out.items())
        yield f"  failed: {len(self.failed)}"
        yield from (f"    {failure}" for failure in self.failed)


def main(arguments: Iterable[str] | None = None) -> int:
    """The command. Returns 1 if anything failed; ends with 2 for options that cannot be meant."""
    parser = argparse.ArgumentParser(prog="python -m tools.explore", description=__doc__)
    parser.add_argument("what", choices=("lives", "scenarios", "both"), nargs="?", default="both")
    parser.add_argument("--disturbances", default="all", help="all, crashes, or names with commas between (all)")
    parser.add_argument("--scenario-disturbances", default="dies-before", help="those of scenario files (dies-before)")
    parser.add_argument("--sample", type=int, default=None, help="points of each scenario at most (all)")
    parser.add_argument("--seed", type=int, default=1, help="which points a sample has (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once (one a core)")
    parser.add_argument("-k", default="", dest="chosen", help="part of the name of a life or of a scenario file")
    options = parser.parse_args(None if arguments is None else list(arguments))
    kinds = {"lives": "life", "scenarios": "scenario file", "both": "life or scenario file"}
    found = [] if options.what == "scenarios" else lives_named(options.chosen)
    if not found and (options.what == "lives" or not files_named(options.chosen)):
        parser.exit(2, f"Error: -k {options.chosen}: no {kinds[options.what]} has a name with that in it\n")
    total = Total()
    shared = (options.sample, options.seed, options.jobs, options.chosen)
    if options.what != "scenarios":
        for report in lives(parse_names(options.disturbances), *shared):
            total.take(report)
            print(report, flush=True)
    if options.what != "lives":
        for text in scenarios(parse_names(options.scenario_disturbances), *shared):
            total.read(text)
            print(text[: text.find("\n")], text.rstrip().rpartition("\n")[2], flush=True)
    print("\n".join(total.lines(options.seed)))
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
