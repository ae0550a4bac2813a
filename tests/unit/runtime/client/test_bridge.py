"""From real objects of kubernetes_asyncio to clients that renew their credentials, against servers on the loopback."""

from __future__ import annotations

import asyncio
import json
import random
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import load_kube_config
from kubernetes_asyncio.config.incluster_config import InClusterConfigLoader

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.http import serve
from lwskit.embedded.store import Store
from lwskit.runtime import certs
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client import bridge
from lwskit.runtime.clock import RealClock, rfc3339
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed, Unauthorized
from lwskit.runtime.kinds import NAMESPACE, POD


@dataclass
class Server:
    """An API server that takes one token at a time and remembers what came."""

    url: str = ""
    token: str = "one"
    seen: list[dict[str, str]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        status = 200 if headers.get("authorization") == f"Bearer {self.token}" else 401
        self.seen.append(headers)
        self.statuses.append(status)
        # Let simultaneous requests meet.
        await asyncio.sleep(0.01)
        return web.json_response({"kind": "PodList", "metadata": {}, "items": []}, status=status)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


class LateClock(RealClock):
    """The clock of this machine, set forward by hand."""

    ahead = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead)

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


def kubeconfig(path: Path, server: Server, user: dict[str, Any]) -> str:
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": {"server": server.url}}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return str(path)


async def load(path: str) -> tuple[Configuration, Any]:
    configuration = Configuration()
    return configuration, await load_kube_config(path, client_configuration=configuration)


async def burst(client: Any, n: int = 8) -> None:
    await asyncio.gather(*(client.list(POD) for _ in range(n)))


async def test_a_configuration_is_enough(server: Server) -> None:
    configuration = Configuration(host=server.url, api_key={"BearerToken": "Bearer one"})
    client = bridge.client(configuration, field_manager="me", user_agent="mine/1")
    await client.create(POD, {"metadata": {"name": "p", "namespace": "n"}})
    await client.close()
    assert server.seen[0]["user-agent"] == "mine/1"
    assert server.statuses == [200]
    assert client.field_manager == "me"


async def test_a_prefix_is_put_before_the_key(server: Server) -> None:
    configuration = Configuration(
        host=server.url, api_key={"BearerToken": "one"}, api_key_prefix={"BearerToken": "Bearer"}
    )
    client = bridge.client(configuration)
    await client.list(POD)
    await client.close()
    assert server.statuses == [200]
    assert server.seen[0]["user-agent"] == "lwskit"


async def test_what_an_api_client_adds_is_sent_and_it_stays_usable(server: Server) -> None:
    configuration = Configuration(host=server.url, api_key={"BearerToken": "Bearer one"})
    async with ApiClient(configuration, header_name="X-Team", header_value="blue", cookie="a=b") as api:
        client = bridge.client(api)
        await client.list(POD)
        api.user_agent = "theirs/2"
        other = bridge.client(api)
        await other.list(POD)
        await client.close()
        await other.close()
        answer = await api.call_api("/api/v1/pods", "GET", auth_settings=["BearerToken"], _preload_content=False)
        assert answer.status == 200
    assert [(h["x-team"], h["cookie"], h["user-agent"]) for h in server.seen[:2]] == [
        ("blue", "a=b", "lwskit"),
        ("blue", "a=b", "theirs/2"),
    ]


async def test_a_user_with_a_password_is_basic_authentication(server: Server, tmp_path: Path) -> None:
    by_hand = Configuration(host=server.url, username="u", password="p")
    loaded, loader = await load(kubeconfig(tmp_path / "config", server, {"username": "u", "password": "p"}))
    for client in (bridge.client(by_hand), bridge.client(loaded, loader=loader)):
        with pytest.raises(Unauthorized):
            await client.list(POD)
        await client.close()
    assert [h["authorization"] for h in server.seen] == ["Basic dTpw", "Basic dTpw"]


async def test_a_token_that_rotates_on_disk_is_read_once_for_all_who_are_refused(
    server: Server, tmp_path: Path
) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("one\n")
    authority.write_text("unused")
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
    configuration = Configuration()
    InClusterConfigLoader(str(token), str(authority), environ=environment).load_and_set(configuration)
    configuration.host = server.url
    client = bridge.client(configuration)
    await burst(client)
    token.write_text("two\n")
    server.token = "two"
    await burst(client)
    await burst(client)
    await client.close()
    assert server.statuses[:8] == [200] * 8
    # Each was refused at most once, and none after the renewal.
    assert Counter(server.statuses[8:]) in [Counter({200: 16, 401: n}) for n in range(1, 9)]
    assert server.statuses[-8:] == [200] * 8


