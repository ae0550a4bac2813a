"""What holds a rollout, by the arithmetic of the partition."""

from __future__ import annotations

import pytest

from lwskit.groups import hold
from lwskit.groups.hold import Cause, Hold, numbered
from lwskit.groups.model import READY, UPDATED, Groups, LeaderState
from lwskit.groups.rollout import Settings


def groups(text: str) -> Groups:
    """`A` and `B` for ready groups of the old and the new revision, `a` and `b` for those that are not ready."""
    return Groups(bytes((c.isupper() * READY) | ((c in "Bb") * UPDATED) for c in text))


def found(
    text: str, partition: int, *, wanted: int = 0, user: int = 0, unavailable: int = 1, surge: int = 0
) -> Hold | None:
    settings = Settings(wanted or len(text), unavailable, surge, user)
    now = LeaderState(
        uid="u",
        replicas=len(text),
        status_replicas=len(text),
        partition=partition,
        revision="B",
        recorded=str(settings.replicas),
        generation=1,
        observed_generation=1,
        deleting=False,
    )
    return hold.find(now, groups(text), settings)


def test_nothing_holds_what_is_done_or_goes_on() -> None:
    assert found("BBB", 0) is None
    assert found("AAA", 3) is None
    assert found("AAB", 2) is None


def test_a_group_that_is_updated_and_not_ready() -> None:
    assert found("AAb", 2) == Hold(Cause.UPDATING, 2)
    assert found("AABb", 2) == Hold(Cause.UPDATING, 3)
    assert found("Bb", 0) == Hold(Cause.UPDATING, 1)


def test_a_group_that_the_controller_has_not_replaced() -> None:
    assert found("AAAb", 2) == Hold(Cause.UPDATING, 3)
    assert found("AAAB", 2) == Hold(Cause.REPLACING, 2)
    assert found("aAAA", 2, unavailable=2) == Hold(Cause.REPLACING, 3)


def test_groups_that_no_update_makes_ready_are_all_that_may_be_down() -> None:
    assert found("aAA", 2) == Hold(Cause.REPLACING, 2, (0,))
    assert found("aaABBA", 2, wanted=5, surge=1) == Hold(Cause.REPLACING, 5, (0, 1))


def test_the_formula() -> None:
    assert found("aAA", 3) == Hold(Cause.FORMULA, 2, (0,))
    assert found("aAAB", 3) == Hold(Cause.FORMULA, 2, (0,))
    assert found("aaAAA", 5, unavailable=2) == Hold(Cause.FORMULA, 4, (0, 1))


def test_no_budget_and_the_users_partition() -> None:
    assert found("AAA", 3, unavailable=0) == Hold(Cause.BUDGET)
    assert found("AAB", 2, user=2) == Hold(Cause.PARTITION)
    assert found("BBB", 2, user=2) is None
    assert found("AAb", 2, user=2) == Hold(Cause.UPDATING, 2)


@pytest.mark.parametrize(
    ("ordinals", "words"),
    [([3], "group 3"), ([0, 1], "groups 0 and 1"), ([2, 0, 1], "groups 0 to 2"), ([0, 2, 5], "groups 0, 2 and 5")],
)
def test_groups_in_words(ordinals: list[int], words: str) -> None:
    assert numbered(ordinals) == words


@pytest.mark.parametrize("cause", Cause)
def test_every_hold_has_words(cause: Cause) -> None:
    settings = Settings(4, 1, 0, 2)
    held = Hold(cause, 3, (0, 1))
    assert not hold.told(held, settings).endswith(".")
    assert all(text for text in hold.advice(held, "x", "ns"))
