"""What sub-roles ask of the children of a slice and of their groups (specification: 50 §13)."""

from __future__ import annotations

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.model import NO_WRITE, Part
from lwskit.disaggregated.subroles import division
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import Obj, annotations_of
from lwskit.runtime.plan import Emit, OnError, Patch
from tests.unit.disaggregated.divided import (
    OLD,
    Counts,
    after,
    child_of,
    divided,
    divided_role,
    divided_scene,
    notes_of,
    patches,
    pod,
    pods_of,
    relabelled,
)
from tests.unit.disaggregated.scenes import child_object, ds_object, role

A5B2 = {"a": 5, "b": 2}
SEVEN = "aaaaabb"


def _write(
    scene_counts: Counts, child: Obj, pods: list[Obj], *, known: bool = True
) -> tuple[list[tuple[str, str | None]], str]:
    found = division.prepare(divided_scene(scene_counts, child, pods, known=known))
    return relabelled(found), found.pending


# Labels ---------------------------------------------------------------------------------------------------------------


def test_new_groups_are_labelled_by_the_issued_counts() -> None:
    """50 §23 line 59: labels 5/2 on the groups of one set."""
    found, pending = _write(A5B2, divided(A5B2), pods_of([""] * 7, unready=range(7)))
    assert [label for _, label in found] == [*"aaaaabb"]
    assert not pending, "labels alone keep nothing from being decided"


@pytest.mark.parametrize("labels", [["a", ""], ["a", "a"]])
def test_no_step_is_decided_on_a_ready_group_that_has_no_sub_role_yet(labels: list[str]) -> None:
    """50 §7.5: the planner would take it for one that serves nobody, and drain it at once."""
    pods = pods_of(labels, size=2, unready={0})
    pods[2]["metadata"]["labels"].pop(names.SUBROLE_LABEL, None)
    found, pending = _write({"a": 2}, divided({"a": 2}), pods)
    assert [label for _, label in found] == ["a"] * (
        4 - sum(names.SUBROLE_LABEL in p["metadata"]["labels"] for p in pods)
    )
    assert pending == "group child-1 is ready, and gets its sub-role first"
    found, pending = _write({"a": 2}, divided({"a": 2}), pods_of(["a", "a", "b"], size=2))
    assert (found, pending) == ([("child-2-1", None), ("child-2", None)], ""), "what loses its label is not waited for"


def test_workers_are_labelled_before_their_leader_and_pods_that_changed_are_left_alone() -> None:
    write = division.prepare(divided_scene({"a": 1}, divided({"a": 1}), pods_of([""], size=3)))
    assert relabelled(write) == [("child-0-1", "a"), ("child-0-2", "a"), ("child-0", "a")]
    for action in patches(write):
        assert action.uid == f"{action.key.name}-uid"
        assert action.body["metadata"]["resourceVersion"] == "1"
        assert dict(action.errors) == {"Conflict": OnError.IGNORE, "NotFound": OnError.IGNORE}, "others do not wait"


def test_a_recreated_pod_and_a_recreated_group_get_their_label_back() -> None:
    """50 §23 line 62: a recreated pod, a recreated group."""
    pods = pods_of(SEVEN, size=2)
    pods[3] = pod("child-1-1", "1", 1)
    assert _write(A5B2, divided(A5B2), pods)[0] == [("child-1-1", "a")]
    pods[2] = pod("child-1", "1", 0)
    assert _write(A5B2, divided(A5B2), pods)[0] == [("child-1-1", "a"), ("child-1", "a")]


def test_labels_of_others_are_put_right() -> None:
    found, _ = _write({"a": 1, "b": 1}, divided({"a": 1, "b": 1}), pods_of(["nonsense", "b"]))
    assert found == [("child-0", "a")]
    found, _ = _write({"a": 1}, divided({"a": 1}), pods_of(["a", "a"]))
    assert found == [("child-1", None)], "one more group than there are to be is of no sub-role"


def test_pods_that_are_being_deleted_are_left_alone() -> None:
    going = pod("child-1", "1", 0, leaving=True)
    assert _write({"a": 2}, divided({"a": 2}), [*pods_of("a"), going]) == ([], "")


