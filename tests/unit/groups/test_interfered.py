"""What is made of groups in Hash mode that other clients have changed (specification: 30 §5, §6, §9, §11)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups import counters, interfered
from lwskit.groups.model import DecisionError, MemberSnapshot
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Key, Obj, controller_reference
from lwskit.runtime.plan import Emit, Modify, NeedFresh, Patch, Plan
from tests.unit.groups.hash_objects import hash_lws, key, leader, pool_of, worker, workers_of
from tests.unit.groups.test_member_hash import decide, plan_of, snapshot
from tests.unit.groups.test_turns import limited, turn

FORMER = Key("ns", "x-rs-1")


def note_of(plan: Plan, *, at: int = 0) -> str:
    """The note of the warning that a plan gives."""
    emit = plan.actions[at]
    assert isinstance(emit, Emit)
    assert (emit.event.type, emit.event.reason, emit.event.action) == ("Warning", "FailedCreate", "Create")
    assert emit.event.regarding.name == "x"
    return emit.event.note


def disowned(workers: Obj, *owners: Obj) -> Obj:
    return {**workers, "metadata": {**workers["metadata"], "ownerReferences": list(owners)}}


def unlabelled(pod: Obj, *labels: str) -> Obj:
    found = copy.deepcopy(pod)
    for label in labels:
        del found["metadata"]["labels"][label]
    return found


# Workers of others ----------------------------------------------------------------------------------------------------


def test_workers_without_an_owner_are_told_of_and_make_no_ready_group() -> None:
    lws, pod = hash_lws(), leader(1, condition="True")
    plan = plan_of(snapshot(pod, lws, workers=disowned(workers_of(lws, pod))))
    assert note_of(plan).endswith("by leader pod x-rs-1: it has no owner; delete it, and the group gets one of its own")
    patch = plan.actions[1]
    assert isinstance(patch, Patch)
    assert patch.body["status"]["conditions"][0]["status"] == "False"
    assert isinstance(plan.result.error, DecisionError)


@pytest.mark.parametrize("going", [False, True])
def test_workers_of_another_leader_are_told_of_unless_they_go(going: bool) -> None:
    lws, pod = hash_lws(), leader(1, condition="False")
    found = disowned(workers_of(lws, pod), controller_reference(leader(2), POD))
    if going:
        found["metadata"]["deletionTimestamp"] = "2026-10-20T09:59:00Z"
    plan = plan_of(snapshot(pod, lws, workers=found))
    assert isinstance(plan.result.error, DecisionError)
    if going:
        assert plan.actions == ()
    else:
        assert note_of(plan).endswith("but by Pod x-rs-2; delete pod x-rs-1 to give its group another name")


def test_workers_of_the_leader_before_go_by_themselves() -> None:
    lws, pod = hash_lws(), leader(1, condition="False")
    before = {**controller_reference(pod, POD), "uid": "before"}
    plan = plan_of(snapshot(pod, lws, workers=disowned(workers_of(lws, pod), before)))
    assert plan.actions == ()
    assert "of the leader before" in str(plan.result.error)


def test_a_leader_that_waits_for_its_containers_is_not_ready_with_others_workers() -> None:
    lws = hash_lws()
    lws["spec"]["startupPolicy"] = "LeaderReady"
    pod = leader(1, ready=False, condition="True")
    (patch,) = plan_of(snapshot(pod, lws, workers=disowned(workers_of(lws, pod)))).actions
    assert isinstance(patch, Patch)
    assert patch.body["status"]["conditions"][0]["status"] == "False"


# Workers without a leader ---------------------------------------------------------------------------------------------


def behind(pod: Obj, *others: Obj, **fields: Any) -> MemberSnapshot:
    """A worker of group 1, whose leader is gone and whose workload has no owner."""
    lws = hash_lws()
    seen = {"leader": None, "owner": disowned(workers_of(lws, leader(1))), "group_pods": [pod, *others]}
    return snapshot(pod, lws, **{**seen, **fields})


def test_workers_that_are_left_behind_are_told_of_once() -> None:
    one, two = worker(1), worker(1, 2)
    name = f"x-{key(1)[:8]}"
    assert note_of(plan_of(behind(one, two))) == (
        f"worker statefulset {name} has no owner, and leader pod x-rs-1 is gone, whose group keeps its place as long; "
        "delete it"
    )
    assert plan_of(behind(two, one)).actions == ()
    assert note_of(plan_of(behind(two, worker(1, leaving=True))))


def test_workers_that_are_not_left_behind_tell_nothing() -> None:
    lws, one = hash_lws(), worker(1)
    owned = workers_of(lws, leader(1))
    going = disowned(owned)
    going["metadata"]["deletionTimestamp"] = "2026-10-20T09:59:00Z"
    other = {**disowned(owned), "metadata": {**disowned(owned)["metadata"], "uid": "other"}}
    leaders = [{"leader": leader(1)}, {"leader": leader(1, leaving=True)}]
    for fields in (*leaders, {"owner": owned}, {"owner": going}, {"owner": other}, {"owner": None}):
        assert plan_of(behind(one, **fields)).actions == ()


def test_a_pod_without_any_owner_is_told_of() -> None:
    pod = worker(1, 2)
    pod["metadata"]["ownerReferences"] = []
    assert note_of(plan_of(behind(pod, worker(1), owner=None))).startswith(f"worker pod x-{key(1)[:8]}-2 has no owner")


# Leaders that are gone ------------------------------------------------------------------------------------------------


def lost(pod: Obj, **fields: Any) -> MemberSnapshot:
    """Leader 1, which no watch knows any more, with a worker that is still there."""
    lws = hash_lws()
    seen = {"deleted": True, "leader": None, "workers": workers_of(lws, leader(1)), "group_pods": [worker(1)]}
    return snapshot(pod, lws, **{**seen, **fields})


def test_a_leader_that_is_gone_leaves_workers_that_are_told_of() -> None:
    given = lost(leader(1, leaving=True), workers=disowned(workers_of(hash_lws(), leader(1))))
    assert "has no owner, and leader pod x-rs-1 is gone" in note_of(plan_of(given))


def test_a_leader_that_only_lost_its_label_is_told_of() -> None:
    asked = decide(lost(leader(1)))
    assert isinstance(asked, NeedFresh)
    assert asked.keys == ((POD, FORMER),)
    live = frozenset({(POD, FORMER)})
    there = unlabelled(leader(1), names.NAME_LABEL)
    assert note_of(plan_of(lost(leader(1), leader=there, live=live))).startswith(
        f"leader pod x-rs-1 has lost label {names.NAME_LABEL}: another leader is made for it"
    )
    for found in (None, leader(1, leaving=True), {**there, "metadata": {**there["metadata"], "uid": "next"}}):
        assert plan_of(lost(leader(1), leader=found, live=live)).actions == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"pod": leader(1, leaving=True)},
        {"workers": None},
        {"group_pods": []},
        {"group_pods": [worker(1, leaving=True)]},
        {"lws": None},
    ],
)
def test_a_leader_that_is_gone_asks_for_nothing_else(fields: dict[str, Any]) -> None:
    given = lost(leader(1))
    changed = {name: getattr(given, name) for name in MemberSnapshot.__dataclass_fields__} | fields
    assert plan_of(MemberSnapshot(**changed)).actions == ()


# The gate -------------------------------------------------------------------------------------------------------------


def let_in(i: int = 1) -> Obj:
    """A leader whose gate somebody has taken away, but not the deletion cost."""
    pod = leader(i, gated=True)
    del pod["spec"]["schedulingGates"]
    return pod


def test_the_cost_goes_with_the_gate() -> None:
    (patch,) = plan_of(snapshot(let_in())).actions
    assert isinstance(patch, Patch)
    assert (patch.key, patch.uid) == (FORMER, "leader-1")
    assert patch.body == {"metadata": {"annotations": {names.POD_DELETION_COST_ANNOTATION: None}}}


def test_a_cost_of_somebody_else_stays() -> None:
    pod, lws = let_in(), hash_lws()
    pod["metadata"]["annotations"][names.POD_DELETION_COST_ANNOTATION] = "-99"
    assert interfered.ungated(snapshot(pod, lws), lws, pod) is None
    del pod["metadata"]["annotations"][names.GROUP_IDENTITY_ANNOTATION]
    pod["metadata"]["annotations"][names.POD_DELETION_COST_ANNOTATION] = names.GATED_DELETION_COST
    assert interfered.ungated(snapshot(pod, lws), lws, pod) is None


def test_the_count_is_taken_over_before_the_cost_goes() -> None:
    lws, pod = limited(f'{{"r1/{key(7)}":2}}'), let_in()
    owned = pool_of(pod).owned(Key("ns", "x"), "r1")
    claim, patch = plan_of(snapshot(pod, lws, owned=owned)).actions
    assert isinstance(claim, Modify)
    assert isinstance(patch, Patch)
    after = claim.change(lws)
    assert after is not None
    assert counters.read(after) == {f"r1/{key(1)}": 2}


def test_counts_that_cannot_be_read_keep_nobody_waiting() -> None:
    """The leader is let in with its deletion cost, which tells that it has not taken over a count."""
    lws = limited("many")
    (patch,) = turn(leader(1, gated=True, ready=False), lws=lws).actions
    assert isinstance(patch, Patch)
    assert patch.body == {"spec": {"schedulingGates": [{"$patch": "delete", "name": names.GROUP_REPLACEMENT_GATE}]}}
    given = snapshot(let_in(), lws, workers=workers_of(lws, let_in()))
    assert interfered.ungated(given, lws, let_in()) is None
    (condition,) = plan_of(given).actions
    assert isinstance(condition, Patch)
    assert condition.subresource == "status"


# Admission ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3])
def test_a_leader_without_a_key_is_told_of(size: int) -> None:
    pod = unlabelled(leader(1, size=size), names.GROUP_KEY_LABEL, names.GROUP_INDEX_LABEL)
    plan = plan_of(snapshot(pod, hash_lws(size=size)))
    assert note_of(plan) == (
        "leader pod x-rs-1 has no group key, for admission did not run when it was made; delete it, and its "
        "ReplicaSet makes another"
    )
    assert (len(plan.actions), plan.result.error) == (1, None)
    for label in (names.GROUP_KEY_LABEL, names.GROUP_INDEX_LABEL):
        assert interfered.unadmitted(hash_lws(), unlabelled(leader(1), label)) is None
