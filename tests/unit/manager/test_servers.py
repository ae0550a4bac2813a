"""Certificates and TLS of the manager's servers, as the options say (specification: 60 §3.3)."""

from __future__ import annotations

import asyncio
import random
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.store import Store
from lwskit.embedded.transport import InProcessTransport
from lwskit.manager.options import ElectionOptions, Options, WebhookOptions
from lwskit.manager.program import Program
from lwskit.manager.servers import add_servers, local_metrics, metrics_certificates, tls_files
from lwskit.runtime.certs import make_self_signed
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import RealClock
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.health import HealthServer
from lwskit.runtime.kinds import Kind
from lwskit.runtime.metrics import Metrics
from lwskit.runtime.metrics_server import MetricsServer
from lwskit.runtime.objects import Obj
from lwskit.runtime.tls import CertificateWatcher, SelfSigned
from lwskit.runtime.webhook_server import WebhookServer

SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("present", "missing"),
    [((), "no tls.crt and no tls.key"), (("tls.crt",), "no tls.key"), (("tls.key",), "no tls.crt")],
)
def test_a_certificate_that_is_missing_is_told_with_its_folder(
    tmp_path: Path, present: tuple[str, ...], missing: str
) -> None:
    for name in present:
        (tmp_path / name).write_text("")
    with pytest.raises(ConfigurationError) as caught:
        tls_files(WebhookOptions(cert_dir=tmp_path))
    assert str(caught.value).startswith(f"the webhook certificate is missing: {tmp_path} has {missing}; ")


@pytest.mark.parametrize(
    ("version", "least"),
    [
        ("", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS12", ssl.TLSVersion.TLSv1_2),
        ("VersionTLS13", ssl.TLSVersion.TLSv1_3),
    ],
)
def test_the_least_version(folder: Path, version: str, least: ssl.TLSVersion) -> None:
    files = tls_files(WebhookOptions(cert_dir=folder, min_tls=version))
    assert (files.cert, files.key, files.min_version, files.ciphers) == (
        folder / "tls.crt",
        folder / "tls.key",
        least,
        "",
    )


SUITES = {
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}


def test_suites_are_named_as_openssl_names_them(folder: Path) -> None:
    files = tls_files(WebhookOptions(cert_dir=folder, ciphers=tuple(SUITES)))
    assert files.ciphers == ":".join(SUITES.values())
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).set_ciphers(files.ciphers)


@pytest.mark.parametrize("suite", ["TLS_FOO", "AES128-SHA", "", "TLS_ECDHE_RSA_WITH_RC4_128_SHA", "TLS_DHE_WITH_X"])
def test_an_unknown_suite_is_told(folder: Path, suite: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^invalid cipher suites: .* Please use names such as TLS_ECDHE_RSA"):
        tls_files(WebhookOptions(cert_dir=folder, ciphers=(suite,)))


CLOCK = RealClock()
LOCAL = "127.0.0.1:0"


def write_pair(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    made = make_self_signed(["localhost"], ["127.0.0.1"], CLOCK.now(), random.Random(1))
    (folder / "tls.crt").write_bytes(made.cert_pem)
    (folder / "tls.key").write_bytes(made.key_pem)


async def test_metrics_have_a_certificate_of_their_own_unless_there_are_files(tmp_path: Path) -> None:
    options = WebhookOptions(min_tls="VersionTLS13")
    own = metrics_certificates(options, CLOCK, random.Random(1), tmp_path)
    assert isinstance(own, SelfSigned)
    assert own.context.minimum_version is ssl.TLSVersion.TLSv1_3
    write_pair(tmp_path)
    given = metrics_certificates(options, CLOCK, random.Random(1), tmp_path)
    assert isinstance(given, CertificateWatcher)
    assert given.context.minimum_version is ssl.TLSVersion.TLSv1_3
    (tmp_path / "tls.key").write_text("broken")
    with pytest.raises(ConfigurationError, match=r"tls\.crt .* cannot be used"):
        metrics_certificates(options, CLOCK, random.Random(1), tmp_path)


async def test_metrics_are_scraped_over_tls_with_a_service_accounts_token(tmp_path: Path) -> None:
    server = ApiServer(Store(), CLOCK, random.Random(1))
    client = Client(InProcessTransport(server), clock=CLOCK)
    account: Obj = {"metadata": {"name": "prometheus", "namespace": "default"}}
    await client.create(SERVICE_ACCOUNT, account)
    token = (await client.create(SERVICE_ACCOUNT, account, subresource="token"))["status"]["token"]
    write_pair(tmp_path / "webhook")
    options = Options(
        election=ElectionOptions(enabled=False),
        webhook=WebhookOptions(host="127.0.0.1", port=0, cert_dir=tmp_path / "webhook"),
        metrics_address=LOCAL,
        health_address=LOCAL,
    )
    program = Program(client, options, clock=CLOCK, rng=random.Random(1), hostname="here")
    metrics = Metrics(CLOCK)
    added: list[Any] = []
    add = program.manager.add
    program.manager.add = lambda runnable, group=None: (added.append(runnable), add(runnable, group))[1]  # type: ignore
    add_servers(program, options, metrics, client, CLOCK, random.Random(1))
    served = {type(runnable): runnable for runnable in added}
    assert set(served) == {WebhookServer, HealthServer, MetricsServer}
    running = [asyncio.create_task(runnable.run()) for runnable in added]
    try:
        for runnable in added:
            await runnable.serving.wait()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as http:
            url = f"https://127.0.0.1:{served[MetricsServer].port}/metrics"
            async with http.get(url) as response:
                assert response.status == 401
            async with http.get(url, headers={"authorization": f"Bearer {token}"}) as response:
                assert response.status == 200
                text = await response.text()
            for check in ("healthz", "readyz", "readyz/webhooks"):
                async with http.get(f"http://127.0.0.1:{served[HealthServer].port}/{check}") as response:
                    assert response.status == 200
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    for name in (
        'controller_runtime_reconcile_total{controller="pod",result="success"}',
        'controller_runtime_webhook_requests_total{code="200",webhook="/mutate--v1-pod"}',
        'workqueue_adds_total{controller="leaderworkerset",name="leaderworkerset"}',
    ):
        assert f"{name} 0.0" in text


async def test_metrics_for_this_machine_are_plain() -> None:
    client = Client(InProcessTransport(ApiServer(Store(), CLOCK, random.Random(1))), clock=CLOCK)
    options = Options(election=ElectionOptions(enabled=False))
    program = Program(client, options, clock=CLOCK, rng=random.Random(1), hostname="here")
    served = local_metrics(program, Metrics(CLOCK), 0)
    running = asyncio.create_task(served.run())
    try:
        await served.serving.wait()
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{served.port}/metrics") as response:
            assert response.status == 200
            text = await response.text()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert 'workqueue_adds_total{controller="leaderworkerset",name="leaderworkerset"} 0.0' in text
    assert "# HELP lwskit_groups " in text
