"""Plans of DisaggregatedSets for people and programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from lwskit.simulate import wording
from lwskit.simulate.disaggregated_edit import Verdict
from lwskit.simulate.disaggregated_report import (
    CHILD_REFUSED,
    CUT_OFF,
    NO_DECISION,
    NOTHING,
    UNRESOLVED,
    WAITS,
    Report,
    Skew,
)
from lwskit.simulate.disaggregated_rollout import IDLE, Count, Deeds, Place, Step
from lwskit.simulate.report import Outcome
from lwskit.simulate.wording import capacity, counted, more

_STALLS: Final = {
    CHILD_REFUSED: "LeaderWorkerSets that the manager wants are refused",
    UNRESOLVED: "it is not known how many groups there are to be",
    NO_DECISION: "the manager stops",
    WAITS: "it waits for groups that do not become ready",
    CUT_OFF: "the plan is cut off",
}
"""What the notices about the end come to."""


def text(report: Report) -> Iterator[str]:
    """Lines for people."""
    yield f"{report.namespace}/{report.name}: {headline(report)}"
    yield from wording.changed(report.changed)
    if report.steps:
        yield f"  assumed: {report.assumed}"
        slices = _Slices(report)
        for alike in slices.alike():
            yield ""
            yield from (f"  {line}".rstrip() for line in slices.told(alike))
        yield ""
        if report.lowest:
            yield f"  lowest: {'; '.join(_lowest(report))}"
        if report.skew is not None:
            yield f"  widest skew: {_skew(report, report.skew)}"
        yield f"  at the peak: {_peak(report)}"
    if report.steps or report.outcome is Outcome.STALLED:
        yield f"  end: {_end(report)}"
    yield from wording.notices(report.notices)


def headline(report: Report) -> str:
    """What the edit is, in a few words."""
    going = "what goes on already:" if report.steps else ""
    match report.verdict:
        case Verdict.REFUSED:
            return "the API server refuses it"
        case Verdict.CREATES:
            return f"creates the set with {counted(report.wanted, 'group')} of {_roles(report)}"
        case Verdict.ROLLS:
            before = f"{report.revision_before} → " if report.revision_before else ""
            return f"rolls all roles: revision {before}{report.revision}"
        case Verdict.SCALES:
            before = report.before.groups if report.before is not None else 0
            if before == report.wanted:
                return f"asks for {counted(before, 'group')}, as many as now; no rollout"
            return f"scales from {before} to {counted(report.wanted, 'group')}; no rollout"
        case Verdict.NEXT_REVISION:
            return f"applies to what is made later, at the next revision; {going or 'no group is touched now'}"
        case Verdict.IN_PLACE:
            return f"is handed on to the children as they are; {going or 'no group is made anew'}"
        case Verdict.PACE:
            return f"applies to how rollouts and scaling go on; {going or 'no group is touched'}"
        case Verdict.METADATA:
            return f"metadata only; {going or 'no group is touched'}"
        case Verdict.NOTHING:
            return f"nothing changes{'; ' + going if going else ''}"


def _roles(report: Report) -> str:
    return counted(len({place.part.role for place in report.desired}), "role")


class _Slices:
    """How the slices of a plan go, step by step."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._parts = report.parts

    def alike(self) -> list[list[int]]:
        """The slices, those together that go the same way."""
        found: dict[tuple[object, ...], list[int]] = {}
        for index in self._report.slices:
            way = tuple((_said(moment.of(index)), self._counts(moment, index)) for moment in self._report.moments)
            found.setdefault(way, []).append(index)
        return list(found.values())

    def told(self, alike: Sequence[int]) -> Iterator[str]:
        """The table of slices that go the same way, with the steps at which something changes in them."""
        index, before = alike[0], self._report.before
        where = f"{_named(alike)}: " if self._report.slices != (0,) else ""
        rows = self._rows(index)
        if not rows:
            yield f"{where}nothing changes"
            return
        # The first row is how things are now; a slice that is new has nothing yet.
        first = [self._row("", "", before, index)] if before is not None and self._report.had_groups(index) else []
        header = ("step", "after", *(str(part) for part in self._parts), "")
        yield f"{where}groups of old revisions/of the new one (ready ones of both)"
        yield from wording.table(header, (*first, *rows), other=len(first))

    def _rows(self, index: int) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = []
        before, after = self._report.before, ""
        seen = self._counts(before, index) if before is not None else None
        for number, one in enumerate(self._report.steps, 1):
            counts, after = self._counts(one, index), one.after or after
            if one.of(index) != IDLE or counts != seen:
                rows.append(self._row(str(number), after, one, index))
                after = ""
            seen = counts
        return rows

    def _row(self, number: str, after: str, one: Step, index: int) -> tuple[str, ...]:
        counts = (count or NOTHING for count in self._counts(one, index))
        told = (f"{count.old}/{count.new} ({count.ready})" for count in counts)
        return (number, after, *told, _said(one.of(index)))

    def _counts(self, one: Step, index: int) -> tuple[Count | None, ...]:
        return tuple(one.counts.get(Place(index, part)) for part in self._parts)


