"""Scenarios of sets whose leaders are in a Deployment (specification: 30)."""

from __future__ import annotations

import pytest

from lwskit.testing.cluster import TestCluster
from tests.scenarios.hash.support import HashSets


@pytest.fixture
def sets(cluster: TestCluster) -> HashSets:
    """Sets in Hash mode on the test's cluster."""
    return HashSets(cluster)
