"""A slice without an old revision, and slices that a set has no more (specification: 50 §6, §12, §18)."""

from __future__ import annotations

import pytest

from lwskit.disaggregated import slices, steady
from lwskit.disaggregated.model import Child, Readiness
from lwskit.runtime.plan import Create, Delete, Emit, OnError, Patch
from lwskit.runtime.request import DONE
from tests.unit.disaggregated.scenes import child_object, ds_object, role, scene

INITIAL = "disaggregatedset.x-k8s.io/initial-replicas"
PENDING = "disaggregatedset.x-k8s.io/scale-down-pending"
DS = ds_object(role("prefill", 1), role("decode", 2))


def test_missing_children_are_made_at_their_size():
    """50 §23 line 12: replicas 1 and 2, initial-replicas 1 and 2."""
    found = steady.decide(scene(DS, [child_object("prefill", 1)]))
    (create,) = found.plan.actions
    assert isinstance(create, Create)
    assert create.obj["metadata"]["name"] == "chat-0-1a2b3c4d-decode"
    assert create.obj["spec"]["replicas"] == 2
    assert create.obj["metadata"]["annotations"][INITIAL] == "2"
    assert (found.slice, found.error, found.plan.result) == (0, "", DONE)


def test_a_slice_at_rest_is_left_alone():
    found = steady.decide(scene(DS, [child_object("prefill", 1), child_object("decode", 2)]))
    assert (found.plan.actions, found.plan.result, found.error) == ((), DONE, "")


@pytest.mark.parametrize(("was", "wanted"), [(2, 5), (5, 1), (1, 0)])
def test_a_child_is_scaled_at_once(was: int, wanted: int):
    """50 §23 line 20: given replicas 2 to 5 or 5 to 1, the same child is scaled and initial-replicas follows."""
    ready = {"chat-0-1a2b3c4d-decode-uid": Readiness()}
    found = steady.decide(scene(ds_object(role("decode", wanted)), [child_object("decode", was)], readiness=ready))
    (patch,) = found.plan.actions
    assert isinstance(patch, Patch)
    assert patch.body["spec"] == {"replicas": wanted}
    assert patch.body["metadata"]["annotations"][INITIAL] == str(wanted)
    assert (patch.uid, patch.body["metadata"]["resourceVersion"]) == ("chat-0-1a2b3c4d-decode-uid", "7")


def test_a_scale_by_hand_is_reverted():
    """50 §23 line 21: given a manual scale of a child, it is reverted."""
    found = steady.decide(scene(ds_object(role("decode", 2)), [child_object("decode", 5, initial=2)]))
    (patch,) = found.plan.actions
    assert isinstance(patch, Patch)
    assert patch.body["spec"] == {"replicas": 2}
    assert patch.body["metadata"]["annotations"] == {PENDING: "true"}


@pytest.mark.parametrize("noted", ["x", "-1", "٣", "2147483648", "9" * 5000])
def test_what_is_noted_is_mended(noted: str):
    child = child_object("decode", 2, annotations={INITIAL: noted})
    found = steady.decide(scene(ds_object(role("decode", 2)), [child]))
    (patch,) = found.plan.actions
    assert isinstance(patch, Patch)
    assert patch.body == {"metadata": {"annotations": {INITIAL: "2"}, "resourceVersion": "7"}}


@pytest.mark.parametrize(("was", "wanted"), [(None, "Immediate"), ("Immediate", None)])
def test_the_replacement_policy_follows(was: str | None, wanted: str | None):
    """50 §23 line 22: given a changed groupReplacementPolicy, the child is patched in place."""
    child = child_object("decode", 2)
    child["spec"] |= {"groupReplacementPolicy": was} if was else {}
    policy = {"groupReplacementPolicy": wanted} if wanted else {}
    found = steady.decide(scene(ds_object(role("decode", 2, spec=policy)), [child]))
    (patch,) = found.plan.actions
    assert isinstance(patch, Patch)
    assert patch.body["spec"] == {"groupReplacementPolicy": wanted or "PostTermination"}


