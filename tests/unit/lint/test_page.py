"""The page of codes: every code has its part, and its examples show what they should."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lwskit.lint.check import Source, lint
from lwskit.lint.findings import CODES
from tests.unit.lint.support import NAME, codes, disaggregated, gated, lws

PAGE = (Path(__file__).parents[3] / "docs" / "lint.md").read_text()
PARTS = {found[1]: found for found in re.finditer(r"^### (LWS\d{3}) (\S+)\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)}
EXAMPLE = re.compile(r"^```yaml\n(.*?)^```$", re.M | re.S)
WITHOUT = {"LWS001", "LWS004", "LWS011", "LWS013", "LWS015", "LWS602", "LWS702"}
"""Codes of what is no fragment of one set, or not with every manager."""


def merged(base: Any, more: Any) -> Any:
    """A set with the fields of an example in place of its own."""
    if isinstance(base, dict) and isinstance(more, dict):
        return base | {key: merged(base.get(key), value) for key, value in more.items()}
    return more


def with_example(text: str) -> str:
    more = yaml.safe_load(text)
    base = disaggregated() if "roles" in more.get("spec", {}) else lws()
    return yaml.safe_dump(merged(yaml.safe_load(base), more), sort_keys=False)


def test_every_code_has_its_part_and_no_other() -> None:
    assert list(PARTS) == sorted(CODES)
    assert {code: found[2] for code, found in PARTS.items()} == {code: found.name for code, found in CODES.items()}


@pytest.mark.parametrize("code", sorted(set(CODES) - WITHOUT))
def test_examples_show_what_they_should(code: str) -> None:
    new, *old = map(with_example, EXAMPLE.findall(PARTS[code][3]))
    assert ("LWS501" <= code < "LWS601") is bool(old)
    assert code in codes(new, *old)
    # What there was before was fine.
    assert all(codes(before) == [] for before in old)


def test_an_example_shows_nothing_else() -> None:
    also = {
        "LWS101": {"LWS101"},
        "LWS412": {"LWS412"},
    }
    for code in sorted(set(CODES) - WITHOUT):
        found = set(codes(*map(with_example, EXAMPLE.findall(PARTS[code][3]))))
        assert found == also.get(code, {code})


def test_the_example_for_a_manager_with_the_gate() -> None:
    (example,) = map(with_example, EXAMPLE.findall(PARTS["LWS602"][3]))
    found = lint([Source(NAME, example)], gated(), {}, "default").findings
    assert [f.fault.code.code for f in found] == ["LWS602"]
