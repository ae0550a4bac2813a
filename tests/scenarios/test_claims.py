"""Volume claims of leaders and workers, and how long they are kept (specification: 10 §2.2, 20 §5, §10.4)."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import PERSISTENT_VOLUME_CLAIM, POD
from lwskit.runtime.objects import controller_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import all_new
from tests.scenarios.support import Sets, pod_template

CLAIM = {
    "metadata": {"name": "data", "labels": {"mine": "1"}, "annotations": {"mine": "1"}},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "selector": {"matchLabels": {"disk": "fast"}},
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
LEADER_CLAIMS = ["data-llm-0", "data-llm-1"]
WORKER_CLAIMS = ["data-llm-0-1", "data-llm-0-2", "data-llm-1-1", "data-llm-1-2"]


def group(deleted: str = "", scaled: str = "") -> dict[str, Any]:
    """Fields of a `leaderWorkerTemplate` with claims that are kept when nothing is said."""
    fields: dict[str, Any] = {"volumeClaimTemplates": [CLAIM]}
    if deleted or scaled:
        fields["persistentVolumeClaimRetentionPolicy"] = {
            "whenDeleted": deleted or "Retain",
            "whenScaled": scaled or "Retain",
        }
    return fields


def mounting() -> dict[str, Any]:
    """A template whose container mounts the claim."""
    template = pod_template("img:v1")
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return template


async def claims(cluster: TestCluster) -> list[str]:
    return sorted(await cluster.names(PERSISTENT_VOLUME_CLAIM))


async def has_claims(cluster: TestCluster, wanted: list[str]) -> None:
    async def same() -> None:
        assert await claims(cluster) == sorted(wanted)

    await cluster.eventually(same)


async def test_each_pod_has_its_claims_made_of_the_fields_that_are_kept(cluster: TestCluster, sets: Sets):
    """10 §2.2: name, access modes, storage class, volume mode, requests and limits; the rest is dropped."""
    await sets.running(group=group(), template=mounting())
    assert await claims(cluster) == sorted(LEADER_CLAIMS + WORKER_CLAIMS)
    found = {c["metadata"]["name"]: c for c in await cluster.list(PERSISTENT_VOLUME_CLAIM)}
    for name, claim in found.items():
        labels = claim["metadata"]["labels"]
        assert labels[names.NAME_LABEL] == "llm", name
        assert "mine" not in labels, name
        assert "mine" not in (claim["metadata"].get("annotations") or {}), name
        assert "ownerReferences" not in claim["metadata"], name
        assert claim["spec"]["resources"] == {"requests": {"storage": "1Gi"}}, name
        assert "selector" not in claim["spec"], name
    for pod, claim in (("llm-0", "data-llm-0"), ("llm-1-2", "data-llm-1-2")):
        volumes = (await cluster.get(POD, pod))["spec"]["volumes"]
        assert {"name": "data", "persistentVolumeClaim": {"claimName": claim}} in volumes


async def test_claims_outlive_their_set_when_nothing_is_said(cluster: TestCluster, sets: Sets):
    """20 §5: without a retention policy claims are kept, when groups go and when the set goes."""
    await sets.running(group=group())
    before = await cluster.uids(PERSISTENT_VOLUME_CLAIM)
    await sets.scale(1)
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")
    await cluster.delete(LEADER_WORKER_SET, "llm")
    await sets.has_pods()
    await cluster.settled(PERSISTENT_VOLUME_CLAIM, POD)
    assert await cluster.uids(PERSISTENT_VOLUME_CLAIM) == before


async def test_claims_go_with_their_set(cluster: TestCluster, sets: Sets):
    """20 §5, §10.4: whenDeleted reaches both kinds of StatefulSets, which then own their claims."""
    await sets.running(group=group(deleted="Delete"))

    async def owned() -> None:
        for claim in await cluster.list(PERSISTENT_VOLUME_CLAIM):
            owner = controller_of(claim)
            assert owner is not None
            expected = claim["metadata"]["name"].removeprefix("data-").rpartition("-")[0]
            assert (owner["kind"], owner["name"]) == ("StatefulSet", expected)

    await cluster.eventually(owned)
    await cluster.delete(LEADER_WORKER_SET, "llm")
    await has_claims(cluster, [])


@pytest.mark.parametrize(
    ("deleted", "left"),
    [
        # The last group's worker StatefulSet is deleted, not scaled.
        ("Retain", ["data-llm-0", *WORKER_CLAIMS]),
        ("Delete", ["data-llm-0", "data-llm-0-1", "data-llm-0-2"]),
    ],
)
async def test_claims_of_a_group_that_is_scaled_away(cluster: TestCluster, sets: Sets, deleted: str, left: list[str]):
    """F106: whenScaled decides on a leader's claims, whenDeleted on its workers' (20 §5, §10.4)."""
    await sets.running(group=group(deleted=deleted, scaled="Delete"))
    await sets.scale(1)
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")
    await has_claims(cluster, left)


@pytest.mark.parametrize("deleted", ["Retain", "Delete"])
async def test_a_recreated_group_finds_its_leaders_claim(cluster: TestCluster, sets: Sets, deleted: str):
    """20 §10.3: the leader's claim is used again; those of workers are unless they go with their StatefulSet."""
    await sets.running(replicas=1, group=group(deleted=deleted))
    before, pods = await cluster.uids(PERSISTENT_VOLUME_CLAIM), await sets.pod_uids()
    await cluster.delete(POD, "llm-0")
    await all_new(sets, pods)
    await sets.ready()
    kept = set(before) if deleted == "Retain" else {"data-llm-0"}

    async def found() -> None:
        # The collector may come to claims that go with their StatefulSet when the next worker is there already.
        after = await cluster.uids(PERSISTENT_VOLUME_CLAIM)
        assert {name for name, uid in after.items() if before.get(name) == uid} == kept

    await cluster.eventually(found)
    await cluster.consistently(found)


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_changed_claims_are_refused_by_the_leaders_workload_and_told(sets: Sets):
    """10 §2.2: a StatefulSet's claim templates never change; the set is told with the API server's words."""
    await sets.running(replicas=1, group=group())
    bigger = {**CLAIM, "spec": {**CLAIM["spec"], "resources": {"requests": {"storage": "2Gi"}}}}
    await sets.patch({"spec": {"leaderWorkerTemplate": {"volumeClaimTemplates": [bigger]}}})

    async def told() -> None:
        notes = [e["note"] for e in await sets.events() if e["reason"] == "FailedUpdate"]
        assert any("spec.volumeClaimTemplates: Invalid value" in note for note in notes), notes

    await sets.cluster.eventually(told)


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_a_claim_without_a_name_is_told(sets: Sets):
    """10 §2.2: the schema takes such a claim; what the API server says of it stands in an event of the set."""
    await sets.create(replicas=1, group={"volumeClaimTemplates": [{"spec": CLAIM["spec"]}]})

    async def told() -> None:
        notes = [e["note"] for e in await sets.events() if e["reason"] == "FailedCreate"]
        assert any("Failed to create leader statefulset llm: " in note for note in notes), notes

    await sets.cluster.eventually(told)