def test_nothing_else_of_a_child_is_compared():
    child = child_object("decode", 2)
    child["metadata"]["labels"]["app"] = "mine"
    child["spec"]["leaderWorkerTemplate"]["size"] = 9
    ds = ds_object(
        role("decode", 2, metadata={"labels": {"new": "label"}}),
        placementPolicy={"type": "ExclusiveSlice", "topology": "rack"},
    )
    assert steady.decide(scene(ds, [child])).plan.actions == ()


def test_a_raise_waits_for_an_earlier_scale_down():
    """50 §7.6, in a steady slice too: groups on their way out are not taken for those that are wanted."""
    child = child_object("decode", 2, annotations={PENDING: "true"})
    unsettled = {"chat-0-1a2b3c4d-decode-uid": Readiness(settled=False)}
    found = steady.decide(scene(ds_object(role("decode", 3), role("prefill")), [child], readiness=unsettled))
    patch, create = found.plan.actions
    assert isinstance(create, Create)
    assert isinstance(patch, Patch)
    assert "spec" not in patch.body
    assert found.plan.result.after == 1.0
    assert "chat-0-1a2b3c4d-decode has not settled" in found.plan.result.reason
    assert found.error == ""


def test_a_child_of_somebody_else_is_neither_scaled_nor_taken():
    """50 §23 line 55: given a same-name set of another owner, the pass fails; what else there is to do is done."""
    found = steady.decide(scene(DS, [child_object("decode", 9, owner="other")]))
    assert found.error == (
        "LeaderWorkerSet chat-0-1a2b3c4d-decode exists but is not controlled by DisaggregatedSet chat; "
        "refusing to adopt it"
    )
    create, told = found.plan.actions
    assert isinstance(create, Create)
    assert create.obj["metadata"]["name"] == "chat-0-1a2b3c4d-prefill"
    assert isinstance(told, Emit)
    assert (told.event.reason, told.event.type, told.event.note) == ("FailedCreate", "Warning", found.error)


def test_the_successor_of_a_child_waits_for_its_name():
    leaving = child_object("decode", 2, deletionTimestamp="2026-11-30T11:30:00Z")
    found = steady.decide(scene(DS, [child_object("prefill", 1), leaving]))
    assert found.plan.actions == ()
    assert (found.plan.result.after, found.error) == (1.0, "")


def test_children_of_removed_slices_go():
    """50 §23 line 23: given slices 3 to 1, those of slices 1 and 2 are deleted, in the foreground and by UID."""
    objects = [
        child_object("decode", 2, slice=0),
        child_object("decode", 2, slice=1),
        child_object("decode", 2, slice=2, revision="00000000"),
        child_object("prefill", 2, slice=2, deletionTimestamp="2026-11-30T11:30:00Z"),
        child_object("prefill", 2, slice=3, labels={"disaggregatedset.x-k8s.io/slice": "three"}),
    ]
    found = slices.removals(DS, [Child.of(obj) for obj in objects], 1)
    assert [(d.key.name, d.uid, d.propagation) for d in found] == [
        ("chat-2-00000000-decode", "chat-2-00000000-decode-uid", "Foreground"),
        ("chat-1-1a2b3c4d-decode", "chat-1-1a2b3c4d-decode-uid", "Foreground"),
    ]
    assert all(isinstance(d, Delete) and d.errors["NotFound"] is OnError.IGNORE for d in found)
    assert [d.on_success.note for d in found if d.on_success is not None] == [
        "Deleted LWS chat-2-00000000-decode for removed slice 2",
        "Deleted LWS chat-1-1a2b3c4d-decode for removed slice 1",
    ]
    assert all(d.on_success is not None and d.on_success.reason == "LWSDeleted" for d in found)
