"""`lwskit run`: the manager from this machine against any cluster, for development."""

from __future__ import annotations

import asyncio
import platform
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import click

from lwskit.cli.cluster_options import cluster_options
from lwskit.cli.interrupt import GRACE, run_until_interrupted
from lwskit.cli.logs import log_options
from lwskit.manager import development, leases, version
from lwskit.manager.options import DEFAULT_NAMESPACE, LEASE_NAME, ElectionOptions, Options
from lwskit.manager.program import FIELD_MANAGER, Program
from lwskit.manager.servers import local_metrics, webhook_server
from lwskit.runtime.certs import make_ca, make_server_cert
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import connect, server_url
from lwskit.runtime.clock import Clock, RealClock, real_random
from lwskit.runtime.gc import GcPolicy
from lwskit.runtime.metrics import Metrics
from lwskit.runtime.rest_metrics import CountingTransport
from lwskit.runtime.tls import TlsFiles

LOOPBACK = "127.0.0.1"


@click.command("run")
@cluster_options
@click.option("--namespace", default=DEFAULT_NAMESPACE, show_default=True, help="Namespace of the Lease.")
@click.option("--webhook-port", default=0, type=click.IntRange(0, 65535), help="Port of the webhooks; 0 for any.")
@click.option(
    "--webhook-url", metavar="URL", help="https://HOST:PORT by which the API server reaches this machine's webhooks."
)
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), help="Serve metrics on 127.0.0.1 at this port; 0 for any."
)
@click.option("--cleanup", is_flag=True, help="Only remove what an earlier run left behind, and exit.")
@log_options()
def command(
    kubeconfig: str | None,
    context_name: str | None,
    namespace: str,
    webhook_port: int,
    webhook_url: str | None,
    metrics_port: int | None,
    cleanup: bool,
) -> None:
    """Run the manager here, against the cluster of a kubeconfig: CRDs and webhooks are brought, webhooks taken away.

    The webhooks are registered with a certificate made for this run; Ctrl-C withdraws them. CRDs stay.
    """
    if cleanup:
        run_until_interrupted(_cleanup(kubeconfig, context_name, namespace))
        return
    host, port = development.check_url(webhook_url) if webhook_url else (LOOPBACK, webhook_port)
    options = Options(
        namespace=namespace,
        election=ElectionOptions(release=True),
        graceful_timeout=development.GRACE_SECONDS,
        metrics_address=None,
    )
    if webhook_port and webhook_url:
        port = webhook_port
    work = _run(kubeconfig, context_name, options, host, port, webhook_url, metrics_port)
    # An end in good order takes a fraction of it; where the API server is slow, the webhooks must not stay.
    run_until_interrupted(work, grace=development.GRACE_SECONDS + GRACE)


async def _connect(kubeconfig: str | None, context: str | None, clock: Clock) -> Client:
    return await connect(kubeconfig, context, user_agent=version.user_agent(), field_manager=FIELD_MANAGER, clock=clock)


async def _cleanup(kubeconfig: str | None, context: str | None, namespace: str) -> None:
    clock = RealClock()
    client = await _connect(kubeconfig, context, clock)
    try:
        await leases.retire(client, namespace, LEASE_NAME, clock, _say_waiting)
        removed = await development.cleanup(client)
        for name in removed:
            click.echo(f"removed {name}")
        if not removed:
            click.echo("nothing was left behind")
    finally:
        await client.close()


def _say_waiting(holder: str, seconds: float) -> None:
    click.echo(f"{holder} holds the Lease; waiting up to {seconds:g} s to see whether it still renews it")


async def _run(
    kubeconfig: str | None,
    context: str | None,
    options: Options,
    host: str,
    port: int,
    url: str | None,
    metrics_port: int | None,
) -> None:
    clock, rng = RealClock(), real_random()
    client = await _connect(kubeconfig, context, clock)
    where, metrics = server_url(client), Metrics(clock)
    client.transport = CountingTransport(client.transport, metrics.rest, urlsplit(where).netloc, clock)
    try:
        with tempfile.TemporaryDirectory(prefix="lwskit-run-") as folder:
            await development.prepare(client, options.election, options.namespace, clock, _say_waiting)
            ca = make_ca(clock.now(), rng)
            names, addresses = ([], [host]) if _is_address(host) else ([host], [])
            certificate = make_server_cert(ca, names, addresses, clock.now(), rng)
            files = TlsFiles.in_folder(Path(folder))
            files.key.touch(mode=0o600)
            files.cert.write_bytes(certificate.cert_pem)
            files.key.write_bytes(certificate.key_pem)
            program = Program(client, options, clock=clock, rng=rng, hostname=platform.node() or "localhost")
            server = webhook_server(program, files, clock, LOOPBACK if url is None else "", port)
            if metrics_port is not None:
                metrics.add_webhooks(server)
                served = local_metrics(program, metrics, metrics_port)
                click.echo(f"metrics at http://{LOOPBACK}:{served.port}/metrics")

            def endpoint() -> development.Endpoint:
                return development.Endpoint(url or f"https://{host}:{server.port}", ca.cert_pem)

            program.manager.add(development.Registration(client, endpoint, server.serving, clock))
            program.manager.add(GcPolicy(clock, program.cache))
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(program.run(), name="manager")
                await program.manager.elected.wait()
                click.echo(f"serving LeaderWorkerSets and DisaggregatedSets on {where}")
                click.echo(f"webhooks at {endpoint().url}; Ctrl-C ends it")
                await asyncio.wait({running})
    finally:
        await client.close()


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()
