"""The safety test is written twice, here for the planner and in the scenarios for their laws: both say the same."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.planner import OldRevision, RolloutState, TargetRevision, Vector, baseline
from lwskit.disaggregated.planner.safety import is_safe, of_old
from tests.scenarios.disaggregated.safety import Slice, Standing

COUNT = st.integers(0, 5)


@st.composite
def standings(draw: st.DrawFn, roles: int) -> Standing:
    def vector() -> Vector:
        return tuple(draw(COUNT) for _ in range(roles))

    spec = vector()
    committed = tuple(draw(st.integers(0, n)) for n in spec)
    raw = tuple(n + draw(st.integers(0, 2)) for n in committed)
    return Standing(tuple(map(max, vector(), spec)), spec, raw, committed)


@st.composite
def slices(draw: st.DrawFn) -> tuple[Slice, Vector]:
    """A slice in the middle of something, and what its active revision may be left with."""
    roles = draw(st.integers(1, 3))
    active, target = draw(standings(roles)), draw(standings(roles))
    parked = tuple(draw(st.lists(standings(roles), max_size=2)))
    desired = tuple(draw(COUNT) for _ in range(roles))
    target = Standing(desired, target.spec, target.raw, target.committed)
    unavailable = tuple(draw(st.integers(0, 2)) for _ in range(roles))
    left = tuple(draw(st.integers(0, n)) for n in active.spec)
    return Slice(active, parked, target, desired, unavailable, draw(st.booleans())), left


def old(one: Standing) -> OldRevision:
    return OldRevision(one.required, one.initial, one.spec, one.raw, one.committed)


@settings(max_examples=400)
@given(slices())
def test_both_say_the_same(drawn: tuple[Slice, Vector]) -> None:
    """50 §8.3: for any slice and any counts, safe in one is safe in the other."""
    found, left = drawn
    active, parked, target = old(found.active), tuple(map(old, found.parked)), found.target
    none, schedulable = (0,) * len(left), (False,) * len(left)
    state = RolloutState(
        active,
        parked,
        TargetRevision(target.required, target.spec, target.raw, target.committed, found.desired, schedulable),
        baseline(active, parked),
        none,
        found.unavailable,
        names.ADVANCE_ROLLOUT if found.advances else names.ROLLOUT_COUPLED,
    )
    assert found.is_safe(left, none) == is_safe(of_old(state, found.unavailable), left)
