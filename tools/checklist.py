"""Which test answers which line of a checklist of the specification.

A test names its line at the beginning of its docstring: `70 §17 Queue 3: what is tested, in our own words.`
Lines of the lists under `[shared]` may have several tests, and a test may answer several of them: their docstrings
begin with `20 §14 lines 44, 45: …`, or their names with the line, `test_58_…`, in the folders that the table gives.

python -m tools.checklist            print the table and how many lines have no test
python -m tools.checklist --write    write docs/checklists.md
python -m tools.checklist --check    compare docs/checklists.md, and fail for lines named twice or not known
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tools" / "checklists.toml"
PAGE = ROOT / "docs" / "checklists.md"
SHARED = re.compile(
    r"(?P<list>\d\d §(?:1[48]|23)) lines? (?P<numbers>\d+(?:(?:, | and )\d+)*)(?: and \d\d §\S+)?[,:] ?(?P<text>.+)"
)
NUMBERED = re.compile(r"test_(?P<number>\d+)_(?P<text>\w+)")
NAMED = re.compile(r"(?P<list>\d\d §[\d.]+)(?: line| (?P<section>\D+?))? (?P<number>\d+): (?P<text>.+)")
LANES = {"unit": "unit", "scenarios": "scenarios, real"}


class Line(NamedTuple):
    """One line of a checklist, for example `70 §17`, `Queue`, 3."""

    checklist: str
    section: str
    number: int

    def __str__(self) -> str:
        return " ".join(part for part in (self.checklist, self.section, str(self.number)) if part)


class Answer(NamedTuple):
    """A test that names a line: where it is, what it says of itself and the lanes that run it."""

    test: str
    text: str
    lane: str


def read_docstring(docstring: str | None) -> tuple[Line, str] | None:
    """The line that a docstring names and what it says of it; None when it names none."""
    first = " ".join((docstring or "").split("\n\n")[0].split())
    found = NAMED.fullmatch(first)
    if found is None:
        return None
    return Line(found["list"], found["section"] or "", int(found["number"])), found["text"]


def named_tests(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, str | None]]:
    """The names of a module's tests, with their class in front, and their docstrings."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from named_tests(node, f"{prefix}{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield prefix + node.name, ast.get_docstring(node)


def collect(folder: Path) -> dict[Line, list[Answer]]:
    """Every line that a test under a folder names."""
    found: dict[Line, list[Answer]] = defaultdict(list)
    for file in sorted(folder.rglob("test_*.py")):
        where = file.relative_to(folder)
        lane = LANES.get(where.parts[0], where.parts[0])
        for name, docstring in named_tests(ast.parse(file.read_text())):
            named = read_docstring(docstring)
            if named is not None:
                found[named[0]].append(Answer(f"{folder.name}/{where}::{name}", named[1], lane))
    return found


def collect_shared(root: Path, folders: Mapping[str, str]) -> dict[Line, list[Answer]]:
    """Every line of a shared list that a test under `root` names, in its docstring or by a number in its own name."""
    found: dict[Line, list[Answer]] = defaultdict(list)
    for file in sorted(root.rglob("test_*.py")):
        where = file.relative_to(root)
        lane = LANES.get(where.parts[0], where.parts[0])
        numbered = next((name for folder, name in folders.items() if where.as_posix().startswith(folder)), "")
        for name, docstring in named_tests(ast.parse(file.read_text())):
            test = f"{root.name}/{where}::{name}"
            by_text = SHARED.match(" ".join((docstring or "").split()))
            by_name = NUMBERED.match(name.rpartition("::")[2])
            if by_text is not None:
                for number in re.findall(r"\d+", by_text["numbers"]):
                    found[Line(by_text["list"], "", int(number))].append(Answer(test, by_text["text"], lane))
            elif numbered and by_name is not None:
                text = by_name["text"].replace("_", " ")
                found[Line(numbered, "", int(by_name["number"]))].append(Answer(test, text, lane))
    return found


def read_shared(text: str) -> tuple[list[Line], dict[Line, str], dict[str, str]]:
    """The lines of shared lists, the reasons of those without a test, and the folders of numbered names."""
    data = tomllib.loads(text).get("shared", {})
    lines = [Line(name, "", n) for name, count in data.get("lines", {}).items() for n in range(1, count + 1)]
    reasons: dict[Line, str] = {}
    for name, groups in data.get("reasons", {}).items():
        for reason, spans in groups.items():
            for first, last in spans:
                reasons |= {Line(name, "", n): reason for n in range(first, last + 1)}
    return lines, reasons, data.get("folders", {})


