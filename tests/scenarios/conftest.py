"""Wires lwskit's own manager into the fixture `cluster`: the scenarios run on whatever LWSKIT_CLUSTER says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lwskit.api.crds import crds
from lwskit.manager import undertest
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import ClusterOptions, Runnable, TestCluster
from lwskit.testing.explore import Settings
from lwskit.testing.plugin import cluster_mode
from tests.exploration.settings import SETTINGS
from tests.scenarios.manager import manager
from tests.scenarios.support import Sets, options


@pytest.fixture
def cluster_crds() -> Sequence[Obj]:
    """The kinds of LeaderWorkerSet."""
    return crds()


@pytest.fixture
def cluster_options() -> ClusterOptions:
    """With more patience where the cluster is a real one."""
    return options()


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """The manager, with its webhooks."""
    return (undertest.restartable() if cluster_mode() == "embedded" else manager,)


@pytest.fixture
def exploration_settings() -> Settings:
    """How the scenarios are explored: at their ends all pods become ready."""
    return SETTINGS


@pytest.fixture
def sets(cluster: TestCluster) -> Sets:
    """LeaderWorkerSets on the test's cluster."""
    return Sets(cluster)
