"""The plan for an edit of a set: what it is, the steps that follow, where they end, and at what cost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lwskit.groups import hold as holds
from lwskit.groups import rollout as arithmetic
from lwskit.groups import spec, victims
from lwskit.groups.hold import numbered
from lwskit.groups.model import READY, UPDATED, DecisionError, Groups
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.groups.scene import Scene, owner_name
from lwskit.runtime.deployment_sizes import wanted
from lwskit.runtime.objects import Obj, controller_of, is_deleting, uid_of
from lwskit.simulate import edit as edits
from lwskit.simulate import hashed_plan
from lwskit.simulate import order as orders
from lwskit.simulate.report import ENOUGH, THE_EDIT, Notice, Outcome, Report, scaled_down
from lwskit.simulate.rollout import Rollout, Step
from lwskit.simulate.start import Start, Templates, observe, same_template


def plan(
    scene: Scene, new: Obj, ready_order: str, leaders: LeaderBackend, workers: WorkerBackend, now: datetime
) -> Report:
    """The plan for storing `new`, a set with its defaults, in the scene.

    `ready_order` is as for `order.parse`, or empty for the default of the set's mode. Raises OrderError.
    """
    ready_order = ready_order or (orders.LOWEST if spec.is_hashed(new) else orders.HIGHEST)
    named = orders.named(ready_order)
    old = scene.lws
    obstacle = _obstacle(scene, new)
    if obstacle is not None:
        changed = edits.differences(old, new) if old is not None else []
        verdict = edits.classify(old, new, changed, 0)
        return Report(
            namespace=scene.namespace,
            name=scene.name,
            verdict=verdict,
            changed=tuple(changed),
            outcome=Outcome.STALLED,
            replicas=spec.replicas(new),
            notices=(obstacle,),
        )
    if spec.is_hashed(new):
        return hashed_plan.plan(scene, new, ready_order, leaders, workers, now)
    start = observe(scene, leaders, workers, now)
    notices = _victims(scene, new, now)
    if scene.workload is not None and is_deleting(scene.workload):
        start = Start(old, None, {}, Templates(), "", "", None, scene.revisions, start.service)
        notices.append(Notice("workload-deleting", f"StatefulSet {scene.name} is being deleted: the plan begins after"))
    played = Rollout(start, leaders, now)
    before = _Before.of(played, start)
    steps: list[Step] = []
    try:
        _play(played, new, ready_order, steps)
        outcome, ends = _outcome(played, leaders)
    except DecisionError as error:
        outcome, ends = Outcome.STALLED, [Notice("no-decision", str(error))]
    changed = edits.differences(old, new) if old is not None else []
    anew = _anew(steps, old, new)
    rolls = bool(anew) and old is not None and _is_by_edit(anew, old, new, start, ready_order, leaders, now)
    absent = sorted({*named} - {*start.groups} - {o for step in steps for o in step.up})
    if absent:
        exists = "exists" if len(absent) == 1 else "exist"
        notices.append(Notice("order-no-such-group", f"{numbered(absent)} of the order {exists} at no step"))
    settings = arithmetic.Settings.of(new) if outcome is not Outcome.STALLED or not _unreadable(new) else None
    floor = None
    if settings is not None and old is not None and start.workload is not None:
        floor = max(0, min(before.wanted, settings.replicas) - settings.max_unavailable)
        notices += _floor(steps, floor, before, old, new, settings)
    if settings is not None:
        notices += _surge(steps, settings, old is not None and edits.new_template(old, new))
    return Report(
        namespace=scene.namespace,
        name=scene.name,
        verdict=edits.classify(old, new, changed, len(anew) if rolls else 0),
        rolled=len(anew),
        changed=tuple(changed),
        assumed=orders.told(ready_order),
        steps=_told(steps),
        outcome=outcome,
        replicas=spec.replicas(new),
        ready_before=before.ready if old is not None else 0,
        groups_before=len(start.groups),
        pods_before=sum(g.size for g in start.groups.values()),
        floor=floor,
        notices=(*notices, *ends),
    )


def _play(played: Rollout, new: Obj, ready_order: str, steps: list[Step]) -> None:
    """Store a set and let groups become ready in the order, to the end. Adds the steps. Raises DecisionError."""
    choose = orders.parse(ready_order)
    played.edit(new)
    steps += played.settle(THE_EDIT)
    while (pending := played.pending) and len(steps) < ENOUGH:
        chosen = choose(pending)
        if not chosen:
            return
        played.make_ready(*chosen)
        steps += played.settle(f"{numbered(chosen)} {'is' if len(chosen) == 1 else 'are'} ready")


def _anew(steps: Sequence[Step], old: Obj | None, new: Obj) -> set[int]:
    """The groups that there were to be and still are to be, and that the steps make."""
    wanted = min(spec.replicas(old), spec.replicas(new)) if old is not None else 0
    return {o for step in steps for o in step.up if o < wanted}


def _is_by_edit(
    anew: set[int], old: Obj, new: Obj, start: Start, ready_order: str, leaders: LeaderBackend, now: datetime
) -> bool:
    """Whether it is the edit that makes groups anew, and not what goes on already."""
    if edits.new_template(old, new) or not same_template(old, new):
        return True
    without: list[Step] = []
    try:
        _play(Rollout(start, leaders, now), old, ready_order, without)
    except DecisionError:
        # As far as it comes.
        pass
    return not anew <= _anew(without, old, old)


def _victims(scene: Scene, new: Obj, now: datetime) -> list[Notice]:
    """Which groups go because the set gets smaller."""
    old, workload = scene.lws, scene.workload
    if old is None or workload is None or spec.replicas(new) >= spec.replicas(old):
        return []
    if wanted(workload) != spec.replicas(old) or edits.new_template(old, new):
        # A rollout has a say in it too: the steps tell.
        return []
    found = victims.victims(old, workload, scene.pods, now, spec.replicas(new), sets=scene.between)
    return [scaled_down(spec.replicas(old), spec.replicas(new), found)]


def _unreadable(lws: Obj) -> bool:
    try:
        arithmetic.Settings.of(lws)
    except DecisionError:
        return True
    return False


def _told(steps: list[Step]) -> tuple[Step, ...]:
    """The steps without a first one in which nothing happens."""
    if len(steps) == 1 and not steps[0].moves:
        return ()
    return tuple(steps)


def _obstacle(scene: Scene, new: Obj) -> Notice | None:
    """What keeps the manager from doing anything about the set at all."""
    if scene.lws is not None and is_deleting(scene.lws):
        return Notice("set-deleting", "the set is being deleted: an edit changes nothing any more")
    workload = scene.workload
    if workload is None or scene.lws is None:
        return None
    owner = controller_of(workload)
    if owner is None or owner["uid"] != uid_of(scene.lws):
        kind = workload.get("kind", "StatefulSet")
        text = f"{kind} {scene.name} belongs to {owner_name(workload)}, not to this set"
        return Notice("foreign-workload", text, (f"delete that {kind}, or give the set another name",))
    return None


@dataclass(frozen=True, slots=True)
class _Before:
    """The groups before the edit."""

    ready: int
    unready: tuple[int, ...]
    """Of those wanted, without those that an unfinished rollout has made."""
    wanted: int
    down: tuple[int, ...]
    """All of those wanted that are not ready."""
    rolling: bool
    """A rollout is not finished: groups of other revisions, or surge."""
    surge: bool = False
    """There are surge groups."""

    @classmethod
    def of(cls, played: Rollout, start: Start) -> _Before:
        if start.lws is None or start.workload is None:
            return cls(0, (), 0, (), False)
        view = played.view()
        wanted = spec.replicas(start.lws)
        growing = played.starting
        down = tuple(i for i in range(wanted) if not view[i].ready)
        unready = tuple(i for i in down if i not in growing)
        surge = len(start.groups) > wanted
        return cls(view.count(READY), unready, wanted, down, _rolls(view, len(start.groups), wanted), surge)


def _outcome(played: Rollout, leaders: LeaderBackend) -> tuple[Outcome, list[Notice]]:
    lws, workload = played.lws, played.workload
    assert lws is not None
    if played.refused:
        hint = "delete the set and create it anew, or undo the change"
        return Outcome.STALLED, [
            Notice("claims-immutable", f"the leader StatefulSet cannot be written: {played.refused}", (hint,))
        ]
    if workload is None:
        return Outcome.STALLED, [Notice("no-workload", "the manager makes no leader StatefulSet")]
    now, settings, view = leaders.observe(workload), arithmetic.Settings.of(lws), played.view()
    found = holds.find(now, view, settings)
    unready = [i for i in range(settings.replicas) if not view[i].ready]
    meta = lws["metadata"]
    told: list[Notice] = []
    if found is not None and found.cause is holds.Cause.UPDATING and not _rolls(view, now.replicas, settings.replicas):
        # Nothing is updated: what was not ready before the edit is only not ready.
        found = found if any(played.groups[i].made for i in unready if i in played.groups) else None
    if found is not None:
        advice = holds.advice(found, meta["name"], meta["namespace"])
        told.append(Notice(f"held-{found.cause.value}", holds.told(found, settings), advice))
    if unready and (found is None or found.cause is holds.Cause.PARTITION):
        are, them = ("is", "it") if len(unready) == 1 else ("are", "them")
        text = f"{numbered(unready)} {are} not ready, and nothing in this edit makes {them} anew"
        told.append(Notice("not-ready", text))
    if found is not None and found.cause is holds.Cause.PARTITION and not unready:
        return Outcome.HELD, told
    return (Outcome.STALLED, told) if told else (Outcome.DONE, told)


def _rolls(view: Groups, replicas: int, wanted: int) -> bool:
    """Whether a rollout is not finished: groups of other revisions, or surge."""
    return view.first(wanted).count(UPDATED) < wanted or replicas > wanted


def _surge(steps: Sequence[Step], settings: arithmetic.Settings, rolls: bool) -> list[Notice]:
    """What a partition does to surge: while there is one a rollout counts as going on (20 §6.4 case 3, §6.6)."""
    wanted, left = settings.replicas, steps[-1].total - settings.replicas if steps else 0
    if not settings.partition or not settings.max_surge:
        return []
    why = (
        f"while the partition is not 0, here {settings.partition}, a rollout counts as going on, and groups that are "
        "not ready or not updated call for surge"
    )
    if left > 0:
        stay = "1 surge group stays" if left == 1 else f"{left} surge groups stay"
        hint = "lower the partition to 0 in the end, or set maxSurge to 0 once the groups above it are updated"
        return [Notice("surge-stays", f"{stay}: {why}", (hint,))]
    if not rolls and any(o >= wanted for step in steps for o in step.up):
        text = f"surge groups are made although nothing is rolled out: {why}"
        return [
            Notice("surge-without-rollout", text, ("set the partition or maxSurge to 0 while nothing is rolled out",))
        ]
    return []


def _floor(
    steps: Sequence[Step], floor: int, before: _Before, old: Obj, new: Obj, settings: arithmetic.Settings
) -> list[Notice]:
    """Why fewer groups are ready than replicas − maxUnavailable: the documented cases that this edit is one of."""
    lowest = min((s.ready for s in steps), default=before.ready)
    if lowest >= floor:
        return []
    low = [s for s in steps if s.ready < floor]
    causes = _causes(low, any(s.down for s in steps), before, old, new, settings)
    there = "1 group is" if lowest == 1 else f"{lowest} groups are"
    text = f"at the lowest point {there} ready, fewer than replicas − maxUnavailable = {floor}"
    if not causes:
        return [Notice("floor-unexpected", f"{text}; none of the known cases explains that: please report it")]
    return [Notice(f"floor-{code}", f"{text}: {sentence}") for code, sentence in causes]


def _causes(
    low: Sequence[Step], rolls: bool, before: _Before, old: Obj, new: Obj, settings: arithmetic.Settings
) -> list[tuple[str, str]]:
    """The causes that fit; `low` are the steps at which too few groups are ready."""
    changed = edits.new_template(old, new)
    found: list[tuple[str, str]] = []
    if before.unready:
        are = "is" if len(before.unready) == 1 else "are"
        found.append(("unready-at-start", f"{numbered(before.unready)} {are} not ready to begin with"))
    if spec.size(old) == 1 and spec.size(new) > 1:
        text = "the size goes from 1 to more, and groups without workers do not count as ready until they are made anew"
        found.append(("size-from-one", text))
    if before.rolling and changed:
        found.append(("new-template", "a new template comes while surge or updated groups are among the ready ones"))
    if settings.replicas < before.wanted and (before.rolling or changed):
        found.append(("scale-down", "the set gets fewer groups while a rollout goes on"))
    if any(s.removed_ready and s.replicas >= settings.replicas for s in low) and (settings.max_surge or before.surge):
        found.append(("surge-reclaimed", "surge groups that are ready are given up while others are not ready"))
    if not changed and rolls and not before.rolling:
        text = "only what is copied into the leaders' template changes, so the StatefulSet paces the update by itself"
        found.append(("not-a-revision", f"{text}, with maxUnavailable + maxSurge at a time"))
    if before.down and not found:
        are = "is" if len(before.down) == 1 else "are"
        found.append(("unready-at-start", f"{numbered(before.down)} {are} not ready to begin with"))
    return found
