"""What pods are given when they are created, as an API server stores it (specification: 10 §8, §10)."""

from __future__ import annotations

from lwskit.api import names
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, annotations_of, labels_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import Sets, env_of, pod_template

TPUS = {"limits": {names.TPU_RESOURCE: "4"}, "requests": {names.TPU_RESOURCE: "4"}}


def with_tpus(*containers: str) -> Obj:
    """A template whose containers of these names ask for TPUs, beside one that does not."""
    template = pod_template("img:v1", "side")
    template["spec"]["containers"] += [{"name": name, "image": "img:v1", "resources": TPUS} for name in containers]
    return template


def tpu_ids(pods: dict[str, Obj], container: int) -> dict[str, tuple[str, str]]:
    """Id and hosts of each pod's container."""
    found = {name: env_of(pod, container) for name, pod in pods.items()}
    return {
        name: (env.get(names.ENV_TPU_WORKER_ID, ""), env.get(names.ENV_TPU_WORKER_HOSTNAMES, ""))
        for name, env in found.items()
    }


async def test_a_leader_that_asks_for_tpus_is_one_of_the_hosts(sets: Sets) -> None:
    """10 §14 lines 91, 96: leader and workers get their ids and the same hosts, in the containers that ask."""
    await sets.create(replicas=1, size=3, template=with_tpus("train"))
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")
    pods = await sets.pods()
    hosts = "llm-0.llm,llm-0-1.llm,llm-0-2.llm"
    assert tpu_ids(pods, 1) == {"llm-0": ("0", hosts), "llm-0-1": ("1", hosts), "llm-0-2": ("2", hosts)}
    assert tpu_ids(pods, 0) == dict.fromkeys(pods, ("", ""))
    for name, pod in pods.items():
        told = annotations_of(pod).get(names.LEADER_REQUESTS_TPUS_ANNOTATION)
        assert told == (None if name == "llm-0" else "true")


async def test_workers_of_a_leader_without_tpus_are_counted_without_it(sets: Sets) -> None:
    """10 §14 line 91: two containers a worker, none in the leader: ids count workers' containers only."""
    await sets.create(replicas=1, size=3, leader=pod_template("img:v1"), template=with_tpus("a", "b"))
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")
    pods = await sets.pods()
    hosts = "llm-0-1.llm,llm-0-1.llm,llm-0-2.llm,llm-0-2.llm"
    assert not any(name.startswith("TPU_") for name in env_of(pods.pop("llm-0")))
    assert tpu_ids(pods, 1) == {"llm-0-1": ("0", hosts), "llm-0-2": ("2", hosts)}
    assert tpu_ids(pods, 2) == {"llm-0-1": ("1", hosts), "llm-0-2": ("3", hosts)}
    assert not any(names.LEADER_REQUESTS_TPUS_ANNOTATION in annotations_of(pod) for pod in pods.values())


async def test_an_excluded_leader_with_tpus_is_admitted(sets: Sets) -> None:
    """10 §14 lines 70, 91: a leader outside of the sub-groups is a host of its own, and sub-groups have theirs."""
    policy = {"subGroupSize": 2, "subGroupPolicyType": names.SUBGROUP_LEADER_EXCLUDED}
    await sets.create(replicas=1, size=5, template=with_tpus("train"), group={"subGroupPolicy": policy})
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2", "llm-0-3", "llm-0-4")
    first, second = "llm-0-1.llm,llm-0-2.llm", "llm-0-3.llm,llm-0-4.llm"
    assert tpu_ids(await sets.pods(), 1) == {
        "llm-0": ("0", "llm-0.llm"),
        "llm-0-1": ("0", first),
        "llm-0-2": ("1", first),
        "llm-0-3": ("0", second),
        "llm-0-4": ("1", second),
    }


async def test_hash_leaders_get_a_key_before_they_get_a_name(cluster: TestCluster) -> None:
    """10 §14 lines 82, 83, 86: as a ReplicaSet creates them; the server names them after they were admitted."""
    leader = pod_template("img:v1", subdomain="llm")
    leader["apiVersion"], leader["kind"] = "v1", "Pod"
    leader["metadata"] = {
        "generateName": "llm-6d5f7c9b8d-",
        "labels": {names.NAME_LABEL: "llm", names.WORKER_INDEX_LABEL: names.LEADER_INDEX},
        "annotations": {names.SIZE_ANNOTATION: "2", names.GROUP_IDENTITY_ANNOTATION: names.IDENTITY_HASH},
    }
    made = [await cluster.create(POD, leader) for _ in range(2)]
    keys = [labels_of(pod)[names.GROUP_KEY_LABEL] for pod in made]
    assert keys[0] != keys[1]
    for pod, key in zip(made, keys, strict=True):
        assert labels_of(pod)[names.GROUP_INDEX_LABEL] == key
        assert pod["spec"]["hostname"] == f"llm-{key[:8]}"
        assert pod["spec"]["schedulingGates"] == [{"name": names.GROUP_REPLACEMENT_GATE}]
        assert env_of(pod)[names.ENV_LEADER_ADDRESS] == f"llm-{key[:8]}.llm.{cluster.namespace}"
        assert annotations_of(pod)[names.POD_DELETION_COST_ANNOTATION] == "-100"
