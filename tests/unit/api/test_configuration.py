"""The manager's configuration file as a model: durations, defaults, rules (specification: 60 §3)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lwskit.api.configuration import (
    API_VERSIONS,
    KIND,
    Configuration,
    faults_of,
    format_duration,
    parse_duration,
    validate,
)


def faults(**sections: Any) -> list[str]:
    """What is wrong with a file of these sections: its fields if they cannot be read, else the rules it breaks."""
    try:
        return validate(Configuration.model_validate(sections))
    except ValidationError as error:
        return faults_of(error)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15),
        ("1m30s", 90),
        ("1h0m0s", 3600),
        ("1.5h", 5400),
        ("500ms", 0.5),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("3000ns", 0.000003),
        ("0", 0),
        (0, 0),
        ("0s", 0),
        (timedelta(seconds=7), 7),
    ],
)
def test_durations_are_read(text: Any, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "15", 15, "s", "15 s", "15sec", "-3s", "1m30", "1.s", None, True, "١s", []])
def test_what_is_no_duration_is_refused_with_the_forms_allowed(text: Any) -> None:
    with pytest.raises(ValueError, match=r"is not a duration; write a number with a unit, such as 15s, 1m30s or 500ms"):
        parse_duration(text)


def test_a_duration_has_an_end() -> None:
    with pytest.raises(ValueError, match="is longer than a duration can be"):
        parse_duration("9" * 30 + "h")
    with pytest.raises(ValueError, match="is longer than a duration can be"):
        parse_duration("9" * 400 + "h")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(15, "15s"), (90, "1m30s"), (3600, "1h0m0s"), (300, "5m0s"), (0.5, "500ms"), (1.25, "1.25s"), (0, "0s")],
)
def test_durations_are_written(seconds: float, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text


@given(st.integers(0, 10**9))
def test_a_duration_that_is_written_is_read_again(milliseconds: int) -> None:
    value = timedelta(milliseconds=milliseconds)
    assert abs(parse_duration(format_duration(value)) - value) < timedelta(milliseconds=1)


def test_the_defaults_are_those_of_the_specification() -> None:
    """And `workloadBackend`, which the specification does not have."""
    written = Configuration().model_dump(by_alias=True, exclude_none=True)
    assert written == {
        "apiVersion": "config.lws.x-k8s.io/v1",
        "kind": "Configuration",
        "webhook": {"port": 9443, "host": "", "certDir": "/tmp/k8s-webhook-server/serving-certs"},
        "workloadBackend": "statefulset",
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": "15s",
            "renewDeadline": "10s",
            "retryPeriod": "2s",
            "resourceLock": "leases",
            "resourceName": "b8b2488c.x-k8s.io",
            "resourceNamespace": "",
        },
        "metrics": {"bindAddress": ":8443"},
        "health": {
            "healthProbeBindAddress": ":8081",
            "readinessEndpointName": "/readyz",
            "livenessEndpointName": "/healthz",
        },
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": "lws-webhook-service",
            "webhookSecretName": "lws-webhook-server-cert",
        },
        "clientConnection": {"qps": 500.0, "burst": 500},
    }


def test_what_is_written_is_read_again() -> None:
    full = Configuration.model_validate(
        {
            "leaderElection": {"leaseDuration": "1m5s", "leaderElect": False},
            "tls": {"minVersion": "VersionTLS12", "cipherSuites": ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"]},
            "gangSchedulingManagement": {"schedulerProvider": "volcano"},
            "featureGates": {"WorkloadAwareScheduling": True},
            "clientConnection": {"qps": 50, "burst": 100},
        }
    )
    assert Configuration.model_validate(full.model_dump(by_alias=True)) == full


@pytest.mark.parametrize("version", API_VERSIONS)
def test_both_versions_are_read(version: str) -> None:
    assert faults(apiVersion=version, kind=KIND) == []


@pytest.mark.parametrize(
    "names",
    [
        {"apiVersion": "config.lws.x-k8s.io/v2", "kind": "Configuration"},
        {"apiVersion": "lws.x-k8s.io/v1", "kind": "Configuration"},
        {"apiVersion": "config.lws.x-k8s.io/v1", "kind": "Config"},
    ],
)
def test_another_kind_or_version_is_refused(names: dict[str, str]) -> None:
    (fault,) = faults(**names)
    assert fault == (
        f"{names['apiVersion']} {names['kind']} is not a manager configuration; "
        "write apiVersion config.lws.x-k8s.io/v1 and kind Configuration"
    )


@pytest.mark.parametrize(
    ("sections", "fault"),
    [
        ({"invalidField": 1}, "invalidField: unknown field"),
        ({"webhook": {"prot": 1}}, "webhook.prot: unknown field"),
        ({"leader_election": {}}, "leader_election: unknown field"),
        ({"leaderElection": {"leader_elect": False}}, "leaderElection.leader_elect: unknown field"),
        ({"spec": {}}, "spec: unknown field"),
        ({"webhook": []}, "webhook: write an object with fields here"),
        ({"webhook": {"port": "9443"}}, "webhook.port: Input should be a valid integer"),
        ({"leaderElection": {"leaderElect": "false"}}, "leaderElection.leaderElect: Input should be a valid boolean"),
        ({"leaderElection": {"resourceLock": "endpoints"}}, "leaderElection.resourceLock: Input should be 'leases'"),
        (
            {"leaderElection": {"retryPeriod": "soon"}},
            "leaderElection.retryPeriod: 'soon' is not a duration; "
            "write a number with a unit, such as 15s, 1m30s or 500ms",
        ),
        (
            {"featureGates": {"WorkloadAwareScheduling": "on"}},
            "featureGates.WorkloadAwareScheduling: Input should be a valid boolean",
        ),
        (
            {"gangSchedulingManagement": {}},
            "schedulerProvider: Required value: must be set when gang scheduling is enabled",
        ),
        (
            {"gangSchedulingManagement": {"schedulerProvider": ""}},
            "schedulerProvider: Required value: must be set when gang scheduling is enabled",
        ),
        (
            {"gangSchedulingManagement": {"schedulerProvider": "foo"}},
            'schedulerProvider: Unsupported value: "foo": supported values: "kubernetes", "volcano"',
        ),
        (
            {"internalCertManagement": {"webhookServiceName": "0-invalid"}},
            'internalCertManagement.webhookServiceName: Invalid value: "0-invalid": '
            "write a DNS-1035 label: lower-case letters, digits and '-', a letter first",
        ),
        (
            {"internalCertManagement": {"webhookSecretName": ":)"}},
            'internalCertManagement.webhookSecretName: Invalid value: ":)": '
            "write a DNS-1123 subdomain: lower-case letters, digits, '-' and '.'",
        ),
        (
            {"featureGates": {"WorkloadAwareScheduling": True, "Unknown": True, "Another": False}},
            'featureGates: Unsupported value: "Another, Unknown": supported values: "WorkloadAwareScheduling"',
        ),
        (
            {"tls": {"minVersion": "VersionTLS13", "cipherSuites": ["TLS_AES_128_GCM_SHA256"]}},
            "tls.cipherSuites: unable to parse TLS options from configuration: "
            "cipher suites may not be specified when minVersion is 'VersionTLS13'",
        ),
        *(
            (
                {"tls": {"minVersion": version}},
                "tls.minVersion: unable to parse TLS options from configuration: "
                f'invalid minVersion: "{version}". Please use VersionTLS12 or VersionTLS13',
            )
            for version in ("VersionTLS10", "VersionTLS11", "TLS99")
        ),
    ],
)
def test_each_fault_is_one_sentence(sections: dict[str, Any], fault: str) -> None:
    assert faults(**sections) == [fault]


def test_all_faults_are_told_in_their_order() -> None:
    found = faults(
        featureGates={"X": True},
        tls={"minVersion": "TLS99"},
        internalCertManagement={"webhookServiceName": "A", "webhookSecretName": "A"},
        gangSchedulingManagement={},
    )
    paths = [fault.split(":")[0] for fault in found]
    service, secret = "internalCertManagement.webhookServiceName", "internalCertManagement.webhookSecretName"
    assert paths == ["schedulerProvider", service, secret, "featureGates", "tls.minVersion"]


@pytest.mark.parametrize(
    "sections",
    [
        {"gangSchedulingManagement": {"schedulerProvider": "volcano"}},
        {"gangSchedulingManagement": {"schedulerProvider": "kubernetes"}},
        {"internalCertManagement": {"enable": False, "webhookServiceName": "0-invalid", "webhookSecretName": ":)"}},
        {"internalCertManagement": {"webhookServiceName": "a", "webhookSecretName": "0.b-c"}},
        {"featureGates": {"WorkloadAwareScheduling": False}},
        {"tls": {}},
        {"tls": {"minVersion": "VersionTLS13"}},
        {"tls": {"minVersion": "VersionTLS12", "cipherSuites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]}},
    ],
)
def test_what_is_allowed(sections: dict[str, Any]) -> None:
    assert faults(**sections) == []