def _named(alike: Sequence[int]) -> str:
    return f"slice {alike[0]}" if len(alike) == 1 else f"slices {', '.join(map(str, alike))}, each"


def _said(deeds: Deeds) -> str:
    """What becomes of one slice beside its counts."""
    told = [*deeds.marks]
    told += [f"makes {counted(len(deeds.made), 'LeaderWorkerSet')}"] if deeds.made else []
    told += [f"deletes {counted(len(deeds.gone), 'LeaderWorkerSet')}"] if deeds.gone else []
    told += [f"changes the sub-role label of {counted(deeds.labelled, 'group')}"] if deeds.labelled else []
    return ", ".join(told)


def _lowest(report: Report) -> Iterator[str]:
    """The lowest capacity of each part; of what has no group yet, and so no capacity to lose, that it is new."""
    lowest, slices = report.lowest, {place.slice for place in report.desired}
    for part, low in lowest.items():
        where = f" in slice {low.slice}" if report.slices != (0,) else ""
        yield f"{part} {low.ready} ready of {low.wanted} wanted{where}"
    new = [index for index in sorted(slices) if not report.had_groups(index)]
    if new:
        yield f"slice {new[0]} is new" if len(new) == 1 else f"slices {', '.join(map(str, new))} are new"
    if len(new) < len(slices):
        yield from (f"{part} has no group yet" for part in report.parts if part not in lowest)


def _end(report: Report) -> str:
    if report.outcome is Outcome.DONE:
        return "all groups are ready and as asked for"
    why = next((_STALLS[notice.code] for notice in report.notices if notice.code in _STALLS), "")
    how = "it is stuck as it is" if report.before is not None and not report.steps else "it stalls"
    return f"{how}: {why}" if why else how


def _skew(report: Report, skew: Skew) -> str:
    where = f" in slice {skew.slice}" if report.slices != (0,) else ""
    what = "of the new groups that it is to have" if skew.side == "new" else "of the old groups given up"
    return (
        f"{_percent(skew.share)} at step {skew.step}{where}: so much further is {skew.ahead} than {skew.behind}, by "
        f"the share {what}; one group of the smallest role is {_percent(skew.window)}"
    )


def _percent(share: Fraction) -> str:
    return f"{float(share * 100):.0f} %"


def _peak(report: Report) -> str:
    peak, before = report.peak, report.before
    if peak is None:
        return "nothing"
    there = capacity(peak.groups, peak.pods)
    if before is None or (peak.groups, peak.pods) == (before.groups, before.pods):
        return there if before is None else f"{there}, as now"
    return f"{there}: {more(peak.groups - before.groups, peak.pods - before.pods)}"


def as_data(report: Report) -> dict[str, Any]:
    """What the JSON output has of a plan."""
    skew, peak, before = report.skew, report.peak, report.before
    return {
        "kind": "DisaggregatedSet",
        "namespace": report.namespace,
        "name": report.name,
        "verdict": report.verdict.value,
        "summary": headline(report),
        "outcome": report.outcome.value,
        "changed": list(report.changed),
        "assumed": report.assumed,
        "revision": report.revision,
        "revisionBefore": report.revision_before,
        "groups": report.wanted,
        "before": _counts(report, before) if before is not None else None,
        "lowest": [
            {"part": str(part), "ready": low.ready, "wanted": low.wanted, "slice": low.slice, "step": low.step}
            for part, low in report.lowest.items()
        ],
        "skew": _skew_data(skew) if skew is not None else None,
        "peak": {
            "groups": peak.groups if peak is not None else 0,
            "pods": peak.pods if peak is not None else 0,
            "extraGroups": peak.groups - before.groups if peak is not None and before is not None else 0,
            "extraPods": peak.pods - before.pods if peak is not None and before is not None else 0,
        },
        "steps": [
            {
                "step": number,
                "after": one.after,
                "counts": _counts(report, one),
                "groups": one.groups,
                "pods": one.pods,
                "marks": list(one.marks),
                "made": list(one.made),
                "deleted": list(one.gone),
                "labelled": one.labelled,
            }
            for number, one in enumerate(report.steps, 1)
        ],
        "notices": wording.notices_as_data(report.notices),
    }


def _counts(report: Report, one: Step) -> list[dict[str, Any]]:
    return [
        {"slice": index, "part": str(part), "old": count.old, "new": count.new, "ready": count.ready}
        for index in report.slices
        for part in report.parts
        if (count := one.counts.get(Place(index, part))) is not None
    ]


def _skew_data(skew: Skew) -> dict[str, Any]:
    return {
        "share": round(float(skew.share), 4),
        "window": round(float(skew.window), 4),
        "side": skew.side,
        "ahead": str(skew.ahead),
        "behind": str(skew.behind),
        "slice": skew.slice,
        "step": skew.step,
    }
