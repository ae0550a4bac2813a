"""The webhook configuration objects (specification: 10 §12, checklist line 99)."""

from __future__ import annotations

import random

import pytest

from lwskit.admission import configurations
from lwskit.admission.webhooks import handlers

SETS = {
    "apiGroups": ["leaderworkerset.x-k8s.io"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["leaderworkersets"],
}
DISAGGREGATED_SETS = {
    "apiGroups": ["disaggregatedset.x-k8s.io"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["disaggregatedsets"],
}
PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
OF_SETS = {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}
COMMON = {"admissionReviewVersions": ["v1"], "failurePolicy": "Fail", "sideEffects": "None"}


def client(path: str) -> dict[str, str]:
    return {"url": "https://here" + path}


def test_99_the_mutating_configuration() -> None:
    assert configurations.mutating(client) == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "lws-mutating-webhook-configuration"},
        "webhooks": [
            {
                "name": "mleaderworkerset.kb.io",
                "clientConfig": {"url": "https://here/mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset"},
                "rules": [SETS],
                **COMMON,
            },
            {
                "name": "mpod.kb.io",
                "clientConfig": {"url": "https://here/mutate--v1-pod"},
                "rules": [{**PODS, "operations": ["CREATE"]}],
                "objectSelector": OF_SETS,
                **COMMON,
            },
        ],
    }


def test_99_the_validating_configuration() -> None:
    assert configurations.validating(client) == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "lws-validating-webhook-configuration"},
        "webhooks": [
            {
                "name": "vleaderworkerset.kb.io",
                "clientConfig": {"url": "https://here/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset"},
                "rules": [SETS],
                **COMMON,
            },
            {
                "name": "vpod.kb.io",
                "clientConfig": {"url": "https://here/validate--v1-pod"},
                "rules": [{**PODS, "operations": ["CREATE", "UPDATE"]}],
                "objectSelector": OF_SETS,
                **COMMON,
            },
            {
                "name": "vdisaggregatedset.kb.io",
                "clientConfig": {"url": "https://here/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset"},
                "rules": [DISAGGREGATED_SETS],
                **COMMON,
            },
        ],
    }


@pytest.mark.parametrize("make", [configurations.mutating, configurations.validating])
def test_labels_are_written_where_there_are_any(make) -> None:  # type: ignore[no-untyped-def]
    assert make(client, {"a": "b"})["metadata"]["labels"] == {"a": "b"}
    assert "labels" not in make(client)["metadata"]


def test_99_every_webhook_has_a_handler_and_every_handler_a_webhook() -> None:
    paths = [
        webhook["clientConfig"]["path"]
        for make in (configurations.mutating, configurations.validating)
        for webhook in make(lambda path: {"path": path})["webhooks"]
    ]
    assert sorted(paths) == sorted(handlers(random.Random(1)))
