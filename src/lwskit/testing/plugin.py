"""The pytest plugin `lwskit`: tests on virtual time, and the fixtures `cluster`, `client`, `manager` and `clock`.

Loaded by every pytest run that finds lwskit installed, so it imports nothing heavy and touches only tests that ask.
A project says what its clusters are by overriding `cluster_crds`, `cluster_options` and `cluster_runnables`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lwskit.runtime.clock import Clock, RealClock
from lwskit.testing.virtual import VirtualClock, VirtualLoop

if TYPE_CHECKING:
    from lwskit.runtime.client.client import Client
    from lwskit.runtime.objects import Obj
    from lwskit.testing.cluster import ClusterOptions, Runnable, TestCluster
    from lwskit.testing.explore import Report, Scenario, Settings
    from lwskit.testing.exploring import Explorer, Visit
    from lwskit.testing.manager import ManagerSettings, TestManager

try:
    from pytest_asyncio import fixture as _asyncio_fixture
except ImportError:
    _asyncio_fixture = None

MODE = "LWSKIT_CLUSTER"
"""The environment variable that chooses the cluster: embedded (the default), real or existing."""

WITHOUT = "LWSKIT_WITHOUT"
"""The environment variable that names the controllers, with blanks between, which a real cluster was made without."""

_MODES = ("embedded", "real", "existing")

_MARKERS = (
    "virtual: run this asynchronous test on an event loop in virtual time.",
    "virtual_only(reason): skip this test on a real cluster.",
    "real_only(reason): skip this test on the embedded cluster.",
    "without(*controllers): let this test play controllers that its cluster then does not run, such as statefulset.",
    "undisturbed(reason): run this test once, as it is, where others are explored.",
    "defects_expected(reason): let this test pass although functions of its controllers raised what they should not.",
)

_CLUSTER: pytest.StashKey[TestCluster | None] = pytest.StashKey()

OPTIONS: dict[str, dict[str, Any]] = {
    "--explore": {
        "metavar": "NAMES",
        "help": "run each test that uses `cluster` again for each point of these disturbances: all, crashes, or names "
        "with commas between",
    },
    "--disturb": {
        "metavar": "POINT",
        "action": "append",
        "default": [],
        "help": "run the tests disturbed at this point only, as a report names it: dies-before@7",
    },
    "--explore-sample": {
        "metavar": "N",
        "type": int,
        "help": "how many points are tried of each test, chosen by --explore-seed; 0: all",
    },
    "--explore-seed": {"metavar": "SEED", "type": int, "default": 1, "help": "which points a sample has (1)"},
}
"""The options of pytest that have tests explored."""
_WITH_REASONS = (("virtual_only", True), ("real_only", False), ("defects_expected", None), ("undisturbed", None))
FAILED = pytest.StashKey[bool]()
"""Whether the test itself has failed."""
VISIT: pytest.StashKey[Visit] = pytest.StashKey()
"""How the test is disturbed, where it is explored."""
_PLUGIN_MISSING = "this test needs pytest-asyncio: pip install 'pytest-asyncio>=1.4'"
_MODE_MISSING = (
    'pytest-asyncio leaves this coroutine function alone: put asyncio_mode = "auto" into [tool.pytest.ini_options] of '
    "pyproject.toml (asyncio_mode = auto into [pytest] of pytest.ini), or mark the test with @pytest.mark.asyncio"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options that have tests explored."""
    group = parser.getgroup("lwskit", "exploring every crash (lwskit)")
    for name, settings in OPTIONS.items():
        group.addoption(name, **settings)


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known. Raises pytest.UsageError when the environment names a cluster that does not exist."""
    cluster_mode()
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    if config.getoption("explore") or config.getoption("disturb"):
        explorer_of(config)


def explorer_of(config: pytest.Config) -> Explorer:
    """What explores in this run of pytest. Raises pytest.UsageError for wrong options, and on a real cluster."""
    from lwskit.testing.exploring import Explorer

    found = config.pluginmanager.get_plugin("lwskit-explorer")
    if found is None:
        if cluster_mode() != "embedded":
            raise pytest.UsageError(f"{MODE}={cluster_mode()}: only runs on the embedded cluster can be explored")
        found = Explorer(config)
        config.pluginmanager.register(found, "lwskit-explorer")
    return found


def cluster_mode() -> str:
    """Which cluster the tests of this run use. Raises pytest.UsageError for one that does not exist."""
    mode = os.environ.get(MODE) or "embedded"
    if mode not in _MODES:
        raise pytest.UsageError(f"{MODE}={mode} is not a kind of cluster; it can be {', '.join(_MODES)}")
    return mode


def left_out(item: pytest.Item) -> frozenset[str]:
    """The controllers that a test wants its cluster to be without, by its markers `without`."""
    return frozenset(name for marker in item.iter_markers("without") for name in marker.args)


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
        for name, on_real in _WITH_REASONS:
            marker = item.get_closest_marker(name)
            if marker is None:
                continue
            reason = marker.kwargs.get("reason") or (marker.args[0] if marker.args else "")
            if not reason:
                raise pytest.UsageError(f"{item.nodeid}: {name} needs a reason")
            if (cluster_mode() != "embedded") is on_real:
                item.add_marker(pytest.mark.skip(reason=reason))
    if cluster_mode() != "embedded":
        _choose_by_controllers(config, items)


def _choose_by_controllers(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On a real cluster without some controllers only what wants it so is run; on a whole one, what does is skipped."""
    lacking = frozenset(os.environ.get(WITHOUT, "").split())
    fitting = [item for item in items if not lacking or left_out(item) == lacking]
    if len(fitting) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in fitting])
        items[:] = fitting
    for item in items:
        if left_out(item) != lacking:
            reason = f"needs a cluster without {', '.join(sorted(left_out(item)))}; see {WITHOUT}"
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


