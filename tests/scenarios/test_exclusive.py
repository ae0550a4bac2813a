"""Exclusive placement: workers wait until their leader has a node, and follow it (specification: 20 §10.2 item 19)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from lwskit.api import names
from lwskit.runtime.errors import NotFound
from lwskit.runtime.kinds import NODE, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import TestCluster
from tests.scenarios.nodes import beating
from tests.scenarios.support import Sets

RACK = "cloud/rack"
ALONE = {"annotations": {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: RACK}}


@pytest.fixture
async def racks(cluster: TestCluster) -> AsyncIterator[dict[str, str]]:
    """A node by rack; that of no rack has no such label. They belong to nobody, so the test may bind pods to them."""
    nodes = {rack: f"{cluster.namespace}-{rack or 'none'}" for rack in ("a", "b", "")}
    for rack, name in nodes.items():
        labels = {RACK: rack} if rack else {}
        node: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        await cluster.client.create(NODE, node)
    async with beating(cluster, *nodes.values()):
        yield nodes
    for name in nodes.values():
        await cluster.client.delete(NODE, name)


async def bind(cluster: TestCluster, pod: str, node: str) -> None:
    """Give a pod a node, as a scheduler does."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": cluster.namespace},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await cluster.client.create(POD, body, subresource="binding")


async def selector_of(cluster: TestCluster, workload: str) -> dict[str, Any] | None:
    """The node selector of a workers' StatefulSet, None without one. Raises NotFound."""
    return (await cluster.get(STATEFUL_SET, workload))["spec"]["template"]["spec"].get("nodeSelector")


async def test_workers_wait_for_their_leaders_node_and_follow_it(
    cluster: TestCluster, sets: Sets, racks: dict[str, str]
):
    """20 §10.2 item 19: no worker StatefulSet before the leader has a node; then with that node's domain."""
    await sets.create(metadata=ALONE)
    await sets.has_pods("llm-0", "llm-1")

    async def alone() -> None:
        assert await cluster.names(STATEFUL_SET) == ["llm"]

    await cluster.consistently(alone)
    await bind(cluster, "llm-1", racks["b"])

    async def followed() -> None:
        assert await cluster.names(STATEFUL_SET) == ["llm", "llm-1"]
        assert await selector_of(cluster, "llm-1") == {RACK: "b"}

    await cluster.eventually(followed)
    await bind(cluster, "llm-0", racks["a"])

    async def both() -> None:
        assert await selector_of(cluster, "llm-0") == {RACK: "a"}

    await cluster.eventually(both)
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2", "llm-1", "llm-1-1", "llm-1-2")
    for name, pod in (await sets.pods()).items():
        affinity = pod["spec"].get("affinity") or {}
        leader = pod["metadata"]["labels"][names.WORKER_INDEX_LABEL] == names.LEADER_INDEX
        assert ("podAffinity" in affinity, "podAntiAffinity" in affinity) == (leader, leader), name


async def test_a_node_without_the_label_is_told_until_it_has_it(
    cluster: TestCluster, sets: Sets, racks: dict[str, str]
):
    """20 §10.2 item 19: workers are not put anywhere while the domain is unknown; it is tried again."""
    await sets.create(replicas=1, metadata=ALONE)
    await sets.has_pods("llm-0")
    await bind(cluster, "llm-0", racks[""])

    async def alone() -> None:
        with pytest.raises(NotFound):
            await cluster.get(STATEFUL_SET, "llm-0")

    await cluster.consistently(alone)
    await cluster.client.patch(NODE, racks[""], {"metadata": {"labels": {RACK: "c"}}})

    async def followed() -> None:
        assert await selector_of(cluster, "llm-0") == {RACK: "c"}

    await cluster.eventually(followed)


async def test_a_node_that_is_not_there_is_waited_for(cluster: TestCluster, sets: Sets):
    """F56: no workers are made while the leader's node cannot be read; once it is there they follow the leader."""
    node = f"{cluster.namespace}-late"
    await sets.create(replicas=1, metadata=ALONE)
    await sets.has_pods("llm-0")
    await bind(cluster, "llm-0", node)

    async def alone() -> None:
        assert await cluster.names(STATEFUL_SET) == ["llm"]

    await cluster.consistently(alone)
    await cluster.client.create(
        NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": {RACK: "z"}}}
    )
    try:

        async def followed() -> None:
            assert await selector_of(cluster, "llm-0") == {RACK: "z"}

        await cluster.eventually(followed)
    finally:
        await cluster.client.delete(NODE, node)


async def test_a_recreated_group_may_go_elsewhere(cluster: TestCluster, sets: Sets, racks: dict[str, str]):
    """20 §10.2 item 19: the domain is that of the leader that is there, not of the one before."""
    await sets.create(replicas=1, size=2, metadata=ALONE)
    await sets.has_pods("llm-0")
    await bind(cluster, "llm-0", racks["a"])
    await sets.has_pods("llm-0", "llm-0-1")
    first = (await cluster.get(POD, "llm-0"))["metadata"]["uid"]
    # No kubelet is there that would end the pod gracefully.
    await cluster.client.delete(POD, "llm-0", cluster.namespace, grace_seconds=0)

    async def another() -> None:
        leader = await cluster.get(POD, "llm-0")
        assert leader["metadata"]["uid"] != first
        assert not leader["spec"].get("nodeName")

    await cluster.eventually(another)
    await bind(cluster, "llm-0", racks["b"])

    async def followed() -> None:
        assert await selector_of(cluster, "llm-0") == {RACK: "b"}

    await cluster.eventually(followed)
