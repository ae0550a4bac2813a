"""What holds of every step and every rollout (50 §8.8), in states and worlds that hypothesis makes up."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

from hypothesis import assume, given
from hypothesis import strategies as st

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.planner import (
    OldRevision,
    RolloutState,
    TargetRevision,
    Vector,
    baseline,
    next_step,
    violations,
)
from lwskit.disaggregated.planner.state import usable
from tests.unit.disaggregated.simulator import Readiness, Revision, World, at_once, now_and_then

T = TypeVar("T")


class Numbers:
    """Numbers out of bytes that hypothesis draws at once: far faster than one by one, and small bytes are simple."""

    def __init__(self, drawn: bytes) -> None:
        self.left = list(drawn)

    def to(self, most: int) -> int:
        """A number from 0 to `most`."""
        return self.left.pop() % (most + 1) if self.left else 0

    def one_of(self, options: Sequence[T]) -> T:
        return options[self.to(len(options) - 1)]

    def to_each(self, most: Vector) -> Vector:
        """For each of them a number up to it; nothing and all of it are likely."""
        return tuple(self.one_of((0, m, self.to(m))) for m in most)


LIMITS = ((1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (3, 1), (1, 3), (9, 0), (0, 9), (9, 9))
"""maxSurge and maxUnavailable of a role."""
SIZES = (1, 2, 3, 8)
"""The most groups that a role has."""


def limits_of(numbers: Numbers, desired: Vector) -> tuple[Vector, Vector]:
    """Limits of each role; one that the target has not is drained one by one, whatever its limits were."""
    found = [numbers.one_of(LIMITS) if want else (1, 0) for want in desired]
    return tuple(surge for surge, _ in found), tuple(unavailable for _, unavailable in found)


def old_revision(numbers: Numbers, size: int, most: int) -> OldRevision:
    initial = tuple(numbers.to(most) for _ in range(size))
    spec = numbers.to_each(initial)
    committed = numbers.to_each(spec)
    doomed = numbers.to_each(tuple(i - a for i, a in zip(initial, spec, strict=True)))
    raw = tuple(c + d for c, d in zip(committed, doomed, strict=True))
    return OldRevision(tuple(i > 0 for i in initial), initial, spec, raw, committed)


def state_of(drawn: bytes) -> RolloutState:
    """Any state: roles that only one revision has, parts that are Ready, several revisions, counts in all relations."""
    numbers = Numbers(drawn)
    size, most = 1 + numbers.to(3), numbers.one_of(SIZES)
    active = old_revision(numbers, size, most)
    parked = tuple(old_revision(numbers, size, most) for _ in range(numbers.to(3)))
    desired = tuple(numbers.to(most) for _ in range(size))
    spec = numbers.to_each(tuple(want + numbers.to(2) for want in desired))
    raw = numbers.to_each(spec)
    committed = numbers.to_each(raw)
    stuck = tuple(c < n and numbers.to(1) == 1 for c, n in zip(committed, spec, strict=True))
    target = TargetRevision(tuple(want > 0 for want in desired), spec, raw, committed, desired, stuck)
    surge, unavailable = limits_of(numbers, desired)
    policy = numbers.one_of(names.SCALING_POLICIES)
    return RolloutState(active, parked, target, baseline(active, parked), surge, unavailable, policy)


def world_of(drawn: bytes) -> World:
    """Old revisions anywhere between untouched and gone, Ready, unready or broken, and a target that can get Ready."""
    numbers = Numbers(drawn)
    size, most = 1 + numbers.to(3), numbers.one_of(SIZES)
    old = []
    for number in range(1 + numbers.to(2)):
        initial = tuple(numbers.to(most) for _ in range(size))
        spec, healthy = numbers.to_each(initial), numbers.to(4) > 0
        ready = numbers.to_each(spec) if healthy else (0,) * size
        old.append(Revision(f"old {number}", initial, spec, ready, healthy=healthy))
    desired = tuple(numbers.to(most) for _ in range(size))
    spec = numbers.to_each(tuple(want + numbers.to(1) for want in desired))
    surge, unavailable = limits_of(numbers, desired)
    target = Revision("new", desired, spec, numbers.to_each(spec))
    return World(old, target, desired, surge, unavailable, numbers.one_of(names.SCALING_POLICIES))


DRAWN = st.binary(min_size=120, max_size=160)
STATES = DRAWN.map(state_of)
WORLDS = DRAWN.map(world_of)
READINESS = st.none() | st.integers(0, 2**32)
"""At once, or the seed of a readiness that comes now and then."""


def readiness(seed: int | None) -> Readiness:
    return at_once if seed is None else now_and_then(random.Random(seed))


@given(STATES)
def test_every_step_keeps_what_a_rollout_promises(state: RolloutState) -> None:
    step = next_step(state)
    assert step is None or violations(state, step) == []


def test_steps_of_every_kind_keep_what_a_rollout_promises() -> None:
    kinds: Counter[str] = Counter()
    for seed in range(3000):
        state = state_of(random.Random(seed).randbytes(160))
        step = next_step(state)
        if step is None:
            kinds["none"] += 1
            continue
        assert violations(state, step) == [], (seed, state, step)
        shrinks = any(n < had for n, had in zip(step.target, state.target.spec, strict=True))
        drains, grows = step.old != state.active.spec, step.target != state.target.spec
        marker = "bootstrap" if step.bootstrap_surge else "fallback" if step.availability_fallback else ""
        kinds[marker or ("shrink" if shrinks else "both" if drains and grows else "drain" if drains else "grow")] += 1
    assert kinds.keys() == {"none", "bootstrap", "fallback", "shrink", "both", "drain", "grow"}, kinds


@given(STATES)
def test_an_ordinary_step_stays_within_surge_and_keeps_the_floor(state: RolloutState) -> None:
    """50 §8.8 Planner 1: old and new groups are within maxSurge, and as many serve as must or did before."""
    step = next_step(state)
    assume(step and not step.bootstrap_surge and not step.availability_fallback)
    assert step
    before, desired = state.target.spec, state.target.desired
    for i in range(len(before)):
        old = state.active.spec[i] + sum(r.spec[i] for r in state.parked)
        size = desired[i] if state.advances else max(state.active.initial[i], desired[i])
        if step.target[i] > before[i]:
            assert old + step.target[i] <= size + state.max_surge[i]
    if step.old == state.active.spec:
        return
    gone = tuple(a - t for a, t in zip(state.active.spec, step.old, strict=True))
    left = tuple(max(0, c - g) for c, g in zip(state.active.committed, gone, strict=True))
    ready = [r.committed for r in state.parked] + [state.target.committed]
    seen = [r.raw for r in (state.active, *state.parked, state.target)]
    needs = [r.required for r in (*state.parked, state.target)]
    serving = [usable(need, r) for need, r in zip(needs, ready, strict=True)]
    if min(step.old[i] for i, need in enumerate(state.active.required) if need) > 0:
        serving.append(usable(state.active.required, left))
    observed = [usable(need, r) for need, r in zip((state.active.required, *needs), seen, strict=True)]
    for i, lost in enumerate(gone):
        floor = desired[i] if state.advances else min(state.baseline[i], desired[i])
        promised = min(sum(r[i] for r in observed), max(0, floor - state.max_unavailable[i]))
        if lost:
            assert sum(r[i] for r in serving) >= promised


def less(counts: Vector, others: Vector) -> Vector:
    return tuple(count - other for count, other in zip(counts, others, strict=True))


@given(DRAWN, READINESS)
def test_no_role_runs_ahead_of_the_slowest(drawn: bytes, seed: int | None) -> None:
    """50 §8.8 Planner 2: by more than one group of the smallest role, in shares of what each role is to have."""
    numbers = Numbers(drawn)
    counts = tuple(1 + numbers.to(8) for _ in range(1 + numbers.to(3)))
    desired = tuple(1 + numbers.to(8) for _ in counts)
    surge, unavailable = limits_of(numbers, desired)
    none = (0,) * len(counts)
    world = World(
        [Revision("old", counts, counts, counts)], Revision("new", desired, none, none), desired, surge, unavailable
    )
    for _ in world.run(readiness(seed), most=1000):
        pass
    old, new = counts, none
    for left, now, step in world.log:
        moves = [(desired, new, now)]
        if step.old != none:
            moves.append((counts, less(counts, old), less(counts, left["old"])))
        for sizes, before, after in moves if any(old) else ():
            slowest = min(Fraction(done, size) for done, size in zip(after, sizes, strict=True))
            for size, was, done in zip(sizes, before, after, strict=True):
                assert done == was or Fraction(done, size) - slowest <= Fraction(1, min(sizes))
        old, new = left["old"], now


@given(STATES)
def test_a_revision_ends_with_all_its_roles_at_once(state: RolloutState) -> None:
    """50 §8.8 Planner 3: old revisions retire as a unit, no role reaches 0 alone."""
    step = next_step(state)
    assume(step)
    assert step
    left = {t > 0 for t, a, need in zip(step.old, state.active.spec, state.active.required, strict=True) if need and a}
    assert len(left) <= 1


@given(STATES)
def test_only_the_policy_that_advances_takes_from_the_target(state: RolloutState) -> None:
    state = replace(state, policy=names.ROLLOUT_COUPLED)
    step = next_step(state)
    assert step is None or all(n >= had for n, had in zip(step.target, state.target.spec, strict=True))


@given(DRAWN, st.sampled_from(names.SCALING_POLICIES))
def test_without_any_budget_nothing_changes(drawn: bytes, policy: str) -> None:
    """50 §8.8 Planner 4: admission, and the limits that stand for 0 and 0, see to it that there is a budget."""
    numbers = Numbers(drawn)
    counts = tuple(1 + numbers.to(8) for _ in range(1 + numbers.to(3)))
    none, every = (0,) * len(counts), (True,) * len(counts)
    old = OldRevision(every, counts, counts, counts, counts)
    target = TargetRevision(every, none, none, none, counts, (False,) * len(counts))
    assert next_step(RolloutState(old, (), target, counts, none, none, policy)) is None


@given(STATES, st.randoms(use_true_random=False))
def test_the_order_of_roles_does_not_matter(state: RolloutState, rng: random.Random) -> None:
    order = list(range(len(state.baseline)))
    rng.shuffle(order)

    def moved(vector: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(vector[i] for i in order)

    def old(r: OldRevision) -> OldRevision:
        return OldRevision(*map(moved, (r.required, r.initial, r.spec, r.raw, r.committed)))

    t = state.target
    target = TargetRevision(*map(moved, (t.required, t.spec, t.raw, t.committed, t.desired, t.unschedulable)))
    parked = tuple(map(old, state.parked))
    other = RolloutState(
        old(state.active),
        parked,
        target,
        moved(state.baseline),
        moved(state.max_surge),
        moved(state.max_unavailable),
        state.policy,
    )
    step, again = next_step(state), next_step(other)
    assert (step is None) == (again is None)
    if step and again:
        assert again == replace(step, old=moved(step.old), target=moved(step.target))


@given(WORLDS, READINESS)
def test_every_rollout_whose_target_can_get_ready_ends(world: World, seed: int | None) -> None:
    groups = sum(map(sum, (r.spec for r in world.old))) + sum(world.target.spec) + sum(world.desired)
    for _ in world.run(readiness(seed), most=20 * groups + 20):
        pass
    for _ in world.run(at_once, most=20 * groups + 20):
        pass
    assert world.is_finished()
    # Each step that is no pause for readiness moves a group for good, or takes back what was too much.
    assert len(world.log) <= 2 * groups + 1


@given(WORLDS, READINESS)
def test_the_target_serves_before_old_revisions_are_gone(world: World, seed: int | None) -> None:
    """As long as there are old groups, each role keeps its floor of groups that serve, if it had them before."""
    size = range(len(world.desired))

    def serving() -> list[int]:
        wanted = tuple(want > 0 for want in world.desired)
        rows = [usable(tuple(i > 0 for i in r.old().initial), r.ready) for r in world.old]
        rows.append(usable(wanted, world.target.ready))
        return [sum(row[i] for row in rows) for i in size]

    before, floors = serving(), [0 for _ in size]
    for _ in world.run(readiness(seed), most=1000):
        now = serving()
        assert all(n >= min(had, floor) for n, had, floor in zip(now, before, floors, strict=True)), (before, now)
        before, floors = now, [0 for _ in size]
        for i in size if world.candidates() else ():
            base = max(r.old().initial[i] for r in world.candidates())
            floors[i] = min(base, world.desired[i]) - world.max_unavailable[i]


@given(DRAWN)
def test_a_target_that_never_gets_ready_is_probed_and_waited_for(drawn: bytes) -> None:
    """50 §8.8 Planner 5: one batch of it is tried, and the old revision keeps serving."""
    numbers = Numbers(drawn)
    desired = tuple(1 + numbers.to(8) for _ in range(1 + numbers.to(3)))
    surge, unavailable = limits_of(numbers, desired)
    none = (0,) * len(desired)
    old, target = Revision("old", desired, desired, desired), Revision("new", desired, none, none, healthy=False)
    world = World([old], target, desired, surge, unavailable, numbers.one_of(names.SCALING_POLICIES))
    for _ in world.run(at_once, most=100):
        pass
    assert not world.is_finished()
    for i, want in enumerate(desired):
        batch = -(-want * (surge[i] + unavailable[i]) // max(desired))
        assert old.spec[i] >= want - unavailable[i]
        assert target.spec[i] <= max(1, min(want, batch)) or old.spec == none
