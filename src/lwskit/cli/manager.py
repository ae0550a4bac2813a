"""`lwskit manager`: the program that an installation runs (specification: 60 §1–4)."""

from __future__ import annotations

import os
import platform
from typing import Any

import click

from lwskit.api.configuration import parse_duration
from lwskit.cli.cluster_options import cluster_options
from lwskit.cli.interrupt import GRACE, run_until_interrupted
from lwskit.manager import options as manager_options
from lwskit.manager.options import Flags

DEPRECATED = "Deprecated: write it in the file that --config names. "


class GoFlags(click.Command):
    """A command that also takes flags with one dash (`-config=FILE`), as installed Deployments may write them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give long flags their second dash, then parse as usual."""
        return super().parse_args(ctx, [_two_dashes(a) for a in args])


def _two_dashes(argument: str) -> str:
    long = len(argument) > 2 and argument[0] == "-" and argument[1].isalpha() and argument[2] not in "=0123456789"
    return f"-{argument}" if long else argument


def _duration(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Read a duration such as 15s or 1m30s, or say which forms are allowed."""
    if value is None:
        return None
    try:
        return parse_duration(value)
    except ValueError as e:
        raise click.BadParameter(str(e)) from e


@click.command("manager", cls=GoFlags)
@click.option("--config", "config_file", metavar="FILE", help="Configuration file; without it all defaults hold.")
@cluster_options
@click.option("--metrics-bind-address", metavar="ADDRESS", help=DEPRECATED + "Where metrics are served [:8443].")
@click.option("--health-probe-bind-address", metavar="ADDRESS", help=DEPRECATED + "Where health is served [:8081].")
@click.option("--leader-elect", type=bool, is_flag=False, flag_value="true", help="Reconcile only as leader [true].")
@click.option(
    "--leader-elect-lease-duration", callback=_duration, metavar="DURATION", help=DEPRECATED + "Lease duration [15s]."
)
@click.option(
    "--leader-elect-renew-deadline", callback=_duration, metavar="DURATION", help=DEPRECATED + "Renew deadline [10s]."
)
@click.option(
    "--leader-elect-retry-period", callback=_duration, metavar="DURATION", help=DEPRECATED + "Retry period [2s]."
)
@click.option("--leader-elect-resource-lock", type=click.Choice(["leases"]), help=DEPRECATED + "Only leases.")
@click.option("--leader-elect-resource-name", metavar="NAME", help=DEPRECATED + "Name of the Lease.")
@click.option("--kube-api-qps", type=float, hidden=True)
@click.option("--kube-api-burst", type=int, hidden=True)
@click.option("--log-format", type=click.Choice(["console", "json"]), default="console", show_default=True)
@click.option("--zap-log-level", "--log-level", "log_level", default="info", show_default=True, metavar="LEVEL")
@click.option("--zap-encoder", type=click.Choice(["console", "json"]), hidden=True)
@click.option("--zap-devel", type=bool, is_flag=False, flag_value="true", hidden=True)
@click.option("--zap-stacktrace-level", hidden=True)
@click.option("--zap-time-encoding", hidden=True)
@click.option("--version", "show_version", is_flag=True, help="Print version, build date and commit, and exit.")
def command(
    config_file: str | None,
    kubeconfig: str | None,
    context_name: str | None,
    metrics_bind_address: str | None,
    health_probe_bind_address: str | None,
    leader_elect: bool | None,
    leader_elect_lease_duration: Any,
    leader_elect_renew_deadline: Any,
    leader_elect_retry_period: Any,
    leader_elect_resource_lock: str | None,
    leader_elect_resource_name: str | None,
    kube_api_qps: float | None,
    kube_api_burst: int | None,
    log_format: str,
    log_level: str,
    zap_encoder: str | None,
    zap_devel: bool | None,
    zap_stacktrace_level: str | None,
    zap_time_encoding: str | None,
    show_version: bool,
) -> None:
    """Serve LeaderWorkerSets on a cluster: webhooks with certificates from files, and the controllers once elected.

    Flags given here win over the file that --config names. ENABLE_WEBHOOKS=false in the environment switches the
    webhooks off.
    """
    from lwskit.manager import version

    if show_version:
        click.echo(version.text())
        return
    from lwskit.manager.serve import serve
    from lwskit.runtime.logging import configure

    configure(zap_encoder or log_format, log_level)
    flags = Flags(
        metrics_bind_address=metrics_bind_address,
        health_probe_bind_address=health_probe_bind_address,
        leader_elect=leader_elect,
        lease_duration=leader_elect_lease_duration,
        renew_deadline=leader_elect_renew_deadline,
        retry_period=leader_elect_retry_period,
        resource_name=leader_elect_resource_name,
    )
    options = manager_options.resolve(
        manager_options.load(config_file),
        flags,
        namespace=manager_options.operator_namespace(),
        webhooks=os.environ.get("ENABLE_WEBHOOKS") != "false",
    )
    work = serve(kubeconfig, context_name, options, hostname=platform.node())
    run_until_interrupted(work, grace=options.graceful_timeout + GRACE)
