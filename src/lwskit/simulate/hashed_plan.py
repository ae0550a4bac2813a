"""The plan for an edit of a set in Hash mode, and for a group of one that is recreated. Pure.

Specification: 30 §7, §13, §14.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lwskit.api import names
from lwskit.groups import spec, templates, victims
from lwskit.groups.model import DecisionError
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.groups.scene import Scene
from lwskit.runtime.deployment_sizes import max_unavailable
from lwskit.runtime.objects import Obj, is_deleting, uid_of
from lwskit.simulate import edit as edits
from lwskit.simulate import hashed_restart
from lwskit.simulate import order as orders
from lwskit.simulate.edit import Verdict
from lwskit.simulate.hashed_restart import RECREATED, Fate
from lwskit.simulate.hashed_rollout import HashRollout, HashStep
from lwskit.simulate.hashed_start import Start, observe, template_of
from lwskit.simulate.report import ENOUGH, THE_EDIT, Notice, Outcome, Report, scaled_down

SHOWN = 3
"""Groups that are named one by one."""
_DEADLINE = 600
"""Seconds of `progressDeadlineSeconds` where nobody has set it."""


def plan(
    scene: Scene, new: Obj, ready_order: str, leaders: LeaderBackend, workers: WorkerBackend, now: datetime
) -> Report:
    """The plan for storing `new`, a set with its defaults, in the scene; `ready_order` as for `order.parse`."""
    start = observe(scene, leaders, workers, now)
    return _Planning(scene, start, new, ready_order, leaders, now).report()


def restarted(
    scene: Scene, name: str, ready_order: str, leaders: LeaderBackend, workers: WorkerBackend, now: datetime
) -> Report:
    """The plan for recreating the group of the leader with that name, of a set that exists, as the failure of one of
    its pods does. Raises DecisionError for a group that goes already or is not the set's."""
    start = observe(scene, leaders, workers, now)
    assert start.lws is not None
    found = next((one for one in start.groups if one.name == name), None)
    if found is not None and found.kept:
        raise DecisionError(hashed_restart.kept_already(start.lws, found.pod))
    if found is None or not found.alive:
        raise DecisionError(f"no group of {scene.namespace}/{scene.name} that is there to stay is led by {name}")
    return _Planning(scene, start, start.lws, ready_order or orders.LOWEST, leaders, now).restarted(name)


