"""The examples run, and say what they claim to; in virtual time, so that they take no time."""

from __future__ import annotations

import random
from pathlib import Path

from examples import embed_reconcilers
from examples.test_a_set import (  # noqa: F401  (its fixtures and tests are collected as this file's)
    cluster_crds,
    cluster_options,
    cluster_runnables,
    test_a_lost_worker_takes_its_own_group_along_and_no_other,
    test_a_mistake_is_refused_with_its_place,
    test_every_pod_finds_the_leader_of_its_group,
)
from lwskit.runtime.clock import Clock
from tests.unit import test_tutorial

EXAMPLES = Path(__file__).parents[2] / "examples"


async def test_the_reconcilers_in_a_program_of_ones_own(clock: Clock) -> None:
    told: list[str] = []
    await embed_reconcilers.main(clock, random.Random(1), told.append)
    assert told == ["llm is available with 2 groups"]
    assert 0 < clock.monotonic() < 60


def test_every_test_of_an_example_runs_here() -> None:
    collected = globals().keys() | vars(test_tutorial).keys()
    for path in EXAMPLES.glob("test_*.py"):
        lines = path.read_text().splitlines()
        tests = {line.split("(")[0].removeprefix("async def ") for line in lines if "def test_" in line}
        assert tests
        assert tests <= collected


def test_every_example_is_run_here_and_mentioned_in_the_pages() -> None:
    pages = "".join(page.read_text() for page in (EXAMPLES.parent / "docs").glob("*.md"))
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"embed_reconcilers.py", "test_a_set.py", "copy_configmap.py", "test_copy_configmap.py"}
    assert not [name for name in names if f"../examples/{name}" not in pages]
