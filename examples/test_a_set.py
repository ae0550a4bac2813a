"""Tests of a workload that runs in groups, as its developer writes them: python -m pytest examples/test_a_set.py

They need no cluster: the fixture `cluster` is one in this process, in virtual time, with nodes, a scheduler and the
manager of LeaderWorkerSets. With LWSKIT_CLUSTER=existing and a kubeconfig the same tests run on a cluster that has
LeaderWorkerSets installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lwskit.api import names
from lwskit.api.crds import crds
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.manager.undertest import manager
from lwskit.runtime.errors import Forbidden
from lwskit.runtime.kinds import POD, SERVICE
from lwskit.runtime.objects import Obj, is_true, labels_of
from lwskit.testing.cluster import ClusterOptions, Runnable, TestCluster


def server(**spec: Any) -> Obj:
    """The workload under test; in a project of one's own it would be read from the manifest that is deployed."""
    container = {
        "name": "server",
        "image": "registry.k8s.io/pause:3.9",
        "env": [{"name": "RENDEZVOUS", "value": "$(LWS_LEADER_ADDRESS):20000"}],
    }
    template = {"size": 3, "workerTemplate": {"spec": {"containers": [container]}}}
    return {"metadata": {"name": "llm"}, "spec": {"replicas": 2, "leaderWorkerTemplate": template, **spec}}


@pytest.fixture
def cluster_crds() -> Sequence[Obj]:
    """The kinds that the cluster serves besides its own."""
    return crds()


@pytest.fixture
def cluster_options() -> ClusterOptions:
    """A whole cluster: nothing is left out, so that pods start by themselves."""
    return ClusterOptions(without=frozenset(), nodes=3)


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """What runs on it while the test does."""
    return (manager,)


async def deployed(cluster: TestCluster) -> dict[str, Obj]:
    """The server, deployed and available; its pods by name."""
    await cluster.create(LEADER_WORKER_SET, server())
    return await available(cluster)


async def available(cluster: TestCluster) -> dict[str, Obj]:
    """Wait until all groups are ready; the pods by name."""

    async def ready() -> dict[str, Obj]:
        assert is_true(await cluster.get(LEADER_WORKER_SET, "llm"), names.CONDITION_AVAILABLE)
        pods = {p["metadata"]["name"]: p for p in await cluster.list(POD)}
        assert len(pods) == 6
        assert all(is_true(pod, "Ready") for pod in pods.values())
        return pods

    return await cluster.eventually(ready)


async def test_every_pod_finds_the_leader_of_its_group(cluster: TestCluster) -> None:
    """What a container is told of its group, and that the leader's name resolves before anything is ready."""
    pods = await deployed(cluster)
    for name, pod in pods.items():
        env = {e["name"]: e["value"] for e in pod["spec"]["containers"][0]["env"]}
        group = labels_of(pod)[names.GROUP_INDEX_LABEL]
        assert env["LWS_LEADER_ADDRESS"] == f"llm-{group}.llm.{cluster.namespace}"
        assert env["LWS_GROUP_SIZE"] == "3"
        assert env["LWS_WORKER_INDEX"] == (name.split("-")[2] if name.count("-") == 2 else "0")
    service = await cluster.get(SERVICE, "llm")
    assert service["spec"]["publishNotReadyAddresses"], "pods must find their leader before they are ready"


async def test_a_lost_worker_takes_its_own_group_along_and_no_other(cluster: TestCluster) -> None:
    """A group restarts as a whole, the others go on serving."""
    await deployed(cluster)
    before = await cluster.uids(POD)
    await cluster.delete(POD, "llm-1-2")

    async def restarted() -> set[str]:
        after = await cluster.uids(POD)
        assert after.keys() == before.keys()
        renewed = {name for name in after if after[name] != before[name]}
        assert "llm-1" in renewed
        assert "llm-1-1" in renewed
        return renewed

    assert await cluster.eventually(restarted) == {"llm-1", "llm-1-1", "llm-1-2"}
    await available(cluster)


async def test_a_mistake_is_refused_with_its_place(cluster: TestCluster) -> None:
    """A rollout that may take down nothing and add nothing can never go on."""
    stuck = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}}
    with pytest.raises(Forbidden, match=r"maxUnavailable: Invalid value: 0: must not be 0 when `maxSurge` is 0"):
        await cluster.create(LEADER_WORKER_SET, server(rolloutStrategy=stuck))
