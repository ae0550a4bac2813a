"""The servers beside the controllers: webhooks, health, metrics."""

from __future__ import annotations

import random
import ssl
from pathlib import Path

from lwskit.manager.options import Options, WebhookOptions
from lwskit.manager.program import Program
from lwskit.reconcilers.disaggregated_metrics import DisaggregatedMetrics
from lwskit.reconcilers.metrics import SetMetrics
from lwskit.runtime.access import ReviewFilter
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.health import HealthServer
from lwskit.runtime.listener import parse_address
from lwskit.runtime.metrics import Metrics
from lwskit.runtime.metrics_server import MetricsServer
from lwskit.runtime.tls import CertificateWatcher, SelfSigned, ServerCertificates, TlsFiles
from lwskit.runtime.webhook_server import WebhookServer

METRICS_CERTIFICATES = Path("/tmp/k8s-metrics-server/serving-certs")
_VERSIONS = {"": ssl.TLSVersion.TLSv1_2, "VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}


def tls_files(options: WebhookOptions) -> TlsFiles:
    """Where the serving certificate lies, with the limits that the options set.

    Raises ConfigurationError naming the folder when a file is missing.
    """
    folder = Path(options.cert_dir)
    missing = [name for name in ("tls.crt", "tls.key") if not (folder / name).is_file()]
    if missing:
        raise ConfigurationError(
            f"the webhook certificate is missing: {folder} has no {' and no '.join(missing)}; put the certificate "
            "there, name another folder with webhook.certDir, or switch webhooks off with ENABLE_WEBHOOKS=false"
        )
    return _files_in(folder, options)


def metrics_certificates(
    options: WebhookOptions, clock: Clock, rng: random.Random, folder: Path = METRICS_CERTIFICATES
) -> ServerCertificates:
    """The certificate of the metrics: that in `folder`, followed as it changes, or else one of the process's own.

    The limits of TLS are those of the webhooks. Raises ConfigurationError for files that cannot be used.
    Specification: 60 §8.1.
    """
    if all((folder / name).is_file() for name in ("tls.crt", "tls.key")):
        return CertificateWatcher(_files_in(folder, options), clock)
    return SelfSigned(clock, rng, min_version=_VERSIONS[options.min_tls], ciphers=_ciphers(options))


def _files_in(folder: Path, options: WebhookOptions) -> TlsFiles:
    return TlsFiles(
        folder / "tls.crt", folder / "tls.key", min_version=_VERSIONS[options.min_tls], ciphers=_ciphers(options)
    )


def _ciphers(options: WebhookOptions) -> str:
    return ":".join(_openssl_name(cipher) for cipher in options.ciphers)


def webhook_server(program: Program, files: TlsFiles, clock: Clock, host: str, port: int) -> WebhookServer:
    """A server of the program's webhooks, added to what its manager runs."""
    server = WebhookServer(files, clock, host=host, port=port)
    for path, handler in program.admission.items():
        server.register(path, handler)
    program.manager.add(server)
    return server


def measure(program: Program, metrics: Metrics) -> None:
    """Have metrics tell of a program: of its controllers, its events, its election, and the sets it serves."""
    for recorder in program.recorders:
        metrics.add_recorder(recorder)
    for controller in program.controllers:
        metrics.add_controller(controller)
    metrics.registry.register(SetMetrics(program.watches, program.stats))
    metrics.registry.register(DisaggregatedMetrics(program.disaggregated, program.disaggregated_times))
    if program.elector is not None:
        metrics.add_elector(program.elector)


def local_metrics(program: Program, metrics: Metrics, port: int) -> MetricsServer:
    """A server of the program's metrics for this machine only, over plain HTTP and without asking who reads them.

    It is added to what the manager runs; port 0 is any free one. Raises ConfigurationError for a port in use.
    """
    measure(program, metrics)
    server = MetricsServer(metrics, "127.0.0.1", port)
    program.manager.add(server)
    return server


def add_servers(
    program: Program, options: Options, metrics: Metrics, client: Client, clock: Clock, rng: random.Random
) -> None:
    """Add every server that the options ask for. Raises ConfigurationError for certificates and addresses in use.

    Metrics are served over TLS, to those whose token the API server knows and lets read them; `client` asks it.
    """
    measure(program, metrics)
    webhooks = None
    if options.webhook.enabled:
        files = tls_files(options.webhook)
        webhooks = webhook_server(program, files, clock, options.webhook.host, options.webhook.port)
        metrics.add_webhooks(webhooks)
    if options.health_address is not None:
        host, port = parse_address(options.health_address)
        health = HealthServer(host, port, liveness=options.liveness_path, readiness=options.readiness_path)
        health.add_health_check("healthz")
        health.add_ready_check("readyz")
        if webhooks is not None:
            health.add_ready_check("webhooks", webhooks.check_started)
        program.manager.add(health)
    if options.metrics_address is not None:
        host, port = parse_address(options.metrics_address)
        certificates = metrics_certificates(options.webhook, clock, rng)
        access = ReviewFilter(client, clock, rng)
        program.manager.add(MetricsServer(metrics, host, port, certificates=certificates, access=access))


def _openssl_name(iana: str) -> str:
    """The OpenSSL name of a cipher suite, for example of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256.

    Raises ConfigurationError for a name that is no TLS 1.2 suite of OpenSSL.
    """
    key_exchange, _, cipher = iana.removeprefix("TLS_").partition("_WITH_")
    known = {
        "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
        "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
        "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
        "CHACHA20_POLY1305": "CHACHA20-POLY1305",
        "AES_128_CBC_SHA": "AES128-SHA",
        "AES_256_CBC_SHA": "AES256-SHA",
        "AES_128_CBC_SHA256": "AES128-SHA256",
    }
    exchange = {"ECDHE_RSA": "ECDHE-RSA-", "ECDHE_ECDSA": "ECDHE-ECDSA-", "RSA": ""}
    if cipher not in known or key_exchange not in exchange:
        raise ConfigurationError(
            f"invalid cipher suites: {iana} is not known. "
            "Please use names such as TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
        )
    return exchange[key_exchange] + known[cipher]
