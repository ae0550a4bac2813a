"""One pass over a DisaggregatedSet (specification: 50 §5, §18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from lwskit.disaggregated import revision
from lwskit.disaggregated.decide import decide, named, owned
from lwskit.disaggregated.model import Pass, Snapshot
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import Obj
from lwskit.runtime.plan import Create, Delete, Emit, Patch, UpdateStatus
from tests.unit.disaggregated.scenes import NOW, child_object, ds_object, role

MARKER = "disaggregatedset.x-k8s.io/revision-hash-version"
DS = ds_object(role("prefill", 1), role("decode", 2))
CURRENT = revision.resolve(DS, ()).revision


def run(ds: Obj | None, children: Sequence[Obj] = (), scalers: Sequence[Obj] = ()) -> Pass:
    return decide(Snapshot(ds, tuple(children), tuple(scalers), now=NOW))


def children(ds: Obj = DS, slices: int = 1) -> list[Obj]:
    sizes = {"prefill": 1, "decode": 2}
    counts = {n: {"replicas": c, "readyReplicas": c, "updatedReplicas": c} for n, c in sizes.items()}
    return [
        child_object(name, size, slice=i, revision=CURRENT, owner=ds["metadata"]["uid"], status=counts[name])
        for i in range(slices)
        for name, size in sizes.items()
    ]


def without_marker() -> Obj:
    return {**DS, "metadata": {**DS["metadata"], "annotations": {}}}


def test_a_set_that_is_gone_or_going_is_left_alone():
    assert run(None) == Pass()
    going = ds_object(role("decode"), metadata={"deletionTimestamp": "2026-11-30T11:30:00Z"})
    assert run(going) == Pass()


def test_a_new_set_is_marked_before_anything_is_made():
    """50 §23 line 11: the annotation is written first, and nothing else happens in this pass."""
    found = run(without_marker())
    (patch,) = found.before.actions
    assert isinstance(patch, Patch)
    assert patch.body == {"metadata": {"annotations": {MARKER: "v2"}}}
    assert (patch.uid, found.stop, found.slices, found.status.actions) == ("ds-uid", True, (), ())


def test_an_unknown_marker_changes_nothing():
    """50 §23 line 19: given hash version "v9", an error and no writes."""
    ds = ds_object(role("decode"), metadata={"annotations": {MARKER: "v9"}})
    with pytest.raises(DecisionError, match='unsupported revision hash version "v9"'):
        run(ds)


def test_children_of_all_slices_are_made():
    """50 §23 line 14: given slices 2, both slices have all roles with the same revision."""
    found = run(ds_object(*DS["spec"]["roles"], slices=2))
    made = [a.obj["metadata"]["name"] for s in found.slices for a in s.plan.actions if isinstance(a, Create)]
    assert made == [f"chat-{i}-{CURRENT}-{name}" for i in (0, 1) for name in ("prefill", "decode")]
    (write,) = found.status.actions
    assert isinstance(write, UpdateStatus)
    assert [c["type"] for c in write.obj["status"]["conditions"]] == ["Progressing"]


def test_a_set_at_rest():
    """50 §23 line 54: given no change, no write of any kind."""
    first = run(DS, children())
    (write,) = first.status.actions
    assert isinstance(write, UpdateStatus)
    assert [(c["type"], c["status"]) for c in write.obj["status"]["conditions"]] == [("Available", "True")]
    rest = run(write.obj, children())
    assert (rest.before.actions, rest.scalers.actions, rest.status.actions) == ((), (), ())
    assert [s.plan.actions for s in rest.slices] == [()]


def test_a_set_without_marker_whose_children_exist_keeps_its_algorithm():
    """50 §23 line 18: given an unmarked set with children, the old hash is used and no mark is written."""
    legacy = revision.legacy_revision_of(without_marker())
    assert legacy != CURRENT
    mine = [child_object(n, c, revision=legacy) for n, c in (("prefill", 1), ("decode", 2))]
    found = run(without_marker(), mine)
    assert found.before.actions == ()
    assert [s.plan.actions for s in found.slices] == [()]


def test_a_mark_that_got_lost_is_written_before_anything_else():
    found = run(without_marker(), children())
    (patch,) = found.before.actions
    assert isinstance(patch, Patch)
    assert patch.body == {"metadata": {"annotations": {MARKER: "v2"}}}
    assert (found.stop, found.slices) == (True, ())


def test_removed_slices_go_first_and_the_others_stay():
    """50 §23 line 23: given slices 2 to 1, slice 0 is untouched."""
    found = run(DS, children(slices=2))
    assert [a.key.name for a in found.before.actions if isinstance(a, Delete)] == [
        f"chat-1-{CURRENT}-decode",
        f"chat-1-{CURRENT}-prefill",
    ]
    assert [(s.slice, s.plan.actions) for s in found.slices] == [(0, ())]


def test_children_of_a_former_set_of_that_name_are_no_children():
    """50 §23 line 56: given a recreated set, old children with another UID are ignored."""
    mine = ds_object(*DS["spec"]["roles"], uid="new")
    assert owned(mine, children()) == ()
    found = run(mine, children())
    assert found.before.actions == ()
    (part,) = found.slices
    assert part.error.count("refusing to adopt it") == 2
    assert [type(action) for action in part.plan.actions] == [Emit, Emit]


def test_children_without_a_slice_are_of_before_there_were_slices():
    """50 §12: they are not seen any more; a label that is no number is one nevertheless."""
    child = child_object("decode")
    unlabelled = {**child, "metadata": {**child["metadata"], "labels": {"disaggregatedset.x-k8s.io/name": "chat"}}}
    assert owned(DS, [unlabelled]) == ()
    odd = {**child["metadata"]["labels"], "disaggregatedset.x-k8s.io/slice": "one"}
    assert len(owned(DS, [{**child, "metadata": {**child["metadata"], "labels": odd}}])) == 1


def test_a_scaler_begins_with_the_groups_that_stay():
    """50 §11.2: not with those of removed slices, nor of children that are being deleted."""
    ds = ds_object(role("prefill"), role("decode", 2, mode="External"))
    current = revision.resolve(ds, ()).revision
    mine = [
        child_object("decode", 2, revision=current),
        child_object("decode", 3, slice=1, revision=current),
        child_object("decode", 4, revision="00000000", deletionTimestamp="2026-11-30T11:30:00Z"),
    ]
    (seed,) = [a.obj["spec"] for a in run(ds, mine).before.actions if isinstance(a, Create)]
    assert seed == {"replicas": 2}


def test_without_a_count_no_workload_changes():
    """50 §23 line 46: given a scaler of somebody else, nothing of any slice, requeue after a second, condition."""
    ds = ds_object(role("prefill", 4), role("decode", 2, mode="External"))
    foreign = {"metadata": {"name": "chat-decode", "namespace": "prod", "uid": "x"}, "spec": {"replicas": 1}}
    found = run(ds, children(), [foreign])
    assert found.slices == ()
    assert found.status.result.after == 1.0
    (write,) = found.status.actions
    assert isinstance(write, UpdateStatus)
    (condition,) = write.obj["status"]["conditions"]
    assert condition["message"].endswith("for roles: decode")
    assert write.obj["status"]["roleStatuses"][0]["desiredReplicas"] == 4
    assert "desiredReplicas" not in write.obj["status"]["roleStatuses"][1]


def test_one_slice_that_cannot_be_decided_does_not_stop_the_others():
    """50 §23 line 40: a slice's error is its own."""
    ds = ds_object(*DS["spec"]["roles"], slices=2)
    stolen = [child_object("decode", 2, slice=0, revision=CURRENT, owner="other")]
    first, second = run(ds, stolen).slices
    assert first.error
    assert [type(a) for a in second.plan.actions] == [Create, Create]
    assert second.error == ""


def test_names_that_a_pass_needs_to_know():
    ds = ds_object(role("prefill"), role("decode", mode="External"))
    found = named(ds, ())
    current = revision.resolve(ds, ()).revision
    assert found.children == (f"chat-0-{current}-prefill", f"chat-0-{current}-decode")
    assert found.scalers == ("chat-decode",)
    assert named(None, ()) == ((), ())
    assert named({**ds, "spec": {}}, ()) == ((), ())
    assert named(without_marker(), ()).children == ()


def test_a_status_of_a_moment_ago_waits_if_it_only_counts():
    (write,) = run(DS, children()).status.actions
    assert isinstance(write, UpdateStatus)
    told = {**write.obj["status"], "roleStatuses": [dict(row) for row in write.obj["status"]["roleStatuses"]]}
    told["roleStatuses"][0]["replicas"] = 7
    snapshot = Snapshot({**DS, "status": told}, tuple(children()), now=NOW, status_age=0.01)
    found = decide(snapshot)
    assert found.status.actions == ()
    assert 0.01 < found.status.result.after <= 0.03
    (again,) = decide(replace(snapshot, status_age=0.03)).status.actions
    assert isinstance(again, UpdateStatus)
