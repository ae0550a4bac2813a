"""The flags of `lwskit manager`, and what they make of the file's options (specification: 60 §2, checklist 1–5, 22)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lwskit.cli import manager as command
from lwskit.cli.main import cli
from lwskit.manager import serve as module
from lwskit.manager import version
from lwskit.manager.options import Options


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the manager would have been run with: kubeconfig, context, options."""
    calls: list[tuple[Any, ...]] = []

    async def serve(kubeconfig: str | None, context: str | None, options: Options, *, hostname: str) -> None:
        calls.append((kubeconfig, context, options))

    monkeypatch.setattr(module, "serve", serve)
    monkeypatch.delenv("ENABLE_WEBHOOKS", raising=False)
    return calls


def run(*arguments: str) -> None:
    result = CliRunner().invoke(cli, ["manager", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def options(served: list[tuple[Any, ...]], *arguments: str) -> Options:
    run(*arguments)
    return served[-1][2]


def test_without_flags_all_defaults_hold(served: list[tuple[Any, ...]]) -> None:
    run()
    assert served == [(None, None, Options())]


def test_the_cluster_is_chosen(served: list[tuple[Any, ...]]) -> None:
    run("--kubeconfig", "/k", "--context", "c")
    assert served[0][:2] == ("/k", "c")


@pytest.mark.parametrize("dash", ["-", "--"])
def test_flags_have_one_dash_or_two(served: list[tuple[Any, ...]], tmp_path: Path, dash: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: config.lws.x-k8s.io/v1\nkind: Configuration\n"
        "leaderElection: {leaseDuration: 5m, renewDeadline: 5m, retryPeriod: 5m, resourceName: file}\n"
    )
    made = options(
        served,
        f"{dash}config={file}",
        f"{dash}leader-elect=false",
        f"{dash}leader-elect-lease-duration=1m30s",
        f"{dash}metrics-bind-address=:9999",
        f"{dash}health-probe-bind-address",
        "0",
        f"{dash}zap-log-level=2",
        f"{dash}zap-devel",
        f"{dash}kube-api-qps=10",
    )
    assert not made.election.enabled
    assert (made.election.lease, made.election.renew, made.election.retry) == (90, 300, 300)
    assert made.election.name == "file"
    assert (made.metrics_address, made.health_address) == (":9999", None)


def test_a_flag_alone_means_true(served: list[tuple[Any, ...]]) -> None:
    assert options(served, "--leader-elect").election.enabled
    assert not options(served, "--leader-elect=False").election.enabled


def test_every_flag_of_the_election(served: list[tuple[Any, ...]]) -> None:
    made = options(
        served,
        "--leader-elect-lease-duration=9s",
        "--leader-elect-renew-deadline=6s",
        "--leader-elect-retry-period=1500ms",
        "--leader-elect-resource-name=mine",
        "--leader-elect-resource-lock=leases",
    )
    assert (made.election.lease, made.election.renew, made.election.retry, made.election.name) == (9, 6, 1.5, "mine")


@pytest.mark.parametrize(("value", "enabled"), [("false", False), ("False", True), ("0", True), ("", True)])
def test_webhooks_are_off_only_for_that_very_word(
    served: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, value: str, enabled: bool
) -> None:
    monkeypatch.setenv("ENABLE_WEBHOOKS", value)
    assert options(served).webhook.enabled is enabled


def test_the_version_is_printed_before_anything_is_read(served: list[tuple[Any, ...]]) -> None:
    result = CliRunner().invoke(cli, ["manager", "--version", "--config", "/none"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["Version", "Build Date", "Git Commit"]
    assert lines[0].startswith("Version: v")
    assert served == []


@pytest.mark.parametrize(
    ("commit", "shown"), [("3f2a91cde", "3f2a91c"), ("3f2a91c", "3f2a91c"), ("3f2", "3f2"), ("", "unknown")]
)
def test_the_user_agent_has_the_beginning_of_the_commit(
    monkeypatch: pytest.MonkeyPatch, commit: str, shown: str
) -> None:
    monkeypatch.setattr(version, "COMMIT", commit)
    name, platform, last = version.user_agent().split(" ")
    assert name.startswith("lwskit/v")
    assert platform.startswith("(")
    assert "/" in platform
    assert last == shown


def test_an_orderly_end_has_the_time_that_the_manager_gives_it(
    served: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    def run_until_interrupted(work: Any, *, grace: float) -> None:
        work.close()
        given.append(grace)

    monkeypatch.setattr(command, "run_until_interrupted", run_until_interrupted)
    run()
    assert given[0] > Options().graceful_timeout
