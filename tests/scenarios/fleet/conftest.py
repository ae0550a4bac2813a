"""Scenarios with workloads of another kind, which the manager was given through the registry."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from lwskit.api.crds import crds
from lwskit.backends import registry
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import Runnable, TestCluster
from tests.fleet.controller import fleets
from tests.fleet.kind import CRD, FLEET
from tests.scenarios.manager import manager
from tests.scenarios.support import Sets

FOLDER = Path(__file__).parent


@pytest.fixture
def cluster_crds() -> Sequence[Obj]:
    """The kinds of LeaderWorkerSet, and fleets."""
    return [*crds(), CRD]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> registry.Backends:
    """The backends as the registry finds them when a package has registered them under `fleet`."""
    point = EntryPoint("fleet", "tests.fleet.kind:backends", registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "entry_points", lambda *, group: EntryPoints([point]).select(group=group))
    return registry.find("fleet")


@pytest.fixture
def cluster_runnables(found: registry.Backends) -> Sequence[Runnable]:
    """The controller of fleets, and the manager with that backend."""
    return fleets, partial(manager, backends=found)


@pytest.fixture
def sets(cluster: TestCluster) -> Sets:
    """LeaderWorkerSets whose leaders and workers are in fleets."""
    return Sets(cluster, workload=FLEET)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What dies here would also be the tests' own controller of fleets, which is not made for that."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.undisturbed("the test plays the controller of fleets"))
