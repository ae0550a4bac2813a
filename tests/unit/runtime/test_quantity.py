"""Quantities: the canonical spelling, values, and what is none."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime import quantity

CANONICAL = {
    "0": "0",
    "0Gi": "0",
    "1": "1",
    "100": "100",
    "1000": "1k",
    "1000m": "1",
    "1500m": "1500m",
    "0.5": "500m",
    "1.5": "1500m",
    "10m": "10m",
    "1024Mi": "1Gi",
    "1025Mi": "1025Mi",
    "8Gi": "8Gi",
    "1.5Gi": "1536Mi",
    "0.5Ki": "512",
    "1.3Ki": "1331200m",
    "1048576": "1048576",
    "1e3": "1e3",
    "10e3": "10e3",
    "1E4": "10e3",
    "12e0": "12e0",
    "10e0": "10e0",
    "1000e0": "1e3",
    "0.001e3": "1",
    "2E": "2E",
    "1.984018E": "1.984018E",
    "1.5G": "1500M",
    "+5n": "+5n",
    "0.0000000001": "1n",
    "-0.0000000001": "-1n",
    "-1500m": "-1500m",
    "16Ei": "9223372036854775807",
    " 1 ": "1",
    "001": "001",
    "1.": "1.",
    ".5": "500m",
    "1001E": "1001E",
    "1000E": "1000E",
    "1000000E": "1000000E",
    "1" + "0" * 21: "1000E",
    "1e21": "1e21",
    "1e22": "10e21",
    "1.5e20": "150e18",
    "1e998": "100e996",
    "123456789012345678901": "123456789012345678901",
    "99999999999999999999000": "99999999999999999999k",
    "1000000000000000000000n": "1T",
    "1e-999": "1e-9",
    "-1e-999": "-1e-9",
    "0e999": "0",
    "9" * 255 + "E": "9" * 255 + "E",
    "-" + "1" * 250 + "Ei": "-9223372036854775807",
}


@pytest.mark.parametrize(("given_text", "canonical"), CANONICAL.items())
def test_canonical_spelling_is_what_an_api_server_prints(given_text: str, canonical: str) -> None:
    assert quantity.canonical(given_text) == canonical


@pytest.mark.parametrize(("number", "canonical"), [(1, "1"), (1.5, "1500m"), (2000, "2k"), (1e3, "1k"), (0, "0")])
def test_json_numbers_are_quantities(number: float, canonical: str) -> None:
    assert quantity.canonical(number) == canonical


NO_QUANTITIES = ["", "x", "1x", "1..2", "1 Gi", "1gi", "1Gi5", "e", "1e", "1e1000", "--1", "Ki1", "１"]
NO_QUANTITIES += ["1" * 257, "1" * 100_000, "1e999999999", "1e-2147483649", "1e" + "9" * 100_000, "0" * 1_000_000]


@pytest.mark.parametrize("text", NO_QUANTITIES)
def test_what_is_no_quantity_is_refused_with_the_allowed_form(text: str) -> None:
    with pytest.raises(quantity.QuantityError, match="is not a quantity: a number with an optional suffix"):
        quantity.canonical(text)


@pytest.mark.parametrize("value", [None, True, [], {}])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(quantity.QuantityError):
        quantity.parse(value)  # type: ignore[arg-type]


def test_long_texts_are_cut_in_messages() -> None:
    with pytest.raises(quantity.QuantityError) as caught:
        quantity.canonical("1" * 1_000_000)
    assert len(str(caught.value)) < 250


def test_values_of_the_greatest_and_the_finest() -> None:
    assert quantity.parse("1e998") == 10**998
    assert quantity.parse("1e-999") == Fraction(1, 10**9)
    assert quantity.parse("1" * 250 + "Ei") == 2**63 - 1
    assert quantity.equal("1000E", "1e21")


def test_value_and_equality() -> None:
    assert quantity.parse("1.5Gi") == Fraction(3 * 2**29)
    assert quantity.equal("1", "1000m")
    assert quantity.equal("1Gi", 1073741824)
    assert not quantity.equal("1G", "1Gi")


SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "e3", "e-3", "E2"]


@given(
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**12),
    st.one_of(st.none(), st.integers(0, 10**6)),
    st.sampled_from(SUFFIXES),
)
def test_canonical_keeps_the_value_and_is_stable(sign: str, whole: int, part: int | None, suffix: str) -> None:
    text = f"{sign}{whole}" + (f".{part}" if part is not None else "") + suffix
    once = quantity.canonical(text)
    assert quantity.equal(text, once)
    assert quantity.canonical(once) == once