def test_nothing_is_written_where_all_is_as_it_should_be() -> None:
    assert division.prepare(divided_scene(A5B2, divided(A5B2), pods_of(SEVEN, size=3))).actions == ()


# First use and the end of it ------------------------------------------------------------------------------------------


def test_a_child_that_is_there_is_divided_as_it_is_and_nothing_is_scaled() -> None:
    child = child_object("prefill", 6)
    write = division.prepare(divided_scene(A5B2, child, pods_of([""] * 6)))
    assert notes_of(write) == {
        names.SUBROLE_REPLICAS_ANNOTATION: '{"a":5,"b":1}',
        names.INITIAL_SUBROLE_REPLICAS_ANNOTATION: '{"a":5,"b":2}',
        names.INITIAL_REPLICAS_ANNOTATION: "7",
        names.SUBROLE_PLAN_ANNOTATION: None,
    }
    assert "spec" not in patches(write)[0].body
    assert write.pending


def test_an_old_child_keeps_what_it_began_with() -> None:
    old = child_object("prefill", 3, revision=OLD, initial=6)
    write = division.prepare(divided_scene(A5B2, old))
    assert notes_of(write)[names.INITIAL_REPLICAS_ANNOTATION] == "6"
    assert notes_of(write)[names.INITIAL_SUBROLE_REPLICAS_ANNOTATION] == '{"a":5,"b":1}'
    assert notes_of(write)[names.SUBROLE_REPLICAS_ANNOTATION] == '{"a":3,"b":0}'


def test_without_sub_roles_labels_go_first_and_then_the_annotations() -> None:
    """50 §23 line 63: nothing is scaled."""
    ds, child, pods = ds_object(role("prefill", 7)), divided(A5B2, plan={"a": 4, "b": 2}), pods_of(SEVEN, size=2)
    first = division.prepare(divided_scene(ds, child, pods))
    assert {label for _, label in relabelled(first)} == {None}
    assert len(first.actions) == 14
    assert first.pending
    second = division.prepare(divided_scene(ds, child, after(pods, first)))
    assert notes_of(second) == {
        names.SUBROLE_REPLICAS_ANNOTATION: None,
        names.INITIAL_SUBROLE_REPLICAS_ANNOTATION: None,
        names.SUBROLE_PLAN_ANNOTATION: None,
    }
    assert "spec" not in patches(second)[0].body
    assert division.prepare(divided_scene(ds, child_object("prefill", 7), after(pods, first))).actions == ()


def test_a_child_of_a_role_that_is_gone_stays_divided() -> None:
    ds, child = ds_object(role("decode", 1)), divided(A5B2, revision=OLD)
    found = divided_scene(ds, child, pods_of([""] * 7))
    assert [label for _, label in relabelled(division.prepare(found))] == [*"aaaaabb"]
    assert division.is_divided(found, child_of(found))
    assert dict(division.counts(found, child_of(found))) == A5B2


def test_what_a_rollout_goes_by_is_put_back_when_it_is_lost() -> None:
    old = divided(A5B2, revision=OLD)
    del old["metadata"]["annotations"][names.INITIAL_REPLICAS_ANNOTATION]
    write = division.prepare(divided_scene(A5B2, old, pods_of(SEVEN)))
    told = [action for action in write.actions if isinstance(action, Emit)]
    assert [(e.event.reason, e.event.type) for e in told] == [(names.EVENT_INITIAL_REPLICAS_MISSING, "Warning")]
    assert notes_of(write) == {
        names.INITIAL_REPLICAS_ANNOTATION: "7",
        names.INITIAL_SUBROLE_REPLICAS_ANNOTATION: '{"a":5,"b":2}',
    }
    assert write.pending
    half = divided({"a": 3, "b": 1}, revision=OLD, first=A5B2)
    del half["metadata"]["annotations"][names.INITIAL_SUBROLE_REPLICAS_ANNOTATION]
    write = division.prepare(divided_scene(A5B2, half, pods_of("aaab")))
    assert notes_of(write)[names.INITIAL_SUBROLE_REPLICAS_ANNOTATION] == '{"a":6,"b":1}'
    assert not [action for action in write.actions if isinstance(action, Emit)]


