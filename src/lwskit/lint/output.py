"""Reports for people, programs and GitHub. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from lwskit.lint.check import Report
from lwskit.lint.findings import Finding, Severity


def text(report: Report) -> Iterator[str]:
    """Lines for people: a place, a code, the field and what is wrong, hints below, and a summary."""
    for finding in report.findings:
        fault, place = finding.fault, finding.place
        file = _one_line(place.file)
        where = f"{file}:{place.line}:{place.column}" if place.line else file
        yield f"{where}: {finding.severity.value} {fault.code.code}: {_said(finding)}"
        if fault.hint:
            yield f"    {fault.hint}"
    yield summary(report)


def as_json(report: Report) -> Iterator[str]:
    """One JSON object: `findings` and `summary`."""
    counted = {
        "files": report.files,
        "sets": report.sets,
        "disaggregatedSets": report.disaggregated,
        "others": report.others,
        "errors": report.count(Severity.ERROR),
        "warnings": report.count(Severity.WARNING),
    }
    document = {"findings": [_as_data(finding) for finding in report.findings], "summary": counted}
    yield json.dumps(document, indent=2, ensure_ascii=False)


def github(report: Report) -> Iterator[str]:
    """Workflow commands, of which GitHub makes annotations, and a summary for the log."""
    for finding in report.findings:
        fault, place = finding.fault, finding.place
        properties: dict[str, Any] = {"file": place.file}
        if place.line:
            properties |= {"line": place.line, "col": place.column}
        properties["title"] = f"{fault.code.code} {fault.code.name}"
        shown = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
        message = _said(finding) + (f"\n{fault.hint}" if fault.hint else "")
        yield f"::{finding.severity.value} {shown}::{_data(message)}"
    yield summary(report)


OUTPUTS: Final[Mapping[str, Callable[[Report], Iterator[str]]]] = {"text": text, "json": as_json, "github": github}
"""The forms of a report by their names."""


def summary(report: Report) -> str:
    """How much was looked at and found, in one line."""
    sets = [_number(report.sets, "LeaderWorkerSet")] if report.sets or not report.disaggregated else []
    sets += [_number(report.disaggregated, "DisaggregatedSet")] if report.disaggregated else []
    looked = f"{' and '.join(sets)} in {_number(report.files, 'file')}"
    found = f"{_number(report.count(Severity.ERROR), 'error')}, {_number(report.count(Severity.WARNING), 'warning')}"
    skipped = f"; {_number(report.others, 'other document')} skipped" if report.others else ""
    return f"{looked}: {found}{skipped}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _said(finding: Finding) -> str:
    fault = finding.fault
    return _one_line(f"{fault.path}: {fault.message}" if fault.path else fault.message)


def _one_line(message: str) -> str:
    return " ".join(message.splitlines())


def _as_data(finding: Finding) -> dict[str, Any]:
    fault, place = finding.fault, finding.place
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "severity": finding.severity.value,
        "code": fault.code.code,
        "codeName": fault.code.name,
        "namespace": finding.namespace,
        "name": finding.name,
        "path": fault.path,
        "message": fault.message,
        "hint": fault.hint,
    }


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
