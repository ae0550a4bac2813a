"""The check of steps before they are written (50 §7.4 item 6): each promise broken once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.planner import OldRevision, RolloutState, Step, TargetRevision, Vector, violations

ROLES = ("prefill", "decode")


def old(spec: Vector, initial: Vector = (), ready: Vector | None = None) -> OldRevision:
    initial = initial or spec
    ready = spec if ready is None else ready
    return OldRevision(tuple(i > 0 for i in initial), initial, spec, ready, ready)


def new(spec: Vector, desired: Vector, ready: Vector | None = None, stuck: tuple[bool, ...] = ()) -> TargetRevision:
    ready = spec if ready is None else ready
    stuck = stuck or (False,) * len(spec)
    return TargetRevision(tuple(d > 0 for d in desired), spec, ready, ready, desired, stuck)


def make(
    active: OldRevision,
    target: TargetRevision,
    surge: Vector = (1, 1),
    unavailable: Vector = (0, 0),
    parked: tuple[OldRevision, ...] = (),
    policy: str = names.ROLLOUT_COUPLED,
) -> RolloutState:
    base = tuple(map(max, zip(active.initial, *(p.initial for p in parked), strict=True)))
    return RolloutState(active, parked, target, base, surge, unavailable, policy)


BEGUN = make(old((4, 2)), new((0, 0), (4, 2)))
HALF = make(old((3, 2), (4, 2)), new((1, 1), (4, 2)))
ADVANCING = replace(make(old((2, 2)), new((5, 5), (4, 4))), policy=names.ADVANCE_ROLLOUT)

BROKEN: dict[str, tuple[RolloutState, Step, str]] = {
    "too few numbers": (BEGUN, Step((4,), (1, 1)), "there are 2 roles, but counts for 1 and 2"),
    "no change": (BEGUN, Step((4, 2), (0, 0)), "nothing changes"),
    "an old revision grows": (
        HALF,
        Step((4, 2), (1, 1)),
        "role prefill: the old revision has 3 groups and may not get 4",
    ),
    "fewer than none": (HALF, Step((-1, 0), (1, 1)), "role prefill: the old revision has 3 groups and may not get -1"),
    "more than desired": (
        make(old((0, 0), (4, 2)), new((4, 2), (4, 2))),
        Step((0, 0), (5, 2)),
        "role prefill: the target would get 5 groups, but 4 are desired",
    ),
    "the target shrinks": (HALF, Step((3, 2), (0, 1)), "role prefill: the target would shrink from 1 to 0 groups"),
    "the target shrinks by more than there is too much": (
        ADVANCING,
        Step((2, 2), (2, 5)),
        "role prefill: the target would shrink from 5 to 2 groups",
    ),
    "both shrink": (ADVANCING, Step((1, 1), (4, 4)), "the old revision and the target would shrink at once"),
    "a role ends alone": (
        make(old((4, 1)), new((4, 2), (4, 2)), (9, 9)),
        Step((4, 0), (4, 2)),
        "the old revision would lose role decode and keep other roles",
    ),
    "the target's last group": (
        replace(make(old((4, 4)), new((2, 4), (1, 4)), (0, 0)), policy=names.ADVANCE_ROLLOUT),
        Step((4, 4), (0, 4)),
        "role prefill: the target would lose its last group, and groups are desired",
    ),
    "beyond maxSurge": (
        BEGUN,
        Step((4, 2), (2, 1)),
        "role prefill: the target would grow to 2 groups, 1 are within the limits",
    ),
    "a batch before the last is Ready": (
        make(old((4, 2)), new((1, 1), (4, 2), (0, 0)), (4, 2)),
        Step((4, 2), (1, 2)),
        "role decode: the target would grow to 2 groups, 1 are within the limits",
    ),
    "what parked revisions serve": (
        make(old((0, 0), (1, 1)), new((0, 0), (2, 2)), (9, 9), parked=(old((1, 1)),)),
        Step((0, 0), (2, 1)),
        "role prefill: the target would grow to 2 groups, this phase needs 1",
    ),
    "the target out of step": (
        make(old((8, 4)), new((0, 0), (8, 4)), (8, 4)),
        Step((4, 2), (4, 0)),
        "role prefill: 4 groups of the target run ahead of the slowest role, 2 do not",
    ),
    "the old revision out of step": (
        make(old((8, 4)), new((8, 4), (8, 4)), (8, 4)),
        Step((2, 4), (8, 4)),
        "role prefill: 2 old groups run ahead of the slowest role, 6 do not",
    ),
    "too few serve": (HALF, Step((2, 2), (1, 1)), "role prefill: 3 groups would serve, 4 must"),
    "too few are Ready although none serve": (
        make(old((2, 2), ready=(0, 1)), new((1, 1), (2, 2), (0, 1))),
        Step((1, 1), (1, 1)),
        "role decode: 1 groups would be Ready, 2 must",
    ),
    "the target's own floor": (
        replace(make(old((0, 0), (1, 1)), new((5, 5), (4, 4), (4, 5))), policy=names.ADVANCE_ROLLOUT),
        Step((0, 0), (4, 4)),
        "role prefill: 3 groups would serve, 4 must",
    ),
    "both markers": (
        BEGUN,
        Step((4, 2), (1, 1), bootstrap_surge=True, availability_fallback=True),
        "a step is either a bootstrap surge or an availability fallback",
    ),
    "a marker for nothing": (
        BEGUN,
        Step((4, 2), (1, 1), bootstrap_surge=True),
        "a bootstrap surge stays within the limits",
    ),
    "a bootstrap surge that drains": (
        make(old((1, 5), (1, 5)), new((0, 0), (1, 5)), (0, 0), (1, 1)),
        Step((1, 4), (1, 0), bootstrap_surge=True),
        "a bootstrap surge takes groups away",
    ),
    "a bootstrap surge of two groups": (
        make(old((1, 4), (1, 5)), new((0, 1), (2, 5)), (0, 0), (1, 1)),
        Step((1, 4), (2, 1), bootstrap_surge=True),
        "role prefill: the target would grow to 2 groups, 1 are within the limits",
    ),
    "a fallback that grows": (
        make(old((1, 1), (1, 4)), new((1, 1), (1, 4), (0, 1), (True, False)), parked=(old((1, 3)),)),
        Step((0, 0), (1, 2), availability_fallback=True),
        "an availability fallback changes the target",
    ),
    "a fallback for nobody": (
        make(old((1, 1), (1, 4)), new((1, 1), (1, 4), (0, 1)), parked=(old((1, 3)),)),
        Step((0, 0), (1, 1), availability_fallback=True),
        "an availability fallback releases no capacity that a role without a node waits for",
    ),
}


@pytest.mark.parametrize(("state", "step", "sentence"), BROKEN.values(), ids=BROKEN)
def test_a_broken_promise_is_named(state: RolloutState, step: Step, sentence: str) -> None:
    assert sentence in violations(state, step, ROLES)


def test_roles_without_names_are_numbered() -> None:
    assert violations(BEGUN, Step((5, 2), (0, 0))) == ["role number 0: the old revision has 4 groups and may not get 5"]


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (BEGUN, Step((4, 2), (1, 1))),
        (HALF, Step((3, 1), (2, 1))),
        # A slower step than the planner's is as good.
        (make(old((8, 4)), new((8, 4), (8, 4)), (8, 4)), Step((7, 4), (8, 4))),
        (ADVANCING, Step((2, 2), (4, 5))),
    ],
)
def test_what_keeps_all_promises_may_be_done(state: RolloutState, step: Step) -> None:
    assert violations(state, step, ROLES) == []
