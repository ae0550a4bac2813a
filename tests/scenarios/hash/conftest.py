"""Scenarios of sets whose leaders are in a Deployment (specification: 30)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lwskit.testing.cluster import TestCluster
from lwskit.testing.explore import Settings
from tests.exploration.settings import SETTINGS, drawn
from tests.scenarios.hash.support import HashSets


@pytest.fixture
def exploration_settings() -> Settings:
    """How these scenarios are explored: their groups are named by chance."""
    return replace(SETTINGS, compared=drawn(SETTINGS.compared))


@pytest.fixture
def sets(cluster: TestCluster) -> HashSets:
    """Sets in Hash mode on the test's cluster."""
    return HashSets(cluster)
