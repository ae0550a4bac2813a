"""The manager's configuration file: fields, defaults and rules (specification: 60 §3).

Both `config.lws.x-k8s.io/v1` and `v1alpha1` are read; the fields are the same.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from lwskit.api import names

GROUP = "config.lws.x-k8s.io"
KIND = "Configuration"
API_VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1alpha1")
DNS_1035_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
DNS_1123_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
SUPPORTED_PROVIDERS = names.SCHEDULER_PROVIDERS
FEATURE_GATES = (names.WORKLOAD_AWARE_SCHEDULING_GATE,)
TLS_VERSIONS = ("VersionTLS12", "VersionTLS13")

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: Any) -> timedelta:
    """A duration such as `15s`, `1m30s` or `0`. Raises ValueError with the forms that are allowed."""
    if isinstance(text, timedelta):
        return text
    written = str(text).strip()
    if written == "0":
        return timedelta(0)
    parts = _DURATION.findall(written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        raise ValueError(f"{written!r} is not a duration; write a number with a unit, such as 15s, 1m30s or 500ms")
    try:
        return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))
    except OverflowError:
        raise ValueError(f"{written!r} is longer than a duration can be; write a number such as 15s or 1h") from None


def format_duration(value: timedelta) -> str:
    """A duration as the file has it, in the largest units that divide it: `15s`, `1m30s`, `1h0m0s`."""
    seconds = value.total_seconds()
    if 0 < seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours}h{minutes}m{rest:g}s"
    return f"{minutes}m{rest:g}s" if minutes else f"{rest:g}s"


Duration = Annotated[timedelta, BeforeValidator(parse_duration), PlainSerializer(format_duration, return_type=str)]


class _Section(BaseModel):
    """A part of the file: its fields have camel case names, and neither other fields nor other types are taken."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, strict=True, frozen=True)


class WebhookSection(_Section):
    """Where the webhook server listens and where its certificate lies."""

    port: int = Field(default=9443, description="TCP port.")
    host: str = Field(default="", description="Address to listen on; empty means all of them.")
    cert_dir: str = Field(
        default="/tmp/k8s-webhook-server/serving-certs", description="Folder with tls.crt and tls.key."
    )


class LeaderElectionSection(_Section):
    """Which of several managers runs the controllers."""

    leader_elect: bool = Field(default=True, description="Whether to hold a Lease before reconciling.")
    lease_duration: Duration = Field(default=timedelta(seconds=15), description="How long a Lease is valid unrenewed.")
    renew_deadline: Duration = Field(default=timedelta(seconds=10), description="How long renewing may fail.")
    retry_period: Duration = Field(default=timedelta(seconds=2), description="Time between tries.")
    resource_lock: Literal["leases"] = Field(default="leases", description="Only leases.")
    resource_name: str = Field(default="b8b2488c.x-k8s.io", description="Name of the Lease.")
    resource_namespace: str = Field(default="", description="Ignored: the manager's own namespace is used.")


class MetricsSection(_Section):
    """Where metrics are served."""

    bind_address: str = Field(default=":8443", description='Address and port; "0" switches metrics off.')


class HealthSection(_Section):
    """Where health is served."""

    health_probe_bind_address: str = Field(default=":8081", description='Address and port; "0" switches it off.')
    readiness_endpoint_name: str = Field(default="/readyz", description="Path of the readiness endpoint.")
    liveness_endpoint_name: str = Field(default="/healthz", description="Path of the liveness endpoint.")


class TlsSection(_Section):
    """Limits of TLS for the webhook and metrics servers."""

    min_version: str = Field(default="", description=" or ".join(TLS_VERSIONS) + ".")
    cipher_suites: tuple[str, ...] = Field(default=(), strict=False, description="IANA names; not with VersionTLS13.")


class InternalCertSection(_Section):
    """The manager's own certificate management."""

    enable: bool = Field(default=True, description="Whether the manager makes and renews its certificate.")
    webhook_service_name: str = Field(default="lws-webhook-service", description="Service the certificate is for.")
    webhook_secret_name: str = Field(default="lws-webhook-server-cert", description="Secret that holds it.")


class GangSchedulingSection(_Section):
    """Gang scheduling; present means on."""

    scheduler_provider: str = Field(default="", description="kubernetes or volcano.")


