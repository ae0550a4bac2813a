"""A rollout of ten roles with a hundred groups of one each, a tenth more at a time: planned, and run on virtual time.

python -m tests.bench.coordinated [--roles 10] [--groups 100] [--profile FILE] [--strict]
"""

from __future__ import annotations

import argparse
import cProfile
import logging
import sys
import time
from collections.abc import Sequence

import structlog

from lwskit.api import disaggregated_names as names
from lwskit.api.crds import crds
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.manager import undertest
from lwskit.runtime.objects import Obj, generation_of, is_true
from lwskit.testing.cluster import EMBEDDED, ClusterOptions, TestCluster
from lwskit.testing.provide import provide
from lwskit.testing.virtual import run
from tests.bench.rounds import Report
from tests.unit.disaggregated.simulator import Revision, World, at_once

SET = "d"
SURGE = "10%"
PODS_OF_A_NODE = 80
HOUR = 3600.0
PLANNED, RUN = 2.0, 60.0
"""Seconds that planning and the whole of it may take."""


def set_of(roles: int, groups: int, image: str) -> Obj:
    """The set."""
    pods = {"spec": {"containers": [{"name": "worker", "image": image}]}}
    limits = {"maxSurge": SURGE, "maxUnavailable": 0}
    spec = {
        "replicas": groups,
        "leaderWorkerTemplate": {"size": 1, "workerTemplate": pods},
        "rolloutStrategy": {"rollingUpdateConfiguration": limits},
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": SET},
        "spec": {"roles": [{"name": f"role-{i}", "spec": spec} for i in range(roles)]},
    }


def planned(roles: int, groups: int) -> tuple[float, int]:
    """The seconds that all steps of it take to plan and to check, and how many there are."""
    full, none, tenth = (groups,) * roles, (0,) * roles, (groups // 10,) * roles
    world = World([Revision("old", full, full, full)], Revision("new", full, none, none), full, tenth, none)
    begin = time.process_time()
    steps = [*world.run(at_once, 100 * groups)]
    assert world.is_finished()
    return time.process_time() - begin, len(steps)


async def available(cluster: TestCluster, roles: int, timeout: float = HOUR) -> None:
    """Wait until the set is, as it is now, and nothing else is there."""

    async def check() -> None:
        live = await cluster.get(DISAGGREGATED_SET, SET)
        assert (live.get("status") or {}).get("observedGeneration") == generation_of(live)
        assert is_true(live, names.CONDITION_AVAILABLE)
        assert len(await cluster.list(LEADER_WORKER_SET)) == roles

    await cluster.eventually(check, timeout, interval=1.0)


class Rolled:
    """One rollout on the embedded cluster."""

    def __init__(self) -> None:
        self.creation = self.rollout = self.elapsed = self.virtual = 0.0
        """Processor seconds of the creation and of the rollout, real ones of it, and those of the cluster's clock."""

    async def run(self, roles: int, groups: int, profile: cProfile.Profile | None) -> None:
        """Create the set, and roll it."""
        nodes = roles * groups * 12 // 10 // PODS_OF_A_NODE + 2
        options = ClusterOptions(without=frozenset(), nodes=nodes)
        async with provide(EMBEDDED, options, crds(), (undertest.manager,)) as cluster:
            begin = time.process_time()
            await cluster.create(DISAGGREGATED_SET, set_of(roles, groups, "img:v1"))
            await available(cluster, roles)
            self.creation = time.process_time() - begin
            begin, began, clock = time.process_time(), time.perf_counter(), cluster.clock.monotonic()
            if profile:
                profile.enable()
            body = {"spec": set_of(roles, groups, "img:v2")["spec"]}
            await cluster.patch(DISAGGREGATED_SET, SET, body)
            await available(cluster, roles)
            if profile:
                profile.disable()
            self.rollout, self.elapsed = time.process_time() - begin, time.perf_counter() - began
            self.virtual = cluster.clock.monotonic() - clock


def main(argv: Sequence[str]) -> int:
    """Plan it and run it; with `--strict` a missed target is a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.coordinated", description=__doc__)
    parser.add_argument("--roles", type=int, default=10)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--profile", help="a file for what cProfile finds in the rollout")
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args(argv)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    report = Report()
    report.say(f"{options.roles} roles with {options.groups} groups of one, {SURGE} more at a time")
    seconds, steps = planned(options.roles, options.groups)
    report.figure(f"planned and checked, {steps} steps", seconds, "s", most=PLANNED)
    profile = cProfile.Profile() if options.profile else None
    rolled = Rolled()
    run(rolled.run(options.roles, options.groups, profile))
    report.figure("created and ready, processor time", rolled.creation, "s")
    report.figure("rolled, processor time of everything", rolled.rollout, "s", most=RUN)
    report.figure("… real time", rolled.elapsed, "s")
    report.figure("… time of the cluster", rolled.virtual, "s")
    if profile:
        profile.dump_stats(options.profile)
    report.done()
    return 1 if options.strict and report.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
