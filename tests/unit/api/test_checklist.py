"""Validation of sets, line by line (specification: 10 §14 lines 18–51): each rule in its own words."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import names
from lwskit.api.validation import aggregate, validate_create, validate_update
from tests.unit.api.objects import CONFIG, POLICY, TEMPLATE, lws, rolling


def refused(obj: dict[str, Any], old: dict[str, Any] | None = None) -> str:
    """The text of the refusal; empty for a yes."""
    return aggregate(validate_create(obj) if old is None else validate_update(obj, old))


def on_both(obj: dict[str, Any]) -> str:
    """The text of the refusal when created, which must be that of an update of a plain set to the same."""
    text = refused(obj)
    assert refused(obj, lws()) == text
    return text


@pytest.mark.parametrize("name", ["1llm", "llm.a", "Llm", "llm-", "a" * 64])
def test_18_names_that_are_no_label(name: str) -> None:
    (error,) = validate_create(lws(meta={"name": name}))
    assert error.path == "metadata.name"
    too_long = "must be no more than 63 characters"
    assert error.detail == too_long if len(name) > 63 else error.detail.startswith("a DNS-1035 label must consist of")


def test_19_replicas_below_zero() -> None:
    assert on_both(lws(replicas=-1)) == "spec.replicas: Invalid value: -1: replicas must be equal or greater than 0"


def test_20_replicas_beyond_a_million() -> None:
    """F43: absurd numbers of groups crashed the controller or had it loop."""
    text = "spec.replicas: Invalid value: 1000001: replicas must be equal or less than 1000000"
    assert on_both(lws(replicas=1000001)) == text
    assert on_both(lws({"size": 1}, replicas=1000000)) == ""


def test_21_size_zero() -> None:
    assert refused(lws({"size": 0})) == f"{TEMPLATE}.size: Invalid value: 0: size must be equal or greater than 1"


def test_22_too_many_pods() -> None:
    """F43: a number of pods that no 32 bits hold."""
    detail = "the product of replicas and worker replicas must not exceed 2147483647"
    assert on_both(lws({"size": 30000}, replicas=100000)) == f"spec.replicas: Invalid value: 100000: {detail}"
    assert on_both(lws({"size": 4000}, replicas=1000000)) == f"spec.replicas: Invalid value: 1000000: {detail}"
    assert on_both(lws({"size": 2147}, replicas=1000000)) == ""


@pytest.mark.parametrize("field", ["maxUnavailable", "maxSurge"])
def test_23_more_than_there_are(field: str) -> None:
    assert refused(lws(replicas=2, **rolling(**{field: 10}))) == ""


@pytest.mark.parametrize("field", ["maxUnavailable", "maxSurge"])
def test_24_more_than_all(field: str) -> None:
    text = f'{CONFIG}.{field}: Invalid value: "101%": must not be greater than 100%'
    assert refused(lws(**rolling(**{field: "101%"}))) == text
    assert refused(lws(**rolling(**{field: "100%"}))) == ""


@pytest.mark.parametrize("field", ["maxUnavailable", "maxSurge"])
def test_25_less_than_none(field: str) -> None:
    text = f"{CONFIG}.{field}: Invalid value: -1: must be greater than or equal to 0"
    assert refused(lws(**rolling(**{field: -1}))) == text


@pytest.mark.parametrize("field", ["maxUnavailable", "maxSurge"])
def test_25_more_than_a_workload_can_have(field: str) -> None:
    text = f"{CONFIG}.{field}: Invalid value: 2147483648: must be less than or equal to 2147483647"
    assert refused(lws(**rolling(**{field: 2**31}))) == text
    assert refused(lws(**rolling(**{field: 2**31 - 1}))) == ""


@pytest.mark.parametrize("field", ["maxUnavailable", "maxSurge"])
@pytest.mark.parametrize("value", ["abc", "30", "1.5%", "%", ""])
def test_26_texts_that_are_no_percentage(field: str, value: str) -> None:
    first, second = validate_create(lws(**rolling(**{"maxSurge": 1, field: value})))
    assert (first.path, first.value, second.path, second.value) == (f"{CONFIG}.{field}", value) * 2
    assert first.detail.startswith("a valid percent string must be a numeric string followed by an ending '%'")
    assert second.detail == "invalid value"


NONE = "must not be 0 when `maxSurge` is 0"


def test_27_a_rollout_that_could_not_move() -> None:
    text = f"{CONFIG}.maxUnavailable: Invalid value: 0: {NONE}"
    assert on_both(lws(replicas=1, **rolling(maxUnavailable=0, maxSurge=0))) == text


def test_28_surge_alone() -> None:
    assert on_both(lws(**rolling(maxUnavailable=0, maxSurge=1))) == ""


@pytest.mark.parametrize("nothing", [0, "0%"])
def test_29_no_groups_need_no_room(nothing: int | str) -> None:
    """F47: a set without groups was refused for a budget of nothing; with the first group it is, on updates too."""
    fields = rolling(maxUnavailable=nothing, maxSurge=nothing)
    assert on_both(lws(replicas=0, **fields)) == ""
    assert NONE in refused(lws(replicas=1, **fields), lws(replicas=0, **fields))


def test_30_a_percentage_that_rounds_to_nothing() -> None:
    text = f'{CONFIG}.maxUnavailable: Invalid value: "50%": {NONE}'
    assert refused(lws(replicas=1, **rolling(maxUnavailable="50%", maxSurge=0))) == text
    assert refused(lws(replicas=2, **rolling(maxUnavailable="50%", maxSurge=0))) == ""
    assert refused(lws(replicas=1, **rolling(maxUnavailable=0, maxSurge="1%"))) == ""


def test_31_partitions() -> None:
    """F64: a partition below zero was accepted."""
    text = f"{CONFIG}.partition: Invalid value: -1: must be greater than or equal to 0"
    assert on_both(lws(**rolling(partition=-1))) == text
    for partition in (0, 3, 4):
        assert on_both(lws(replicas=3, **rolling(partition=partition))) == ""


def parted(size: int, part: Any, **policy: Any) -> dict[str, Any]:
    """A set whose groups have parts."""
    return lws({"size": size, "subGroupPolicy": {"subGroupSize": part, **policy}})


DIVIDE = "size or size - 1 must be divisible by subGroupSize"


def test_32_sub_groups_divide_the_group_or_its_workers() -> None:
    assert refused(parted(4, 3)) == ""
    assert refused(parted(4, 2)) == ""
    assert refused(parted(5, 3)) == f"{POLICY}: Invalid value: 3: {DIVIDE}"


@pytest.mark.parametrize("part", [0, -1])
def test_33_sub_groups_of_nobody(part: int) -> None:
    assert refused(parted(4, part)) == f"{POLICY}: Invalid value: {part}: subGroupSize must be equal or greater than 1"


@pytest.mark.parametrize("policy", [{}, {"subGroupSize": None}, {"subGroupPolicyType": "LeaderExcluded"}])
def test_34_sub_groups_without_a_size(policy: dict[str, Any]) -> None:
    """F44: a policy without its size ended the manager."""
    text = f"{POLICY}: Required value: subGroupSize is required"
    obj = lws({"subGroupPolicy": policy})
    assert refused(obj) == text
    assert refused(obj, obj) == text
    assert refused(obj, parted(4, 2)) == text


def test_35_sub_groups_larger_than_the_group() -> None:
    larger = "subGroupSize cannot be larger than size"
    texts = [f"{POLICY}: Invalid value: 5: {DIVIDE}", f"{POLICY}: Invalid value: 5: {larger}"]
    assert refused(parted(4, 5)) == f"[{', '.join(texts)}]"
    assert refused(parted(1, 2)) == f"{POLICY}: Invalid value: 2: {larger}"
    assert refused(parted(4, 4)) == ""


def test_36_sub_groups_of_workers_only() -> None:
    detail = "size-1 must be divisible by subGroupSize when using LeaderExcluded"
    excluded = {"subGroupPolicyType": "LeaderExcluded"}
    assert refused(parted(4, 2, **excluded)) == f"{POLICY}: Invalid value: 2: {detail}"
    assert refused(parted(5, 2, **excluded)) == ""


def test_37_exclusive_sub_groups_without_sub_groups() -> None:
    key = names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION
    meta = {"annotations": {key: "rack"}}
    detail = "cannot have subgroup-exclusive-topology without subGroupSize set"
    assert on_both(lws(meta=meta)) == f'metadata.annotations.{key}: Invalid value: "rack": {detail}'
    assert refused(lws({"size": 2, "subGroupPolicy": {"subGroupSize": 2}}, meta)) == ""


def test_38_sub_groups_stay_as_they_are() -> None:
    assert refused(parted(4, 4), parted(4, 2)) == f"{POLICY}: Invalid value: 4: field is immutable"
    removed = "cannot remove subGroupSize after enabled"
    assert refused(lws({"size": 4}), parted(4, 2)) == f"{POLICY}: Invalid value: 2: {removed}"
    added = "cannot enable subGroupSize after the lws is already created"
    assert refused(parted(4, 2), lws({"size": 4})) == f"{POLICY}: Invalid value: 2: {added}"
    assert refused(parted(5, 2, subGroupPolicyType="LeaderExcluded"), parted(5, 2)) == ""


def test_39_a_size_that_breaks_the_sub_groups() -> None:
    """F58: the refusal of a new size names the sub-groups, which are not what was changed; path and text stay so."""
    assert refused(parted(5, 4), parted(4, 4)) == ""
    assert refused(parted(4, 4), parted(5, 4)) == ""
    assert refused(parted(7, 4), parted(5, 4)) == f"{POLICY}: Invalid value: 4: {DIVIDE}"


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (lws({"size": 9}), lws({"size": 2})),
        (lws({"leaderTemplate": {"spec": {"containers": [{"name": "l"}]}}}), lws()),
        (lws({"workerTemplate": {"spec": {"containers": [{"name": "other"}]}}}), lws()),
        (lws(replicas=7), lws(replicas=2)),
        (lws(**rolling(partition=3)), lws(**rolling(partition=1))),
        (lws(networkConfig={"subdomainPolicy": "UniquePerReplica"}), lws(networkConfig={"subdomainPolicy": "Shared"})),
        (lws(networkConfig={"subdomainPolicy": "Shared"}), lws(networkConfig={"subdomainPolicy": "UniquePerReplica"})),
        (lws({"restartPolicy": "None"}), lws({"maxGroupRestarts": 2})),
        (lws({"maxGroupRestarts": 0, "restartBackoff": {}}), lws()),
    ],
)
def test_40_what_may_change(new: dict[str, Any], old: dict[str, Any]) -> None:
    assert refused(new, old) == ""


def test_42_all_faults_in_one_message() -> None:
    obj = lws({"size": 0, "maxGroupRestarts": 1, "restartPolicy": "None"}, {"name": "0x"}, replicas=-1)
    errors = validate_create(obj)
    assert [error.path for error in errors] == [
        "metadata.name",
        "spec.replicas",
        f"{TEMPLATE}.size",
        f"{TEMPLATE}.maxGroupRestarts",
    ]
    assert refused(obj) == f"[{', '.join(str(error) for error in errors)}]"


@pytest.mark.parametrize("policy", ["None", "Default"])
def test_44_a_limit_of_restarts_that_never_happen(policy: str) -> None:
    detail = "maxGroupRestarts is only supported when restartPolicy recreates the group"
    text = f"{TEMPLATE}.maxGroupRestarts: Invalid value: 0: {detail}"
    assert refused(lws({"maxGroupRestarts": 0, "restartPolicy": policy})) == text


@pytest.mark.parametrize("policy", ["RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "", None])
def test_44_a_limit_of_restarts(policy: str | None) -> None:
    assert refused(lws({"maxGroupRestarts": 3, "restartPolicy": policy})) == ""


@pytest.mark.parametrize("identity", ["Ordinal", "", None])
def test_45_ordinal_groups_are_not_replaced_at_once(identity: str | None) -> None:
    text = "Immediate is only supported with groupIdentity Hash"
    obj = lws(groupIdentity=identity, groupReplacementPolicy="Immediate")
    assert refused(obj) == f'spec.groupReplacementPolicy: Invalid value: "Immediate": {text}'
    assert refused(lws(groupIdentity="Hash", groupReplacementPolicy="Immediate")) == ""


HOSTNAME = {"spec": {"containers": [{"name": "w"}], "hostname": "h"}}


@pytest.mark.parametrize(
    ("template", "spec", "what"),
    [
        ({"volumeClaimTemplates": [{"metadata": {"name": "d"}}]}, {}, "volumeClaimTemplates are"),
        ({}, rolling(partition=1), "rollingUpdateConfiguration.partition is"),
        ({"leaderTemplate": HOSTNAME}, {}, "a leader pod hostname is"),
        ({"workerTemplate": HOSTNAME}, {}, "a leader pod hostname is"),
    ],
)
def test_46_what_hash_groups_cannot_have(template: dict[str, Any], spec: dict[str, Any], what: str) -> None:
    text = f'spec.groupIdentity: Invalid value: "Hash": {what} not supported with groupIdentity Hash'
    assert refused(lws(template, groupIdentity="Hash", **spec)) == text
    assert refused(lws(template, **spec)) == ""


def test_46_what_hash_groups_can_have() -> None:
    leader = {"leaderTemplate": {"spec": {"containers": [{"name": "l"}]}}, "workerTemplate": HOSTNAME}
    assert refused(lws(leader, groupIdentity="Hash", **rolling(partition=0))) == ""


@pytest.mark.parametrize(("size", "limit"), [(2, 43), (8, 43), (1, 54), (None, 54)])
def test_47_names_of_hash_sets(size: int | None, limit: int) -> None:
    fits, longer = "a" * limit, "a" * (limit + 1)
    assert refused(lws({"size": size}, {"name": fits}, groupIdentity="Hash")) == ""
    detail = f"must be no more than {limit} characters with groupIdentity Hash"
    text = f'metadata.name: Invalid value: "{longer}": {detail}'
    assert refused(lws({"size": size}, {"name": longer}, groupIdentity="Hash")) == text
    assert refused(lws({"size": size}, {"name": longer})) == ""


def test_47_names_of_ordinal_sets() -> None:
    """F41: over 51 characters the pods of an Ordinal set may never come; this is not refused."""
    assert refused(lws(meta={"name": "a" * 63}, replicas=10)) == ""


def test_48_hash_sets_with_sub_groups_and_subdomains() -> None:
    assert refused(lws({"size": 3, "subGroupPolicy": {"subGroupSize": 3}}, groupIdentity="Hash")) == ""
    assert refused(lws(groupIdentity="Hash", networkConfig={"subdomainPolicy": "UniquePerReplica"})) == ""


def test_49_the_identity_of_groups_stays() -> None:
    text = "groupIdentity is immutable"
    old = lws(groupIdentity="Hash")
    assert refused(lws(groupIdentity="Ordinal"), old) == f'spec.groupIdentity: Invalid value: "Ordinal": {text}'
    assert refused(lws(groupIdentity="Hash"), lws()) == f'spec.groupIdentity: Invalid value: "Hash": {text}'
    for before in (lws(), lws(groupIdentity=""), lws(groupIdentity=None)):
        assert refused(lws(groupIdentity="Ordinal"), before) == ""


def test_50_the_order_of_ends_stays_and_the_replacement_may_change() -> None:
    text = 'spec.podTerminationPolicy: Invalid value: "Parallel": podTerminationPolicy is immutable'
    assert refused(lws(podTerminationPolicy="Parallel"), lws()) == text
    assert refused(lws(podTerminationPolicy="Default"), lws()) == ""
    old = lws(groupIdentity="Hash", groupReplacementPolicy="Immediate")
    assert refused(lws(groupIdentity="Hash", groupReplacementPolicy="PostTermination"), old) == ""


@pytest.mark.parametrize(
    "fields",
    [
        {},
        dict.fromkeys(("replicas", "rolloutStrategy", "networkConfig", "startupPolicy", "groupIdentity")),
        {"rolloutStrategy": {}},
        {"rolloutStrategy": {"rollingUpdateConfiguration": None}},
        {"rolloutStrategy": {"rollingUpdateConfiguration": {}}},
        rolling(partition=None, maxUnavailable=None, maxSurge=None),
    ],
)
def test_51_what_is_not_set_counts_as_its_default(fields: dict[str, Any]) -> None:
    """F44: optional parts that are missing ended the manager when nothing had filled them in."""
    for template in ({}, {"size": None}, {"size": None, "subGroupPolicy": {"subGroupSize": 1}}):
        obj = lws(template, **fields)
        assert refused(obj) == ""
        assert refused(obj, obj) == ""
