"""JSON, merge and strategic merge patches as functions."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lwskit.embedded import patch, strategic
from lwskit.runtime.errors import ApiError
from lwskit.runtime.patch import json_patch, merge_patch, same
from lwskit.runtime.typed import load_resource

TYPES = load_resource("lwskit.embedded", "builtin-types.json")
leaves = st.one_of(st.booleans(), st.integers(-3, 3), st.text("ab~/", max_size=3))
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3)
)
objects = st.dictionaries(st.text("ab~/", max_size=2), values, max_size=4)


@settings(max_examples=40)
@given(objects, objects)
def test_a_json_patch_does_what_it_was_made_for(old: dict, new: dict):
    assert same(patch.json_patch(copy.deepcopy(old), json_patch(old, new)), new)


@settings(max_examples=40)
@given(objects, objects)
def test_a_merge_patch_does_what_it_was_made_for(old: dict, new: dict):
    assert same(patch.merge(old, merge_patch(old, new)), new)


def test_json_patch_operations():
    document = {"a": [1, 2], "b": {"c/d": 1}}
    operations = [
        {"op": "test", "path": "/a/0", "value": 1},
        {"op": "add", "path": "/a/-", "value": 3},
        {"op": "remove", "path": "/a/0"},
        {"op": "move", "from": "/b/c~1d", "path": "/e"},
        {"op": "copy", "from": "/a", "path": "/f"},
        {"op": "replace", "path": "/a/1", "value": {"x": 1}},
    ]
    assert patch.json_patch(document, operations) == {"a": [2, {"x": 1}], "b": {}, "e": 1, "f": [2, 3]}


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "remove", "path": "/x"}],
        [{"op": "replace", "path": "/l/0", "value": 1}],
        [{"op": "replace", "path": "", "value": 1}],
        [{"op": "add", "path": "/x/y", "value": 1}],
        [{"op": "add", "path": "/l/x", "value": 1}],
        [{"op": "move", "from": "/x", "path": "/y"}],
        [{"op": "copy", "from": "/x/y", "path": "/y"}],
        [{"op": 1, "path": "/a"}],
        ["add"],
        [{"op": "test", "path": "/a", "value": 2}],
        [{"op": "add", "path": "/l/7", "value": 1}],
        {"op": "add"},
        [{"path": "/a"}],
    ],
)
def test_json_patches_that_do_not_fit(operations):
    with pytest.raises(patch.PatchError):
        patch.json_patch({"a": 1, "l": []}, operations)


def test_json_patches_of_fields_that_are_not_there():
    document = {"a": 1, "l": [1, 2]}
    operations = [
        {"op": "replace", "path": "/x", "value": 1},
        {"op": "copy", "from": "/y", "path": "/z"},
        {"op": "test", "path": "/nope", "value": None},
        {"op": "replace", "path": "/l/-1", "value": 3},
        {"op": "add", "path": "/l/-", "value": 4},
    ]
    assert patch.json_patch(document, operations) == {"a": 1, "l": [1, 3, 4], "x": 1, "z": None}


def containers(*names: str, **more) -> dict:
    return {"spec": {"containers": [{"name": n} for n in names], **more}}


def patched(document: dict, change: dict) -> dict:
    return strategic.merge(document, change, TYPES, "core.v1.Pod")


def test_strategic_lists_merge_by_key():
    change = {"spec": {"containers": [{"name": "b", "image": "i"}, {"name": "n"}, {"name": "a", "$patch": "delete"}]}}
    assert patched(containers("a", "b"), change)["spec"]["containers"] == [{"name": "b", "image": "i"}, {"name": "n"}]


def test_strategic_directives():
    order = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}
    assert patched(containers("a", "x", "b"), order) == containers("x", "b", "a")
    replaced = {"spec": {"containers": [{"$patch": "replace"}, {"name": "only"}]}}
    assert patched(containers("a", "b"), replaced) == containers("only")
    finalizers = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert patched({"metadata": {"finalizers": ["a", "b"]}}, finalizers) == {"metadata": {"finalizers": ["b"]}}
    volume = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}}
    before = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    assert patched(before, volume) == {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}


def test_strategic_patches_that_cannot_be_followed():
    for change in ({"spec": {"containers": [{"image": "i"}]}}, {"spec": {"$patch": "x"}}):
        with pytest.raises(ApiError):
            patched(containers("a"), change)


def test_plain_lists_are_replaced():
    assert patched({"spec": {"tolerations": [1, 2]}}, {"spec": {"tolerations": [3]}}) == {"spec": {"tolerations": [3]}}
