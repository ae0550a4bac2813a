"""Why a set is not where it should be, in one paragraph: what holds it, which pod, and what to do. Pure.

The manager's own decision (`ordinal.decide`) is asked what it would do now; `hold` tells what keeps a rollout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from lwskit.api import names
from lwskit.groups import explain_hash, grouptrouble, ordinal, revisions, rollout, spec, victims
from lwskit.groups import hold as holds
from lwskit.groups.explanation import Explanation, State, are, upper
from lwskit.groups.grouptrouble import GroupTrouble, Looking
from lwskit.groups.hold import Cause, Hold, numbered
from lwskit.groups.model import READY, UPDATED, DecisionError, Groups, LeaderState
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.groups.scene import Scene, owner_name
from lwskit.groups.setlook import SetLook
from lwskit.runtime.kinds import STATEFUL_SET
from lwskit.runtime.objects import controller_of, generation_of, is_deleting, uid_of
from lwskit.runtime.plan import Apply, NeedFresh, Plan


def explain(scene: Scene, leaders: LeaderBackend, workers: WorkerBackend, now: datetime) -> Explanation:
    """Why the set of the scene, which exists, is where it is, and which group would go next.

    `leaders` is the backend of the set's mode.
    """
    assert scene.lws is not None
    looking = Looking(scene, leaders, workers, now)
    known = explain_hash.Explaining if spec.is_hashed(scene.lws) else _Explaining
    found = _without_events(scene, known(scene, looking).explain())
    wanted, workload = spec.replicas(scene.lws), scene.workload
    if found.state is State.DELETING or found.cause == "foreign-workload" or workload is None:
        return found
    gone = victims.victims(scene.lws, workload, scene.pods, now, wanted - 1, sets=scene.between) if wanted else []
    return replace(found, replicas=wanted, next_to_go=tuple(gone))


def _without_events(scene: Scene, found: Explanation) -> Explanation:
    """The explanation, which says what it is made without."""
    if not scene.blind or found.state not in (State.PROGRESSING, State.BLOCKED):
        return found
    text = f"{upper(scene.blind)}: what could not be made, and groups that are recreated again and again, may be missed"
    return replace(found, sentences=(*found.sentences, f"{text}."))


class _Explaining(SetLook):
    @property
    def kind(self) -> str:
        return STATEFUL_SET.kind

    def explain(self) -> Explanation:
        for look in (self._deleting, self._foreign, self._manager, self._workload, self._decision):
            found = look()
            if found is not None:
                return found
        found = self._groups()
        return replace(found, sentences=(*found.sentences, *self._without_revision()))

    # The set and its workload -----------------------------------------------------------------------------------------

    def _deleting(self) -> Explanation | None:
        if not is_deleting(self.lws):
            return None
        meta, pods = self.lws["metadata"], len(self.scene.pods)
        finalizers = ", ".join(meta.get("finalizers") or ())
        there = f"{pods} pod{'' if pods == 1 else 's'} of it {'is' if pods == 1 else 'are'} still there"
        kept = f" It is kept by finalizer {finalizers}." if finalizers else ""
        text = f"{self._name} is being deleted since {meta['deletionTimestamp']}; {there}.{kept}"
        return self._said(State.DELETING, "deleting", text, waits="the garbage collector")

    def _foreign(self) -> Explanation | None:
        workload = self.scene.workload
        if workload is None:
            return None
        owner = controller_of(workload)
        if owner is not None and owner["uid"] == uid_of(self.lws):
            return None
        text = f"{self._there} belongs to {owner_name(workload)}, not to this set, which needs that name."
        if owner is not None and (owner["kind"], owner["name"]) == (names.KIND, self.scene.name):
            text = f"{self._there} belongs to an earlier set of this name, and is still being removed."
        return self._said(
            State.BLOCKED, "foreign-workload", text, advice=("remove that StatefulSet, or rename the set",)
        )

    def _manager(self) -> Explanation | None:
        """Whether the manager has acted on the set as it is, and what kept it from that."""
        seen = (self.lws.get("status") or {}).get("observedGeneration", 0)
        wanted = generation_of(self.lws)
        if seen >= wanted and self.scene.workload is not None:
            return None
        if self.scene.workload is None:
            missing = f"{self._name} has no {self._there}"
        else:
            missing = f"{self._name} is at generation {wanted}, of which the manager has acted on {seen or 'none'}"
        said = self.looking.failure(names.KIND, self.scene.name)
        if said:
            return self._said(State.BLOCKED, "not-written", f"{missing}: {said}.", advice=_about_writing(said))
        return self._said(
            State.BLOCKED,
            "no-manager",
            f"{missing}; if this stays so, the manager does not run or does not see the set.",
            waits="the manager",
        )

    def _decision(self) -> Explanation | None:
        """Whether the manager can decide, and has done what it decides."""
        snapshot = self.scene.snapshot(self.looking.leaders, self.looking.workers, self.looking.now)
        try:
            decision = ordinal.decide(snapshot, self.looking.leaders)
        except DecisionError as error:
            return self._said(State.BLOCKED, "no-decision", f"The manager cannot decide about {self._name}: {error}.")
        if isinstance(decision, NeedFresh):
            return None
        if decision.result.error is not None:
            return self._said(State.BLOCKED, "no-decision", f"The manager stops at {self._name}: {decision.note}.")
        return self._unwritten(decision)

    def _unwritten(self, plan: Plan) -> Explanation | None:
        workload = self.scene.workload
        assert workload is not None
        there = self.looking.leaders.observe(workload)
        for action in plan.actions:
            if not isinstance(action, Apply):
                continue
            wanted = self.looking.leaders.observe(action.obj)
            if _asked(wanted) == _asked(there):
                return None
            text = (
                f"The manager would now set partition {wanted.partition} and replicas {wanted.replicas} on StatefulSet "
                f"{self.scene.name}, which has {there.partition} and {there.replicas}: {plan.note}."
            )
            said = self.looking.failure(names.KIND, self.scene.name)
            if said:
                return self._said(
                    State.BLOCKED, "not-written", text, f"It could not: {said}.", advice=_about_writing(said)
                )
            return self._said(
                State.PROGRESSING,
                "not-written-yet",
                text,
                "If this stays so, the manager does not run.",
                waits="the manager",
            )
        return None

    # The groups -------------------------------------------------------------------------------------------------------

    def _groups(self) -> Explanation:
        workload = self.scene.workload
        assert workload is not None
        now = self.looking.leaders.observe(workload)
        state = self.scene.state(self.looking.leaders, self.looking.workers)
        groups = state.groups(now.revision, alone=spec.size(self.lws) == 1)
        settings = rollout.Settings.of(self.lws)
        found = holds.find(now, groups, settings)
        if found is not None:
            return self._held(found, groups, now, settings)
        unready = _unready(groups, settings.replicas)
        if unready:
            return self._unready(unready, groups, settings)
        if now.replicas > settings.replicas or now.status_replicas > settings.replicas:
            text = f"{self._counts(groups, settings)}; surge groups are still being removed."
            return self._said(State.PROGRESSING, "surge", text, waits="the StatefulSet controller")
        counts = f"{self._counts(groups, settings)}."
        if pending := self._put_off(now):
            return self._said(
                State.PROGRESSING,
                pending[0].trouble.code,
                counts,
                *self._waiting(pending),
                waits="the back-off",
                about=pending[0],
            )
        return self._said(State.OK, "ok", f"{counts} All is well.")

    def _without_revision(self) -> Iterator[str]:
        """Of groups of older revisions that somebody has deleted: nothing is wrong until one of them is recreated."""
        known = {revisions.revision_key(r) for r in revisions.own(self.lws, self.scene.revisions)}
        if self.looking.newest() not in known:
            return
        for key, groups in self.looking.by_revision().items():
            if key not in known:
                are, one = ("is", "it") if len(groups) == 1 else ("are", "one of them")
                yield (
                    f"Revision {key}, which {numbered(groups)} {are} of, has been deleted: if {one} is recreated "
                    "before it is updated, it gets no workers."
                )

    def _put_off(self, now: LeaderState) -> list[GroupTrouble]:
        """The groups that are ready and will be recreated all the same, once their back-off is over."""
        return list(grouptrouble.put_off(self.looking, range(now.replicas)))

    def _waiting(self, pending: list[GroupTrouble]) -> Iterator[str]:
        for found in pending[:_SHOWN]:
            yield f"Group {found.group} is ready and will be recreated all the same."
            yield from self._about(found)
        if len(pending) > _SHOWN:
            yield f"So it is with {len(pending) - _SHOWN} more."

    def _held(self, hold: Hold, groups: Groups, now: LeaderState, settings: rollout.Settings) -> Explanation:
        if hold.cause is Cause.UPDATING and grouptrouble.outlived(self.looking, hold.group):
            hold = holds.replacing(now, groups, settings, hold.group)
        counts = f"{self._counts(groups, settings)}; the partition is {now.partition}."
        told = f"{upper(holds.told(hold, settings))}."
        match hold.cause:
            case Cause.UPDATING:
                return self._updating(hold, groups, settings, counts)
            case Cause.REPLACING:
                down = [i for i in range(now.replicas) if i != hold.group and not groups[i].ready]
                about = grouptrouble.first(self.looking, down)
                more = tuple(self._about(about)) if about is not None else ()
                state = State.BLOCKED if hold.below else self._state_of(about)
                advice = holds.advice(hold, self.scene.name, self.scene.namespace) if state is State.BLOCKED else ()
                waits = "the StatefulSet controller"
                return self._said(state, "replacing", counts, told, *more, waits=waits, advice=advice, about=about)
            case Cause.PARTITION:
                unready = _unready(groups, settings.replicas)
                about = grouptrouble.first(self.looking, unready)
                advice = holds.advice(hold, self.scene.name, self.scene.namespace)
                state = State.BLOCKED if about is not None and not about.trouble.passes else State.HELD
                more = self._about(about) if about is not None else self._waiting(self._put_off(now))
                return self._said(state, "partition", counts, told, *more, advice=advice, about=about)
            case Cause.FORMULA:
                about = grouptrouble.first(self.looking, hold.below)
                more = tuple(self._about(about)) if about is not None else ()
                about = about or GroupTrouble(hold.below[0], "", _NOTHING)
                waits = f"{numbered(hold.below)} to become ready"
                advice = holds.advice(hold, self.scene.name, self.scene.namespace)
                return self._said(
                    State.BLOCKED, "formula-hold", counts, told, *more, waits=waits, advice=advice, about=about
                )
            case Cause.BUDGET:
                advice = holds.advice(hold, self.scene.name, self.scene.namespace)
                return self._said(State.BLOCKED, "no-budget", counts, told, advice=advice)

    def _updating(self, hold: Hold, groups: Groups, settings: rollout.Settings, counts: str) -> Explanation:
        """A group that the update has reached and that is not ready."""
        about = grouptrouble.of(self.looking, hold.group)
        if about is None:
            text = f"{upper(holds.told(hold, settings))}."
            return self._said(State.PROGRESSING, "rolling", counts, text, waits=f"group {hold.group} to become ready")
        what = "the rollout" if self._is_rolling(groups, settings) else "the set"
        if about.trouble.passes:
            return self._troubled(about, counts, f"{upper(what)} waits for group {hold.group}, which is on its way.")
        return self._troubled(about, counts, f"Group {hold.group} holds {what}.")

    def _unready(self, unready: list[int], groups: Groups, settings: rollout.Settings) -> Explanation:
        about = grouptrouble.first(self.looking, unready)
        counts = f"{self._counts(groups, settings)}."
        if about is None:
            text = f"{upper(numbered(unready))} {'is' if len(unready) == 1 else 'are'} not ready."
            return self._said(State.PROGRESSING, "not-ready", counts, text, waits="it to become ready")
        others = len(unready) - 1
        rest = f" ({others} more are not ready either)" if others else ""
        return self._troubled(about, counts, f"Group {about.group} is not ready{rest}.")

    def _troubled(self, about: GroupTrouble, counts: str, sentence: str) -> Explanation:
        """What is the matter with one group, which has to become ready."""
        passes = f"It goes on by itself once group {about.group} is ready." if about.trouble.passes else ""
        return self._said(
            self._state_of(about),
            about.trouble.code,
            counts,
            sentence,
            *self._about(about),
            passes,
            waits=f"group {about.group} to become ready",
            advice=about.advice,
            about=about,
        )

    # Words ------------------------------------------------------------------------------------------------------------

    def _counts(self, groups: Groups, settings: rollout.Settings) -> str:
        ready, wanted = groups.count(READY), settings.replicas
        workload = self.scene.workload
        # One that is being recreated is missing for a moment.
        asked = self.looking.leaders.observe(workload).replicas if workload is not None else 0
        updated, surge = groups.count(UPDATED), max(len(groups), asked, wanted) - wanted
        there = f"{wanted} groups"
        if surge:
            there = f"{wanted + surge} groups ({wanted} wanted, {surge} surge)"
        return f"{self._name}: {ready} of {there} {are(ready)} ready; {updated} {are(updated)} of the newest revision"

    def _about(self, found: GroupTrouble) -> Iterator[str]:
        pod = f"Pod {found.pod} " if found.pod else ""
        yield f"{upper(found.sentence or pod + found.trouble.text)}."

    def _state_of(self, about: GroupTrouble | None) -> State:
        return State.PROGRESSING if about is None or about.trouble.passes else State.BLOCKED

    def _is_rolling(self, groups: Groups, settings: rollout.Settings) -> bool:
        return groups.first(settings.replicas).count(UPDATED) < settings.replicas


def _unready(groups: Groups, wanted: int) -> list[int]:
    """The groups that are not ready, or not to be counted on: what has used up its restarts may still look ready."""
    return [i for i in range(wanted) if not groups[i].ready or groups[i].exhausted]


def _asked(workload: LeaderState) -> tuple[int, int, str]:
    return workload.partition, workload.replicas, workload.revision


_SHOWN = 5
"""Of how many groups that wait for the same each is told."""
_NOTHING = grouptrouble.Trouble("not-ready", "")


def _about_writing(said: str) -> tuple[str, ...]:
    """What can be done about a write that the API server refuses."""
    if "updates to statefulset spec" in said or "spec.volumeClaimTemplates" in said:
        return (
            "a StatefulSet's volumeClaimTemplates cannot be changed: undo that change, or delete the set and create it "
            "anew",
        )
    return ()
