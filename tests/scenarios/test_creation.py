"""A new set: its workloads, pods, Services, revision and labels (specification: 20 §1–§5, 10 §8–§9)."""

from __future__ import annotations

import hashlib

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import AlreadyExists, ConnectionFailed
from lwskit.runtime.kinds import POD, SERVICE
from lwskit.runtime.objects import controller_of, labels_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.support import Sets, env_of, pod_template, revision_key, set_object

SIX = ("llm-0", "llm-0-1", "llm-0-2", "llm-1", "llm-1-1", "llm-1-2")


async def test_a_set_becomes_leaders_and_workers_with_their_owners(cluster: TestCluster, sets: Sets):
    """20 §1 and §14: names and ownership; the leader StatefulSet belongs to the set, a worker one to its leader pod."""
    created = await sets.create()
    await sets.has_pods(*SIX)
    assert await cluster.names(sets.workload) == ["llm", "llm-0", "llm-1"]
    pods = await sets.pods()
    owner = controller_of(await sets.leader_workload())
    assert owner is not None
    assert (owner["apiVersion"], owner["kind"], owner["uid"]) == (
        names.API_VERSION,
        names.KIND,
        created["metadata"]["uid"],
    )
    assert owner["blockOwnerDeletion"] is True
    for leader in ("llm-0", "llm-1"):
        owner = controller_of(await cluster.get(sets.workload, leader))
        assert owner is not None
        assert (owner["apiVersion"], owner["kind"], owner["name"], owner["uid"]) == (
            "v1",
            "Pod",
            leader,
            pods[leader]["metadata"]["uid"],
        )


async def test_the_leader_template_defaults_to_the_worker_template(sets: Sets):
    """20 §14 line 14: given leaderTemplate nil, the leader template equals workerTemplate."""
    await sets.create(replicas=1, size=2, image="img:only")
    await sets.has_pods("llm-0", "llm-0-1")
    assert {p["spec"]["containers"][0]["image"] for p in (await sets.pods()).values()} == {"img:only"}


async def test_leader_and_worker_templates_may_differ(sets: Sets):
    """20 §5, §10.4: leaders come from leaderTemplate, workers from workerTemplate."""
    await sets.create(replicas=1, size=2, image="img:worker", leader=pod_template("img:leader", "leader"))
    await sets.has_pods("llm-0", "llm-0-1")
    pods = await sets.pods()
    assert pods["llm-0"]["spec"]["containers"][0]["image"] == "img:leader"
    assert pods["llm-0-1"]["spec"]["containers"][0]["image"] == "img:worker"


async def test_a_size_of_one_has_no_worker_workloads(cluster: TestCluster, sets: Sets):
    """20 §14 line 57: given size 1, no worker StatefulSet and leaders alone decide readiness."""
    await sets.running(size=1)
    assert await cluster.names(sets.workload) == ["llm"]
    assert sorted(await sets.pods()) == ["llm-0", "llm-1"]


async def test_worker_workloads_need_no_ready_leader(cluster: TestCluster, sets: Sets):
    """20 §14 line 58: given LeaderCreated, worker StatefulSets appear at once."""
    await sets.create()

    async def created() -> None:
        assert await cluster.names(sets.workload) == ["llm", "llm-0", "llm-1"]

    await cluster.eventually(created)
    assert not any((p.get("status") or {}).get("phase") == "Running" for p in (await sets.pods()).values())


async def test_leader_ready_waits_for_each_leader(cluster: TestCluster, sets: Sets):
    """20 §14 line 58: given LeaderReady, worker StatefulSets appear only for ready leaders."""
    await sets.create(startupPolicy="LeaderReady")
    await sets.has_pods("llm-0", "llm-1")

    async def none() -> None:
        assert await cluster.names(sets.workload) == ["llm"]

    await cluster.consistently(none)
    await cluster.kubelet.ready("llm-1")
    await sets.has_pods("llm-0", "llm-1", "llm-1-1", "llm-1-2")
    await cluster.kubelet.ready("llm-0")
    await sets.has_pods(*SIX)


