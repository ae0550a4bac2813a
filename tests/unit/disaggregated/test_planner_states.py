"""What the planner takes for a state: what is none is refused with its place, and is never planned on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lwskit.disaggregated.planner import (
    OldRevision,
    RolloutState,
    Step,
    TargetRevision,
    baseline,
    next_step,
    violations,
)
from lwskit.groups.model import DecisionError

_BOTH, _NONE, _UNTOUCHED = (True, True), (0, 0), (4, 2)


def old(**others: Any) -> OldRevision:
    whole = dict.fromkeys(("initial", "spec", "raw", "committed"), _UNTOUCHED)
    return OldRevision(**{"required": _BOTH, **whole, **others})


def target(**others: Any) -> TargetRevision:
    nothing = dict.fromkeys(("spec", "raw", "committed"), _NONE)
    wanted = {"required": _BOTH, "desired": _UNTOUCHED, "unschedulable": (False, False)}
    return TargetRevision(**{**wanted, **nothing, **others})


def state(**others: Any) -> RolloutState:
    given = {"active": old(), "parked": (), "target": target(), "baseline": _UNTOUCHED}
    return RolloutState(**{**given, "max_surge": (1, 1), "max_unavailable": _NONE, **others})


def of_one_role() -> OldRevision:
    return OldRevision((True,), (1,), (1,), (1,), (1,))


_GIVEN = "the planner is given "
WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "no roles": (
        lambda: old(required=(), initial=(), spec=(), raw=(), committed=()),
        "() as OldRevision.required; it must be for one role at least",
    ),
    "a vector of fewer roles": (
        lambda: old(spec=(4,)),
        "(4,) as OldRevision.spec; it must be for 2 roles, as the vectors beside it are",
    ),
    "a vector of more roles": (
        lambda: target(spec=(0, 0, 0)),
        "(0, 0, 0) as TargetRevision.spec; it must be for 2 roles, as the vectors beside it are",
    ),
    "limits of fewer roles": (
        lambda: state(max_surge=(1,)),
        "(1,) as RolloutState.max_surge; it must be for 2 roles, as the vectors beside it are",
    ),
    "a parked revision of fewer roles": (
        lambda: state(parked=(of_one_role(),)),
        "(1,) as parked[0]; it must be for 2 roles, as the active revision is",
    ),
    "a target of more roles": (
        lambda: state(active=of_one_role()),
        "(0, 0) as RolloutState.target; it must be for 1 roles, as active is",
    ),
    "no baseline": (
        lambda: state(baseline=None),
        "None as RolloutState.baseline; it must be a tuple with a whole number of groups, 0 or more for each role",
    ),
    "a list": (
        lambda: state(max_surge=[1, 1]),
        "[1, 1] as RolloutState.max_surge; it must be a tuple with a whole number of groups, 0 or more for each role",
    ),
    "texts": (
        lambda: target(desired=("4", "2")),
        "'4' as TargetRevision.desired[0]; it must be a whole number of groups, 0 or more",
    ),
    "fractions": (
        lambda: target(desired=(4, 2.5)),
        "2.5 as TargetRevision.desired[1]; it must be a whole number of groups, 0 or more",
    ),
    "truths for numbers": (
        lambda: old(raw=_BOTH),
        "True as OldRevision.raw[0]; it must be a whole number of groups, 0 or more",
    ),
    "numbers for truths": (lambda: old(required=(1, 0)), "1 as OldRevision.required[0]; it must be True or False"),
    "fewer than none": (
        lambda: target(desired=(-4, 2)),
        "-4 as TargetRevision.desired[0]; it must be a whole number of groups, 0 or more",
    ),
    "fewer were meant than are asked for": (
        lambda: old(initial=(1, 1)),
        "1 as OldRevision.initial[0]; it must be no less than spec[0], which is 4",
    ),
    "a policy that there is not": (
        lambda: state(policy="Nope"),
        "'Nope' as RolloutState.policy; it must be RolloutCoupled or AdvanceRollout",
    ),
    "a target that is none": (
        lambda: state(target=old()),
        "of the type TargetRevision",
    ),
    "an active revision that is none": (lambda: state(active=None), "None as the active revision; it must be of the"),
    "parked revisions that are none": (lambda: state(parked=(None,)), "None as parked[0]; it must be of the type Old"),
    "parked revisions in a list": (lambda: state(parked=[]), "[] as RolloutState.parked; it must be of the type tuple"),
    "a state that is none": (lambda: next_step(old()), "as the state; it must be of the type RolloutState"),  # pyright: ignore[reportArgumentType]
    "a step that is none": (lambda: violations(state(), (1, 1)), "(1, 1) as the step; it must be of the type Step"),  # pyright: ignore[reportArgumentType]
    "a step with a text": (
        lambda: Step((4, "x"), (1, 1)),  # pyright: ignore[reportArgumentType]
        "(4, 'x') as Step.old; it must be a tuple of whole numbers, one for each role",
    ),
    "revisions of two sizes": (
        lambda: baseline(old(), [of_one_role()]),
        "(1,) as parked[0]; it must be for 2 roles, as the active revision is",
    ),
    "names of other roles": (
        lambda: violations(state(), Step(_UNTOUCHED, (1, 1)), ["a"]),
        "['a'] as the names of roles; it must be those of the 2 roles of the state",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_state_is_refused_with_its_place(what: str) -> None:
    made, said = WRONG[what]
    with pytest.raises(DecisionError) as refused:
        made()
    assert str(refused.value).startswith(_GIVEN)
    assert said in str(refused.value)


def test_the_same_with_counts_is_planned_on() -> None:
    """Each case above differs from this one in a single place."""
    assert next_step(state()) == Step(_UNTOUCHED, (1, 1))
    assert violations(state(), Step(_UNTOUCHED, (1, 1)), ["a", "b"]) == []


def test_what_is_changed_of_a_state_is_looked_at_too() -> None:
    with pytest.raises(DecisionError, match=r"as TargetRevision\.spec\[1\]; it must be a whole number"):
        replace(target(), spec=(0, -1))


def test_a_long_value_is_cut() -> None:
    with pytest.raises(DecisionError) as refused:
        target(desired="4" * 1000)
    assert len(str(refused.value)) < 250
