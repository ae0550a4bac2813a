"""The plugin in pytest runs of its own, as a stranger's project sees it."""

import pytest

import lwskit.testing.fake  # noqa: F401 - else each run in this process would import classes of its own

pytest_plugins = "pytester"

HEADER = """
import asyncio
import pytest
from lwskit.testing.virtual import VirtualLoop

def virtual():
    return isinstance(asyncio.get_running_loop(), VirtualLoop)
"""


@pytest.fixture
def project(pytester, monkeypatch):
    monkeypatch.delenv("LWSKIT_CLUSTER", raising=False)
    pytester.makeini(
        """
        [pytest]
        asyncio_mode = auto
        asyncio_default_fixture_loop_scope = function
        filterwarnings = error
        addopts = --strict-markers
        """
    )
    return pytester


def test_a_deadlock_fails_the_test_and_no_other(project):
    project.makepyfile(
        HEADER
        + """
async def test_stuck(clock):
    await asyncio.Event().wait()

async def test_fine(clock):
    await asyncio.sleep(1)
"""
    )
    result = project.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*Deadlock*nothing is ready*"])


def test_other_tests_and_their_wider_fixtures_are_left_alone(project):
    project.makepyfile(
        HEADER
        + """
import pytest_asyncio

@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared():
    yield asyncio.get_running_loop()

@pytest.mark.asyncio(loop_scope="module")
async def test_shared(shared):
    assert shared is asyncio.get_running_loop()
    assert not virtual()

@pytest.mark.virtual
async def test_virtual():
    assert virtual()

async def test_plain():
    assert not virtual()

def test_synchronous():
    pass
"""
    )
    project.runpytest().assert_outcomes(passed=4)


def test_classes_and_modules_can_be_marked(project):
    project.makepyfile(
        HEADER
        + """
pytestmark = pytest.mark.virtual

class TestIt:
    async def test_one(self):
        assert virtual()

@pytest.mark.parametrize("n", [1, 2])
async def test_two(n):
    assert virtual()
"""
    )
    project.runpytest().assert_outcomes(passed=3)


def test_strict_mode_works_with_the_marker_of_pytest_asyncio(project):
    project.makepyfile(
        HEADER
        + """
@pytest.mark.asyncio
@pytest.mark.virtual
async def test_one():
    assert virtual()
"""
    )
    project.runpytest("--asyncio-mode=strict").assert_outcomes(passed=1)


@pytest.mark.parametrize(("mode", "skipped"), [("embedded", "test_real"), ("real", "test_embedded")])
def test_tests_for_one_kind_of_cluster_are_skipped_on_the_other(project, monkeypatch, mode, skipped):
    monkeypatch.setenv("LWSKIT_CLUSTER", mode)
    project.makepyfile(
        HEADER
        + """
@pytest.mark.virtual_only("takes an hour")
def test_embedded():
    pass

@pytest.mark.real_only(reason="asks etcd")
def test_real():
    pass
"""
    )
    result = project.runpytest("-rs", "-v")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines([f"*{skipped} SKIPPED*"])


@pytest.mark.parametrize(("lacking", "outcome"), [("", {"passed": 1, "skipped": 1}), ("statefulset", {"passed": 1})])
def test_what_plays_a_controller_is_run_where_that_is_missing_and_nothing_else(project, monkeypatch, lacking, outcome):
    monkeypatch.setenv("LWSKIT_CLUSTER", "real")
    monkeypatch.setenv("LWSKIT_WITHOUT", lacking)
    project.makepyfile(
        HEADER
        + """
@pytest.mark.without("statefulset")
def test_plays():
    pass

def test_whole():
    pass
"""
    )
    result = project.runpytest("-v")
    result.assert_outcomes(**outcome)
    result.stdout.fnmatch_lines([f"*test_{'plays' if lacking else 'whole'} PASSED*"])


def test_the_embedded_cluster_has_no_controller_that_a_test_plays(project):
    project.makepyfile(
        HEADER
        + """
@pytest.mark.without("statefulset")
async def test_one(cluster):
    assert cluster.options.without == {"scheduler", "kubelet", "statefulset"}
"""
    )
    project.runpytest("--asyncio-mode=auto").assert_outcomes(passed=1)


