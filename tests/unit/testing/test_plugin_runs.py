"""The plugin in pytest runs of its own, as a stranger's project sees it."""

import pytest

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
