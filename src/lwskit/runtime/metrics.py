"""Prometheus metrics: read from the counts that components keep, when somebody asks (specification: 70 §10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager

from aiohttp import web
from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from lwskit.runtime.client.transport import HttpRequest, HttpResponse, StreamResponse, Transport
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.election import Elector
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed
from lwskit.runtime.listener import Listener
from lwskit.runtime.runnable import Group
from lwskit.runtime.stats import Histogram
from lwskit.runtime.tls import CertificateWatcher
from lwskit.runtime.webhook_server import WebhookServer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def _counter(name: str, text: str, rows: Iterable[tuple[tuple[str, ...], float]], *labels: str) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in rows:
        family.add_metric([*values], value)
    return family


def _gauge(name: str, text: str, rows: Iterable[tuple[tuple[str, ...], float]], *labels: str) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in rows:
        family.add_metric([*values], value)
    return family


def _histogram(name: str, text: str, rows: Iterable[tuple[tuple[str, ...], Histogram]], *labels: str) -> Metric:
    family = HistogramMetricFamily(name, text, labels=labels)
    for values, histogram in rows:
        family.add_metric([*values], histogram.cumulative(), histogram.total)
    return family


class Metrics:
    """What a program is measured by. Add its components, then serve `text` or register `registry` elsewhere."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self.rest_requests: Counter[tuple[str, str, str]] = Counter()
        """Requests to API servers by code, method and host."""
        self._clock = clock
        self._controllers: dict[str, Controller] = {}
        self._webhooks: list[WebhookServer] = []
        self._certificates: list[CertificateWatcher] = []
        self._electors: list[Elector] = []
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def add_controller(self, controller: Controller) -> None:
        """Measure a controller and its queue. Raises ConfigurationError for a second one of that name."""
        if controller.name in self._controllers:
            raise ConfigurationError(f"a controller named {controller.name!r} is measured already; names must differ")
        self._controllers[controller.name] = controller

    def add_webhooks(self, server: WebhookServer) -> None:
        """Measure a webhook server and its certificate files."""
        self._webhooks.append(server)

    def add_certificates(self, watcher: CertificateWatcher) -> None:
        """Measure the certificate files of another server."""
        self._certificates.append(watcher)

    def add_elector(self, elector: Elector) -> None:
        """Tell whether this process leads."""
        self._electors.append(elector)

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)

    def describe(self) -> list[Metric]:
        """Nothing: names are not checked for collisions before the first collection."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The current numbers of all components; called by the registry."""
        yield from self._of_controllers()
        yield from self._of_queues()
        yield from self._of_webhooks()
        yield _gauge(
            "leader_election_master_status",
            "Whether this process leads.",
            [((e.name,), float(e.is_leader)) for e in self._electors],
            "name",
        )
        yield _counter(
            "rest_client_requests",
            "Requests to API servers.",
            [(labels, count) for labels, count in sorted(self.rest_requests.items())],
            *("code", "method", "host"),
        )

    def _of_controllers(self) -> Iterator[Metric]:
        stats = [(name, c.stats, c) for name, c in sorted(self._controllers.items())]
        prefix = "controller_runtime"
        results = [((name, result), count) for name, s, _ in stats for result, count in s.results.items()]
        yield _counter(f"{prefix}_reconcile", "Reconciles by result.", results, "controller", "result")
        for name, text, value in (
            ("reconcile_errors", "Reconciles that failed.", "errors"),
            ("terminal_reconcile_errors", "Reconciles that failed and are not retried.", "terminal"),
            ("reconcile_panics", "Reconciles that failed with an unexpected exception.", "panics"),
            ("reconcile_timeouts", "Reconciles that were cut off.", "timeouts"),
        ):
            rows = [((controller,), getattr(s, value)) for controller, s, _ in stats]
            yield _counter(f"{prefix}_{name}", text, rows, "controller")
        times = [((name,), s.time) for name, s, _ in stats]
        yield _histogram(f"{prefix}_reconcile_time_seconds", "How long reconciles took.", times, "controller")
        most = [((name,), float(c.concurrency)) for name, _, c in stats]
        yield _gauge(f"{prefix}_max_concurrent_reconciles", "Reconciles at once at most.", most, "controller")
        active = [((name,), float(s.active)) for name, s, _ in stats]
        yield _gauge(f"{prefix}_active_workers", "Reconciles under way.", active, "controller")

    def _of_queues(self) -> Iterator[Metric]:
        queues = [(name, c.queue) for name, c in sorted(self._controllers.items())]
        labels = ("name", "controller")
        depth = [((n, n, str(priority)), count) for n, q in queues for priority, count in sorted(q.depth.items())]
        yield _gauge("workqueue_depth", "Requests that are ready.", depth, *labels, "priority")
        yield _counter("workqueue_adds", "Requests that became ready.", [((n, n), q.adds) for n, q in queues], *labels)
        yield _counter("workqueue_retries", "Delayed adds.", [((n, n), q.retries) for n, q in queues], *labels)
        waits = [((n, n), q.queue_duration) for n, q in queues]
        yield _histogram("workqueue_queue_duration_seconds", "From ready to given out.", waits, *labels)
        works = [((n, n), q.work_duration) for n, q in queues]
        yield _histogram("workqueue_work_duration_seconds", "From given out to done.", works, *labels)
        now = self._clock.monotonic()
        ages = [(n, [now - since for since in q.processing_since()]) for n, q in queues]
        unfinished = [((n, n), sum(found)) for n, found in ages]
        yield _gauge("workqueue_unfinished_work_seconds", "Ages of requests in work.", unfinished, *labels)
        longest = [((n, n), max(found, default=0.0)) for n, found in ages]
        yield _gauge("workqueue_longest_running_processor_seconds", "Age of the oldest in work.", longest, *labels)

    def _of_webhooks(self) -> Iterator[Metric]:
        stats = [(path, s) for server in self._webhooks for path, s in sorted(server.stats.items())]
        prefix = "controller_runtime_webhook"
        latency = [((path,), s.latency) for path, s in stats]
        yield _histogram(f"{prefix}_latency_seconds", "How long admission took.", latency, "webhook")
        requests = [((path, code), count) for path, s in stats for code, count in sorted(s.requests.items())]
        yield _counter(f"{prefix}_requests", "Admission requests.", requests, "webhook", "code")
        flying = [((path,), float(s.in_flight)) for path, s in stats]
        yield _gauge(f"{prefix}_requests_in_flight", "Admission requests under way.", flying, "webhook")
        panics = sum(server.panics for server in self._webhooks)
        yield _counter(f"{prefix}_panics", "Admission handlers that failed.", [((), panics)])
        watchers = [*self._certificates, *(s.certificates for s in self._webhooks if s.certificates)]
        reads, errors = sum(w.reads for w in watchers), sum(w.errors for w in watchers)
        yield _counter("certwatcher_read_certificate", "Reads of certificate files.", [((), reads)])
        yield _counter("certwatcher_read_certificate_errors", "Certificate files not usable.", [((), errors)])


