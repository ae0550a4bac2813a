"""Every code of a plan and every cause of an explanation is in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lwskit.groups.hold import Cause

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "lwskit"
CAUSES = (
    ("disaggregated/explain.py", r'State\.[A-Z]+,\s+"([a-z-]+)"'),
    ("groups/explain.py", r'State\.[A-Z]+,\s+"([a-z-]+)"'),
    ("groups/explain_hash.py", r'State\.[A-Z]+,\s+"([a-z-]+)"'),
    ("groups/grouptrouble.py", r'Trouble\("([a-z-]+)"'),
    ("groups/podtrouble.py", r'Trouble\("([a-z-]+)"'),
)


@pytest.mark.parametrize(("file", "pattern"), CAUSES, ids=[c[0] for c in CAUSES])
def test_causes(file: str, pattern: str) -> None:
    codes = set(re.findall(pattern, (SOURCE / file).read_text()))
    assert len(codes) >= 4
    page = (ROOT / "docs" / "explain.md").read_text()
    assert not [code for code in sorted(codes) if f"`{code}`" not in page]


def test_notices() -> None:
    codes = set(re.findall(r'Notice\("([a-z-]+)"', (SOURCE / "simulate/plan.py").read_text()))
    files = (
        "cli/planning.py",
        "cli/disaggregated_planning.py",
        "simulate/disaggregated_plan.py",
        "simulate/hashed_plan.py",
        "simulate/hashed_restart.py",
    )
    for file in files:
        codes |= set(re.findall(r'Notice\(\s*"([a-z-]+)"', (SOURCE / file).read_text()))
    ends = set(
        re.findall(r'^[A-Z_]+: Final = "([a-z-]+)"', (SOURCE / "simulate/disaggregated_report.py").read_text(), re.M)
    )
    assert len(ends) >= 5
    codes |= ends
    codes |= {f"held-{cause.value}" for cause in Cause}
    pages = (ROOT / "docs" / "rollouts.md").read_text() + (ROOT / "docs" / "plan.md").read_text()
    unexplained = {"no-workload"}
    assert not [code for code in sorted(codes - unexplained) if f"`{code}`" not in pages]
