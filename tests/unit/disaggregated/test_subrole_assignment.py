"""Which sub-role each group is for (specification: 50 §13, the assignment rule)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.disaggregated.subroles.assignment import Place, assign

_LABELS = st.lists(st.sampled_from(["", "a", "b", "c", "gone"]), max_size=20)
_COUNTS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 8))


def _assigned(labels: str | list[str], **counts: int) -> list[str]:
    places = [Place(str(i), "" if label == "." else label) for i, label in enumerate(labels)]
    found = assign(places, counts)
    return [found[place.group] or "." for place in places]


@pytest.mark.parametrize(
    ("labels", "counts", "found"),
    [
        (".......", {"a": 5, "b": 2}, "aaaaabb"),
        ("aaaaabb", {"a": 5, "b": 2}, "aaaaabb"),
        ("aaaaabb", {"a": 3, "b": 4}, "aaabbbb"),
        ("aaaaa", {"a": 3, "b": 2}, "aaabb"),
        ("bbaaaaa", {"a": 3, "b": 4}, "bbaaabb"),
        ("aa.aabb", {"a": 5, "b": 2}, "aaaaabb"),
        ("aa.aabb", {"a": 5, "b": 1}, "aaaaab."),
        ("xyz", {"a": 1, "b": 1}, "ab."),
        ("..", {"b": 1, "a": 1}, "ab"),
        ("a.", {"a": 1}, "a."),
        (".", {}, "."),
    ],
)
def test_groups_keep_their_sub_role_while_it_has_open_slots_and_fill_up_in_the_order_of_names(
    labels: str, counts: dict[str, int], found: str
) -> None:
    assert "".join(_assigned(labels, **counts)) == found


@given(_LABELS, _COUNTS)
def test_no_sub_role_gets_too_many_and_none_too_few_while_groups_are_left(
    labels: list[str], counts: dict[str, int]
) -> None:
    found = Counter(label for label in _assigned(labels, **counts) if label != ".")
    assert all(found[name] <= counts.get(name, 0) for name in found)
    assert sum(found.values()) == min(len(labels), sum(counts.values()))


@given(_LABELS, _COUNTS)
def test_as_many_groups_as_can_keep_their_sub_role(labels: list[str], counts: dict[str, int]) -> None:
    there = Counter(labels)
    found = _assigned(labels, **counts)
    kept = Counter(label for label, now in zip(labels, found, strict=True) if label == now)
    assert all(kept[name] == min(there[name], counts.get(name, 0)) for name in "abc")
    for name in "abc":
        keeps = [now == name for label, now in zip(labels, found, strict=True) if label == name]
        assert keeps == sorted(keeps, reverse=True), "the first in order keep it"


@given(_LABELS, _COUNTS)
def test_what_was_assigned_stays(labels: list[str], counts: dict[str, int]) -> None:
    once = _assigned(labels, **counts)
    assert _assigned(once, **counts) == once


def test_sub_roles_may_ask_for_far_more_groups_than_there_are() -> None:
    """Billions of open slots are never counted out."""
    assert assign([Place("g", "b"), Place("h", "b"), Place("i")], {"a": 2_000_000_000, "b": 1}) == {
        "g": "b",
        "h": "a",
        "i": "a",
    }
