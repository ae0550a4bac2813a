"""`lwskit run`'s part on a cluster: refuse foreign managers, prove webhooks, leave nothing behind."""

from __future__ import annotations

import asyncio
import base64
import random
from functools import partial
from typing import Any

import pytest
import structlog

from lwskit.admission.webhooks import handlers
from lwskit.api import names
from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.store import Store
from lwskit.embedded.transport import InProcessTransport
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.manager import development
from lwskit.manager.development import (
    CONFIGURATIONS,
    GRACE_SECONDS,
    MARK,
    PROOF_SECONDS,
    WITHDRAW_SECONDS,
    Endpoint,
    Registration,
    check_url,
    cleanup,
    prepare,
    registered,
)
from lwskit.manager.options import DEFAULT_NAMESPACE, LEASE_NAME, ElectionOptions
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock, rfc3339_micro
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed, NotFound
from lwskit.runtime.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    LEASE,
    MUTATING_WEBHOOK_CONFIGURATION,
    NAMESPACE,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from lwskit.runtime.manager import Manager
from lwskit.runtime.objects import Obj
from lwskit.runtime.runnable import Group
from lwskit.runtime.webhook import respond

ENDPOINT = Endpoint("https://127.0.0.1:10443", b"the CA")
OFF = ElectionOptions(enabled=False)
SET = {
    "apiVersion": names.API_VERSION,
    "kind": names.KIND,
    "metadata": {"name": "x", "namespace": "default"},
    "spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{"name": "c", "image": "c"}]}}}},
}


@pytest.fixture
async def server(clock: Clock) -> ApiServer:
    return ApiServer(Store(), clock, random.Random(1))


@pytest.fixture
async def client(server: ApiServer, clock: Clock) -> Client:
    return Client(InProcessTransport(server), clock=clock)


def serve(server: ApiServer) -> None:
    """Have our webhooks answer at the endpoint."""
    for path, handler in handlers(random.Random(1)).items():
        server.register_admission(ENDPOINT.url + path, partial(respond, handler))


def unreachable(review: Obj) -> Obj:
    """What stands for a webhook that nobody answers for."""
    return {}


def configuration(kind: Kind, name: str, labels: dict[str, str] | None = None) -> Obj:
    meta = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "webhooks": []}


async def configured(client: Client) -> list[str]:
    """The webhook configurations that exist."""
    found = []
    for kind in (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION):
        found += [item["metadata"]["name"] for item in (await client.list(kind))["items"]]
    return found


# Addresses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://10.0.0.1:8443", ("10.0.0.1", 8443)),
        ("https://host.example", ("host.example", 443)),
        ("https://host.example/", ("host.example", 443)),
        ("https://[fd00::1]:9443", ("fd00::1", 9443)),
    ],
)
def test_addresses_that_a_server_can_be_given(url: str, place: tuple[str, int]) -> None:
    assert check_url(url) == place


