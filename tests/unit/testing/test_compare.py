import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.testing.compare import assert_equal_objects, differences, parse_path

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_generated_metadata_is_left_out():
    live = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "7", "managedFields": [{}], "generation": 2}}
    assert_equal_objects(live, {"metadata": {"name": "a"}})
    with pytest.raises(AssertionError, match=r"metadata\.uid: got '1', want nothing"):
        assert_equal_objects(live, {"metadata": {"name": "a"}}, generated=True)


def test_every_difference_is_named():
    got = {"spec": {"replicas": 1, "containers": [{"image": "a"}]}, "metadata": {"labels": {"x.y/z": "1"}}}
    want = {"spec": {"replicas": 2, "containers": [{"image": "b"}, {"image": "c"}]}, "metadata": {}}
    assert differences(got, want) == [
        "metadata.labels['x.y/z']: got '1', want nothing",
        "spec.containers[0].image: got 'a', want 'b'",
        "spec.containers[1].image: got nothing, want 'c'",
        "spec.replicas: got 1, want 2",
    ]


def test_ignore_and_match_take_what_is_below():
    got = {"a": {"b": [{"c": 1, "d": 1}], "e": 1}}
    want = {"a": {"b": [{"c": 2, "d": 2}], "e": 2}}
    assert differences(got, want, ignore=["a.b"]) == ["a.e: got 1, want 2"]
    assert differences(got, want, match=["a.b[*].d"]) == ["a.b[0].d: got 1, want 2"]
    assert differences(got, want, match=["a"], ignore=["a.b[0]", "a.e"]) == []


def test_true_is_not_one():
    assert differences({"a": True}, {"a": 1}) == ["a: got True, want 1"]


def test_paths():
    assert parse_path("metadata.labels['a.b/c']") == ("metadata", "labels", "a.b/c")
    assert parse_path("spec.containers[0].image") == ("spec", "containers", "0", "image")
    for bad in ("", "a..b", "a[", "a['x]"):
        with pytest.raises(ValueError, match="is not a path"):
            parse_path(bad)


@given(json)
def test_a_value_equals_itself(value):
    assert differences(value, value) == []


@given(json, json)
def test_differing_values_have_a_difference(a, b):
    if a != b:
        assert differences({"v": a}, {"v": b})
