"""Exploring in pytest runs of its own, as a stranger's project sees it."""

from __future__ import annotations

import pytest

pytest_plugins = "pytester"

PROGRAM = """
import asyncio
import pytest
from contextlib import asynccontextmanager
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import LwskitError, NotFound
from lwskit.runtime.kinds import CONFIG_MAP
from lwskit.testing.cluster import ClusterOptions

@asynccontextmanager
async def copier(cluster):
    client = Client(await cluster.connect("copier"), clock=cluster.clock)

    async def step(source):
        if (source["metadata"].get("annotations") or {}).get("copied"):
            return
        try:
            await client.get(CONFIG_MAP, "copy", cluster.namespace)
        except NotFound:
            await client.create(CONFIG_MAP, {"metadata": {"name": "copy", "namespace": cluster.namespace}})
            MARK_IT
        OR_HERE

    async def mark():
        body = {"metadata": {"annotations": {"copied": "true"}}}
        await client.patch(CONFIG_MAP, "source", body, cluster.namespace)

    async def loop():
        while True:
            try:
                await step(await client.get(CONFIG_MAP, "source", cluster.namespace))
            except LwskitError:
                pass
            await asyncio.sleep(1)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(loop())
        try:
            yield
        finally:
            task.cancel()

@pytest.fixture
def cluster_options():
    return ClusterOptions(without=frozenset({"scheduler", "kubelet", "statefulset", "garbage", "claims"}), nodes=0)

@pytest.fixture
def cluster_runnables():
    return [copier]

async def copied(cluster):
    await cluster.create(CONFIG_MAP, {"metadata": {"name": "source"}})
    await cluster.eventually(lambda: cluster.get(CONFIG_MAP, "copy"))

"""
RIGHT = PROGRAM.replace("MARK_IT", "pass").replace("OR_HERE", "await mark()")
WRONG = PROGRAM.replace("MARK_IT", "await mark()").replace("OR_HERE", "")
TESTS = """
async def test_copied(cluster):
    await copied(cluster)

@pytest.mark.undisturbed("it looks at requests")
async def test_left_out(cluster):
    await copied(cluster)

def test_without_a_cluster():
    assert True
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("LWSKIT_CLUSTER", raising=False)
    pytester.makeini(
        """
        [pytest]
        asyncio_mode = auto
        asyncio_default_fixture_loop_scope = function
        filterwarnings = error
        addopts = --strict-markers -p no:cacheprovider
        """
    )
    return pytester


def test_tests_are_run_again_for_each_point(project: pytest.Pytester) -> None:
    project.makepyfile(RIGHT + TESTS)
    result = project.runpytest("--explore", "dies-before,lost,relist")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "1 scenarios, 2 writes, 5 points",
            "  dies-before: 2",
            "  lost: 2",
            "  relist: 1",
            "  left out (it looks at requests): 1",
            "  failed: 0",
        ]
    )


def test_a_point_that_fails_names_itself_and_is_run_alone(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=WRONG + TESTS)
    result = project.runpytest("--explore", "crashes", "--explore-sample", "9")
    result.assert_outcomes(passed=3, errors=4)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_copied*",
            "*the cluster ends otherwise than undisturbed*",
            "*ConfigMap test/source: metadata.annotations.copied: got nothing, want 'true'*",
            "alone: pytest 'test_it.py::test_copied' --disturb dies-before@2",
            "1 scenarios, 2 writes, 9 points, seed 1",
            "    test_it.py::test_copied --disturb dies-before@2",
            "ERROR test_it.py::test_copied at dies-before@2*",
        ]
    )
    result = project.runpytest("test_it.py::test_copied", "--disturb", "dies-before@2", "--disturb", "dies-before@1")
    result.assert_outcomes(passed=1, errors=1)


def test_a_point_that_is_not_there_fails(project: pytest.Pytester) -> None:
    project.makepyfile(test_it=RIGHT + TESTS)
    result = project.runpytest("test_it.py::test_copied", "--disturb", "dies-before@99")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*dies-before@99 was not reached: undisturbed the programs make 2 writes, counted from 1*",
            "  not reached: 1",
            "  failed: 1",
            "    test_it.py::test_copied --disturb dies-before@99",
        ]
    )


def test_the_fixture_explores_a_scenario(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_it=WRONG
        + """
def test_every_crash(explore):
    explore(copied)

def test_some(explore):
    assert explore(copied, sample=1, disturbances=["dies-between"]).points.total() == 1
"""
    )
    result = project.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*copied dies-before@2 (at PATCH *", "*alone: pytest 'test_it.py::test_every_crash' --disturb POINT*"]
    )
    result = project.runpytest("-k", "every", "--disturb", "dies-before@1")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 scenarios, 2 writes, 1 points, seed 1", "  dies-before: 1"])
    result = project.runpytest("-k", "some", "--explore", "dies-between", "--explore-sample", "0")
    result.assert_outcomes(failed=1)
    assert "assert 2 == 1" in result.stdout.str()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--explore", "crash"), "'crash' is no disturbance"),
        (("--disturb", "lost"), "say at which write"),
    ],
)
def test_wrong_options_are_refused(project: pytest.Pytester, options: tuple[str, ...], said: str) -> None:
    project.makepyfile(RIGHT + TESTS)
    result = project.runpytest(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()


def test_a_mark_needs_a_reason_and_a_real_cluster_is_not_explored(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makepyfile(RIGHT + TESTS.replace('("it looks at requests")', ""))
    result = project.runpytest("--explore", "lost")
    assert result.ret != pytest.ExitCode.OK
    assert "undisturbed needs a reason" in result.stderr.str()
    monkeypatch.setenv("LWSKIT_CLUSTER", "existing")
    result = project.runpytest("--explore", "lost")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "only runs on the embedded cluster can be explored" in result.stderr.str()
