"""What the status and the readiness tell of sub-roles (specification: 50 §13, §16, §7.5)."""

from __future__ import annotations

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.model import Child, Part
from lwskit.disaggregated.readiness import Counted
from lwskit.disaggregated.subroles import report, serving
from lwskit.disaggregated.subroles.report import Row
from lwskit.groups.identity import is_leader
from lwskit.runtime.objects import Obj
from tests.unit.disaggregated.divided import OLD, divided, partition, pod, pods_of
from tests.unit.disaggregated.scenes import REVISION

KNOWN = {"prefill": frozenset("ab")}


def _incoherent(label: str, other: str) -> list[Obj]:
    pods = pods_of([label], size=2)
    pods[1]["metadata"]["labels"][names.SUBROLE_LABEL] = other
    return pods


def test_rows_count_coherent_groups_of_all_revisions() -> None:
    """50 §23 line 65: a group whose pods do not agree counts nowhere."""
    new, old = Child.of(divided({"a": 2, "b": 1})), Child.of(divided({"a": 1}, revision=OLD))
    pods = pods_of("aab", size=2, unready={1})
    pods[4]["metadata"]["labels"][names.SUBROLE_LABEL] = "a"
    partitions = {new.uid: partition(pods, 3), old.uid: partition(pods_of("a"), 1)}
    assert report.rows([new, old], partitions, REVISION) == {Part("prefill", "a"): Row(3, 2, 2)}


def test_a_group_that_goes_is_in_no_row() -> None:
    child = Child.of(divided({"a": 1}))
    partitions = {child.uid: partition([pod("child-0", "0", 0, "a", leaving=True)], 1)}
    assert report.rows([child], partitions, REVISION) == {}


def test_all_groups_are_assigned_or_the_first_ones_are_named() -> None:
    child = Child.of(divided({"a": 1, "b": 1}))
    good = report.assignment([child], {child.uid: partition(pods_of("ab", size=2), 2)}, KNOWN)
    assert good is not None
    assert (good.is_true, good.reason) == (True, names.REASON_GROUPS_ASSIGNED)
    for pods in (_incoherent("a", "b"), _incoherent("", "b"), pods_of(["c"]), pods_of([""])):
        bad = report.assignment([child], {child.uid: partition(pods, 1)}, KNOWN)
        assert bad is not None
        assert (bad.is_true, bad.reason) == (False, names.REASON_GROUPS_UNASSIGNED)
        assert bad.message.endswith(": child-0")
    many = report.assignment([child], {child.uid: partition(pods_of([""] * 5), 5)}, KNOWN)
    assert many is not None
    assert many.message.endswith(": child-0, child-1, child-2 and 2 more")


def test_without_sub_roles_nothing_is_said() -> None:
    assert report.assignment([], {}, {}) is None


def test_a_child_that_is_not_divided_yet_has_unassigned_groups() -> None:
    child = Child.of(divided({"a": 1}))
    found = report.assignment([child], {}, KNOWN)
    assert found is not None
    assert (found.is_true, child.name in found.message) == (False, True)


def test_ready_groups_by_sub_role() -> None:
    pods = pods_of("aaabb", size=2, unready={0})
    pods += _incoherent_at(5)
    pods.append(pod("child-2-2", "2", 2, "a", leaving=True))
    found = serving.counted(partition(pods, 4))
    assert found == {"a": Counted(2, 1), "b": Counted(2, 1)}, "ordinal 4 goes, and group 2 loses a worker"


def _incoherent_at(i: int) -> list[Obj]:
    return [pod(f"child-{i}", str(i), 0, "a"), pod(f"child-{i}-1", str(i), 1, "b")]


def test_what_waits_for_a_node_is_told_by_sub_role() -> None:
    pods = pods_of("ab", size=2)
    found = partition(pods, 2)
    waiting = [one for one in pods if not is_leader(one)][1:]
    assert serving.unschedulable(found, waiting) == {"b"}
    assert serving.unschedulable(found, []) == frozenset()
