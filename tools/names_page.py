"""Makes docs/names.md: every label, annotation, variable, finalizer, gate and condition.

From lwskit.api.reference and lwskit.api.disaggregated_reference.

python -m tools.names_page --write    write the page
python -m tools.names_page --check    compare it, and fail if it is not current
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lwskit.api import disaggregated_reference, names, reference
from lwskit.api.reference import Entry

PAGE = Path(__file__).resolve().parents[1] / "docs" / "names.md"
INTRODUCTION = f"""\
<!-- Made by python -m tools.names_page --write; do not edit. -->
# Names

Every label, annotation, variable, finalizer, gate and condition of LeaderWorkerSets and
[DisaggregatedSets](disaggregated.md), as `lwskit.api.names` and `lwskit.api.disaggregated_names` define them. Keys
begin with `{names.PREFIX}` unless they are shown with another prefix. The set controller
makes the leaders' workload, Services and revisions and writes the status of a set; the group controller makes the
workers of a group and recreates groups. What they and the admission of pods write is not for users to set: it is
overwritten, or taken for their own. [Lint](lint.md#labels-annotations-and-variables) warns of that. The last column is
the version of LeaderWorkerSet that has the name: {reference.EARLIER} stands for that version and earlier ones.

{reference.NOT_YET[1:-1].capitalize()}, in brackets: it belongs to
`spec.scheduling` or to a scheduler provider. This version [does not serve them](operating.md#what-is-served) and
writes no such thing; the name is reserved all the same.
"""
PARTS = (
    ("Labels", reference.LABELS),
    ("Annotations", reference.ANNOTATIONS),
    ("Environment variables", reference.VARIABLES),
    ("Finalizers", reference.FINALIZERS),
    ("Gates of pods", reference.GATES),
    ("Conditions of sets", reference.CONDITIONS),
    ("Feature gates", reference.FEATURES),
    ("Labels of DisaggregatedSets", disaggregated_reference.LABELS),
    ("Annotations of DisaggregatedSets", disaggregated_reference.ANNOTATIONS),
    ("Environment variables of DisaggregatedSets", disaggregated_reference.VARIABLES),
    ("Conditions of DisaggregatedSets", disaggregated_reference.CONDITIONS),
)


def shown(name: str) -> str:
    """A name in the page: without the prefix that most have."""
    return name.removeprefix(names.PREFIX)


def table(entries: Sequence[Entry]) -> Iterator[str]:
    """The lines of a table."""
    yield "| name | on | value | written by | read by | since |"
    yield "|---|---|---|---|---|---|"
    for entry in entries:
        cells = (f"`{shown(entry.name)}`", entry.on, entry.value, entry.written, entry.read, entry.since)
        yield f"| {' | '.join(cells)} |".replace("|  |", "| |")


def page() -> str:
    """The text of the page."""
    lines = [INTRODUCTION]
    for title, entries in PARTS:
        lines += [f"## {title}", "", *table(entries), ""]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Write or compare the page; 1 if it is not current, 2 for wrong usage."""
    if arguments == ["--write"]:
        PAGE.write_text(page())
        return 0
    if arguments == ["--check"]:
        if PAGE.exists() and PAGE.read_text() == page():
            return 0
        print(f"{PAGE} is not current: run python -m tools.names_page --write", file=sys.stderr)
        return 1
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
