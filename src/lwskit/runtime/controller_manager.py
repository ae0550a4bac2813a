"""A manager with everything that a controller program usually has, put together from options."""

from __future__ import annotations

import platform
import random

from lwskit.runtime.access import ReviewFilter
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock, RealClock, real_random
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.controller.controller import Controller, Reconcile
from lwskit.runtime.election import Elector, election_namespace, make_identity
from lwskit.runtime.events import Recorder
from lwskit.runtime.fence import fenced
from lwskit.runtime.gc import GcPolicy
from lwskit.runtime.health import Check, HealthServer, ping
from lwskit.runtime.listener import parse_address
from lwskit.runtime.loop_lag import LoopLag
from lwskit.runtime.manager import Manager
from lwskit.runtime.manager_options import OFF, ElectionOptions, ManagerOptions
from lwskit.runtime.metrics import Metrics
from lwskit.runtime.metrics_server import MetricsServer, Serve
from lwskit.runtime.rest_metrics import counted
from lwskit.runtime.runnable import Group, Runnable
from lwskit.runtime.tls import CertificateWatcher, SelfSigned
from lwskit.runtime.webhook import Handler
from lwskit.runtime.webhook_server import WebhookServer


class ControllerManager(Manager):
    """A manager of one cluster: client, cache, events, election, metrics, health and webhooks.

    `client` is for reconcilers: with election on, its writes fail once this process may not lead any more, and
    `unfenced_client` is for what writes on every replica; the requests of both are counted. `cache` has the informers.
    Addresses are taken when the manager is made; raises ConfigurationError for one in use, for certificates that cannot
    be used, and for an election that cannot work. `hostname` names this process on the Lease and in events.
    """

    def __init__(
        self,
        client: Client,
        options: ManagerOptions | None = None,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        cache: Cache | None = None,
        hostname: str = "",
    ) -> None:
        self.options = options = options or ManagerOptions()
        self.clock = clock = clock or RealClock()
        rng = rng or real_random()
        hostname = hostname or platform.node() or "localhost"
        self.metrics = Metrics(clock, rest_details=options.metrics.rest_details)
        client = counted(client, self.metrics.rest, clock)
        self.unfenced_client = client
        self.recorder = Recorder(client, clock, options.name, f"{options.name}-{hostname}", rng)
        elector = options.election and _elector(client, clock, rng, options.election, hostname, self.recorder)
        super().__init__(clock, rng, elector, options.graceful_timeout, controllers=options.controllers)
        self.client = fenced(client, elector) if elector is not None else client
        self.cache = cache or Cache(client, clock, rng)
        self.metrics.add_recorder(self.recorder)
        if elector is not None:
            self.metrics.add_elector(elector)
        self._health = self._make_health()
        try:
            self._metrics_server = self._make_metrics_server(client)
        except BaseException:
            if self._health is not None:
                self._health.close()
            raise
        self._webhooks: WebhookServer | None = None
        for runnable in (self.recorder, self.cache, self._health, self._metrics_server):
            if runnable is not None:
                self.add(runnable)
        if options.tune_gc:
            self.add(GcPolicy(clock, self.cache))
        if options.measure_lag:
            lag = LoopLag(clock)
            self.metrics.add_loop_lag(lag)
            self.add(lag)

    def builder(self, reconcile: Reconcile, name: str = "") -> Builder:
        """Begin a controller; what it is built to is then given to `add`."""
        return Builder(reconcile, clock=self.clock, rng=self.rng, name=name)

    def add(self, runnable: Runnable, group: Group | None = None) -> None:
        """Take in a runnable as Manager does; a controller is measured, too."""
        super().add(runnable, group)
        if isinstance(runnable, Controller) and runnable.wants_unique_name:
            self.metrics.add_controller(runnable)

    @property
    def health_port(self) -> int | None:
        """Where health is served, None if it is not."""
        return None if self._health is None else self._health.port

    @property
    def metrics_port(self) -> int | None:
        """Where metrics are served, None if they are not."""
        return None if self._metrics_server is None else self._metrics_server.port

    @property
    def webhooks(self) -> WebhookServer:
        """The webhook server, which runs from the first time that somebody asks for it, also after the start."""
        if self._webhooks is None:
            options = self.options.webhooks
            self._webhooks = WebhookServer(options.files, self.clock, host=options.host, port=options.port)
            self.metrics.add_webhooks(self._webhooks)
            self.add(self._webhooks)
        return self._webhooks

    def add_webhook(self, path: str, handler: Handler) -> None:
        """Serve an admission handler from the next request on. Raises ConfigurationError for a path that is taken."""
        self.webhooks.register(path, handler)

    def add_health_check(self, name: str, check: Check = ping) -> None:
        """Add a check to the liveness side, if it is served. Raises ConfigurationError once that server runs."""
        if self._health is not None:
            self._health.add_health_check(name, check)

    def add_ready_check(self, name: str, check: Check = ping) -> None:
        """Add a check to the readiness side, if it is served. Raises ConfigurationError once that server runs."""
        if self._health is not None:
            self._health.add_ready_check(name, check)

    def add_metrics_handler(self, path: str, handler: Serve) -> None:
        """Serve something beside the metrics. Raises ConfigurationError once the server runs, and for `/metrics`."""
        if self._metrics_server is not None:
            self._metrics_server.add_handler(path, handler)

    def close(self) -> None:
        """Give the addresses back of a manager that never ran."""
        for server in (self._health, self._metrics_server):
            if server is not None:
                server.close()

    def _make_health(self) -> HealthServer | None:
        options = self.options.health
        if options.address in OFF:
            return None
        host, port = parse_address(options.address)
        return HealthServer(host, port, liveness=options.liveness, readiness=options.readiness)

    def _make_metrics_server(self, client: Client) -> MetricsServer | None:
        options = self.options.metrics
        if options.address in OFF:
            return None
        host, port = parse_address(options.address)
        if not options.secure:
            return MetricsServer(self.metrics, host, port)
        certificates = (
            CertificateWatcher(options.files, self.clock) if options.files else SelfSigned(self.clock, self.rng)
        )
        access = ReviewFilter(client, self.clock, self.rng)
        return MetricsServer(self.metrics, host, port, certificates=certificates, access=access)


def _elector(
    client: Client, clock: Clock, rng: random.Random, options: ElectionOptions, hostname: str, recorder: Recorder
) -> Elector:
    identity = make_identity(hostname, rng)
    return Elector(
        client,
        clock,
        rng,
        election_namespace(options.namespace),
        options.name,
        identity,
        options.lease,
        options.renew,
        options.retry,
        release_on_cancel=options.release,
        recorder=recorder.core(identity),
    )
