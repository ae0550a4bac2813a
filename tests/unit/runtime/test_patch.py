"""Patches are right when applying them gives the new object."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
from hypothesis import example, given
from hypothesis import strategies as st

from lwskit.runtime.patch import json_patch, merge_patch, same

scalars = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "1", "true", 1.0, 0.0, "Ä😀", 2**60])
)
keys = st.sampled_from(["a", "b", "a/b", "m~n", "~1", "/", "", "0", "-", "ö"])
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner), max_leaves=12)
objects = st.dictionaries(keys, values, max_size=5)


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


def without_nulls(value: Any) -> Any:
    return {k: without_nulls(v) for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def applied(document: Any, patch: list[dict[str, Any]]) -> Any:
    """What another implementation makes of a patch."""
    return jsonpatch.apply_patch(copy.deepcopy(document), copy.deepcopy(patch))


@given(values, values)
@example([1], [True])
@example([1], [1.0])
@example([0], [False])
@example({"a/b": [{"~": None}]}, {"a/b": [{}, {"~": None}]})
def test_a_json_patch_turns_the_old_value_into_the_new_one(old: Any, new: Any) -> None:
    before = copy.deepcopy(old)
    patch = json_patch(old, new)
    assert same(applied(old, patch), new)
    assert same(old, before)
    assert (patch == []) == same(old, new)


@given(st.lists(values, max_size=6), st.lists(st.integers(0, 5), max_size=8), values)
def test_lists_that_share_their_items(old: list[Any], order: list[int], added: Any) -> None:
    """What a function makes of a list without copying its items: others in between, some gone, another order."""
    new = [old[place] if place < len(old) else added for place in order]
    holder, changed = {"list": old, "rest": added}, {"list": new, "rest": added}
    assert same(applied(holder, json_patch(holder, changed)), changed)
    both = [*new, *old]
    assert same(applied(old, json_patch(old, both)), both)


@given(objects, objects)
def test_a_merge_patch_turns_the_old_object_into_the_new_one(old: Any, new: Any) -> None:
    old, new = without_nulls(old), without_nulls(new)
    assert same(apply_merge_patch(old, merge_patch(old, new)), new)


@given(objects)
def test_equal_objects_have_an_empty_patch(value: Any) -> None:
    assert merge_patch(value, copy.deepcopy(value)) == {}
    assert json_patch(value, copy.deepcopy(value)) == []


def test_a_json_patch_is_small() -> None:
    old = {"metadata": {"labels": {"a": "1"}}, "spec": {"list": [1, 2, {"x": 1}], "gone": 1}}
    new = {"metadata": {"labels": {"a": "1", "l/k": "2"}}, "spec": {"list": [1, 2, {"x": 2}, 4]}}
    assert json_patch(old, new) == [
        {"op": "add", "path": "/metadata/labels/l~1k", "value": "2"},
        {"op": "remove", "path": "/spec/gone"},
        {"op": "replace", "path": "/spec/list/2/x", "value": 2},
        {"op": "add", "path": "/spec/list/-", "value": 4},
    ]


def test_items_before_a_list_are_added_there() -> None:
    old = [{"name": "a"}, {"name": "b"}]
    assert json_patch({"env": old}, {"env": [{"name": "x"}, {"name": "y"}, *copy.deepcopy(old)]}) == [
        {"op": "add", "path": "/env/0", "value": {"name": "x"}},
        {"op": "add", "path": "/env/1", "value": {"name": "y"}},
    ]
    assert json_patch([1, 2, 3, 4], [1, 4]) == [{"op": "remove", "path": "/2"}, {"op": "remove", "path": "/1"}]


def test_lists_meet_again_where_they_share_an_item() -> None:
    old = [{"name": str(i)} for i in range(50)]
    new = [{"name": "x"}, *old[:20], *old[21:], {"name": "y"}, {"name": "z"}]
    new[10] = {"name": "other"}
    assert json_patch(old, new) == [
        {"op": "add", "path": "/0", "value": {"name": "x"}},
        {"op": "replace", "path": "/10/name", "value": "other"},
        {"op": "remove", "path": "/21"},
        {"op": "add", "path": "/-", "value": {"name": "y"}},
        {"op": "add", "path": "/-", "value": {"name": "z"}},
    ]


def test_a_list_that_every_second_item_goes_from_is_replaced_whole() -> None:
    old = [{"name": str(i)} for i in range(1000)]
    assert json_patch(old, old[::2]) == [{"op": "replace", "path": "", "value": old[::2]}]
    assert len(json_patch(old[:50], old[:50:2])) == 25


def test_a_list_of_which_little_is_left_is_replaced_whole() -> None:
    old, new = [*range(10_000)], [5, 7]
    assert json_patch({"l": old}, {"l": new}) == [{"op": "replace", "path": "/l", "value": new}]


def test_parts_that_are_shared_are_not_looked_at() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert json_patch({"a": deep, "l": [deep]}, {"a": deep, "l": [1, deep]}) == [
        {"op": "add", "path": "/l/0", "value": 1}
    ]


def test_a_merge_patch_replaces_changed_lists_whole_and_nulls_what_was_removed() -> None:
    old = {"a": {"x": 1, "y": 2}, "l": [1, 2]}
    assert merge_patch(old, {"a": {"x": 1}, "l": [1]}) == {"a": {"y": None}, "l": [1]}


def test_true_is_not_one() -> None:
    assert not same(True, 1)
    assert same(1, 1.0)
    assert json_patch({"a": 1}, {"a": True}) == [{"op": "replace", "path": "/a", "value": True}]
