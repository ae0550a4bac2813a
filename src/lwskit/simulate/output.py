"""Plans for people and programs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from lwskit.groups.hold import numbered
from lwskit.simulate import wording
from lwskit.simulate.edit import Verdict
from lwskit.simulate.hashed_rollout import HashStep
from lwskit.simulate.report import Outcome, Report
from lwskit.simulate.rollout import Step
from lwskit.simulate.wording import capacity, counted, more

_HEADER: Final = ("step", "after", "partition", "replicas", "down", "up", "removed", "ready", "groups", "pods")
_HASH_HEADER: Final = ("step", "after", "down", "made", "let in", "waiting", "ready", "groups", "pods")
_GOES_ON: Final = "what goes on already:"
_NAMED: Final = 2
"""Groups of a step of a set in Hash mode that are named one by one."""


def text(report: Report) -> Iterator[str]:
    """Lines for people."""
    yield f"{report.namespace}/{report.name}: {headline(report)}"
    yield from wording.changed(report.changed)
    if report.all_steps:
        yield f"  assumed: {report.assumed}"
        yield ""
        yield from (f"  {line}".rstrip() for line in _table(report.all_steps))
        yield ""
        yield f"  fewest ready groups: {report.lowest} of {report.replicas}" + _floor(report)
        if report.at_worst is not None:
            yield f"  if no group becomes ready: {report.at_worst} of {report.replicas} stay ready"
        yield f"  at the peak: {_capacity(report)}"
    if report.all_steps or report.outcome is Outcome.STALLED:
        yield f"  end: {_end(report)}"
    yield from wording.notices(report.notices)


def as_data(report: Report) -> dict[str, Any]:
    """What the JSON output has of a plan."""
    return {
        "namespace": report.namespace,
        "name": report.name,
        "verdict": report.verdict.value,
        "summary": headline(report),
        "outcome": report.outcome.value,
        "changed": list(report.changed),
        "rolledGroups": report.rolled,
        "assumed": report.assumed,
        "replicas": report.replicas,
        **_numbers(report),
        "steps": [_step(number, step) for number, step in enumerate(report.all_steps, 1)],
        "notices": wording.notices_as_data(report.notices),
    }


def _numbers(report: Report) -> dict[str, Any]:
    return {
        "readyBefore": report.ready_before,
        "lowestReady": report.lowest,
        "floor": report.floor,
        **({"lowestIfNoneBecomesReady": report.at_worst} if report.at_worst is not None else {}),
        "peak": {
            "groups": report.peak_groups,
            "pods": report.peak_pods,
            "extraGroups": report.peak_groups - report.groups_before,
            "extraPods": report.peak_pods - report.pods_before,
        },
    }


def headline(report: Report) -> str:
    """What the edit is, in a few words."""
    match report.verdict:
        case Verdict.REFUSED:
            return "the API server refuses it"
        case Verdict.CREATES:
            return f"creates the set with {counted(report.replicas, 'group')}"
        case Verdict.ROLLS:
            return f"makes {report.rolled} of {counted(report.replicas, 'group')} anew"
        case Verdict.SCALES:
            before = report.groups_before if report.wanted_before is None else report.wanted_before
            return f"scales from {before} to {counted(report.replicas, 'group')}"
        case Verdict.RESTARTS:
            return f"{report.restarts_as} {report.restarted}, one of {counted(report.replicas, 'group')}"
        case Verdict.METADATA:
            return f"metadata only; {_meanwhile(report, 'no pod is touched')}"
        case Verdict.NEXT_RESTART:
            return f"applies when a group is next made or restarted; {_meanwhile(report, 'no pod is touched now')}"
        case Verdict.NEXT_ROLLOUT:
            return "applies to how rollouts go on; the template stays"
        case Verdict.NOTHING:
            return "nothing changes" + (f"; {_GOES_ON}" if report.all_steps else "")


def _meanwhile(report: Report, at_rest: str) -> str:
    """What happens beside an edit that makes no group anew by itself."""
    moved = any(s.down or (s.made if isinstance(s, HashStep) else s.up or s.removed) for s in report.all_steps)
    return _GOES_ON if moved else at_rest


def _floor(report: Report) -> str:
    return f"; replicas − maxUnavailable is {report.floor}" if report.floor is not None else ""


def _capacity(report: Report) -> str:
    groups, pods = report.peak_groups - report.groups_before, report.peak_pods - report.pods_before
    there = capacity(report.peak_groups, report.peak_pods)
    return f"{there}: {more(groups, pods)}" if groups or pods else f"{there}, as now"


def _end(report: Report) -> str:
    match report.outcome:
        case Outcome.DONE:
            return "all groups are ready and as asked for"
        case Outcome.HELD:
            return "the partition holds the rest"
        case _:
            return "it stalls" if report.all_steps or not report.groups_before else "it is stuck as it is"


def _table(steps: Sequence[Step | HashStep]) -> Iterator[str]:
    header = _HASH_HEADER if isinstance(steps[0], HashStep) else _HEADER
    return wording.table(header, [_row(number, step) for number, step in enumerate(steps, 1)])


def _row(number: int, step: Step | HashStep) -> tuple[str, ...]:
    if isinstance(step, HashStep):
        moved = ([one.name for one in step.down], step.made, step.let_in, step.waiting)
        counts = (str(step.ready), str(step.total), str(step.pods))
        return (str(number), step.event, *(_names(names) for names in moved), *counts)
    return (
        str(number),
        step.event,
        str(step.partition),
        str(step.replicas),
        *(_short(moved) for moved in (step.down, step.up, step.removed)),
        str(step.ready),
        str(step.total),
        str(step.pods),
    )


def _short(ordinals: Sequence[int]) -> str:
    return numbered(ordinals).removeprefix("groups ").removeprefix("group ") if ordinals else "-"


def _names(groups: Sequence[str]) -> str:
    """Groups of a set in Hash mode: two are named, more are counted."""
    return ", ".join(groups) or "-" if len(groups) <= _NAMED else f"{len(groups)} groups"


def _hash_step(number: int, step: HashStep) -> dict[str, Any]:
    return {
        "step": number,
        "after": step.event,
        "replicas": step.replicas,
        "revision": step.key,
        "down": [{"group": one.name, "why": one.why, "sure": one.sure} for one in step.down],
        "made": list(step.made),
        "letIn": list(step.let_in),
        "waiting": list(step.waiting),
        "going": list(step.going),
        "ready": step.ready,
        "updated": step.updated,
        "groups": step.total,
        "pods": step.pods,
        "why": step.why,
        "events": list(step.notes),
    }


def _step(number: int, step: Step | HashStep) -> dict[str, Any]:
    if isinstance(step, HashStep):
        return _hash_step(number, step)
    return {
        "step": number,
        "after": step.event,
        "partition": step.partition,
        "replicas": step.replicas,
        "revision": step.key,
        "down": list(step.down),
        "up": list(step.up),
        "removed": list(step.removed),
        "ready": step.ready,
        "updated": step.updated,
        "groups": step.total,
        "pods": step.pods,
        "why": step.why,
        "events": list(step.notes),
    }
