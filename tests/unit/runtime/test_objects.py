"""Label selectors as objects carry them."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.objects import Selector


def test_expressions_of_an_object_are_taken() -> None:
    expressions = [
        {"key": "a", "operator": "In", "values": ["1", "2"]},
        {"key": "b", "operator": "NotIn", "values": ["3"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist"},
    ]
    selector = Selector.from_object({"matchLabels": {"x": "y"}, "matchExpressions": expressions})
    assert str(selector) == "x=y,a in (1,2),b!=3,c,!d"
    assert selector.matches({"x": "y", "a": "2", "c": ""})
    assert not selector.matches({"x": "y", "a": "2", "c": "", "d": ""})


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "a", "operator": "Foo", "values": ["b"]},
        {"key": "a"},
        {"operator": "Exists"},
        {"key": "a", "operator": "in"},
    ],
)
def test_an_expression_that_says_nothing_is_refused(expression: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="it needs a key, and In, NotIn, Exists or DoesNotExist"):
        Selector.from_object({"matchExpressions": [expression]})
