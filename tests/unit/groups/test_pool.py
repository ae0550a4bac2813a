"""The pool of groups is a function of the pods it was told of (specification: 30 §7, §12)."""

from __future__ import annotations

import copy
import random
import timeit

from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.groups.pool import GroupPool, place_of
from lwskit.groups.poolstate import Made, PoolState, Tally
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Key, Obj, uid_of
from tests.unit.groups.hash_objects import KEY, key, leader, pool_of, worker


def test_a_group_without_a_living_leader_takes_its_place_as_long_as_it_has_pods() -> None:
    """30 §18 line 21: workers of a gone leader block, leader and worker as one group; those of a live one do not."""
    pods = {"going": leader(1, leaving=True), "its": worker(1), "orphan": worker(2, leaving=True)}
    living = (leader(3), worker(3, leaving=True))
    pool = pool_of(*pods.values(), *living)
    assert pool.state_of(KEY).torn_down == 2
    pool.apply(POD, pods["going"], None)
    assert pool.state_of(KEY).torn_down == 2
    pool.apply(POD, pods["its"], None)
    pool.apply(POD, pods["orphan"], None)
    assert pool.state_of(KEY).torn_down == 0


def test_what_is_counted_of_a_revision() -> None:
    pool = pool_of(
        leader(1),
        leader(2, leaving=True),
        leader(3, gated=True, ready=False),
        leader(4, exhausted=True),
        leader(5, exhausted=True, leaving=True),
        leader(6, phase="Failed", ready=False),
        leader(7, revision="r0"),
    )
    state = pool.state_of(KEY)
    assert state.of("r1") == Tally(leaders=6, staying=3, admitted=1, exhausted_ready=1)
    assert (state.leaders, state.others("r1"), state.degraded, state.degraded_ready) == (7, 1, 2, 1)
    assert state.torn_down == 4
    assert [p.group for p in state.exhausted["r1"]] == [key(4), key(5)]
    assert pool.owned(KEY, "r1") == {key(1), key(3), key(4), key(5)}


def test_what_is_counted_of_a_maker() -> None:
    pool = pool_of(
        leader(1),
        leader(2, leaving=True),
        leader(3, ready=False),
        leader(4, exhausted=True),
        leader(5, phase="Failed", ready=False),
        leader(6, maker="other", leaving=True),
        leader(7, maker=""),
    )
    made = pool.state_of(KEY).made
    assert made == {"rs": Made(active=3, ready=3, sound=1), "other": Made(active=0, ready=1, sound=0)}


def test_gated_leaders_stand_in_the_order_of_their_creation() -> None:
    late, early = leader(1, gated=True, created=9), leader(2, gated=True, created=3)
    old = leader(3, gated=True, revision="r0", created=5)
    gone = leader(4, gated=True, leaving=True)
    state = pool_of(late, early, old, gone).state_of(KEY)
    assert [p.group for p in state.gated["r1"]] == [key(2), key(1)]
    assert state.waiting == 3
    assert [state.rank("r1", place_of(p)) for p in (early, late, gone)] == [0, 1, None]
    assert state.rank_among_all("r1", place_of(late), "r1") == 1
    assert state.rank_among_all("r0", place_of(old), "r1") == 2
    assert state.rank_among_all("r1", place_of(late), "") == 2
    assert state.rank_among_all("r1", place_of(gone), "r1") is None


def test_pods_without_a_group_label_are_told_apart_by_their_owner() -> None:
    orphan, alone = worker(1), leader(2, leaving=True)
    for pod in (orphan, alone):
        del pod["metadata"]["labels"][names.GROUP_INDEX_LABEL]
        del pod["metadata"]["labels"][names.GROUP_KEY_LABEL]
    nobody = copy.deepcopy(orphan)
    nobody["metadata"] |= {"uid": "nobody", "ownerReferences": []}
    assert pool_of(orphan, alone, nobody).state_of(KEY).torn_down == 3


