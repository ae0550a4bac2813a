"""What a controller program runs with (specification: 70 §1.5)."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from lwskit.runtime.controller.options import ControllerDefaults
from lwskit.runtime.tls import TlsFiles
from lwskit.runtime.webhook_server import PORT

OFF = ("", "0")
"""Addresses that mean no server."""


def default_certificates() -> TlsFiles:
    """`tls.crt` and `tls.key` where webhook servers look for them by default."""
    return TlsFiles.in_folder(Path(tempfile.gettempdir()) / "k8s-webhook-server" / "serving-certs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionOptions:
    """Leader election on the Lease `name`; times in seconds.

    Without a `namespace` it is that of the pod. `release` gives the Lease up at an orderly end, so that the next one
    need not wait; choose it only if the program ends with its manager.
    """

    name: str
    namespace: str = ""
    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0
    release: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """Where metrics are served: `host:port`, `:port`, or off, the default.

    With `secure` over TLS, with the certificate of `files` or, without any, one of the process's own, and only to
    those whose token may `get` the path.
    """

    address: str = ""
    secure: bool = False
    files: TlsFiles | None = None
    rest_details: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthOptions:
    """Where liveness and readiness are served: `host:port`, `:port`, or off, the default."""

    address: str = ""
    liveness: str = "/healthz"
    readiness: str = "/readyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """Where webhooks are served once one is registered; port -1 keeps them registered and serves none."""

    host: str = ""
    port: int = PORT
    files: TlsFiles = field(default_factory=default_certificates)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerOptions:
    """The options of a ControllerManager.

    `name` reports its events. `graceful_timeout` is how many seconds everything has to end: 0 means not to wait, a
    negative number to wait for ever. `election` is off unless given. `tune_gc` sets the garbage collector of the
    process up for large caches, and `measure_lag` measures how late the event loop is; both are for programs, not for
    tests.
    """

    name: str = "controller-manager"
    graceful_timeout: float = 30.0
    election: ElectionOptions | None = None
    metrics: MetricsOptions = MetricsOptions()
    health: HealthOptions = HealthOptions()
    webhooks: WebhookOptions = field(default_factory=WebhookOptions)
    controllers: ControllerDefaults = field(default_factory=ControllerDefaults)
    tune_gc: bool = False
    measure_lag: bool = False
