"""What the manager runs with: flags over file over defaults (specification: 60 §2–4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pydantic
import structlog
import yaml

from lwskit.api.configuration import API_VERSIONS, Configuration, faults_of, validate
from lwskit.api.names import WORKLOAD_AWARE_SCHEDULING_GATE
from lwskit.api.validation import NO_SCHEDULING, SchedulingSupport
from lwskit.backends import registry
from lwskit.runtime.errors import ConfigurationError

log = structlog.get_logger("setup")

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
DEFAULT_NAMESPACE = "lws-system"
LEASE_NAME = "b8b2488c.x-k8s.io"


@dataclass(frozen=True, slots=True)
class ElectionOptions:
    """Leader election: durations in seconds, Lease name (specification: 60 §5).

    `release` gives the Lease up at an orderly end; an installation does not, as its successor may run already.
    """

    enabled: bool = True
    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0
    name: str = LEASE_NAME
    release: bool = False


@dataclass(frozen=True, slots=True)
class WebhookOptions:
    """The webhook server: address, port and the folder of its certificate files."""

    enabled: bool = True
    host: str = ""
    port: int = 9443
    cert_dir: Path = Path("/tmp/k8s-webhook-server/serving-certs")
    min_tls: str = ""
    ciphers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """Everything the manager program is told. Addresses are `host:port`, `:port`, or None for off."""

    namespace: str = DEFAULT_NAMESPACE
    election: ElectionOptions = ElectionOptions()
    webhook: WebhookOptions = WebhookOptions()
    metrics_address: str | None = ":8443"
    health_address: str | None = ":8081"
    readiness_path: str = "/readyz"
    liveness_path: str = "/healthz"
    concurrency: int = 8
    graceful_timeout: float = 30.0
    scheduling: SchedulingSupport = NO_SCHEDULING
    backend: str = registry.DEFAULT
    """What leaders and workers are made as: a name that `backends.registry` knows."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags that were really given; None stands for not given, and never overrides the file."""

    metrics_bind_address: str | None = None
    health_probe_bind_address: str | None = None
    leader_elect: bool | None = None
    lease_duration: timedelta | None = None
    renew_deadline: timedelta | None = None
    retry_period: timedelta | None = None
    resource_name: str | None = None


def operator_namespace(file: Path = NAMESPACE_FILE) -> str:
    """The namespace this program runs in, as the service account's file says; else `lws-system`."""
    try:
        return file.read_text().strip() or DEFAULT_NAMESPACE
    except OSError:
        return DEFAULT_NAMESPACE


def load(path: str | None) -> Configuration:
    """The configuration in a file, or the defaults without one.

    Raises ConfigurationError naming the file and every fault in it.
    """
    if not path:
        return Configuration()
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as e:
        raise ConfigurationError(f"cannot read the configuration file {path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise ConfigurationError(f"cannot read the configuration file {path}: it is not UTF-8 text") from e
    try:
        data = yaml.load(text, Loader=_StrictLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise ConfigurationError(f"the configuration file {path} is not valid YAML: {_one_line(e)}") from e
    if not isinstance(data, dict):
        raise ConfigurationError(f"the configuration file {path} holds no object with apiVersion and kind")
    try:
        configuration = Configuration.model_validate(_without_empty(data))
    except pydantic.ValidationError as e:
        raise ConfigurationError(f"the configuration file {path}: " + "; ".join(faults_of(e))) from e
    if faults := validate(configuration):
        raise ConfigurationError(f"the configuration file {path}: " + "; ".join(faults))
    if configuration.api_version != API_VERSIONS[0]:
        log.warning(
            "this version of the configuration file is deprecated and will not be read by a later release",
            file=path,
            version=configuration.api_version,
            instead=API_VERSIONS[0],
        )
    return configuration


def resolve(configuration: Configuration, flags: Flags, *, namespace: str, webhooks: bool = True) -> Options:
    """The options in force: given flags first, then the file, then defaults (specification: 60 §4).

    Raises ConfigurationError for a scheduler provider, as none is served yet.
    """
    if (gang := configuration.gang_scheduling_management) is not None:
        raise ConfigurationError(
            f'gangSchedulingManagement: this version has no scheduler provider "{gang.scheduler_provider}"; '
            "leave the section out"
        )
    election = configuration.leader_election
    tls = configuration.tls
    options = Options(
        namespace=namespace,
        election=ElectionOptions(
            enabled=election.leader_elect,
            lease=election.lease_duration.total_seconds() or 15.0,
            renew=election.renew_deadline.total_seconds() or 10.0,
            retry=election.retry_period.total_seconds() or 2.0,
            name=election.resource_name,
        ),
        webhook=WebhookOptions(
            enabled=webhooks,
            host=configuration.webhook.host,
            port=configuration.webhook.port,
            cert_dir=Path(configuration.webhook.cert_dir),
            min_tls=tls.min_version if tls else "",
            ciphers=tls.cipher_suites if tls else (),
        ),
        metrics_address=_address(configuration.metrics.bind_address),
        health_address=_address(configuration.health.health_probe_bind_address),
        readiness_path=configuration.health.readiness_endpoint_name,
        liveness_path=configuration.health.liveness_endpoint_name,
        scheduling=SchedulingSupport(
            gate=(configuration.feature_gates or {}).get(WORKLOAD_AWARE_SCHEDULING_GATE, False)
        ),
        backend=configuration.workload_backend,
    )
    return _override(options, flags)


def _override(options: Options, flags: Flags) -> Options:
    election: dict[str, Any] = {
        "enabled": flags.leader_elect,
        "lease": _seconds(flags.lease_duration),
        "renew": _seconds(flags.renew_deadline),
        "retry": _seconds(flags.retry_period),
        "name": flags.resource_name,
    }
    changes: dict[str, Any] = {
        "election": replace(options.election, **{k: v for k, v in election.items() if v is not None})
    }
    if flags.metrics_bind_address is not None:
        changes["metrics_address"] = _address(flags.metrics_bind_address)
    if flags.health_probe_bind_address is not None:
        changes["health_address"] = _address(flags.health_probe_bind_address)
    return replace(options, **changes)


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def _address(text: str) -> str | None:
    return None if text in ("", "0") else text


_EMPTY_IS_DEFAULT = {
    "webhook": ("certDir",),
    "leaderElection": ("resourceLock", "resourceName"),
    "metrics": ("bindAddress",),
    "health": ("healthProbeBindAddress", "readinessEndpointName", "livenessEndpointName"),
}
"""Fields by section whose empty value stands for the default (specification: 60 §3.2)."""


def _without_empty(data: dict[str, Any]) -> dict[str, Any]:
    """What is written as null, and some empty texts, count as not written."""
    kept = {}
    for section, value in data.items():
        if isinstance(value, dict):
            empty = _EMPTY_IS_DEFAULT.get(section, ())
            kept[section] = {k: v for k, v in value.items() if v is not None and not (v == "" and k in empty)}
        elif value is not None:
            kept[section] = value
    return kept


class _StrictLoader(yaml.SafeLoader):
    """A loader that refuses a key written twice."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping, refusing duplicates and names that are no text. Raises yaml.YAMLError."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"the name of a field must be a text, not {key!r}", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f'key "{key}" is written twice', key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return " ".join(str(error).split())
    said = ", ".join(text for text in (getattr(error, "context", None), getattr(error, "problem", None)) if text)
    return f"line {mark.line + 1}, column {mark.column + 1}: {said}"