def test_what_a_rollout_goes_by_follows_the_targets() -> None:
    found = divided_scene({"a": 6, "b": 2}, divided(A5B2), pods_of(SEVEN))
    write = division.keep_initial(child_of(found), {"a": 6, "b": 2})
    assert notes_of(write) == {
        names.INITIAL_REPLICAS_ANNOTATION: "8",
        names.INITIAL_SUBROLE_REPLICAS_ANNOTATION: '{"a":6,"b":2}',
    }
    assert division.keep_initial(child_of(found), A5B2).actions == ()


# Changes --------------------------------------------------------------------------------------------------------------


def test_growth_is_issued_at_once_with_the_replicas() -> None:
    found = divided_scene(A5B2, divided(A5B2), pods_of(SEVEN))
    write = division.change(found, child_of(found), {"a": 6, "b": 4})
    assert notes_of(write) == {names.SUBROLE_REPLICAS_ANNOTATION: '{"a":6,"b":4}'}
    (action,) = patches(write)
    assert action.body["spec"] == {"replicas": 10}
    assert action.body["metadata"]["resourceVersion"] == "7"
    assert dict(action.errors) == {"Conflict": OnError.REQUEUE}
    assert write.pending


def test_growth_waits_until_an_earlier_scale_down_is_over() -> None:
    child = divided(A5B2, pending_down=True)
    found = divided_scene(A5B2, child, pods_of(SEVEN), settled=False)
    write = division.change(found, child_of(found), {"a": 6, "b": 2})
    assert (write.actions, "has not settled" in write.pending) == ((), True)
    found = divided_scene(A5B2, child, pods_of(SEVEN))
    notes = notes_of(division.change(found, child_of(found), {"a": 6, "b": 2}))
    assert notes[names.SCALE_DOWN_PENDING_ANNOTATION] is None


def test_a_decrease_is_noted_as_a_plan_first() -> None:
    found = divided_scene(A5B2, divided(A5B2), pods_of(SEVEN))
    write = division.change(found, child_of(found), {"a": 3, "b": 4})
    assert notes_of(write) == {names.SUBROLE_PLAN_ANNOTATION: '{"a":3,"b":4}'}
    assert "spec" not in patches(write)[0].body
    assert write.pending


def test_a_newer_target_waits_for_the_plan_that_is_stored() -> None:
    found = divided_scene(A5B2, divided(A5B2, plan={"a": 3, "b": 4}), pods_of(SEVEN))
    write = division.change(found, child_of(found), {"a": 9, "b": 9})
    assert (write.actions, bool(write.pending)) == ((), True)


def test_only_what_must_changes_its_sub_role_once_all_that_stay_are_ready() -> None:
    """50 §23 line 60: two groups, and no scaling."""
    child = divided(A5B2, plan={"a": 3, "b": 4})
    for unready in (0, 6):
        found, pending = _write({"a": 3, "b": 4}, child, pods_of(SEVEN, unready={unready}))
        assert found == []
        assert f"group child-{unready} is not ready" in pending
    pods = pods_of(SEVEN, size=2)
    write = division.prepare(divided_scene({"a": 3, "b": 4}, child, pods))
    assert relabelled(write) == [("child-3-1", "b"), ("child-3", "b"), ("child-4-1", "b"), ("child-4", "b")]
    assert write.pending
    assert {rule for action in patches(write) for rule in action.errors.values()} == {OnError.REQUEUE}
    write = division.prepare(divided_scene({"a": 3, "b": 4}, child, after(pods, write)))
    assert notes_of(write) == {
        names.SUBROLE_REPLICAS_ANNOTATION: '{"a":3,"b":4}',
        names.SUBROLE_PLAN_ANNOTATION: None,
    }
    assert "spec" not in patches(write)[0].body, "the size stays"


