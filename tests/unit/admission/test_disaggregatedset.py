"""Admission of DisaggregatedSets, from review to warning or refusal, and what their pods are told (50 §3, §19)."""

from __future__ import annotations

import copy

from lwskit.api import disaggregated_names as names
from lwskit.api.names import MUTATE_POD_PATH
from lwskit.groups.environment import variables
from lwskit.runtime.objects import Obj
from tests.dsobjects import ds, external, role, sub, subroles
from tests.unit.admission.pods import leader
from tests.unit.admission.reviews import Answer, ask

PATH = names.VALIDATE_PATH


def refused(answer: Answer) -> str:
    assert (answer.allowed, answer.code) == (False, 403)
    return answer.message


def test_a_set_is_accepted_without_a_change() -> None:
    answer = ask(PATH, ds(role("prefill", {"size": None}, replicas=None), role("decode")))
    assert (answer.allowed, answer.code, answer.patch, answer.warnings) == (True, 200, [], [])


def test_all_errors_are_told_at_once() -> None:
    obj = ds(role(), external("decode"), slices=2, placementPolicy={"type": "ExclusiveSlice"})
    assert refused(ask(PATH, obj)) == (
        "[spec.slices: Forbidden: spec.slices > 1 is not supported while any role has scaling.mode: External "
        "(alpha restriction), spec.placementPolicy.topology: Required value: topology is required when type is not "
        "None]"
    )


def test_a_change_is_looked_at_as_a_new_set_is() -> None:
    good, bad = ds(), ds(name="d" * 60)
    assert "combined limit: 38 characters" in refused(ask(PATH, bad, good))
    assert ask(PATH, good, bad).allowed


def test_nothing_is_immutable() -> None:
    old = ds(role(groupIdentity="Ordinal"), role("decode"), slices=1)
    new = ds(
        role("other", groupIdentity="Hash"),
        slices=3,
        placementPolicy={"type": "ExclusiveTopology", "topology": "rack"},
        scalingPolicy={"duringRollout": "AdvanceRollout"},
    )
    assert ask(PATH, new, old).allowed
    assert ask(PATH, old, new).allowed


def test_warnings_are_shown_whatever_the_outcome() -> None:
    """50 §23 line 7: of what is stored and of what is refused."""
    told = 'role "prefill" sets scaling.mode: External and spec.replicas: 3'
    accepted = ask(PATH, ds(external(replicas=3)))
    assert accepted.allowed
    (warning,) = accepted.warnings
    assert warning.startswith(told)
    denied = ask(PATH, ds(external(replicas=3), slices=2))
    assert not denied.allowed
    assert denied.warnings == [warning]


def test_a_set_that_is_being_deleted_can_be_changed() -> None:
    old = ds(name="d" * 60)
    old["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
    new = copy.deepcopy(old)
    new["metadata"]["finalizers"] = []
    assert ask(PATH, new, old).allowed
    assert not ask(PATH, ds(name="d" * 60), ds()).allowed


def test_deletion_is_always_allowed() -> None:
    assert ask(PATH, None, ds(name="d" * 60), operation="DELETE").allowed


def test_another_kind_is_no_disaggregated_set() -> None:
    answer = ask(PATH, {**ds(), "kind": "LeaderWorkerSet"})
    assert (answer.code, answer.message) == (
        400,
        "expected disaggregatedset.x-k8s.io/v1 DisaggregatedSet, not disaggregatedset.x-k8s.io/v1 LeaderWorkerSet",
    )


def test_a_role_with_sub_roles_through_a_review() -> None:
    """50 §23 line 8: refused, and warned of its count."""
    answer = ask(PATH, ds(subroles(sub("a"), scaling={"mode": "Static"}, replicas=2)))
    detail = "parent scaling must be omitted when subRoles is present"
    assert refused(answer) == f"spec.roles[0].scaling: Forbidden: {detail}"
    assert len(answer.warnings) == 1


# Pods -----------------------------------------------------------------------------------------------------------------

LABELS = {
    names.NAME_LABEL: "chat",
    names.ROLE_LABEL: "decode",
    names.SLICE_LABEL: "1",
    names.REVISION_LABEL: "69150551",
    names.SUBROLE_LABEL: "long",
}
VARIABLES = [
    {"name": "DISAGGREGATEDSET_NAME", "value": "chat"},
    {"name": "DISAGGREGATEDSET_ROLE", "value": "decode"},
    {"name": "DISAGGREGATEDSET_SLICE", "value": "1"},
    {"name": "DISAGGREGATEDSET_REVISION", "value": "69150551"},
]


def labelled(labels: Obj) -> Obj:
    own = {"name": "DISAGGREGATEDSET_ROLE", "value": "mine"}
    after = {"name": "URL", "value": "http://$(DISAGGREGATEDSET_NAME)"}
    pod = leader(containers=[{"name": "c", "env": [own, after]}, {"name": "d"}], initContainers=[{"name": "i"}])
    pod["metadata"]["labels"] |= labels
    return pod


def test_containers_are_told_their_place_in_the_set() -> None:
    made = ask(MUTATE_POD_PATH, labelled(LABELS)).obj["spec"]
    for container in (*made["containers"], *made["initContainers"]):
        assert container["env"][3:7] == VARIABLES
    # What the user wrote comes after, and loses.
    assert [entry["name"] for entry in made["containers"][0]["env"][7:]] == ["URL"]


def test_pods_of_other_sets_are_told_nothing_of_it() -> None:
    without = {key: value for key, value in LABELS.items() if key != names.NAME_LABEL}
    for labels in ({}, without):
        env = ask(MUTATE_POD_PATH, labelled(labels)).obj["spec"]["containers"][1]["env"]
        assert [entry["name"] for entry in env] == ["LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"]


def test_a_label_that_is_missing_has_no_variable() -> None:
    pod = ask(MUTATE_POD_PATH, labelled({names.NAME_LABEL: "chat", names.SLICE_LABEL: "0"})).obj
    assert [entry["name"] for entry in variables(pod, "ns")][3:] == ["DISAGGREGATEDSET_NAME", "DISAGGREGATEDSET_SLICE"]
