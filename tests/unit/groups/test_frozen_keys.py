"""The keys that are written into pod templates: another one would restart every group of everybody on an upgrade."""

from __future__ import annotations

from typing import Any

from lwskit.api import names
from lwskit.groups.templates import group_plan, leader_plan
from lwskit.runtime.objects import Obj

P = "leaderworkerset.sigs.k8s.io/"
LEADER_LABELS = {f"{P}name", f"{P}worker-index", f"{P}template-revision-hash"}
WORKER_LABELS = {f"{P}name", f"{P}group-index", f"{P}group-key", f"{P}template-revision-hash"}
SHARED_ANNOTATIONS = {
    f"{P}size",
    f"{P}exclusive-topology",
    f"{P}subgroup-exclusive-topology",
    f"{P}subgroup-policy-type",
    f"{P}subgroup-size",
}
LEADER_ANNOTATIONS = SHARED_ANNOTATIONS | {f"{P}subdomainPolicy", f"{P}pod-termination-policy"}
WORKER_ANNOTATIONS = SHARED_ANNOTATIONS | {f"{P}leader-name", f"{P}leader-address"}
PLAIN = {f"{P}size"}


def lws(**template: Any) -> Obj:
    pod = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "metadata": {"name": "llm", "namespace": "ns", "uid": "u"},
        "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": pod, **template}},
    }


def keys(lws: Obj) -> tuple[set[str], set[str], set[str], set[str]]:
    """Labels and annotations of the leaders' template, and of the workers'."""
    leader = {
        "metadata": {"name": "llm-0", "namespace": "ns", "uid": "l", "labels": {}},
        "spec": {"hostname": "llm-0", "subdomain": "llm", "containers": []},
    }
    templates = (leader_plan(lws, "r", partition=0, replicas=2).template, group_plan(lws, lws, leader).template)
    (first, second) = (template["metadata"] for template in templates)
    return set(first["labels"]), set(first["annotations"]), set(second["labels"]), set(second["annotations"])


def test_the_keys_of_a_plain_set_are_frozen() -> None:
    """F14: a renamed key of an annotation in pod templates had an upgrade roll everything."""
    worker = PLAIN | {f"{P}leader-name", f"{P}leader-address"}
    assert keys(lws()) == (LEADER_LABELS, PLAIN, WORKER_LABELS, worker)


def test_the_keys_of_a_set_with_everything_are_frozen() -> None:
    full = lws(subGroupPolicy={"subGroupSize": 2, "subGroupPolicyType": "LeaderWorker"})
    full["metadata"]["annotations"] = {
        names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack",
        names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION: "host",
    }
    full["spec"] |= {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}, "podTerminationPolicy": "Parallel"}
    assert keys(full) == (LEADER_LABELS, LEADER_ANNOTATIONS, WORKER_LABELS, WORKER_ANNOTATIONS)