@pytest.mark.parametrize(
    "url",
    [
        "http://host",
        "host:443",
        "https://",
        "",
        "https://host/path",
        "https://host?x=1",
        "https://host#x",
        "https://user@host",
        "https://host:0",
        "https://host:99999",
        "https://host:port",
        "https://[::1",
    ],
)
def test_other_addresses_are_refused_with_what_to_write(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^--webhook-url .*write https://HOST:PORT"):
        check_url(url)


def test_a_slash_at_the_end_does_no_harm() -> None:
    config = Endpoint("https://host/", b"ca").client_config("/mutate")
    assert config == {"url": "https://host/mutate", "caBundle": base64.b64encode(b"ca").decode()}


# Before -------------------------------------------------------------------------------------------------------------


async def test_an_empty_cluster_is_made_ready(client: Client, clock: Clock) -> None:
    await prepare(client, ElectionOptions(), DEFAULT_NAMESPACE, clock)
    await client.get(CUSTOM_RESOURCE_DEFINITION, names.CRD_NAME)
    await client.get(NAMESPACE, DEFAULT_NAMESPACE)
    await prepare(client, ElectionOptions(), DEFAULT_NAMESPACE, clock)
    assert clock.monotonic() < 1


@pytest.mark.parametrize(("kind", "name"), CONFIGURATIONS)
@pytest.mark.parametrize("labels", [None, {MARK[0]: "Helm"}])
async def test_an_installed_manager_is_not_disturbed(
    client: Client, clock: Clock, kind: Kind, name: str, labels: dict[str, str] | None
) -> None:
    before = await client.create(kind, configuration(kind, name, labels))
    with pytest.raises(ConfigurationError) as caught:
        await prepare(client, OFF, DEFAULT_NAMESPACE, clock)
    assert str(caught.value).startswith(f"the cluster has a {kind.kind} {name} that is not from `lwskit run`: ")
    assert await client.get(kind, name) == before
    with pytest.raises(NotFound):
        await client.get(CUSTOM_RESOURCE_DEFINITION, names.CRD_NAME)


async def test_a_manager_that_renews_its_lease_is_not_disturbed(client: Client, clock: Clock) -> None:
    kind, name = CONFIGURATIONS[0]
    await client.create(kind, configuration(kind, name, dict([MARK])))
    await client.create(NAMESPACE, {"metadata": {"name": DEFAULT_NAMESPACE}})
    spec: Obj = {"holderIdentity": "them", "leaseDurationSeconds": 15}
    lease = {"metadata": {"name": LEASE_NAME, "namespace": DEFAULT_NAMESPACE}, "spec": spec}
    spec["renewTime"] = rfc3339_micro(clock.now())
    await client.create(LEASE, lease)

    async def renew() -> None:
        while True:
            await clock.sleep(2)
            await client.patch(
                LEASE, LEASE_NAME, {"spec": {"renewTime": rfc3339_micro(clock.now())}}, DEFAULT_NAMESPACE
            )

    async with asyncio.TaskGroup() as tasks:
        renewing = tasks.create_task(renew())
        with pytest.raises(ConfigurationError, match="another manager, them, holds the Lease"):
            await prepare(client, ElectionOptions(), DEFAULT_NAMESPACE, clock)
        renewing.cancel()
    assert await configured(client) == [name]
    await prepare(client, OFF, DEFAULT_NAMESPACE, clock)
    assert await configured(client) == []


async def test_what_a_kill_left_behind_is_removed_and_nothing_else(client: Client, clock: Clock) -> None:
    mutating, validating = CONFIGURATIONS
    await client.create(mutating[0], configuration(*mutating, dict([MARK])))
    await client.create(mutating[0], configuration(mutating[0], "another", dict([MARK])))
    await client.create(validating[0], configuration(*validating))
    assert await cleanup(client) == [f"{mutating[0].kind} {mutating[1]}"]
    assert await configured(client) == ["another", validating[1]]
    assert await cleanup(client) == []


# While it runs ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def ready(client: Client, clock: Clock) -> Client:
    """A client of a cluster that has the CRD."""
    await prepare(client, OFF, DEFAULT_NAMESPACE, clock)
    return client


async def test_webhooks_are_there_for_the_length_of_the_block(server: ApiServer, ready: Client, clock: Clock) -> None:
    serve(server)
    async with registered(ready, ENDPOINT, clock):
        assert clock.monotonic() == 0
        assert await configured(ready) == [name for _, name in CONFIGURATIONS]
        for kind, name in CONFIGURATIONS:
            made = await ready.get(kind, name)
            assert made["metadata"]["labels"] == dict([MARK])
            for webhook in made["webhooks"]:
                assert webhook["clientConfig"]["url"].startswith(ENDPOINT.url + "/")
                assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == ENDPOINT.ca
        stored = await ready.create(LEADER_WORKER_SET, SET)
        assert stored["spec"]["networkConfig"] == {"subdomainPolicy": "Shared"}
    assert await configured(ready) == []
    assert [o["metadata"]["name"] for o in (await ready.list(LEADER_WORKER_SET))["items"]] == ["x"]


@pytest.mark.parametrize("reason", [RuntimeError("broken"), ConfigurationError("no")])
async def test_they_are_taken_away_when_the_block_fails(
    server: ApiServer, ready: Client, clock: Clock, reason: Exception
) -> None:
    serve(server)
    with pytest.raises(type(reason)):
        async with registered(ready, ENDPOINT, clock):
            raise reason
    assert await configured(ready) == []


async def test_they_are_taken_away_when_it_is_cancelled(server: ApiServer, ready: Client, clock: Clock) -> None:
    serve(server)
    inside = asyncio.Event()

    async def block() -> None:
        async with registered(ready, ENDPOINT, clock):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(block())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await configured(ready) == []


async def test_webhooks_that_the_server_does_not_reach_are_withdrawn_with_a_sentence(
    server: ApiServer, ready: Client, clock: Clock
) -> None:
    server.register_admission(ENDPOINT.url + names.MUTATE_LWS_PATH, unreachable)
    began = clock.monotonic()
    with pytest.raises(ConfigurationError) as caught:
        async with registered(ready, ENDPOINT, clock):
            pytest.fail("the block must not begin")
    assert str(caught.value).startswith(
        f"the API server does not reach the webhooks at {ENDPOINT.url}: Internal error occurred: failed calling webhook"
    )
    assert str(caught.value).endswith(
        "they were withdrawn. Give an address of this machine that the API server can reach with "
        "--webhook-url https://HOST:PORT"
    )
    assert clock.monotonic() - began == pytest.approx(PROOF_SECONDS, abs=0.5)
    assert await configured(ready) == []


async def test_a_server_that_asks_somebody_else_is_no_proof(server: ApiServer, ready: Client, clock: Clock) -> None:
    for path in handlers(random.Random(1)):
        server.register_admission(
            ENDPOINT.url + path, partial(respond, lambda request: {"allowed": True, "status": {"code": 200}})
        )
    with pytest.raises(
        ConfigurationError, match=r"does not reach the webhooks at .*: the API server did not call it; "
    ):
        async with registered(ready, ENDPOINT, clock):
            pytest.fail("the block must not begin")
    assert await configured(ready) == []


async def test_a_server_that_has_not_heard_of_refusals_yet_is_no_proof(
    server: ApiServer, ready: Client, clock: Clock
) -> None:
    """It learns of each configuration by itself; until it knows the second one it takes every set."""
    serve(server)
    allow = partial(respond, lambda request: {"allowed": True, "status": {"code": 200}})
    server.register_admission(ENDPOINT.url + names.VALIDATE_LWS_PATH, allow)
    asyncio.get_running_loop().call_later(3.0, serve, server)
    async with registered(ready, ENDPOINT, clock):
        assert 3 <= clock.monotonic() < 4


async def test_a_proof_takes_its_time(server: ApiServer, ready: Client, clock: Clock) -> None:
    server.register_admission(ENDPOINT.url + names.MUTATE_LWS_PATH, unreachable)
    asyncio.get_running_loop().call_later(3.0, serve, server)
    async with registered(ready, ENDPOINT, clock):
        assert 3 <= clock.monotonic() < 4


async def test_the_proof_leaves_nothing(server: ApiServer, ready: Client, clock: Clock) -> None:
    serve(server)
    async with registered(ready, ENDPOINT, clock):
        assert (await ready.list(LEADER_WORKER_SET))["items"] == []


async def test_configurations_that_cannot_be_taken_away_are_told(
    server: ApiServer, ready: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(server)

    async def fail(*args: Any, **kwargs: Any) -> Obj:
        raise ConnectionFailed("the server is gone")

    with structlog.testing.capture_logs() as logs:
        async with registered(ready, ENDPOINT, clock):
            monkeypatch.setattr(ready, "delete", fail)
    warning = logs[-1]
    assert warning["log_level"] == "warning"
    assert "lwskit run --cleanup" in warning["event"]
    assert warning["error"] == "the server is gone"


async def test_a_server_that_does_not_answer_does_not_hold_up_the_end(
    server: ApiServer, ready: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(server)

    async def hang(*args: Any, **kwargs: Any) -> Obj:
        await asyncio.Event().wait()
        return {}

    with structlog.testing.capture_logs() as logs:
        async with registered(ready, ENDPOINT, clock):
            began = clock.monotonic()
            monkeypatch.setattr(ready, "delete", hang)
    assert clock.monotonic() - began == pytest.approx(WITHDRAW_SECONDS)
    assert logs[-1]["error"] == "the API server did not answer within 10 s"


async def test_what_can_be_taken_away_is_although_the_other_cannot(
    server: ApiServer, ready: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(server)
    delete = ready.delete

    async def half(kind: Kind, *args: Any, **kwargs: Any) -> Obj:
        if kind == MUTATING_WEBHOOK_CONFIGURATION:
            raise ConnectionFailed("the server is gone")
        return await delete(kind, *args, **kwargs)

    async with registered(ready, ENDPOINT, clock):
        monkeypatch.setattr(ready, "delete", half)
    assert await configured(ready) == [names.MUTATING_CONFIGURATION]


async def test_a_manager_on_a_slow_server_takes_its_webhooks_away_before_their_server_ends(
    server: ApiServer, ready: Client, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(server)
    serving = asyncio.Event()
    serving.set()
    manager = Manager(clock, random.Random(1), graceful_timeout=GRACE_SECONDS)
    webhooks = Controller(ready)
    manager.add(webhooks, Group.WEBHOOKS)
    manager.add(Registration(ready, lambda: ENDPOINT, serving, clock))
    task = asyncio.create_task(manager.run())
    await manager.elected.wait()
    delete = ready.delete

    async def slowly(*args: Any, **kwargs: Any) -> Obj:
        await clock.sleep(5)
        return await delete(*args, **kwargs)

    monkeypatch.setattr(ready, "delete", slowly)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert webhooks.seen[-1] == []


class Controller:
    """Remembers what was registered when it started and when it ended."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.seen: list[list[str]] = []

    async def run(self) -> None:
        self.seen.append(await configured(self.client))
        try:
            await asyncio.Event().wait()
        finally:
            self.seen.append(await configured(self.client))


async def test_controllers_run_only_while_the_webhooks_are_registered(
    server: ApiServer, ready: Client, clock: Clock
) -> None:
    asyncio.get_running_loop().call_later(3.0, serve, server)
    server.register_admission(ENDPOINT.url + names.MUTATE_LWS_PATH, unreachable)
    serving = asyncio.Event()
    asyncio.get_running_loop().call_later(1.0, serving.set)
    manager = Manager(clock, random.Random(1), graceful_timeout=1.0)
    controller = Controller(ready)
    manager.add(controller)
    manager.add(Registration(ready, lambda: ENDPOINT, serving, clock))
    task = asyncio.create_task(manager.run())
    await manager.elected.wait()
    assert 3 <= clock.monotonic() < 4
    await clock.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    everything = [name for _, name in CONFIGURATIONS]
    assert controller.seen == [everything, everything]
    assert await configured(ready) == []


async def test_a_manager_whose_webhooks_are_not_reached_ends_with_the_sentence(
    server: ApiServer, ready: Client, clock: Clock
) -> None:
    server.register_admission(ENDPOINT.url + names.MUTATE_LWS_PATH, unreachable)
    serving = asyncio.Event()
    serving.set()
    manager = Manager(clock, random.Random(1), graceful_timeout=1.0)
    controller = Controller(ready)
    manager.add(controller)
    manager.add(Registration(ready, lambda: ENDPOINT, serving, clock))
    with pytest.raises(ConfigurationError, match="does not reach the webhooks"):
        await manager.run()
    assert controller.seen == []
    assert await configured(ready) == []


def test_what_is_marked_can_be_found_by_its_label() -> None:
    assert MARK == ("app.kubernetes.io/managed-by", "lwskit-run")
    assert [name for _, name in CONFIGURATIONS] == [names.MUTATING_CONFIGURATION, names.VALIDATING_CONFIGURATION]
    assert development.PROOF_NAME.startswith("lwskit-")
