"""Whether groups may be taken from an old revision: the test of the specification, counted from what is there (50 §8).

Vectors have a place for each role, in any order that is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Vector = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """One revision in a slice: what its roles were to have, are asked to have, have Ready, and keep Ready."""

    initial: Vector
    spec: Vector
    raw: Vector
    committed: Vector

    @property
    def required(self) -> tuple[bool, ...]:
        """The roles that it cannot serve without."""
        return tuple(initial > 0 for initial in self.initial)

    def usable(self, ready: Vector) -> Vector:
        """Ready groups, if every role has one; else they serve nobody."""
        return self._if_all(ready, ready)

    def structural(self, ready: Vector) -> Vector:
        """Ready groups, if every role is asked to have one."""
        return self._if_all(self.spec, ready)

    def _if_all(self, had: Vector, ready: Vector) -> Vector:
        required = self.required
        whole = any(required) and all(n > 0 for n, needed in zip(had, required, strict=True) if needed)
        return ready if whole else (0,) * len(ready)


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice in a rollout: the revision that is drained, the other old ones, the new one, and what is wanted."""

    active: Standing
    parked: tuple[Standing, ...]
    target: Standing
    desired: Vector
    unavailable: Vector
    advances: bool = False

    @property
    def _roles(self) -> range:
        return range(len(self.desired))

    def baseline(self) -> Vector:
        """The most that an old revision with groups was to have of each role."""
        old = [o for o in (self.active, *self.parked) if any(o.spec) or o is self.active]
        return tuple(max(o.initial[i] for o in old) for i in self._roles)

    def floor(self, more: Sequence[int]) -> Vector:
        """How many groups of each role have to stay ready; `more` is what may be missing beyond the usual."""
        baseline, unreplaced = self.baseline(), self._unreplaced()
        wanted = self.desired if self.advances else tuple(map(min, baseline, self.desired))
        return tuple(max(0, max(wanted[i], unreplaced[i]) - self.unavailable[i] - more[i]) for i in self._roles)

    def _unreplaced(self) -> Vector:
        """What the new revision does not stand for yet, of roles whose whole revision it has nothing in common with."""
        baseline, found = self.baseline(), [0 for _ in self._roles]
        usable = self.target.usable(self.target.committed)
        wanted = [(min(usable[i], self.desired[i]), self.desired[i]) for i in self._roles if self.desired[i] > 0]
        if not wanted:
            return tuple(found)
        done, of = min(wanted, key=lambda pair: pair[0] / pair[1])
        for old in (self.active, *self.parked):
            if not any(old.spec) or any(n and d > 0 for n, d in zip(old.required, self.desired, strict=True)):
                continue
            for i in self._roles:
                if old.required[i]:
                    found[i] = baseline[i] - baseline[i] * done // of
        return tuple(found)

    def is_safe(self, left: Vector, more: Sequence[int]) -> bool:
        """Whether the active revision may be asked to have no more than `left`: every group that goes is taken for
        ready, and a revision serves only with all of its roles."""
        active, target, parked = self.active, self.target, self.parked
        drained = [a - n for a, n in zip(active.spec, left, strict=True)]
        if not any(drained):
            return True
        usable = active.usable(active.committed)
        after = [0 for _ in self._roles]
        if all(left[i] > 0 for i in self._roles if active.required[i]):
            after = [max(0, usable[i] - drained[i]) for i in self._roles]
            if any(not after[i] for i in self._roles if active.required[i] and left[i] > 0):
                after = [0 for _ in self._roles]
        others = (*parked, target)
        kept = _sum([o.usable(o.committed) for o in others], self._roles)
        seen = _sum([o.usable(o.raw) for o in (active, *others)], self._roles)
        kept_alone = _sum([o.structural(o.committed) for o in others], self._roles)
        seen_alone = _sum([o.structural(o.raw) for o in (active, *others)], self._roles)
        floor = self.floor(more)
        for i in self._roles:
            untouched = not drained[i] and after[i] > 0
            if not untouched and kept[i] + after[i] < min(seen[i], floor[i]):
                return False
            alone = kept_alone[i] + max(0, active.committed[i] - drained[i])
            if drained[i] and alone < min(seen_alone[i], floor[i]):
                return False
        return True


def _sum(vectors: Sequence[Vector], roles: range) -> Vector:
    return tuple(sum(v[i] for v in vectors) for i in roles)
