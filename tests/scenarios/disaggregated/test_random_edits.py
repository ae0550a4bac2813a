"""Random lives of a DisaggregatedSet, on virtual time; what has to hold is looked at after every change (50 §6–§12).

LWSKIT_REPEAT says how many are lived, LWSKIT_SEED with which seed they begin; a failure names its seed and its steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest

from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.testing.cluster import ClusterOptions, Runnable, TestCluster
from tests.scenarios.disaggregated.ds_life import DsLife
from tests.scenarios.disaggregated.world import DsWorld
from tests.scenarios.life import seeds
from tests.scenarios.living import NODES, OPTIONS, telling
from tests.scenarios.nodes import Nodes
from tests.scenarios.support import Sets
from tests.scenarios.world import History

SEEDS = seeds(3)
STEPS = 25

pytestmark = pytest.mark.virtual_only("an hour of a set's life, and a manager that dies at chosen moments")


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: the life starts and ends its managers."""
    return ()


@pytest.fixture
def cluster_options() -> ClusterOptions:
    """Without the kubelet: the life plays the nodes."""
    return OPTIONS


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """What all lives together have seen, told at the end of the run."""
    yield from telling(request)


@asynccontextmanager
async def living(cluster: TestCluster, seed: int) -> AsyncIterator[DsLife]:
    """A life that has begun: a set has been created, and a manager runs."""
    nodes = await Nodes.of(cluster, NODES)
    async with nodes.running(), History(cluster, DsWorld.kinds()) as history:
        life = DsLife(cluster, Sets(cluster), seed, nodes, history)
        async with life.lived():
            await life.begin()
            await cluster.create(DISAGGREGATED_SET, life.first())
            await life.look()
            yield life


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_life(cluster: TestCluster, seed: int, told: Counter[str]) -> None:
    """Edits, scalers, failures, other clients, and managers that come and go: see `laws` for what has to hold."""
    async with living(cluster, seed) as life:
        for _ in range(STEPS):
            await life.step()
        await life.ends()
        told.update(life.counts)
        told["lives"] += 1
        told["managers"] += life.begun
