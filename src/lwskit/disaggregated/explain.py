"""Why a DisaggregatedSet is not where it should be: which slice, role and child hold it, and why that is so. Pure.

The manager's own decision (`decide`) is asked what it would do now; what holds a child, `groups.explain` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated import scale, scaling, spec
from lwskit.disaggregated.children import name_of, refusal
from lwskit.disaggregated.decide import decide
from lwskit.disaggregated.family import Family, LeadersOf
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.disaggregated.model import Child, Pass, SlicePlan, Snapshot
from lwskit.disaggregated.readiness import is_observed
from lwskit.disaggregated.revision import resolve
from lwskit.disaggregated.spec import SetSpec
from lwskit.groups.explain import explain as explain_child
from lwskit.groups.explanation import Explanation, State, are, quoted, upper
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError
from lwskit.groups.ports import WorkerBackend
from lwskit.groups.scene import owner_name
from lwskit.runtime.objects import Obj, generation_of, is_controlled_by, is_deleting, labels_of
from lwskit.runtime.plan import AnyAction, Create, Emit, Patch


@dataclass(frozen=True, slots=True, kw_only=True)
class SetExplanation(Explanation):
    """Why a DisaggregatedSet is where it is. `group` and `pod` are those of the child that holds it."""

    slice: int | None = None
    role: str = ""
    revision: str = ""
    child: str = ""
    """The LeaderWorkerSet that holds it, by its name."""


def explain(family: Family, leaders_of: LeadersOf, workers: WorkerBackend, now: datetime) -> SetExplanation:
    """Why the set of the family, which exists, is where it is."""
    return _Explaining(family, leaders_of, workers, now).explain()


class _Explaining:
    def __init__(self, family: Family, leaders_of: LeadersOf, workers: WorkerBackend, now: datetime) -> None:
        assert family.ds is not None
        self.family, self.ds = family, family.ds
        self._leaders_of, self._workers, self._now = leaders_of, workers, now
        self.revision = resolve(self.ds, family.own).revision

    def explain(self) -> SetExplanation:
        found = self._deleting()
        if found is not None:
            return found
        snapshot = self.family.snapshot(self._leaders_of, self._workers, self._now)
        try:
            asked, decision = spec.read(self.ds), decide(snapshot)
        except DecisionError as error:
            return self._said(State.BLOCKED, "no-decision", f"The manager cannot decide about {self._name}: {error}.")
        found = (
            self._scalers(asked)
            or self._foreign(decision)
            or self._manager(decision)
            or self._slices(snapshot, decision)
            or self._assignment()
        )
        if found is not None:
            return found
        text = f"{self._counts(asked)}. All is well."
        return self._said(State.OK, "ok", text)

    # The set ----------------------------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return f"{self.family.namespace}/{self.family.name}"

    def _said(
        self, state: State, cause: str, *sentences: str, waits: str = "", advice: tuple[str, ...] = ()
    ) -> SetExplanation:
        told = tuple(s for s in sentences if s)
        if self.family.blind and state in (State.PROGRESSING, State.BLOCKED):
            told = (*told, f"{upper(self.family.blind)}: why something could not be written may be missed.")
        return SetExplanation(
            namespace=self.family.namespace,
            name=self.family.name,
            state=state,
            cause=cause,
            sentences=told,
            waits_for=waits,
            advice=advice,
            revision=self.revision,
        )

    def _counts(self, asked: SetSpec) -> str:
        """How many groups of each role are ready, over all slices and revisions."""
        rows = {row["name"]: row for row in (self.ds.get("status") or {}).get("roleStatuses") or ()}
        told = [
            f"{role.name} has {rows.get(role.name, {}).get('readyReplicas', 0)} of "
            f"{rows.get(role.name, {}).get('desiredReplicas', 0)} groups ready"
            for role in asked.roles
        ]
        return f"{self._name} is at revision {self.revision}: {', '.join(told)}"

    def _deleting(self) -> SetExplanation | None:
        if not is_deleting(self.ds):
            return None
        meta, left = self.ds["metadata"], len(self.family.own)
        finalizers = ", ".join(meta.get("finalizers") or ())
        kept = f" It is kept by finalizer {finalizers}." if finalizers else ""
        there = f"{left} LeaderWorkerSet{'' if left == 1 else 's'} of it {are(left)} still there"
        text = f"{self._name} is being deleted since {meta['deletionTimestamp']}; {there}.{kept}"
        return self._said(State.DELETING, "deleting", text, waits="the garbage collector")

    def _manager(self, decision: Pass) -> SetExplanation | None:
        """Whether the manager has acted on the set as it is."""
        seen, wanted = (self.ds.get("status") or {}).get("observedGeneration", 0), generation_of(self.ds)
        if seen >= wanted and not decision.stop:
            return None
        if decision.stop:
            missing = f"{self._name} has nothing yet, not even the mark that the manager begins with"
        else:
            missing = f"{self._name} is at generation {wanted}, of which the manager has acted on {seen or 'none'}"
        text = f"{missing}; if this stays so, the manager does not run or does not see the set."
        return self._said(State.BLOCKED, "no-manager", text, waits="the manager")

    def _scalers(self, asked: SetSpec) -> SetExplanation | None:
        """Roles that others scale, and whose scaler cannot be had: then no group is changed."""
        staying = [child for child in self.family.own if not child.is_terminating]
        found = scaling.decide(self.ds, asked, staying, self.family.scalers)
        if not found.targets.unresolved:
            return None
        there = {scaler["metadata"]["name"]: scaler for scaler in self.family.scalers}
        listed = ", ".join(str(part) for part in found.targets.unresolved)
        begin = f"{self._name} changes no group, since it is not known how many {listed} should have."
        for part in found.foreign:
            name = scaling.name_of(self.family.name, part)
            text = f"{names.SCALER_KIND} {name} belongs to {owner_name(there[name])}, not to this set, which needs it."
            advice = (f"delete that scaler, or rename role {part}; the manager makes its own at once",)
            return self._said(State.BLOCKED, "scaler-conflict", begin, text, waits="the scaler's name", advice=advice)
        too_large = found.targets.too_large
        for part in found.targets.unresolved:
            name = scaling.name_of(self.family.name, part)
            if name in there and part.role not in too_large:
                text = f"{names.SCALER_KIND} {name} is being deleted; the manager makes a new one when it is gone."
                return self._said(State.PROGRESSING, "scaler-deleting", begin, text, waits="the scaler to be gone")
        told = [f"{upper(sentence)}." for sentence in (*map(scaling.said_of_sum, too_large.items()), *found.faults)]
        advice = tuple(f"ask for fewer in role {role}" for role in too_large)
        return self._said(State.BLOCKED, "unresolved", begin, *told, advice=advice)

    def _foreign(self, decision: Pass) -> SetExplanation | None:
        """A LeaderWorkerSet of somebody else in the place of a child, or another reason why a slice fails."""
        for one in decision.slices:
            if not one.error:
                continue
            found = self._in_place(one.slice)
            if found is None:
                text = f"The manager stops at slice {one.slice} of {self._name}: {one.error}."
                return self._about(self._said(State.BLOCKED, "no-decision", text), slice=one.slice)
            obj, role = found
            name = obj["metadata"]["name"]
            text = (
                f"{base.KIND} {name} belongs to {owner_name(obj)}, not to {self._name}, which needs that name for role "
                f"{role} of slice {one.slice}."
            )
            advice = (f"remove it: `kubectl -n {self.family.namespace} delete leaderworkerset {name}`",)
            said = self._said(State.BLOCKED, "foreign-child", text, waits="the name", advice=advice)
            return self._about(said, slice=one.slice, role=role, child=name)
        return None

    def _in_place(self, index: int) -> tuple[Obj, str] | None:
        there = {obj["metadata"]["name"]: obj for obj in self.family.children}
        for role in spec.read(self.ds).roles:
            obj = there.get(name_of(self.family.name, index, self.revision, role.name))
            if obj is not None and not is_controlled_by(obj, DISAGGREGATED_SET, self.ds["metadata"]["uid"]):
                return obj, role.name
        return None

    def _assignment(self) -> SetExplanation | None:
        found = next(
            (c for c in (self.ds.get("status") or {}).get("conditions") or () if _is_unassigned(c)),
            None,
        )
        if found is None:
            return None
        text = f"Groups of {self._name} have no sub-role that is known yet: {quoted(found.get('message', ''))}."
        return self._said(State.PROGRESSING, "unassigned", text, waits="groups to get their sub-roles")

    def _slices(self, snapshot: Snapshot, decision: Pass) -> SetExplanation | None:
        """The first slice that goes on only if somebody does something, else the first that is on its way."""
        found = [f for one in decision.slices if (f := self._slice(snapshot, one)) is not None]
        return min(found, key=lambda f: f.state is not State.BLOCKED, default=None)

    # One slice --------------------------------------------------------------------------------------------------------

    def _slice(self, snapshot: Snapshot, one: SlicePlan) -> SetExplanation | None:
        """Why a slice is not where it should be; None if it is."""
        children = [c for c in self.family.own if c.slice == one.slice]
        going = [c for c in children if c.is_terminating]
        old = [c for c in children if c.revision != self.revision and not c.is_terminating]
        current = [c for c in children if c.revision == self.revision and not c.is_terminating]
        begin = self._begin(one.slice, old, current)
        writes = [action for action in one.plan.actions if not isinstance(action, Emit)]
        blocking = [c for c in going if c.revision == self.revision]
        if blocking:
            return self._terminating(one, begin, blocking[0])
        for child in current:
            if child.has_pending_scale_down and old and not snapshot.readiness[child.uid].settled:
                return self._unsettled(one, begin, child)
        for child in (*current, *old):
            if not snapshot.readiness[child.uid].known:
                return self._unknown(one, begin, child)
        if writes:
            return self._refused(one, begin, writes) or self._unwritten(one, begin, writes)
        held = self._held(snapshot, current)
        if held is not None:
            return self._holding(one, begin, snapshot, held, rolls=bool(old))
        if old:
            return self._about(
                self._said(State.PROGRESSING, "rolling", begin, f"{upper(one.plan.note)}."), slice=one.slice
            )
        return None

    def _begin(self, index: int, old: list[Child], current: list[Child]) -> str:
        """Where a slice is: at a revision, or between some, with the groups of each role."""
        of = f"Slice {index} of {self._name}"
        if not old:
            return f"{of} is at revision {self.revision}."
        revisions = ", ".join(sorted({child.revision for child in old}))
        wanted = [role["name"] for role in self.ds["spec"]["roles"]]
        there = {child.role for child in (*current, *old)}
        roles = [*(role for role in wanted if role in there), *sorted(there - {*wanted})]
        told = [
            f"{role} {sum(c.replicas for c in old if c.role == role)} old and "
            f"{sum(c.replicas for c in current if c.role == role)} new"
            for role in roles
        ]
        return f"{of} rolls from revision {revisions} to {self.revision}: {', '.join(told)}."

    def _terminating(self, one: SlicePlan, begin: str, child: Child) -> SetExplanation:
        meta = child.obj["metadata"]
        finalizers = ", ".join(meta.get("finalizers") or ())
        kept = f", kept by finalizer {finalizers}" if finalizers else ""
        text = (
            f"{base.KIND} {child.name} is being deleted since {meta['deletionTimestamp']}{kept}; role {child.role} "
            "gets another one when its name is free."
        )
        said = self._said(State.PROGRESSING, "child-deleting", begin, text, waits=f"{child.name} to be gone")
        return self._about(said, slice=one.slice, role=child.role, child=child.name)

    def _unsettled(self, one: SlicePlan, begin: str, child: Child) -> SetExplanation:
        text = f"It waits because {scale.unsettled(child)}: groups that it gave up may still be on their way out."
        return self._with_child("scale-down-unsettled", one, begin, child, text, waits="the scale-down to be over")

    def _unknown(self, one: SlicePlan, begin: str, child: Child) -> SetExplanation:
        scene = self.family.scenes.get(child.name)
        workload = scene.workload if scene is not None else None
        state = self._leaders_of(child.obj).observe(workload) if workload is not None else None
        behind = "" if is_observed(child, state) else ": what it was asked for last has not been seen to yet"
        text = f"It is not known how many groups of {base.KIND} {child.name} are ready{behind}."
        return self._with_child("readiness-unknown", one, begin, child, text, waits="its groups to be counted")

    def _unwritten(self, one: SlicePlan, begin: str, writes: Sequence[AnyAction]) -> SetExplanation:
        """What the manager would do now: on its way within a second, unless something keeps it."""
        text = f"The manager would act now: {'; '.join(dict.fromkeys(action.why for action in writes))}."
        said = self._said(State.PROGRESSING, "not-written-yet", begin, text, waits="the manager")
        return self._about(said, slice=one.slice)

    def _refused(self, one: SlicePlan, begin: str, writes: Sequence[AnyAction]) -> SetExplanation | None:
        """Why a child could not be made or changed when the manager last tried, if an event of the set says so."""
        for action in writes:
            match action:
                case Create(kind=kind, obj=child) if kind == LEADER_WORKER_SET:
                    what = f"has no {base.KIND} of revision {self.revision}"
                case Patch(kind=kind, key=key) if kind == LEADER_WORKER_SET:
                    scene = self.family.scenes.get(key.name)
                    child = scene.lws if scene is not None else None
                    what = f"needs a change of {base.KIND} {key.name} that is refused"
                case _:
                    continue
            if child is None:
                continue
            name, role = child["metadata"]["name"], labels_of(child)[names.ROLE_LABEL]
            if said := refusal(self.family.happenings, name):
                text = f"Role {role} {what}. {said}."
                why = self._said(State.BLOCKED, "child-refused", begin, text, waits="the set to be mended")
                return self._about(why, slice=one.slice, role=role, child=name)
        return None

    def _held(self, snapshot: Snapshot, current: list[Child]) -> Child | None:
        """The child that lacks most ready groups; before others one that goes on only if somebody does something."""

        def urgency(child: Child) -> tuple[bool, int, str]:
            missing = child.replicas - snapshot.readiness[child.uid].ready.committed
            return self._explained(child).state is not State.BLOCKED, -missing, child.name

        lacking = [c for c in current if snapshot.readiness[c.uid].ready.committed < c.replicas]
        return min(lacking, key=urgency, default=None)

    def _holding(self, one: SlicePlan, begin: str, snapshot: Snapshot, child: Child, *, rolls: bool) -> SetExplanation:
        ready = snapshot.readiness[child.uid].ready.committed
        what, kind = ("The rollout", "new groups") if rolls else ("It", "groups")
        text = f"{what} waits for role {child.role}: {ready} of {child.replicas} {kind} {are(ready)} ready."
        cause = "drain-blocked" if rolls else "not-ready"
        return self._with_child(cause, one, begin, child, text, waits=f"role {child.role} to be ready")

    # A child's own explanation ----------------------------------------------------------------------------------------

    def _explained(self, child: Child) -> Explanation:
        scene = self.family.scenes[child.name]
        return explain_child(scene, self._leaders_of(child.obj), self._workers, self._now)

    def _with_child(
        self, cause: str, one: SlicePlan, begin: str, child: Child, text: str, *, waits: str
    ) -> SetExplanation:
        """What is said of the set, and then what its child's own explanation adds to the counts it begins with."""
        why = self._explained(child)
        state = State.BLOCKED if why.state is State.BLOCKED else State.PROGRESSING
        more = f"{base.KIND} {child.name}: {' '.join(why.sentences[1:] or why.sentences)}"
        more = "" if why.state is State.OK else more
        said = self._said(state, cause, begin, text, more, waits=why.waits_for or waits, advice=why.advice)
        said = replace(said, group=why.group, pod=why.pod)
        return self._about(said, slice=one.slice, role=child.role, child=child.name)

    def _about(
        self, said: SetExplanation, *, slice: int | None = None, role: str = "", child: str = ""
    ) -> SetExplanation:
        return replace(said, slice=slice, role=role, child=child)


def _is_unassigned(condition: Obj) -> bool:
    return condition.get("type") == names.CONDITION_SUBROLES_ASSIGNED and condition.get("status") == "False"
