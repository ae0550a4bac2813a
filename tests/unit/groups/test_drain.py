"""Draining one group: how it is named, and that it is refused where another one would go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.groups import drain as drains
from lwskit.groups.model import DecisionError
from lwskit.groups.scene import Scene
from lwskit.groups.victims import victims
from lwskit.runtime.objects import Obj, uid_of
from lwskit.runtime.ranking import DELETION_COST
from tests.unit.groups.hash_objects import NOW, deployment, hash_lws, key, leader, worker
from tests.unit.groups.small_cluster import make_lws, settled
from tests.unit.groups.test_victims import on, replica_set
from tests.unit.simulate.scenes import scene_of


def scene(*pods: Obj, replicas: int | None = None) -> Scene:
    """A set in Hash mode with these leaders."""
    count = len(pods) if replicas is None else replicas
    lws, sets = hash_lws(replicas=count), (replica_set("rs", count),)
    return Scene(name="x", namespace="ns", lws=lws, workload=deployment(lws), between=sets, pods=pods)


def refusal(where: Scene, pod: Obj) -> str:
    with pytest.raises(DecisionError) as found:
        drains.decide(where, pod, NOW)
    return str(found.value)


def test_a_group_has_several_names() -> None:
    pods = [leader(1), leader(0x12345678), worker(1)]
    for name in ("x-rs-1", "x-00000001", "0000", key(1)):
        assert drains.find(pods, name) is pods[0]
    for name in ("1234", "12345678…", "12345678...", f"{key(0x12345678)}…", "x-1234", "x-12345678…", "x-12345…"):
        assert drains.find(pods, name) is pods[1], name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("0000", "several groups have a key that begins with '0000': "),
        ("0000…", "several groups have a key that begins with '0000…': "),
        ("x-0000", "several groups have a key that begins with 'x-0000': "),
        ("000", "no group is called '000'"),
        ("000…", "no group is called '000…'"),
        ("x-000", "no group is called 'x-000'"),
        ("y-0000", "no group is called 'y-0000'"),
        ("x-", "no group is called 'x-'"),
        ("…", "no group is called '…'"),
        ("x-rs-9", "did you mean x-rs-"),
        ("x-00000001-1", "x-00000001-1 is a worker; the group that it is of is led by x-rs-1"),
        ("", "no group is called ''"),
    ],
)
def test_a_name_that_is_none(name: str, text: str) -> None:
    with pytest.raises(DecisionError, match=text):
        drains.find([leader(1), leader(2), worker(1)], name)


def test_only_leaders_of_sets_have_names() -> None:
    """A variable that is not set names no group, not even one whose leader has no host name."""
    stranger, bare = leader(1), leader(2)
    stranger["metadata"]["labels"] = {names.WORKER_INDEX_LABEL: "0", names.GROUP_KEY_LABEL: key(1)}
    del bare["spec"]["hostname"]
    for name in ("", "x-rs-1", key(1)):
        with pytest.raises(DecisionError, match="no group is called"):
            drains.find([stranger, bare], name)


def test_a_kept_group_does_not_go_by_itself() -> None:
    pods = [on("n", leader(1, exhausted=True, leaving=True)), on("n", leader(2))]
    kept = "the group of x-rs-1 has no restart left and is kept: it goes when the set is scaled"
    assert refusal(scene(*pods), pods[0]).startswith(f"{kept} to the groups that run, with a new template, or with")
    numbered = replace(scene(*pods), lws=make_lws(replicas=2))
    assert refusal(numbered, pods[0]).startswith(f"{kept} below it, with a new template, or with annotation")


def test_the_mark_makes_it_the_first() -> None:
    pods = [on("n", leader(i)) for i in range(3)]
    found = drains.decide(scene(*pods), pods[1], NOW)
    assert (found.name, found.before, found.after, found.cost) == ("x-rs-1", 3, 2, -1000)
    assert found.why == "deletion cost -1000"
    body = found.marking("-1000")
    assert body == {"metadata": {"uid": "leader-1", "annotations": {DELETION_COST: "-1000"}}}
    assert found.unmarking["metadata"]["annotations"] == {DELETION_COST: None}


def test_a_mark_is_below_all_others_and_is_taken_back_to_what_it_was() -> None:
    pods = [on("n", leader(1), cost=-5000), on("n", leader(2), cost=7)]
    found = drains.decide(scene(*pods), pods[1], NOW)
    assert found.cost == -5001
    assert found.unmarking["metadata"]["annotations"] == {DELETION_COST: "7"}


def test_no_cost_is_lower_than_the_lowest() -> None:
    pods = [on("n", leader(1), cost=-(2**31)), on("n", leader(2))]
    pods[1]["metadata"]["creationTimestamp"] = "2026-10-20T01:00:00Z"
    assert "x-rs-2 would not be the one to go" in refusal(scene(*pods), pods[1])


def test_refused_with_the_group_that_would_go() -> None:
    pods = [on("n", leader(1)), on("n", leader(2, ready=False)), on("n", leader(3))]
    text = refusal(scene(*pods), pods[0])
    assert text == (
        "x-rs-1 would not be the one to go: scaling 3 → 2 would remove x-rs-2: not ready; "
        "a deletion cost would not bring it before that"
    )
    pods[1]["spec"].pop("nodeName")
    assert "x-rs-2: not scheduled" in refusal(scene(*pods), pods[0])
    assert drains.decide(scene(*pods), pods[1], NOW).why == "not scheduled"


def test_refused_where_nothing_can_be_told() -> None:
    pods = [on("n", leader(1)), on("n", leader(2))]
    good = scene(*pods)
    assert good.lws is not None
    assert good.workload is not None
    gone = {**good.lws, "metadata": {**good.lws["metadata"], "deletionTimestamp": "2026-10-20T09:59:00Z"}}
    assert refusal(replace(good, lws=None), pods[0]) == "LeaderWorkerSet x is gone"
    assert "being deleted" in refusal(replace(good, lws=gone), pods[0])
    assert "no leaders yet" in refusal(replace(good, workload=None), pods[0])
    assert "goes already" in refusal(good, leader(1, leaving=True))
    assert "still being scaled" in refusal(replace(good, lws=hash_lws(replicas=3)), pods[0])
    assert "no group now" in refusal(scene(pods[0], replicas=2), pods[0])


def test_things_may_have_changed_after_the_mark() -> None:
    pods = [on("n", leader(i)) for i in (1, 2, 3)]
    found = drains.decide(scene(*pods), pods[0], NOW)
    drains.check(found, scene(*pods), NOW)
    with pytest.raises(DecisionError, match="is gone"):
        drains.check(found, scene(*pods[1:]), NOW)
    with pytest.raises(DecisionError, match="had 3 groups"):
        drains.check(found, scene(*pods[:2]), NOW)
    with pytest.raises(DecisionError, match="not ready"):
        drains.check(found, scene(pods[0], pods[1], on("n", leader(3, ready=False))), NOW)


def test_of_ordinals_only_the_highest() -> None:
    """In Ordinal mode nothing is marked: no cost changes the order."""
    cluster = settled(make_lws(replicas=3, size=1))
    where = scene_of(cluster)
    found = drains.decide(where, cluster.leaders[2], NOW)
    assert (found.name, found.cost, found.after) == ("x-2", None, 2)
    text = refusal(where, cluster.leaders[0])
    assert "scaling 3 → 2 would remove x-2: a StatefulSet removes the highest ordinal first" in text
    assert text.endswith("a deletion cost does not count there")


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from([None, -100, 50])), min_size=1, max_size=6),
    st.integers(0, 5),
)
def test_either_it_goes_alone_or_it_is_refused(states: list[tuple[bool, bool, int | None]], chosen: int) -> None:
    pods = [on("n" * scheduled, leader(i, ready=ready), cost=c) for i, (scheduled, ready, c) in enumerate(states)]
    pod, where = pods[chosen % len(pods)], scene(*pods)
    assert where.lws is not None
    assert where.workload is not None
    best = max((bool(p["spec"].get("nodeName")), p["status"]["conditions"][0]["status"] == "True") for p in [pod])
    worse = [(bool(p["spec"].get("nodeName")), p["status"]["conditions"][0]["status"] == "True") for p in pods]
    if best > min(worse):
        refusal(where, pod)
        return
    found = drains.decide(where, pod, NOW)
    marked = [on(p["spec"].get("nodeName", ""), p, cost=found.cost) if p is pod else p for p in pods]
    gone = victims(where.lws, where.workload, marked, NOW, len(pods) - 1, sets=where.between)
    assert [v.uid for v in gone] == [uid_of(pod)]
