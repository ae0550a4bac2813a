"""What users of others' sets met with rollouts, names and claims (docs/field-cases.md)."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.groups.identity import is_leader
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD, SERVICE, STATEFUL_SET
from lwskit.runtime.objects import controller_of, generation_of, is_deleting, labels_of, uid_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.rollouts import group_ready, reaches
from tests.scenarios.support import (
    LEADERS,
    Sets,
    env_of,
    images,
    partition_of,
    pod_template,
    revision_key,
    seen,
    strategy,
    target_of,
)

FINALIZER = "example.com/mine"


async def replicas_stay(sets: Sets, count: int, duration: float | None = None) -> None:
    """For a while, in seconds, the leader workload asks for that many leaders and nobody makes or removes one."""
    before = await sets.pod_uids()

    async def same() -> None:
        assert (await sets.leader_workload())["spec"]["replicas"] == count
        assert await sets.pod_uids() == before

    await sets.cluster.consistently(same, duration)


async def test_a_rollout_goes_on_when_no_old_group_is_ready(cluster: TestCluster, sets: Sets):
    """F1: groups that are not ready are replaced without counting, so the partition keeps falling."""
    rolling = strategy(maxUnavailable=0, maxSurge=1)
    await sets.create(replicas=4, size=1, image="img:absent", rolloutStrategy=rolling)
    await sets.has_pods("llm-0", "llm-1", "llm-2", "llm-3")
    await sets.settled()
    async with cluster.observe(sets.workload) as workloads:
        await sets.set_image("img:v2")

        async def done() -> None:
            for name, image in (await images(sets)).items():
                if image == "img:v2":
                    await cluster.kubelet.ready(name)
            live = await sets.live()
            assert (await sets.conditions())[names.CONDITION_AVAILABLE] == "True"
            assert live["status"]["updatedReplicas"] == live["status"]["replicas"] == 4

        await cluster.eventually(done)
    partitions = seen(workloads, "llm", partition_of)
    assert partitions[partitions[:1] == [0] :] == [4, 3, 2, 1, 0]
    assert set((await images(sets)).values()) == {"img:v2"}


async def test_the_only_healthy_group_is_not_taken_first(cluster: TestCluster, sets: Sets):
    """F2: an unready group below the step line uses up the budget, so the ready one waits for it."""
    await sets.running(size=1)
    await cluster.kubelet.unready("llm-0")
    await sets.counts_ready(1)
    uids = await sets.pod_uids()
    await sets.set_image("img:v2")
    await replicas_stay(sets, 2)
    assert await sets.pod_uids() == uids
    await cluster.kubelet.ready("llm-0")
    await reaches(sets, 1, "v1", "v2*")
    await sets.ready()


async def test_an_old_group_that_restarts_in_a_rollout_stays_whole(cluster: TestCluster, sets: Sets):
    """F4: a leader that is replaced below the partition gets workers of its own revision."""
    await sets.running(replicas=4, size=2)
    old = revision_key((await sets.pods())["llm-0"])
    before = await sets.pod_uids(group=0)
    rolling = strategy(partition=2)
    await sets.patch({"spec": {"rolloutStrategy": rolling}})
    await sets.set_image("img:v2")
    await cluster.delete(POD, "llm-0")

    async def rebuilt() -> None:
        pods = await sets.live_pods()
        assert not {uid_of(pods[n]) for n in ("llm-0", "llm-0-1")} & set(before.values())
        assert {revision_key(pods[n]) for n in ("llm-0", "llm-0-1")} == {old}
        assert pods["llm-0-1"]["spec"]["containers"][0]["image"] == "img:v1"

    await cluster.eventually(rebuilt)


async def test_an_old_group_is_rebuilt_with_its_own_size(cluster: TestCluster, sets: Sets):
    """F5: size, policies and claims of a rebuilt group are those of its leader's revision, not of the live set."""
    await sets.running(replicas=2, size=4, rolloutStrategy=strategy(partition=1))
    before = await sets.pod_uids(group=0)
    await sets.patch({"spec": {"leaderWorkerTemplate": {"size": 2}}})
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2", "llm-0-3", "llm-1", "llm-1-1")
    await cluster.delete(POD, "llm-0")

    async def rebuilt() -> None:
        pods = await sets.live_pods()
        group = [pods[n] for n in ("llm-0", "llm-0-1", "llm-0-2", "llm-0-3")]
        assert not {uid_of(p) for p in group} & set(before.values())
        for pod in group:
            assert pod["metadata"]["annotations"][names.SIZE_ANNOTATION] == "4"
            assert env_of(pod)["LWS_GROUP_SIZE"] == "4"
        assert (await cluster.get(STATEFUL_SET, "llm-0"))["spec"]["replicas"] == 3

    await cluster.eventually(rebuilt)


