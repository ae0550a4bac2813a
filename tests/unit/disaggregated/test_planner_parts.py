"""What the planner's steps are made of, each by itself (50 §8.1 to §8.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.planner import (
    OldRevision,
    RolloutState,
    Step,
    TargetRevision,
    Vector,
    baseline,
    next_step,
    violations,
)
from lwskit.disaggregated.planner.safety import Draining, is_safe, least_spec, unreplaced
from lwskit.disaggregated.planner.sides import limits
from lwskit.disaggregated.planner.state import structural, usable
from lwskit.disaggregated.planner.window import caps


def old(initial: Vector, spec: Vector) -> OldRevision:
    return OldRevision(tuple(i > 0 for i in initial), initial, spec, spec, spec)


def test_availability_is_measured_by_all_revisions_that_still_ask_for_groups() -> None:
    drained, left = old((9, 9), (0, 0)), old((2, 6), (0, 1))
    assert baseline(old((4, 2), (1, 1)), (drained, left)) == (4, 6)
    assert baseline(drained, (old((4, 2), (1, 1)),)) == (9, 9)


def test_ready_groups_serve_only_where_all_required_roles_have_some() -> None:
    assert usable((True, True), (3, 1)) == (3, 1)
    assert usable((True, True), (3, 0)) == (0, 0)
    assert usable((True, False), (3, 0)) == (3, 0)
    assert usable((False, False), (3, 1)) == (0, 0)


def test_a_revision_that_asks_for_all_its_roles_has_its_ready_groups_protected() -> None:
    assert structural((True, True), (1, 1), (0, 1)) == (0, 1)
    assert structural((True, True), (1, 0), (1, 1)) == (0, 0)
    assert structural((False, False), (1, 1), (1, 1)) == (0, 0)


def renamed(old_spec: Vector, target_ready: Vector) -> Vector:
    """What is to be kept of old roles a and b whose places c and d have taken: none of the groups of another kind."""
    active = OldRevision((True, True, False, False), (4, 2, 0, 0), (*old_spec, 0, 0), (4, 2, 0, 0), (4, 2, 0, 0))
    ready = (0, 0, *target_ready)
    target = TargetRevision((False, False, True, True), ready, ready, ready, (0, 0, 4, 2), (False,) * 4)
    return unreplaced(RolloutState(active, (), target, (4, 2, 0, 0), (1,) * 4, (0,) * 4))


def test_roles_that_nobody_has_any_more_follow_the_share_of_the_target_that_serves() -> None:
    assert renamed((4, 2), (0, 0)) == (4, 2, 0, 0)
    assert renamed((4, 2), (3, 0)) == (4, 2, 0, 0)
    assert renamed((4, 2), (1, 1)) == (3, 2, 0, 0)
    assert renamed((4, 2), (4, 1)) == (2, 1, 0, 0)
    assert renamed((4, 2), (4, 2)) == (0, 0, 0, 0)
    assert renamed((4, 2), (8, 4)) == (0, 0, 0, 0)
    assert renamed((0, 0), (0, 0)) == (0, 0, 0, 0)


def test_the_window_is_one_group_of_the_smallest_role_wide() -> None:
    assert caps((8, 4), (0, 0)) == (2, 1)
    assert caps((8, 4), (4, 1)) == (4, 2)
    assert caps((10, 1), (3, 0)) == (10, 1)
    assert caps((5, 3, 0), (0, 2, 7)) == (1, 1, 0)
    assert caps((0, 0), (3, 3)) == (0, 0)


WHOLE = Draining(
    required=(True, True),
    spec=(4, 4),
    usable=(4, 4),
    committed=(4, 4),
    served=(0, 0),
    replaced=(0, 0),
    observed_usable=(4, 4),
    observed=(4, 4),
    floor=(3, 4),
)
"""A revision that serves alone, with one group to spare in the first role."""


def test_what_is_short_already_does_not_hold_up_other_roles() -> None:
    short = replace(WHOLE, usable=(4, 3), committed=(4, 3))
    assert is_safe(WHOLE, (3, 4))
    assert is_safe(short, (3, 4))
    assert not is_safe(short, (4, 3))
    assert not is_safe(short, (2, 4))


def test_a_revision_whose_last_ready_group_of_a_role_goes_serves_no_more() -> None:
    beside = replace(WHOLE, spec=(2, 4), usable=(1, 4), committed=(1, 4), served=(0, 3), observed_usable=(1, 7))
    assert is_safe(replace(beside, floor=(0, 3), observed=(0, 0)), (1, 4))
    assert not is_safe(replace(beside, floor=(0, 4), observed=(0, 0)), (1, 4))


def test_a_revision_that_is_not_asked_for_a_required_role_serves_nothing() -> None:
    """Whatever is still there of that role."""
    rest = replace(WHOLE, spec=(0, 4), usable=(1, 4), observed=(0, 0), observed_usable=(1, 4), floor=(0, 2))
    assert not is_safe(rest, (0, 3))
    assert is_safe(replace(rest, served=(0, 2)), (0, 3))


def test_groups_that_are_ready_are_kept_even_if_the_revision_does_not_serve() -> None:
    partly = replace(WHOLE, usable=(0, 0), committed=(0, 4), observed_usable=(0, 0), observed=(0, 4))
    assert is_safe(partly, (3, 4))
    assert not is_safe(partly, (4, 3))
    assert least_spec(partly) == (0, 4)


def test_a_revision_that_is_to_serve_keeps_a_group_of_every_role() -> None:
    assert least_spec(replace(WHOLE, floor=(2, 0))) == (2, 1)
    assert least_spec(replace(WHOLE, floor=(0, 0))) == (0, 0)
    # Groups that are not Ready are the last ones to go.
    assert least_spec(replace(WHOLE, usable=(2, 4), committed=(2, 4), floor=(1, 0))) == (3, 1)


def old_at(spec: Vector, initial: Vector) -> OldRevision:
    return OldRevision((True, True), initial, spec, spec, spec)


def target_at(spec: Vector, desired: Vector) -> TargetRevision:
    return TargetRevision((True, True), spec, spec, spec, desired, (False, False))


def test_the_policy_that_advances_takes_what_is_too_much_without_waiting_for_other_roles() -> None:
    active = old_at((8, 4), (8, 4))
    state = RolloutState(active, (), target_at((0, 0), (2, 4)), (8, 4), (1, 1), (0, 0), names.ADVANCE_ROLLOUT)
    assert next_step(state) == Step((3, 4), (0, 1))
    # Otherwise the window holds the role back.
    assert next_step(replace(state, policy=names.ROLLOUT_COUPLED)) == Step((6, 4), (1, 1))


def test_a_target_gets_no_more_than_desired_whatever_the_surge() -> None:
    state = RolloutState(old_at((0, 0), (4, 2)), (), target_at((1, 1), (4, 2)), (4, 2), (9, 9), (0, 0))
    assert limits(state, state.max_surge) == (4, 2)


def test_a_bootstrap_surge_finds_a_place_however_many_old_groups_there_are() -> None:
    parked = (old_at((2, 2), (2, 4)), old_at((3, 1), (3, 4)))
    state = RolloutState(old_at((1, 1), (1, 4)), parked, target_at((0, 1), (1, 4)), (3, 4), (1, 1), (0, 0))
    assert next_step(state) == Step((1, 1), (1, 1), bootstrap_surge=True)


def stuck_at(spec: Vector, ready: Vector, desired: Vector) -> TargetRevision:
    """A target whose first role finds no node."""
    return TargetRevision((True,) * len(spec), spec, ready, ready, desired, tuple(i == 0 for i in range(len(spec))))


def test_a_floor_of_two_is_lowered_for_a_role_that_finds_no_node_and_one_of_one_is_not() -> None:
    active, parked = old_at((1, 1), (1, 2)), (old_at((1, 1), (1, 2)),)
    state = RolloutState(active, parked, stuck_at((1, 1), (0, 1), (1, 2)), (1, 2), (1, 1), (0, 0))
    assert next_step(state) == Step((0, 0), (1, 1), availability_fallback=True)
    lower = replace(parked[0], raw=(0, 1), committed=(0, 1))
    assert next_step(replace(state, parked=(lower,))) is None


def test_a_group_too_many_comes_before_a_group_too_few() -> None:
    active = OldRevision((True,) * 3, (1, 4, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1))
    parked = replace(active, spec=(1, 3, 1), raw=(1, 3, 1), committed=(1, 3, 1))
    target = stuck_at((1, 1, 0), (0, 1, 0), (1, 4, 1))
    state = RolloutState(active, (parked,), target, (1, 4, 1), (1, 1, 1), (0, 0, 0))
    assert next_step(state) == Step((1, 1, 1), (1, 1, 1), bootstrap_surge=True)
    grown = replace(target, spec=(1, 1, 1))
    assert next_step(replace(state, target=grown)) == Step((0, 0, 0), (1, 1, 1), availability_fallback=True)


def revision(spec: Vector, initial: Vector) -> OldRevision:
    """One that is Ready as far as it goes."""
    return OldRevision(tuple(i > 0 for i in initial), initial, spec, spec, spec)


def awaited(old: Sequence[OldRevision], spec: Vector, desired: Vector, **others: Any) -> RolloutState:
    """A target that is Ready as far as it goes, before old revisions of which one has no role that the target has."""
    target = TargetRevision(tuple(d > 0 for d in desired), spec, spec, spec, desired, (False,) * len(spec))
    active, *parked = old
    return RolloutState(active, tuple(parked), target, baseline(active, parked), **others)


def test_a_full_role_gets_one_group_too_many_where_old_roles_wait_for_the_target() -> None:
    """The last group of `shared` holds up the target's second one, and cannot go without its `removed`, which is kept
    until the target serves as a whole, for the sake of `lonely`."""
    shared, lonely = revision((1, 1, 0), (2, 3, 0)), revision((0, 1, 1), (0, 3, 6))
    limits = {"max_surge": (0, 1, 1), "max_unavailable": (1, 0, 0)}
    state = awaited([shared, lonely], (1, 0, 0), (2, 0, 0), **limits)
    assert next_step(state) == Step((1, 1, 0), (2, 0, 0), bootstrap_surge=True)
    assert violations(state, Step((1, 1, 0), (2, 0, 0), bootstrap_surge=True)) == []
    # Not while a group of it is on its way, and where all have a role in common with it there is nothing to wait for.
    assert next_step(replace(state, target=replace(state.target, committed=(0, 0, 0)))) is None
    known = awaited([shared, revision((1, 1, 1), (2, 3, 6))], (1, 0, 0), (2, 0, 0), **limits)
    assert next_step(known) == Step((0, 0, 0), (1, 0, 0))


def test_an_awaited_role_gets_its_group_however_many_old_ones_of_it_are_left() -> None:
    """Those that are parked serve too, so that without the others that wait the target would need no more."""
    shared, lonely = revision((1, 1, 0), (2, 6, 0)), revision((0, 1, 1), (0, 3, 6))
    limits = {"max_surge": (0, 1, 1), "max_unavailable": (1, 0, 0)}
    state = awaited([shared, shared, lonely], (1, 0, 0), (2, 0, 0), **limits)
    assert next_step(state) == Step((1, 1, 0), (2, 0, 0), bootstrap_surge=True)


def test_what_parked_revisions_serve_does_not_keep_the_target_from_its_end_where_old_roles_wait_for_it() -> None:
    lonely, others = revision((0, 0, 1, 1), (0, 0, 6, 1)), revision((1, 0, 1, 2), (1, 0, 5, 5))
    more = revision((1, 1, 1, 0), (5, 5, 1, 0))
    limits = {"max_surge": (2, 1, 1, 1), "max_unavailable": (1, 1, 0, 0), "policy": names.ADVANCE_ROLLOUT}
    state = awaited([others, lonely, more], (1, 3, 0, 0), (2, 3, 0, 0), **limits)
    assert next_step(state) == Step((1, 0, 1, 2), (2, 3, 0, 0))
    assert violations(state, Step((1, 0, 1, 2), (2, 3, 0, 0))) == []
