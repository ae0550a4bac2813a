"""Where slices may be: affinities of children that are made (specification: 50 §14)."""

from __future__ import annotations

import pytest

from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.support import DisaggregatedSets, role
from tests.scenarios.support import pod_template

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def policy(kind: str, topology: str = "rack") -> Obj:
    return {"type": kind, "topology": topology}


def affinity_of(child: Obj, template: str = "workerTemplate") -> Obj:
    return child["spec"]["leaderWorkerTemplate"][template]["spec"].get("affinity") or {}


def operators(terms: list[Obj]) -> list[list[str]]:
    return [[e["operator"] for e in term["labelSelector"]["matchExpressions"]] for term in terms]


@pytest.mark.parametrize(
    ("kind", "slice", "apart"),
    [
        ("ExclusiveSlice", 0, [["In", "Exists", "NotIn"]]),
        ("ExclusiveSlice", 1, [["In", "NotIn"]]),
        ("ExclusiveTopology", 1, [["In", "NotIn"], ["Exists", "NotIn", "Exists"]]),
    ],
)
async def test_terms_of_a_policy(
    cluster: TestCluster, sets: DisaggregatedSets, kind: str, slice: int, apart: list[list[str]]
):
    """50 §23 line 57: ExclusiveSlice has two terms, ExclusiveTopology three; slice 0 the extra Exists expression."""
    group = {"leaderTemplate": pod_template("img:v1", "leader")}
    created = await sets.create(role("decode", 1, group=group), slices=2, placementPolicy=policy(kind))
    await sets.has_children("0/decode=1", "1/decode=1")
    child = await sets.child("decode", slice)
    for template in ("leaderTemplate", "workerTemplate"):
        found = affinity_of(child, template)
        assert operators(found["podAffinity"][REQUIRED]) == [["In", "In"]]
        assert operators(found["podAntiAffinity"][REQUIRED]) == apart
        assert {term["topologyKey"] for terms in found.values() for term in terms[REQUIRED]} == {"rack"}
    assert (await sets.live())["spec"] == created["spec"]


async def test_affinities_of_the_user_stay(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 57: user affinity is preserved and comes first; None adds nothing."""
    mine = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    template = pod_template("img:v1", affinity={"podAntiAffinity": {REQUIRED: [mine]}})
    await sets.create(role("decode", 1, template=template), placementPolicy=policy("ExclusiveSlice"))
    await sets.has_children("0/decode=1")
    first, second = affinity_of(await sets.child("decode"))["podAntiAffinity"][REQUIRED]
    assert first == mine
    assert second["topologyKey"] == "rack"
    await sets.create(role("decode", 1), name="plain", placementPolicy={"type": "None"})
    await sets.has_children("0/decode=1", name="plain")
    assert affinity_of(await sets.child("decode", name="plain")) == {}


async def test_a_policy_that_changes(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 58: given a policy change, existing children are unchanged; the next slice and revision have it."""
    await sets.running(role("decode", 1))
    before = await cluster.uids(LEADER_WORKER_SET)
    await sets.patch({"spec": {"placementPolicy": policy("ExclusiveSlice"), "slices": 2}})
    await sets.has_children("0/decode=1", "1/decode=1")
    assert affinity_of(await sets.child("decode", 0)) == {}
    assert "podAffinity" in affinity_of(await sets.child("decode", 1))
    assert (await cluster.uids(LEADER_WORKER_SET)).items() >= before.items()
    (old,) = await sets.revisions()
    await sets.set_image("img:v2")

    async def rolled() -> None:
        assert old not in await sets.revisions()

    await sets.eventually(rolled)
    for number in (0, 1):
        assert "podAffinity" in affinity_of(await sets.child("decode", number))