def render_shared(lines: Iterable[Line], answers: Mapping[Line, list[Answer]], reasons: Mapping[Line, str]) -> str:
    """The part of the page about shared lists."""
    page: list[str] = []
    checklist = ""
    for line in lines:
        if line.checklist != checklist:
            checklist = line.checklist
            page += ["", f"## {checklist}", "", "| line | tests | lanes |", "|---|---|---|"]
        claims = answers.get(line, [])
        if claims:
            tests = "<br>".join(f"`{a.test}`" for a in claims)
            page.append(f"| {line.number} | {tests} | {', '.join(dict.fromkeys(a.lane for a in claims))} |")
        else:
            page.append(f"| {line.number} | {reasons.get(line, '**no test yet**')} | |")
    return "\n".join(page) + "\n"


def read_table(text: str) -> tuple[list[Line], dict[Line, str]]:
    """The lines that there are, in order, and the reasons of those that need no test."""
    data = tomllib.loads(text)
    lines = [
        Line(checklist, section, number)
        for checklist, sections in data["lines"].items()
        for section, count in sections.items()
        for number in range(1, count + 1)
    ]
    by_name = {str(line): line for line in lines}
    return lines, {by_name[name]: reason for name, reason in data.get("reasons", {}).items()}


def faults(lines: Iterable[Line], answers: Mapping[Line, list[Answer]], reasons: Mapping[Line, str]) -> list[str]:
    """What is wrong with the names in docstrings: a line that does not exist, or that two tests claim.

    Checklists that the table does not have are left alone.
    """
    known = set(lines)
    checklists = {line.checklist for line in known}
    found = []
    for line, claims in sorted(answers.items()):
        tests = ", ".join(answer.test for answer in claims)
        if line.checklist not in checklists:
            continue
        if line not in known:
            found.append(f"{line} is not a line of a checklist in {TABLE.name}: {tests}")
        elif len(claims) > 1:
            found.append(f"{line} is named by {len(claims)} tests, but one is to answer it: {tests}")
        elif line in reasons:
            found.append(f"{line} has a reason for having no test, and a test: {tests}")
    return found


def render(lines: Iterable[Line], answers: Mapping[Line, list[Answer]], reasons: Mapping[Line, str]) -> str:
    """The page: a table for each section."""
    lines = list(lines)
    missing = [line for line in lines if line not in answers]
    unexplained = [line for line in missing if line not in reasons]
    page = [
        "# Checklists",
        "",
        "Each line of a checklist of the specification is answered by one test, which names it in its docstring. "
        "Lines are counted within their",
        "section. Generated by `python -m tools.checklist --write`; do not edit.",
        "",
        f"Lines: {len(lines)}. Without a test: {len(missing)}, of which {len(unexplained)} have no reason below.",
    ]
    section = None
    for line in lines:
        if section != line[:2]:
            section = line[:2]
            title = f"{line.checklist} {line.section}".strip()
            page += ["", f"## {title}", "", "| line | what is tested | test | lane |", "|---|---|---|---|"]
        claims = answers.get(line)
        if claims:
            page += [f"| {line.number} | {a.text.rstrip('.')} | `{a.test}` | {a.lane} |" for a in claims]
        else:
            page.append(f"| {line.number} | {reasons.get(line, '**no test yet**')} | | |")
    return "\n".join(page) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Print, write or check. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.checklist", description="Lines of checklists and tests.")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    choice.add_argument("--check", action="store_true", help="fail unless the page is current and the names are right")
    options = parser.parse_args(arguments)
    lines, reasons = read_table(TABLE.read_text())
    answers = collect(ROOT / "tests")
    shared, excuses, folders = read_shared(TABLE.read_text())
    several = collect_shared(ROOT / "tests", folders)
    page = render(lines, answers, reasons) + render_shared(shared, several, excuses)
    wrong = faults(lines, answers, reasons)
    wrong += [f"{line} is not a line of a checklist in {TABLE.name}" for line in sorted(set(several) - set(shared))]
    if options.write:
        PAGE.write_text(page)
    elif options.check:
        if not PAGE.is_file() or PAGE.read_text() != page:
            wrong.append(f"{PAGE.relative_to(ROOT)} is not current: run python -m tools.checklist --write")
    else:
        print(page, end="")
    for fault in wrong:
        print(fault, file=sys.stderr)
    missing = [line for line in lines if line not in answers]
    open_lines = [str(line) for line in shared if line not in several and line not in excuses]
    if open_lines:
        print(f"without a test or a reason: {', '.join(open_lines)}", file=sys.stderr)
    print(f"{len(lines) - len(missing)} of {len(lines)} lines have a test; without: {len(missing)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