PLUGIN = """\
import json, pathlib, sys
counter, lifetimes = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
run = int(counter.read_text()) if counter.exists() else 0
counter.write_text(str(run + 1))
status = {"token": ["one", "two", "three"][run]}
if lifetimes[run]:
    status["expirationTimestamp"] = lifetimes[run]
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


@pytest.fixture
def plugin(tmp_path: Path, server: Server) -> Callable[..., str]:
    """A kubeconfig with an exec plugin whose runs give the tokens one, two and three, with these expiry times."""

    def write(*expiries: datetime | None) -> str:
        script = tmp_path / "plugin.py"
        script.write_text(PLUGIN)
        script.chmod(stat.S_IRWXU)
        times = [rfc3339(e) if e else "" for e in expiries] + [""] * 3
        entry = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-S", str(script), str(tmp_path / "runs"), json.dumps(times)],
            "interactiveMode": "Never",
        }
        return kubeconfig(tmp_path / "config", server, {"exec": entry})

    return write


def runs(tmp_path: Path) -> int:
    return int((tmp_path / "runs").read_text())


async def test_a_plugin_runs_ahead_of_the_expiry_and_once(
    server: Server, plugin: Callable[..., str], tmp_path: Path
) -> None:
    configuration, loader = await load(plugin(*(datetime.now(UTC) + timedelta(hours=n) for n in (1, 5))))
    clock = LateClock()
    client = bridge.client(configuration, loader=loader, clock=clock)
    await burst(client)
    assert runs(tmp_path) == 1
    clock.ahead = 3600 - 20
    server.token = "two"
    await burst(client)
    clock.ahead += 3600
    await burst(client)
    await client.close()
    assert server.statuses == [200] * 24
    assert runs(tmp_path) == 2


async def test_a_plugin_runs_again_once_when_its_token_is_refused(
    server: Server, plugin: Callable[..., str], tmp_path: Path
) -> None:
    configuration, loader = await load(plugin(datetime.now(UTC) + timedelta(hours=1)))
    client = bridge.client(configuration, loader=loader)
    await client.list(POD)
    server.token = "two"
    await burst(client)
    await burst(client)
    await client.close()
    assert runs(tmp_path) == 2
    assert server.statuses[-8:] == [200] * 8
    assert 1 <= server.statuses.count(401) <= 8


async def test_a_plugin_that_names_no_expiry_any_more_is_left_alone(
    server: Server, plugin: Callable[..., str], tmp_path: Path
) -> None:
    configuration, loader = await load(plugin(datetime.now(UTC) + timedelta(hours=1), None))
    clock = LateClock()
    client = bridge.client(configuration, loader=loader, clock=clock)
    clock.ahead = 3600
    server.token = "two"
    for _ in range(3):
        await client.list(POD)
    await client.close()
    assert server.statuses == [200] * 3
    assert runs(tmp_path) == 2


async def test_the_token_file_of_a_kubeconfig_is_read_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")
    configuration, loader = await load(kubeconfig(tmp_path / "config", server, {"tokenFile": str(tmp_path / "token")}))
    clock = LateClock()
    client = bridge.client(configuration, loader=loader, clock=clock)
    await client.list(POD)
    (tmp_path / "token").write_text("two")
    clock.ahead = 61
    server.token = "two"
    await client.list(POD)
    (tmp_path / "token").write_text("three")
    server.token = "three"
    await client.list(POD)
    await client.close()
    assert server.statuses == [200, 200, 401, 200]


async def test_credentials_that_others_renew_in_the_configuration_are_seen(server: Server) -> None:
    configuration = Configuration(host=server.url, api_key={"BearerToken": "Bearer one"})
    client = bridge.client(configuration)
    await client.list(POD)
    server.token = "two"
    with pytest.raises(Unauthorized):
        await client.list(POD)
    configuration.api_key["BearerToken"] = "Bearer two"
    await client.list(POD)
    await client.close()
    assert server.statuses == [200, 401, 200]


async def test_an_asynchronous_hook_that_fails_is_a_failed_connection_with_its_text(server: Server) -> None:
    async def hook(configuration: Configuration) -> None:
        raise RuntimeError("the vault is sealed")

    configuration = Configuration(host=server.url)
    configuration.refresh_api_key_hook = hook
    client = bridge.client(configuration)
    with pytest.raises(ConnectionFailed, match="the vault is sealed"):
        await client.update(POD, {"metadata": {"name": "p", "namespace": "n"}})
    await client.close()
    assert server.seen == []


async def test_tls_is_what_the_configuration_says(tmp_path: Path) -> None:
    clock, rng = RealClock(), random.Random(1)
    (tmp_path / "ca.crt").write_bytes(certs.make_ca(clock.now(), rng).cert_pem)
    async with serve(ApiServer(Store(), clock, rng), clock=clock, rng=rng) as served:
        with served.kubeconfig(tmp_path / "config") as path:
            configuration, loader = await load(str(path))
            client = bridge.client(configuration, loader=loader)
            cache = Cache(client, clock, rng)
            found = cache.informer(NAMESPACE)
            running = asyncio.create_task(cache.run())
            await cache.wait_synced()
            assert "default" in {o["metadata"]["name"] for o in found.store.list()}
            running.cancel()
            await asyncio.wait({running})
            await client.close()
            configuration.ssl_ca_cert = str(tmp_path / "ca.crt")
            client = bridge.client(configuration)
            with pytest.raises(ConnectionFailed, match="is not trusted"):
                await client.create(NAMESPACE, {"metadata": {"name": "n"}})
            await client.close()
            configuration.verify_ssl = False
            client = bridge.client(configuration)
            await client.list(NAMESPACE)
            await client.close()
    configuration.cert_file = str(tmp_path / "absent.pem")
    with pytest.raises(ConfigurationError, match="the certificates of the Configuration for https://"):
        bridge.client(configuration)


def test_something_else_is_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigurationError, match="made from a kubernetes_asyncio Configuration or ApiClient, not str"):
        bridge.client("https://127.0.0.1")  # type: ignore[arg-type]


def test_the_library_does_not_import_kubernetes_asyncio() -> None:
    code = """
import importlib, pkgutil, sys
import lwskit.runtime
for module in pkgutil.walk_packages(lwskit.runtime.__path__, "lwskit.runtime."):
    importlib.import_module(module.name)
print(*sorted(m for m in sys.modules if m.startswith("kubernetes")))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


@pytest.mark.parametrize("host", [None, "", "foo:6443", "https://127.0.0.1:99999"])
def test_a_host_that_cannot_be_used_is_one_sentence(host: Any) -> None:
    configuration = Configuration()
    configuration.host = host
    with pytest.raises(ConfigurationError, match="of the Configuration cannot be used: it"):
        bridge.client(configuration)
