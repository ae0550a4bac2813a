"""Restart counters and the delays that follow from them (specification: 20 §12.1, §12.5, §12.6; checklist 86-88)."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.groups import backoff, counters
from lwskit.groups.model import DecisionError
from tests.unit.groups.small_cluster import make_lws

COUNTS = names.GROUP_RESTART_COUNTS_ANNOTATION
KEYS = st.builds("{}/{}".format, st.sampled_from(["abc", "b5d", "x"]), st.integers(0, 9))
COUNTERS = st.dictionaries(KEYS, st.integers(0, names.INT32_MAX), max_size=6)


def with_text(text: str | None, **notes: str) -> dict[str, Any]:
    """A set with this text as its counters."""
    lws = make_lws()
    notes = {**notes, **({COUNTS: text} if text is not None else {})}
    return {**lws, "metadata": {**lws["metadata"], "annotations": notes}}


def with_counts(found: dict[str, int]) -> dict[str, Any]:
    return counters.written(make_lws(), found)


def leader_of(key: str, uid: str = "leader") -> dict[str, Any]:
    """The leader of the group that is counted under that key."""
    revision, index = key.split("/")
    return {"metadata": {"uid": uid, "labels": {names.REVISION_LABEL: revision, names.GROUP_INDEX_LABEL: index}}}


# Counters -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, "", "{}"])
def test_a_set_without_counters_has_none(text: str | None) -> None:
    assert counters.read(with_text(text)) == {}
    assert counters.read(make_lws()) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is no JSON"),
        ("null", "is no JSON object"),
        ("[]", "is no JSON object"),
        ("3", "is no JSON object"),
        ('{"a/0": -1}', "the count of 'a/0' is '-1', not one from 0"),
        ('{"a/0": null}', "the count of 'a/0' is 'null', not a whole number"),
        ('{"a/0": true}', "not a whole number"),
        ('{"a/0": 1.0}', "not a whole number"),
        ('{"a/0": "1"}', "not a whole number"),
        ('{"a/0": 2147483648}', "not one from 0 to 2147483647"),
        ('{"a/0": NaN}', "not a whole number"),
        ("[" * 100_000, "is no JSON: nested too deeply"),
        ('{"a/0": ' + "1" * 5000 + "}", "is no JSON"),
    ],
)
def test_86_counters_that_cannot_be_read_are_one_sentence(text: str, why: str) -> None:
    with pytest.raises(DecisionError) as error:
        counters.read(with_text(text))
    said = str(error.value)
    assert said.startswith(f"annotation {COUNTS} cannot be read: ")
    assert said.endswith("; correct or remove it")
    assert "\n" not in said
    assert len(said) < 400
    if "nested" not in why:
        assert why in said


@given(COUNTERS)
def test_86_what_is_written_is_read_again(found: dict[str, int]) -> None:
    lws = with_text(None, other="kept")
    written = counters.written(lws, found)
    assert counters.read(written) == found
    assert (COUNTS in written["metadata"]["annotations"]) == bool(found)
    assert written["metadata"]["annotations"]["other"] == "kept"
    assert COUNTS not in lws["metadata"]["annotations"]


def test_counters_are_written_sorted_and_without_spaces() -> None:
    text = with_counts({"b/1": 1, "a/2": 3})["metadata"]["annotations"][COUNTS]
    assert text == '{"a/2":3,"b/1":1}'
    assert "annotations" not in counters.written(with_counts({"a/0": 1}), {})["metadata"]


@given(COUNTERS, KEYS, st.integers(0, 100))
def test_86_a_count_never_gets_lower_and_others_stay(found: dict[str, int], key: str, count: int) -> None:
    lws = with_counts(found)
    before = copy.deepcopy(lws)
    raised = counters.raised(leader_of(key), count, "set-uid")
    changed = raised(lws)
    assert lws == before
    if found.get(key, -1) >= count:
        assert changed is None
    else:
        assert changed is not None
        assert counters.read(changed) == {**found, key: count}
        assert raised(changed) is None


@given(COUNTERS, st.lists(st.tuples(KEYS, st.integers(1, 50)), max_size=8))
def test_86_concurrent_changes_of_several_groups_all_survive(
    found: dict[str, int], writes: list[tuple[str, int]]
) -> None:
    """Whatever order repeated changes are made in, each on the object as it is then, the result is the same."""
    results = []
    for order in (writes, [*reversed(writes)]):
        lws = with_counts(found)
        for key, count in order:
            lws = counters.raised(leader_of(key), count, "set-uid")(lws) or lws
        results.append(counters.read(lws))
    assert results[0] == results[1]
    for key, count in writes:
        assert results[0][key] >= count


def test_another_set_of_that_name_is_not_counted_for() -> None:
    assert counters.raised(leader_of("a/0"), 1, "former")(make_lws()) is None
    assert counters.dropped(counters.read, "former")(with_counts({"a/0": 1})) is None


def test_86_a_leader_is_counted_once() -> None:
    lws = counters.raised(leader_of("a/0", "one"), 1, "set-uid")(make_lws())
    assert lws is not None
    assert counters.is_counted(lws, leader_of("a/0", "one"))
    assert not counters.is_counted(lws, leader_of("a/0", "two"))
    assert not counters.is_counted(lws, leader_of("a/1", "one"))
    lws = counters.raised(leader_of("a/0", "two"), 2, "set-uid")(lws)
    assert lws is not None
    assert not counters.is_counted(lws, leader_of("a/0", "one"))
    lws = counters.dropped(counters.read, "set-uid")(lws)
    assert lws == {**make_lws(), "metadata": {k: v for k, v in make_lws()["metadata"].items() if k != "annotations"}}


def test_86_only_so_many_leaders_are_remembered() -> None:
    lws = make_lws()
    for i in range(1100):
        lws = counters.raised(leader_of(f"a/{i}"), 1, "set-uid")(lws) or lws
    assert [i for i in range(1100) if counters.is_counted(lws, leader_of(f"a/{i}"))] == list(range(76, 1100))
    assert len(counters.read(lws)) == 1100


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"a/0": 3}', "[" * 100_000])
def test_86_remembered_leaders_that_cannot_be_read_are_none(text: str) -> None:
    lws = make_lws()
    lws["metadata"]["annotations"] = {names.GROUP_RESTART_LEADERS_ANNOTATION: text}
    assert not counters.is_counted(lws, leader_of("a/0"))
    assert counters.raised(leader_of("a/0"), 1, "set-uid")(lws) is not None


@given(COUNTERS, st.sets(KEYS))
def test_87_only_what_is_picked_is_dropped(found: dict[str, int], gone: set[str]) -> None:
    changed = counters.dropped(lambda _: gone, "set-uid")(with_counts(found))
    if not gone & found.keys():
        assert changed is None
    else:
        assert changed is not None
        assert counters.read(changed) == {k: n for k, n in found.items() if k not in gone}


@given(COUNTERS, st.integers(0, 12), st.sampled_from(["", "abc", "x"]))
def test_87_the_short_way_finds_what_the_long_way_does(found: dict[str, int], limit: int, current: str) -> None:
    others = counters.of_other_revisions(found, current) if current else []
    wanted = {*counters.of_removed_groups(found, limit, range(3)), *others}
    assert set(counters.gone_for_good(with_counts(found), limit, range(3), current)) == wanted


def test_87_what_was_read_is_not_to_be_changed() -> None:
    found: Any = counters.read(with_text('{"a/0":1}'))
    with pytest.raises(TypeError):
        found["a/0"] = 2


def test_87_groups_beyond_the_limit_and_of_other_revisions() -> None:
    found = {"a/0": 1, "a/3": 1, "b/2": 2, "b/12": 4}
    assert counters.of_removed_groups(found, 3) == ["a/3", "b/12"]
    assert counters.of_removed_groups(found, 3, kept=range(4)) == ["b/12"]
    assert counters.of_other_revisions(found, "a") == ["b/2", "b/12"]


@pytest.mark.parametrize("key", ["a", "a/", "a/x", "a/-1", "a/1.0", "a/" + "9" * 30, "a/٣"])
def test_87_a_key_of_another_form_is_an_error(key: str) -> None:
    with pytest.raises(DecisionError, match="is not of the form <revision>/<group index>; correct or remove it"):
        counters.of_removed_groups({key: 1}, 3)


# Delays ---------------------------------------------------------------------------------------------------------------

CREATED = datetime(2026, 10, 20, 10, 0, 0, tzinfo=UTC)


def test_88_delays_double_up_to_the_cap() -> None:
    assert [backoff.delay(n) for n in range(7)] == [10, 20, 40, 80, 160, 300, 300]
    assert [backoff.delay(n, 2, 10) for n in range(4)] == [2, 4, 8, 10]
    assert (backoff.delay(35), backoff.delay(-5)) == (300, 10)
    assert backoff.delay(30, 1, names.INT32_MAX) == 2**30
    assert backoff.delay(31, 1, names.INT32_MAX) == names.INT32_MAX


@pytest.mark.parametrize("missing", [None, 0, -3])
def test_88_what_is_missing_or_not_positive_is_the_default(missing: int | None) -> None:
    assert backoff.delay(0, missing, 50) == 10
    assert backoff.delay(9, 20, missing) == 300


@given(
    st.integers(-10, 10**12),
    st.integers(1, names.INT32_MAX),
    st.integers(1, names.INT32_MAX),
)
def test_88_delays_never_shrink_nor_pass_the_cap(count: int, base: int, cap: int) -> None:
    here, after = backoff.delay(count, base, cap), backoff.delay(count + 1, base, cap)
    assert 1 <= here <= after <= cap
    if 0 <= count < 30:
        assert after == min(2 * here, cap)


def left(lived: float, count: int = 0, **settings: int) -> float:
    """What is left for a leader that has lived so many seconds."""
    lws = make_lws(restartBackoff=settings)
    leader = {"metadata": {"creationTimestamp": "2026-10-20T10:00:00Z"}}
    return backoff.remaining(lws, leader, count, CREATED + timedelta(seconds=lived))


def test_89_the_window_begins_with_the_leaders_creation() -> None:
    assert left(0) == 10
    assert left(9.5) == 0.5
    assert left(10) == 0
    assert left(500) == 0
    assert left(15, 1) == 5
    assert left(1, 3, baseSeconds=1, capSeconds=4) == 3


def test_89_clocks_that_disagree_add_nothing_to_the_window() -> None:
    assert left(-100) == 10


def test_89_without_settings_or_creation_nobody_waits() -> None:
    leader = {"metadata": {"creationTimestamp": "2026-10-20T10:00:00Z"}}
    assert backoff.remaining(make_lws(), leader, 0, CREATED) == 0
    assert backoff.remaining(make_lws(restartBackoff={}), {"metadata": {}}, 0, CREATED) == 0
    assert json.dumps(backoff.settings(make_lws())) == "null"


@given(st.floats(-1e6, 1e6), st.integers(0, 40), st.integers(1, 1000), st.integers(1, 1000))
def test_89_what_is_left_is_never_negative_nor_longer_than_the_delay(
    lived: float, count: int, base: int, cap: int
) -> None:
    assert 0 <= left(lived, count, baseSeconds=base, capSeconds=cap) <= backoff.delay(count, base, cap)