async def test_a_set_comes_up_without_surge(cluster: TestCluster, sets: Sets):
    """F7: nothing is rolled out while a set comes up, so it has no surge groups; with a partition it is as with others.

    A partition that is not 0 lets unready groups count as a rollout: surge is asked for until they are ready.
    """
    async with cluster.observe(sets.workload) as workloads:
        await sets.running("plain", replicas=6, size=1, rolloutStrategy=strategy(maxUnavailable=2, maxSurge=3))
        rolling = strategy(maxUnavailable=2, maxSurge=3, partition=9)
        await sets.create("held", replicas=6, size=1, rolloutStrategy=rolling)

        async def surged() -> None:
            assert (await sets.leader_workload("held"))["spec"]["replicas"] == 9

        await cluster.eventually(surged)
        await sets.ready("held")
        await sets.settled()
    plain, held = seen(workloads, "plain", target_of), seen(workloads, "held", target_of)
    assert {replicas for replicas, _ in plain} == {6}
    assert held[0][0] == held[-1][0] == 6
    assert max(replicas for replicas, _ in held) == 9


async def test_surge_lasts_until_the_last_group_is_done(cluster: TestCluster, sets: Sets):
    """F8: without unavailable groups the surge group goes only when group 0 is ready and updated."""
    await sets.running(replicas=2, size=1, rolloutStrategy=strategy(maxUnavailable=0, maxSurge=1))
    await sets.set_image("img:v2")
    await group_ready(sets, 2, "img:v2")
    await reaches(sets, 1, "v1", "v2*", "v2")
    await group_ready(sets, 1)
    await reaches(sets, 0, "v2*", "v2", "v2")
    await replicas_stay(sets, 3)
    await group_ready(sets, 0)
    await reaches(sets, 0, "v2", "v2")


async def test_scaling_up_in_an_update_makes_no_group_in_vain(cluster: TestCluster, sets: Sets):
    """F8: while there are fewer leaders than wanted, just the number wanted is asked for."""
    await sets.running(replicas=2, size=1, rolloutStrategy=strategy(maxUnavailable=0, maxSurge=1))
    async with cluster.observe(sets.workload) as workloads:
        fields = {"replicas": 3, "leaderWorkerTemplate": {"workerTemplate": pod_template("img:v2")}}
        await sets.patch({"spec": fields})

        await sets.ready()
        await sets.settled()
    asked = seen(workloads, "llm", lambda w: w["spec"]["replicas"])
    # The surge of the update comes after that, and goes with it.
    assert asked[asked[:1] == [2] :] == [3, 4, 3]


async def test_surge_stays_while_a_partition_holds_old_groups(cluster: TestCluster, sets: Sets):
    """F10: with surge and a partition the further groups stay until the partition is 0 again."""
    rolling = strategy(maxUnavailable=1, maxSurge=1, partition=2)
    await sets.running(replicas=4, size=1, rolloutStrategy=rolling)
    await sets.settled()
    await sets.set_image("img:v2")

    async def held() -> None:
        tags = await images(sets)
        assert [tags[f"llm-{i}"] for i in range(5)] == ["img:v1"] * 2 + ["img:v2"] * 3
        assert (await sets.live())["status"]["updatedReplicas"] == 3

    async with cluster.kubelet.playing():
        await cluster.eventually(held)
        await cluster.consistently(held)
        await sets.patch({"spec": {"rolloutStrategy": strategy(maxUnavailable=1, maxSurge=1, partition=0)}})
    await sets.ready()
    assert set((await images(sets)).values()) == {"img:v2"}
    await sets.has_pods("llm-0", "llm-1", "llm-2", "llm-3")


async def test_surge_that_a_queue_holds_back(cluster: TestCluster, sets: Sets):
    """F16: surge groups look like all others to a queue; while it holds them the rollout waits, and then goes on."""
    template = pod_template("img:v1", labels={"kueue.x-k8s.io/queue-name": "q"})
    rolling = strategy(maxUnavailable=0, maxSurge=2)
    await sets.running(replicas=2, size=2, template=template, rolloutStrategy=rolling)
    after = pod_template("img:v2", labels={"kueue.x-k8s.io/queue-name": "q"})
    await sets.patch({"spec": {"leaderWorkerTemplate": {"workerTemplate": after}}})
    await sets.has_pods(*(f"llm-{i}{worker}" for i in range(4) for worker in ("", "-1")))
    await replicas_stay(sets, 4)
    pods = await sets.pods()
    for index in (2, 3):
        leader, worker = pods[f"llm-{index}"], pods[f"llm-{index}-1"]
        for pod in (leader, worker):
            assert labels_of(pod)["kueue.x-k8s.io/queue-name"] == "q"
            assert labels_of(pod)[names.GROUP_INDEX_LABEL] == str(index)
        assert (controller_of(leader) or {})["name"] == "llm"
        assert (controller_of(worker) or {})["name"] == f"llm-{index}"
    await sets.ready()


