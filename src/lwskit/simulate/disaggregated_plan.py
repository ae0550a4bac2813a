"""The plan for an edit of a DisaggregatedSet: what it is, the steps that follow, where they end, at what cost. Pure.

Specification: 50 §5–§14.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import scaling, spec
from lwskit.disaggregated.children import path_in_set
from lwskit.disaggregated.family import Family, LeadersOf
from lwskit.disaggregated.model import Child, Part
from lwskit.disaggregated.revision import resolve
from lwskit.disaggregated.scene import Targets
from lwskit.disaggregated.slices import is_removed
from lwskit.disaggregated.spec import SetSpec
from lwskit.groups import spec as sets
from lwskit.groups.model import DecisionError
from lwskit.groups.ports import WorkerBackend
from lwskit.runtime.objects import Obj, is_true
from lwskit.simulate import disaggregated_edit as edits
from lwskit.simulate import order as orders
from lwskit.simulate.disaggregated_report import (
    CHILD_REFUSED,
    CUT_OFF,
    NO_DECISION,
    UNRESOLVED,
    WAITS,
    Report,
)
from lwskit.simulate.disaggregated_rollout import BOOTSTRAP, Choose, Place, Play, step
from lwskit.simulate.disaggregated_start import world
from lwskit.simulate.disaggregated_world import Group, Judge, Refused, World
from lwskit.simulate.report import ENOUGH, Notice, Outcome
from lwskit.simulate.wording import counted

_CHOICES: Final[dict[str, Choose]] = {
    orders.TOGETHER: lambda pending: pending,
    orders.LOWEST: lambda pending: pending[:1],
    orders.HIGHEST: lambda pending: pending[-1:],
    orders.NEVER: lambda _: (),
}
_SAID: Final = {
    orders.TOGETHER: "all groups that are made are ready before the next step",
    orders.LOWEST: "groups that are made become ready one after another, the oldest first",
    orders.HIGHEST: "groups that are made become ready one after another, the newest first",
    orders.NEVER: "no group becomes ready",
}
_REST: Final = (
    "so do those that are not ready now if their pods show no trouble; groups that are given up are gone at once, and "
    "nobody else changes anything meanwhile"
)


def plan(
    family: Family,
    new: Obj,
    ready_order: str,
    leaders_of: LeadersOf,
    workers: WorkerBackend,
    now: datetime,
    judge: Judge,
) -> Report:
    """The plan for storing `new`, a set with its defaults, in the family.

    `ready_order` is one of `order.ORDERS`, or empty for all at once; `judge` says what an API server refuses of the
    LeaderWorkerSets that follow. Raises OrderError.
    """
    chosen = ready_order or orders.TOGETHER
    if chosen not in _CHOICES:
        raise orders.OrderError(
            f"{chosen!r} is no order for a {names.KIND}, whose groups are of several sets; use {', '.join(_CHOICES)}"
        )
    old = family.ds
    new = {**new, "metadata": {"uid": "simulated", **new["metadata"]}}
    family = family.edited(new)
    changed = edits.differences(old, new) if old is not None else []
    played = world(family, new, leaders_of, workers, now, judge)
    before = step(played, "") if old is not None else None
    play = Play.of(played, _CHOICES[chosen])
    play.run()
    was = resolve(old, family.own).revision if old is not None else ""
    current = resolve(played.ds, played.own).revision
    found = spec.read(new)
    targets = _targets(family, new, found)
    desired = {Place(i, part): targets.parts.get(part, 0) for i in range(found.slices) for part in found.parts}
    said = _SAID[chosen] if chosen == orders.NEVER else f"{_SAID[chosen]}; {_REST}"
    report = Report(
        namespace=family.namespace,
        name=family.name,
        verdict=edits.classify(old, changed, rolls=bool(was) and was != current),
        changed=tuple(changed),
        assumed=said,
        before=before,
        steps=tuple(play.steps),
        writes=tuple(played.writes),
        desired=desired,
        revision_before=was,
        revision=current,
        outcome=Outcome.DONE if _is_done(play) else Outcome.STALLED,
    )
    notices = (
        *_about_edit(family, report, found),
        *_about_budgets(found, targets),
        *_about_steps(report),
        *_about_end(play, report, targets, chosen),
    )
    return replace(report, notices=notices)


def _targets(family: Family, new: Obj, found: SetSpec) -> Targets:
    """What each part is to have once scalers are as the manager makes them."""
    staying = [c for c in family.own if not c.is_terminating and not is_removed(c, found.slices)]
    return scaling.decide(new, found, staying, family.scalers).targets


def _is_done(play: Play) -> bool:
    """Whether the set is where it should be, and nothing of an old revision is left."""
    ds = play.world.ds
    current = resolve(ds, play.world.own).revision
    left = any(o["metadata"]["labels"].get(names.REVISION_LABEL) != current for o in play.world.children.values())
    stuck = play.error or play.world.refused
    return not stuck and not left and is_true(ds, names.CONDITION_AVAILABLE)


# Notices --------------------------------------------------------------------------------------------------------------


def _about_edit(family: Family, report: Report, found: SetSpec) -> Iterator[Notice]:
    gone = sorted({c.slice for c in family.own if c.slice is not None and is_removed(c, found.slices)})
    if gone:
        which = f"slice {gone[0]}" if len(gone) == 1 else f"slices {', '.join(map(str, gone))}"
        yield Notice("slices-removed", f"{which}: all groups go at once, without being drained")
    ignored = [
        role.name
        for role in found.roles
        if f"spec.roles[{role.name}].spec.replicas" in report.changed and (role.is_external or role.subroles)
    ]
    for name in ignored:
        yield Notice(
            "replicas-ignored",
            f"role {name} is scaled by others or by its sub-roles: its spec.replicas changes nothing",
            (f"scale DisaggregatedSetRoleScaler {scaling.name_of(family.name, Part(name))}",)
            if not found.roles or not _subroles(found, name)
            else ("change the replicas of its sub-roles",),
        )


def _subroles(found: SetSpec, name: str) -> bool:
    role = found.role(name)
    return role is not None and bool(role.subroles)


def _about_budgets(found: SetSpec, targets: Targets) -> Iterator[Notice]:
    """Limits that both come to nothing: then one group more is made."""
    for role in found.roles:
        config = ((role.spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration")) or {}
        surge, unavailable = config.get("maxSurge"), config.get("maxUnavailable")
        if surge is None or unavailable is None:
            continue
        for part in role.parts:
            count = targets.parts.get(part, 0)
            if count and not any(_resolved(surge, unavailable, count)):
                text = (
                    f"role {part}: maxSurge {surge} and maxUnavailable {unavailable} both come to 0 of {count} groups, "
                    "and are taken for 1 and 0"
                )
                yield Notice("zero-budget", text)


def _resolved(surge: int | str, unavailable: int | str, count: int) -> tuple[int, int]:
    try:
        return (
            sets.scaled(surge, count, up=True, field="maxSurge"),
            sets.scaled(unavailable, count, up=False, field="maxUnavailable"),
        )
    except DecisionError:
        # The decision says so at the first step.
        return 1, 0


def _about_steps(report: Report) -> Iterator[Notice]:
    marked = [n for n, one in enumerate(report.steps, 1) if BOOTSTRAP in one.marks]
    if marked:
        steps = f"step{'' if len(marked) == 1 else 's'} {', '.join(map(str, marked))}"
        yield Notice(
            "bootstrap-surge",
            f"{steps}: one group more than maxSurge allows is made, since the new revision would lack a role or hold "
            "up all others otherwise",
        )
    yield from _outages(report)
    peak = report.peak
    if report.before is not None and peak is not None and peak.groups > report.before.groups:
        more = peak.groups - report.before.groups, peak.pods - report.before.pods
        text = (
            f"whether nodes have room for {more[0]} group{'' if more[0] == 1 else 's'} and {more[1]} "
            f"pod{'' if more[1] == 1 else 's'} more than now, and quotas allow them, is not known here"
        )
        seconds = f"{names.UNSCHEDULABLE_SECONDS:g}"
        yield Notice(
            "capacity",
            text,
            (
                f"pods that find no node hold the rollout; after {seconds} s one group of each role may be given up "
                "for them where bootstrap groups exceed maxSurge",
            ),
        )


def _outages(report: Report) -> Iterator[Notice]:
    """Of each part the first step at which it serves no more in a slice that it served in and stays in."""
    served = {place for place, count in report.before.counts.items() if count.ready} if report.before else set[Place]()
    for part in report.parts:
        mine = sorted(place.slice for place in served if place.part == part and report.desired.get(place))
        for number, one in enumerate(report.steps, 1):
            ready = {
                index: one.counts[Place(index, part)].ready if Place(index, part) in one.counts else 0 for index in mine
            }
            out = next((index for index in mine if not ready[index]), None)
            if out is not None:
                text = f"role {part}: at step {number} no group of it is ready in slice {out}"
                yield Notice("outage", text, ("with maxSurge 1 and maxUnavailable 0 one stays ready",))
                break


def _about_end(play: Play, report: Report, targets: Targets, chosen: str) -> Iterator[Notice]:
    yield from _about_unresolved(targets)
    if len(report.steps) >= ENOUGH:
        yield Notice(CUT_OFF, f"the plan is cut off after {ENOUGH} steps")
        return
    yield from _about_refused(play.world.refused)
    if report.outcome is not Outcome.STALLED:
        return
    if play.error:
        yield Notice(NO_DECISION, f"the manager stops: {play.error}")
        return
    waiting = _waiting(play.world) if chosen != orders.NEVER else []
    if targets.unresolved or (play.world.refused and not waiting):
        return
    text = f"it waits: {play.note}" if play.note else "it waits"
    if waiting:
        text += f"; not ready, and not expected to be: {', '.join(waiting)}"
    yield Notice(WAITS, text)


def _about_unresolved(targets: Targets) -> Iterator[Notice]:
    """Parts without a count: their scaler cannot be had, or the sum of a role's sub-roles is too large."""
    nothing = "so that the manager changes no group of the set"
    too_large = targets.too_large
    for role in too_large.items():
        hint = f"ask for fewer in role {role[0]}"
        yield Notice(UNRESOLVED, f"{scaling.said_of_sum(role)}, {nothing}", (hint,))
    lacking = [str(part) for part in targets.unresolved if part.role not in too_large]
    if lacking:
        text = f"{', '.join(lacking)}: the scaler cannot be had, {nothing}"
        yield Notice(UNRESOLVED, text, ("free the scaler's name, or make the role Static",))


