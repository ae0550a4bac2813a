"""Reading a DisaggregatedSet (specification: 50 §1.1, §7.2)."""

from __future__ import annotations

import pytest

from lwskit.disaggregated import spec
from lwskit.disaggregated.model import Part
from lwskit.groups.model import DecisionError
from tests.unit.disaggregated.scenes import ds_object, role


def test_what_is_absent_is_as_the_api_says():
    found = spec.read(ds_object(role("prefill", None)))
    assert (found.slices, found.policy, found.placement.is_exclusive) == (1, "RolloutCoupled", False)
    assert [(r.name, r.replicas, r.is_external) for r in found.roles] == [("prefill", 1, False)]
    assert found.parts == (Part("prefill"),)
    assert found.roles[0].replacement_policy == "PostTermination"


def test_what_is_there_is_read():
    ds = ds_object(
        role("prefill", 2, mode="External", metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}}),
        role("decode", 0, mode="Static"),
        slices=3,
        scalingPolicy={"duringRollout": "AdvanceRollout"},
        placementPolicy={"type": "ExclusiveSlice", "topology": "rack"},
    )
    found = spec.read(ds)
    prefill, decode = found.roles
    assert (prefill.is_external, decode.is_external) == (True, False)
    assert (prefill.labels, prefill.annotations) == ({"a": "b"}, {"c": "d"})
    assert (found.slices, found.policy, found.placement) == (
        3,
        "AdvanceRollout",
        spec.Placement("ExclusiveSlice", "rack"),
    )
    assert found.role("decode") is decode
    assert found.role("gone") is None
    assert prefill.external_parts == (Part("prefill"),)
    assert decode.external_parts == ()


def test_subroles_are_the_parts_of_their_role():
    subs = [{"name": "short", "replicas": 5}, {"name": "long", "scaling": {"mode": "External"}}, {"name": "rest"}]
    found = spec.read(ds_object(role("decode", 9, mode="External", subRoles=subs), role("prefill")))
    assert found.parts == (Part("decode", "short"), Part("decode", "long"), Part("decode", "rest"), Part("prefill"))
    assert found.roles[0].external_parts == (Part("decode", "long"),)
    assert [sub.replicas for sub in found.roles[0].subroles] == [5, 1, 1]


@pytest.mark.parametrize(
    ("config", "desired", "expected"),
    [
        (None, 4, (0, 1)),
        ({}, 4, (0, 1)),
        ({"maxSurge": "30%", "maxUnavailable": "30%"}, 5, (2, 1)),
        ({"maxSurge": 2, "maxUnavailable": 0}, 1, (2, 0)),
        ({"maxSurge": 0, "maxUnavailable": "10%"}, 5, (1, 0)),
        ({"maxSurge": "50%", "maxUnavailable": "50%"}, 0, (1, 0)),
    ],
)
def test_limits_of_a_rollout(config: dict[str, object] | None, desired: int, expected: tuple[int, int]):
    """50 §23 line 27: given percent limits, surge rounds up and unavailable down from desired replicas."""
    strategy = {} if config is None else {"rolloutStrategy": {"rollingUpdateConfiguration": config}}
    (found,) = spec.read(ds_object(role("prefill", spec=strategy))).roles
    assert found.limits(desired) == expected


def test_a_limit_that_is_no_number_is_told_with_its_role():
    strategy = {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": "much"}}}
    (found,) = spec.read(ds_object(role("prefill", spec=strategy))).roles
    with pytest.raises(DecisionError, match=r"^role prefill: .*maxSurge is 'much'"):
        found.limits(2)


@pytest.mark.parametrize("broken", [{}, {"roles": None}, {"roles": [{"name": "a"}]}, {"roles": ["a"]}])
def test_what_is_no_set_is_told_in_a_sentence(broken: dict[str, object]):
    ds = ds_object(role("prefill"))
    ds["spec"] = broken
    with pytest.raises(DecisionError, match="DisaggregatedSet prod/chat cannot be read"):
        spec.read(ds)
