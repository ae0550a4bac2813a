"""What the webhooks say to sets whose pods are scheduled together depends on the manager's options (10 §6.6)."""

from __future__ import annotations

import random

import pytest

from lwskit.admission.webhooks import handlers
from lwskit.api import names
from lwskit.api.validation import SchedulingSupport
from lwskit.runtime.objects import Obj

GATE = "spec.scheduling: Forbidden: requires the WorkloadAwareScheduling feature gate"
PROVIDER = "spec.scheduling: Required value: requires a configured scheduler provider"


def verdict(support: SchedulingSupport | None, obj: Obj, old: Obj | None = None) -> str:
    """What the validating webhook of such a manager answers; empty for a yes."""
    options = {} if support is None else {"support": support}
    handler = handlers(random.Random(1), **options)[names.VALIDATE_LWS_PATH]
    request = {"operation": "CREATE" if old is None else "UPDATE", "object": obj, "oldObject": old}
    answer = handler(request)
    assert answer["status"]["code"] == (200 if answer["allowed"] else 403)
    return answer["status"].get("message", "")


def scheduled(replicas: int = 1) -> Obj:
    return {
        "metadata": {"name": "llm", "namespace": "ns"},
        "spec": {
            "replicas": replicas,
            "scheduling": {},
            "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": {"containers": [{"name": "w"}]}}},
        },
    }


@pytest.mark.parametrize(
    ("support", "text"),
    [
        (None, GATE),
        (SchedulingSupport(), GATE),
        (SchedulingSupport(gate=True), PROVIDER),
        (SchedulingSupport(gate=True, provider="kubernetes"), ""),
        (SchedulingSupport(gate=True, provider="volcano"), ""),
    ],
)
def test_a_new_set(support: SchedulingSupport | None, text: str) -> None:
    assert verdict(support, scheduled()) == text


@pytest.mark.parametrize(
    ("support", "text"),
    [(None, ""), (SchedulingSupport(gate=True), PROVIDER), (SchedulingSupport(gate=True, provider="volcano"), "")],
)
def test_a_changed_set(support: SchedulingSupport | None, text: str) -> None:
    assert verdict(support, scheduled(2), scheduled(1)) == text
