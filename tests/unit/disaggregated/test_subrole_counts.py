"""Sub-role counts as annotations say them (specification: 50 §13)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.model import Child
from lwskit.disaggregated.spec import read
from lwskit.disaggregated.subroles import tally
from lwskit.groups.model import DecisionError
from tests.unit.disaggregated.divided import divided, divided_role
from tests.unit.disaggregated.scenes import child_object, ds_object, role

_COUNTS = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 9), min_size=1)


def _child(text: str, replicas: int = 7) -> Child:
    return Child.of(child_object("prefill", replicas, annotations={names.SUBROLE_REPLICAS_ANNOTATION: text}))


def test_counts_are_read_as_they_are_written() -> None:
    text = tally.written({"long": 2, "fast": 5})
    assert text == '{"fast":5,"long":2}'
    assert tally.issued(_child(text)) == {"fast": 5, "long": 2}
    assert tally.issued(Child.of(child_object("prefill", 7))) is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[7]", "no JSON object"),
        ('{"a":-1,"b":8}', "the count of 'a' is out of range"),
        ('{"a":2147483648}', "the count of 'a' is out of range"),
        ('{"a":2147483647,"b":1}', "the sum is out of range"),
        ('{"a":7.0}', "the count of 'a' is no whole number"),
        ('{"a":true,"b":6}', "the count of 'a' is no whole number"),
        ('{"a":"7"}', "the count of 'a' is no whole number"),
        ('{"a":null}', "the count of 'a' is no whole number"),
    ],
)
def test_an_annotation_that_cannot_be_read_is_an_error_that_names_it(text: str, fault: str) -> None:
    child = _child(text)
    with pytest.raises(DecisionError, match=f"annotation {names.SUBROLE_REPLICAS_ANNOTATION} of .* {child.name}") as e:
        tally.issued(child)
    assert fault in str(e.value)


def test_issued_counts_must_add_up_to_the_replicas() -> None:
    with pytest.raises(DecisionError, match=r"adds up to 7 groups and spec\.replicas is 6"):
        tally.issued(_child('{"a":5,"b":2}', 6))


def test_initial_counts_must_add_up_to_the_initial_replicas() -> None:
    sound = Child.of(divided({"a": 1, "b": 0}, first={"a": 5, "b": 2}))
    assert tally.initial(sound) == {"a": 5, "b": 2}
    with pytest.raises(DecisionError, match=r"adds up to 7 and .*initial-replicas is 6"):
        tally.initial(Child.of(divided({"a": 1}, first={"a": 5, "b": 2}, initial=6)))


def test_a_plan_need_not_add_up_to_anything() -> None:
    assert tally.planned(Child.of(divided({"a": 5}, plan={"a": 3, "b": 3}))) == {"a": 3, "b": 3}
    assert tally.planned(Child.of(divided({"a": 5}))) is None
    with pytest.raises(DecisionError, match="subrole-plan"):
        tally.planned(Child.of(divided({"a": 5}, plan="{}}")))


@pytest.mark.parametrize(
    ("wanted", "total", "found"),
    [
        ({"b": 2, "a": 5}, 7, {"a": 5, "b": 2}),
        ({"b": 2, "a": 5}, 6, {"a": 5, "b": 1}),
        ({"b": 2, "a": 5}, 3, {"a": 3, "b": 0}),
        ({"b": 2, "a": 5}, 10, {"a": 8, "b": 2}),
        ({"b": 0, "a": 0}, 4, {"a": 4, "b": 0}),
        ({"b": 2, "a": 5}, 0, {"a": 0, "b": 0}),
    ],
)
def test_groups_that_are_there_are_shared_out_in_the_order_of_names(
    wanted: dict[str, int], total: int, found: dict[str, int]
) -> None:
    assert tally.fitted(wanted, total) == found


@given(_COUNTS, st.integers(0, 30))
def test_what_is_shared_out_is_all_of_it(wanted: dict[str, int], total: int) -> None:
    found = tally.fitted(wanted, total)
    assert sum(found.values()) == total
    assert found.keys() == wanted.keys()
    short = [name for name in sorted(wanted) if found[name] < wanted[name]]
    assert all(found[name] == 0 for name in wanted if short and name > short[0])


@pytest.mark.parametrize(
    ("wanted", "total", "said"),
    [
        ({}, 3, "3 groups are to be shared out among no sub-roles; name one at least"),
        ({"a": 1}, -1, "-1 groups are to be shared out; it must be a whole number, 0 or more"),
        ({"a": 1}, "3", "'3' groups are to be shared out; it must be a whole number, 0 or more"),
        ({"a": -1}, 3, "sub-role 'a' is to have -1 groups; a name is a text, and a count a whole number, 0 or more"),
        ({"a": "x"}, 3, "sub-role 'a' is to have 'x' groups; "),
        ({"a": True}, 3, "sub-role 'a' is to have True groups; "),
        ({1: 1}, 3, "sub-role 1 is to have 1 groups; "),
        (["a"], 3, "['a'] are no counts of sub-roles; it must be a mapping from names to numbers"),
    ],
)
def test_what_are_no_counts_is_not_shared_out(wanted: Any, total: Any, said: str) -> None:
    with pytest.raises(DecisionError) as refused:
        tally.fitted(wanted, total)
    assert str(refused.value).startswith(said)


def test_nothing_is_shared_out_among_nobody() -> None:
    assert tally.fitted({}, 0) == {}


@pytest.mark.parametrize("counts", [{"a": 1.5}, {"a": None}, {None: 1}, {"a"}])
def test_what_could_not_be_read_again_is_not_written(counts: Any) -> None:
    with pytest.raises(DecisionError, match=r"a count a whole number|are no counts of sub-roles"):
        tally.written(counts)


def test_the_parts_of_a_child() -> None:
    spec = read(ds_object(divided_role(a=5, b=2), role("decode", 2)))
    prefill, decode = spec.roles
    child = Child.of(divided({"b": 3, "gone": 1}, first={"b": 4}))
    assert dict(tally.of(child, prefill)) == {"a": 0, "b": 3, "gone": 1}
    assert dict(tally.of(child, None)) == {"b": 3, "gone": 1}
    assert dict(tally.of(child, decode)) == {"": 4}
    assert dict(tally.initial_of(child, prefill)) == {"a": 0, "b": 4}
    assert dict(tally.initial_of(child, decode)) == {"": 4}
    plain = Child.of(child_object("prefill", 3, initial=6))
    assert dict(tally.of(plain, prefill)) == {"a": 3, "b": 0}
    assert dict(tally.initial_of(plain, prefill)) == {"a": 6, "b": 0}
    assert dict(tally.of(plain, None)) == {"": 3}