async def test_metadata_of_the_set_reaches_workloads_and_not_pods(cluster: TestCluster, sets: Sets):
    """20 §14 line 15: labels and annotations of the set are on both StatefulSets, not on pods; controller keys win."""
    labels = {"team": "inference", names.REVISION_LABEL: "mine"}
    await sets.create(metadata={"labels": labels, "annotations": {"note": "hello", names.REPLICAS_ANNOTATION: "77"}})
    await sets.has_pods(*SIX)
    for name in ("llm", "llm-0"):
        workload = await cluster.get(sets.workload, name)
        assert labels_of(workload)["team"] == "inference"
        assert labels_of(workload)[names.REVISION_LABEL] != "mine"
        assert workload["metadata"]["annotations"]["note"] == "hello"
    assert (await sets.leader_workload())["metadata"]["annotations"][names.REPLICAS_ANNOTATION] == "2"
    for pod in (await sets.pods()).values():
        assert "team" not in labels_of(pod)
        assert "note" not in (pod["metadata"].get("annotations") or {})


async def test_workloads_carry_their_role(cluster: TestCluster, sets: Sets):
    """20 §14 line 21: StatefulSets carry role leader or worker."""
    await sets.create()
    await sets.has_pods(*SIX)
    assert labels_of(await cluster.get(sets.workload, "llm"))[names.ROLE_LABEL] == "leader"
    assert labels_of(await cluster.get(sets.workload, "llm-1"))[names.ROLE_LABEL] == "worker"


