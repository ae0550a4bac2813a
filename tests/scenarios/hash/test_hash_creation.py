"""A set in Hash mode comes to be (specification: 30 §2–§6, §8, §9)."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from lwskit.api import names
from lwskit.groups.identity import group_key
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import DEPLOYMENT, POD, REPLICA_SET, SERVICE, STATEFUL_SET
from lwskit.runtime.objects import Obj, annotations_of, condition_of, controller_of, is_true, labels_of, uid_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.observer import Observer
from tests.scenarios.hash.support import Group, HashSets
from tests.scenarios.support import env_of, pod_template, revision_key
from tests.scenarios.written import none_failed, nothing_at_rest, summary


def owner_uid(obj: Obj) -> str:
    """The UID of an object's controller."""
    owner = controller_of(obj)
    assert owner is not None
    return owner["uid"]


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_a_new_set(cluster: TestCluster, sets: HashSets):
    """30 §18 lines 6, 10: one revision, a Deployment with its label, a headless Service, no StatefulSet of the name."""
    lws = await sets.create(replicas=3, size=2)
    groups = await sets.has_groups(3, size=2)
    deployment = await sets.leader_workload()
    (revision,) = await sets.revisions()
    assert controller_of(deployment) == {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": "llm",
        "uid": uid_of(lws),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert revision_key(deployment) == revision_key(revision)
    spec = deployment["spec"]
    assert spec["replicas"] == 3
    assert spec["selector"] == {"matchLabels": {names.NAME_LABEL: "llm", names.WORKER_INDEX_LABEL: "0"}}
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    template = spec["template"]
    assert template["spec"]["subdomain"] == "llm"
    assert template["spec"]["readinessGates"] == [{"conditionType": names.GROUP_READY_GATE}]
    assert template["metadata"]["annotations"][names.GROUP_IDENTITY_ANNOTATION] == "Hash"
    assert template["metadata"]["labels"][names.REVISION_LABEL] == revision_key(revision)
    assert annotations_of(deployment)[names.REPLICAS_ANNOTATION] == "3"
    assert sorted(await cluster.names(STATEFUL_SET)) == sorted(g.host for g in groups.values())

    async def told() -> None:
        assert (await cluster.get(SERVICE, "llm"))["spec"]["clusterIP"] == "None"
        assert (await sets.conditions())["Progressing"] == "True"

    await cluster.eventually(told)
    assert "Available" not in await sets.conditions()
    event = await sets.has_event("GroupsProgressing", "Created leader deployment llm")
    assert event["related"]["name"] == revision["metadata"]["name"]


async def test_the_identity_of_a_group(cluster: TestCluster, sets: HashSets):
    """30 §18 line 13: key, host name, address; the workers' StatefulSet is named by the key, and the pods like it."""
    await sets.create(replicas=1, size=3)
    (group,) = (await sets.has_groups(1, size=3)).values()
    assert group.leader is not None
    assert re.fullmatch("[0-9a-f]{40}", group.key)
    assert labels_of(group.leader)[names.GROUP_INDEX_LABEL] == group.key
    assert group.host == f"llm-{group.key[:8]}"
    address = f"{group.host}.llm.{cluster.namespace}"
    assert env_of(group.leader) | {
        "LWS_LEADER_ADDRESS": address,
        "LWS_GROUP_SIZE": "3",
        "LWS_WORKER_INDEX": "0",
    } == env_of(group.leader)
    assert names.POD_DELETION_COST_ANNOTATION not in annotations_of(group.leader)
    (workers,) = (await sets.workers()).values()
    assert workers["metadata"]["name"] == group.host
    assert owner_uid(workers) == uid_of(group.leader)
    assert workers["spec"]["serviceName"] == "llm"
    assert workers["spec"]["ordinals"] == {"start": 1}
    notes = workers["spec"]["template"]["metadata"]["annotations"]
    assert notes[names.LEADER_NAME_ANNOTATION] == group.name
    assert notes[names.LEADER_ADDRESS_ANNOTATION] == address
    assert notes[names.GROUP_IDENTITY_ANNOTATION] == "Hash"
    assert sorted(w["metadata"]["name"] for w in group.workers) == [f"{group.host}-1", f"{group.host}-2"]
    for worker in group.workers:
        index = worker["metadata"]["name"].rpartition("-")[2]
        assert env_of(worker)["LWS_LEADER_ADDRESS"] == address
        assert env_of(worker)["LWS_WORKER_INDEX"] == labels_of(worker)[names.WORKER_INDEX_LABEL] == index


async def test_a_group_of_one_pod(cluster: TestCluster, sets: HashSets):
    """30 §18 line 11: no readiness gate and no StatefulSet; the gate is there at admission all the same."""
    async with cluster.observe(POD) as pods:
        await sets.running(replicas=2, size=1)
    deployment = await sets.leader_workload()
    assert "readinessGates" not in deployment["spec"]["template"]["spec"]
    assert await sets.workers() == {}
    first = [c.obj for c in pods.changes if c.type == "ADDED"]
    assert len(first) == 2
    for pod in first:
        assert pod["spec"]["schedulingGates"] == [{"name": names.GROUP_REPLACEMENT_GATE}]
        assert annotations_of(pod)[names.POD_DELETION_COST_ANNOTATION] == names.GATED_DELETION_COST
    assert condition_of((await sets.pods())[first[0]["metadata"]["name"]], names.GROUP_READY_GATE) is None


async def test_each_group_with_a_service_of_its_own(cluster: TestCluster, sets: HashSets):
    """30 §18 line 15: the subdomain is the host name, and a Service of that name belongs to the leader."""
    await sets.create(replicas=2, size=2, networkConfig={"subdomainPolicy": "UniquePerReplica"})
    groups = await sets.has_groups(2, size=2)
    assert sorted(await cluster.names(SERVICE, f"{names.NAME_LABEL}=llm")) == sorted(g.host for g in groups.values())
    for group in groups.values():
        assert group.leader is not None
        assert group.leader["spec"]["subdomain"] == group.host
        service = await cluster.get(SERVICE, group.host)
        assert owner_uid(service) == uid_of(group.leader)
        assert service["spec"]["selector"][names.GROUP_INDEX_LABEL] == group.key
        assert env_of(group.workers[0])["LWS_LEADER_ADDRESS"] == f"{group.host}.{group.host}.{cluster.namespace}"


def told(pods: Observer, group: Group) -> list[tuple[str, str]]:
    """What the leader's group-ready condition said, one after the other."""
    found: list[tuple[str, str]] = []
    for change in pods.of(group.name):
        condition = condition_of(change.obj, names.GROUP_READY_GATE)
        if condition is not None and (not found or found[-1] != (condition["status"], condition["reason"])):
            found.append((condition["status"], condition["reason"]))
    return found


@pytest.mark.undisturbed("it looks at each condition that is written")
async def test_a_leader_is_ready_with_its_group(cluster: TestCluster, sets: HashSets):
    """30 §18 line 26: False with the workers' StatefulSet, True when all are available, False when one is not."""
    async with cluster.observe(POD) as pods:
        await sets.create(replicas=1, size=3)
        (group,) = (await sets.has_groups(1, size=3)).values()
        await cluster.kubelet.ready(group.name)
        await sets.settled()
        live = await sets.leader(group.name)
        assert (is_true(live, "ContainersReady"), is_true(live, "Ready")) == (True, False)
        await sets.ready()
        await cluster.kubelet.unready(group.workers[0]["metadata"]["name"])

        async def unready() -> None:
            assert not is_true(await sets.leader(group.name), names.GROUP_READY_GATE)

        await cluster.eventually(unready)
    no, yes = ("False", "WorkerStatefulSetNotReady"), ("True", "WorkerStatefulSetReady")
    assert told(pods, group) == [no, yes, no]
    written = condition_of(await sets.leader(group.name), names.GROUP_READY_GATE)
    assert written is not None
    assert "message" not in written


async def test_workers_wait_for_the_containers_of_their_leader(cluster: TestCluster, sets: HashSets):
    """30 §18 line 27: with LeaderReady they come when its containers are ready, though the pod is not."""
    await sets.create(replicas=1, size=2, startupPolicy="LeaderReady")
    (group,) = (await sets.has_groups(1, size=1)).values()
    await sets.settled()
    assert await sets.workers() == {}
    assert condition_of(await sets.leader(group.name), names.GROUP_READY_GATE) is None
    await cluster.kubelet.ready(group.name)
    await sets.has_groups(1, size=2)
    assert not is_true(await sets.leader(group.name), "Ready")
    await sets.ready()


async def test_sub_groups(cluster: TestCluster, sets: HashSets):
    """30 §18 line 16: the keys of sub-groups are made of the group's key."""
    policy = {"subGroupPolicy": {"subGroupSize": 2, "subGroupPolicyType": "LeaderWorker"}}
    await sets.create(replicas=1, size=4, group=policy)
    (group,) = (await sets.has_groups(1, size=4)).values()
    found = {(labels_of(p)[names.SUBGROUP_INDEX_LABEL], labels_of(p)[names.SUBGROUP_KEY_LABEL]) for p in group.pods}
    assert found == {(index, group_key(group.key, index)) for index in ("0", "1")}
    assert labels_of(group.leader or {})[names.SUBGROUP_INDEX_LABEL] == "0"


@pytest.mark.undisturbed("it counts requests")
async def test_requests_for_a_set(cluster: TestCluster, sets: HashSets):
    """For each group what Ordinal mode writes, and besides one patch of the gate and two of the condition."""
    await sets.running()
    await sets.settled()
    none_failed(cluster)
    counts = summary(cluster)
    assert counts.pop("update leaderworkersets/llm/status") <= 8
    gates, conditions = Counter[str](), Counter[str]()
    for path in list(counts):
        if path.startswith("patch pods/"):
            (conditions if path.endswith("/status") else gates)[path] = counts.pop(path)
    assert counts == {
        "create controllerrevisions": 1,
        "patch deployments/llm": 1,
        "create services": 1,
        "create statefulsets": 2,
    }
    assert sorted(gates.values()) == [1, 1]
    assert sorted(conditions.values()) == [2, 2]

    async def told() -> None:
        found = Counter(e["reason"] for e in await sets.events() if e.get("related", {}).get("kind") == "Pod")
        assert found == {"GroupsProgressing": 2, "GroupReplacementAdmitted": 2}

    await cluster.eventually(told)
    reads = [r for r in cluster.interceptors[0].requests if r.verb == "get" and cluster.namespace in r.request.path]
    assert reads == []


@pytest.mark.undisturbed("it counts requests")
async def test_a_set_at_rest(cluster: TestCluster, sets: HashSets):
    """30 §18 lines 7, 40: nothing is written about a set at rest, whatever its watches do."""
    await sets.running()
    await sets.settled()
    await nothing_at_rest(cluster)
    assert len(await sets.revisions()) == 1


async def test_the_deletion_of_a_set(cluster: TestCluster, sets: HashSets):
    """All that belongs to a set goes with it."""
    await sets.running(replicas=2, size=2)
    await cluster.delete(LEADER_WORKER_SET, "llm")

    async def gone() -> None:
        for kind in (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, POD, SERVICE):
            assert await cluster.names(kind, names.NAME_LABEL) == [], kind

    await cluster.eventually(gone)


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_the_template_may_say_more(cluster: TestCluster, sets: HashSets):
    """What a user's leader template has of its own stays: other gates, other readiness gates, a deletion cost."""
    template = pod_template(
        "leader:1",
        "leader",
        schedulingGates=[{"name": "example.com/wait"}],
        readinessGates=[{"conditionType": "example.com/warm"}],
    )
    template["metadata"] = {"annotations": {names.POD_DELETION_COST_ANNOTATION: "7"}}
    await sets.create(replicas=1, size=2, leader=template)
    (group,) = (await sets.has_groups(1, size=2)).values()
    assert group.leader is not None
    assert group.leader["spec"]["schedulingGates"] == [{"name": "example.com/wait"}]
    kinds = [gate["conditionType"] for gate in group.leader["spec"]["readinessGates"]]
    assert kinds == ["example.com/warm", names.GROUP_READY_GATE]
    assert annotations_of(group.leader)[names.POD_DELETION_COST_ANNOTATION] == "7"
    await sets.has_event("GroupReplacementAdmitted", f"Leader pod {group.name} admitted for scheduling")
