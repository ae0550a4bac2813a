"""Which groups go: the same as the controllers take, for both modes, and why (30 §13, §14)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lwskit.groups.victims import ALL_GO, told, victims
from lwskit.runtime.deployment_sizes import DESIRED, MOST
from lwskit.runtime.objects import Obj, controller_of, is_true, uid_of
from lwskit.runtime.ranking import DELETION_COST, is_active
from tests.unit.groups.hash_objects import NOW, deployment, hash_lws, leader, worker
from tests.unit.groups.small_cluster import make_lws, settled


def replica_set(uid: str, size: int, *, created: int = 0, most: int = 0) -> Obj:
    """A ReplicaSet of the set's Deployment."""
    return {
        "metadata": {
            "name": f"x-{uid}",
            "uid": uid,
            "creationTimestamp": f"2026-10-20T08:00:{created:02}Z",
            "annotations": {DESIRED: str(size), MOST: str(most or size)},
            "ownerReferences": [{"kind": "Deployment", "name": "x", "uid": "deployment", "controller": True}],
        },
        "spec": {"replicas": size},
    }


def on(node: str, pod: Obj, owner: str = "rs", cost: int | None = None) -> Obj:
    """The pod on a node, of a ReplicaSet, with a deletion cost."""
    pod["metadata"]["ownerReferences"][0]["uid"] = owner
    if node:
        pod["spec"]["nodeName"] = node
    if cost is not None:
        pod["metadata"]["annotations"][DELETION_COST] = str(cost)
    return pod


def named(lws: Obj, pods: list[Obj], replicas: int, *sets: Obj, status: int = 0) -> list[tuple[str, str]]:
    found = victims(lws, deployment(lws, replicas=status), pods, NOW, replicas, sets=sets)
    return [(v.uid, v.why) for v in found]


def test_what_is_not_scheduled_then_not_ready_then_cheap() -> None:
    pods = [on("n", leader(1)), on("n", leader(2), cost=-5), on("n", leader(3, ready=False)), leader(4, ready=False)]
    lws, owner = hash_lws(replicas=4), replica_set("rs", 4)
    assert named(lws, pods, 3, owner) == [("leader-4", "not scheduled")]
    order = [("leader-4", "not scheduled"), ("leader-3", "not ready"), ("leader-2", "deletion cost -5")]
    assert named(lws, pods, 1, owner) == order


def test_the_reason_is_against_what_stays_not_against_the_next_that_goes() -> None:
    pods = [on("n", leader(1)), leader(2, ready=False), leader(3, ready=False)]
    found = named(hash_lws(replicas=3), pods, 1, replica_set("rs", 3))
    assert sorted(found) == [("leader-2", "not scheduled"), ("leader-3", "not scheduled")]


def test_nothing_stays_or_nothing_goes() -> None:
    lws, pods, owner = hash_lws(replicas=2), [on("n", leader(i)) for i in (1, 2)], replica_set("rs", 2)
    assert {why for _, why in named(lws, pods, 0, owner)} == {ALL_GO}
    assert named(lws, pods, 2, owner) == named(lws, pods, 5, owner) == []


def test_who_has_ended_or_goes_already_and_workers_are_no_candidates() -> None:
    pods = [on("n", leader(1)), leader(2, leaving=True), leader(3, phase="Failed"), worker(1), on("n", leader(5))]
    assert len(named(hash_lws(replicas=2), pods, 1, replica_set("rs", 2))) == 1
    assert {uid for uid, _ in named(hash_lws(replicas=2), pods, 0, replica_set("rs", 2))} == {"leader-1", "leader-5"}


def test_in_a_rollout_the_larger_replica_set_gives_first() -> None:
    """30 §13: four old groups that are ready and one new that is not; one fewer costs an old one."""
    old = [on("n", leader(i), "old") for i in range(4)]
    new = on("n", leader(9, revision="r2", ready=False), "new")
    sets = (replica_set("old", 4, most=5), replica_set("new", 1, created=1, most=5))
    lws = hash_lws(replicas=4)
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] = {"maxUnavailable": 0, "maxSurge": 1}
    ((uid, why),) = named(lws, [*old, new], 3, *sets, status=5)
    assert uid.startswith("leader-")
    assert uid != "leader-9"
    assert why.startswith("its ReplicaSet gives up 1 of 4: ")
    # Without knowledge of the ReplicaSets their pods stand for them.
    assert [u for u, _ in named(lws, [*old, new], 3, status=5)] == [uid]


