"""Texts of errors, and that they are no longer than anybody reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api.validation.errors import ErrorKind, FieldError, aggregate, invalid, shown

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_a_value_is_shown_as_json(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert shown(value) == (text if len(text) <= 1024 else f"{text[:1024]}…")


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value, {"a": value}]
    return value


@pytest.mark.parametrize("value", ["x" * 3000, ["x" * 3000], {"x" * 3000: 1}, [[]] * 3000, deep(900), {"a": deep(20)}])
def test_a_large_value_is_cut(value: Any) -> None:
    text = shown(value)
    assert len(text) == 1025
    assert text.endswith("…")


def test_errors_are_told_once_and_a_hundred_of_them() -> None:
    assert aggregate([]) == ""
    assert aggregate([invalid("a", 1, "bad"), invalid("a", 1, "bad")]) == "a: Invalid value: 1: bad"
    assert aggregate([FieldError("a", ErrorKind.REQUIRED, ""), invalid("b", "x", "bad")]) == (
        '[a: Required value, b: Invalid value: "x": bad]'
    )
    many = [invalid(f"a{i}", i, "bad") for i in range(100)]
    assert aggregate([*many, many[0]]).endswith(", a99: Invalid value: 99: bad]")
    assert aggregate(many + [invalid("b", 1, "bad")] * 900).endswith(", a99: Invalid value: 99: bad, and more]")
