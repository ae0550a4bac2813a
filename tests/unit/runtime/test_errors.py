"""Errors from Status bodies, whatever these hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime.errors import (
    ApiError,
    Conflict,
    Expired,
    Invalid,
    NotFound,
    ServerTimeout,
    error_from_status,
    is_too_large_version,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ("code", "reason", "message", "details")
DETAILS = ("causes", "retryAfterSeconds", "name")


def test_the_reason_counts_before_the_code() -> None:
    assert type(error_from_status({"reason": "NotFound", "code": 409})) is NotFound
    assert type(error_from_status({"reason": "Gone"}, 410)) is Expired
    assert type(error_from_status({"reason": "Unheard of", "code": 409})) is Conflict


@pytest.mark.parametrize(
    ("status", "code", "kind", "expected"),
    [
        ({"code": "abc", "message": "m"}, 409, Conflict, (409, "Conflict", "m", {}, None)),
        ({"code": [1], "message": {"a": 1}}, 422, Invalid, (422, "Invalid", "the server answered 422", {}, None)),
        ({"reason": ["a"], "details": "d"}, 404, NotFound, (404, "NotFound", "the server answered 404", {}, None)),
        ({"code": 200, "status": "Failure"}, 404, NotFound, (404, "NotFound", "the server answered 404", {}, None)),
        ({"code": -1}, None, ApiError, (500, "InternalError", "the server answered 500", {}, None)),
        (["x"], 504, ServerTimeout, (504, "Timeout", "the server answered 504", {}, None)),
    ],
)
def test_fields_of_another_type_are_taken_as_absent(status: Any, code: int, kind: type, expected: Any) -> None:
    error = error_from_status(status, code)
    assert isinstance(error, kind)
    found = (error.code, error.reason, error.message.removesuffix(" without a message"), error.details)
    assert (*found, error.retry_after) == expected


def test_causes_that_are_no_objects_are_left_out() -> None:
    good = {"reason": "ResourceVersionTooLarge", "message": 5}
    assert error_from_status({"details": {"causes": ["x", good]}}).details == {"causes": [good]}
    assert error_from_status({"details": {"causes": "x"}}).details == {"causes": []}
    assert is_too_large_version(error_from_status({"details": {"causes": ["x", good]}}, 504))
    assert not is_too_large_version(error_from_status({"details": {"causes": [{"message": 5}]}}, 504))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (3, 3.0),
        ("3", 3.0),
        (0, None),
        ("x", None),
        (-1, None),
        ("nan", None),
        ("inf", None),
        ("9" * 400, None),
        (10**400, None),
        (True, None),
        ([1], None),
    ],
)
def test_only_a_finite_time_is_one_to_wait_for(given: Any, expected: float | None) -> None:
    assert error_from_status({"details": {"retryAfterSeconds": given}}, 429).retry_after == expected


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES | st.dictionaries(st.sampled_from(DETAILS), VALUES)) | VALUES)
def test_any_body_is_an_error_with_a_text(status: Any) -> None:
    error = error_from_status(status, 409)
    assert str(error)
    assert isinstance(error.code, int)
    is_too_large_version(error)