def test_pods_without_their_group_index_are_of_the_group_of_their_key() -> None:
    led = leader(1)
    del led["metadata"]["labels"][names.GROUP_INDEX_LABEL]
    pool = pool_of(led, worker(1))
    assert pool.state_of(KEY).torn_down == 0
    assert pool.owned(KEY, "r1") == {key(1)}


def test_sets_are_kept_apart_and_forgotten() -> None:
    other = leader(1)
    other["metadata"] |= {"namespace": "other"}
    stranger = leader(2)
    stranger["metadata"] |= {"labels": {}}
    pool = pool_of(other, stranger)
    assert pool.state_of(KEY) == PoolState()
    assert pool.state_of(Key("other", "x")).leaders == 1
    pool.apply(STATEFUL_SET, None, leader(3))
    pool.replace(STATEFUL_SET, [])
    assert pool.state_of(Key("other", "x")).leaders == 1
    pool.replace(POD, [])
    assert pool.state_of(Key("other", "x")) == PoolState()
    assert pool.owned(KEY, "r1") == frozenset()


PODS = st.one_of(
    st.builds(
        leader,
        st.integers(0, 4),
        revision=st.sampled_from(["r0", "r1"]),
        gated=st.booleans(),
        leaving=st.booleans(),
        exhausted=st.booleans(),
        ready=st.booleans(),
        phase=st.sampled_from(["Pending", "Running", "Failed"]),
        created=st.integers(0, 3),
    ),
    st.builds(worker, st.integers(0, 4), st.integers(1, 2), leaving=st.booleans()),
)


@given(
    st.lists(st.one_of(PODS, st.integers(0, 9), st.just("relist")), max_size=30),
    st.integers(0, 2**16),
)
def test_what_it_holds_is_a_function_of_the_pods(steps: list[Obj | int | str], seed: int) -> None:
    """However pods came, changed and went, a pool that is told of those left holds the same."""
    pool, there = GroupPool(), dict[str, Obj]()
    shuffled = random.Random(seed)
    for step in steps:
        if isinstance(step, dict):
            pool.apply(POD, there.get(uid_of(step)), step)
            there[uid_of(step)] = step
        elif isinstance(step, int):
            uid = next((u for i, u in enumerate(sorted(there)) if i == step), None)
            if uid is not None:
                pool.apply(POD, there.pop(uid), None)
        else:
            for uid in [u for u in there if shuffled.random() < 0.3]:
                del there[uid]
            pool.replace(POD, there.values())
    rest = list(there.values())
    shuffled.shuffle(rest)
    again = pool_of(*rest)
    assert pool.state_of(KEY) == again.state_of(KEY)
    assert [pool.owned(KEY, r) for r in ("r0", "r1")] == [again.owned(KEY, r) for r in ("r0", "r1")]
    _holds(pool.state_of(KEY), rest)


def _holds(state: PoolState, pods: list[Obj]) -> None:
    """The definitions of 30 §7, read off the pods anew."""
    groups: dict[str, bool] = {}
    for pod in pods:
        meta = pod["metadata"]
        notes, ended = meta["annotations"], pod["status"]["phase"] == "Failed"
        dead = "deletionTimestamp" in meta or ended or names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION in notes
        group = meta["labels"][names.GROUP_INDEX_LABEL]
        groups[group] = groups.get(group, False) or (meta["labels"][names.WORKER_INDEX_LABEL] == "0" and not dead)
    assert state.torn_down == sum(not alive for alive in groups.values())
    gated = [p for p in pods if "schedulingGates" in p["spec"] and "deletionTimestamp" not in p["metadata"]]
    assert state.waiting == sum(p["status"]["phase"] != "Failed" for p in gated)


def test_reading_the_state_costs_no_walk() -> None:
    pool = pool_of(*(leader(i) for i in range(2000)))
    assert pool.state_of(KEY).leaders == 2000
    change = leader(7, ready=False)

    def once() -> None:
        pool.apply(POD, leader(7), change)
        assert pool.state_of(KEY).torn_down == 0

    assert min(timeit.repeat(once, number=20, repeat=5)) / 20 < 1e-3