def _is_ours(item: pytest.Item) -> bool:
    """Whether a test asks for what this plugin has, and not for another project's fixtures of the same names."""
    if item.get_closest_marker("virtual") is not None:
        return True
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    for name in ("cluster", "clock"):
        for made in reversed(known.get(name, ())):
            if made.func.__module__ == __name__:
                return True
            if name not in made.argnames:
                break  # Replaced, and not built upon the one before.
    used = vars(getattr(item, "module", None)).values() if hasattr(item, "module") else ()
    names = (str(getattr(one, "__module__", None) or getattr(one, "__name__", "")) for one in used)
    return any(name.startswith("lwskit.testing") for name in names)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a coroutine function that nobody would run, before its fixtures are made on the wrong loop."""
    if not inspect.iscoroutinefunction(getattr(item, "obj", None)) or item.get_closest_marker("anyio") is not None:
        return
    installed = _asyncio_fixture is not None and item.config.pluginmanager.hasplugin("asyncio")
    if installed:
        mode = item.config.getoption("asyncio_mode", None) or item.config.getini("asyncio_mode")
        if item.get_closest_marker("asyncio") is not None or str(getattr(mode, "value", mode)) == "auto":
            return
    if _is_ours(item):
        pytest.fail(_MODE_MISSING if installed else _PLUGIN_MISSING, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember that a test failed, for the fixtures that are torn down after it; make errors of the library readable.

    With --full-trace tracebacks stay as they are.
    """
    if call.excinfo is not None and type(call.excinfo.value).__module__.startswith("lwskit."):
        from lwskit.testing.mistakes import improve

        made = item.stash.get(_CLUSTER, None)
        better = improve(call.excinfo, made.server if made is not None else None)
        if not item.config.getoption("fulltrace"):
            call.excinfo = better
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    elif report.when == "teardown":
        # Else the clusters of all tests would be kept.
        item.stash.setdefault(_CLUSTER, None)
        del item.stash[_CLUSTER]
    return report


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> Clock:
    """The time of the test's cluster; for a test without one, of its virtual loop."""
    on_real = "cluster" in request.fixturenames and cluster_mode() != "embedded"
    return RealClock() if on_real else VirtualClock()


