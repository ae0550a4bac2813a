"""What plans of every kind say in the same words: counts, what changed, notices, and a table of steps. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from lwskit.simulate.report import REFUSED, Notice

_SHOWN: Final = 5
_CUT: Final = 60
"""Steps of a long plan that are shown: the first and the last."""


def counted(count: int, what: str) -> str:
    """So many of something: `1 group`, `2 groups`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def capacity(groups: int, pods: int) -> str:
    """Groups and their pods."""
    return f"{counted(groups, 'group')}, {counted(pods, 'pod')}"


def more(groups: int, pods: int) -> str:
    """How many groups and pods come on top."""
    return f"{counted(groups, 'group')} and {counted(pods, 'pod')} more than now"


def changed(paths: Sequence[str]) -> Iterator[str]:
    """The line that names what an edit changes; none where it changes nothing."""
    if paths:
        left = len(paths) - _SHOWN
        yield "  changed: " + ", ".join(paths[:_SHOWN]) + (f" and {left} more" if left > 0 else "")


def notices(found: Iterable[Notice]) -> Iterator[str]:
    """Lines for notices, each with its hints."""
    for notice in found:
        yield f"  {'refused' if notice.code == REFUSED else 'note'}: {notice.message} [{notice.code}]"
        yield from (f"    {hint}" for hint in notice.hints)


def notices_as_data(found: Iterable[Notice]) -> list[dict[str, Any]]:
    """What the JSON output has of notices."""
    return [{"code": n.code, "message": n.message, "hints": list(n.hints)} for n in found]


def table(header: Sequence[str], steps: Sequence[Sequence[str]], *, other: int = 0) -> Iterator[str]:
    """Lines of a table in columns, of a long one only its beginning and its end. `other` rows are none of its steps."""
    rows = [header, *steps]
    if len(rows) > _CUT + 1 + other:
        left = (f"… {len(rows) - 1 - _CUT} more", *("" for _ in header[1:]))
        rows = [*rows[: _CUT // 2 + 1], left, *rows[-_CUT // 2 :]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