class _Planning:
    def __init__(
        self, scene: Scene, start: Start, new: Obj, ready_order: str, leaders: LeaderBackend, now: datetime
    ) -> None:
        self.scene, self.start, self.old, self.new = scene, start, start.lws, new
        self.ready_order, self.leaders, self.now = ready_order, leaders, now
        self.played = HashRollout(start, leaders, now)
        self.before = self.played.fleet.room
        self.ready_before = self.played.fleet.ready
        self.was_rolling = self.played.fleet.is_rolling()
        self.unready = [g.name for g in self.played.fleet.groups.values() if g.kept or (g.alive and not g.ready)]

    def report(self) -> Report:
        old, new = self.old, self.new
        steps: list[HashStep] = []
        try:
            play(self.played, new, self.ready_order, steps)
            outcome, ends = self._outcome()
        except DecisionError as error:
            outcome, ends = Outcome.STALLED, [Notice("no-decision", str(error))]
        changed = edits.differences(old, new) if old is not None else []
        rolls = old is not None and (edits.new_template(old, new) or template_of(old, "") != template_of(new, ""))
        before, after = spec.replicas(old) if old is not None else 0, spec.replicas(new)
        rolled = min(self._anew(after), before, after) if rolls else 0
        floor = None
        notices = self._notices()
        if old is not None and self.start.workload is not None:
            floor = max(0, min(before, after) - max_unavailable(self._rendered()))
            notices += self._floor(steps, floor, changed)
        notices += [*_chance(steps), *_close_calls(steps)]
        worst = self._at_worst() if rolls and self.start.workload is not None else None
        total, pods = self.before
        return Report(
            namespace=self.scene.namespace,
            name=self.scene.name,
            verdict=edits.classify(old, new, changed, int(rolls)),
            rolled=rolled,
            changed=tuple(changed),
            assumed=orders.told(self.ready_order, hashed=True),
            hash_steps=() if len(steps) == 1 and not steps[0].moves else tuple(steps),
            outcome=outcome,
            replicas=after,
            ready_before=self.ready_before,
            groups_before=total,
            pods_before=pods,
            wanted_before=before,
            floor=floor,
            at_worst=worst,
            notices=(*notices, *ends),
        )

    def restarted(self, name: str) -> Report:
        """What follows when a pod of a group fails."""
        steps: list[HashStep] = []
        worst: list[HashStep] = []
        fate = hashed_restart.fate(self.scene, self.new, self.played.fleet.groups[name].pod, self.now)
        if not fate.left:
            restart(self.played, name, self.ready_order, steps, fate)
            restart(HashRollout(self.start, self.leaders, self.now), name, orders.NEVER, worst, fate)
        outcome, ends = self._outcome()
        total, pods = self.before
        return Report(
            namespace=self.scene.namespace,
            name=self.scene.name,
            verdict=Verdict.RESTARTS,
            restarted=name,
            restarts_as=fate.word,
            assumed=orders.told(self.ready_order, hashed=True),
            hash_steps=tuple(steps),
            outcome=Outcome.STALLED if fate.left else outcome,
            replicas=spec.replicas(self.new),
            ready_before=self.ready_before,
            groups_before=total,
            pods_before=pods,
            at_worst=min([self.ready_before, *(s.ready for s in worst)]),
            notices=(*self._loose(), *fate.notices, *ends),
        )

    def _anew(self, wanted: int) -> int:
        """How many groups of the template in the end are made by the plan, but for those that are more than wanted."""
        fleet = self.played.fleet
        staying = [one for one in fleet.groups.values() if one.alive]
        made = sum(one.number > 0 and one.set_uid == fleet.newest for one in staying)
        return max(0, made - max(0, len(staying) - wanted))

    def _rendered(self) -> Obj:
        return self.leaders.render(templates.hashed_leader_plan(self.new, ""))

    def _at_worst(self) -> int | None:
        """The fewest ready groups if no group becomes ready any more, as with an image that cannot be had."""
        steps: list[HashStep] = []
        try:
            play(HashRollout(self.start, self.leaders, self.now), self.new, orders.NEVER, steps)
        except DecisionError:
            return None
        return min([self.ready_before, *(s.ready for s in steps)])

    def _notices(self) -> list[Notice]:
        """What is to be known before the steps."""
        found: list[Notice] = []
        scene, old, new = self.scene, self.old, self.new
        workload = scene.workload
        if old is None or workload is None:
            return found
        if is_deleting(workload):
            text = f"{workload.get('kind', 'Deployment')} {scene.name} is being deleted: the plan begins after"
            return [Notice("workload-deleting", text)]
        found += self._loose()
        before, after = spec.replicas(old), spec.replicas(new)
        if after < before:
            gone = victims.victims(old, workload, scene.pods, self.now, after, sets=scene.between)
            found.append(scaled_down(before, after, gone))
        seconds = workload["spec"].get("minReadySeconds", 0)
        if seconds:
            text = (
                f"Deployment {scene.name} has minReadySeconds {seconds}, which is not from the set: each group counts "
                f"as available {seconds} s after it is ready, and the steps come so much later"
            )
            found.append(Notice("min-ready-seconds", text))
        return found

    def _loose(self) -> list[Notice]:
        """Leaders that are not counted."""
        loose = self.start.loose
        if not loose:
            return []
        they, are, them = ("it", "is", "it") if len(loose) == 1 else ("they", "are", "them")
        text = (
            f"no ReplicaSet counts {_named(loose)}, so {they} {are} not among the groups of the plan; nobody removes "
            f"{them}"
        )
        command = f"kubectl -n {self.scene.namespace} delete pod {' '.join(loose[:SHOWN])}"
        return [Notice("leader-let-go", text, (f"`{command}`, once you are done with {them}",))]

    def _outcome(self) -> tuple[Outcome, list[Notice]]:
        """Where the steps end."""
        fleet = self.played.fleet
        groups = list(fleet.groups.values())
        told: list[Notice] = []
        rolling, workload = fleet.is_rolling(), fleet.workload
        unready = [g.name for g in groups if g.alive and not g.ready and not g.gated and not g.kept]
        waiting, kept = [g.name for g in fleet.gated], [g.name for g in groups if g.kept]
        if workload is not None and workload["spec"].get("paused") and (rolling or not fleet.newest):
            text = f"Deployment {self.scene.name} is paused, so it makes no group of another template"
            command = f"kubectl -n {self.scene.namespace} rollout resume deployment {self.scene.name}"
            told.append(Notice("held-paused", text, (f"`{command}` lets it go on",)))
        for one in (s for s in fleet.sets.values() if is_deleting(s)):
            left = [g.name for g in groups if g.set_uid == uid_of(one)]
            text = (
                f"ReplicaSet {one['metadata']['name']} is being deleted, and stays until {_named(left)} "
                f"{'is' if len(left) == 1 else 'are'} gone; until then the Deployment makes no leader of its template"
            )
            told.append(Notice("replica-set-deleting", text))
        if unready and rolling:
            text = (
                f"the rollout waits for {_named(unready)}: until {_it(unready)} ready, the Deployment takes away no "
                "further group that is"
            )
            told.append(Notice("held-readiness", text, self._deadline()))
        elif unready:
            are = "is" if len(unready) == 1 else "are"
            made = any(g.made for g in groups if g.name in unready)
            more = "" if made else f", and nothing in this edit makes {'it' if len(unready) == 1 else 'them'} anew"
            told.append(Notice("not-ready", f"{_named(unready)} {are} not ready{more}"))
        if kept:
            are = "is" if len(kept) == 1 else "are"
            wait = f"; {_named(waiting)} {'waits' if len(waiting) == 1 else 'wait'} at the gate for that"
            text = f"{_named(kept)} {are} kept without a restart left{wait if waiting else ''}"
            command = f"kubectl -n {self.scene.namespace} annotate pod {kept[0]} {names.RECOVER_ANNOTATION}=true"
            told.append(Notice("held-restart-budget", text, (f"`{command}` gives the group a fresh budget",)))
        elif waiting:
            verb = "waits" if len(waiting) == 1 else "wait"
            text = f"{_named(waiting)} {verb} at the gate: {self.played.why_gated()}"
            told.append(Notice("held-gate", text, (self._about_gate(),)))
        return (Outcome.STALLED, told) if told else (Outcome.DONE, told)

    def _about_gate(self) -> str:
        """What lets in the first leader that waits."""
        first = self.played.fleet.gated[0]
        if first.set_uid != self.played.fleet.newest:
            return (
                f"{first.name} is of a template that is replaced: it is let in if you go back to that one, and goes "
                "when the update goes on"
            )
        command = f"lwskit explain {self.scene.name} -n {self.scene.namespace}"
        return f"once that is how it stands, `{command}` names the pods that are waited for"

    def _deadline(self) -> tuple[str, ...]:
        workload = self.scene.workload
        seconds = _DEADLINE if workload is None else workload["spec"].get("progressDeadlineSeconds", _DEADLINE)
        if seconds >= 2**31 - 1:
            return ()
        return (
            f"after {seconds} s without progress Deployment {self.scene.name} says ProgressDeadlineExceeded, and goes "
            "on all the same once a group is ready",
        )

    def _floor(self, steps: Sequence[HashStep], floor: int, changed: Sequence[str]) -> list[Notice]:
        """Why fewer groups are ready than replicas − maxUnavailable."""
        lowest = min([self.ready_before, *(s.ready for s in steps)])
        if lowest >= floor:
            return []
        assert self.old is not None
        there = "1 group is" if lowest == 1 else f"{lowest} groups are"
        text = f"at the lowest point {there} ready, fewer than replicas − maxUnavailable = {floor}"
        causes: list[tuple[str, str]] = []
        if self.unready:
            are = "is" if len(self.unready) == 1 else "are"
            causes.append(("unready-at-start", f"{_named(self.unready)} {are} not ready to begin with"))
        if spec.replicas(self.new) < spec.replicas(self.old) and (self.was_rolling or len(changed) > 1):
            causes.append(("scale-down", "the set gets fewer groups while a rollout goes on"))
        if not causes and self.ready_before < floor:
            causes.append(("unready-at-start", f"no more than {self.ready_before} are ready to begin with"))
        if not causes:
            return [Notice("floor-unexpected", f"{text}; no known case explains that: please report it")]
        return [Notice(f"floor-{code}", f"{text}: {sentence}") for code, sentence in causes]


