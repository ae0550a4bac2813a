"""`lwskit up`: the embedded cluster with the manager, served for kubectl until Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import click

from lwskit.cli.interrupt import run_until_interrupted
from lwskit.cli.logs import log_options
from lwskit.cli.session import PARTS, embedded_session
from lwskit.embedded.http import serve
from lwskit.runtime.clock import RealClock, real_random

DEFAULT_KUBECONFIG = Path("lwskit.kubeconfig")


@click.command("up")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Port on 127.0.0.1; 0 for any free one.")
@click.option(
    "--kubeconfig-out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_KUBECONFIG,
    show_default=True,
    help="Where the kubeconfig is written; it is removed at the end.",
)
@click.option("--nodes", default=3, show_default=True, type=click.IntRange(1, 1000), help="Nodes of the cluster.")
@click.option(
    "--without", multiple=True, type=click.Choice(PARTS), help="Leave a part out, for a test that plays it. Repeatable."
)
@click.option(
    "--speed", default=1.0, show_default=True, type=click.FloatRange(0, min_open=True), help="Divides kubelet delays."
)
@log_options("error")
def command(port: int, kubeconfig_out: Path, nodes: int, without: tuple[str, ...], speed: float) -> None:
    """Start a Kubernetes cluster with sets of both kinds in this process and serve it for kubectl until Ctrl-C."""
    run_until_interrupted(_up(port, kubeconfig_out.absolute(), nodes, without, speed))


async def _up(port: int, kubeconfig_out: Path, nodes: int, without: tuple[str, ...], speed: float) -> None:
    clock, rng = RealClock(), real_random()
    async with (
        embedded_session(nodes=nodes, without=without, speed=speed) as session,
        serve(session.server, port=port, clock=clock, rng=rng) as served,
    ):
        with served.kubeconfig(kubeconfig_out):
            for line in told(served.url, kubeconfig_out):
                click.echo(line)
            await asyncio.get_running_loop().create_future()


def told(url: str, kubeconfig: Path) -> Iterator[str]:
    """What is said of a cluster that is served at `url`: how kubectl gets there, and what of ours it finds."""
    yield f"cluster at {url}; kubeconfig written to {kubeconfig}"
    yield f"  export KUBECONFIG={kubeconfig}"
    yield "It serves LeaderWorkerSets and DisaggregatedSets:"
    yield "  kubectl get leaderworkerset,statefulset,pods"
    yield "  kubectl get disaggregatedset,disaggregatedsetrolescaler,leaderworkerset"
    yield "Ctrl-C ends it."
