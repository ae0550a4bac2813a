"""Random lives of a set, on virtual time; what has to hold is looked at after every single change (20 §6, §11).

LWSKIT_REPEAT says how many are lived, LWSKIT_SEED with which seed they begin; a failure names its seed and its steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lwskit.api.crds import crds
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.testing.cluster import EMBEDDED, ClusterOptions, Runnable, TestCluster
from lwskit.testing.provide import provide
from lwskit.testing.virtual import run
from tests.scenarios.life import seeds
from tests.scenarios.nodes import Nodes
from tests.scenarios.random_life import RandomLife
from tests.scenarios.support import Sets
from tests.scenarios.world import History

SEEDS = seeds(12)
STEPS = 25
NODES = 3

pytestmark = pytest.mark.virtual_only(
    "minutes of a set's life, nodes that go, and a manager that dies at chosen moments"
)


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: the life starts and ends its managers."""
    return ()


@pytest.fixture
def cluster_options() -> ClusterOptions:
    """Without the kubelet: the life plays the nodes."""
    return ClusterOptions(without=frozenset({"kubelet"}))


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """What all lives together have seen, told at the end of the run."""
    counts: Counter[str] = Counter()
    yield counts
    reporter: Any = request.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and counts:
        reporter.ensure_newline()
        reporter.write_line("; ".join(f"{what}: {count}" for what, count in sorted(counts.items())))


@asynccontextmanager
async def living(cluster: TestCluster, sets: Sets, seed: int) -> AsyncIterator[RandomLife]:
    """A life that has begun: a set has been created, and a manager runs."""
    nodes = await Nodes.of(cluster, NODES)
    async with nodes.running(), History(cluster) as history:
        life = RandomLife(cluster, sets, seed, nodes, history)
        async with life.lived():
            await life.begin()
            await cluster.create(LEADER_WORKER_SET, life.first())
            await life.look()
            yield life


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_life(cluster: TestCluster, sets: Sets, seed: int, told: Counter[str]) -> None:
    """Edits, failures, lost nodes, other clients, and managers that come and go: see `laws` for what has to hold."""
    async with living(cluster, sets, seed) as life:
        for _ in range(STEPS):
            await life.step()
        await life.ends()
    told.update(life.counts)
    told["lives"] += 1
    told["managers"] += life.begun


def test_a_life_repeats_itself() -> None:
    """A seed is all that has to be known to see a life once more, change by change."""

    async def changes() -> list[tuple[int, str, str, str]]:
        options = ClusterOptions(without=frozenset({"kubelet"}))
        async with provide(EMBEDDED, options, crds(), ()) as cluster, living(cluster, Sets(cluster), seed=14) as life:
            for _ in range(STEPS):
                await life.step()
            return life.history.told

    first, second = run(changes()), run(changes())
    assert len(first) > 100
    assert first == second
