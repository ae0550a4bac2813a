"""The manager's options: file, flags, precedence, and what is said about files that cannot be used (60 §2–4)."""

from __future__ import annotations

import random
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lwskit.api.configuration import Configuration
from lwskit.api.validation import SchedulingSupport
from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.transport import InProcessTransport
from lwskit.manager.options import ElectionOptions, Flags, Options, WebhookOptions, load, operator_namespace, resolve
from lwskit.manager.program import Program
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import ConfigurationError
from lwskit.testing.virtual import VirtualClock

HEAD = "apiVersion: config.lws.x-k8s.io/v1\nkind: Configuration\n"

FILE = (
    HEAD
    + """\
health: {healthProbeBindAddress: ":8081"}
metrics: {bindAddress: ":7777"}
leaderElection:
  leaderElect: true
  leaseDuration: 5m
  renewDeadline: 5m
  retryPeriod: 5m
  resourceLock: leases
  resourceName: test
  resourceNamespace: elsewhere
"""
)
FIVE = timedelta(minutes=5)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "controller_manager_config.yaml"


def written(file: Path, text: str) -> Configuration:
    file.write_text(text)
    return load(str(file))


def refused(file: Path, text: str | bytes) -> str:
    """The sentence about a file, without what every sentence begins with."""
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigurationError) as caught:
        load(str(file))
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert str(file) in sentence
    return sentence.split(str(file), 1)[1].lstrip(": ")


def in_force(configuration: Configuration, flags: Flags | None = None) -> Options:
    return resolve(configuration, flags or Flags(), namespace="lws-system")


def test_without_file_and_flags_all_defaults_hold() -> None:
    options = in_force(load(None))
    assert options == Options()
    assert options.election == ElectionOptions(True, 15, 10, 2, "b8b2488c.x-k8s.io")
    assert options.webhook == WebhookOptions(True, "", 9443, Path("/tmp/k8s-webhook-server/serving-certs"))
    assert (options.metrics_address, options.health_address) == (":8443", ":8081")
    assert (options.readiness_path, options.liveness_path) == ("/readyz", "/healthz")


def test_an_empty_path_is_no_file() -> None:
    assert load("") == Configuration()


# Precedence: the matrix of 60 §4 ----------------------------------------------------------------------------------


def test_no_flags_the_file_counts(file: Path) -> None:
    options = in_force(written(file, FILE))
    assert options.election == ElectionOptions(True, 300, 300, 300, "test")
    assert (options.health_address, options.metrics_address) == (":8081", ":7777")


def test_every_flag_wins_over_the_file(file: Path) -> None:
    second = timedelta(seconds=1)
    flags = Flags(":9999", ":9998", False, 3 * second, 2 * second, second, "flag")
    assert all(getattr(flags, field.name) is not None for field in fields(Flags))
    options = in_force(written(file, FILE), flags)
    assert options.election == ElectionOptions(False, 3, 2, 1, "flag")
    assert (options.health_address, options.metrics_address) == (":9998", ":9999")


def test_only_flags_that_were_given_win(file: Path) -> None:
    options = in_force(written(file, FILE), Flags(health_probe_bind_address=":9998", leader_elect=False))
    assert options.election == ElectionOptions(False, 300, 300, 300, "test")
    assert (options.health_address, options.metrics_address) == (":9998", ":7777")


def test_election_switched_off_in_the_file_stays_off_without_a_flag(file: Path) -> None:
    configuration = written(file, HEAD + "leaderElection: {leaderElect: false}\n")
    assert not in_force(configuration).election.enabled
    assert in_force(configuration, Flags(leader_elect=True)).election.enabled


def test_the_lease_is_always_in_the_managers_own_namespace(file: Path) -> None:
    assert resolve(written(file, FILE), Flags(), namespace="mine").namespace == "mine"


def test_a_duration_of_zero_in_the_file_is_not_set_but_a_flag_is_taken_at_its_word(file: Path) -> None:
    configuration = written(file, HEAD + "leaderElection: {leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0}\n")
    assert in_force(configuration).election == ElectionOptions()
    zero = in_force(configuration, Flags(lease_duration=timedelta(0))).election.lease
    assert (zero, type(zero)) == (0.0, float)


