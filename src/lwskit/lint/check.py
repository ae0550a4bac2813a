"""Lint: from texts to findings. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.lint import changes, disaggregated, disaggregated_changes, objects, rules
from lwskit.lint.findings import (
    DUPLICATE_KEY,
    DUPLICATE_OBJECT,
    READ_DIFFERENTLY,
    REFUSED_BY_SCHEMA,
    UNREADABLE,
    Fault,
    Finding,
    Place,
    Severity,
)
from lwskit.lint.hints import hinted, quoted
from lwskit.lint.server import Server
from lwskit.lint.source import Note, Part, SourceError, documents, locate
from lwskit.runtime.objects import Obj

Key = tuple[str, str, str]
"""Kind, namespace and name."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file: how it is called in findings, its text, or why there is none."""

    name: str
    text: str = ""
    error: str = ""


@dataclass(slots=True)
class Report:
    """What was found, and of how many files, LeaderWorkerSets, DisaggregatedSets, and documents of other kinds."""

    findings: list[Finding] = field(default_factory=list)
    files: int = 0
    sets: int = 0
    disaggregated: int = 0
    others: int = 0

    def without(self, codes: Collection[str]) -> Report:
        """The report without warnings of these codes; what is refused stays."""
        kept = [f for f in self.findings if f.severity is Severity.ERROR or f.fault.code.code not in codes]
        return replace(self, findings=kept)

    def count(self, severity: Severity) -> int:
        """How many findings of a severity there are."""
        return sum(f.severity is severity for f in self.findings)

    @property
    def unreadable(self) -> bool:
        """Whether there was a file that could not be read."""
        return any(f.fault.code is UNREADABLE for f in self.findings)


def stored(sources: Iterable[Source], server: Server, namespace: str) -> dict[Key, Obj]:
    """The sets of some files as they would be stored, by namespace and name.

    What the schema refuses cannot be there, and is left out.
    Raises SourceError, with the file before the sentence, for a file that cannot be read.
    """
    found: dict[Key, Obj] = {}
    for source in sources:
        if source.error:
            raise SourceError(source.error)
        try:
            for document in documents(source.text):
                for item in () if isinstance(document, Note) else objects.of(document.data, document.root):
                    if isinstance(item, objects.Found):
                        answer = server.create(item.data, namespace)
                        if answer.stored is not None and not any(
                            fault.code is REFUSED_BY_SCHEMA for fault in answer.refusals
                        ):
                            found[_key(answer.stored)] = answer.stored
        except SourceError as error:
            raise SourceError(f"{source.name}:{error.line}:{error.column}: {error}") from error
    return found


def lint(sources: Iterable[Source], server: Server, old: Mapping[Key, Obj], namespace: str) -> Report:
    """Check all files; `old` are the sets that are already there, `namespace` that of sets that name none.

    Findings are in the order of the files, and of lines within one.
    """
    report = Report()
    seen: dict[Key, Place] = {}
    for source in sources:
        report.files += 1
        found = list(_file(source, server, old, namespace, report, seen))
        found.sort(key=lambda f: (f.place.line, f.place.column, f.fault.code.code))
        report.findings += found
    return report


def _key(obj: Obj) -> Key:
    return obj["kind"], obj["metadata"]["namespace"], obj["metadata"].get("name", "")


def _file(
    source: Source, server: Server, old: Mapping[Key, Obj], namespace: str, report: Report, seen: dict[Key, Place]
) -> Iterator[Finding]:
    if source.error:
        yield Finding(Fault(UNREADABLE, "", source.error), Place(source.name))
        return
    notes: list[Note] = []
    any_mine = False
    try:
        for document in documents(source.text):
            if isinstance(document, Note):
                notes.append(document)
                continue
            mine = False
            for item in objects.of(document.data, document.root):
                if isinstance(item, objects.Other):
                    report.others += 1
                    continue
                mine = True
                kind = item.kind if isinstance(item, objects.Wrong) else item.data["kind"]
                report.disaggregated += kind == names.KIND
                report.sets += kind == base.KIND
                if isinstance(item, objects.Wrong):
                    yield Finding(item.fault, _place(source, item.part, item.fault.path))
                    continue
                yield from _set(source, item, server, old, namespace, seen)
            any_mine = any_mine or mine
            if mine:
                for path, line, column in document.doubled:
                    text = "this field stands there twice; the last one counts, and strict readers refuse it"
                    yield Finding(Fault(DUPLICATE_KEY, path, text), Place(source.name, line, column))
    except SourceError as error:
        fault = Fault(UNREADABLE, "", f"this is neither YAML nor JSON: {error}")
        yield Finding(fault, Place(source.name, error.line, error.column))
    for note in notes if any_mine else ():
        yield Finding(Fault(READ_DIFFERENTLY, "", note.message), Place(source.name, note.line, note.column))


def _place(source: Source, part: Part, path: str) -> Place:
    found = locate(part, path)
    return Place(source.name, found.line, found.column)


def _set(
    source: Source,
    item: objects.Found,
    server: Server,
    old: Mapping[Key, Obj],
    namespace: str,
    seen: dict[Key, Place],
) -> Iterator[Finding]:
    answer = server.create(item.data, namespace)
    before = None
    if answer.stored is not None:
        before = old.get(_key(answer.stored))
        if before is not None:
            written = item.data if _is_disaggregated(item.data) else changes.applied(item.data, before)
            answer = server.update(written, before, namespace)
    key = _key(answer.stored) if answer.stored is not None else _named(item.data, namespace)
    _, where, name = key

    def finding(fault: Fault) -> Finding:
        return Finding(fault, _place(source, item.part, fault.path), where, name)

    yield from map(finding, answer.warnings)
    if answer.stored is not None and (item.data.get("metadata") or {}).get("name"):
        place = _place(source, item.part, "metadata.name")
        if key in seen:
            first = seen[key]
            text = f"the same set is in {first.file}:{first.line}; the one that is applied last counts"
            yield finding(Fault(DUPLICATE_OBJECT, "metadata.name", text))
        else:
            seen[key] = place
    if answer.stored is None or answer.refusals:
        for fault in map(quoted, answer.refusals):
            yield finding(fault if answer.stored is None else hinted(fault, answer.stored, before))
        return
    if _is_disaggregated(answer.stored):
        yield from map(finding, disaggregated.check(answer.stored, server))
        if before is not None:
            yield from map(finding, disaggregated_changes.check(before, answer.stored))
        return
    yield from map(finding, rules.check(answer.stored, item.data, server))
    if before is not None:
        yield from map(finding, changes.check(before, answer.stored))


def _is_disaggregated(obj: Obj) -> bool:
    return obj["kind"] == names.KIND


def _named(data: Obj, namespace: str) -> Key:
    """What an object that could not be read calls itself."""
    meta = data.get("metadata")
    found = (meta.get("namespace"), meta.get("name")) if isinstance(meta, dict) else (None, None)
    where, name = (value if isinstance(value, str) else "" for value in found)
    return data["kind"], where or namespace, name
