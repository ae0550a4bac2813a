"""Random lives of a set in Hash mode with a restart budget, on virtual time (specification: 30 §11).

LWSKIT_REPEAT says how many are lived, LWSKIT_SEED with which seed they begin; a failure names its seed and its steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lwskit.api import names
from lwskit.runtime.objects import labels_of
from lwskit.testing.cluster import Runnable, TestCluster
from tests.scenarios.budget_life import MOST_GROUPS, BudgetLife, live
from tests.scenarios.hash.support import HashSets
from tests.scenarios.life import seeds

SEEDS = seeds(4)

pytestmark = pytest.mark.virtual_only("minutes of a set's life, and a manager that ends at chosen moments")


class HashBudgetLife(BudgetLife):
    """Groups have no names that stay: they are counted all together, and their counts go from one to the next."""

    def index_of(self, name: str) -> str:
        return "any"

    def whole_set(self) -> Sequence[str]:
        return ["any"] * MOST_GROUPS

    def is_leaders(self, name: str) -> bool:
        # llm-HASH-RANDOM; workers are llm-KEY-1.
        return not name.rpartition("-")[2].isdigit()

    async def claimed(self) -> set[str]:
        """At rest only groups that are there have a count."""
        pods = (await self.sets.pods()).values()
        return {labels_of(pod)[names.GROUP_KEY_LABEL] for pod in pods}


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: the life starts and ends its managers."""
    return ()


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_life(cluster: TestCluster, sets: HashSets, seed: int):
    """30 §11: no group is restarted more often than there are causes, none is stuck, and no count is left over."""
    await live(HashBudgetLife(cluster, sets, seed))
