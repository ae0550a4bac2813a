"""The recorded cases are evidence: nobody edits them, and nothing is added to them unnoticed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tools.lanes import LAST, listed_cases

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "conformance"


def recorded() -> dict[str, str]:
    """The checksums as committed, by path within the folder."""
    lines = (FOLDER / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}


def present() -> dict[str, str]:
    """The checksums of the files that are there now."""
    files = (p for p in FOLDER.rglob("*") if p.is_file() and p.name != "SHA256SUMS" and "__pycache__" not in p.parts)
    return {p.relative_to(FOLDER).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_nothing_was_edited_added_or_removed() -> None:
    assert present() == recorded()


def test_every_case_has_its_recording() -> None:
    names = recorded()
    cases = {name.removeprefix("cases/").removesuffix(".yaml") for name in names if name.startswith("cases/")}
    golden = {name.removeprefix("golden/").removesuffix(".json") for name in names if name.startswith("golden/")}
    assert cases == golden
    assert len(cases) > 30


def test_the_compared_cases_exist() -> None:
    lines = (ROOT / "conformance-cases.txt").read_text().splitlines()
    listed = [line.split() for line in lines if line and not line.startswith("#")]
    names = [name for name, *_ in listed]
    assert names
    assert len(names) == len(set(names))
    assert all((FOLDER / "cases" / f"{name}.yaml").is_file() for name in names)
    assert all(marks in ([], [LAST]) for _, *marks in listed)


def test_of_disaggregated_sets_the_ends_are_compared() -> None:
    """What they pass through was recorded from another planner."""
    ends = {name for name, only_end in listed_cases().items() if only_end}
    assert ends == {name for name in listed_cases() if name.startswith("ds-")}
