"""What has to hold of a DisaggregatedSet whatever happens to it, looked at after every single change (50 §6–§8)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.disaggregated.revision import revision_of
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import EVENT, Kind
from lwskit.runtime.objects import Obj, annotations_of, generation_of, is_deleting, labels_of, version_of
from lwskit.testing.observer import Change
from tests.scenarios.disaggregated.safety import Slice, Standing, Vector
from tests.scenarios.disaggregated.world import Child, DsWorld, Wanted
from tests.scenarios.sight import Sight
from tests.scenarios.world import image_of

TOGETHER = 0.05
"""Seconds within which all roles of a revision have come to nothing."""
TOLD = 3.0
"""Seconds within which a Warning about a step has been written."""
COMBINATIONS = 32
"""How many combinations of counts that scalers asked for just now are tried."""
Counts = dict[str, int]


@dataclass(frozen=True, slots=True)
class Expected:
    """Something that has to be so a while after it was brought about, unless the manager was disturbed meanwhile."""

    at: float
    what: str
    holds: Callable[[], bool]
    within: float


class DsLaws:
    """Follows one set. `see` raises AssertionError for what must not be."""

    def __init__(self, name: str) -> None:
        self.world = DsWorld(name)
        self.counts: Counter[str] = Counter()
        self.trail: deque[str] = deque(maxlen=60)
        """What has happened last, a line each."""
        self.foreign: set[str] = set()
        """resourceVersions of children that somebody other than the manager has written."""
        self.removed: set[str] = set()
        """UIDs of children that somebody else deletes."""
        self.maimed: set[tuple[int, str]] = set()
        """Revisions of which somebody has taken a child, by slice."""
        self.sight = Sight()
        self.calm = Sight()
        """Whether writes get through, too."""
        self.wanted: dict[int, Wanted] = {}
        self.acted_on = 0
        """The newest generation that the manager is known to have acted on."""
        self._had_groups: dict[tuple[int, str], float] = {}
        """When a revision was last asked to have groups, by slice."""
        self._there: dict[tuple[int, str], float] = {}
        """When there was last anything of a revision, by slice."""
        self._expected: list[Expected] = []
        self._at = 0.0

    @property
    def now(self) -> Wanted:
        """What the set asks for."""
        return self.wanted[max(self.wanted)]

    def see(self, kind: Kind, change: Change) -> None:
        """A change has happened; all that came before it has been seen."""
        self._hold_expected(change.at)
        old = self.world.put(kind, change)
        self.counts["changes"] += 1
        if kind is DISAGGREGATED_SET and change.type != "DELETED":
            self._edited(old, change)
        elif kind is LEADER_WORKER_SET:
            self._written(old, change)
        elif kind is EVENT and change.obj["regarding"]["kind"] == names.KIND:
            self._told(old, change)
        elif kind is ROLE_SCALER and (old is None or old["spec"] != change.obj["spec"] or change.type == "DELETED"):
            self._note(change, f"scaler {change.name} {change.type}: {change.obj['spec'].get('replicas')}")

    def _note(self, change: Change, text: str) -> None:
        self.trail.append(f"{change.at:.3f} {text}")

    def _edited(self, old: Obj | None, change: Change) -> None:
        ds = change.obj
        generation = generation_of(ds)
        marked = names.REVISION_HASH_VERSION_ANNOTATION in annotations_of(ds)
        if generation not in self.wanted or (old is not None and marked and not _marked(old)):
            wanted = self.wanted[generation] = Wanted.of(ds, revision_of(ds))
            roles = {r.name: (r.replicas, r.surge, r.unavailable) for r in wanted.roles.values()}
            self._note(change, f"edit {generation}: {wanted.revision} {roles} × {wanted.slices} {wanted.advances}")
        self.acted_on = max(self.acted_on, (ds.get("status") or {}).get("observedGeneration", 0))

    def _told(self, old: Obj | None, change: Change) -> None:
        reason = change.obj["reason"]
        if old is None:
            self.counts[f"event: {reason}"] += 1
            self._note(change, f"{reason}: {change.obj['note']}")

    # What somebody has written of a child -------------------------------------------------------------------------

    def _written(self, old: Obj | None, change: Change) -> None:
        lws, world = change.obj, self.world
        if names.NAME_LABEL not in labels_of(lws) or world.ds is None or is_deleting(world.ds):
            return
        if not world.is_mine(lws):
            return
        child = Child.of(lws)
        before = Child.of(old) if old is not None else None
        going = change.type == "DELETED" or child.going
        mine = version_of(lws) not in self.foreign
        if old is None and change.type != "DELETED":
            self._note(change, f"{child.name} is made with {child.spec}")
            self._accepted(change, child, self._may_make, f"{child.name} is made with {child.spec}, of {child.noted}")
        elif going and before is not None and not before.going:
            self._note(change, f"{child.name} goes")
            if change.uid in self.removed:
                self.maimed.add((child.slice, child.revision))
            elif not any(w.slices <= child.slice for w in self._generations()):
                self._accepted(change, child, self._may_go, f"{child.name} goes")
        elif old is not None and before is not None and not going:
            if before.noted != child.noted:
                self._note(change, f"{child.name} is to be measured by {child.noted}, before by {before.noted}")
                if mine:
                    self._accepted(
                        change, child, self._may_note, f"{child.name} is measured by {child.noted}, not {before.noted}"
                    )
            if before.spec != child.spec:
                self._note(change, f"{child.name} from {before.spec} to {child.spec}{'' if mine else ' by another'}")
                if mine:
                    self._resized(change, old, child)
        self._there[child.slice, child.revision] = change.at

    def _resized(self, change: Change, old: Obj, child: Child) -> None:
        before = Child.of(old)
        self.counts["resized"] += 1
        if before.spec:
            self._had_groups[child.slice, child.revision] = change.at
        if not child.spec and all(w.revision != child.revision for w, _ in self._candidates(change.at)):
            self._expect_together(child, change.at)
        if child.spec > before.spec:
            # 50 §7.6: what was made smaller grows only when nothing is on its way out any more.
            assert not _is_marked(change.obj), f"{child.name} grows and is marked as shrinking"
            still = not _is_marked(old) or self.world.readiness[child.name].was_still(self.sight.since(change.at))
            assert still, f"{child.name} grows from {before.spec} to {child.spec} while pods of it are on their way out"
            self._accepted(
                change,
                child,
                lambda w, d, c: self._may_grow(w, d, before, c, change.at),
                f"{child.name} grows from {before.spec} to {child.spec}",
            )
        else:
            self._accepted(
                change,
                child,
                lambda w, d, c: self._may_shrink(w, d, before, c, change.at),
                f"{child.name} shrinks from {before.spec} to {child.spec}",
            )

    # What the manager may go by -----------------------------------------------------------------------------------

    def _generations(self) -> list[Wanted]:
        """What the set has asked for since the manager last said that it has acted on it."""
        return [wanted for generation, wanted in self.wanted.items() if generation >= self.acted_on]

    def _candidates(self, at: float) -> Iterator[tuple[Wanted, Counts]]:
        """What the set and its scalers have asked for at a time that the manager may still go by."""
        since = self.sight.since(at)
        for wanted in self._generations():
            counts = [self.world.asked_of(role, since) for role in wanted.roles.values()]
            for number, combination in enumerate(product(*counts)):
                if number == COMBINATIONS:
                    break
                yield wanted, dict(zip(wanted.roles, combination, strict=True))

    def _accepted(
        self, change: Change, child: Child, law: Callable[[Wanted, Counts, Child], str | Expected], what: str
    ) -> None:
        """Whether the law says nothing against it for at least one thing that the manager may go by."""
        refusals: list[str] = []
        found: list[Expected] = []
        for wanted, desired in self._candidates(change.at):
            answer = law(wanted, desired, child)
            if not answer:
                return
            if isinstance(answer, Expected):
                found.append(answer)
            else:
                refusals.append(f"{wanted.generation} {desired}: {answer}")
        if found:
            self._expected.append(found[0])
            self.counts[found[0].what.partition(":")[0]] += 1
            return
        raise AssertionError(f"{what}: {sorted(set(refusals))}")

    def _old_in(self, wanted: Wanted, index: int) -> dict[str, dict[str, Child]]:
        """The other revisions of a slice."""
        return {r: roles for r, roles in self.world.in_slice(index).items() if r != wanted.revision}

    # The laws -----------------------------------------------------------------------------------------------------

    def _may_make(self, wanted: Wanted, desired: Counts, child: Child) -> str:
        """50 §3, §6, §7.1: named, labelled and measured as it has to be; empty where a rollout is to fill it."""
        world, role = self.world, wanted.roles.get(child.role)
        if child.revision != wanted.revision or role is None or child.slice >= wanted.slices:
            return "nothing asks for it"
        name = f"{world.name}-{child.slice}-{child.revision}-{child.role}"
        lws = world.sets[child.uid]
        if child.name != name or labels_of(lws).get(names.NAME_LABEL) != world.name:
            return f"it is to be called {name}"
        template = lws["spec"]["leaderWorkerTemplate"]
        if image_of(template["workerTemplate"]) != image_of(role.spec["leaderWorkerTemplate"]["workerTemplate"]):
            return "it is not as its role"
        if child.noted != desired[child.role]:
            return f"it is to be measured by {desired[child.role]}"
        full = [0] if self._had_old(wanted, child.slice) else []
        full += [] if self._old_in(wanted, child.slice) else [desired[child.role]]
        return "" if child.spec in full else f"it is to begin with {full}"

    def _had_old(self, wanted: Wanted, index: int) -> bool:
        """Whether there has just been anything of another revision in a slice."""
        since = self.sight.since(self._at)
        seen = {r for (i, r), last in self._there.items() if i == index and last >= since}
        return bool({*seen, *self._old_in(wanted, index)} - {wanted.revision})

    def _may_note(self, wanted: Wanted, desired: Counts, child: Child) -> str:
        """50 §3: the measure follows what is wanted while a revision is current, and stays as it was from then on."""
        if child.revision == wanted.revision and child.role in desired:
            most = self._clamped(wanted, desired, child)
            return "" if child.noted in (desired[child.role], most) else f"it is to be {desired[child.role]}, or {most}"
        return "" if child.noted == child.spec else "it is of an old revision"

    def _clamped(self, wanted: Wanted, desired: Counts, child: Child) -> int:
        """50 §7.2: what a scaler takes back is left to the target while old groups of the role are there."""
        role, count = wanted.roles[child.role], desired[child.role]
        old = any(r[child.role].spec for r in self._old_in(wanted, child.slice).values() if child.role in r)
        return max(count, child.spec) if old and role.replicas is None and not wanted.advances else count

    def _may_go(self, wanted: Wanted, desired: Counts, child: Child) -> str:
        """50 §7.7: revisions go as a whole when they have no groups any more, and the last when it is replaced."""
        if child.revision == wanted.revision:
            return "it is of the newest revision"
        beside = self._old_in(wanted, child.slice)
        if child.spec or any(c.spec for c in beside.get(child.revision, {}).values()):
            return "groups of its revision are there"
        if {*beside} - {child.revision}:
            return ""
        target = self.world.in_slice(child.slice).get(wanted.revision, {})
        for name, count in desired.items():
            held = target.get(name)
            if count and (held is None or self.ready(held)[1] < count):
                return f"it is the last old one, and of {name} there are not {count} ready yet: {held}"
        return ""

    def ready(self, child: Child, at: float | None = None) -> tuple[int, int]:
        """The fewest groups of a child that the manager may have seen ready, and the most that stay."""
        since = self.sight.since(self._at if at is None else at)
        readiness = self.world.readiness[child.name]
        return readiness.raw(since), readiness.committed(child, since)

    def _may_grow(self, wanted: Wanted, desired: Counts, before: Child, child: Child, at: float) -> str | Expected:
        """50 §6, §8.5, §8.6: only the newest revision grows, and no further than limits allow."""
        if child.revision != wanted.revision or child.role not in desired:
            return "it is of an old revision"
        old, count = self._old_in(wanted, child.slice), desired[child.role]
        if child.spec > self._clamped(wanted, desired, before):
            return f"only {count} are wanted"
        since = self.sight.since(at)
        recent = {r for (index, r), last in self._had_groups.items() if index == child.slice and last >= since}
        serving = {r: roles for r, roles in old.items() if r in recent or any(c.spec for c in roles.values())}
        if not serving:
            at_once = child.spec == count or self._had_old(wanted, child.slice)
            return "" if at_once else f"nothing old is there, and {count} are wanted"
        surge, unavailable = wanted.roles[child.role].limits(count)
        beside = sum(roles[child.role].spec for roles in old.values() if child.role in roles)
        measures = [roles[child.role].initial for roles in serving.values() if child.role in roles] or [0]
        most = count if wanted.advances else max(count, *measures)
        if beside + child.spec <= most + surge:
            return ""
        first = child.spec == 1 if not wanted.advances else child.spec == before.spec + 1
        if surge + unavailable and first and beside + child.spec <= max(most + surge + 1, beside + 1):
            return self._expect(at, names.EVENT_BOOTSTRAP_SURGE, child)
        return f"with {beside} of other revisions there are more than {most} + {surge}"

    def _may_shrink(self, wanted: Wanted, desired: Counts, before: Child, child: Child, at: float) -> str | Expected:
        """50 §6, §7.4, §8.3, §8.7: old groups go where that is safe; new ones while nothing old is there."""
        old = self._old_in(wanted, child.slice)
        if child.revision == wanted.revision:
            if child.role not in desired:
                return "its role is not there any more"
            count = desired[child.role]
            if not old:
                return "" if child.spec == count else f"{count} are wanted"
            if wanted.advances:
                return "" if child.spec >= count else f"{count} are wanted"
            return "it is of the newest revision, and old groups are there"
        if (child.slice, child.revision) in self.maimed:
            return ""
        state, left = self._state(wanted, desired, before, child, at)
        if state.is_safe(left, [0] * len(left)):
            return ""
        more = [int(n > 1) for n in state.floor([0] * len(left))]
        if state.is_safe(left, more):
            return self._expect(at, names.EVENT_AVAILABILITY_FALLBACK, child)
        return f"that leaves too little: {state}, to be {left}"

    def _state(self, wanted: Wanted, desired: Counts, before: Child, child: Child, at: float) -> tuple[Slice, Vector]:
        """The slice as it was before a child shrank, and what its revision is left with."""
        revisions = self.world.in_slice(child.slice)
        roles = sorted({*desired, *(role for found in revisions.values() for role in found)})

        def standing(found: dict[str, Child], goal: Counts | None = None) -> Standing:
            def each(read: Callable[[Child], int]) -> Vector:
                return tuple(read(found[role]) if role in found else 0 for role in roles)

            initial = tuple(goal.get(role, 0) for role in roles) if goal is not None else each(lambda c: c.initial)
            return Standing(
                initial,
                each(lambda c: c.spec),
                each(lambda c: self.ready(c, at)[0]),
                each(lambda c: self.ready(c, at)[1]),
            )

        active = {**revisions[child.revision], child.role: before}
        target = revisions.get(wanted.revision, {})
        goal = {
            role: self._clamped(wanted, desired, target[role]) if role in target else n for role, n in desired.items()
        }
        parked = [f for r, f in revisions.items() if r not in (wanted.revision, child.revision)]
        limits = [wanted.roles[role].limits(goal[role]) if role in goal else (1, 0) for role in roles]
        state = Slice(
            standing(active),
            tuple(standing(found) for found in parked),
            standing(target, goal),
            tuple(goal.get(role, 0) for role in roles),
            tuple(unavailable for _, unavailable in limits),
            wanted.advances,
        )
        left = tuple(child.spec if role == child.role else active[role].spec if role in active else 0 for role in roles)
        return state, left

    # What is expected ---------------------------------------------------------------------------------------------

    def _expect(self, at: float, reason: str, child: Child) -> Expected:
        """A Warning that names the role, or the revision that goes."""

        def told() -> bool:
            events = self.world.events.values()
            notes = [e["note"] for e in events if e["reason"] == reason]
            return any(child.role in note or child.revision in note for note in notes)

        return Expected(at, f"{reason}: {child.name} at {child.spec}", told, TOLD)

    def _expect_together(self, child: Child, at: float) -> None:
        """50 §8.4: a role of an old revision comes to nothing only with all others."""

        def gone() -> bool:
            beside = self.world.in_slice(child.slice).get(child.revision, {})
            maimed = (child.slice, child.revision) in self.maimed
            return maimed or child.revision == self.now.revision or not any(c.spec for c in beside.values())

        what = f"alone: {child.name} is at 0, and the others of its revision are not"
        self._expected.append(Expected(at, what, gone, TOGETHER))

    def _hold_expected(self, at: float) -> None:
        self._at = at
        due = [e for e in self._expected if e.at < at - e.within]
        self._expected = [e for e in self._expected if e.at >= at - e.within]
        for expected in due:
            if self.calm.has_been_clear_since(expected.at):
                assert expected.holds(), f"{at - expected.at:.3f} s later: {expected.what}"

    def at_rest(self) -> None:
        """Nothing is left half done."""
        for index in {c.slice for c in self.world.children()}:
            for revision, roles in self.world.in_slice(index).items():
                if revision == self.now.revision or (index, revision) in self.maimed:
                    continue
                specs = {c.role: c.spec for c in roles.values() if c.initial}
                assert all(specs.values()) or not any(specs.values()), f"of {revision} are left {specs}"


def _marked(ds: Obj) -> bool:
    return names.REVISION_HASH_VERSION_ANNOTATION in annotations_of(ds)


def _is_marked(lws: Obj) -> bool:
    return annotations_of(lws).get(names.SCALE_DOWN_PENDING_ANNOTATION) == "true"
