"""Patches are right when applying them gives the new object."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime.patch import json_patch, merge_patch, same

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "1", "true"])
keys = st.sampled_from(["a", "b", "a/b", "m~n", "", "0"])
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner), max_leaves=12)
objects = st.dictionaries(keys, values, max_size=5)


def apply_json_patch(document: Any, patch: list[dict[str, Any]]) -> Any:
    """RFC 6902 as far as add, remove and replace go."""
    root = {"": copy.deepcopy(document)}
    for operation in patch:
        steps = [s.replace("~1", "/").replace("~0", "~") for s in operation["path"].split("/")]
        parent: Any = root
        for step in steps[:-1]:
            parent = parent[int(step)] if isinstance(parent, list) else parent[step]
        last: Any = steps[-1]
        if isinstance(parent, list):
            last = len(parent) if last == "-" else int(last)
            assert last <= len(parent)
        match operation["op"]:
            case "remove":
                del parent[last]
            case "add" if isinstance(parent, list):
                parent.insert(last, operation["value"])
            case "add":
                parent[last] = operation["value"]
            case "replace":
                assert isinstance(parent, list) or last in parent
                parent[last] = operation["value"]
            case other:
                raise AssertionError(other)
    return root[""]


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


@given(values, values)
def test_a_json_patch_turns_the_old_value_into_the_new_one(old: Any, new: Any) -> None:
    before = copy.deepcopy(old)
    patch = json_patch(old, new)
    assert same(apply_json_patch(old, patch), new)
    assert same(old, before)
    assert (patch == []) == same(old, new)


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


def test_a_merge_patch_replaces_changed_lists_whole_and_nulls_what_was_removed() -> None:
    old = {"a": {"x": 1, "y": 2}, "l": [1, 2]}
    assert merge_patch(old, {"a": {"x": 1}, "l": [1]}) == {"a": {"y": None}, "l": [1]}


def test_true_is_not_one() -> None:
    assert not same(True, 1)
    assert same(1, 1.0)
    assert json_patch({"a": 1}, {"a": True}) == [{"op": "replace", "path": "/a", "value": True}]
