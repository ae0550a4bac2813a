"""Wires lwskit's own manager into the fixture `cluster`: the scenarios run on whatever LWSKIT_CLUSTER says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lwskit.api.crds import crds
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import Runnable, TestCluster
from tests.scenarios.manager import manager
from tests.scenarios.support import Sets


@pytest.fixture
def cluster_crds() -> Sequence[Obj]:
    """The kinds of LeaderWorkerSet."""
    return crds()


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """The manager, with its webhooks."""
    return (manager,)


@pytest.fixture
def sets(cluster: TestCluster) -> Sets:
    """LeaderWorkerSets on the test's cluster."""
    return Sets(cluster)
