"""How many groups of a child are Ready and committed, and when a scale-down is over (specification: 50 §7.5, §7.6)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import readiness
from lwskit.disaggregated.model import Child, Ready
from lwskit.disaggregated.readiness import Counted, Seen
from lwskit.groups.model import EXHAUSTED, READY, Groups, LeaderState
from lwskit.runtime.objects import Obj
from tests.unit.groups.hash_objects import KEY, leader, pool_of, worker

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def child(replicas: int = 3, *, generation: int = 2, **status: int) -> Child:
    """A child; `status` as its controller has written it."""
    found = {"observedGeneration": generation, "replicas": replicas, "readyReplicas": replicas, **status}
    return Child.of(
        {
            "metadata": {"name": "c", "namespace": "ns", "uid": "u", "generation": generation},
            "spec": {"replicas": replicas},
            "status": found,
        }
    )


def workload(replicas: int = 3, **fields: Any) -> LeaderState:
    """A leader workload that has observed what it was asked for and has as many leaders."""
    common = {"uid": "w", "partition": 0, "revision": "r", "recorded": None, "deleting": False}
    numbers = {"replicas": replicas, "status_replicas": replicas, "generation": 4, "observed_generation": 4}
    return LeaderState(**{**common, **numbers, **fields})


def seen(replicas: int = 3, **fields: Any) -> Seen:
    """A child of that size whose groups are all Ready."""
    return replace(Seen(workload(replicas), groups=Counted(replicas, replicas), leaders=replicas), **fields)


def test_ready_groups_of_a_settled_child_are_committed() -> None:
    found = readiness.of(child(), seen())
    assert (found.ready, found.known, found.settled) == (Ready(3, 3), True, True)


@pytest.mark.parametrize(
    ("of", "what"),
    [
        (child(observedGeneration=1), seen()),
        (child(), seen(workload=workload(observed_generation=3))),
        (child(), seen(workload=workload(2))),
        (child(), seen(workload=workload(deleting=True))),
        (child(), seen(workload=None)),
    ],
)
def test_nothing_is_committed_before_both_have_observed_what_they_were_asked(of: Child, what: Seen) -> None:
    """For a while nothing is decided on it; then it is taken for a child none of whose groups can be counted on."""
    early, late = (readiness.of(of, what, waited=s) for s in (0.0, readiness.PATIENCE))
    assert (early.known, late.known) == (False, True)
    assert early.ready == late.ready == Ready(3, 0)
    assert not early.settled
    assert not late.settled


def test_what_outlives_a_surge_of_the_child_s_own_is_counted_on_after_a_while() -> None:
    """Else a child whose own template somebody has edited to one that does not start would hold up a rollout for ever.

    The groups seen are those below its size. With keys, or before the child has observed its size, none is known to.
    """
    what = seen(workload=workload(4))
    early, late = (readiness.of(child(), what, waited=s) for s in (0.0, readiness.PATIENCE))
    assert (early.known, early.ready) == (False, Ready(3, 0))
    assert (late.known, late.ready, late.settled) == (True, Ready(3, 3), False)
    assert readiness.of(child(observedGeneration=1), what, waited=readiness.PATIENCE).ready == Ready(3, 0)
    hashed = child()
    hashed.obj["spec"]["groupIdentity"] = "Hash"
    assert readiness.of(hashed, what, waited=readiness.PATIENCE).ready == Ready(3, 0)


def test_a_child_without_ready_groups_is_known_before_it_is_observed() -> None:
    """What nobody can reconcile and never had a Ready group holds up no rollout."""
    assert readiness.of(child(observedGeneration=0), seen(groups=Counted())).known


def test_a_drained_child_is_known_before_it_is_observed() -> None:
    found = readiness.of(child(0, observedGeneration=1), seen(groups=Counted(3, 3)))
    assert found.known
    assert found.ready == Ready(3, 0)


def test_nothing_is_known_while_groups_may_not_be_seen() -> None:
    found = readiness.of(child(), seen(is_whole=False), waited=999.0)
    assert (found.known, found.settled) == (False, False)


def test_no_more_than_the_spec_is_committed() -> None:
    assert readiness.of(child(2), seen(2, groups=Counted(5, 4))).ready == Ready(5, 2)


def test_groups_that_may_still_be_removed_are_not_committed() -> None:
    found = readiness.of(child(3), seen(3, groups=Counted(4, 4), doomed=2, parts={"a": Counted(3, 3), "b": Counted(1)}))
    assert found.ready == Ready(4, 2)
    assert found.parts == {"a": Ready(3, 1), "b": Ready(1, 0)}


@pytest.mark.parametrize(
    ("of", "what"),
    [
        (child(replicas=4), seen()),
        (child(readyReplicas=4), seen()),
        (child(observedGeneration=1), seen()),
        (child(), seen(workload=workload(status_replicas=4))),
        (child(), seen(workload=workload(observed_generation=3))),
        (child(), seen(has_leaving=True)),
        (child(), seen(leaders=4)),
        (child(), seen(leaders=2)),
    ],
)
def test_a_scale_down_is_over_when_all_agree_and_no_pod_goes(of: Child, what: Seen) -> None:
    assert not readiness.of(of, what).settled


# Ordinal mode ---------------------------------------------------------------------------------------------------------


def test_groups_with_ordinals_that_go_are_ready_but_not_sound() -> None:
    """Those from the size on, those without a restart left, and those that lose a pod."""
    groups = Groups(bytes([READY, READY | EXHAUSTED, READY, 0, READY, READY]))
    assert readiness.by_ordinal(groups, range(5), ()) == (5, 3)
    assert readiness.by_ordinal(groups, range(5), {1, 2, 3, 5}) == (5, 2)
    assert readiness.by_ordinal(groups, [2, 5], {4}) == (5, 2)


# Hash mode ------------------------------------------------------------------------------------------------------------


def counted(*pods: Obj, wanted: int, leaving: int = 0) -> tuple[Counted, int, bool]:
    return readiness.by_key(pool_of(*pods).state_of(KEY), wanted, leaving)


def test_leaders_that_go_are_ready_but_not_sound() -> None:
    pods = [leader(1), leader(2, leaving=True), leader(3, exhausted=True), leader(4, ready=False), leader(5), worker(5)]
    assert counted(*pods, wanted=4) == ((4, 2), 0, False)
    assert counted(*pods, wanted=4, leaving=1) == ((4, 1), 0, False)


def test_as_many_leaders_may_go_as_there_are_more_than_wanted() -> None:
    """Which ones is for the ReplicaSet to choose: the Ready ones, as far as anybody can tell."""
    assert counted(leader(1), leader(2), leader(3, ready=False), wanted=2) == ((2, 2), 1, False)
    assert counted(leader(1), leader(2, leaving=True), wanted=1) == ((2, 1), 0, False)


def test_leaders_of_several_replica_sets_are_exchanged() -> None:
    assert counted(leader(1), leader(2, maker="other"), wanted=1) == ((2, 2), 0, True)
    assert counted(leader(1), leader(2, maker="other", leaving=True), wanted=1) == ((2, 1), 0, False)


def test_what_is_exchanged_is_counted_on_only_if_that_does_not_get_on() -> None:
    """Then as many may go as the child lets be unavailable, by default one; its parts are not told apart there."""
    what = seen(groups=Counted(3, 3), exchanges=True, parts={"a": Counted(3, 3)})
    early, late = (readiness.of(child(), what, waited=s) for s in (0.0, readiness.PATIENCE))
    assert (early.known, early.ready) == (True, Ready(3, 0))
    assert (late.known, late.ready) == (True, Ready(3, 2))
    assert late.parts == {"a": Ready(3, 0)}
    assert readiness.of(child(observedGeneration=1), what, waited=readiness.PATIENCE).ready == Ready(3, 0)
    assert not readiness.is_current(child(), what)
    assert readiness.is_current(child(), seen())


# Pods without a node --------------------------------------------------------------------------------------------------


def pending(seconds: float, **condition: Any) -> Obj:
    """A pod that the scheduler has found no node for since so many seconds."""
    since = (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": since}
    return {"metadata": {"name": "p"}, "status": {"phase": "Pending", "conditions": [{**found, **condition}]}}


def test_a_pod_is_unschedulable_after_a_minute() -> None:
    """50 §23 line 39: at 59 seconds it is not, at 60 it is."""
    assert readiness.unschedulable([pending(59)], NOW) == []
    assert readiness.unschedulable([pending(60)], NOW) == [pending(60)]


def test_pods_that_wait_for_something_else_are_not_unschedulable() -> None:
    running, leaving = pending(99), pending(99)
    running["status"]["phase"] = "Running"
    leaving["metadata"]["deletionTimestamp"] = "2026-11-30T11:00:00Z"
    gated, told, blank = pending(99, reason="SchedulingGated"), pending(99, status="True"), pending(99)
    blank["status"]["conditions"] = []
    unclear = pending(99, lastTransitionTime="long ago")
    assert readiness.unschedulable([running, leaving, gated, told, blank, unclear], NOW) == []
    assert names.UNSCHEDULABLE_SECONDS == 60