async def test_a_group_that_is_scaled_away_leaves_nothing(cluster: TestCluster, sets: Sets):
    """F17: workers belong to their leader's UID, so with it they go, and their StatefulSet too."""
    await sets.running()
    leader = (await sets.pods())["llm-1"]
    owner = controller_of(await cluster.get(STATEFUL_SET, "llm-1"))
    assert owner is not None
    assert (owner["kind"], owner["uid"], owner["blockOwnerDeletion"]) == ("Pod", uid_of(leader), True)
    await sets.scale(1)

    async def gone() -> None:
        for kind in (POD, STATEFUL_SET, SERVICE):
            assert await cluster.list(kind, f"{names.GROUP_INDEX_LABEL}=1") == []
        assert await cluster.names(STATEFUL_SET) == ["llm", "llm-0"]

    await cluster.eventually(gone)


async def test_the_last_of_several_updates_wins(cluster: TestCluster, sets: Sets):
    """F19: updates during an update end at the last one, and other numbers of groups make no revision."""
    await sets.running(replicas=3, size=2)
    await sets.set_image("img:v2")
    await group_ready(sets, 2, "img:v2")
    await sets.scale(4)
    await sets.set_image("img:v3")

    async def acted_on() -> None:
        # What the StatefulSet controller had begun before it saw the last update is done.
        workload = await sets.leader_workload()
        assert workload["spec"]["template"]["spec"]["containers"][0]["image"] == "img:v3"
        assert workload["status"]["observedGeneration"] == generation_of(workload)

    await cluster.eventually(acted_on)
    async with cluster.observe(POD) as pods:
        await sets.ready()
        await sets.settled()
    made = [c.obj for c in pods.changes if c.type == "ADDED" and is_leader(c.obj)]
    assert not [p for p in made if "v2" in p["spec"]["containers"][0]["image"]]
    assert set((await images(sets)).values()) == {"img:v3"}
    before, uids = await sets.revisions(), await sets.pod_uids()
    await sets.scale(3)
    await sets.ready()
    assert await sets.revisions() == before
    assert (await sets.pod_uids()).items() <= uids.items()


@pytest.mark.virtual_only("an hour passes")
async def test_a_surge_group_that_never_starts_makes_no_churn(cluster: TestCluster, sets: Sets):
    """F20: partition and number of groups are decided together, so nothing is made and removed in turns."""
    await sets.running(replicas=2, size=2, rolloutStrategy=strategy(maxUnavailable=0, maxSurge=1))
    await sets.set_image("img:v2")
    await sets.has_pods("llm-0", "llm-0-1", "llm-1", "llm-1-1", "llm-2", "llm-2-1")
    await sets.settled()
    pods, workload = await sets.pod_uids(), await sets.leader_workload()
    await cluster.clock.sleep(3600)
    assert await sets.pod_uids() == pods
    assert (await sets.leader_workload())["metadata"]["generation"] == workload["metadata"]["generation"]


async def terminates(cluster: TestCluster, sets: Sets, policy: str, wanted: set[str]) -> None:
    """Delete leader llm-1, which somebody keeps for a while; just these pods of its group terminate with it."""
    await sets.running(podTerminationPolicy=policy)
    await cluster.patch(POD, "llm-1", {"metadata": {"finalizers": [FINALIZER]}})
    workers = await sets.pod_uids(group=1)
    await cluster.delete(POD, "llm-1", "Background")

    async def going() -> None:
        assert is_deleting((await sets.pods())["llm-1"])

    await cluster.eventually(going)

    async def as_wanted() -> None:
        left = {n for n, p in (await sets.pods()).items() if n.startswith("llm-1-") and not is_deleting(p)}
        assert {n for n in workers if n.startswith("llm-1-")} - left == wanted

    await cluster.eventually(as_wanted)
    await cluster.consistently(as_wanted)


@pytest.mark.parametrize(("policy", "gone"), [("Default", set[str]()), ("Parallel", {"llm-1-1", "llm-1-2"})])
async def test_workers_end_with_their_leader_or_after_it(cluster: TestCluster, sets: Sets, policy: str, gone: set[str]):
    """F31: with Parallel workers terminate at the same time, so one grace period passes and not two."""
    await terminates(cluster, sets, policy, gone)
    before = await sets.pod_uids(group=1)
    await cluster.patch(POD, "llm-1", {"metadata": {"finalizers": None}})

    async def another() -> None:
        pods = await sets.live_pods()
        group = {n: uid_of(pods[n]) for n in ("llm-1", "llm-1-1", "llm-1-2")}
        assert not set(group.values()) & set(before.values())

    await cluster.eventually(another)
    await sets.ready()


