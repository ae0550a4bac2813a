"""The page of codes has every code and no other."""

from __future__ import annotations

import re
from pathlib import Path

from lwskit.doctor import findings

PAGE = (Path(__file__).parents[3] / "docs" / "doctor.md").read_text()


def test_every_code_is_explained() -> None:
    explained = re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)
    assert sorted(explained) == sorted(findings.CODES)


def test_the_order_of_the_report_has_every_code() -> None:
    codes = {v for k, v in vars(findings).items() if k.isupper() and isinstance(v, str)}
    assert codes == set(findings.CODES)
    assert len(findings.CODES) == len(codes)