def _about_refused(refused: Sequence[Refused]) -> Iterator[Notice]:
    """The children that cannot be had, once for all slices in which it is the same role for the same fields."""
    alike: dict[tuple[str, bool, tuple[str, ...]], list[Refused]] = {}
    for one in refused:
        alike.setdefault((one.child.role, one.is_new, tuple(why.path for why in one.why)), []).append(one)
    for (role, is_new, _), found in alike.items():
        first, *others = (one.child for one in found)
        at = f"spec.roles[{role}]"
        why = "; ".join(f"{path_in_set(each.path, at)}: {each.message}" for each in found[0].why)
        text = f"role {role}: {_named(first, others)} {'is' if not others else 'are'} refused by the API server: {why}"
        if not is_new:
            text += f"; there were to be {counted(first.replicas, 'group')}"
        yield Notice(CHILD_REFUSED, text, _mended(found[0]))


def _mended(refused: Refused) -> tuple[str, ...]:
    paths = [why.path for why in refused.why]
    if "metadata.name" in paths:
        return (
            "make the set under another name: of lower case letters, digits and dashes, with a letter at its beginning",
        )
    return ("mend it in the manifest; `lwskit lint` tells the line",) if all(paths) else ()


def _named(first: Child, others: Sequence[Child]) -> str:
    """A child by its name, and those of other slices."""
    slices = ", ".join(str(child.slice) for child in others)
    more = f" and {'that' if len(others) == 1 else 'those'} of slice{'' if len(others) == 1 else 's'} {slices}"
    return f"LeaderWorkerSet {first.name}" + (more if others else "")


def _waiting(played: World) -> list[str]:
    """The children with groups that are not ready, and how many."""
    found: list[str] = []
    for name, obj in sorted(played.children.items()):
        groups: list[Group] = played.groups[obj["metadata"]["uid"]]
        unready = sum(not group.ready for group in groups)
        if unready:
            found.append(f"{unready} of {len(groups)} groups of {name}")
    return found
