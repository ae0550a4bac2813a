"""How errors reach a person: one sentence, the exit code, and a traceback only when asked for."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from lwskit.cli import main as module
from lwskit.cli.interrupt import run_until_interrupted
from lwskit.cli.main import LazyGroup, cli
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed, Invalid, LwskitError

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls the program with a command `try`, which raises or returns what it is given; exit code and error output."""

    def call(outcome: Any = None, *arguments: str) -> tuple[int, str]:
        @click.command("try")
        @click.option("--count", type=int)
        def command(count: int | None) -> Any:
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setattr(LazyGroup, "COMMANDS", ("try",))
        monkeypatch.setattr(LazyGroup, "get_command", lambda self, ctx, name: command if name == "try" else None)
        monkeypatch.setattr(sys, "argv", ["lwskit", *(arguments or ("try",))])
        with pytest.raises(SystemExit) as caught:
            module.main()
        code = caught.value.code
        assert isinstance(code, int)
        return code, capsys.readouterr().err

    return call


@pytest.mark.parametrize("outcome", [None, "text", True])
def test_a_command_that_ends_well_ends_with_zero(run: Run, outcome: Any) -> None:
    assert run(outcome) == (0, "")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ConfigurationError("cannot read x: No such file"), "cannot read x: No such file"),
        (ConnectionFailed("https://h:1 refused the connection"), "https://h:1 refused the connection"),
        (Invalid('LeaderWorkerSet "x" is invalid'), 'LeaderWorkerSet "x" is invalid'),
        (FileNotFoundError(2, "No such file or directory", "/x"), "No such file or directory /x"),
        (OSError(98, "Address already in use"), "Address already in use"),
        (
            ExceptionGroup("tasks", [ExceptionGroup("inner", [ConfigurationError("the port is taken")])]),
            "the port is taken",
        ),
        (
            ExceptionGroup("tasks", [LwskitError("first"), LwskitError("second")]),
            "first",
        ),
        (KeyError("x"), "unexpected KeyError('x'); run again with --debug for the traceback"),
        (
            ExceptionGroup("tasks", [KeyError("x"), LwskitError("first")]),
            "unexpected KeyError('x'); run again with --debug for the traceback",
        ),
        (RecursionError("deep"), "unexpected RecursionError('deep'); run again with --debug for the traceback"),
    ],
)
def test_an_error_is_one_sentence_and_one(run: Run, error: BaseException, sentence: str) -> None:
    assert run(error) == (1, f"Error: {sentence}\n")


def test_the_traceback_is_shown_when_asked_for(run: Run) -> None:
    for error in (ConfigurationError("no"), KeyError("x"), ExceptionGroup("g", [ConfigurationError("no")])):
        code, text = run(error, "--debug", "try")
        assert code == 1
        assert "Traceback (most recent call last)" in text
        assert "Error: " in text.splitlines()[-1]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_ends_with_130_and_says_nothing(run: Run, error: BaseException) -> None:
    code, text = run(error)
    assert (code, text.strip()) == (130, "")


def test_an_interrupt_among_the_errors_of_tasks(run: Run) -> None:
    code, text = run(BaseExceptionGroup("g", [KeyboardInterrupt()]))
    assert (code, text) == (130, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("dance",), "No such command 'dance'"),
        (("--loud",), "No such option"),
        (("try", "--count", "many"), "'many' is not a valid integer"),
        (("try", "more"), "unexpected extra argument"),
    ],
)
def test_wrong_usage_is_two(run: Run, arguments: tuple[str, ...], words: str) -> None:
    code, text = run(None, *arguments)
    assert code == 2
    assert words in text
    assert "Traceback" not in text


def test_help_and_version_are_no_errors(run: Run) -> None:
    for flag in ("--help", "--version"):
        code, text = run(None, flag)
        assert (code, text) == (0, "")


def test_a_command_can_choose_its_code(run: Run) -> None:
    assert run(click.exceptions.Exit(3))[0] == 3
    code, text = run(click.UsageError("not so"))
    assert (code, text.splitlines()[-1]) == (2, "Error: not so")


# The real commands ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LazyGroup.COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) > 5


def test_help_lists_all_commands() -> None:
    output = CliRunner().invoke(cli, ["--help"]).output
    assert all(f"  {name} " in output for name in LazyGroup.COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "--nodes", "0"], "0 is not in the range"),
        (["up", "--port", "70000"], "70000 is not in the range"),
        (["up", "--without", "love"], "'love' is not one of"),
        (["up", "--speed", "0"], "0 is not in the range"),
        (["manager", "--leader-elect=perhaps"], "'perhaps' is not a valid boolean"),
        (["manager", "--leader-elect-retry-period", "soon"], "'soon' is not a duration; write a number with a unit"),
        (["manager", "--leader-elect-resource-lock=endpoints"], "'endpoints' is not 'leases'"),
    ],
)
def test_values_that_do_not_fit_are_wrong_usage(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert words in result.output


def real(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["lwskit", *arguments])
    with pytest.raises(SystemExit) as caught:
        module.main()
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("demo", "-f", "/none.yaml"), "Error: cannot read /none.yaml: No such file or directory\n"),
        (("manager", "--config", "/none"), "Error: cannot read the configuration file /none: No such file"),
        (("manager", "-config=/none"), "Error: cannot read the configuration file /none: No such file"),
        (("manager", "--zap-log-level", "loud"), "Error: 'loud' is not a log level; use one of debug"),
        (("up", "--log-level", "loud"), "Error: 'loud' is not a log level; use one of debug"),
        (("run", "--webhook-url", "http://x"), "Error: --webhook-url http://x: write https://HOST:PORT"),
    ],
)
def test_bad_input_of_the_real_commands(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    code, text = real(monkeypatch, capsys, *arguments)
    assert code == 1
    assert text.startswith(sentence)
    assert text.count("\n") == 1


def test_a_manifest_without_a_set_is_no_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "map.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    code, text = real(monkeypatch, capsys, "demo", "-f", str(file))
    assert (code, text) == (1, f"Error: {file} holds no LeaderWorkerSet; the demo needs one to show\n")


# Interruption ---------------------------------------------------------------------------------------------------------


def test_work_that_ends_by_itself_was_not_interrupted() -> None:
    async def work() -> None:
        return None

    assert run_until_interrupted(work()) is False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_work_and_lets_it_clean_up(number: int) -> None:
    cleaned: list[bool] = []

    async def work() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, number)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.to_thread(cleaned.append, False)
            cleaned.append(True)

    assert run_until_interrupted(work()) is True
    assert cleaned == [False, True]


def test_an_error_while_cleaning_up_is_not_lost() -> None:
    async def work() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            raise ConfigurationError("could not clean up")

    with pytest.raises(ConfigurationError):
        run_until_interrupted(work())


def test_a_cancellation_from_elsewhere_is_not_an_interruption() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        run_until_interrupted(work())