def test_high_ordinals_lose_their_label_before_the_size_changes() -> None:
    """50 §23 line 61: the label goes before the group."""
    child, pods = divided(A5B2, plan={"a": 3, "b": 2}), pods_of(SEVEN)
    first = division.prepare(divided_scene(A5B2, child, pods))
    assert relabelled(first) == [("child-3", "b"), ("child-4", "b")], "nobody has too few in between"
    pods = after(pods, first)
    second = division.prepare(divided_scene(A5B2, child, pods))
    assert relabelled(second) == [("child-5", None), ("child-6", None)]
    pods = after(pods, second)
    third = division.prepare(divided_scene(A5B2, child, pods))
    assert notes_of(third) == {
        names.SUBROLE_REPLICAS_ANNOTATION: '{"a":3,"b":2}',
        names.SUBROLE_PLAN_ANNOTATION: None,
        names.SCALE_DOWN_PENDING_ANNOTATION: "true",
    }
    assert patches(third)[0].body["spec"] == {"replicas": 5}
    assert not [action for action in third.actions if isinstance(action, Patch) and action.on_success]


def test_a_hole_pulls_no_higher_ordinal_into_those_that_stay() -> None:
    child = divided(A5B2, plan={"a": 3, "b": 2})
    found, pending = _write(A5B2, child, pods_of(["a", "a", "-", "a", "a", "b", "b"]))
    assert found == []
    assert "group 2 is not there" in pending
    gone, pending = _write(A5B2, divided({"a": 5}, plan={"a": 3}), pods_of(["a", "-", "a", "a", "a"]))
    assert gone == [("child-3", None), ("child-4", None)], "without a move nothing waits, and 3 is no third group"


def test_groups_without_a_label_get_theirs_whoever_is_not_ready() -> None:
    pods = pods_of(["a", "", "a", "a", "a", "b", "b"], unready={1})
    found, pending = _write({"a": 3, "b": 4}, divided(A5B2, plan={"a": 3, "b": 4}), pods)
    assert found == [("child-1", "b")]
    assert "not ready" in pending


def test_a_group_that_is_half_way_is_finished_whoever_is_not_ready() -> None:
    pods = pods_of("aaab", size=2, unready={0})
    pods[5]["metadata"]["labels"][names.SUBROLE_LABEL] = "b"
    found, _ = _write({"a": 2, "b": 2}, divided({"a": 3, "b": 1}, plan={"a": 2, "b": 2}), pods)
    assert found == [("child-2", "b")]


def test_nothing_is_moved_while_it_cannot_be_told_what_is_ready() -> None:
    child = divided(A5B2, plan={"a": 3, "b": 2})
    found, pending = _write(A5B2, child, pods_of(SEVEN), known=False)
    assert (found, "cannot be told" in pending) == ([], True)


def test_a_sub_role_that_is_gone_from_the_spec_is_given_up_with_a_plan() -> None:
    found = divided_scene({"a": 3}, divided({"a": 2, "gone": 1}), pods_of(["a", "a", "gone"]))
    write = division.change(found, child_of(found), {"a": 3})
    assert notes_of(write) == {names.SUBROLE_PLAN_ANNOTATION: '{"a":3}'}
    labels, _ = _write({"a": 3}, divided({"a": 2, "gone": 1}, plan={"a": 3}), pods_of(["a", "a", "gone"]))
    assert labels == [("child-2", "a")]


@pytest.mark.parametrize("key", [names.SUBROLE_REPLICAS_ANNOTATION, names.SUBROLE_PLAN_ANNOTATION])
def test_annotations_that_cannot_be_read_keep_the_slice_as_it_is(key: str) -> None:
    child = divided(A5B2)
    child["metadata"]["annotations"][key] = "{"
    with pytest.raises(DecisionError, match=key):
        division.prepare(divided_scene(A5B2, child, pods_of([""] * 7)))


def test_counts_that_no_child_may_have_are_not_even_planned() -> None:
    """A stored plan is always finished: one that cannot be would be in the way of every later one."""
    many = {"a": 1_000_000, "b": 1}
    found = divided_scene(many, divided(A5B2), pods_of(SEVEN))
    with pytest.raises(DecisionError, match="ask for 1000001 groups, and it may have 1000000 at most"):
        division.change(found, child_of(found), many)
    stored = division.prepare(divided_scene(A5B2, divided(A5B2, plan=many), pods_of(SEVEN)))
    assert notes_of(stored) == {names.SUBROLE_PLAN_ANNOTATION: None}


# Old revisions --------------------------------------------------------------------------------------------------------


