"""Which groups in Hash mode go, and how a ReplicaSet is told (specification: 50 §13, 30 §14)."""

from __future__ import annotations

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated.subroles import division
from lwskit.runtime.objects import Obj, annotations_of
from tests.unit.disaggregated.divided import (
    after,
    divided,
    divided_scene,
    notes_of,
    patches,
    pods_of,
    relabelled,
)
from tests.unit.disaggregated.scenes import ds_object, role

LOWEST = str(-(2**31))
A2B2 = {"a": 2, "b": 2}


def _child(**plan: int) -> Obj:
    return divided(A2B2, plan=plan, hashed=True)


def _marked(pod: Obj, before: str = "") -> Obj:
    notes = {base.POD_DELETION_COST_ANNOTATION: LOWEST, names.SUBROLE_VICTIM_ANNOTATION: before}
    pod["metadata"]["annotations"].update(notes)
    return pod


def test_a_group_of_the_sub_role_that_shrinks_is_marked_then_unlabelled_then_the_size_changes() -> None:
    pods = pods_of("aabb", hashed=True)
    pods[1]["metadata"]["annotations"][base.POD_DELETION_COST_ANNOTATION] = "7"
    child = _child(a=1, b=2)
    first = division.prepare(divided_scene(A2B2, child, pods))
    (mark,) = patches(first)
    assert mark.key.name == "child-0", "the cheaper one of the two"
    assert mark.body["metadata"]["annotations"] == {
        base.POD_DELETION_COST_ANNOTATION: LOWEST,
        names.SUBROLE_VICTIM_ANNOTATION: "",
    }
    pods = after(pods, first)
    second = division.prepare(divided_scene(A2B2, child, pods))
    assert relabelled(second) == [("child-0", None)]
    third = division.prepare(divided_scene(A2B2, child, after(pods, second)))
    assert patches(third)[0].body["spec"] == {"replicas": 3}
    assert notes_of(third)[names.SUBROLE_REPLICAS_ANNOTATION] == '{"a":1,"b":2}'
    assert notes_of(third)[names.SCALE_DOWN_PENDING_ANNOTATION] == "true"


def test_where_an_unready_group_goes_first_another_one_takes_its_place_among_the_sub_roles() -> None:
    """The ReplicaSet would remove group 3 of `b` whatever is marked: one of `a` becomes one of `b` then."""
    pods = pods_of("aabb", hashed=True, unready={3})
    child = _child(a=1, b=2)
    first = division.prepare(divided_scene(A2B2, child, pods))
    assert relabelled(first) == [("child-1", "b")]
    pods = after(pods, first)
    for _ in range(3):
        write = division.prepare(divided_scene(A2B2, child, pods))
        pods = after(pods, write)
        if any(p.body.get("spec") for p in patches(write)):
            break
    labels = sorted(pod["metadata"]["labels"].get(names.SUBROLE_LABEL, "-") for pod in pods)
    assert labels == ["-", "a", "b", "b"]
    assert names.SUBROLE_LABEL not in pods[3]["metadata"]["labels"]


def test_a_marked_group_that_stays_gets_back_the_cost_that_it_had() -> None:
    pods = pods_of("aabb", hashed=True)
    _marked(pods[0], "7")
    _marked(pods[1])
    child = divided(A2B2, hashed=True)
    write = division.prepare(divided_scene(A2B2, child, pods))
    assert [p.body["metadata"]["annotations"] for p in patches(write)] == [
        {names.SUBROLE_VICTIM_ANNOTATION: None, base.POD_DELETION_COST_ANNOTATION: "7"},
        {names.SUBROLE_VICTIM_ANNOTATION: None, base.POD_DELETION_COST_ANNOTATION: None},
    ]
    pods = after(pods, write)
    assert base.POD_DELETION_COST_ANNOTATION not in annotations_of(pods[1])


def test_marks_stay_as_long_as_there_are_more_groups_than_asked_for() -> None:
    pods = pods_of("aab.", hashed=True)
    pods[3]["metadata"]["labels"].pop(names.SUBROLE_LABEL)
    _marked(pods[3])
    child = divided({"a": 2, "b": 1}, hashed=True)
    assert division.prepare(divided_scene({"a": 2, "b": 1}, child, pods)).actions == ()


def test_a_cost_that_somebody_else_set_meanwhile_is_theirs() -> None:
    pods = pods_of("a", hashed=True)
    _marked(pods[0], "7")["metadata"]["annotations"][base.POD_DELETION_COST_ANNOTATION] = "9"
    write = division.prepare(divided_scene({"a": 1}, divided({"a": 1}, hashed=True), pods))
    assert patches(write)[0].body["metadata"]["annotations"] == {names.SUBROLE_VICTIM_ANNOTATION: None}


def test_no_group_is_marked_where_the_size_stays() -> None:
    pods = pods_of("aabb", hashed=True)
    write = division.prepare(divided_scene({"a": 1, "b": 3}, _child(a=1, b=3), pods))
    assert relabelled(write) == [("child-1", "b")]
    assert len(write.actions) == 1


def test_a_group_that_was_marked_stays_the_one_when_another_one_breaks() -> None:
    pods = pods_of("aabb", hashed=True, unready={1})
    _marked(pods[0])
    write = division.prepare(divided_scene(A2B2, _child(a=1, b=2), pods))
    assert relabelled(write) == [("child-1", None)], "the broken one goes, and nobody else is marked for it"


def test_where_sub_roles_end_marks_go_after_the_labels_and_before_the_annotations() -> None:
    pods = pods_of("ab", hashed=True)
    _marked(pods[0], "7")
    ds, child = ds_object(role("prefill", 2)), divided({"a": 1, "b": 1}, hashed=True)
    labels = division.prepare(divided_scene(ds, child, pods))
    assert len(relabelled(labels)) == len(labels.actions) == 2
    pods = after(pods, labels)
    marks = division.prepare(divided_scene(ds, child, pods))
    assert [p.key.name for p in patches(marks)] == ["child-0"]
    assert notes_of(division.prepare(divided_scene(ds, child, after(pods, marks))))


def test_a_group_that_goes_takes_no_place_that_becomes_free_meanwhile() -> None:
    """Four are there, and one of the two that are marked is to go: nobody knows which."""
    pods = pods_of(["a", "", "b", ""], hashed=True)
    for i in (1, 3):
        _marked(pods[i])
    child = divided({"a": 2, "b": 1}, hashed=True)
    assert division.prepare(divided_scene({"a": 2, "b": 1}, child, pods)).actions == ()
    write = division.prepare(divided_scene({"a": 2, "b": 1}, child, [*pods[:2], pods[2]]))
    assert relabelled(write) == [("child-1", "a")], "three are there: one that was marked stays"
