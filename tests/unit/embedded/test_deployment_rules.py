"""Rules of Deployments and ReplicaSets and of deletion costs, with the texts that a real API server gave."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.runtime.errors import Invalid
from lwskit.runtime.kinds import DEPLOYMENT, POD, REPLICA_SET
from lwskit.runtime.ranking import DELETION_COST

from .serving import client, pod, server

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "a"}]}}
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
LEAST = "must be greater than or equal to 0"
MOST = "cannot be greater than status.replicas"


def workload(**spec: Any) -> dict[str, Any]:
    made = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": made | spec}


def rolling(**limits: Any) -> dict[str, Any]:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": limits}}


REFUSED = [
    (rolling(maxSurge="x"), f'spec.strategy.rollingUpdate.maxSurge: Invalid value: "x": {PERCENT}'),
    (rolling(maxSurge=-1), f"spec.strategy.rollingUpdate.maxSurge: Invalid value: -1: {LEAST}"),
    (
        rolling(maxSurge="0%", maxUnavailable="00%"),
        'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "00%": may not be 0 when `maxSurge` is 0',
    ),
    (
        rolling(maxSurge="150%", maxUnavailable="150%"),
        'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "150%": must not be greater than 100%',
    ),
    (
        rolling(maxSurge="y%", maxUnavailable=-1),
        f"[spec.strategy.rollingUpdate.maxUnavailable: Invalid value: -1: {LEAST}, "
        f'spec.strategy.rollingUpdate.maxSurge: Invalid value: "y%": {PERCENT}]',
    ),
    (
        {"strategy": {"type": "X"}},
        'spec.strategy: Unsupported value: {"Type":"X","RollingUpdate":null}: '
        'supported values: "Recreate", "RollingUpdate"',
    ),
    (
        {"progressDeadlineSeconds": -5},
        f"[spec.progressDeadlineSeconds: Invalid value: -5: {LEAST}, "
        "spec.progressDeadlineSeconds: Invalid value: -5: must be greater than minReadySeconds]",
    ),
    (
        {"template": {**TEMPLATE, "metadata": {"labels": {"app": "web"}, "annotations": {DELETION_COST: "+1"}}}},
        f'spec.template.annotations[{DELETION_COST}]: Invalid value: "+1": must be a 32bit integer',
    ),
]


@pytest.mark.parametrize(("spec", "text"), REFUSED)
async def test_refused_deployments(spec: dict[str, Any], text: str):
    with pytest.raises(Invalid) as found:
        await client(server()).create(DEPLOYMENT, workload(**spec))
    assert str(found.value) == f'Deployment.apps "web" is invalid: {text}'


async def test_a_surge_of_more_than_all_is_fine():
    await client(server()).create(DEPLOYMENT, workload(**rolling(maxSurge="150%", maxUnavailable=0)))


@pytest.mark.parametrize(("kind", "first"), [(DEPLOYMENT, "updatedReplicas"), (REPLICA_SET, "fullyLabeledReplicas")])
async def test_refused_counts(kind, first: str):
    there = client(server())
    await there.create(kind, workload())

    async def refused(**status: int) -> str:
        with pytest.raises(Invalid) as found:
            await there.patch(kind, "web", {"status": status}, "default", subresource="status")
        return str(found.value)

    said = await refused(**{first: 2}, replicas=1, readyReplicas=2, availableReplicas=3)
    assert said == (
        f'{kind.qualified} "web" is invalid: [status.{first}: Invalid value: 2: {MOST}, status.readyReplicas: '
        f"Invalid value: 2: {MOST}, status.availableReplicas: Invalid value: 3: {MOST}, status.availableReplicas: "
        "Invalid value: 3: cannot be greater than readyReplicas]"
    )
    assert f"status.terminatingReplicas: Invalid value: -1: {LEAST}" in await refused(terminatingReplicas=-1)


async def test_collisions_are_not_taken_back():
    there = client(server())
    await there.create(DEPLOYMENT, workload())
    await there.patch(DEPLOYMENT, "web", {"status": {"collisionCount": 2}}, "default", subresource="status")
    with pytest.raises(Invalid, match=r"status\.collisionCount: Invalid value: 1: cannot be decremented"):
        await there.patch(DEPLOYMENT, "web", {"status": {"collisionCount": 1}}, "default", subresource="status")


async def test_deletion_costs_of_pods():
    there = client(server())
    made = pod()
    made["metadata"]["annotations"] = {DELETION_COST: "-5"}
    made = await there.create(POD, made)
    name, namespace = made["metadata"]["name"], made["metadata"]["namespace"]
    with pytest.raises(Invalid, match=r'pod-deletion-cost\]: Invalid value: "08": must be a 32bit integer'):
        await there.patch(POD, name, {"metadata": {"annotations": {DELETION_COST: "08"}}}, namespace)
    await there.patch(POD, name, {"metadata": {"annotations": {DELETION_COST: "9"}}}, namespace)