def _drain(child: Obj, pods: list[Obj], wanted: Counts) -> Obj | None:
    found = divided_scene(A5B2, child, pods)
    write = division.change(found, child_of(found), wanted)
    return dict(notes_of(write)) if write.actions else None


def test_a_broken_group_of_an_old_revision_does_not_hold_up_its_retirement() -> None:
    """What is taken from a sub-role are groups that serve: the broken one keeps its place."""
    pods = pods_of(SEVEN, unready={4})
    assert _drain(divided(A5B2, revision=OLD), pods, {"a": 4, "b": 2}) == {
        names.SUBROLE_PLAN_ANNOTATION: '{"a":4,"b":2}'
    }
    found, _ = _write(A5B2, divided(A5B2, revision=OLD, plan={"a": 4, "b": 2}), pods)
    assert found == [("child-3", "b")]


def test_no_ready_group_is_given_away_for_a_broken_one() -> None:
    """`b` would have one ready group fewer than the planner reckons with: the drain is not begun, the rest goes on."""
    pods = pods_of(SEVEN, unready={0, 1, 2, 3})
    assert _drain(divided(A5B2, revision=OLD), pods, {"a": 3, "b": 2}) is None
    assert _drain(divided(A5B2, revision=OLD), pods, {"a": 5, "b": 1}) is not None
    write = division.prepare(divided_scene(A5B2, divided(A5B2, revision=OLD, plan={"a": 3, "b": 2}), pods))
    assert notes_of(write) == {names.SUBROLE_PLAN_ANNOTATION: None}, "a plan that cannot be kept is given up"


def test_a_rollback_is_not_held_by_what_its_target_was_to_give_up() -> None:
    child, other = divided(A5B2, plan={"a": 3, "b": 2}), divided({"a": 1, "b": 1}, revision=OLD)
    pods = pods_of(SEVEN, unready={0, 1, 2, 3})
    write = division.prepare(divided_scene(A5B2, [child, other], pods))
    assert notes_of(write) == {names.SUBROLE_PLAN_ANNOTATION: None}


def test_a_revision_that_serves_nobody_is_drained_whatever_is_ready() -> None:
    pods = pods_of(SEVEN, unready={0, 1, 2, 3, 4})
    assert _drain(divided(A5B2, revision=OLD), pods, {"a": 3, "b": 2}) is not None
    assert _drain(divided(A5B2, revision=OLD), pods, {"a": 0, "b": 0}) is not None


def test_what_ends_waits_for_the_step_that_ends_the_other_roles() -> None:
    """50 §8.8: its groups have lost their labels, and its size is not changed before that of the others is."""
    child, none = divided({"a": 1, "b": 1}, revision=OLD, plan={"a": 0, "b": 0}), {"a": 0, "b": 0}
    found = divided_scene(A5B2, child, pods_of(["", ""]))
    assert division.prepare(found) == NO_WRITE
    (action,) = division.change(found, child_of(found), none).actions
    assert isinstance(action, Patch)
    assert action.body["spec"] == {"replicas": 0}
    given_up = division.change(found, child_of(found), {"a": 1, "b": 0})
    assert notes_of(given_up) == {names.SUBROLE_PLAN_ANNOTATION: None}


def test_scaling_in_a_rollout_is_told_of() -> None:
    child = divided({"a": 1, "b": 1}, revision=OLD, plan={"a": 1, "b": 0})
    write = division.prepare(divided_scene(A5B2, child, pods_of(["a", ""])))
    (event,) = [action.on_success for action in patches(write) if action.on_success]
    assert event.note == f"Scaling down prefill LWS chat-0-{OLD}-prefill from 2 to 1 replicas"


def test_targets_that_scalers_say_are_gone_by() -> None:
    ds = ds_object(divided_role("prefill", "b", a=5))
    found = divided_scene(ds, child_object("prefill", 5), targets={Part("prefill", "a"): 5, Part("prefill", "b"): 3})
    notes = notes_of(division.prepare(found))
    assert notes[names.INITIAL_SUBROLE_REPLICAS_ANNOTATION] == '{"a":5,"b":3}'
    assert annotations_of(child_of(found).obj)[names.INITIAL_REPLICAS_ANNOTATION] == "5"
