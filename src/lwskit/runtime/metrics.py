"""Prometheus metrics: read from the counts that components keep, when somebody asks (specification: 70 §10)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.election import Elector
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.events import Recorder
from lwskit.runtime.loop_lag import LoopLag
from lwskit.runtime.rest_metrics import RestStats
from lwskit.runtime.stats import Histogram
from lwskit.runtime.tls import ServerCertificates
from lwskit.runtime.webhook_server import WebhookServer, WebhookStats


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


def _sum(one: WebhookStats, other: WebhookStats) -> WebhookStats:
    requests = {code: one.requests.get(code, 0) + other.requests.get(code, 0) for code in one.requests | other.requests}
    return WebhookStats(requests, one.in_flight + other.in_flight, one.latency.plus(other.latency))


class Metrics:
    """What a program is measured by. Add its components, then serve `text` or register `registry` elsewhere.

    Components count in plain numbers; nothing is looked up or formatted before somebody asks. With `rest_details`
    requests to API servers are measured by duration and size too.
    """

    def __init__(self, clock: Clock, *, rest_details: bool = False) -> None:
        self.registry = CollectorRegistry()
        self.rest = RestStats(details=rest_details)
        """Requests to API servers; what a CountingTransport is given."""
        self._clock = clock
        self._controllers: dict[str, Controller] = {}
        self._webhooks: list[WebhookServer] = []
        self._certificates: list[ServerCertificates] = []
        self._electors: list[Elector] = []
        self._lags: list[LoopLag] = []
        self._recorders: list[Recorder] = []
        self.registry.register(self)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def add_controller(self, controller: Controller) -> None:
        """Measure a controller and its queue. Raises ConfigurationError for a second one of that name."""
        if controller.name in self._controllers:
            raise ConfigurationError(f"a controller named {controller.name!r} is measured already; names must differ")
        self._controllers[controller.name] = controller

    def add_webhooks(self, server: WebhookServer) -> None:
        """Measure a webhook server and its certificate files. What several serve at one path is counted together."""
        if server not in self._webhooks:
            self._webhooks.append(server)

    def add_certificates(self, watcher: ServerCertificates) -> None:
        """Measure the certificate files of another server."""
        self._certificates.append(watcher)

    def add_elector(self, elector: Elector) -> None:
        """Tell whether this process leads. Raises ConfigurationError for a second elector of that name."""
        if any(elector.name == other.name for other in self._electors):
            raise ConfigurationError(f"an election named {elector.name!r} is measured already; names must differ")
        self._electors.append(elector)

    def add_loop_lag(self, lag: LoopLag) -> None:
        """Tell how late the event loop wakes."""
        self._lags.append(lag)

    def add_recorder(self, recorder: Recorder) -> None:
        """Tell how many events were dropped."""
        self._recorders.append(recorder)

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
        yield from self._of_requests()
        yield from self._of_the_process()

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
        depth = [((n, n, label), count) for n, q in queues for label, count in q.depth_by_label().items()]
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

    def _of_requests(self) -> Iterator[Metric]:
        prefix = "rest_client"
        counts = sorted(self.rest.requests.items())
        yield _counter(f"{prefix}_requests", "Requests to API servers.", counts, "code", "method", "host")
        if not self.rest.details:
            return
        for name, text, found in (
            ("request_duration_seconds", "From sending a request to the end of its answer.", self.rest.durations),
            ("request_size_bytes", "Bodies of requests.", self.rest.request_sizes),
            ("response_size_bytes", "Bodies of answers.", self.rest.response_sizes),
        ):
            yield _histogram(f"{prefix}_{name}", text, sorted(found.items(), key=lambda item: item[0]), "verb", "host")

    def _of_the_process(self) -> Iterator[Metric]:
        if self._lags:
            lags = [((), lag.seconds) for lag in self._lags]
            yield _histogram("lwskit_event_loop_lag_seconds", "How late the event loop woke.", lags)
            longest = max(lag.longest for lag in self._lags)
            yield _gauge("lwskit_event_loop_lag_max_seconds", "The longest so far.", [((), longest)])
        if self._recorders:
            dropped = sum(recorder.dropped for recorder in self._recorders)
            yield _counter("lwskit_events_dropped", "Events that nobody will see.", [((), dropped)])

    def _by_path(self) -> dict[str, WebhookStats]:
        """What the webhook servers have counted; servers with the same path are counted together."""
        found: dict[str, WebhookStats] = {}
        for server in self._webhooks:
            for path, stats in server.stats.items():
                other = found.get(path)
                found[path] = stats if other is None else _sum(other, stats)
        return found

    def _of_webhooks(self) -> Iterator[Metric]:
        stats = sorted(self._by_path().items())
        prefix = "controller_runtime_webhook"
        latency = [((path,), s.latency) for path, s in stats]
        yield _histogram(f"{prefix}_latency_seconds", "How long admission took.", latency, "webhook")
        requests = [((path, code), count) for path, s in stats for code, count in sorted(s.requests.items())]
        yield _counter(f"{prefix}_requests", "Admission requests.", requests, "webhook", "code")
        flying = [((path,), float(s.in_flight)) for path, s in stats]
        yield _gauge(f"{prefix}_requests_in_flight", "Admission requests under way.", flying, "webhook")
        panics = sum(server.panics for server in self._webhooks)
        yield _counter(f"{prefix}_panics", "Admission handlers that failed.", [((), panics)])
        conversions = "controller_runtime_conversion_webhook_panics"
        yield _counter(conversions, "Conversion handlers that failed; none are served.", [((), 0)])
        watchers = [*self._certificates, *(s.certificates for s in self._webhooks if s.certificates)]
        reads, errors = sum(w.reads for w in watchers), sum(w.errors for w in watchers)
        yield _counter("certwatcher_read_certificate", "Reads of certificate files.", [((), reads)])
        yield _counter("certwatcher_read_certificate_errors", "Certificate files not usable.", [((), errors)])