class CountingTransport:
    """Passes requests on to another transport and counts them by code, method and host."""

    def __init__(self, inner: Transport, metrics: Metrics, host: str) -> None:
        self._inner = inner
        self._metrics = metrics
        self._host = host

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        """Send and count. Raises ConnectionFailed, which counts as `<error>`."""
        try:
            response = await self._inner.send(request, timeout=timeout)
        except ConnectionFailed:
            self._metrics.rest_requests["<error>", request.method, self._host] += 1
            raise
        self._metrics.rest_requests[str(response.status), request.method, self._host] += 1
        return response

    def stream(
        self, request: HttpRequest, *, idle_timeout: float | None = None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        """Hand out the other transport's stream; streams are not counted."""
        return self._inner.stream(request, idle_timeout=idle_timeout)

    async def close(self) -> None:
        """Close the other transport."""
        await self._inner.close()


class MetricsServer:
    """Serves `/metrics`, over TLS where certificates are given. Runs without leadership.

    The address is taken when the server is made. Raises ConfigurationError when it is in use.
    """

    group = Group.HTTP
    name = "metrics server"

    def __init__(
        self, metrics: Metrics, host: str, port: int, *, certificates: CertificateWatcher | None = None
    ) -> None:
        self._metrics = metrics
        self._listener = Listener(self.name, host, port, self._serve, certificates=certificates)
        self.serving = self._listener.serving
        """Set while requests are answered."""
        self._listener.bind()
        if certificates is not None:
            metrics.add_certificates(certificates)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._listener.port

    async def run(self) -> None:
        """Serve until cancelled."""
        await self._listener.run()

    def close(self) -> None:
        """Give the address back without having run."""
        self._listener.close()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != "/metrics":
            return web.Response(status=404, text="404 page not found\n")
        return web.Response(body=self._metrics.text(), headers={"Content-Type": CONTENT_TYPE})
