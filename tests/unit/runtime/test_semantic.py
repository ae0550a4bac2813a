"""When two objects mean the same (specification: 70 §12)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime.semantic import semantic_equal

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["spec", "labels", "x", "y"]), inner),
    max_leaves=8,
)

SAME = [
    ({"spec": {"x": None}}, {"spec": {}}),
    ({"spec": {"x": []}}, {}),
    ({"metadata": {"labels": {}, "annotations": None}}, {"metadata": {}}),
    ({"resources": {"limits": {"cpu": "1000m"}}}, {"resources": {"limits": {"cpu": "1"}}}),
    ({"limits": {"memory": 1024}}, {"limits": {"memory": "1Ki"}}),
    ({"sizeLimit": "0.5"}, {"sizeLimit": "500m"}),
    ({"renewTime": "2026-01-01T00:00:00.000000Z"}, {"renewTime": "2026-01-01T01:00:00+01:00"}),
    ({"a": 1}, {"a": 1.0}),
]
DIFFERENT = [
    ({"volumes": [{"emptyDir": {}}]}, {"volumes": [{}]}),
    ({"podSelector": {}}, {}),
    ({"subresources": {"status": {}}}, {"subresources": {}}),
    ({"data": {"cpu": "1000m"}}, {"data": {"cpu": "1"}}),
    ({"image": "1000m"}, {"image": "1"}),
    ({"annotations": {"x/At": "2026-01-01T00:00:00Z"}}, {"annotations": {"x/At": "2026-01-01T00:00:00.0Z"}}),
    ({"startTime": "2026-01-01T00:00:00Z"}, {"startTime": "2026-01-01T00:00:01Z"}),
    ({"startTime": "2026-13-01T00:00:00Z"}, {"startTime": "2026-13-01T00:00:00.0Z"}),
    ({"limits": {"cpu": "much"}}, {"limits": {"cpu": "many"}}),
    ({"a": True}, {"a": 1}),
    ({"a": ["x", "y"]}, {"a": ["y", "x"]}),
    ({"a": ""}, {}),
    ({"a": 0}, {}),
    ({"a": "0"}, {"a": 0}),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_in_another_spelling(a: Any, b: Any) -> None:
    assert semantic_equal(a, b)
    assert semantic_equal(b, a)


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_what_looks_alike_and_is_not(a: Any, b: Any) -> None:
    assert not semantic_equal(a, b)
    assert not semantic_equal(b, a)


@given(JSON, JSON)
def test_it_is_an_equality(a: Any, b: Any) -> None:
    assert semantic_equal(a, a)
    assert semantic_equal(a, b) == semantic_equal(b, a)
