"""The metrics checklist as far as it is in scope (specification: 70 §10, §17)."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.clock import Clock, RealClock
from lwskit.runtime.controller.controller import Controller
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed
from lwskit.runtime.metrics import CountingTransport, Metrics, MetricsServer
from lwskit.runtime.request import Request
from lwskit.runtime.tls import TlsFiles
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


async def test_requests_are_counted_by_code_method_and_host(clock: Clock) -> None:
    class Inner:
        async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
            if request.path == "/down":
                raise ConnectionFailed("down")
            return HttpResponse(404, b"")

    metrics = Metrics(clock)
    inner: Any = Inner()
    transport = CountingTransport(inner, metrics, "api:443")
    await transport.send(HttpRequest("GET", "/x"))
    with pytest.raises(ConnectionFailed):
        await transport.send(HttpRequest("GET", "/down"))
    found = lines(metrics)
    assert found['rest_client_requests_total{code="404",host="api:443",method="GET"}'] == 1
    assert found['rest_client_requests_total{code="<error>",host="api:443",method="GET"}'] == 1


async def test_the_server_answers_on_one_path() -> None:
    server = MetricsServer(Metrics(RealClock()), "127.0.0.1", 0)
    task = asyncio.create_task(server.run())
    await server.serving.wait()
    try:
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{server.port}/metrics") as response:
                assert response.status == 200
                assert "leader_election_master_status" in await response.text()
            async with http.get(f"http://127.0.0.1:{server.port}/") as response:
                assert response.status == 404
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