@pytest.fixture
def cluster_crds() -> Sequence[Obj]:
    """CustomResourceDefinitions that the cluster has; override to bring some, as dicts or paths of YAML files."""
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
    exploration_settings: Settings,
) -> AsyncIterator[TestCluster]:
    """A cluster with a fresh namespace, the CRDs and the programs under test; which one, LWSKIT_CLUSTER says.

    After a failed test it prints what was there.
    """
    from lwskit.runtime.errors import ConfigurationError
    from lwskit.testing.arguments import read_crds
    from lwskit.testing.provide import provide
    from lwskit.testing.report import describe

    async def last_look() -> None:
        if request.node.stash.get(FAILED, False):
            print(await describe(cluster))

    visit = request.node.stash.get(VISIT, None)
    if visit is not None:
        cluster_runnables = visit.runnables(cluster_runnables, exploration_settings)
    async with AsyncExitStack() as stack:
        try:
            crds = read_crds(cluster_crds, request.config.rootpath)
            options = replace(cluster_options, without=cluster_options.without | left_out(request.node))
            provided = provide(cluster_mode(), options, crds, cluster_runnables)
            cluster = await stack.enter_async_context(provided)
        except ConfigurationError as error:
            pytest.fail(str(error), pytrace=False)
        cluster.last_look = last_look
        request.node.stash[_CLUSTER] = cluster
        yield cluster
        if visit is not None and not request.node.stash.get(FAILED, False):
            await visit.finish(cluster, exploration_settings)


@pytest.fixture
def exploration_settings() -> Settings:
    """How scenarios are explored, and what of their ends is compared; override to change it.

    Programs, CRDs and options are those of the other fixtures. In a test that is run again for `--explore`, the
    services run only while the cluster settles after the test.
    """
    from lwskit.testing.explore import Settings

    return Settings()


@pytest.fixture
def explore(
    request: pytest.FixtureRequest,
    cluster_options: ClusterOptions,
    cluster_crds: Sequence[Obj],
    cluster_runnables: Sequence[Runnable],
    exploration_settings: Settings,
) -> Callable[..., Report]:
    """`lwskit.testing.explore.explore` with the project's programs, for tests that are no coroutine functions.

    Call it with a scenario, and with `sample` to have only so many of its points tried in an ordinary run. It fails the
    test with the report, or returns it.
    """
    from lwskit.testing.arguments import read_crds

    settings = replace(
        exploration_settings,
        programs=cluster_runnables,
        crds=read_crds(cluster_crds, request.config.rootpath),
        options=cluster_options,
    )

    def run(scenario: Scenario, *, sample: int | None = None, **changes: Any) -> Report:
        __tracebackhide__ = True
        explorer = explorer_of(request.config)
        return explorer.explored(scenario, replace(settings, **changes), sample, request.node.nodeid)

    return run


@pytest.fixture
def manager_settings() -> ManagerSettings:
    """What the fixture `manager` looks for; override to change it."""
    from lwskit.testing.manager import ManagerSettings

    return ManagerSettings()


async def _manager(
    request: pytest.FixtureRequest, cluster: TestCluster, manager_settings: ManagerSettings
) -> AsyncIterator[TestManager]:
    """A manager that runs on the test's cluster: the test adds its controllers, and they start at once.

    At its end the test fails for what died, and for defects of the controllers' functions.
    """
    from lwskit.testing.manager import running

    if request.node.get_closest_marker("defects_expected") is not None:
        manager_settings = replace(manager_settings, defects_fail=False)
    async with running(cluster, manager_settings) as manager:
        yield manager
        await cluster.clear()


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
