"""Explanations of DisaggregatedSets: which slice, role and child hold them, and what that child says of itself."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated.explain import SetExplanation, explain
from lwskit.groups.explanation import State
from lwskit.runtime.objects import Obj
from tests.unit.doctor.patients import chat, child, role
from tests.unit.doctor.test_children import external, scaler
from tests.unit.groups.small_cluster import NOW
from tests.unit.simulate.families import BACKENDS, family, objects, pair, planned, with_image


def explained(*there: Obj) -> SetExplanation:
    return explain(family(*there), BACKENDS.leaders_of, BACKENDS.workers, NOW)


def counted(ds: Obj, *ready: int) -> Obj:
    """The set with rows of its status."""
    rows = [
        {"name": r["name"], "desiredReplicas": r["spec"]["replicas"], "readyReplicas": count}
        for r, count in zip(ds["spec"]["roles"], ready, strict=True)
    ]
    return {**ds, "status": {**ds["status"], "roleStatuses": rows}}


def noted(lws: Obj, initial: int, **notes: str) -> Obj:
    """A child that says what its role is to have."""
    meta = lws["metadata"]
    notes = {names.INITIAL_REPLICAS_ANNOTATION: str(initial), **notes}
    return {**lws, "metadata": {**meta, "annotations": notes}}


def steady(ds: Obj) -> dict[str, Obj]:
    """The children that a set asks for, in one slice."""
    return {
        r["name"]: noted(child(ds, r["name"], r["spec"]["replicas"]), r["spec"]["replicas"])
        for r in ds["spec"]["roles"]
    }


def rolling(*, old: tuple[int, int], new: tuple[int, int]) -> tuple[Obj, dict[str, Obj]]:
    """The set `chat`, prefill 4 and decode 2, on its way to a new revision, and its children."""
    initial = (4, 2)
    before = pair(*initial)
    ds = with_image(before, "b")
    ds["status"] = {"observedGeneration": ds["metadata"]["generation"]}
    revision = planned(ds, *objects(before)).revision
    counts: dict[str, tuple[Any, int, int]] = {
        "old prefill": (before, old[0], initial[0]),
        "old decode": (before, old[1], initial[1]),
        "prefill": (ds, new[0], initial[0]),
        "decode": (ds, new[1], initial[1]),
    }
    found = {
        key: noted(child(of, key.split()[-1], count, rev=revision if of is ds else ""), meant)
        for key, (of, count, meant) in counts.items()
    }
    return ds, found


def test_all_is_well() -> None:
    ds = counted(pair(2, 1), 2, 1)
    found = explained(*objects(ds, steady(ds)))
    assert (found.state, found.cause) == (State.OK, "ok")
    assert found.paragraph == (
        f"ns/chat is at revision {found.revision}: prefill has 2 of 2 groups ready, decode has 1 of 1 groups ready. "
        "All is well."
    )


def test_a_role_that_starts() -> None:
    ds = pair(2, 1)
    found = explained(*objects(ds, steady(ds), ready={"prefill": 1}))
    assert (found.state, found.cause, found.slice, found.role) == (State.PROGRESSING, "not-ready", 0, "prefill")
    assert found.child == f"chat-0-{found.revision}-prefill"
    assert (found.group, found.pod) == (1, f"{found.child}-1")
    assert found.paragraph.startswith(
        f"Slice 0 of ns/chat is at revision {found.revision}. It waits for role prefill: 1 of 2 groups is ready. "
        f"LeaderWorkerSet {found.child}: The set waits for group 1"
    )


def without_node(there: list[Obj], suffix: str) -> None:
    """The pods whose names end so find no node."""
    for pod in there:
        if pod["kind"] == "Pod" and pod["metadata"]["name"].endswith(suffix):
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
            pod["status"] = {"phase": "Pending", "conditions": [condition]}


def test_a_rollout_that_waits_for_a_group_without_a_node() -> None:
    ds, there = rolling(old=(4, 2), new=(1, 1))
    found_objects = objects(ds, there, ready={"prefill": 0, "decode": 0})
    without_node(found_objects, "decode-0")
    found = explained(*found_objects)
    assert (found.state, found.cause, found.role) == (State.BLOCKED, "drain-blocked", "decode")
    assert found.child == f"chat-0-{found.revision}-decode"
    assert "prefill 4 old and 1 new, decode 2 old and 1 new." in found.paragraph
    assert "prefill 4 old and 1 new, decode" in explained(*reversed(found_objects)).paragraph
    assert "The rollout waits for role decode: 0 of 1 new groups are ready." in found.paragraph
    assert f"Pod {found.child}-0 is on no node: no room." in found.paragraph
    assert found.advice


def test_a_rollout_that_the_manager_would_go_on_with() -> None:
    ds, there = rolling(old=(4, 2), new=(1, 1))
    found = explained(*objects(ds, there))
    assert (found.state, found.cause, found.slice) == (State.PROGRESSING, "not-written-yet", 0)
    assert "The manager would act now: revision " in found.paragraph


def test_the_slice_that_needs_somebody_comes_first() -> None:
    ds = chat(role("prefill", 1), role("decode", 1), slices=2)
    there = {f"{i}/{name}": noted(child(ds, name, 1, slice=i), 1) for i in range(2) for name in ("prefill", "decode")}
    found_objects = objects(ds, there, ready={"0/prefill": 0, "1/decode": 0})
    assert explained(*found_objects).slice == 0
    revision = explained(*found_objects).revision
    without_node(found_objects, f"chat-1-{revision}-decode-0")
    found = explained(*found_objects)
    assert (found.state, found.slice, found.role) == (State.BLOCKED, 1, "decode")


def test_a_child_that_is_being_deleted() -> None:
    ds = pair(2, 1)
    there = objects(ds, steady(ds))
    for lws in there:
        if lws["metadata"]["name"].endswith("-decode") and lws["kind"] == base.KIND:
            going = {"deletionTimestamp": "2026-10-20T09:59:00Z", "finalizers": ["foregroundDeletion"]}
            lws["metadata"] = {**lws["metadata"], **going}
    found = explained(*there)
    assert (found.state, found.cause, found.role) == (State.PROGRESSING, "child-deleting", "decode")
    assert "kept by finalizer foregroundDeletion; role decode gets another one when its name is free" in found.paragraph


def test_a_child_that_is_refused() -> None:
    """By the event that the manager records when it tries; without one the manager is on its way."""
    ds = pair(2, 1)
    there = {key: child for key, child in steady(ds).items() if key == "prefill"}
    revision = explained(*objects(ds, there)).revision
    name = f"chat-0-{revision}-decode"
    assert explained(*objects(ds, there)).cause == "not-written-yet"
    note = f"Failed to create LeaderWorkerSet {name}: admission webhook denied the request: subGroupSize: 3."
    told = explained(*objects(ds, there), failed(ds, name, note))
    assert (told.state, told.cause, told.slice, told.role, told.child) == (
        State.BLOCKED,
        "child-refused",
        0,
        "decode",
        name,
    )
    assert told.paragraph.endswith(f"Role decode has no LeaderWorkerSet of revision {revision}. {note}")
    other = failed(ds, "chat-0-00000000-decode", note.replace(name, "chat-0-00000000-decode"))
    assert explained(*objects(ds, there), other).cause == "not-written-yet"


def test_a_child_that_may_not_be_changed() -> None:
    """By the latest event about it: one that tells of a change since then has more weight."""
    ds = pair(2, 1)
    there = steady(ds)
    ds = pair(2, 3)
    name = there["decode"]["metadata"]["name"]
    assert explained(*objects(ds, there)).cause == "not-written-yet"
    event = failed(ds, name, f"Failed to update LeaderWorkerSet {name}: frozen", names.EVENT_FAILED_UPDATE)
    told = explained(*objects(ds, there), event)
    assert (told.state, told.cause, told.role, told.child) == (State.BLOCKED, "child-refused", "decode", name)
    assert told.paragraph.endswith(
        f"Role decode needs a change of LeaderWorkerSet {name} that is refused. {event['note']}."
    )
    later = {**failed(ds, name, "Scaling up", names.EVENT_SCALING_UP), "type": "Normal"}
    later |= {"metadata": {"name": "f", "namespace": "ns"}, "eventTime": "2026-01-01T00:01:00.000000Z"}
    assert explained(*objects(ds, there), event, later).cause == "not-written-yet"


def failed(ds: Obj, child: str, note: str, reason: str = names.EVENT_FAILED_CREATE) -> Obj:
    """The event that a child could not be made or changed."""
    regarding = {"kind": names.KIND, "name": ds["metadata"]["name"], "namespace": "ns", "uid": ds["metadata"]["uid"]}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "ns"},
        "type": "Warning",
        "reason": reason,
        "regarding": regarding,
        "related": {"kind": base.KIND, "name": child, "namespace": "ns"},
        "note": note,
        "eventTime": "2026-01-01T00:00:00.000000Z",
    }


def test_a_foreign_child() -> None:
    ds = pair(2, 1)
    there = steady(ds)
    there["decode"]["metadata"]["ownerReferences"] = []
    found = explained(*objects(ds, there))
    assert (found.state, found.cause, found.slice, found.role) == (State.BLOCKED, "foreign-child", 0, "decode")
    name = f"chat-0-{found.revision}-decode"
    assert f"LeaderWorkerSet {name} belongs to nobody, not to ns/chat, which needs that name" in found.paragraph
    assert found.advice == (f"remove it: `kubectl -n ns delete leaderworkerset {name}`",)


def test_a_scaler_of_somebody_else() -> None:
    ds = chat(role("prefill"), external("decode"))
    foreign = scaler(ds, "decode")
    foreign["metadata"]["ownerReferences"] = []
    found = explained(*objects(ds, steady(ds)), foreign)
    assert (found.state, found.cause) == (State.BLOCKED, "scaler-conflict")
    assert "DisaggregatedSetRoleScaler chat-decode belongs to nobody, not to this set" in found.paragraph


def test_a_scaler_that_goes() -> None:
    ds = chat(role("prefill"), external("decode"))
    going = scaler(ds, "decode")
    going["metadata"]["deletionTimestamp"] = "2026-10-20T09:59:59Z"
    found = explained(*objects(ds, steady(ds)), going)
    assert (found.state, found.cause) == (State.PROGRESSING, "scaler-deleting")


def test_sub_roles_that_ask_for_more_than_there_may_be() -> None:
    ds = chat({**role("prefill"), "subRoles": [{"name": name, "replicas": 2**31 - 1} for name in "ab"]})
    found = explained(ds)
    assert (found.state, found.cause) == (State.BLOCKED, "unresolved")
    assert (
        "The sub-roles of role prefill ask for 4294967294 groups, and a LeaderWorkerSet may have 1000000 at most."
        in (found.paragraph)
    )
    assert found.advice == ("ask for fewer in role prefill",)


def test_a_part_whose_present_count_cannot_be_read_gets_no_scaler() -> None:
    ds = chat({**role("prefill"), "subRoles": [{"name": "a", "scaling": {"mode": "External"}}]})
    broken = child(ds, "prefill", 1, annotations={names.SUBROLE_REPLICAS_ANNOTATION: "{}"})
    found = explained(*objects(ds, {"prefill": broken}))
    assert (found.state, found.cause, found.advice) == (State.BLOCKED, "unresolved", ())
    assert f"Role prefill/a gets no scaler: annotation {names.SUBROLE_REPLICAS_ANNOTATION} of" in found.paragraph


def test_a_manager_that_is_behind() -> None:
    ds = pair(2, 1)
    ds["status"]["observedGeneration"] = 2
    found = explained(*objects(ds, steady(ds)))
    assert (found.state, found.cause) == (State.BLOCKED, "no-manager")
    assert "is at generation 3, of which the manager has acted on 2" in found.paragraph


def test_a_set_without_anything() -> None:
    ds = pair(2, 1)
    ds["metadata"]["annotations"] = {}
    found = explained(ds)
    assert (found.state, found.cause, found.waits_for) == (State.BLOCKED, "no-manager", "the manager")


def test_a_set_that_is_being_deleted() -> None:
    ds = pair(2, 1)
    ds["metadata"] |= {"deletionTimestamp": "2026-10-20T09:59:00Z", "finalizers": ["foregroundDeletion"]}
    found = explained(*objects(ds, steady(ds)))
    assert (found.state, found.cause) == (State.DELETING, "deleting")
    assert found.paragraph == (
        "ns/chat is being deleted since 2026-10-20T09:59:00Z; 2 LeaderWorkerSets of it are still there. It is kept by "
        "finalizer foregroundDeletion."
    )


def test_a_revision_that_cannot_be_told() -> None:
    ds = pair(2, 1)
    ds["metadata"]["annotations"] = {names.REVISION_HASH_VERSION_ANNOTATION: "v9"}
    found = explained(*objects(ds, steady(pair(2, 1))))
    assert (found.state, found.cause) == (State.BLOCKED, "no-decision")
    assert 'unsupported revision hash version "v9"' in found.paragraph


def test_a_scale_down_that_is_not_over() -> None:
    """50 §7.6: back to a revision whose groups are still on their way out."""
    ds, there = rolling(old=(4, 2), new=(1, 1))
    going = there["prefill"]
    going["metadata"]["annotations"][names.SCALE_DOWN_PENDING_ANNOTATION] = "true"
    found_objects = objects(ds, there)
    for pod in found_objects:
        if pod["kind"] == "Pod" and pod["metadata"]["name"] == f"{going['metadata']['name']}-0":
            leaving = copy.deepcopy(pod)
            leaving["metadata"] |= {"deletionTimestamp": "2026-10-20T09:59:59Z"}
            found_objects[found_objects.index(pod)] = leaving
    found = explained(*found_objects)
    assert (found.state, found.cause, found.role) == (State.PROGRESSING, "scale-down-unsettled", "prefill")
    assert "the previous scale-down of LeaderWorkerSet" in found.paragraph


def test_readiness_that_cannot_be_told() -> None:
    ds = pair(2, 1)
    there = objects(ds, steady(ds))
    for workload in there:
        if workload["kind"] == "StatefulSet" and workload["metadata"]["name"].endswith("decode"):
            workload["metadata"]["generation"] = 2
    found = explained(*there)
    assert (found.cause, found.role) == ("readiness-unknown", "decode")
    assert "what it was asked for last has not been seen to yet" in found.paragraph


def test_groups_without_a_sub_role() -> None:
    ds = pair(2, 1)
    condition = {"type": names.CONDITION_SUBROLES_ASSIGNED, "status": "False", "message": "1 group of decode."}
    ds["status"]["conditions"].append(condition)
    found = explained(*objects(ds, steady(ds)))
    assert (found.state, found.cause) == (State.PROGRESSING, "unassigned")
    assert found.paragraph.endswith("known yet: 1 group of decode.")


def test_events_that_may_not_be_read_are_told_of() -> None:
    ds = pair(2, 1)
    ds["status"]["observedGeneration"] = 2
    blind = "events could not be read (forbidden)"
    there = replace(family(*objects(ds, steady(ds))), blind=blind)
    found = explain(there, BACKENDS.leaders_of, BACKENDS.workers, NOW)
    assert found.paragraph.endswith(
        "Events could not be read (forbidden): why something could not be written may be missed."
    )
