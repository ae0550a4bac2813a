"""The webhook configuration objects: which requests the API server asks about, and where.

Specification: 10 §12, 60 §9.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lwskit.api import disaggregated_names, names

ClientConfig = Callable[[str], dict[str, Any]]
"""From the path of a webhook to its `clientConfig`: a service reference or a URL, with the CA that signed for it."""


def _webhook(name: str, path: str, rule: dict[str, Any], client: ClientConfig, *, of_sets: bool) -> dict[str, Any]:
    webhook = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client(path),
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "rules": [rule],
    }
    if of_sets:
        webhook["objectSelector"] = {"matchExpressions": [{"key": names.NAME_LABEL, "operator": "Exists"}]}
    return webhook


def _rule(group: str, resource: str, *operations: str) -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": ["v1"], "operations": list(operations), "resources": [resource]}


def mutating(client: ClientConfig, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """The MutatingWebhookConfiguration; the order of its webhooks is part of the interface."""
    sets = _rule(names.GROUP, names.PLURAL, "CREATE", "UPDATE")
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": names.MUTATING_CONFIGURATION, **({"labels": labels} if labels else {})},
        "webhooks": [
            _webhook(names.MUTATE_LWS_WEBHOOK, names.MUTATE_LWS_PATH, sets, client, of_sets=False),
            _webhook(
                names.MUTATE_POD_WEBHOOK, names.MUTATE_POD_PATH, _rule("", "pods", "CREATE"), client, of_sets=True
            ),
        ],
    }


def validating(client: ClientConfig, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """The ValidatingWebhookConfiguration; the order of its webhooks is part of the interface."""
    sets = _rule(names.GROUP, names.PLURAL, "CREATE", "UPDATE")
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": names.VALIDATING_CONFIGURATION, **({"labels": labels} if labels else {})},
        "webhooks": [
            _webhook(names.VALIDATE_LWS_WEBHOOK, names.VALIDATE_LWS_PATH, sets, client, of_sets=False),
            _webhook(
                names.VALIDATE_POD_WEBHOOK,
                names.VALIDATE_POD_PATH,
                _rule("", "pods", "CREATE", "UPDATE"),
                client,
                of_sets=True,
            ),
            _webhook(
                disaggregated_names.VALIDATE_WEBHOOK,
                disaggregated_names.VALIDATE_PATH,
                _rule(disaggregated_names.GROUP, disaggregated_names.PLURAL, "CREATE", "UPDATE"),
                client,
                of_sets=False,
            ),
        ],
    }
