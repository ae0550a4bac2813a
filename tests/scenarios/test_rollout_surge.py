"""Rolling updates with surge or a partition, and of other fields than the template (specification: 20 §3.6, §4, §6)."""

from __future__ import annotations

from lwskit.api import names
from lwskit.runtime.kinds import SERVICE
from lwskit.runtime.objects import is_true
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import Sets, env_of, images, partition_of, revision_key, strategy


async def test_services_of_surge_groups_come_and_go(cluster: TestCluster, sets: Sets):
    """20 §14 line 26: given surge, then extra per-replica Services appear and go."""
    network = {"subdomainPolicy": "UniquePerReplica"}
    rolling = strategy(maxUnavailable=0, maxSurge=2)
    await sets.running(replicas=2, size=2, networkConfig=network, rolloutStrategy=rolling)
    assert await cluster.names(SERVICE) == ["llm-0", "llm-1"]
    await sets.set_image("img:v2")

    async def more() -> None:
        assert await cluster.names(SERVICE) == ["llm-0", "llm-1", "llm-2", "llm-3"]

    await cluster.eventually(more)
    await sets.ready()

    async def fewer() -> None:
        assert await cluster.names(SERVICE) == ["llm-0", "llm-1"]

    await cluster.eventually(fewer)


async def test_broken_groups_are_replaced_with_surge_alone(cluster: TestCluster, sets: Sets):
    """20 §14 line 40: all groups broken, mu=0 ms=1 N=2 size 1; only pods of the new image ever get ready."""
    await sets.create(replicas=2, size=1, image="img:broken", rolloutStrategy=strategy(maxUnavailable=0, maxSurge=1))
    await sets.has_pods("llm-0", "llm-1")
    await sets.set_image("img:v2")

    async def done() -> None:
        for name, pod in (await sets.live_pods()).items():
            if pod["spec"]["containers"][0]["image"] == "img:v2" and not is_true(pod, "Ready"):
                await cluster.kubelet.ready(name)
        assert await images(sets) == {"llm-0": "img:v2", "llm-1": "img:v2"}
        assert (await sets.conditions())[names.CONDITION_AVAILABLE] == "True"

    await cluster.eventually(done)


async def test_another_subdomain_policy_is_rolled_out(cluster: TestCluster, sets: Sets):
    """20 §14 line 42: given subdomainPolicy change, then a rollout happens and DNS names follow."""
    await sets.running(replicas=2, size=2)
    before = await sets.pod_uids()
    assert (await sets.pods())["llm-1-1"]["spec"]["subdomain"] == "llm"
    await sets.patch({"spec": {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}})
    await sets.ready()
    await sets.settled()
    pods = await sets.pods()
    assert not set(before.values()) & {p["metadata"]["uid"] for p in pods.values()}
    for leader in ("llm-0", "llm-1"):
        for pod in (pods[leader], pods[f"{leader}-1"]):
            assert pod["spec"]["subdomain"] == leader
            assert env_of(pod)["LWS_LEADER_ADDRESS"] == f"{leader}.{leader}.{cluster.namespace}"
    assert await cluster.names(SERVICE) == ["llm", "llm-0", "llm-1"]


async def test_a_partition_keeps_old_groups_and_their_revision(cluster: TestCluster, sets: Sets):
    """20 §14 lines 12, 35, 48: partition below which nothing is updated, also from the first creation on."""
    await sets.running(replicas=3, size=2, rolloutStrategy=strategy(partition=1))
    assert partition_of(await sets.leader_workload()) == 1
    old = revision_key(await sets.leader_workload())
    await sets.set_image("img:v2")

    async def held() -> None:
        status = (await sets.live())["status"]
        assert (status["updatedReplicas"], status["readyReplicas"]) == (2, 3)
        assert (await sets.conditions())[names.CONDITION_AVAILABLE] == "True"
        assert partition_of(await sets.leader_workload()) == 1

    async with cluster.kubelet.playing():
        await cluster.eventually(held)
    await sets.settled()
    await held()
    assert revision_key((await sets.pods())["llm-0-1"]) == old
    assert len(await sets.revisions()) == 2
    await sets.patch({"spec": {"rolloutStrategy": strategy(partition=0)}})
    await sets.ready()
    assert set((await images(sets)).values()) == {"img:v2"}

    async def one_is_left() -> None:
        assert len(await sets.revisions()) == 1

    await cluster.eventually(one_is_left)


async def test_more_surge_than_replicas_is_capped(cluster: TestCluster, sets: Sets):
    """20 §14 lines 33, 37: N=2 ms=4 mu=1 is N=2 ms=2, which asks for three leaders at the start."""
    await sets.running(replicas=2, size=1, rolloutStrategy=strategy(maxSurge=4))
    await sets.set_image("img:v2")

    async def surged() -> None:
        workload = await sets.leader_workload()
        assert (workload["spec"]["replicas"], partition_of(workload)) == (3, 1)

    await cluster.eventually(surged)
    await sets.ready()
    await sets.has_pods("llm-0", "llm-1")
