"""The metrics checklist as far as it is in scope (specification: 70 §10, §17)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from lwskit.runtime.access import ReviewFilter
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.clock import Clock, RealClock
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.election import Elector
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed
from lwskit.runtime.events import Recorder
from lwskit.runtime.kinds import TOKEN_REVIEW, Kind
from lwskit.runtime.loop_lag import LoopLag
from lwskit.runtime.metrics import Metrics
from lwskit.runtime.metrics_server import MetricsServer
from lwskit.runtime.objects import Obj
from lwskit.runtime.request import Request
from lwskit.runtime.rest_metrics import CountingTransport
from lwskit.runtime.stats import FLUSH, Histogram
from lwskit.runtime.tls import SelfSigned, TlsFiles
from lwskit.runtime.webhook import allowed
from lwskit.runtime.webhook_server import WebhookServer


async def nothing(request: Request) -> None:
    return


def lines(metrics: Metrics) -> dict[str, float]:
    found = {}
    for line in metrics.text().decode().splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


async def test_at_the_start_all_four_results_exist_with_zero(clock: Clock) -> None:
    """70 §17 Health, metrics, events 3: every result is told from the start, with 0."""
    metrics = Metrics(clock)
    controller = Controller("pod", nothing, clock=clock, rng=random.Random(1))
    metrics.add_controller(controller)
    found = lines(metrics)
    for result in ("error", "requeue_after", "requeue", "success"):
        assert found[f'controller_runtime_reconcile_total{{controller="pod",result="{result}"}}'] == 0
    assert found['controller_runtime_max_concurrent_reconciles{controller="pod"}'] == 8
    with pytest.raises(ConfigurationError):
        metrics.add_controller(controller)


async def test_queues_and_reconciles_are_counted(clock: Clock) -> None:
    async def reconcile(request: Request) -> None:
        await clock.sleep(3)

    metrics = Metrics(clock)
    controller = Controller("pod", reconcile, clock=clock, rng=random.Random(1), concurrency=1)
    metrics.add_controller(controller)
    task = asyncio.create_task(controller.run())
    for name in ("a", "b", "c"):
        controller.queue.add(Request("n", name), -100)
    await clock.sleep(4)
    found = lines(metrics)
    label = 'controller="pod"'
    both = 'controller="pod",name="pod"'
    assert found[f'workqueue_depth{{{both},priority="-100"}}'] == 1
    assert found[f"workqueue_adds_total{{{both}}}"] == 3
    assert found[f"workqueue_unfinished_work_seconds{{{both}}}"] == pytest.approx(1)
    assert found[f"workqueue_longest_running_processor_seconds{{{both}}}"] == pytest.approx(1)
    assert found[f"workqueue_work_duration_seconds_sum{{{both}}}"] == pytest.approx(3)
    assert found[f"controller_runtime_active_workers{{{label}}}"] == 1
    assert found[f'controller_runtime_reconcile_time_seconds_bucket{{{label},le="2.5"}}'] == 0
    assert found[f'controller_runtime_reconcile_time_seconds_bucket{{{label},le="3.0"}}'] == 1
    assert found[f'controller_runtime_reconcile_time_seconds_bucket{{{label},le="+Inf"}}'] == 1
    assert found[f'controller_runtime_reconcile_total{{{label},result="success"}}'] == 1
    task.cancel()


async def test_no_created_series_and_the_process_is_measured(clock: Clock, tmp_path: Path) -> None:
    metrics = Metrics(clock)
    metrics.add_controller(Controller("pod", nothing, clock=clock, rng=random.Random(1)))
    server = WebhookServer(TlsFiles.in_folder(tmp_path), clock)
    server.register("/mutate--v1-pod", lambda request: allowed())
    metrics.add_webhooks(server)
    found = lines(metrics)
    assert not [name for name in found if "_created" in name]
    assert found["process_open_fds"] > 0
    for code in ("200", "500"):
        name = f'controller_runtime_webhook_requests_total{{code="{code}",webhook="/mutate--v1-pod"}}'
        assert found[name] == 0
    assert found["controller_runtime_webhook_panics_total"] == 0
    assert found["certwatcher_read_certificate_errors_total"] == 0


class Inner:
    """Answers 404, and nothing under /down."""

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        if request.path == "/down":
            raise ConnectionFailed("down")
        return HttpResponse(404, b"12345")

    @asynccontextmanager
    async def stream(self, request: HttpRequest, *, idle_timeout: float | None = None) -> AsyncIterator[HttpResponse]:
        if request.path == "/down":
            raise ConnectionFailed("down")
        yield HttpResponse(200, b"")


async def test_requests_are_counted_by_code_method_and_host(clock: Clock) -> None:
    metrics = Metrics(clock)
    inner: Any = Inner()
    transport = CountingTransport(inner, metrics.rest, "api:443", clock)
    await transport.send(HttpRequest("PUT", "/x"))
    with pytest.raises(ConnectionFailed, match="broke"):
        async with transport.stream(HttpRequest("GET", "/x")):
            raise ConnectionFailed("broke while it was read")
    with pytest.raises(ConnectionFailed, match="down"):
        await transport.send(HttpRequest("PUT", "/down"))
    with pytest.raises(ConnectionFailed, match="down"):
        async with transport.stream(HttpRequest("GET", "/down")):
            raise AssertionError
    found = lines(metrics)
    counts = {name: value for name, value in found.items() if name.startswith("rest_client_")}
    assert counts == {
        'rest_client_requests_total{code="404",host="api:443",method="PUT"}': 1,
        'rest_client_requests_total{code="200",host="api:443",method="GET"}': 1,
        'rest_client_requests_total{code="<error>",host="api:443",method="PUT"}': 1,
        'rest_client_requests_total{code="<error>",host="api:443",method="GET"}': 1,
    }


async def test_details_of_requests_are_measured_when_they_are_wanted(clock: Clock) -> None:
    metrics = Metrics(clock, rest_details=True)

    class Slow(Inner):
        async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
            await clock.sleep(3)
            return HttpResponse(200, b"12345")

    inner: Any = Slow()
    await CountingTransport(inner, metrics.rest, "api", clock).send(HttpRequest("POST", "/x", body=b"1" * 100))
    found = lines(metrics)
    labels = 'host="api",verb="POST"'
    assert found[f"rest_client_request_duration_seconds_sum{{{labels}}}"] == 3
    assert found['rest_client_request_size_bytes_bucket{host="api",le="64.0",verb="POST"}'] == 0
    assert found[f"rest_client_request_size_bytes_sum{{{labels}}}"] == 100
    assert found[f"rest_client_response_size_bytes_sum{{{labels}}}"] == 5


async def test_the_process_tells_its_lag_its_lost_events_and_whether_it_leads(clock: Clock) -> None:
    metrics = Metrics(clock)
    jumps = iter((0.0, 0.25, 0.25, 2.5))

    class Late:
        now, sleep = clock.now, clock.sleep

        def monotonic(self) -> float:
            return next(jumps, 2.5)

    late: Any = Late()
    lag = LoopLag(late)
    metrics.add_loop_lag(lag)
    client: Any = None
    recorder = Recorder(client, clock, "comp", "comp-host", random.Random(1))
    recorder.dropped = 3
    metrics.add_recorder(recorder)
    metrics.add_elector(Elector(client, clock, random.Random(1), "ns", "lock", "me"))
    task = asyncio.create_task(lag.run())
    await clock.sleep(0.6)
    task.cancel()
    found = lines(metrics)
    assert found["lwskit_event_loop_lag_seconds_count"] == 2
    assert found['lwskit_event_loop_lag_seconds_bucket{le="0.001"}'] == 1
    assert found["lwskit_event_loop_lag_max_seconds"] == 2
    assert found["lwskit_events_dropped_total"] == 3
    assert found['leader_election_master_status{name="lock"}'] == 0
    assert any(name.startswith("python_gc_collections_total") for name in found)


def test_many_observations_are_counted_as_one_by_one_and_at_their_bounds() -> None:
    values = [0.5, 1.0, 1.5, 2.0, 9.0] * 500
    histogram = Histogram((1.0, 2.0))
    for value in values:
        histogram.observe(value)
    assert len(histogram.pending) < FLUSH
    assert histogram.cumulative() == [("1.0", 1000.0), ("2.0", 2000.0), ("+Inf", 2500.0)]
    assert histogram.total == pytest.approx(sum(values))


class Reviews:
    """Knows the tokens `reader`, who may do everything, and `guest`, who may do nothing."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    async def create(self, kind: Kind, obj: Obj) -> Obj:
        if kind == TOKEN_REVIEW:
            user = {"reader": "prometheus", "guest": "nobody"}.get(obj["spec"]["token"])
            return {"status": {"authenticated": bool(user), "user": {"username": user}}}
        return {"status": {"allowed": obj["spec"]["user"] == "prometheus"}}


