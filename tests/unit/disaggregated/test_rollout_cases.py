"""The cases with several old revisions, through the executor (specification: 50 §9, §10; checklist 30, 32, 33, 48)."""

from __future__ import annotations

import pytest

from lwskit.api import disaggregated_names as names
from tests.planner_cases import Several, several
from tests.unit.disaggregated.played import World, limited
from tests.unit.disaggregated.scenes import REVISION, child_object


def world_of(case: Several) -> World:
    """A case as objects; where the target has groups already its children are there."""
    limits = zip(case.roles, case.desired, case.max_surge, case.max_unavailable, strict=True)
    target = {case.target: REVISION}
    never = frozenset(target.get(name, name) for name in case.never_ready)
    world = World([limited(*of) for of in limits], policy=case.policy, never_ready=never)
    for age, old in enumerate(reversed(case.old)):
        made = f"2026-11-30T10:{age:02}:00Z"
        for name, initial, spec in zip(case.roles, old.initial, old.spec, strict=True):
            world.add(child_object(name, spec, revision=old.name, initial=initial, creationTimestamp=made))
    if any(case.target_spec):
        for name, spec, desired in zip(case.roles, case.target_spec, case.desired, strict=True):
            world.add(child_object(name, spec, initial=desired))
    return world


@pytest.mark.parametrize("case", several(), ids=lambda case: case.id)
def test_the_executor_takes_exactly_these_steps(case: Several) -> None:
    """50 §23 line 26: it chooses among old revisions as the cases have it."""
    world = world_of(case)
    old = {revision.name: dict(zip(case.roles, revision.spec, strict=True)) for revision in case.old}

    def stand() -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
        gone = {name: dict.fromkeys(case.roles, 0) for name in old}
        seen = {name: tuple((world.spec(name) or gone[name]).values()) for name in old}
        return seen, tuple((world.spec(REVISION) or dict.fromkeys(case.roles, 0)).values())

    stands = [stand()]
    for _ in range(100):
        desired = case.changes.get(len(stands) - 1)
        if desired is not None:
            world.counts = dict(zip(case.roles, desired, strict=True))
        if not world.has_old or names.EVENT_REVISION_DRAIN_BLOCKED in world.reasons():
            break
        world.step()
        if stand() != stands[-1]:
            stands.append(stand())
    assert stands == [(step.old, step.target) for step in case.steps]
    assert (names.EVENT_REVISION_DRAIN_BLOCKED in world.reasons()) is case.blocked
    assert world.reasons().count(names.EVENT_ROLLING_UPDATE_COMPLETED) == (not case.blocked)
    assert world.has_old is case.blocked
