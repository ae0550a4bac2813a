"""The guarded write of a child's replicas (specification: 50 §6, §7.2, §7.6, §17)."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import scale
from lwskit.disaggregated.model import NO_WRITE, Child, Readiness, Write
from lwskit.runtime.objects import Key, Obj, ObjectRef
from lwskit.runtime.plan import OnError, Patch

SET = ObjectRef(names.API_VERSION, names.KIND, "prod", "chat", "ds")
SETTLED, UNSETTLED = Readiness(), Readiness(settled=False)
INITIAL, PENDING = names.INITIAL_REPLICAS_ANNOTATION, names.SCALE_DOWN_PENDING_ANNOTATION


def child(replicas: int, /, *, initial: int | None = None, marked: bool = False, **status: int) -> Child:
    """A child at resourceVersion 7, with the mark of a scale-down if `marked`."""
    annotations = {INITIAL: str(replicas if initial is None else initial)}
    if marked:
        annotations[PENDING] = "true"
    metadata: Obj = {"name": "chat-0-1a2b3c4d-decode", "namespace": "prod", "uid": "u", "resourceVersion": "7"}
    metadata |= {"labels": {names.ROLE_LABEL: "decode"}, "annotations": annotations}
    return Child.of({"metadata": metadata, "spec": {"replicas": replicas}, "status": status})


def body(write: Write) -> Obj:
    """The patch of a write that has one, without its resourceVersion."""
    (action,) = write.actions
    assert isinstance(action, Patch)
    assert (action.key, action.uid) == (Key("prod", "chat-0-1a2b3c4d-decode"), "u")
    assert action.errors == {"Conflict": OnError.REQUEUE}
    metadata = dict(action.body["metadata"])
    assert metadata.pop("resourceVersion") == "7"
    return {**action.body, "metadata": metadata}


def to(of: Child, replicas: int, **fields: Any) -> Write:
    return scale.to(of, replicas, **{"readiness": SETTLED, "why": "it is to have as many", **fields})


def test_nothing_is_written_where_nothing_changes() -> None:
    """50 §18: a scale that finds the value already right writes nothing."""
    assert to(child(2), 2, initial=2) == NO_WRITE
    assert to(child(2, marked=True), 2, event_ref=SET) == NO_WRITE


def test_a_raise_goes_with_what_the_child_is_meant_to_have() -> None:
    assert body(to(child(2), 5, initial=5)) == {"metadata": {"annotations": {INITIAL: "5"}}, "spec": {"replicas": 5}}
    assert body(to(child(2), 5)) == {"metadata": {}, "spec": {"replicas": 5}}
    assert body(to(child(2, initial=1), 2, initial=2)) == {"metadata": {"annotations": {INITIAL: "2"}}}
    assert body(to(child(2), 2, also={"a": 1})) == {"metadata": {}, "spec": {"a": 1}}


def test_lowering_marks_the_child_in_the_same_patch() -> None:
    """50 §7.6: once; the mark stays until growth reverses it."""
    lowered = to(child(3), 1, readiness=UNSETTLED)
    assert body(lowered) == {"metadata": {"annotations": {PENDING: "true"}}, "spec": {"replicas": 1}}
    assert lowered.pending == ""
    assert body(to(child(3, marked=True), 1, readiness=UNSETTLED)) == {"metadata": {}, "spec": {"replicas": 1}}


def test_a_settled_raise_takes_the_mark_away() -> None:
    assert body(to(child(1, marked=True), 2)) == {"metadata": {"annotations": {PENDING: None}}, "spec": {"replicas": 2}}


@pytest.mark.parametrize("of", [child(1, marked=True), child(1, replicas=2), child(1, replicas=1, readyReplicas=2)])
def test_a_raise_waits_until_an_earlier_lowering_is_over(of: Child) -> None:
    """50 §7.6: a group that is going must not count as one that was asked for."""
    waiting = to(of, 3, readiness=UNSETTLED)
    assert waiting.actions == ()
    assert waiting.pending == "the previous scale-down of LeaderWorkerSet chat-0-1a2b3c4d-decode has not settled"
    assert to(of, 3).pending == ""


def test_what_is_meant_is_noted_while_the_raise_waits() -> None:
    waiting = to(child(1, marked=True), 3, initial=3, readiness=UNSETTLED, event_ref=SET)
    assert body(waiting) == {"metadata": {"annotations": {INITIAL: "3"}}}
    assert waiting.pending
    assert waiting.actions[0].on_success is None


def test_a_raise_without_a_lowering_before_it_waits_for_nothing() -> None:
    assert body(to(child(1, replicas=1, readyReplicas=1), 3, readiness=UNSETTLED))["spec"] == {"replicas": 3}


@pytest.mark.parametrize(
    ("replicas", "reason", "note"),
    [
        (5, "ScalingUp", "Scaling up decode LWS chat-0-1a2b3c4d-decode from 2 to 5 replicas"),
        (0, "ScalingDown", "Scaling down decode LWS chat-0-1a2b3c4d-decode from 2 to 0 replicas"),
    ],
)
def test_an_event_tells_of_scaling_if_it_is_asked_to(replicas: int, reason: str, note: str) -> None:
    """50 §17. Each child has an event of its own, as events of one reason about one object are folded into one."""
    (action,) = to(child(2), replicas, event_ref=SET).actions
    event = action.on_success
    assert event is not None
    assert (event.regarding, event.reason, event.action, event.type, event.note) == (
        SET,
        reason,
        "Update",
        "Normal",
        note,
    )
    assert isinstance(event.related, ObjectRef)
    assert event.related.uid == "u"
    assert to(child(2), replicas).actions[0].on_success is None


# Where somebody else has written --------------------------------------------------------------------------------------


def anew(of: Child, live: Obj, replicas: int = 5) -> Obj | None:
    """What is sent for a child in its place, as it is now, where the write meets that of somebody else."""
    (action,) = to(of, replicas).actions
    assert isinstance(action, Patch)
    assert action.anew is not None
    return action.anew(live)


def later(of: Child, **fields: Any) -> Obj:
    """A child as it is at resourceVersion 8; `fields` are of its metadata."""
    return {**of.obj, "metadata": {**of.obj["metadata"], "resourceVersion": "8", **fields}}


def test_a_status_that_has_changed_meanwhile_does_not_stop_a_write() -> None:
    """50 §7.4 item 7: what is decided for several children is written to all of them."""
    of = child(2, replicas=1)
    live = {**later(of), "status": {"replicas": 2, "readyReplicas": 2}}
    assert anew(of, live) == {"metadata": {"resourceVersion": "8"}, "spec": {"replicas": 5}}
    lowered = {"metadata": {"annotations": {PENDING: "true"}, "resourceVersion": "8"}, "spec": {"replicas": 1}}
    assert anew(of, live, 1) == lowered


@pytest.mark.parametrize(
    "fields",
    [
        {"uid": "another"},
        {"generation": 2},
        {"labels": {names.ROLE_LABEL: "prefill"}},
        {"annotations": {INITIAL: "3"}},
        {"ownerReferences": [{"uid": "somebody", "controller": True}]},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
    ],
)
def test_anything_else_that_has_changed_is_decided_on_anew(fields: Obj) -> None:
    assert anew(child(2), later(child(2), **fields)) is None


def test_a_raise_is_decided_on_anew_where_groups_are_on_their_way_out_now() -> None:
    """50 §7.6."""
    of, more = child(2, replicas=2), {"replicas": 3}
    assert anew(of, {**later(of), "status": more}) is None
    assert anew(child(2, replicas=3), {**later(of), "status": more}) is not None, "they have been waited for"


def test_a_lowering_is_decided_on_anew_where_a_ready_group_was_lost() -> None:
    """50 §8.1: one more that goes might be one too many."""
    of = child(4, replicas=4, readyReplicas=4)
    lost = {**later(of), "status": {"replicas": 4, "readyReplicas": 3}}
    assert anew(of, lost, 3) is None
    assert anew(of, lost, 5) is not None, "a raise takes nothing away"
    assert anew(child(4, replicas=4, readyReplicas=2), lost, 3) is not None
