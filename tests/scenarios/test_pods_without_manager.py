"""While nobody answers the webhooks: pods of sets wait, and nobody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from lwskit.admission import configurations
from lwskit.api import names
from lwskit.manager.development import CONFIGURATIONS
from lwskit.runtime.errors import InternalError
from lwskit.runtime.kinds import MUTATING_WEBHOOK_CONFIGURATION, POD, VALIDATING_WEBHOOK_CONFIGURATION
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import Runnable, TestCluster
from tests.scenarios.support import UNSCHEDULED


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: there is no manager."""
    return ()


@pytest.fixture
async def unanswered(cluster: TestCluster) -> AsyncIterator[None]:
    """The webhooks are registered at a Service that does not exist, and withdrawn at the end."""

    def client_config(path: str) -> Obj:
        return {"service": {"namespace": cluster.namespace, "name": "nobody", "path": path}}

    await cluster.client.create(MUTATING_WEBHOOK_CONFIGURATION, configurations.mutating(client_config))
    await cluster.client.create(VALIDATING_WEBHOOK_CONFIGURATION, configurations.validating(client_config))
    yield
    for kind, name in CONFIGURATIONS:
        await cluster.client.delete(kind, name)


def pod(name: str, labels: dict[str, str]) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": f"{name}-", "labels": labels},
        "spec": {"schedulerName": UNSCHEDULED, "containers": [{"name": "c", "image": "img:v1"}]},
    }


async def test_pods_of_sets_are_refused_and_others_are_not(cluster: TestCluster, unanswered: None) -> None:
    """10 §14 line 100: without a manager a pod of a set cannot be created, and any other pod can."""

    async def refused() -> str:
        try:
            await cluster.create(POD, pod("member", {names.NAME_LABEL: "llm", names.WORKER_INDEX_LABEL: "0"}))
        except InternalError as error:
            return str(error)
        raise AssertionError("the API server has not heard of the webhooks yet")

    assert names.MUTATE_POD_WEBHOOK in await cluster.eventually(refused)
    stranger = await cluster.create(POD, pod("stranger", {"app": "other"}))
    changed = await cluster.patch(POD, stranger["metadata"]["name"], {"metadata": {"labels": {"changed": "yes"}}})
    assert changed["metadata"]["labels"] == {"app": "other", "changed": "yes"}
    assert "env" not in changed["spec"]["containers"][0]
