"""Field selectors, as text and as conditions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime.cache.fields import Term, exact_value, join, matches, parse
from lwskit.runtime.errors import InvalidRequest
from lwskit.testing.scripted import pod


def test_reading() -> None:
    assert parse("spec.nodeName=n, status.phase != Failed,metadata.name==a,") == (
        Term("spec.nodeName", "n"),
        Term("status.phase", "Failed", exact=False),
        Term("metadata.name", "a"),
    )
    assert parse("") == parse(None) == ()
    assert parse("spec.x=") == (Term("spec.x", ""),)
    assert parse(r"a=x\,y\=\\z") == (Term("a", r"x,y=\z"),)


@pytest.mark.parametrize("text", ["name", "a=b=c", "a=b\\x", "a=b\\", "in (a)"])
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="invalid field selector"):
        parse(text)


VALUES = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")))


@given(st.lists(st.builds(Term, st.sampled_from(["metadata.name", "spec.x"]), VALUES, st.booleans())))
def test_what_is_written_is_read_again(terms: list[Term]) -> None:
    assert list(parse(join(terms))) == terms


def test_the_only_value_of_a_field() -> None:
    terms = parse("metadata.namespace!=a,spec.x=1,metadata.namespace=b")
    assert exact_value(terms, "metadata.namespace") == "b"
    assert exact_value(terms[:1], "metadata.namespace") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("metadata.name=a", True),
        ("metadata.name!=a", False),
        ("metadata.namespace!=u,metadata.name=a", True),
        ("metadata.namespace=u", False),
        ("spec.nodeName=n", None),
        ("spec.nodeName=n,metadata.name=b", False),
        ("spec.nodeName=n,metadata.name=a", None),
    ],
)
def test_what_can_be_told_without_the_server(text: str, expected: bool | None) -> None:
    assert matches(parse(text), pod("a", 1, namespace="t")) is expected
