"""Scalers and the counts that roles are to have (specification: 50 §11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lwskit.api.names import INT32_MAX
from lwskit.disaggregated import scaler_status, scaling, spec
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.disaggregated.model import Child, Part
from lwskit.disaggregated.scaling import Scaling
from lwskit.runtime.objects import Obj, controller_reference
from lwskit.runtime.plan import Create, Delete, Emit, OnError, Patch
from tests.unit.disaggregated.scenes import child_object, ds_object, role, scaler

PREFIX = "disaggregatedset.x-k8s.io/"
DECODE = Part("decode")
TAKEN = "Scaler chat-decode exists but is not controlled by this DisaggregatedSet; not adopting"


def decide(ds: Obj, children: Sequence[Obj] = (), scalers: Sequence[Obj] = ()) -> Scaling:
    return scaling.decide(ds, spec.read(ds), [Child.of(obj) for obj in children], scalers)


def external(*more: Obj, **fields: Any) -> Obj:
    return ds_object(role("decode", 5, mode="External"), *more, **fields)


def test_static_roles_are_as_the_set_says():
    found = decide(ds_object(role("prefill", 2), role("decode", None), role("off", 0)))
    assert found.targets.roles == {"prefill": 2, "decode": 1, "off": 0}
    assert found.actions == ()
    assert found.targets.unresolved == ()


def test_a_new_external_role_begins_with_one_group():
    """50 §23 line 43: given a fresh External role, a scaler with the name, labels, owner and seed 1."""
    found = decide(external())
    (create,) = found.actions
    assert isinstance(create, Create)
    assert create.obj == {
        "apiVersion": "disaggregatedset.x-k8s.io/v1",
        "kind": "DisaggregatedSetRoleScaler",
        "metadata": {
            "name": "chat-decode",
            "namespace": "prod",
            "labels": {f"{PREFIX}name": "chat", f"{PREFIX}role": "decode"},
            "ownerReferences": [controller_reference(ds_object(role("decode")), DISAGGREGATED_SET)],
        },
        "spec": {"replicas": 1},
    }
    assert create.obj["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] is True
    assert create.on_success is not None
    assert (create.on_success.reason, create.on_success.note, create.on_success.action) == (
        "ScalerCreated",
        "Created scaler chat-decode for role decode",
        "Create",
    )
    assert create.errors == {"AlreadyExists": OnError.LOOK}
    assert found.targets.roles == {"decode": 1}


def test_a_role_that_runs_keeps_what_it_has():
    """50 §23 line 43: given existing children, the seed is their sum over revisions."""
    children = [child_object("decode", 3), child_object("decode", 2, revision="00000000"), child_object("other", 9)]
    found = decide(external(), children)
    (create,) = found.actions
    assert isinstance(create, Create)
    assert create.obj["spec"] == {"replicas": 5}
    assert found.targets.roles == {"decode": 5}
    most = decide(external(), [child_object("decode", INT32_MAX), child_object("decode", 2, revision="00000000")])
    assert most.targets.roles == {"decode": INT32_MAX}
    paused = decide(external(), [child_object("decode", 0)])
    assert paused.targets.roles == {"decode": 0}


@pytest.mark.parametrize("count", [5, 0])
def test_a_scaler_says_the_count(count: int):
    """50 §23 line 44: given /scale 5, then 5; given 0, then 0."""
    found = decide(external(), [child_object("decode", 2)], [scaler("chat-decode", "decode", count)])
    assert found.actions == ()
    assert found.targets.roles == {"decode": count}
    assert found.held.keys() == {DECODE}


def test_a_role_that_is_static_again_loses_its_scaler():
    """50 §23 line 45: given External to Static, the scaler is deleted and spec.replicas applies."""
    found = decide(ds_object(role("decode", 4)), [], [scaler("chat-decode", "decode", 9)])
    (delete,) = found.actions
    assert isinstance(delete, Delete)
    assert (delete.key.name, delete.uid) == ("chat-decode", "chat-decode-uid")
    assert delete.on_success is not None
    assert delete.on_success.note == "Deleted scaler chat-decode (role decode is no longer External)"
    assert delete.on_success.reason == "ScalerDeleted"
    assert found.targets.roles == {"decode": 4}
    assert found.held == {}


def test_a_scaler_that_goes_is_not_deleted_again_and_not_used():
    leaving = scaler("chat-decode", "decode", 9, deletionTimestamp="2026-11-30T11:00:00Z")
    assert decide(ds_object(role("decode", 4)), [], [leaving]).actions == ()
    found = decide(external(), [], [leaving])
    assert found.actions == ()
    assert found.targets.unresolved == (DECODE,)
    assert found.foreign == ()


def test_a_scaler_of_somebody_else_is_left_alone():
    """50 §23 line 46: given a foreign scaler of that name, ScalerConflict and no count for the role."""
    for other in (scaler("chat-decode", "decode", 9, owner="other"), scaler("chat-decode", "x", ownerReferences=[])):
        found = decide(external(role("prefill", 2)), [], [other])
        (told,) = found.actions
        assert isinstance(told, Emit)
        assert (told.event.reason, told.event.type, told.event.action) == ("ScalerConflict", "Warning", "Conflict")
        assert told.event.note == TAKEN
        assert found.targets.unresolved == (DECODE,)
        assert found.targets.roles == {"prefill": 2}
        assert found.foreign == (DECODE,)


def test_a_conflict_is_told_once():
    other = scaler("chat-decode", "decode", owner="other")
    message = "DisaggregatedSetRoleScaler could not be created or adopted for roles: {}"
    condition = {"type": "Progressing", "status": "True", "reason": "ReplicaTargetsUnresolved"}

    def told(**change: str) -> int:
        status = {"conditions": [{**condition, "message": message.format("decode, x"), **change}]}
        return len(decide(external(status=status), [], [other]).actions)

    assert told() == 0
    assert told(message=message.format("x")) == 1
    assert told(reason="RolloutInProgress") == 1
    assert told(status="False") == 1


def test_a_scaler_of_another_part_with_the_same_name_goes_first():
    """50 §11.2: role `model-a` and sub-role `a` of `model` have the same scaler name."""
    ds = ds_object(role("model-a", 1, mode="External"))
    found = decide(ds, [], [scaler("chat-model-a", "model", subrole="a")])
    (delete,) = found.actions
    assert isinstance(delete, Delete)
    assert found.targets.unresolved == (Part("model-a"),)
    assert found.foreign == ()


def test_a_scaler_without_labels_is_known_by_its_name():
    found = decide(external(), [], [scaler("chat-decode", "decode", 6, labels={})])
    assert found.actions == ()
    assert found.targets.roles == {"decode": 6}


def subroles(*subs: Obj) -> Obj:
    return ds_object(role("decode", 9, subRoles=[*subs]))


def test_subroles_add_up_to_their_role():
    """50 §23 line 64: given an External child, scaler <ds>-<role>-<sub>."""
    ds = subroles({"name": "long", "replicas": 2}, {"name": "short", "scaling": {"mode": "External"}})
    found = decide(ds)
    (create,) = found.actions
    assert isinstance(create, Create)
    assert create.obj["metadata"]["name"] == "chat-decode-short"
    assert create.obj["metadata"]["labels"][f"{PREFIX}subrole"] == "short"
    assert create.on_success is not None
    assert create.on_success.note == "Created scaler chat-decode-short for role decode/short"
    assert found.targets.parts == {Part("decode", "long"): 2, Part("decode", "short"): 1}
    assert found.targets.roles == {"decode": 3}
    assert found.targets.of_subroles("decode") == {"long": 2, "short": 1}


def test_a_subrole_begins_with_what_it_has():
    ds = subroles({"name": "long", "replicas": 2}, {"name": "short", "scaling": {"mode": "External"}})
    issued = {f"{PREFIX}subrole-replicas": '{"long":1,"short":4}'}
    found = decide(ds, [child_object("decode", 5, annotations=issued)])
    assert found.targets.roles == {"decode": 6}
    undivided = decide(ds, [child_object("decode", 5)])
    assert undivided.targets.parts == {Part("decode", "long"): 2, Part("decode", "short"): 3}


def test_what_a_new_subrole_begins_with():
    """At least with one group; with what the others leave only where the role is divided for the first time."""
    shared = [{"name": name, "scaling": {"mode": "External"}} for name in ("short", "brief")]
    ds = subroles({"name": "long", "replicas": 2}, *shared)
    few = decide(ds, [child_object("decode", 1)])
    assert few.targets.of_subroles("decode") == {"long": 2, "short": 1, "brief": 1}
    many = decide(ds, [child_object("decode", 9)])
    assert many.targets.of_subroles("decode") == {"long": 2, "short": 1, "brief": 7}
    issued = {f"{PREFIX}subrole-replicas": '{"long":9}'}
    divided = decide(ds, [child_object("decode", 9, annotations=issued)])
    assert divided.targets.of_subroles("decode") == {"long": 2, "short": 1, "brief": 1}


def test_a_subrole_without_count_leaves_the_others_theirs():
    ds = subroles({"name": "long", "replicas": 2}, {"name": "short", "scaling": {"mode": "External"}})
    found = decide(ds, [], [scaler("chat-decode-short", "decode", subrole="short", owner="other")])
    assert found.targets.parts == {Part("decode", "long"): 2}
    assert found.targets.roles == {}
    assert found.targets.unresolved == (Part("decode", "short"),)


def test_more_groups_than_a_set_can_have():
    ds = subroles({"name": "a", "replicas": 2**31 - 1}, {"name": "b", "replicas": 1})
    found = decide(ds)
    assert found.targets.unresolved == (DECODE,)
    assert found.targets.roles == {}


# Status of scalers -----------------------------------------------------------------------------------------------

SELECTOR = f"{PREFIX}name=chat,{PREFIX}role=decode,leaderworkerset.sigs.k8s.io/worker-index=0"
NOW, BEFORE = "2026-11-30T12:00:00Z", "2026-11-30T11:00:00Z"


def bound(since: str, generation: int = 2) -> Obj:
    return {
        "replicas": 3,
        "selector": SELECTOR,
        "observedGeneration": generation,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Bound",
                "message": "Scaler bound to a live DisaggregatedSet role",
                "observedGeneration": generation,
                "lastTransitionTime": since,
            }
        ],
    }


def test_the_status_of_a_scaler():
    """50 §23 line 47: the selector is of leaders only, and replicas counts groups."""
    (patch,) = scaler_status.actions("chat", {DECODE: scaler("chat-decode", "decode")}, {DECODE: 3}, NOW)
    assert isinstance(patch, Patch)
    assert (patch.subresource, patch.uid) == ("status", "chat-decode-uid")
    assert patch.body == {"status": bound(NOW)}


def test_the_status_of_a_scaler_is_written_if_it_changes():
    """50 §23 line 54: given no change, no write."""
    told = {**scaler("chat-decode", "decode"), "status": bound(BEFORE)}
    assert scaler_status.actions("chat", {DECODE: told}, {DECODE: 3}, NOW) == ()
    assert scaler_status.actions("chat", {DECODE: told}, {}, NOW) == ()
    (patch,) = scaler_status.actions("chat", {DECODE: told}, {DECODE: 4}, NOW)
    assert isinstance(patch, Patch)
    assert patch.body == {"status": {**bound(BEFORE), "replicas": 4}}
    older = {**scaler("chat-decode", "decode"), "status": bound(BEFORE, 1)}
    (patch,) = scaler_status.actions("chat", {DECODE: older}, {DECODE: 3}, NOW)
    assert isinstance(patch, Patch)
    assert patch.body == {"status": bound(BEFORE)}


def test_conditions_of_others_stay_on_a_scaler():
    mine = {"type": "Mine", "status": "True"}
    was = {"type": "Ready", "status": "False", "lastTransitionTime": BEFORE}
    told = {**scaler("chat-decode", "decode"), "status": {"conditions": [mine, was]}}
    (patch,) = scaler_status.actions("chat", {DECODE: told}, {DECODE: 3}, NOW)
    assert isinstance(patch, Patch)
    assert patch.body["status"]["conditions"] == [mine, *bound(NOW)["conditions"]]


def test_the_selector_of_a_subrole():
    """50 §23 line 64: the four-part selector."""
    assert scaler_status.selector_of("chat", Part("decode", "short")) == f"{SELECTOR},{PREFIX}subrole=short"