@asynccontextmanager
async def served(server: MetricsServer) -> AsyncIterator[aiohttp.ClientSession]:
    task = asyncio.create_task(server.run())
    await server.serving.wait()
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as http:
            yield http
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def fetch(http: aiohttp.ClientSession, url: str, token: str = "") -> tuple[int, str]:
    async with http.get(url, headers={"authorization": f"Bearer {token}"} if token else {}) as response:
        return response.status, await response.text()


async def test_the_server_answers_on_one_path_and_on_those_added_before_the_start() -> None:
    async def hello(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="hello")

    server = MetricsServer(Metrics(RealClock()), "127.0.0.1", 0)
    server.add_handler("/debug", hello)
    with pytest.raises(ConfigurationError, match=r"^/metrics is served by the metrics server already"):
        server.add_handler("/metrics", hello)
    async with served(server) as http:
        url = f"http://127.0.0.1:{server.port}"
        status, text = await fetch(http, f"{url}/metrics")
        assert status == 200
        assert "leader_election_master_status" in text
        assert await fetch(http, f"{url}/debug") == (200, "hello")
        assert (await fetch(http, url))[0] == 404
        refusal = "^unable to add new metrics handler because metrics endpoint has already been created$"
        with pytest.raises(ConfigurationError, match=refusal):
            server.add_handler("/late", hello)


