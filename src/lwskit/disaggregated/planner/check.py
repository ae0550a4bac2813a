"""Whether a step keeps what a rollout promises, judged without asking how it was found. Pure.

Specification: 50 §7.4 item 6, §8.8. Nothing of the planner's own reckoning is used here, so that a mistake there is
caught before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import floor

from lwskit.disaggregated.planner import sound
from lwskit.disaggregated.planner.state import Flags, OldRevision, RolloutState, Step, TargetRevision, Vector


def violations(state: RolloutState, step: Step, roles: Sequence[str] = ()) -> list[str]:
    """What a step would break, a sentence each; nothing for a step that may be taken.

    `roles` are the names that sentences use, in the order of the vectors. Raises DecisionError for what is no state or
    no step, and for names of another number of roles. Specification: 50 §7.4 item 6.
    """
    sound.require_type(state, RolloutState, "the state")
    sound.require_type(step, Step, "the step")
    if roles and len(roles) != len(state.active.spec):
        sound.refuse("the names of roles", [*roles], f"those of the {len(state.active.spec)} roles of the state")
    return list(_Judge(state, step, roles).sentences())


class _Judge:
    def __init__(self, state: RolloutState, step: Step, roles: Sequence[str]) -> None:
        self.state, self.step = state, step
        self.places = range(len(state.active.spec))
        self.names = [f"role {roles[i]}" if roles else f"role number {i}" for i in self.places]

    def sentences(self) -> Iterator[str]:
        state, step = self.state, self.step
        if len(step.old) != len(self.places) or len(step.target) != len(self.places):
            yield f"there are {len(self.places)} roles, but counts for {len(step.old)} and {len(step.target)}"
            return
        if (step.old, step.target) == (state.active.spec, state.target.spec):
            yield "nothing changes"
        yield from self._directions()
        yield from self._unity()
        yield from self._limits()
        yield from self._window_of_target()
        yield from self._window_of_old()
        yield from self._availability()
        yield from self._markers()

    # Which way ----------------------------------------------------------------------------------------------------

    def _drains(self) -> bool:
        return self.step.old != self.state.active.spec

    def _shrinks(self) -> bool:
        return any(n < had for n, had in zip(self.step.target, self.state.target.spec, strict=True))

    def _directions(self) -> Iterator[str]:
        target, desired = self.state.target.spec, self.state.target.desired
        for i in self.places:
            old, had, new = self.step.old[i], self.state.active.spec[i], self.step.target[i]
            if not 0 <= old <= had:
                yield f"{self.names[i]}: the old revision has {had} groups and may not get {old}"
            if new > max(target[i], desired[i]):
                yield f"{self.names[i]}: the target would get {new} groups, but {desired[i]} are desired"
            if new < target[i] and not (self.state.advances and self._least(i) <= new):
                yield f"{self.names[i]}: the target would shrink from {target[i]} to {new} groups"
        if self._drains() and self._shrinks():
            yield "the old revision and the target would shrink at once"

    def _least(self, i: int) -> int:
        """The fewest groups that a target with more than desired may be left with: what goes is excess."""
        desired, old = self.state.target.desired[i], self._old(i)
        if self.state.target.spec[i] <= desired:
            return self.state.target.spec[i]
        return desired + self.state.max_surge[i] - old if old else desired

    def _unity(self) -> Iterator[str]:
        """A revision ends with all its roles at once: a part of them serves nobody."""
        active = self.state.active
        left = {self.step.old[i] > 0 for i in self.places if active.required[i] and active.spec[i] > 0}
        if len(left) > 1:
            gone = [self.names[i] for i in self.places if active.spec[i] > 0 and not self.step.old[i]]
            yield f"the old revision would lose {', '.join(gone)} and keep other roles"
        for i in self.places:
            if self.state.target.required[i] and self.state.target.spec[i] > 0 and self.step.target[i] <= 0:
                yield f"{self.names[i]}: the target would lose its last group, and groups are desired"

    # How many -----------------------------------------------------------------------------------------------------

    def _old(self, i: int) -> int:
        return sum(revision.spec[i] for revision in (self.state.active, *self.state.parked))

    def _base(self, i: int) -> int:
        desired = self.state.target.desired[i]
        return desired if self.state.advances else max(self.state.active.initial[i], desired)

    def _most(self, i: int) -> int:
        """The most groups the target may get in an ordinary step."""
        state = self.state
        surge, old = state.max_surge[i], self._old(i)
        most = self._base(i) + surge - old
        if old or any(self._alone()):
            sizes = [max(state.active.initial[j], state.target.desired[j]) for j in self.places]
            batch = Fraction(sizes[i] * (surge + state.max_unavailable[i]), max(sizes) or 1)
            most = min(most, state.target.committed[i] - floor(-batch))
        return most

    def _limits(self) -> Iterator[str]:
        for i in self.places:
            had, new = self.state.target.spec[i], self.step.target[i]
            if new <= had:
                continue
            most = self._most(i)
            if new > most and not (self.step.bootstrap_surge and new == had + 1 and self._may_exceed(i)):
                yield f"{self.names[i]}: the target would grow to {new} groups, {max(most, 0)} are within the limits"
            if new > max(sizes[i] for sizes in self._sizes()):
                yield f"{self.names[i]}: the target would grow to {new} groups, this phase needs {self._phase(i)}"

    def _may_exceed(self, i: int) -> bool:
        """Whether a role may get one group beyond its limits.

        It must have none; or, where new counts hold at once, be full with all of it Ready; or the target is awaited.
        """
        state, ready = self.state, self.state.target.committed
        had = state.target.spec[i]
        full = self._old(i) + had == self._base(i) + state.max_surge[i] and ready[i] >= had
        permitted = had == 0 or (state.advances and full) or self._awaited()
        return permitted and state.max_surge[i] + state.max_unavailable[i] > 0

    # In step ------------------------------------------------------------------------------------------------------

    def _phase(self, i: int) -> int:
        desired = self.state.target.desired[i]
        rest = desired - sum(_serving(r.required, r.committed, r.committed)[i] for r in self.state.parked)
        return max(self.state.target.spec[i], max(rest, 1) if desired else rest)

    def _awaited(self) -> bool:
        """Whether old groups of roles that the target has not wait for it, and all of it is Ready."""
        target = self.state.target
        return all(target.committed[i] >= target.spec[i] for i in self.places) and any(self._alone())

    def _sizes(self) -> list[list[int]]:
        """What the target may be on its way to: less than desired while parked revisions serve, or all if awaited."""
        whole = [max(self.state.target.spec[i], self.state.target.desired[i]) for i in self.places]
        return [[self._phase(i) for i in self.places], *([whole] if self._awaited() else [])]

    def _window_of_target(self) -> Iterator[str]:
        had, new = self.state.target.spec, self.step.target
        furthest = [max(new[i], had[i]) for i in self.places]
        reaches = [_reach(sizes, furthest) for sizes in self._sizes()]
        ahead = [[i for i in self.places if new[i] > had[i] and new[i] > reach[i]] for reach in reaches]
        for i in ahead[0] if all(ahead) else ():
            most = reaches[0][i]
            yield f"{self.names[i]}: {new[i]} groups of the target run ahead of the slowest role, {most} do not"

    def _window_of_old(self) -> Iterator[str]:
        initial, spec, left = self.state.active.initial, self.state.active.spec, self.step.old
        reach = _reach(initial, [max(0, initial[i] - left[i]) for i in self.places])
        for i in self.places:
            least = initial[i] - reach[i]
            if self.state.advances:
                excess = self._old(i) + self.state.target.spec[i] - self._base(i) - self.state.max_surge[i]
                least = min(least, spec[i] - max(0, excess))
            if left[i] < spec[i] and left[i] < least:
                yield f"{self.names[i]}: {left[i]} old groups run ahead of the slowest role, {least} do not"

    # Who serves ---------------------------------------------------------------------------------------------------

    def _alone(self) -> list[int]:
        """Groups to keep of roles whose revision has no role in common with the target: what the target's usable share
        has not made up for."""
        target, lonely = self.state.target, [False for _ in self.places]
        for revision in (self.state.active, *self.state.parked):
            common = any(revision.required[i] and target.desired[i] > 0 for i in self.places)
            if any(revision.spec) and not common:
                lonely = [lonely[i] or revision.required[i] for i in self.places]
        serving = _serving(target.required, target.committed, target.committed)
        shares = [Fraction(serving[i], target.desired[i]) for i in self.places if target.desired[i] > 0]
        share = min([Fraction(1), *shares]) if shares else Fraction(1)
        return [base - floor(base * share) if lonely[i] else 0 for i, base in enumerate(self.state.baseline)]

    def _floors(self) -> list[int]:
        alone, state = self._alone(), self.state
        result = []
        for i in self.places:
            desired, lost = state.target.desired[i], state.max_unavailable[i]
            kept = max(desired if state.advances else min(state.baseline[i], desired), alone[i])
            result.append(max(0, kept - lost))
        return result

    def _availability(self) -> Iterator[str]:
        active, target = self.state.active, self.state.target
        if self._drains():
            floors = self._floors()
            if self.step.availability_fallback:
                floors = [kept - 1 if kept > 1 else kept for kept in floors]
            yield from self._short(active, self.step.old, (*self.state.parked, target), floors)
        elif self._shrinks():
            floors = [max(0, target.desired[i] - self.state.max_unavailable[i]) for i in self.places]
            # What grows in the same step is not Ready and so is no help.
            counts = tuple(map(min, self.step.target, target.spec))
            yield from self._short(target, counts, (active, *self.state.parked), floors)

    def _short(
        self,
        losing: OldRevision | TargetRevision,
        counts: Vector,
        others: Iterable[OldRevision | TargetRevision],
        floors: Sequence[int],
    ) -> Iterator[str]:
        """Roles that would have fewer Ready groups than they must, every group that goes taken for a Ready one.

        Those that serve count, and beside them all that are Ready of revisions that ask for every role.
        """
        others = tuple(others)
        left = tuple(max(0, losing.committed[i] - (losing.spec[i] - counts[i])) for i in self.places)
        after = [_serving(losing.required, left, counts, left)]
        after += [_serving(r.required, r.committed, r.committed) for r in others]
        seen = [_serving(r.required, r.raw, r.raw) for r in (losing, *others)]
        whole = [left, *(_serving(r.required, r.committed, r.spec) for r in others)]
        whole_seen = [_serving(r.required, r.raw, r.spec) for r in (losing, *others)]
        for i in self.places:
            loses = counts[i] < losing.spec[i]
            serve, due = sum(r[i] for r in after), min(sum(r[i] for r in seen), floors[i])
            if serve < due and (loses or not after[0][i]):
                yield f"{self.names[i]}: {serve} groups would serve, {due} must"
            ready, owed = sum(r[i] for r in whole), min(sum(r[i] for r in whole_seen), floors[i])
            if loses and ready < owed:
                yield f"{self.names[i]}: {ready} groups would be Ready, {owed} must"

    # Markers ------------------------------------------------------------------------------------------------------

    def _markers(self) -> Iterator[str]:
        step, target = self.step, self.state.target
        if step.bootstrap_surge and step.availability_fallback:
            yield "a step is either a bootstrap surge or an availability fallback"
        if step.bootstrap_surge:
            if self._drains() or self._shrinks():
                yield "a bootstrap surge takes groups away"
            if not any(step.target[i] > max(target.spec[i], self._most(i)) for i in self.places):
                yield "a bootstrap surge stays within the limits"
        if step.availability_fallback:
            if step.target != target.spec:
                yield "an availability fallback changes the target"
            if not any(self._released(i) for i in self.places):
                yield "an availability fallback releases no capacity that a role without a node waits for"

    def _released(self, i: int) -> bool:
        state = self.state
        exceeds = self._old(i) + state.target.spec[i] > self._base(i) + state.max_surge[i]
        return state.target.unschedulable[i] and exceeds and self.step.old[i] < state.active.spec[i]


def _serving(required: Flags, ready: Sequence[int], *conditions: Sequence[int]) -> Sequence[int]:
    """Ready groups, if there is a required role and every condition has a group of each; else none."""
    needed = [i for i, need in enumerate(required) if need]
    if needed and all(counts[i] > 0 for counts in conditions for i in needed):
        return ready
    return [0] * len(ready)


def _reach(sizes: Sequence[int], progress: Sequence[int]) -> list[int]:
    """How far each role may be: as the slowest one, and one group of the smallest further (50 §8.8)."""
    positive = [i for i, size in enumerate(sizes) if size > 0]
    if not positive:
        return list(sizes)
    share = min(Fraction(progress[i], sizes[i]) for i in positive) + Fraction(1, min(sizes[i] for i in positive))
    return [min(size, floor(size * share)) for size in sizes]
