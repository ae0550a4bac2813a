"""The status of a DisaggregatedSet (specification: 50 §16)."""

from __future__ import annotations

from collections.abc import Sequence

from lwskit.api.names import INT32_MAX
from lwskit.disaggregated import spec, status
from lwskit.disaggregated.model import Child, Part
from lwskit.disaggregated.scene import Targets
from lwskit.disaggregated.status import Row
from lwskit.runtime.objects import Obj
from lwskit.runtime.plan import OnError
from tests.unit.disaggregated.scenes import REVISION, child_object, ds_object, role, targets

BEFORE, NOW = "2026-11-30T11:00:00Z", "2026-11-30T12:00:00Z"
READY = "All roles have reached their desired replica count, ready and updated to the current revision"
NOT_READY = "Not all roles have reached their desired replica count, ready and updated to the current revision"
UNRESOLVED = "DisaggregatedSetRoleScaler could not be created or adopted for roles: decode, model/a"
DS = ds_object(role("prefill", 1), role("decode", 2))
BOTH = {"prefill": 1, "decode": 2}


def counts(replicas: int, ready: int | None = None, updated: int | None = None) -> dict[str, int]:
    return {
        "replicas": replicas,
        "readyReplicas": replicas if ready is None else ready,
        "updatedReplicas": replicas if updated is None else updated,
    }


def rows(ds: Obj, children: Sequence[Obj], wanted: Targets | None = None) -> list[Obj]:
    found = status.rows(spec.read(ds), wanted or targets(BOTH), [Child.of(obj) for obj in children], REVISION)
    return [row.as_dict() for row in found]


def condition(type: str, value: bool, reason: str, message: str, since: str, generation: int = 1) -> Obj:
    return {
        "type": type,
        "status": str(value),
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": since,
    }


def test_groups_of_all_slices_and_revisions_are_counted():
    """50 §16: updated ones only where the child is of the set's revision."""
    children = [
        child_object("prefill", 1, status=counts(1)),
        child_object("prefill", 1, slice=1, status=counts(1, 0)),
        child_object("prefill", 1, revision="00000000", status=counts(1)),
        child_object("decode", 2),
    ]
    assert rows(ds_object(*DS["spec"]["roles"], slices=2), children) == [
        {"name": "prefill", "desiredReplicas": 2, "replicas": 3, "readyReplicas": 2, "updatedReplicas": 2},
        {"name": "decode", "desiredReplicas": 4},
    ]


def test_what_is_wanted_in_all_slices():
    """50 §23 line 53: given slices 2 and replicas 3, desiredReplicas is 6."""
    found = rows(ds_object(role("decode", 3), slices=2), [], targets({"decode": 3}))
    assert found == [{"name": "decode", "desiredReplicas": 6}]
    found = rows(ds_object(role("decode", INT32_MAX), slices=2), [], targets({"decode": INT32_MAX}))
    assert found == [{"name": "decode", "desiredReplicas": INT32_MAX}], "the field holds no more"


def test_a_removed_role_has_no_row():
    """50 §23 line 51: given a removed role that still drains, no entry."""
    found = rows(DS, [child_object("gone", 2, revision="00000000", status=counts(2))])
    assert [row["name"] for row in found] == ["prefill", "decode"]


def test_a_role_is_satisfied_only_by_exactly_what_it_is_to_have():
    assert Row(Part("a"), 2, 2, 2, 2).is_satisfied
    assert Row(Part("a"), 0, 0, 0, 0).is_satisfied
    for other in ((2, 3, 3, 2), (2, 2, 1, 2), (2, 2, 2, 1), (2, 3, 3, 3), (None, 2, 2, 2), (None, 0, 0, 0)):
        assert not Row(Part("a"), *other).is_satisfied


def test_what_the_set_is():
    """50 §23 lines 46, 49 and 52: unresolved, progressing, available; all roles at 0 are available."""
    done = Row(Part("a"), 0, 0, 0, 0)
    assert status.requested([done, done], Targets()) == status.Requested("Available", "AllRolesReady", READY)
    found = status.requested([done, Row(Part("b"), 1, 0, 0, 0)], Targets())
    assert found == status.Requested("Progressing", "RolloutInProgress", NOT_READY)
    found = status.requested([done], Targets(unresolved=(Part("decode"), Part("model", "a"))))
    assert found == status.Requested("Progressing", "ReplicaTargetsUnresolved", UNRESOLVED)


