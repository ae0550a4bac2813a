"""What the clusters of this project's tests are: the fixtures come with lwskit."""

import pytest
from greeter import GREETING

from lwskit.testing import fake


@pytest.fixture
def cluster_crds():
    return [fake.crd_of(GREETING)]