def _chance(steps: Sequence[HashStep]) -> list[Notice]:
    """Which groups go that might as well be others."""
    open_ = [one.name for step in steps for one in step.down if not one.sure]
    if not open_ or not any(one.number <= 0 and not one.going for one in steps[-1].groups):
        # Where all that were there go, it is only a matter of when.
        return []
    text = (
        f"that it is {_named(open_)} hangs on age or chance: where groups serve alike, another one may go in its place"
    )
    return [Notice("any-alike", text)]


def _close_calls(steps: Sequence[HashStep]) -> list[Notice]:
    """Where it hangs on the moment whether leaders wait at their gate."""
    found: list[Notice] = []
    for number, step in enumerate(steps, 1):
        if not step.either:
            continue
        sizes = {one.name: one.size for one in step.groups}
        groups, pods = step.total + len(step.either), step.pods + sum(sizes[name] for name in step.either)
        text = (
            f"at step {number} {_named(step.either)} may be let in before the groups that go then are seen to go; "
            f"{groups} groups, {pods} pods would take room until these are gone"
        )
        found.append(Notice("gate-close-call", text))
    return found


def play(played: HashRollout, new: Obj, ready_order: str, steps: list[HashStep]) -> None:
    """Store a set, and let groups be gone and become ready in the order, to the end. Adds the steps.

    Raises DecisionError.
    """
    played.edit(new)
    steps.append(played.settle(THE_EDIT))
    follow(played, ready_order, steps)