AVAILABLE = status.Requested("Available", "AllRolesReady", READY)
PROGRESSING = status.Requested("Progressing", "RolloutInProgress", NOT_READY)


def test_a_new_set_has_one_condition():
    """50 §23 line 49: given a fresh set, one condition, Progressing."""
    found = status.merged([], PROGRESSING, 1, NOW)
    assert found == [condition("Progressing", True, "RolloutInProgress", NOT_READY, NOW)]


def test_the_other_condition_ends_with_the_reason_of_the_new_one():
    """50 §23 line 49: Available true and Progressing false with reason AllRolesReady; and back."""
    was = [condition("Progressing", True, "RolloutInProgress", NOT_READY, BEFORE)]
    now = status.merged(was, AVAILABLE, 2, NOW)
    assert now == [
        condition("Progressing", False, "AllRolesReady", READY, NOW, 2),
        condition("Available", True, "AllRolesReady", READY, NOW, 2),
    ]
    again = status.merged(now, PROGRESSING, 3, "2026-11-30T13:00:00Z")
    assert again == [
        condition("Progressing", True, "RolloutInProgress", NOT_READY, "2026-11-30T13:00:00Z", 3),
        condition("Available", False, "RolloutInProgress", NOT_READY, "2026-11-30T13:00:00Z", 3),
    ]


def test_what_stays_keeps_its_time():
    """50 §23 line 50: given a change of the generation only, the time of the transition stays."""
    was = [
        condition("Progressing", False, "AllRolesReady", READY, BEFORE),
        condition("Available", True, "AllRolesReady", READY, BEFORE),
        {"type": "Mine", "status": "True"},
    ]
    assert status.merged(was, AVAILABLE, 2, NOW) == [
        condition("Progressing", False, "AllRolesReady", READY, BEFORE, 2),
        condition("Available", True, "AllRolesReady", READY, BEFORE, 2),
        {"type": "Mine", "status": "True"},
    ]
    other = status.Requested("Progressing", "ReplicaTargetsUnresolved", UNRESOLVED)
    (found,) = status.merged([condition("Progressing", True, "RolloutInProgress", NOT_READY, BEFORE)], other, 1, NOW)
    assert found == condition("Progressing", True, "ReplicaTargetsUnresolved", UNRESOLVED, BEFORE)


def test_the_status_is_written_only_if_it_changes():
    """50 §23 line 54: given no change, no write."""
    done = [Row(Part("a"), 1, 1, 1, 1)]
    conditions = status.merged([], AVAILABLE, 1, NOW)
    first = status.update(DS, done, conditions)
    assert first is not None
    assert first.obj["status"] == {
        "observedGeneration": 1,
        "roleStatuses": [{"name": "a", "desiredReplicas": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1}],
        "conditions": conditions,
    }
    assert first.errors == {"Conflict": OnError.REQUEUE, "NotFound": OnError.IGNORE}
    assert first.obj["spec"] == DS["spec"]
    assert status.update(first.obj, done, conditions) is None
    assert status.update(first.obj, [Row(Part("a"), 1, 1, 0, 1)], conditions) is not None


def test_a_status_that_only_counts_waits_a_moment():
    """Sets of many groups are not told of group by group; what else changes is told at once."""
    before = status.update(DS, [Row(Part("a"), 100, 1, 1, 1)], status.merged([], PROGRESSING, 1, NOW))
    after = status.update(DS, [Row(Part("a"), 100, 2, 1, 1)], status.merged([], PROGRESSING, 1, NOW))
    assert before is not None
    assert after is not None
    old, new = before.obj["status"], after.obj["status"]
    assert status.pause(old, new) == 1.0
    assert status.pause({}, new) == 0.0
    assert status.pause(old, {**new, "observedGeneration": 2}) == 0.0
    assert status.pause(old, {**new, "conditions": []}) == 0.0
    more = [{**new["roleStatuses"][0], "desiredReplicas": 900}]
    assert status.pause(old, {**new, "roleStatuses": more}) == 0.0
    large = {**old, "roleStatuses": more}
    assert status.pause(large, {**large, "roleStatuses": [{**more[0], "replicas": 3}]}) == 5.0
