"""What the API accepts and refuses of sets in Hash mode (specification: 30 §15)."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import ApiError
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import annotations_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.hash.support import HashSets
from tests.scenarios.support import set_object, strategy

NO_CLAIMS = "volumeClaimTemplates are not supported with groupIdentity Hash"
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


async def test_defaults(cluster: TestCluster, sets: HashSets):
    """30 §18 line 1: without the fields groups have ordinals, and wait for those before them."""
    made = await cluster.create(LEADER_WORKER_SET, set_object(replicas=0))
    assert made["spec"]["groupIdentity"] == "Ordinal"
    assert made["spec"]["groupReplacementPolicy"] == "PostTermination"


@pytest.mark.parametrize(("before", "after"), [("Hash", "Ordinal"), ("Ordinal", "Hash")])
async def test_the_mode_is_for_ever(cluster: TestCluster, sets: HashSets, before: str, after: str):
    """30 §18 line 2: neither mode becomes the other."""
    await sets.create(replicas=0, groupIdentity=before)
    with pytest.raises(ApiError, match="immutable"):
        await sets.patch({"spec": {"groupIdentity": after}})
    assert (await sets.live())["spec"]["groupIdentity"] == before


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"group": {"volumeClaimTemplates": [CLAIM]}},
            "volumeClaimTemplates are not supported with groupIdentity Hash",
        ),
        ({"rolloutStrategy": strategy(partition=1)}, "partition"),
        ({"rolloutStrategy": strategy(maxUnavailable=0)}, "maxUnavailable"),
        ({"groupIdentity": "Ordinal", "groupReplacementPolicy": "Immediate"}, "Immediate"),
        ({"groupIdentity": "Other"}, "groupIdentity"),
    ],
    ids=["claims", "partition", "no-pace", "ordinal-immediate", "unknown"],
)
async def test_refused(cluster: TestCluster, sets: HashSets, fields: dict[str, Any], text: str):
    """30 §18 lines 3, 4: what a Deployment cannot do, and what only it can."""
    with pytest.raises(ApiError, match=text):
        await sets.create(**fields)


async def test_what_does_not_go_together(cluster: TestCluster, sets: HashSets):
    """F92: claims, a partition, and the other mode later are refused; a budget of restarts is not."""
    with pytest.raises(ApiError, match=NO_CLAIMS):
        await sets.create(group={"volumeClaimTemplates": [CLAIM]})
    with pytest.raises(ApiError, match="partition"):
        await sets.create(rolloutStrategy=strategy(partition=1))
    await sets.create(replicas=0, group={"maxGroupRestarts": 1})
    with pytest.raises(ApiError, match="immutable"):
        await sets.patch({"spec": {"groupIdentity": "Ordinal"}})
    with pytest.raises(ApiError, match="partition"):
        await sets.patch({"spec": {"rolloutStrategy": strategy(partition=1)}})


@pytest.mark.parametrize(
    "fields",
    [
        {"group": {"subGroupPolicy": {"subGroupSize": 3}}},
        {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}},
        {"group": {"maxGroupRestarts": 1}},
        {"startupPolicy": "LeaderReady"},
        {"rolloutStrategy": strategy(partition=0)},
        {"groupReplacementPolicy": "Immediate"},
        {"metadata": {"annotations": {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}}},
    ],
    ids=["sub-groups", "unique-per-replica", "budget", "leader-ready", "partition-0", "immediate", "exclusive"],
)
async def test_accepted(cluster: TestCluster, sets: HashSets, fields: dict[str, Any]):
    """30 §18 lines 3, 5: all else that Ordinal mode has."""
    made = await sets.create(replicas=0, **fields)
    assert made["spec"]["groupIdentity"] == "Hash"


async def test_leaders_with_ordinals_have_no_gate(cluster: TestCluster, sets: HashSets):
    """30 §18 line 17: nothing of this is on pods of the other mode."""
    await sets.create(replicas=1, size=2, groupIdentity="Ordinal")

    async def made() -> None:
        pods = await sets.pods()
        assert sorted(pods) == ["llm-0", "llm-0-1"]
        for pod in pods.values():
            assert "schedulingGates" not in pod["spec"]
            assert "readinessGates" not in pod["spec"]
            assert names.GROUP_IDENTITY_ANNOTATION not in annotations_of(pod)

    await cluster.eventually(made)
    assert await cluster.names(POD) != []