async def test_a_leader_that_says_it_is_a_worker_gets_no_workers(cluster: TestCluster, sets: Sets):
    """F40: workers of workers would never end; the set is told by an event."""
    leader = pod_template("img:v1")
    leader["metadata"] = {"annotations": {names.LEADER_NAME_ANNOTATION: "llm-0"}}
    await sets.create(replicas=1, leader=leader)
    await sets.has_pods("llm-0")
    note = (
        f"leader pod {cluster.namespace}/llm-0 contains mistake annotation '{names.LEADER_NAME_ANNOTATION}': "
        "requires Kubernetes ≥v1.27 or v1.26 with StatefulSetStartOrdinal feature"
    )
    await sets.has_event("FailedCreate", note, type="Warning")
    await sets.settled()
    assert await cluster.names(STATEFUL_SET) == ["llm"]


async def test_no_service_for_a_leader_that_goes(cluster: TestCluster, sets: Sets):
    """F67: a deletion is seen before a Service is made."""
    await sets.running(networkConfig={"subdomainPolicy": "UniquePerReplica"})
    await cluster.patch(POD, "llm-1", {"metadata": {"finalizers": [FINALIZER]}})
    await cluster.delete(POD, "llm-1", "Background")

    async def going() -> None:
        assert is_deleting((await sets.pods())["llm-1"])

    await cluster.eventually(going)
    # News of the pod and of its Service reach the manager by different ways.
    await sets.settled()
    await cluster.delete(SERVICE, "llm-1")

    async def one() -> None:
        assert await cluster.names(SERVICE) == ["llm-0"]

    await cluster.eventually(one)
    await cluster.consistently(one)
    await cluster.patch(POD, "llm-1", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("policy", ["Shared", "UniquePerReplica"])
async def test_services_are_found_by_the_sets_name(cluster: TestCluster, sets: Sets, policy: str):
    """F68: Services carry the label with the set's name."""
    await sets.running(size=1, networkConfig={"subdomainPolicy": policy})
    found = [s["metadata"]["name"] for s in await cluster.list(SERVICE, f"{names.NAME_LABEL}=llm")]
    assert sorted(found) == (["llm"] if policy == "Shared" else ["llm-0", "llm-1"])


@pytest.mark.parametrize(("policy", "subdomains"), [("Shared", ("f", "f")), ("UniquePerReplica", ("f-0", "f-1"))])
async def test_where_pods_are_found(sets: Sets, policy: str, subdomains: tuple[str, str]):
    """F70: a pod is found under its name, below the set's or below its leader's."""
    await sets.running("f", size=2, networkConfig={"subdomainPolicy": policy})
    for name, pod in (await sets.pods("f")).items():
        subdomain = subdomains[int(labels_of(pod)[names.GROUP_INDEX_LABEL])]
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (name, subdomain)


async def test_names_of_pods(cluster: TestCluster, sets: Sets):
    """F71: a leader is called by set and group, a worker by set, group and place in it."""
    await sets.running("f", size=2)
    assert sorted(await sets.pods("f")) == ["f-0", "f-0-1", "f-1", "f-1-1"]
    assert sorted(p["metadata"]["name"] for p in await cluster.list(POD, LEADERS)) == ["f-0", "f-1"]
    assert (await cluster.get(LEADER_WORKER_SET, "f"))["status"]["replicas"] == 2


async def test_an_old_group_keeps_its_claims_policy(cluster: TestCluster, sets: Sets):
    """F107: what becomes of the claims of a rebuilt group is said by its leader's revision."""
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    policy = {"whenDeleted": "Retain", "whenScaled": "Retain"}
    group = {"volumeClaimTemplates": [claim], "persistentVolumeClaimRetentionPolicy": policy}
    await sets.running(size=2, group=group, rolloutStrategy=strategy(partition=1))
    first = uid_of((await sets.pods())["llm-0"])
    changed = {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"}}
    await sets.patch({"spec": {"leaderWorkerTemplate": changed}})

    async def rolled() -> None:
        workers = await cluster.get(STATEFUL_SET, "llm-1")
        assert workers["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"

    await cluster.eventually(rolled)
    await cluster.delete(POD, "llm-0")

    async def rebuilt() -> None:
        owner = controller_of(await cluster.get(STATEFUL_SET, "llm-0"))
        assert owner is not None
        assert owner["uid"] != first
        workers = await cluster.get(STATEFUL_SET, "llm-0")
        assert workers["spec"]["persistentVolumeClaimRetentionPolicy"] == policy

    await cluster.eventually(rebuilt)