def test_such_a_marker_needs_a_reason(project):
    project.makepyfile(HEADER + "@pytest.mark.virtual_only\ndef test_one():\n    pass\n")
    result = project.runpytest()
    assert result.ret != 0
    result.stderr.fnmatch_lines(["*test_one: virtual_only needs a reason*"])


def test_an_unknown_cluster_is_a_usage_error(project, monkeypatch):
    monkeypatch.setenv("LWSKIT_CLUSTER", "cloud")
    project.makepyfile(HEADER + "async def test_one(cluster):\n    pass\n")
    result = project.runpytest()
    assert result.ret != 0
    text = result.stdout.str() + result.stderr.str()
    assert "LWSKIT_CLUSTER=cloud is not a kind of cluster; it can be embedded, real, existing" in text


def test_the_plugin_imports_nothing_heavy(project):
    project.makepyfile(
        """
import subprocess
import sys

def test_imports():
    code = "import lwskit.testing.plugin, sys; print(sorted(m.partition('.')[0] for m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = ("aiohttp", "kubernetes_asyncio", "pydantic", "cryptography", "orjson")
    assert not [m for m in heavy if f"'{m}'" in loaded]
"""
    )
    project.runpytest().assert_outcomes(passed=1)


@pytest.mark.parametrize("use", ["cluster", "manager", "client", "clock"])
def test_without_a_mode_for_asyncio_the_test_says_what_to_write(project, use):
    project.makepyfile(f"async def test_one({use}):\n    pass\n")
    result = project.runpytest("--asyncio-mode=strict")
    text = result.stdout.str()
    assert 'put asyncio_mode = "auto" into [tool.pytest.ini_options] of pyproject.toml' in text
    assert "You need to install" not in text
    project.runpytest().assert_outcomes(passed=1)


def test_the_marker_of_pytest_asyncio_does_as_well(project):
    project.makepyfile("import pytest\n\n@pytest.mark.asyncio\nasync def test_one(cluster, manager):\n    pass\n")
    project.runpytest("--asyncio-mode=strict").assert_outcomes(passed=1)


def test_so_it_is_for_a_test_that_only_imports_from_here(project):
    project.makepyfile("from lwskit.testing import fake\n\nasync def test_one():\n    fake.client()\n")
    assert "put asyncio_mode" in project.runpytest("--asyncio-mode=strict").stdout.str()


def test_fixtures_of_the_same_names_are_another_projects_business(project):
    project.makepyfile(
        """
import pytest

@pytest.fixture
def cluster():
    return 1

@pytest.hookimpl
async def test_one(cluster):
    pass
"""
    )
    result = project.runpytest("--asyncio-mode=strict")
    assert "put asyncio_mode" not in result.stdout.str()


def test_what_cluster_crds_must_not_return_is_one_line(project):
    project.makeconftest("import pytest\n\n@pytest.fixture\ndef cluster_crds():\n    return ['deploy/crd.yaml']\n")
    project.makepyfile("async def test_one(cluster):\n    pass\n")
    result = project.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["the fixture cluster_crds names */deploy/crd.yaml, which cannot be read: *"])
    assert "Traceback" not in result.stdout.str()
    assert "plugin.py" not in result.stdout.str()


CONTROLLER = """
import pytest
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.kinds import CONFIG_MAP
from lwskit.runtime.objects import Key

async def play(cluster, manager, reconcile):
    informer = manager.cache.informer(CONFIG_MAP)
    manager.add(Builder(reconcile, clock=manager.clock, rng=manager.rng, name="shop").for_(informer).build())
    await manager.synced()
    await cluster.create(CONFIG_MAP, {"metadata": {"name": "c"}})
    await cluster.clock.sleep(0.02)
"""

DEFECTS = """
async def test_key_error(cluster, manager):
    async def reconcile(request):
        {}["spec"]
    await play(cluster, manager, reconcile)

async def test_forgotten_await(cluster, manager):
    async def reconcile(request):
        manager.client.get(CONFIG_MAP, request.name, request.namespace)
    await play(cluster, manager, reconcile)

async def test_shared_object(cluster, manager):
    async def reconcile(request):
        manager.cache.store(CONFIG_MAP).get(Key(request.namespace, request.name))["data"] = {"x": "1"}
    await play(cluster, manager, reconcile)

async def test_wrong_result(cluster, manager):
    async def reconcile(request):
        return 60
    await play(cluster, manager, reconcile)
"""