async def test_metrics_over_tls_are_for_those_who_may_read_them() -> None:
    """70 §17 Health, metrics, events 4: without a token 401, without permission 403, with both the metrics."""
    clock, rng = RealClock(), random.Random(1)
    client: Any = Reviews(clock)
    access = ReviewFilter(client, clock, rng)
    metrics = Metrics(clock)
    server = MetricsServer(metrics, "127.0.0.1", 0, certificates=SelfSigned(clock, rng), access=access)

    async def hello(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="hello")

    server.add_handler("/debug", hello)
    async with served(server) as http:
        for path in ("metrics", "debug"):
            url = f"https://127.0.0.1:{server.port}/{path}"
            assert await fetch(http, url) == (401, "Unauthorized\n")
            assert await fetch(http, url, "guest") == (403, "Authorization denied for user nobody\n")
            assert (await fetch(http, url, "reader"))[0] == 200


async def test_a_certificate_of_ones_own_is_renewed_in_time(clock: Clock) -> None:
    own = SelfSigned(clock, random.Random(1), days=1)
    renewals: list[float] = []
    own.renew = lambda: renewals.append(clock.monotonic())  # type: ignore[method-assign]
    task = asyncio.create_task(own.run())
    await clock.sleep(86000)
    task.cancel()
    assert renewals == [57600]


async def test_servers_with_one_path_are_counted_together_and_one_name_is_one_election(
    clock: Clock, tmp_path: Path
) -> None:
    metrics = Metrics(clock)
    servers = [WebhookServer(TlsFiles.in_folder(tmp_path), clock) for _ in range(2)]
    for server in servers:
        metrics.add_webhooks(server)
        metrics.add_webhooks(server)
        server.register("/x", lambda request: {})
        server.stats["/x"].requests["200"] += 2
        server.stats["/x"].in_flight += 1
        server.stats["/x"].latency.observe(3)
    servers[1].stats["/x"].requests["400"] = 1
    servers[1].register("/y", lambda request: {})
    text = metrics.text().decode()
    series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series))
    found = lines(metrics)
    prefix = "controller_runtime_webhook"
    assert found[prefix + '_requests_total{code="200",webhook="/x"}'] == 4
    assert found[prefix + '_requests_total{code="400",webhook="/x"}'] == 1
    assert found[prefix + '_requests_in_flight{webhook="/x"}'] == 2
    assert found[prefix + '_latency_seconds_count{webhook="/x"}'] == 2
    assert found[prefix + '_latency_seconds_sum{webhook="/x"}'] == 6
    assert found[prefix + '_requests_total{code="200",webhook="/y"}'] == 0

    client: Any = None
    electors = [Elector(client, clock, random.Random(1), "n", name, "me") for name in ("a", "b", "a")]
    metrics.add_elector(electors[0])
    metrics.add_elector(electors[1])
    with pytest.raises(ConfigurationError, match=r"^an election named 'a' is measured already; names must differ$"):
        metrics.add_elector(electors[2])
