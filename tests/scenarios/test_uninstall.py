"""Without the manager: nothing that it has made holds up what others delete."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import NAMESPACE, STATEFUL_SET
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import Runnable, TestCluster
from tests.scenarios.manager import manager
from tests.scenarios.support import ALL_KINDS, set_object


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: the test starts and ends the manager itself."""
    return ()


async def test_a_namespace_can_be_deleted_when_the_manager_is_gone(cluster: TestCluster):
    """F124: sets at work have no finalizer of ours, so that after an uninstallation their namespace goes entirely."""
    elsewhere = f"{cluster.namespace}-goes"
    client = cluster.client
    await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})

    async def listed() -> list[Obj]:
        return [o for kind in ALL_KINDS for o in (await client.list(kind, elsewhere))["items"]]

    async with manager(cluster):
        made = set_object(replicas=2)
        made["metadata"]["namespace"] = elsewhere
        await client.create(LEADER_WORKER_SET, made)

        async def at_work() -> None:
            workloads = (await client.list(STATEFUL_SET, elsewhere))["items"]
            assert {w["metadata"]["name"] for w in workloads} == {"llm", "llm-0", "llm-1"}

        await cluster.eventually(at_work)
    assert [o["metadata"]["name"] for o in await listed() if o["metadata"].get("finalizers")] == []
    await client.delete(NAMESPACE, elsewhere)

    async def gone() -> None:
        assert elsewhere not in [n["metadata"]["name"] for n in (await client.list(NAMESPACE))["items"]]

    # What is left at its first look a namespace's controller looks at again after half of the pods' grace.
    await cluster.eventually(gone, 120)
    assert await listed() == []