@pytest.fixture
def lenient(pytester, monkeypatch):
    """A project that does not turn warnings into errors."""
    monkeypatch.delenv("LWSKIT_CLUSTER", raising=False)
    lines = ("asyncio_mode = auto", "asyncio_default_fixture_loop_scope = function", "filterwarnings = default")
    pytester.makeini("\n".join(["[pytest]", *lines]))
    return pytester


def test_defects_of_a_controller_fail_its_test(lenient):
    lenient.makepyfile(CONTROLLER + DEFECTS)
    result = lenient.runpytest("-p", "no:logging")
    result.assert_outcomes(passed=4, errors=4, warnings=1)
    text = result.stdout.str()
    assert "KeyError: 'spec'" in text
    assert "functions of controller shop failed " in text
    assert "first by KeyError('spec')" in text
    assert "coroutine 'Client.get' was never awaited" in text
    assert 'the cached ConfigMap "test/c" was changed at data by somebody who had read it' in text
    assert "reconcile of controller shop returned int" in text
    assert "a test that wants this is marked with defects_expected" in text


def test_defects_can_be_expected(lenient):
    lenient.makepyfile(
        CONTROLLER
        + """
@pytest.fixture
def manager_settings():
    from lwskit.testing.manager import ManagerSettings
    return ManagerSettings(detect_mutations=False)

pytestmark = pytest.mark.defects_expected("they are what is tested")
"""
        + DEFECTS
    )
    lenient.runpytest().assert_outcomes(passed=4, warnings=1)


def test_ordinary_errors_are_no_defects(lenient):
    lenient.makepyfile(
        CONTROLLER
        + """
async def test_errors(cluster, manager):
    async def reconcile(request):
        raise LwskitError("not yet") if request.name == "c" else OSError("net")
    await play(cluster, manager, reconcile)
"""
    )
    lenient.runpytest().assert_outcomes(passed=1)


def test_an_unknown_kind_is_explained_where_the_test_asked_for_it(lenient):
    lenient.makepyfile(
        """
import pytest
from lwskit.runtime.kinds import Kind
from lwskit.testing import fake

WEBSITE = Kind("web.example", "v1", "Website", "websites")

async def test_forgotten(cluster):
    await cluster.create(WEBSITE, {"metadata": {"name": "w"}})

async def test_builtin(client, cluster):
    await client.list(Kind("batch", "v1", "Thing", "things"), "test")

class TestWithout:
    @pytest.fixture
    def cluster_crds(self):
        return [fake.crd_of(WEBSITE)]

    async def test_plural(self, cluster):
        await cluster.create(Kind("web.example", "v1", "Website", "website"), {"metadata": {"name": "w"}})

    async def test_version(self, cluster):
        await cluster.create(Kind("web.example", "v2", "Website", "websites"), {"metadata": {"name": "w"}})

    async def test_object(self, cluster):
        await cluster.get(WEBSITE, "w")

async def test_fake():
    await fake.client().get(WEBSITE, "w", "test")
"""
    )
    result = lenient.runpytest("-rN")  # no summary, which repeats what fits into a line, and on CI all of it
    result.assert_outcomes(failed=6)
    text = result.stdout.str()
    for line in (
        "no CustomResourceDefinition for Website of web.example/v1: put it into the fixture cluster_crds",
        "the embedded cluster does not serve Thing of batch/v1",
        "the server has Website as 'websites'; the Kind says 'website'",
        "the server has websites of web.example in v1, not in v2",
        "no CustomResourceDefinition for Website of web.example/v1: give it to fake.client as one of `crds`",
    ):
        assert line in text, line
    assert text.count("no CustomResourceDefinition for") == 2
    for frame in ("tenacity", "runtime/client/client.py", "testing/cluster.py"):
        assert frame not in text
    assert "runtime/client/client.py" in lenient.runpytest("--full-trace").stdout.str()
