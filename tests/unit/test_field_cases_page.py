"""The page of field cases: each row names a test that is there and says which case it is."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (F\d+) \|.*\| `([\w/.]+)::(\w+)` \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "field-cases.md").read_text())


@pytest.mark.parametrize(("case", "file", "test"), ROWS, ids=[row[0] for row in ROWS])
def test_the_test_of_a_case_names_it(case: str, file: str, test: str) -> None:
    path = ROOT / "tests" / (file if file.startswith(("scenarios/", "real/", "unit/")) else f"unit/{file}")
    functions = {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert functions[test].startswith(f"{case}: ")


def test_there_are_rows() -> None:
    assert len(ROWS) >= 12