@pytest.mark.parametrize("given", ["", "0"])
def test_addresses_that_are_off(file: Path, given: str) -> None:
    flags = Flags(metrics_bind_address=given, health_probe_bind_address=given)
    options = in_force(written(file, FILE), flags)
    assert (options.metrics_address, options.health_address) == (None, None)


def test_zero_in_the_file_switches_off_and_empty_is_the_default(file: Path) -> None:
    off = written(file, HEAD + 'metrics: {bindAddress: "0"}\nhealth: {healthProbeBindAddress: "0"}\n')
    assert (in_force(off).metrics_address, in_force(off).health_address) == (None, None)
    empty = written(
        file,
        HEAD
        + 'metrics: {bindAddress: ""}\n'
        + 'health: {healthProbeBindAddress: "", readinessEndpointName: "", livenessEndpointName: ""}\n'
        + 'leaderElection: {resourceName: "", resourceLock: ""}\n'
        + 'webhook: {certDir: ""}\n',
    )
    assert in_force(empty) == Options()


def test_null_is_not_written(file: Path) -> None:
    text = "tls:\nmetrics: null\nwebhook: {port: null}\ngangSchedulingManagement: ~\nfeatureGates:\n"
    assert written(file, HEAD + text) == Configuration()


def test_everything_else_of_the_file_arrives(file: Path) -> None:
    options = in_force(
        written(
            file,
            HEAD
            + "webhook: {port: 10250, host: 10.0.0.1, certDir: /certs}\n"
            + "tls: {minVersion: VersionTLS12, cipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]}\n"
            + "health: {readinessEndpointName: /ready, livenessEndpointName: /live}\n",
        )
    )
    suites = ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",)
    assert options.webhook == WebhookOptions(True, "10.0.0.1", 10250, Path("/certs"), "VersionTLS12", suites)
    assert (options.readiness_path, options.liveness_path) == ("/ready", "/live")


def test_webhooks_can_be_switched_off() -> None:
    assert not resolve(Configuration(), Flags(), namespace="n", webhooks=False).webhook.enabled


# The file -------------------------------------------------------------------------------------------------------------


def test_json_is_read_too(file: Path) -> None:
    text = '{"apiVersion": "config.lws.x-k8s.io/v1", "kind": "Configuration", "webhook": {"port": 1}}'
    assert written(file, text).webhook.port == 1


def test_the_older_version_is_read_with_one_warning(file: Path) -> None:
    with structlog.testing.capture_logs() as logs:
        configuration = written(file, FILE.replace("io/v1", "io/v1alpha1"))
    assert configuration.leader_election == written(file, FILE).leader_election
    assert [entry["log_level"] for entry in logs] == ["warning"]
    assert logs[0]["version"] == "config.lws.x-k8s.io/v1alpha1"
    assert logs[0]["instead"] == "config.lws.x-k8s.io/v1"
    with structlog.testing.capture_logs() as logs:
        written(file, FILE)
    assert logs == []


