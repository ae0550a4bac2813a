"""Scenarios of DisaggregatedSets (specification: 50)."""

from __future__ import annotations

import pytest

from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.support import DisaggregatedSets


@pytest.fixture
def sets(cluster: TestCluster) -> DisaggregatedSets:
    """DisaggregatedSets on the test's cluster."""
    return DisaggregatedSets(cluster)
