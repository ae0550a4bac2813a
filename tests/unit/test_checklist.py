"""How docstrings of tests are matched with the lines of checklists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools import checklist
from tools.checklist import Answer, Line

TABLE = """
[lines."70 §17"]
"Health, metrics" = 2
Queue = 1
[lines."30 §18"]
"" = 2
[reasons]
"70 §17 Health, metrics 2" = "Not ours."
"""


@pytest.mark.parametrize(
    ("docstring", "line"),
    [
        ("70 §17 Queue 3: given out once.", Line("70 §17", "Queue", 3)),
        (
            "70 §17 Health, metrics, events 8: nobody\n    waits.\n\n    More.",
            Line("70 §17", "Health, metrics, events", 8),
        ),
        ("30 §18 4: refused.", Line("30 §18", "", 4)),
        ("20 §14 line 12: refused.", Line("20 §14", "", 12)),
        ("A test of 70 §17 Queue 3: no.", None),
        ("70 §17 Queue: no number.", None),
        (None, None),
    ],
)
def test_a_docstring_names_a_line_at_its_beginning(docstring: str | None, line: Line | None) -> None:
    found = checklist.read_docstring(docstring)
    assert (found[0] if found else None) == line


def test_tests_are_found_in_modules_and_classes() -> None:
    source = 'def test_a():\n "x"\nclass TestB:\n async def test_c(self):\n  "y"\ndef helper():\n "z"\n'
    assert list(checklist.named_tests(ast.parse(source))) == [("test_a", "x"), ("TestB::test_c", "y")]


def test_tests_of_a_folder_carry_their_place_and_lane(tmp_path: Path) -> None:
    for lane in ("unit", "scenarios"):
        (tmp_path / "tests" / lane).mkdir(parents=True)
        (tmp_path / "tests" / lane / "test_x.py").write_text(f'def test_{lane}():\n "70 §17 Queue 1: {lane}"\n')
    found = checklist.collect(tmp_path / "tests")
    assert found == {
        Line("70 §17", "Queue", 1): [
            Answer("tests/scenarios/test_x.py::test_scenarios", "scenarios", "scenarios, real"),
            Answer("tests/unit/test_x.py::test_unit", "unit", "unit"),
        ]
    }


def test_what_is_named_twice_unknown_or_excused_is_a_fault() -> None:
    lines, reasons = checklist.read_table(TABLE)
    one = Answer("t.py::test", "x", "unit")
    answers = {Line("70 §17", "Queue", 1): [one, one], Line("70 §17", "Queue", 2): [one], lines[1]: [one]}
    answers[Line("20 §14", "", 1)] = [one, one]
    assert [fault.split(":")[0] for fault in checklist.faults(lines, answers, reasons)] == [
        "70 §17 Health, metrics 2 has a reason for having no test, and a test",
        "70 §17 Queue 1 is named by 2 tests, but one is to answer it",
        "70 §17 Queue 2 is not a line of a checklist in checklists.toml",
    ]


def test_the_page_has_every_line_and_counts_those_without_a_test() -> None:
    lines, reasons = checklist.read_table(TABLE)
    page = checklist.render(lines, {lines[0]: [Answer("t.py::test", "It works.", "unit")]}, reasons)
    assert "Lines: 5. Without a test: 4, of which 3 have no reason below." in page
    assert "| 1 | It works | `t.py::test` | unit |" in page
    assert "| 2 | Not ours. | | |" in page
    assert page.count("**no test yet**") == 3
    assert "\n## 30 §18\n" in page


def test_the_docstrings_of_this_project_name_lines_that_exist_and_none_twice() -> None:
    lines, reasons = checklist.read_table(checklist.TABLE.read_text())
    assert checklist.faults(lines, checklist.collect(checklist.ROOT / "tests"), reasons) == []