def restart(played: HashRollout, name: str, ready_order: str, steps: list[HashStep], fate: Fate = RECREATED) -> None:
    """Recreate a group, or keep it, as its fate is, and let groups be gone and become ready in the order, to the end.
    Adds the steps.

    Raises DecisionError.
    """
    steps.append(played.settle(f"{name} {fate.event}", name, kept=fate.kept))
    follow(played, ready_order, steps)


def follow(played: HashRollout, ready_order: str, steps: list[HashStep]) -> None:
    """Let groups be gone and become ready in the order, to the end. Adds the steps. Raises DecisionError."""
    choose = orders.parse(ready_order)
    while len(steps) < ENOUGH:
        if played.going:
            gone = played.end()
            steps.append(played.settle(f"{_named(gone)} {'is' if len(gone) == 1 else 'are'} gone"))
            continue
        pending = played.pending
        chosen = choose(pending) if pending else ()
        if not chosen:
            return
        ready = played.make_ready(*chosen)
        steps.append(played.settle(f"{_named(ready)} {'is' if len(ready) == 1 else 'are'} ready"))


def _named(groups: Sequence[str]) -> str:
    """Groups in words."""
    shown = ", ".join(groups[:SHOWN])
    return f"{shown} and {len(groups) - SHOWN} more" if len(groups) > SHOWN else shown


def _it(groups: Sequence[str]) -> str:
    return "it is" if len(groups) == 1 else "they are"
