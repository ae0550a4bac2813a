"""A manager put together from options: real sockets, and an embedded API server behind them."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.store import Store
from lwskit.embedded.transport import InProcessTransport
from lwskit.runtime.certs import make_self_signed
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import server_url
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.client.wrapping import WrappedClient
from lwskit.runtime.clock import RealClock
from lwskit.runtime.controller.options import ControllerDefaults
from lwskit.runtime.controller_manager import ControllerManager
from lwskit.runtime.election import LeaderElectionLost
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import CONFIG_MAP, CORE_EVENT, LEASE
from lwskit.runtime.manager_options import (
    ElectionOptions,
    HealthOptions,
    ManagerOptions,
    MetricsOptions,
    WebhookOptions,
)
from lwskit.runtime.request import Request
from lwskit.runtime.tls import TlsFiles
from lwskit.runtime.webhook import allowed

CLOCK = RealClock()
ANY = "127.0.0.1:0"
REVIEW = orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u1"}})


@pytest.fixture
def client() -> Client:
    server = ApiServer(Store(), CLOCK, random.Random(1))
    return Client(InProcessTransport(server), field_manager="test", clock=CLOCK)


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    made = make_self_signed(["localhost"], ["127.0.0.1"], CLOCK.now(), random.Random(1))
    found = TlsFiles.in_folder(tmp_path)
    found.cert.write_bytes(made.cert_pem)
    found.key.write_bytes(made.key_pem)
    return found


def options(files: TlsFiles | None = None, **more: Any) -> ManagerOptions:
    if files is not None:
        more["webhooks"] = WebhookOptions(host="127.0.0.1", port=0, files=files)
    return ManagerOptions(health=HealthOptions(address=ANY), graceful_timeout=1, **more)


@asynccontextmanager
async def running(manager: ControllerManager, *ready: asyncio.Event) -> AsyncIterator[aiohttp.ClientSession]:
    task = asyncio.create_task(manager.run(), name="manager under test")
    try:
        for event in ready or (manager.elected,):
            waiting = asyncio.create_task(event.wait())
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.cancel():
                waiting.exception()
            if task.done():
                task.result()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as http:
            yield http
    finally:
        manager.stop()
        await asyncio.wait({task})


async def status(http: aiohttp.ClientSession, url: str) -> int:
    async with http.get(url) as response:
        return response.status


async def test_endpoints_answer_while_caches_never_sync(client: Client, files: TlsFiles) -> None:
    """70 §17 Manager 3: health and webhooks answer although no cache ever fills."""
    manager = ControllerManager(client, options(files), clock=CLOCK, rng=random.Random(1), hostname="here")
    manager.cache.wait_synced = asyncio.Event().wait  # type: ignore[method-assign]
    manager.add_health_check("alive")
    manager.add_ready_check("webhooks", manager.webhooks.check_started)
    manager.add_webhook("/validate-x", lambda request: allowed("fine"))
    assert manager._health is not None
    async with running(manager, manager._health.serving, manager.webhooks.serving) as http:
        for path in ("healthz", "readyz"):
            assert await status(http, f"http://127.0.0.1:{manager.health_port}/{path}") == 200
        url = f"https://127.0.0.1:{manager.webhooks.port}/validate-x"
        async with http.post(url, data=REVIEW, headers={"content-type": "application/json"}) as response:
            assert (await response.json())["response"]["status"]["message"] == "fine"
        assert not manager.elected.is_set()


async def test_after_the_start_checks_and_handlers_are_refused_and_webhooks_are_not(
    client: Client, files: TlsFiles
) -> None:
    """70 §17 Manager 6: a running manager takes no more checks."""
    given = options(files, metrics=MetricsOptions(address=ANY))
    manager = ControllerManager(client, given, clock=CLOCK, rng=random.Random(1), hostname="here")

    async def hello(request: Any) -> web.StreamResponse:
        return web.Response(text="hello")

    manager.add_metrics_handler("/hello", hello)
    async with running(manager) as http:
        refusal = "^unable to add new checker because healthz endpoint has already been created$"
        for add in (manager.add_health_check, manager.add_ready_check):
            with pytest.raises(ConfigurationError, match=refusal):
                add("late")
        refusal = "^unable to add new metrics handler because metrics endpoint has already been created$"
        with pytest.raises(ConfigurationError, match=refusal):
            manager.add_metrics_handler("/late", hello)
        assert await status(http, f"http://127.0.0.1:{manager.metrics_port}/hello") == 200
        # The webhook server itself begins only now.
        manager.add_webhook("/validate-x", lambda request: allowed())
        await manager.webhooks.serving.wait()
        manager.add_webhook("/validate-y", lambda request: allowed())
        for path in ("x", "y"):
            url = f"https://127.0.0.1:{manager.webhooks.port}/validate-{path}"
            async with http.post(url, data=REVIEW, headers={"content-type": "application/json"}) as response:
                assert (await response.json())["response"]["allowed"]
        async with http.get(f"http://127.0.0.1:{manager.metrics_port}/metrics") as response:
            assert 'webhook_requests_total{code="200",webhook="/validate-y"} 1.0' in await response.text()


async def test_an_elected_manager_runs_its_controllers_and_tells_who_leads(client: Client) -> None:
    done = asyncio.Event()
    election = ElectionOptions(name="lock", namespace="default", release=True)
    given = options(election=election, metrics=MetricsOptions(address=ANY, secure=True), measure_lag=True, tune_gc=True)
    manager = ControllerManager(client, given, clock=CLOCK, rng=random.Random(1), hostname="here")

    async def reconcile(request: Request) -> None:
        await manager.client.patch(CONFIG_MAP, request.name, {"data": {"seen": "yes"}}, request.namespace)
        done.set()

    maps = manager.cache.informer(CONFIG_MAP)
    manager.add(manager.builder(reconcile).for_(maps).build())
    await client.create(CONFIG_MAP, {"metadata": {"name": "m", "namespace": "default"}})
    with pytest.raises(LeaderElectionLost, match="was not sent"):
        await manager.client.patch(CONFIG_MAP, "m", {}, "default")
    async with running(manager) as http:
        await asyncio.wait_for(done.wait(), 30)
        assert await status(http, f"https://127.0.0.1:{manager.metrics_port}/metrics") == 401
        lease = await client.get(LEASE, "lock", "default")
        assert lease["spec"]["holderIdentity"].startswith("here_")
        text = manager.metrics.text().decode()
        assert 'leader_election_master_status{name="lock"} 1.0' in text
        assert 'controller_runtime_reconcile_total{controller="configmap",result="success"}' in text
    events = (await client.list(CORE_EVENT, "default"))["items"]
    assert "became leader" in events[0]["message"]
    assert (await client.get(LEASE, "lock", "default"))["spec"]["holderIdentity"] == ""


async def test_defaults_reach_the_controllers_of_a_kind(client: Client) -> None:
    async def reconcile(request: Request) -> None:
        return

    defaults = ControllerDefaults(concurrency=2, concurrency_by_kind={"ConfigMap": 5, "Lease.coordination.k8s.io": 6})
    manager = ControllerManager(client, ManagerOptions(controllers=defaults), clock=CLOCK, rng=random.Random(1))
    found = []
    for kind in (CONFIG_MAP, LEASE, CORE_EVENT):
        controller = manager.builder(reconcile).for_(manager.cache.informer(kind)).build()
        manager.add(controller)
        found.append(controller.concurrency)
    assert found == [5, 6, 2]
    assert (manager.health_port, manager.metrics_port) == (None, None)


def test_a_busy_address_fails_the_construction_and_leaves_no_other_taken(client: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy, socket.create_server(("127.0.0.1", 0)) as free:
        taken, port = busy.getsockname()[1], free.getsockname()[1]
        free.close()
        given = ManagerOptions(
            health=HealthOptions(address=f"127.0.0.1:{port}"), metrics=MetricsOptions(address=f"127.0.0.1:{taken}")
        )
        with pytest.raises(ConfigurationError, match=f"metrics server cannot listen on 127.0.0.1:{taken}"):
            ControllerManager(client, given, clock=CLOCK)
        socket.create_server(("127.0.0.1", port)).close()
    manager = ControllerManager(client, options(), clock=CLOCK)
    port = manager.health_port
    manager.close()
    socket.create_server(("127.0.0.1", port or 0)).close()


def test_an_election_without_a_namespace_is_refused_outside_of_a_cluster(client: Client) -> None:
    with pytest.raises(ConfigurationError, match="with `namespace=`"):
        ControllerManager(client, ManagerOptions(election=ElectionOptions(name="lock")), clock=CLOCK)


async def test_requests_are_counted_without_being_asked_for(client: Client) -> None:
    election = ElectionOptions(name="lock", namespace="default")
    manager = ControllerManager(client, ManagerOptions(election=election), clock=CLOCK, rng=random.Random(1))
    await manager.client.list(CONFIG_MAP)
    await manager.unfenced_client.list(CONFIG_MAP, "default")
    manager.cache.informer(CONFIG_MAP)
    async with running(manager):
        pass
    text = manager.metrics.text().decode()
    assert 'rest_client_requests_total{code="200",host="in this process",method="GET"}' in text
    # The recorder and the elector write.
    assert 'rest_client_requests_total{code="201",host="in this process",method="POST"}' in text


def test_counted_requests_are_told_under_their_host_and_a_wrapped_client_counts_once() -> None:
    class Remote:
        url = "https://10.0.0.1:6443/prefix"

        async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
            return HttpResponse(200, b"{}")

    remote: Any = Remote()
    manager = ControllerManager(WrappedClient(Client(remote, clock=CLOCK)), clock=CLOCK, rng=random.Random(1))
    assert server_url(manager.client) == Remote.url
    asyncio.run(manager.client.get(CONFIG_MAP, "a", "default"))
    assert 'total{code="200",host="10.0.0.1:6443",method="GET"} 1.0' in manager.metrics.text().decode()