@pytest.mark.parametrize(
    ("replicas", "rolling", "expected"),
    [
        (1, {"maxUnavailable": 2, "maxSurge": 1}, 3),
        (1, {"maxUnavailable": 0, "maxSurge": 2}, 1),
        (0, {"maxUnavailable": 1, "maxSurge": 0}, 1),
        (2, {"maxUnavailable": 1, "maxSurge": "50%"}, 2),
    ],
)
async def test_max_unavailable_of_the_leader_workload(
    cluster: TestCluster, sets: Sets, replicas: int, rolling: dict[str, object], expected: int
):
    """20 §14 line 17: mu=2 ms=1 N=1 gives 3; mu=0 ms=2 N=1 gives 1; N=0 gives 1; N=2 mu=1 ms=50% gives 2."""
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    await sets.create(replicas=replicas, size=1, rolloutStrategy=strategy)

    async def applied() -> None:
        workload = await sets.leader_workload()
        assert workload["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == expected

    await cluster.eventually(applied)


async def test_the_pod_webhook_sets_labels(sets: Sets):
    """10 §8.3, §8.6: group index and key, worker index, and the leader's name and address on workers."""
    await sets.create()
    await sets.has_pods(*SIX)
    pods = await sets.pods()
    namespace = sets.cluster.namespace
    for index in ("0", "1"):
        key = hashlib.sha1(f"{namespace}/llm-{index}".encode()).hexdigest()
        for worker in ("0", "1", "2"):
            pod = pods[f"llm-{index}" + (f"-{worker}" if worker != "0" else "")]
            labels = labels_of(pod)
            assert labels[names.NAME_LABEL] == "llm"
            assert labels[names.GROUP_INDEX_LABEL] == index
            assert labels[names.GROUP_KEY_LABEL] == key
            assert labels[names.WORKER_INDEX_LABEL] == worker
            assert pod["metadata"]["annotations"][names.SIZE_ANNOTATION] == "3"
            if worker != "0":
                annotations = pod["metadata"]["annotations"]
                assert annotations[names.LEADER_NAME_ANNOTATION] == f"llm-{index}"
                assert annotations[names.LEADER_ADDRESS_ANNOTATION] == f"llm-{index}.llm.{namespace}"


async def test_the_pod_webhook_sets_the_environment(sets: Sets):
    """10 §9: LWS variables come first in every container, and win over the user's of the same name."""
    template = pod_template("img:v1", initContainers=[{"name": "prepare", "image": "img:init"}])
    template["spec"]["containers"][0]["env"] = [
        {"name": "MINE", "value": "$(LWS_LEADER_ADDRESS)"},
        {"name": "LWS_GROUP_SIZE", "value": "99"},
    ]
    await sets.create(template=template)
    await sets.has_pods(*SIX)
    pod = (await sets.pods())["llm-1-2"]
    address = f"llm-1.llm.{sets.cluster.namespace}"
    assert list(env_of(pod).items()) == [
        ("LWS_LEADER_ADDRESS", address),
        ("LWS_GROUP_SIZE", "3"),
        ("LWS_WORKER_INDEX", "2"),
        ("MINE", "$(LWS_LEADER_ADDRESS)"),
    ]
    assert [e["name"] for e in pod["spec"]["initContainers"][0]["env"]] == [
        "LWS_LEADER_ADDRESS",
        "LWS_GROUP_SIZE",
        "LWS_WORKER_INDEX",
    ]


async def test_hostname_and_subdomain_make_the_leader_address(sets: Sets):
    """10 §8.4: under Shared, pods are found in the set's own Service."""
    await sets.create(replicas=1)
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")
    pods = await sets.pods()
    assert {p["spec"]["subdomain"] for p in pods.values()} == {"llm"}
    assert pods["llm-0-2"]["spec"]["hostname"] == "llm-0-2"


async def test_the_worker_workload_starts_at_ordinal_one(cluster: TestCluster, sets: Sets):
    """20 §10.4: size - 1 replicas, in parallel, from ordinal 1, on the leader's revision."""
    await sets.create(replicas=1)
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")
    workload = await cluster.get(sets.workload, "llm-0")
    assert workload["spec"]["replicas"] == 2
    assert workload["spec"]["ordinals"] == {"start": 1}
    assert workload["spec"]["podManagementPolicy"] == "Parallel"
    assert revision_key(workload) == revision_key((await sets.pods())["llm-0"])


@pytest.mark.undisturbed("it counts requests")
async def test_a_worker_workload_that_is_there_already_is_no_failure(cluster: TestCluster, sets: Sets):
    """20 §14 line 62: given AlreadyExists on create, no event and no error. Here the first answer is lost."""
    made = matching("POST", "statefulsets$")

    def lag(request: HttpRequest) -> float:
        return 3.0 if request.path.endswith("statefulsets") else 0.0

    with cluster.slow_watches(lag):
        cluster.interceptors[0].lose(made, ConnectionFailed("the answer is lost"))
        await sets.create(replicas=1)
        await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")
    await sets.ready()
    lost = "Failed to create worker statefulset for leader pod llm-0: the answer is lost"
    await sets.has_event("FailedCreate", lost, type="Warning")
    assert [e["note"] for e in await sets.events() if e["type"] == "Warning"] == [lost]
    assert [r.status for r in cluster.interceptors[0].select(made)].count(409) == 1


async def test_a_workload_of_somebody_else_in_the_place_of_workers_is_told_of(cluster: TestCluster, sets: Sets):
    """20 §10.2 step 21: it is left alone. Without it the group gets its workers."""
    body = {
        "metadata": {"name": "llm-0"},
        "spec": {
            "replicas": 0,
            "serviceName": "other",
            "selector": {"matchLabels": {"app": "other"}},
            "template": {"metadata": {"labels": {"app": "other"}}, "spec": pod_template("img:other")["spec"]},
        },
    }
    await cluster.create(sets.workload, body)
    await sets.create(replicas=2)
    await sets.has_pods("llm-0", "llm-1", "llm-1-1", "llm-1-2")
    told = "workers llm-0 have no owner, so leader pod llm-0 gets none of its own; delete them"
    await sets.has_event("FailedCreate", told, type="Warning")
    assert (await cluster.get(sets.workload, "llm-0"))["spec"]["serviceName"] == "other"
    await cluster.delete(sets.workload, "llm-0")
    await sets.ready()


async def test_a_second_set_of_that_name_is_refused(cluster: TestCluster, sets: Sets):
    """The API server's own answer reaches the user: AlreadyExists."""
    await sets.create()
    with pytest.raises(AlreadyExists, match="llm"):
        await cluster.create(LEADER_WORKER_SET, set_object())


async def test_sets_do_not_disturb_each_other(sets: Sets):
    """20 §14 line 78 in the large: pods of one set are no part of another whose name begins alike."""
    await sets.create("llm", replicas=1, size=2)
    await sets.create("llm-b", replicas=1, size=2)
    await sets.has_pods("llm-0", "llm-0-1", name="llm")
    await sets.has_pods("llm-b-0", "llm-b-0-1", name="llm-b")


async def test_no_pods_for_no_replicas(cluster: TestCluster, sets: Sets):
    """20 §8.3: a set of zero replicas is available."""
    await sets.create(replicas=0)

    async def available() -> None:
        assert (await sets.conditions())[names.CONDITION_AVAILABLE] == "True"

    await cluster.eventually(available)
    assert await cluster.names(POD) == []
    assert "llm" in await cluster.names(SERVICE)
