"""Random lives of a set in Hash mode, on virtual time; what has to hold is looked at after every change (30 §7, §13).

LWSKIT_REPEAT says how many are lived, LWSKIT_SEED with which seed they begin; a failure names its seed and its steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from lwskit.testing.cluster import ClusterOptions, Runnable, TestCluster
from tests.scenarios.hash.hash_life import HashLife
from tests.scenarios.hash.keyed import HashWorld
from tests.scenarios.hash.support import HashSets
from tests.scenarios.life import seeds
from tests.scenarios.living import OPTIONS, live, living, repeats, telling

SEEDS = seeds(5)

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
    return OPTIONS


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    """What all lives together have seen, told at the end of the run."""
    yield from telling(request)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_life(cluster: TestCluster, sets: HashSets, seed: int, told: Counter[str]) -> None:
    """Edits, failures, lost nodes, other clients, and managers that come and go: see `laws` for what has to hold."""
    async with living(cluster, sets, seed, HashWorld, HashLife) as life:
        await live(life, told)


def test_a_life_repeats_itself() -> None:
    """A seed is all that has to be known to see a life once more, change by change."""
    repeats(2, HashSets, HashWorld, HashLife)
