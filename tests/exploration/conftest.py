"""What is explored here: the manager on a whole embedded cluster, with scheduler and kubelet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from lwskit.api.crds import crds
from lwskit.manager import undertest
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import ClusterOptions, Runnable
from lwskit.testing.explore import Settings
from tests.exploration.lives import ALL_LIVES
from tests.exploration.settings import SETTINGS

ROTATION = 3
"""An ordinary run has every third life; which ones, the seed says."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """All lives where exploring was asked for, some of them in an ordinary run."""
    if "life" in metafunc.fixturenames:
        option = metafunc.config.option
        asked = option.explore or option.disturb or option.explore_sample is not None
        lives = ALL_LIVES if asked else ALL_LIVES[option.explore_seed % ROTATION :: ROTATION]
        metafunc.parametrize("life", lives, ids=lambda life: life.name)


@pytest.fixture
def cluster_crds() -> Sequence[Obj]:
    """The kinds of LeaderWorkerSet."""
    return crds()


@pytest.fixture
def cluster_options() -> ClusterOptions:
    """With scheduler and kubelet: pods start by themselves."""
    return ClusterOptions(without=frozenset(), nodes=3)


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """The manager, which dies; its webhooks are those of another replica."""
    return (undertest.restartable(),)


@pytest.fixture
def exploration_settings() -> Settings:
    """Nobody plays a kubelet, since there is one."""
    return replace(SETTINGS, services=())
