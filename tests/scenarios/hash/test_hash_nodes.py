"""Hash mode with nodes: placement, and room for so many groups and no more (specification: 30 §6, §7)."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, condition_of, is_true
from lwskit.testing.cluster import ClusterOptions, TestCluster
from lwskit.testing.observer import Observer
from tests.scenarios.hash.support import HashSets
from tests.scenarios.support import strategy
from tests.scenarios.test_exclusive import ALONE, RACK, bind, racks

__all__ = ["racks"]

HALF = {"requests": {"cpu": "30"}}
"""Two such pods fill a node."""


async def test_workers_wait_for_their_leaders_node_and_follow_it(
    cluster: TestCluster, sets: HashSets, racks: dict[str, str]
):
    """30 §18 line 28: no workers and no condition while the leader has no node; then they go where it is."""
    await sets.create(replicas=1, size=2, metadata=ALONE)
    (group,) = (await sets.has_groups(1, size=1)).values()
    await sets.settled()
    assert await sets.workers() == {}
    assert condition_of(await sets.leader(group.name), names.GROUP_READY_GATE) is None
    await bind(cluster, group.name, racks["b"])

    async def followed() -> None:
        workers = await sets.workers()
        assert workers[group.host]["spec"]["template"]["spec"]["nodeSelector"] == {RACK: "b"}

    await cluster.eventually(followed)
    terms = (await sets.leader(group.name))["spec"]["affinity"]
    (near,) = terms["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert near["labelSelector"]["matchExpressions"] == [
        {"key": names.GROUP_KEY_LABEL, "operator": "In", "values": [group.key]}
    ]


class TestFull:
    """Two nodes with room for two groups of two pods, and a set of two groups."""

    @pytest.fixture
    def cluster_options(self) -> ClusterOptions:
        return ClusterOptions(without=frozenset(), nodes=2)

    @pytest.mark.virtual_only("its pods run on nodes that are full")
    @pytest.mark.parametrize("policy", ["PostTermination", "Immediate"])
    async def test_no_pod_is_without_a_place(self, cluster: TestCluster, sets: HashSets, policy: str):
        """Without surge every pod finds a node at once, through a rollout and the loss of a worker; those of Immediate
        do not, for they come while the former group still has its place."""
        async with cluster.observe(POD) as pods:
            await sets.create(
                replicas=2,
                size=2,
                template=template("img:v1"),
                rolloutStrategy=strategy(maxUnavailable=1),
                groupReplacementPolicy=policy,
            )
            await ready(sets, "img:v1")
            await sets.patch({"spec": {"leaderWorkerTemplate": {"workerTemplate": template("img:v2")}}})
            await ready(sets, "img:v2")
            group = next(iter((await sets.groups()).values()))
            await cluster.delete(POD, group.workers[0]["metadata"]["name"])

            async def gone() -> None:
                assert group.key not in await sets.groups()

            await cluster.eventually(gone)
            await ready(sets, "img:v2")
        assert bool(without_place(pods)) == (policy == "Immediate")

    @pytest.mark.virtual_only("its pods run on a kubelet that evicts them")
    async def test_an_evicted_leader(self, cluster: TestCluster, sets: HashSets):
        """30 §10: its group is ended, and the next one takes its place on the nodes."""
        await sets.create(replicas=2, size=2, template=template("img:v1"))
        await ready(sets, "img:v1")
        first, other = (await sets.groups()).values()
        async with cluster.observe(POD) as pods:
            body = {"metadata": {"annotations": {"embedded.k8s.test/fail": "Evicted"}}}
            await cluster.patch(POD, first.name, body)

            async def replaced() -> None:
                groups = await sets.groups()
                assert first.key not in groups
                assert len(groups) == 2
                assert groups[other.key].uids == other.uids

            await cluster.eventually(replaced)
            await ready(sets, "img:v1")
        assert not without_place(pods)


def template(image: str) -> Obj:
    """A pod that takes half of a node and is slow to stop, for the cluster's own scheduler."""
    notes = {"embedded.k8s.test/stop-delay": "5"}
    return {
        "metadata": {"annotations": notes},
        "spec": {"containers": [{"name": "c", "image": image, "resources": HALF}]},
    }


async def ready(sets: HashSets, image: str) -> None:
    """Wait until the set is available, all its pods with this image."""

    async def check() -> None:
        live = await sets.live()
        assert live["status"]["observedGeneration"] == live["metadata"]["generation"]
        assert is_true(live, "Available")
        pods = await sets.pods()
        assert len(pods) == 4
        assert {p["spec"]["containers"][0]["image"] for p in pods.values()} == {image}

    await sets.cluster.eventually(check)


def without_place(pods: Observer) -> set[str]:
    """The pods that a scheduler has found no node for at some time."""
    found: set[str] = set()
    for change in pods.changes:
        scheduled = condition_of(change.obj, "PodScheduled")
        if scheduled is not None and scheduled.get("reason") == "Unschedulable":
            found.add(change.name)
    return found