def test_pods_of_others_do_not_count() -> None:
    pods = [on("n", leader(1)), on("n", leader(2)), on("n", leader(3, ready=False), "another")]
    assert all(u != "leader-3" for u, _ in named(hash_lws(replicas=2), pods, 0, replica_set("rs", 2)))


def test_the_highest_ordinals_whatever_they_do() -> None:
    cluster = settled(make_lws(replicas=4, size=1))
    cluster.make_ready(0, ready=False)
    assert cluster.workload is not None
    found = victims(cluster.lws, cluster.workload, list(cluster.leaders.values()), NOW, 2)
    assert [v.name for v in found] == ["x-3", "x-2"]
    assert found[0].why == "a StatefulSet removes the highest ordinal first, here 3"
    assert told(4, 2, found[:1]) == f"scaling 4 → 2 would remove x-3: {found[0].why}"
    cluster.remove(3)
    found = victims(cluster.lws, cluster.workload, list(cluster.leaders.values()), NOW, 3)
    assert [(v.name, v.uid) for v in found] == [("x-3", "")]


def test_groups_of_a_surge_go_too() -> None:
    cluster = settled(make_lws(replicas=4, size=1))
    assert cluster.workload is not None
    larger = {**cluster.workload, "spec": {**cluster.workload["spec"], "replicas": 5}}
    found = victims(cluster.lws, larger, list(cluster.leaders.values()), NOW, 3)
    assert [v.name for v in found] == ["x-4", "x-3"]
    assert "surge" in found[0].why


pods_of_any_state = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "b"]),
        st.booleans(),
        st.sampled_from([None, -100, 0, 7]),
        st.booleans(),
        st.sampled_from(["old", "new"]),
        st.integers(0, 600),
    ),
    max_size=9,
)


def _made(state: list[Any]) -> list[Obj]:
    made: list[Obj] = []
    for i, (node, ready, cost, leaving, owner, age) in enumerate(state):
        pod = leader(
            i, ready=bool(node) and ready, leaving=leaving, created=age, phase="Running" if node else "Pending"
        )
        made.append(on(node, pod, owner, cost))
    return made


@given(pods_of_any_state, st.integers(0, 9), st.randoms(use_true_random=False))
def test_properties(state: list[Any], replicas: int, random: Any) -> None:
    """Only active leaders of the Deployment, none twice, as many as are too many; and nobody's order matters."""
    pods = _made(state)
    active = [p for p in pods if is_active(p)]
    counts = {name: sum((controller_of(p) or {})["uid"] == name for p in active) for name in ("old", "new")}
    sets = [replica_set(name, count, most=len(active)) for name, count in counts.items()]
    lws = hash_lws(replicas=len(active))
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] = {"maxUnavailable": 1, "maxSurge": 0}
    work = deployment(lws, replicas=len(active))
    found = victims(lws, work, pods, NOW, replicas, sets=sets)
    assert len(found) == max(0, len(active) - replicas)
    gone = {v.uid for v in found}
    assert len(gone) == len(found)
    assert gone <= {uid_of(p) for p in active}
    assert all(v.why for v in found)
    shuffled = pods[:]
    random.shuffle(shuffled)
    assert victims(lws, work, shuffled, NOW, replicas, sets=sets[::-1]) == found
    for name in counts:
        _stays_served(name, active, gone)


def _stays_served(owner: str, active: list[Obj], gone: set[str]) -> None:
    """Inside a ReplicaSet nothing stays without a node while something with one goes, nor unready while ready goes."""
    own = [p for p in active if (controller_of(p) or {})["uid"] == owner]

    def serves(pod: Obj) -> tuple[bool, bool]:
        return bool(pod["spec"].get("nodeName")), is_true(pod, "Ready")

    going = [serves(p) for p in own if uid_of(p) in gone]
    staying = [serves(p) for p in own if uid_of(p) not in gone]
    assert not going or not staying or max(going) <= min(staying)


@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 6))
def test_fewer_cost_no_other_groups(count: int, one: int, other: int) -> None:
    """What goes for a size goes for any smaller one: with one template the order is one."""
    pods = [on("n", leader(i, created=i * 40)) for i in range(count)]
    few, more = sorted((one, other))
    work = deployment(hash_lws(replicas=count))
    sets = [replica_set("rs", count)]
    named_by = [{v.uid for v in victims(hash_lws(), work, pods, NOW, size, sets=sets)} for size in (few, more)]
    assert named_by[1] <= named_by[0]
