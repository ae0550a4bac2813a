"""`lwskit manager`: connect, check, and run until stopped."""

from __future__ import annotations

from urllib.parse import urlsplit

import structlog

from lwskit.manager import version
from lwskit.manager.crds import require
from lwskit.manager.options import Options
from lwskit.manager.program import FIELD_MANAGER, Program
from lwskit.manager.servers import add_servers
from lwskit.runtime.client.config import connect, server_url
from lwskit.runtime.clock import RealClock, real_random
from lwskit.runtime.gc import GcPolicy
from lwskit.runtime.loop_lag import LoopLag
from lwskit.runtime.metrics import Metrics
from lwskit.runtime.rest_metrics import CountingTransport

log = structlog.get_logger("setup")


async def serve(kubeconfig: str | None, context: str | None, options: Options, *, hostname: str) -> None:
    """Run the manager on the cluster that the kubeconfig, or this pod's service account, leads to.

    Raises ConfigurationError for what can be said beforehand (no server, no CRD, no certificate, a port in use), and
    the first error of what runs. When cancelled, everything ends in order.
    """
    clock, rng = RealClock(), real_random()
    client = await connect(
        kubeconfig, context, user_agent=version.user_agent(), field_manager=FIELD_MANAGER, clock=clock
    )
    url = server_url(client)
    metrics = Metrics(clock)
    client.transport = CountingTransport(client.transport, metrics.rest, urlsplit(url).netloc, clock)
    try:
        await require(client)
        program = Program(client, options, clock=clock, rng=rng, hostname=hostname)
        add_servers(program, options, metrics, client, clock, rng)
        lag = LoopLag(clock)
        metrics.add_loop_lag(lag)
        for runnable in (lag, GcPolicy(clock, program.cache)):
            program.manager.add(runnable)
        if not options.webhook.enabled:
            log.warning("webhooks are off: pods get no place in their group unless another instance admits them")
        log.info(
            "starting manager",
            server=url,
            namespace=options.namespace,
            webhooks=options.webhook.enabled,
            leader_election=options.election.enabled,
        )
        await program.run()
    finally:
        await client.close()
