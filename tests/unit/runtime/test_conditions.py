"""Conditions of a status, by the conventions of the Kubernetes API."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from lwskit.runtime.conditions import find_condition, is_true, remove_condition, set_condition

NOW = datetime(2026, 10, 21, 12, tzinfo=timezone(timedelta(hours=2)))
LATER = datetime(2026, 10, 22, tzinfo=UTC)
READY = {"type": "Ready", "status": "True", "reason": "AllReady", "message": "3 of 3", "observedGeneration": 2}
STORED = {**READY, "lastTransitionTime": "2026-10-21T10:00:00Z"}
OTHER = {
    "type": "Other",
    "status": "Unknown",
    "reason": "New",
    "message": "",
    "lastTransitionTime": "2020-01-01T00:00:00Z",
}


def test_a_new_condition_comes_last_with_the_time_in_utc() -> None:
    assert set_condition(None, READY, NOW) == [STORED]
    assert set_condition([OTHER], READY, NOW) == [OTHER, STORED]


def test_the_time_changes_with_the_status_only() -> None:
    text = {**READY, "reason": "StillReady", "message": "4 of 4", "observedGeneration": 3}
    assert set_condition([STORED, OTHER], text, LATER) == [
        {**text, "lastTransitionTime": "2026-10-21T10:00:00Z"},
        OTHER,
    ]
    broken = {**READY, "status": False, "reason": "Waiting"}
    assert set_condition([STORED, OTHER], broken, LATER) == [
        {**broken, "status": "False", "lastTransitionTime": "2026-10-22T00:00:00Z"},
        OTHER,
    ]


def test_a_time_of_its_own_counts_when_the_status_changes() -> None:
    own = {**READY, "status": "Unknown", "lastTransitionTime": "2026-10-21T23:00:00Z"}
    assert set_condition([STORED], own, LATER) == [own]
    assert set_condition([STORED], {**own, "status": "True"}, LATER) == [STORED]


def test_a_stored_condition_without_a_time_gets_one() -> None:
    assert set_condition([READY], READY, NOW) == [STORED]


def test_conditions_are_found_and_removed_by_type() -> None:
    assert find_condition([OTHER, STORED], "Ready") is STORED
    assert find_condition(None, "Ready") is None
    assert is_true([OTHER, STORED], "Ready")
    assert not is_true([OTHER, STORED], "Other")
    assert not is_true(None, "Ready")
    assert remove_condition([OTHER, STORED], "Ready") == [OTHER]
    assert remove_condition(None, "Ready") == []


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"type": ""}, r"^a condition needs a type, a word in CamelCase; got ''$"),
        ({"reason": None}, r"^a condition needs a reason, a word in CamelCase; got None$"),
        ({"status": "true"}, r"^condition Ready: the status is one of True, False, Unknown, not 'true'$"),
        ({"status": None}, r"not None$"),
    ],
)
def test_what_no_server_takes_is_refused(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        set_condition([], {**READY, **fields}, NOW)
    with pytest.raises(ValueError, match="needs a time zone"):
        set_condition([], READY, datetime(2026, 1, 1))  # noqa: DTZ001


types = st.sampled_from(["A", "B", "C"])
conditions = st.builds(
    lambda type, status, reason: {"type": type, "status": status, "reason": reason},
    types,
    st.sampled_from(["True", "False", "Unknown"]),
    st.sampled_from(["X", "Y"]),
)


@given(st.lists(conditions, max_size=8))
def test_there_is_one_of_each_type_setting_it_again_changes_nothing_and_nothing_given_is_changed(
    steps: list[dict[str, Any]],
) -> None:
    found: list[dict[str, Any]] = []
    for number, step in enumerate(steps):
        before, given_step = copy.deepcopy(found), copy.deepcopy(step)
        after = set_condition(found, step, NOW + timedelta(seconds=number))
        assert (found, step) == (before, given_step)
        assert set_condition(after, step, LATER) == after
        assert [c["type"] for c in after] == list(dict.fromkeys([*(c["type"] for c in found), step["type"]]))
        old, new = find_condition(found, step["type"]), find_condition(after, step["type"])
        assert new is not None
        if old is not None:
            assert (old["lastTransitionTime"] == new["lastTransitionTime"]) == (old["status"] == new["status"])
        found = after
