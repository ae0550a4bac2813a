"""The pytest plugin `lwskit`: tests on virtual time, and the fixtures `cluster`, `client`, `manager` and `clock`.

Loaded by every pytest run that finds lwskit installed, so it imports nothing heavy and touches only tests that ask.
A project says what its clusters are by overriding `cluster_crds`, `cluster_options` and `cluster_runnables`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from lwskit.runtime.clock import Clock, RealClock
from lwskit.testing.virtual import VirtualClock, VirtualLoop

if TYPE_CHECKING:
    from lwskit.runtime.client.client import Client
    from lwskit.runtime.objects import Obj
    from lwskit.testing.cluster import ClusterOptions, Runnable, TestCluster
    from lwskit.testing.manager import TestManager

try:
    from pytest_asyncio import fixture as _asyncio_fixture
except ImportError:
    _asyncio_fixture = None

MODE = "LWSKIT_CLUSTER"
"""The environment variable that chooses the cluster: embedded (the default), real or existing."""

_MODES = ("embedded", "real", "existing")

_MARKERS = (
    "virtual: run this asynchronous test on an event loop in virtual time.",
    "virtual_only(reason): skip this test on a real cluster.",
    "real_only(reason): skip this test on the embedded cluster.",
)

_FAILED = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known. Raises pytest.UsageError when the environment names a cluster that does not exist."""
    cluster_mode()
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


def cluster_mode() -> str:
    """Which cluster the tests of this run use. Raises pytest.UsageError for one that does not exist."""
    mode = os.environ.get(MODE) or "embedded"
    if mode not in _MODES:
        raise pytest.UsageError(f"{MODE}={mode} is not a kind of cluster; it can be {', '.join(_MODES)}")
    return mode


def wants_virtual_time(item: pytest.Item) -> bool:
    """Whether a test runs on a virtual loop: marked `virtual`, or using `clock` or `cluster` while that is embedded."""
    if item.get_closest_marker("virtual") is not None:
        return True
    fixtures = getattr(item, "fixturenames", ())
    if "cluster" in fixtures:
        return cluster_mode() == "embedded"
    return "clock" in fixtures


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what cannot run on the cluster of this run."""
    for item in items:
        for name, on_real in (("virtual_only", True), ("real_only", False)):
            marker = item.get_closest_marker(name)
            if marker is None:
                continue
            reason = marker.kwargs.get("reason") or (marker.args[0] if marker.args else "")
            if not reason:
                raise pytest.UsageError(f"{item.nodeid}: {name} needs a reason")
            if (cluster_mode() != "embedded") == on_real:
                item.add_marker(pytest.mark.skip(reason=reason))


class _VirtualLoops:
    """The answer to pytest-asyncio's question for loops, registered only while a virtual test is collected."""

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_asyncio_loop_factories(self, config: pytest.Config, item: pytest.Item) -> Mapping[str, Any]:
        """One factory: the virtual loop."""
        return {"virtual": VirtualLoop}


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, None, None]:
    """Have pytest-asyncio run tests that ask for virtual time on a VirtualLoop, and leave all others alone."""
    if not wants_virtual_time(metafunc.definition):
        return (yield)
    manager = metafunc.config.pluginmanager
    if manager.hasplugin("asyncio") and not hasattr(manager.hook, "pytest_asyncio_loop_factories"):
        pytest.fail("tests on virtual time need pytest-asyncio 1.4 or newer", pytrace=False)
    loops = _VirtualLoops()
    manager.register(loops)
    try:
        return (yield)
    finally:
        manager.unregister(loops)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember that a test failed, for the fixtures that are torn down after it."""
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> Clock:
    """The time of the test's cluster; for a test without one, of its virtual loop."""
    on_real = "cluster" in request.fixturenames and cluster_mode() != "embedded"
    return RealClock() if on_real else VirtualClock()


@pytest.fixture
def cluster_crds() -> Sequence[Obj]:
    """CustomResourceDefinitions that the cluster has; override to bring some."""
    return ()


@pytest.fixture
def cluster_options() -> ClusterOptions:
    """How the cluster is made; override to change it."""
    from lwskit.testing.cluster import ClusterOptions

    return ClusterOptions()


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """Programs under test, such as a manager: each is given the cluster and runs while the test does."""
    return ()


async def _cluster(
    request: pytest.FixtureRequest,
    cluster_options: ClusterOptions,
    cluster_crds: Sequence[Obj],
    cluster_runnables: Sequence[Runnable],
) -> AsyncIterator[TestCluster]:
    """A cluster with a fresh namespace, the CRDs and the programs under test; which one, LWSKIT_CLUSTER says.

    After a failed test it prints what was there.
    """
    from lwskit.testing.provide import provide
    from lwskit.testing.report import describe, kinds_of

    async with provide(cluster_mode(), cluster_options, cluster_crds, cluster_runnables) as cluster:
        yield cluster
        if request.node.stash.get(_FAILED, False):
            print(await describe(cluster, *kinds_of(cluster_crds)))


async def _manager(cluster: TestCluster) -> AsyncIterator[TestManager]:
    """A manager that runs on the test's cluster: the test adds its controllers, and they start at once."""
    from lwskit.testing.manager import running

    async with running(cluster) as manager:
        yield manager


def _fixture(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """An asynchronous fixture, or where pytest-asyncio is missing one that says so."""
    if _asyncio_fixture is not None:
        return _asyncio_fixture(function, name=name, loop_scope="function")

    def missing() -> None:
        pytest.fail(f"the fixture `{name}` needs pytest-asyncio", pytrace=False)

    return pytest.fixture(missing, name=name)


cluster = _fixture(_cluster, "cluster")
manager = _fixture(_manager, "manager")


@pytest.fixture
def client(cluster: TestCluster) -> Client:
    """An administrator's client of the test's cluster."""
    return cluster.client
