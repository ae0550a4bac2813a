"""The planner against every vector of the specification (50 §9; checklist 26, 34 to 36, 48)."""

from __future__ import annotations

import pytest

from lwskit.disaggregated.planner import Step, next_step, violations
from tests.planner_cases import Decision, Rollout, Several, decisions, rollouts, several
from tests.unit.disaggregated.simulator import Revision, World, at_once


def test_all_vectors_are_there() -> None:
    assert (len(rollouts()), len(decisions()), len(several())) == (29, 28, 11)


@pytest.mark.parametrize("case", rollouts(), ids=lambda case: case.id)
def test_a_rollout_takes_exactly_these_steps(case: Rollout) -> None:
    """50 §23 lines 26, 34, 35: also with a role added, removed or renamed, and all of them renamed."""
    none = (0,) * len(case.roles)
    old, new = Revision("old", case.old, case.old, case.old), Revision("new", case.new, none, none)
    world = World([old], new, case.new, case.max_surge, case.max_unavailable, case.policy)
    for _ in world.run(at_once, most=100):
        pass
    steps = [step for _, _, step in world.log]
    assert [Step(case.old, none), *steps] == list(case.steps)
    assert world.is_finished()


@pytest.mark.parametrize("case", decisions(), ids=lambda case: case.id)
def test_one_state_has_exactly_this_step(case: Decision) -> None:
    """50 §23 lines 26, 39, 48: also with groups that find no node, and with a count lowered in the middle."""
    step = next_step(case.state)
    assert step == case.expected
    assert step is None or violations(case.state, step) == []


@pytest.mark.parametrize("case", several(), ids=lambda case: case.id)
def test_several_revisions_take_turns(case: Several) -> None:
    """50 §23 lines 32, 33, 48: a broken revision goes first, a rollback takes what is there, and counts change."""
    old = [Revision(o.name, o.initial, o.spec, o.ready, healthy=o.name not in case.never_ready) for o in case.old]
    broken = case.target in case.never_ready
    ready = (0,) * len(case.roles) if broken else case.target_spec
    target = Revision(case.target, case.desired, case.target_spec, ready, healthy=not broken)
    world = World(old, target, case.desired, case.max_surge, case.max_unavailable, case.policy)
    for taken in world.run(at_once, most=100):
        world.desired = case.changes.get(taken, world.desired)
    assert case.steps[0].old == {o.name: o.spec for o in case.old}
    assert [(o, t, step.bootstrap_surge) for o, t, step in world.log] == [
        (stand.old, stand.target, stand.bootstrap_surge) for stand in case.steps[1:]
    ]
    assert world.is_finished() is not case.blocked


@pytest.mark.parametrize(("id", "fewest"), [("r12", 1), ("r13", 0)])
def test_single_groups_without_surge_are_down_for_a_while(id: str, fewest: int) -> None:
    """50 §23 line 36: with one group more there is always one that serves."""
    (case,) = [case for case in rollouts() if case.id == id]
    none = (0,) * len(case.roles)
    world = World(
        [Revision("old", case.old, case.old, case.old)],
        Revision("new", case.new, none, none),
        case.new,
        case.max_surge,
        case.max_unavailable,
    )
    serving = [min(sum(r.ready[i] for r in (*world.old, world.target)) for i in (0, 1)) for _ in world.run(at_once, 10)]
    assert min(serving) == fewest
