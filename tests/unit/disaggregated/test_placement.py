"""Affinities of slices (specification: 50 §14)."""

from __future__ import annotations

import copy

import pytest

from lwskit.disaggregated.placement import placed
from lwskit.disaggregated.spec import Placement

NAME, SLICE = "disaggregatedset.x-k8s.io/name", "disaggregatedset.x-k8s.io/slice"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
POD = {"containers": [{"name": "c", "image": "i"}]}


def term(*expressions: dict[str, object]) -> dict[str, object]:
    return {"topologyKey": "rack", "labelSelector": {"matchExpressions": [*expressions]}}


def expression(key: str, operator: str, *values: str) -> dict[str, object]:
    return {"key": key, "operator": operator, **({"values": [*values]} if values else {})}


OWN = expression(NAME, "In", "chat")


@pytest.mark.parametrize(
    "placement", [Placement("None", "rack"), Placement("", "rack"), Placement("ExclusiveSlice", "")]
)
def test_without_a_policy_nothing_is_added(placement: Placement):
    """50 §23 line 57: given None, no affinity."""
    assert placed(POD, "chat", 1, placement) == POD


def test_a_slice_has_its_domain_for_itself():
    """50 §23 line 57: given ExclusiveSlice, two terms."""
    assert placed(POD, "chat", 1, Placement("ExclusiveSlice", "rack"))["affinity"] == {
        "podAffinity": {REQUIRED: [term(OWN, expression(SLICE, "In", "1"))]},
        "podAntiAffinity": {REQUIRED: [term(OWN, expression(SLICE, "NotIn", "1"))]},
    }


def test_other_sets_stay_away_too():
    """F104: pods of no set are not kept away. 50 §23 line 57: given ExclusiveTopology, three terms."""
    found = placed(POD, "chat", 1, Placement("ExclusiveTopology", "rack"))["affinity"]
    others = term(expression(NAME, "Exists"), expression(NAME, "NotIn", "chat"), expression(SLICE, "Exists"))
    assert found["podAntiAffinity"][REQUIRED] == [term(OWN, expression(SLICE, "NotIn", "1")), others]
    assert found["podAffinity"][REQUIRED] == [term(OWN, expression(SLICE, "In", "1"))]


def test_slice_0_does_not_keep_pods_without_a_slice_away():
    """50 §23 line 57: slice 0 has the extra Exists expression."""
    found = placed(POD, "chat", 0, Placement("ExclusiveSlice", "rack"))["affinity"]["podAntiAffinity"][REQUIRED]
    assert found == [term(OWN, expression(SLICE, "Exists"), expression(SLICE, "NotIn", "0"))]


def test_own_affinities_come_first_and_the_template_stays_as_it_is():
    """50 §23 line 57: user affinity is preserved; the object of the user is not changed."""
    mine = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    nodes = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}}
    pod = {**POD, "affinity": {"nodeAffinity": nodes, "podAntiAffinity": {REQUIRED: [mine], "preferred": []}}}
    before = copy.deepcopy(pod)
    found = placed(pod, "chat", 2, Placement("ExclusiveSlice", "rack"))
    assert pod == before
    assert found["affinity"]["nodeAffinity"] == nodes
    assert found["affinity"]["podAntiAffinity"] == {
        REQUIRED: [mine, term(OWN, expression(SLICE, "NotIn", "2"))],
        "preferred": [],
    }