class ClientConnectionSection(_Section):
    """Limits towards the API server."""

    qps: float = Field(default=500.0, description="Requests per second.")
    burst: int = Field(default=500, description="Requests at once.")


class Configuration(_Section):
    """The whole file, defaulted."""

    api_version: str = f"{GROUP}/v1"
    kind: str = KIND
    webhook: WebhookSection = WebhookSection()
    leader_election: LeaderElectionSection = LeaderElectionSection()
    metrics: MetricsSection = MetricsSection()
    health: HealthSection = HealthSection()
    tls: TlsSection | None = None
    internal_cert_management: InternalCertSection = InternalCertSection()
    gang_scheduling_management: GangSchedulingSection | None = None
    feature_gates: dict[str, bool] | None = None
    client_connection: ClientConnectionSection = ClientConnectionSection()
    workload_backend: str = Field(default="statefulset", description="What leaders and workers are made as.")

    @model_validator(mode="after")
    def _names_a_kind(self) -> Configuration:
        if self.api_version not in API_VERSIONS or self.kind != KIND:
            raise ValueError(
                f"{self.api_version} {self.kind} is not a manager configuration; "
                f"write apiVersion {API_VERSIONS[0]} and kind {KIND}"
            )
        return self


_SAID = {"extra_forbidden": "unknown field", "model_type": "write an object with fields here"}
"""By the type of a fault: what to say instead of pydantic's words."""


def faults_of(error: ValidationError) -> list[str]:
    """What is wrong with a file, one sentence a field: path, then reason."""
    faults = []
    for fault in error.errors():
        path = ".".join(str(p) for p in fault["loc"])
        text = _SAID.get(fault["type"]) or fault["msg"].removeprefix("Value error, ")
        faults.append(f"{path}: {text}" if path else text)
    return faults


def validate(configuration: Configuration) -> list[str]:
    """The rules of specification 60 §3.3 and of TLS, in their order; every fault as `path: what is wrong`."""
    faults: list[str] = []
    gang = configuration.gang_scheduling_management
    if gang is not None:
        if not gang.scheduler_provider:
            faults.append("schedulerProvider: Required value: must be set when gang scheduling is enabled")
        elif gang.scheduler_provider not in SUPPORTED_PROVIDERS:
            faults.append(_unsupported("schedulerProvider", gang.scheduler_provider, SUPPORTED_PROVIDERS))
    internal = configuration.internal_cert_management
    if internal.enable:
        if not DNS_1035_LABEL.fullmatch(internal.webhook_service_name):
            faults.append(
                f'internalCertManagement.webhookServiceName: Invalid value: "{internal.webhook_service_name}": '
                "write a DNS-1035 label: lower-case letters, digits and '-', a letter first"
            )
        if not DNS_1123_SUBDOMAIN.fullmatch(internal.webhook_secret_name):
            faults.append(
                f'internalCertManagement.webhookSecretName: Invalid value: "{internal.webhook_secret_name}": '
                "write a DNS-1123 subdomain: lower-case letters, digits, '-' and '.'"
            )
    unknown = sorted(set(configuration.feature_gates or {}) - set(FEATURE_GATES))
    if unknown:
        faults.append(_unsupported("featureGates", ", ".join(unknown), FEATURE_GATES))
    if configuration.tls is not None:
        faults += _tls_faults(configuration.tls)
    return faults


def _unsupported(path: str, value: str, supported: tuple[str, ...]) -> str:
    choices = ", ".join(f'"{s}"' for s in supported)
    return f'{path}: Unsupported value: "{value}": supported values: {choices}'


def _tls_faults(tls: TlsSection) -> list[str]:
    if tls.min_version not in ("", *TLS_VERSIONS):
        return [
            f"tls.minVersion: unable to parse TLS options from configuration: invalid minVersion: "
            f'"{tls.min_version}". Please use {" or ".join(TLS_VERSIONS)}'
        ]
    if tls.min_version == TLS_VERSIONS[1] and tls.cipher_suites:
        return [
            "tls.cipherSuites: unable to parse TLS options from configuration: "
            f"cipher suites may not be specified when minVersion is '{tls.min_version}'"
        ]
    return []
