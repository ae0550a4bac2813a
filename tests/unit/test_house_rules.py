"""Rules of the source that no linter knows: see docs/architecture.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "lwskit"
FILES = sorted(SOURCE.rglob("*.py"))
CLOCK = SOURCE / "runtime" / "clock.py"
LONGEST = 500

REAL = {
    "time": None,
    "secrets": None,
    "uuid": {"uuid1", "uuid4"},
    "random": {
        "random",
        "choice",
        "choices",
        "randint",
        "randrange",
        "sample",
        "shuffle",
        "uniform",
        "seed",
        "getrandbits",
    },
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "os": {"urandom"},
}
"""What reaches for the machine's time or randomness: attributes of a module or class; None stands for all of them."""


def reaches_out(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Uses of the machine's clock and randomness, with their line numbers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in REAL:
            names = REAL[node.value.id]
            if names is None or node.attr in names:
                yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "secrets", "random", "uuid"):
            for alias in node.names:
                if (names := REAL[node.module]) is None or alias.name in names:
                    yield node.lineno, f"{node.module}.{alias.name}"


def test_the_check_itself_sees_what_it_should() -> None:
    text = (
        "import time\nfrom random import choice\ntime.time()\ndatetime.now(UTC)\nrandom.Random(1)\nself.clock.now()\n"
    )
    assert sorted(reaches_out(ast.parse(text))) == [(2, "random.choice"), (3, "time.time"), (4, "datetime.now")]


def test_time_and_randomness_are_arguments() -> None:
    found = [
        f"{file.relative_to(SOURCE)}:{line}: {name}"
        for file in FILES
        if file != CLOCK
        for line, name in reaches_out(ast.parse(file.read_text()))
    ]
    assert not found


def test_files_have_one_purpose() -> None:
    long = {str(file.relative_to(SOURCE)): n for file in FILES if (n := len(file.read_text().splitlines())) > LONGEST}
    assert not long


@pytest.mark.parametrize("package", ["runtime", "embedded", "testing"])
def test_the_lower_block_knows_nothing_of_sets(package: str) -> None:
    names = ("leaderworkerset.", "leaderworkersets", "lws.x-k8s.io")
    found = [
        f"{file.relative_to(SOURCE)}: {name}"
        for file in FILES
        if file.is_relative_to(SOURCE / package)
        for name in names
        if name in file.read_text()
    ]
    assert not found


def test_every_module_says_what_it_is() -> None:
    silent = [str(file.relative_to(SOURCE)) for file in FILES if not ast.get_docstring(ast.parse(file.read_text()))]
    assert not silent
