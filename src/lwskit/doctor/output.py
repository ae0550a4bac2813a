"""Reports of the doctor for people and programs. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from lwskit.api import disaggregated_names, names
from lwskit.doctor.check import Report
from lwskit.doctor.findings import Finding


def text(report: Report) -> Iterator[str]:
    """A line for each finding, and how much was looked at."""
    for finding in report.findings:
        yield f"{' '.join(finding.sentence.splitlines())} [{finding.code}]"
    for sentence in report.unread:
        yield f"not looked at: {sentence}"
    yield summary(report)


def as_json(report: Report) -> Iterator[str]:
    """One JSON object: `findings` and `summary`."""
    counted = {
        "disaggregatedSets": report.disaggregated,
        "leaderWorkerSets": report.sets,
        "findings": len(report.findings),
        "notLookedAt": list(report.unread),
    }
    document = {"findings": [_as_data(finding) for finding in report.findings], "summary": counted}
    yield json.dumps(document, indent=2, ensure_ascii=False)


OUTPUTS = {"text": text, "json": as_json}
"""The forms of a report by their names."""


def summary(report: Report) -> str:
    """How much was looked at and found, in one line."""
    looked = f"{_number(report.disaggregated, disaggregated_names.KIND)} and {_number(report.sets, names.KIND)}"
    return f"{looked}: {_number(len(report.findings), 'finding') if report.findings else 'nothing found'}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _as_data(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "kind": finding.kind,
        "namespace": finding.namespace,
        "name": finding.name,
        "message": finding.message,
        "hint": finding.hint,
        "passes": finding.passes,
    }
