"""What files of random lives share: a life that has begun, and what all lives of a run have seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from lwskit.api.crds import crds
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.testing.cluster import EMBEDDED, ClusterOptions, TestCluster
from lwskit.testing.provide import provide
from lwskit.testing.virtual import run
from tests.scenarios.nodes import Nodes
from tests.scenarios.random_life import RandomLife
from tests.scenarios.support import Sets
from tests.scenarios.world import History, World

A = TypeVar("A", bound=RandomLife[Any])

STEPS = 25
NODES = 3
OPTIONS = ClusterOptions(without=frozenset({"kubelet"}))
"""Without the kubelet: a life plays the nodes."""


@asynccontextmanager
async def living(
    cluster: TestCluster,
    sets: Sets,
    seed: int,
    world: type[World],
    life_of: Callable[[TestCluster, Sets, int, Nodes, History], A],
) -> AsyncIterator[A]:
    """A life that has begun: a set has been created, and a manager runs."""
    nodes = await Nodes.of(cluster, NODES)
    async with nodes.running(), History(cluster, world.kinds()) as history:
        life = life_of(cluster, sets, seed, nodes, history)
        async with life.lived():
            await life.begin()
            await cluster.create(LEADER_WORKER_SET, life.first())
            await life.look()
            yield life


async def live(life: RandomLife[Any], told: Counter[str]) -> None:
    """Live it to its end, and add what it has seen to what is told."""
    for _ in range(STEPS):
        await life.step()
    await life.ends()
    told.update(life.counts)
    told["lives"] += 1
    told["managers"] += life.begun


def repeats(
    seed: int,
    sets_of: Callable[[TestCluster], Sets],
    world: type[World],
    life_of: Callable[[TestCluster, Sets, int, Nodes, History], RandomLife[Any]],
) -> None:
    """A seed is all that has to be known to see a life once more, change by change."""

    async def changes() -> list[tuple[int, str, str, str]]:
        async with (
            provide(EMBEDDED, OPTIONS, crds(), ()) as cluster,
            living(cluster, sets_of(cluster), seed, world, life_of) as life,
        ):
            for _ in range(STEPS):
                await life.step()
            return life.history.told

    first, second = run(changes()), run(changes())
    assert len(first) > 100
    assert first == second


def telling(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """What all lives of a file together have seen, told at the end of the run: for a fixture."""
    counts: Counter[str] = Counter()
    yield counts
    reporter: Any = request.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and counts:
        reporter.ensure_newline()
        reporter.write_line("; ".join(f"{what}: {count}" for what, count in sorted(counts.items())))
