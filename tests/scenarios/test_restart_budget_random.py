"""Random lives of a set with a restart budget, on virtual time (specification: 20 §12).

LWSKIT_REPEAT says how many are lived, LWSKIT_SEED with which seed they begin; a failure names its seed and its steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lwskit.testing.cluster import Runnable, TestCluster
from tests.scenarios.budget_life import BudgetLife, live
from tests.scenarios.life import seeds
from tests.scenarios.support import Sets

SEEDS = seeds(6)

pytestmark = pytest.mark.virtual_only("minutes of a set's life, and a manager that ends at chosen moments")


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: the life starts and ends its managers."""
    return ()


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_life(cluster: TestCluster, sets: Sets, seed: int):
    """20 §14 lines 79, 81, 83, 86: no group is restarted more often than there are causes, and none is stuck."""
    await live(BudgetLife(cluster, sets, seed))
