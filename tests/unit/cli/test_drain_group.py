"""`lwskit drain-group`: what is asked, told and done, and the exit codes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from lwskit.cli import drain_group, draining
from lwskit.cli.drain_group import command
from lwskit.groups.drain import Drain
from lwskit.groups.model import DecisionError
from lwskit.runtime.errors import ConfigurationError, LwskitError
from tests.unit.groups.hash_objects import leader

DRAIN = Drain(leader(1), 4, 3, "deletion cost -1000", -1000)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the command carries out, on a cluster whose group `x-rs-1` can be drained and no other."""
    calls: list[Any] = []

    async def found_on(namespace: str, name: str, kubeconfig: Any, context: Any, found: list[Any]) -> None:
        if name != "x-rs-1":
            raise DecisionError(f"{name} would not be the one to go")
        found.append(("x", DRAIN))

    async def carried_out_on(*arguments: Any) -> None:
        calls.append(arguments)

    monkeypatch.setattr(draining, "found_on", found_on)
    monkeypatch.setattr(draining, "carried_out_on", carried_out_on)
    return calls


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(command, arguments, input=stdin)


WHAT = (
    "ark pod x-rs-1 with deletion cost -1000, and scale ns/x from 4 to 3: "
    "the group of x-rs-1 goes (deletion cost -1000)"
)


def test_it_asks_and_then_does(done: list[Any]) -> None:
    result = run("x-rs-1", "-n", "ns", "--context", "c", stdin="y\n")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"M{WHAT}. Go on? [y/N]: ")
    assert result.stdout.endswith("ns/x: scaled from 4 to 3; the group of x-rs-1 goes\n")
    assert done == [("ns", "x", DRAIN, None, "c")]


def test_without_asking(done: list[Any]) -> None:
    result = run("x-rs-1", "-n", "ns", "--yes")
    assert (result.exit_code, result.stdout) == (0, "ns/x: scaled from 4 to 3; the group of x-rs-1 goes\n")
    assert len(done) == 1


def test_the_namespace_is_that_of_the_context(done: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "config"
    config = {
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "namespace": "team"}}],
        "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
    }
    file.write_text(yaml.safe_dump(config))
    result = run("x-rs-1", "--yes", "--kubeconfig", str(file))
    assert result.stdout.startswith("team/x: scaled from 4 to 3")
    assert done == [("team", "x", DRAIN, str(file), None)]


def test_a_person_says_no(done: list[Any]) -> None:
    result = run("x-rs-1", "-n", "ns", stdin="n\n")
    assert result.exit_code == 1
    assert result.stdout.endswith("nothing was done\n")
    assert not done


def test_nobody_answers(done: list[Any]) -> None:
    """One sentence, and no question that it would stand behind."""
    result = run("x-rs-1", "-n", "ns", stdin="")
    assert isinstance(result.exception, LwskitError)
    told = "nobody answers whether to go on, so it needs --yes (--dry-run says what it would do)"
    assert (str(result.exception), result.output) == (told, "")
    assert not done


def test_there_is_no_standard_input(done: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(LwskitError, match="it needs --yes"):
        drain_group._asked("drain")


@pytest.mark.parametrize(("answer", "goes"), [("y\n", True), (" YES \n", True), ("\n", False), ("what\n", False)])
def test_answers_through_a_pipe(done: list[Any], answer: str, goes: bool) -> None:
    assert run("x-rs-1", "-n", "ns", stdin=answer).exit_code == (0 if goes else 1)
    assert bool(done) is goes


def test_a_dry_run_only_tells(done: list[Any]) -> None:
    result = run("x-rs-1", "-n", "ns", "--dry-run")
    assert (result.exit_code, result.stdout) == (0, f"would m{WHAT}\n")
    assert not done


def test_refused(done: list[Any]) -> None:
    result = run("x-rs-2", "-n", "ns", "--yes")
    assert str(result.exception) == "x-rs-2 would not be the one to go"
    assert not done


def test_nothing_is_marked_in_ordinal_mode() -> None:
    drain = Drain(leader(1), 4, 3, "the highest", None)
    assert draining.told("ns", "x", drain) == "scale ns/x from 4 to 3: the group of x-rs-1 goes (the highest)"


def test_no_cluster(tmp_path: Path) -> None:
    result = run("x", "--kubeconfig", str(tmp_path / "none"))
    assert isinstance(result.exception, ConfigurationError)
