"""Whose the leaders of sets are, as pods change."""

from __future__ import annotations

from lwskit.api import names
from lwskit.groups.owners import LeaderOwners
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Key, Obj

KEY = Key("ns", "llm")


def leader(name: str = "llm-0", owner: str = "", *, kind: str = "StatefulSet", uid: str = "", **meta: object) -> Obj:
    labels = {names.NAME_LABEL: "llm", names.WORKER_INDEX_LABEL: names.LEADER_INDEX}
    made: Obj = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "labels": labels, **meta}
    if owner:
        made["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": "llm", "uid": owner, "controller": True}
        ]
    return {"metadata": made}


def told(*pods: Obj) -> LeaderOwners:
    owners = LeaderOwners(STATEFUL_SET)
    for pod in pods:
        owners.apply(POD, None, pod)
    return owners


def test_leaders_of_the_workload_are_no_others() -> None:
    owners = told(leader("llm-0", "a"), leader("llm-1", "a"))
    assert not owners.has_others(KEY, "a")
    assert owners.has_others(KEY, "b")
    assert not owners.has_others(Key("ns", "else"), "b")


def test_leaders_change_hands_one_by_one() -> None:
    first, second = leader("llm-0", "a"), leader("llm-1", "a")
    owners = told(first, second)
    for free, taken in ((leader("llm-0"), leader("llm-0", "b")), (leader("llm-1"), leader("llm-1", "b"))):
        assert owners.has_others(KEY, "b")
        owners.apply(POD, first if free["metadata"]["name"] == "llm-0" else second, free)
        assert owners.has_others(KEY, "b")
        owners.apply(POD, free, taken)
    assert not owners.has_others(KEY, "b")


def test_those_that_go_or_are_gone_or_something_else_makes_do_not_count() -> None:
    going = leader("llm-0", "a", deletionTimestamp="2026-01-01T00:00:00Z")
    foreign, worker, keyed = leader("llm-1", "f", kind="Fleet"), leader("llm-2-1"), leader("llm-abc-xyz", "r")
    worker["metadata"]["labels"][names.WORKER_INDEX_LABEL] = "1"
    assert not told(going, foreign, worker, keyed).has_others(KEY, "b")
    owners = told(leader("llm-0", "a"))
    owners.apply(POD, leader("llm-0", "a"), None)
    assert not owners.has_others(KEY, "b")


def test_a_successor_of_the_same_name_is_another_one() -> None:
    owners = told(leader("llm-0", "a", uid="one"))
    owners.apply(POD, leader("llm-0", "a", uid="one"), leader("llm-0", "b", uid="two"))
    assert not owners.has_others(KEY, "b")


def test_a_list_is_all_there_is() -> None:
    owners = told(leader("llm-0", "a"))
    owners.replace(POD, [leader("llm-0", "b")])
    assert not owners.has_others(KEY, "b")
    owners.replace(POD, [])
    assert not owners.has_others(KEY, "c")
