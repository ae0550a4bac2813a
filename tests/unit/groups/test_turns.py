"""Whose turn it is at the gate of group replacement (specification: 30 §7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.groups import counters, gates, turns
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import MemberSnapshot
from lwskit.groups.pool import facts_of
from lwskit.groups.turns import Standing
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj
from lwskit.runtime.plan import Emit, Modify, Patch
from tests.unit.groups.hash_objects import HASHED, KEY, NOW, deployment, hash_lws, key, leader, pool_of, worker


def standings(*pods: Obj, replicas: int = 3, desired: str = "r1", immediate: bool = False) -> dict[str, Standing]:
    """Where each gated leader stands, by group number."""
    pool = pool_of(*pods).state_of(KEY)
    return {
        p["metadata"]["name"].rpartition("-")[2]: turns.standing(
            pool,
            facts_of(p),
            desired=desired,
            replicas=replicas,
            immediate=immediate,
        )
        for p in pods
        if gates.is_gated(p)
    }


def admitted(*pods: Obj, **fields: Any) -> list[str]:
    """The numbers of the groups that may be scheduled."""
    return [name for name, found in standings(*pods, **fields).items() if found.admitted]


def gated(i: int, **fields: Any) -> Obj:
    return leader(i, gated=True, ready=False, created=i, **fields)


def test_nobody_in_the_way() -> None:
    """30 §18 line 18: with no group that goes, every leader that is wanted gets in."""
    assert admitted(leader(0), gated(1), gated(2)) == ["1", "2"]
    assert admitted(*(gated(i) for i in range(5))) == ["0", "1", "2"]


def test_as_many_wait_as_groups_go() -> None:
    """30 §18 lines 19, 20: the youngest wait, one for each group that goes."""
    going = [leader(8, leaving=True), worker(9)]
    assert standings(going[0], gated(1))["1"] == Standing(False, "1 groups are not gone yet", 1)
    assert admitted(going[0], gated(1), gated(2)) == ["1"]
    assert admitted(*going, gated(1), gated(2)) == []
    assert admitted(*going, gated(1), gated(2), gated(3)) == ["1"]


def test_at_once() -> None:
    """30 §18 line 22: under Immediate only groups that are kept without a restart left hold somebody back."""
    going, spent = leader(8, leaving=True), leader(9, exhausted=True, leaving=True)
    assert admitted(going, gated(1), immediate=True) == ["1"]
    assert admitted(going, spent, gated(1), immediate=True) == []
    assert admitted(going, spent, gated(1), gated(2), immediate=True) == ["1"]
    assert admitted(spent, gated(1)) == []


def test_a_revision_that_is_replaced() -> None:
    """30 §18 line 23: its leaders are not let in, and say nothing; while no Deployment is known, all may be."""
    found = standings(gated(1, revision="r0"))["1"]
    assert (found.admitted, found.blocked) == (False, 0)
    assert "r1 replaces it" in found.why
    assert admitted(gated(1, revision="r0"), desired="") == ["1"]


def test_no_more_than_are_wanted_of_a_revision() -> None:
    """30 §18 line 24: those that run and those that are kept count."""
    assert admitted(leader(0), leader(1), gated(2), replicas=2) == []
    assert admitted(leader(0), leader(1, exhausted=True), gated(2), gated(3), replicas=2) == []
    assert admitted(leader(0), leader(1, revision="r0"), gated(2), replicas=2) == ["2"]
    assert admitted(leader(0, leaving=True), leader(1), gated(2), replicas=2) == []
    assert admitted(leader(1), gated(2), replicas=2) == ["2"]


def test_leaders_of_the_wanted_revision_go_first() -> None:
    pods = [leader(9, leaving=True), gated(1, revision="r0"), gated(2)]
    assert admitted(*pods) == ["2"]
    assert admitted(*pods, desired="") == ["1"]


def test_a_leader_that_the_pool_does_not_have_waits() -> None:
    pool = pool_of(leader(0)).state_of(KEY)
    found = turns.standing(pool, facts_of(gated(1)), desired="r1", replicas=3, immediate=False)
    assert (found.admitted, found.blocked) == (False, 0)


def test_a_leader_that_has_ended_holds_its_place_until_it_is_gone() -> None:
    over = leader(0, phase="Failed", ready=False)
    assert standings(over, leader(1), gated(2), replicas=2)["2"].blocked == 1


@given(
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.booleans(),
)
def test_never_more_groups_than_places(running: int, going: int, waiting: int, immediate: bool) -> None:
    """Without surge, those that run, those that go and those let in are no more than are wanted, if they were before;
    and if nobody goes, all that are wanted get in."""
    replicas = running + going
    pods = [leader(i) for i in range(running)] + [leader(20 + i, leaving=True) for i in range(going)]
    let_in = admitted(*pods, *(gated(10 + i) for i in range(waiting)), replicas=replicas, immediate=immediate)
    assert let_in == [str(10 + i) for i in range(len(let_in))]
    assert running + len(let_in) <= replicas
    if not immediate and waiting <= going:
        assert let_in == []
    if not going:
        assert len(let_in) == min(waiting, replicas - running)


# What is done ---------------------------------------------------------------------------------------------------------


def turn(pod: Obj, *pods: Obj, lws: Obj | None = None, **fields: Any) -> turns.Turn:
    pool = pool_of(pod, *pods)
    lws = lws or hash_lws()
    seen = {"workload": deployment(lws), "pool": pool.state_of(KEY), "owned": pool.owned(KEY, "r1"), **fields}
    return turns.of(MemberSnapshot(now=NOW, pod=pod, lws=lws, **seen), lws, pod, HASHED)


def test_the_gate_is_lifted_in_one_request() -> None:
    """30 §18 line 18: our gate and the cost of -100 go, all other gates and costs stay."""
    found = turn(gated(1))
    (patch,) = found.actions
    assert isinstance(patch, Patch)
    assert patch.strategic
    assert patch.uid == "leader-1"
    assert patch.body == {
        "metadata": {"annotations": {names.POD_DELETION_COST_ANNOTATION: None}},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": names.GROUP_REPLACEMENT_GATE}]},
    }
    assert patch.on_success is not None
    assert patch.on_success.note == "Leader pod x-rs-1 admitted for scheduling"
    dear = gated(1)
    dear["metadata"]["annotations"][names.POD_DELETION_COST_ANNOTATION] = "5"
    (patch,) = turn(dear).actions
    assert isinstance(patch, Patch)
    assert "metadata" not in patch.body


def test_what_a_leader_waits_for_is_said_once() -> None:
    going = [leader(8, leaving=True), leader(9, leaving=True)]
    found = turn(gated(1), *going)
    (said,) = found.actions
    assert isinstance(said, Emit)
    assert said.event.note == "Leader pod x-rs-1 waits for 2 terminating group(s) to be removed before scheduling"
    assert not found.admitted
    assert turn(gated(1), *going, told=True).actions == ()
    assert turn(gated(1), going[0], told=True).actions == ()


def test_others_wait_silently() -> None:
    found = turn(gated(1, revision="r0"))
    assert (found.admitted, found.actions) == (False, ())
    assert found.why


def test_the_policy_of_the_set_decides() -> None:
    lws = hash_lws()
    lws["spec"]["groupReplacementPolicy"] = "Immediate"
    going = leader(8, leaving=True)
    assert turn(gated(1), going, lws=lws).admitted
    assert not turn(gated(1), going).admitted


def limited(text: str, limit: int = 3) -> Obj:
    lws = hash_lws(maxGroupRestarts=limit)
    lws["metadata"]["annotations"] = {names.GROUP_RESTART_COUNTS_ANNOTATION: text}
    return lws


def test_the_highest_count_that_nobody_has_is_taken_over() -> None:
    """30 §11 item 2: of the leader's revision; then the count is the leader's own."""
    text = f'{{"r1/{key(0)}":9,"r1/{key(7)}":2,"r1/{key(8)}":2,"r0/{key(5)}":8}}'
    lws = limited(text)
    claim, patch = turn(gated(1), leader(0), lws=lws).actions
    assert isinstance(claim, Modify)
    assert isinstance(patch, Patch)
    assert (claim.kind, patch.kind) == (LEADER_WORKER_SET, POD)
    after = claim.change(lws)
    assert after is not None
    assert counters.read(after) == {
        f"r1/{key(0)}": 9,
        f"r1/{key(1)}": 2,
        f"r1/{key(8)}": 2,
        f"r0/{key(5)}": 8,
    }
    assert claim.change(after) is None
    assert claim.change({**lws, "metadata": {**lws["metadata"], "uid": "other"}}) is None


@pytest.mark.parametrize("text", ["", f'{{"r1/{key(0)}":9}}', f'{{"r1/{key(1)}":1,"r1/{key(7)}":2}}', '{"r0/x":1}'])
def test_nothing_to_take_over(text: str) -> None:
    (patch,) = turn(gated(1), leader(0), lws=limited(text)).actions
    assert isinstance(patch, Patch)


def test_without_a_limit_nothing_is_taken_over() -> None:
    lws = limited(f'{{"r1/{key(7)}":2}}')
    del lws["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"]
    assert len(turn(gated(1), lws=lws).actions) == 1


def test_a_rollout_between_two_replica_sets_of_one_revision_goes_on() -> None:
    """What changes in the leaders' template without a new revision rolls groups, too; surge comes on top of them."""
    old = [leader(i, maker="old") for i in range(3)]
    assert admitted(*old, gated(3, maker="new"), replicas=3) == ["3"]
    assert admitted(*old, gated(3, maker="old"), replicas=3) == []


def test_a_leader_that_nobody_counts_takes_nobodys_place() -> None:
    """Its ReplicaSet lost it, by a label or an orphaning deletion, and has made another one in its place."""
    assert admitted(leader(0, maker=""), leader(1), leader(2), gated(3), replicas=3) == ["3"]
    assert admitted(gated(4, maker=""), replicas=3) == []
    led_by_another = leader(0)
    del led_by_another["metadata"]["annotations"][names.GROUP_IDENTITY_ANNOTATION]
    assert admitted(led_by_another, leader(1), leader(2), gated(3), replicas=3) == ["3"]


def test_at_once_but_behind_a_leader_that_has_ended() -> None:
    """Its recreation may wait, and until then its workers run on."""
    over = leader(0, phase="Failed", ready=False)
    found = standings(over, leader(1), gated(2), replicas=2, immediate=True)["2"]
    assert (found.admitted, found.blocked) == (False, 1)
    over["metadata"]["deletionTimestamp"] = "2026-10-20T09:59:00Z"
    assert admitted(over, leader(1), gated(2), replicas=2, immediate=True) == ["2"]
