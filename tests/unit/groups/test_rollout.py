"""The formula of a rolling update on its own (specification: 20 §6, checklist 32-40)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.groups import rollout, spec, templates
from lwskit.groups.model import COUNTED, READY, UPDATED, DecisionError, Groups, LeaderState
from lwskit.groups.rollout import Settings
from tests.unit.groups.small_cluster import make_lws

OLD, DONE, BROKEN_OLD = COUNTED | READY, COUNTED | READY | UPDATED, COUNTED


def leaders(replicas: int, partition: int = 0, recorded: str | None = "same") -> LeaderState:
    return LeaderState(
        uid="u",
        replicas=replicas,
        status_replicas=replicas,
        partition=partition,
        revision="r",
        recorded=recorded,
        generation=1,
        observed_generation=1,
        deleting=False,
    )


def run(
    groups: list[int], settings: Settings, partition: int, *, recorded: int | None = None, new: bool = False
) -> tuple[int, int]:
    now = leaders(len(groups), partition, str(settings.replicas if recorded is None else recorded))
    found = rollout.target(now, Groups(bytes(groups)), settings, new_revision=new)
    return found.replicas, found.partition


def test_35_first_creation_takes_the_users_partition() -> None:
    found = rollout.target(None, Groups(b""), Settings(4, 1, 0, 2), new_revision=False)
    assert (found.replicas, found.partition) == (4, 2)


def test_32_scaling_up_comes_first_and_without_surge() -> None:
    assert run([OLD] * 4, Settings(6, 1, 2, 0), 0, recorded=4, new=True) == (6, 4)
    assert run([OLD] * 4, Settings(6, 1, 2, 0), 3, recorded=4) == (6, 3)


def test_33_a_template_change_adds_the_surge() -> None:
    assert run([OLD] * 2, Settings(2, 1, 2, 0), 0, new=True) == (3, 2)
    assert run([OLD] * 2, Settings(2, 0, 2, 0), 0, new=True) == (4, 2)


def test_34_surplus_that_is_done_goes_at_once() -> None:
    now = leaders(6, 2, "4")
    found = rollout.target(now, Groups(bytes([DONE] * 6)), Settings(2, 1, 2, 0), new_revision=False)
    assert (found.replicas, found.partition, found.reclaimed) == (2, 2, range(2, 6))


def test_36_surge_stays_while_the_users_partition_holds_groups_back() -> None:
    groups = [OLD, OLD, DONE, DONE]
    assert run(groups, Settings(3, 1, 1, 2), 2) == (4, 2)
    assert run([DONE] * 4, Settings(3, 1, 1, 0), 0) == (3, 0)


def test_37_surge_is_at_most_the_replicas() -> None:
    lws = make_lws(replicas=2)
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["maxSurge"] = 4
    assert Settings.of(lws).max_surge == 2


@pytest.mark.parametrize("recorded", [None, "", "many", "-1"])
def test_38_leaders_that_do_not_tell_their_replicas_are_an_error(recorded: str | None) -> None:
    with pytest.raises(DecisionError, match="replicas annotation"):
        rollout.target(leaders(4, 2, recorded), Groups(bytes([OLD] * 4)), Settings(4, 1, 0, 0), new_revision=False)


@pytest.mark.parametrize("value", ["", "many", "%", "10", "-5%", "1.5%"])
@pytest.mark.parametrize("field", ["maxSurge", "maxUnavailable"])
def test_38_a_value_that_is_no_number_and_no_percentage_is_an_error(field: str, value: str) -> None:
    lws = make_lws()
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"][field] = value
    with pytest.raises(DecisionError, match=field):
        Settings.of(lws)


def test_percentages_are_of_the_replicas_wanted_now() -> None:
    lws = make_lws(replicas=5)
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] |= {"maxSurge": "30%", "maxUnavailable": "30%"}
    assert (spec.max_unavailable(lws), spec.max_surge(lws)) == (1, 2)


@pytest.mark.parametrize(
    ("settings", "left", "expected"),
    [
        ((1, 0, 1), 1, 2),
        ((4, 1, 2), 2, 5),
        ((2, 1, 2), 2, 3),
        ((1, 0, 1), 0, 1),
        ((1, 1, 1), 1, 1),
        ((3, 0, 0), 1, 3),
    ],
)
def test_39_surge_that_is_still_needed(settings: tuple[int, int, int], left: int, expected: int) -> None:
    replicas, unavailable, surge = settings
    assert rollout.surged(Settings(replicas, unavailable, surge, 0), left) == expected


def test_76_a_group_that_is_down_leaves_less_to_take_down() -> None:
    groups = [OLD, BROKEN_OLD, OLD, OLD]
    assert run(groups, Settings(4, 2, 0, 0), 4) == (4, 3)


def test_40_groups_that_are_all_broken_do_not_block_the_rollout() -> None:
    settings = Settings(2, 1, 0, 0)
    assert run([BROKEN_OLD] * 2, settings, 2) == (2, 1)
    assert run([BROKEN_OLD, DONE], settings, 1) == (2, 0)


def test_40_broken_groups_with_surge_only() -> None:
    settings = Settings(2, 0, 1, 0)
    groups = [BROKEN_OLD, BROKEN_OLD, COUNTED | UPDATED]
    assert run(groups, settings, 2) == (3, 2)
    assert run([BROKEN_OLD, BROKEN_OLD, DONE], settings, 2) == (3, 1)


def test_groups_updated_already_are_passed_over() -> None:
    assert run([OLD, OLD, COUNTED | UPDATED, COUNTED | UPDATED], Settings(4, 2, 0, 0), 4) == (4, 2)


def test_the_users_partition_is_the_least() -> None:
    assert run([OLD] * 3 + [DONE], Settings(4, 4, 0, 3), 3) == (4, 3)


STATES = st.sampled_from([0, COUNTED, OLD, COUNTED | UPDATED, DONE])


@given(
    groups=st.lists(STATES, min_size=1, max_size=12),
    unavailable=st.integers(0, 4),
    surge=st.integers(0, 4),
    user=st.integers(0, 6),
    present=st.integers(0, 12),
    data=st.data(),
)
def test_a_rollout_never_goes_back_and_never_below_the_users_partition(
    groups: list[int], unavailable: int, surge: int, user: int, present: int, data: st.DataObject
) -> None:
    replicas = data.draw(st.integers(max(1, len(groups) - surge), len(groups)))
    settings = Settings(replicas, unavailable, min(surge, replicas), user)
    target_replicas, partition = run(groups, settings, present)
    assert user <= partition <= max(user, present)
    assert replicas <= target_replicas <= settings.burst


@given(groups=st.lists(STATES, min_size=1, max_size=12), unavailable=st.integers(1, 4), data=st.data())
def test_no_more_ready_groups_are_taken_down_than_allowed(
    groups: list[int], unavailable: int, data: st.DataObject
) -> None:
    present = data.draw(st.integers(0, len(groups)))
    _, partition = run(groups, Settings(len(groups), unavailable, 0, 0), present, recorded=len(groups))
    taken = sum(g == OLD for g in groups[partition:present])
    tail = next((n for n, g in enumerate(reversed(groups)) if g != DONE), len(groups))
    down_before = sum(not g & READY for g in groups[: max(0, len(groups) - tail - unavailable)])
    assert taken == 0 or taken + down_before <= unavailable


def test_while_a_watch_is_broken_nothing_is_taken_down() -> None:
    settings = Settings(4, 1, 1, 0)
    now = leaders(5, 3, "4")
    found = rollout.target(now, Groups(bytes([DONE] * 5)), settings, new_revision=False)
    assert (found.replicas, found.partition) == (4, 0)
    held = rollout.held(found, now, settings, rollout.BROKEN_WATCH)
    assert (held.replicas, held.partition, list(held.reclaimed)) == (5, 3, [])
    shrunk = rollout.held(found, leaders(5, 3, "6"), settings, rollout.BROKEN_WATCH)
    assert shrunk.replicas == 4, "fewer replicas are the user's wish"


@pytest.mark.parametrize("surge", [1, "100%"])
def test_the_leaders_may_be_down_by_no_more_than_a_workload_can_have(surge: int | str) -> None:
    lws = make_lws(replicas=2**30)
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] |= {"maxSurge": surge, "maxUnavailable": 2**31 - 1}
    assert templates.leader_plan(lws, "r", partition=0, replicas=2).max_unavailable == 2**31 - 1