def test_merged_and_referred_to_values_are_read(file: Path) -> None:
    text = "leaderElection: &e {leaderElect: false}\n"
    assert written(file, HEAD + text).leader_election.leader_elect is False
    merged = "<<: {kind: Configuration}\napiVersion: config.lws.x-k8s.io/v1\n"
    assert written(file, merged) == Configuration()


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(ConfigurationError) as caught:
            load(str(path))
        assert str(caught.value) == f"cannot read the configuration file {path}: {why}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (HEAD + "invalidField: 1\n", "invalidField: unknown field"),
        (HEAD + "webhook: {prot: 1, port: x}\n", "webhook.port: Input should be a valid integer; "),
        ("kind: Deployment\napiVersion: apps/v1\nspec: {}\n", "spec: unknown field"),
        (
            HEAD + "kind: Configuration\n",
            'is not valid YAML: line 3, column 1: key "kind" is written twice',
        ),
        (
            HEAD + "webhook: {port: 1, port: 2}\n",
            'is not valid YAML: line 3, column 20: key "port" is written twice',
        ),
        ("a: [\n", "is not valid YAML: line 2, column 1: while parsing a flow node, expected the node content"),
        (HEAD + "---\n" + HEAD, "is not valid YAML: line 3, column 1: expected a single document in the stream"),
        ("? [a]\n: 1\n", "is not valid YAML: line 1, column 3: the name of a field must be a text, not ['a']"),
        ("1: 2\n", "is not valid YAML: line 1, column 1: the name of a field must be a text, not 1"),
        ("a: !!python/name:os.system\n", "is not valid YAML: line 1, column 4: could not determine a constructor"),
        ("a: 2001-99-99\n", "is not valid YAML: "),
        ("a: " + "[" * 5000, "is not valid YAML: "),
        ("a: \x00", "is not valid YAML: "),
        ("", "holds no object with apiVersion and kind"),
        ("- a\n", "holds no object with apiVersion and kind"),
        ("text", "holds no object with apiVersion and kind"),
        (b"\xff\xfe\x00", "it is not UTF-8 text"),
        (
            HEAD + "gangSchedulingManagement: {}\nfeatureGates: {X: true}\n",
            "schedulerProvider: Required value: must be set when gang scheduling is enabled; "
            'featureGates: Unsupported value: "X": supported values: "WorkloadAwareScheduling"',
        ),
    ],
)
def test_a_file_that_cannot_be_used_gets_one_sentence(file: Path, text: str | bytes, sentence: str) -> None:
    assert refused(file, text).startswith(sentence)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(
    st.one_of(
        st.text(alphabet="abc{}[]:,&*!|>-?'\"\n #%@`\t0", max_size=40),
        st.binary(max_size=20),
        st.dictionaries(
            st.sampled_from(["webhook", "tls", "metrics", "featureGates", "leaderElection", "kind"]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                lambda inner: (
                    st.lists(inner, max_size=2)
                    | st.dictionaries(st.sampled_from(["port", "bindAddress", "leaseDuration"]), inner, max_size=2)
                ),
                max_leaves=4,
            ),
        ).map(str),
    )
)
def test_no_file_makes_it_fail_otherwise(file: Path, text: str | bytes) -> None:
    file.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    sentence = ""
    try:
        load(str(file))
    except ConfigurationError as error:
        sentence = str(error)
    assert "\n" not in sentence


# The namespace ------------------------------------------------------------------------------------------------------


def test_the_namespace_is_that_of_the_service_account(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    assert operator_namespace(file) == "lws-system"
    file.write_text("infra\n")
    assert operator_namespace(file) == "infra"
    file.write_text("\n")
    assert operator_namespace(file) == "lws-system"
    assert operator_namespace(tmp_path) == "lws-system"


def test_the_feature_gate_reaches_the_webhooks(file: Path) -> None:
    assert in_force(written(file, HEAD)).scheduling == SchedulingSupport()
    on = in_force(written(file, HEAD + "featureGates: {WorkloadAwareScheduling: true}\n"))
    assert on.scheduling == SchedulingSupport(gate=True)
    off = in_force(written(file, HEAD + "featureGates: {WorkloadAwareScheduling: false}\n"))
    assert not off.scheduling.gate


@pytest.mark.parametrize("provider", ["kubernetes", "volcano"])
def test_a_scheduler_provider_is_refused_while_there_is_none(file: Path, provider: str) -> None:
    configuration = written(file, HEAD + f"gangSchedulingManagement: {{schedulerProvider: {provider}}}\n")
    with pytest.raises(ConfigurationError) as caught:
        in_force(configuration)
    text = f'gangSchedulingManagement: this version has no scheduler provider "{provider}"; leave the section out'
    assert str(caught.value) == text


def test_the_file_chooses_what_leaders_and_workers_are_made_as(tmp_path: Path) -> None:
    assert resolve(load(None), Flags(), namespace="ns").backend == "statefulset"
    file = tmp_path / "config.yaml"
    file.write_text(HEAD + "workloadBackend: fleet\n")
    options = resolve(load(str(file)), Flags(), namespace="ns")
    assert options.backend == "fleet"
    client = Client(InProcessTransport(ApiServer()))
    with pytest.raises(ConfigurationError, match="there is no workload backend 'fleet'; there are: statefulset"):
        Program(client, options, clock=VirtualClock(), rng=random.Random(1), hostname="h")
