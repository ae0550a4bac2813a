"""Rollouts in numbers: revisions whose groups get Ready as a model says, and steps taken until nothing changes.

It plays the part of the executor that chooses among old revisions (50 §7.4 items 1 to 5), in its simplest form.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.planner import (
    OldRevision,
    RolloutState,
    Step,
    TargetRevision,
    Vector,
    baseline,
    next_step,
    violations,
)


@dataclass
class Revision:
    """The counts of one revision by role. `ready` groups stay, `doomed` ones are Ready and already on their way out."""

    name: str
    initial: Vector
    spec: Vector
    ready: Vector
    doomed: Vector = ()
    healthy: bool = True
    """Whether its groups can get Ready."""

    def __post_init__(self) -> None:
        self.doomed = self.doomed or (0,) * len(self.spec)

    @property
    def raw(self) -> Vector:
        """Ready groups as they are seen."""
        return tuple(map(sum, zip(self.ready, self.doomed, strict=True)))

    def old(self) -> OldRevision:
        """What the planner is told of it as an old revision."""
        initial = tuple(map(max, self.initial, self.spec))
        return OldRevision(tuple(i > 0 for i in initial), initial, self.spec, self.raw, self.ready)

    def scale(self, spec: Vector) -> None:
        """Ask for other counts. Of those that go, all are Ready if there are as many."""
        gone = tuple(min(r, max(0, a - t)) for r, a, t in zip(self.ready, self.spec, spec, strict=True))
        self.ready = tuple(r - g for r, g in zip(self.ready, gone, strict=True))
        self.doomed = tuple(d + g for d, g in zip(self.doomed, gone, strict=True))
        self.spec = spec


Readiness: TypeAlias = Callable[[Revision], None]
"""Lets time pass for a revision: groups get Ready, doomed ones go."""


def at_once(revision: Revision) -> None:
    """All that is asked for is Ready, and nothing else is there."""
    revision.doomed = (0,) * len(revision.spec)
    if revision.healthy:
        revision.ready = revision.spec


def now_and_then(rng: random.Random) -> Readiness:
    """Groups get Ready and go some of them each time."""

    def pass_time(revision: Revision) -> None:
        revision.doomed = tuple(rng.randint(0, d) for d in revision.doomed)
        if revision.healthy:
            revision.ready = tuple(rng.randint(r, s) for r, s in zip(revision.ready, revision.spec, strict=True))

    return pass_time


@dataclass
class World:
    """A slice in numbers: old revisions, newest first, and the target."""

    old: list[Revision]
    target: Revision
    desired: Vector
    max_surge: Vector
    max_unavailable: Vector
    policy: str = names.ROLLOUT_COUPLED
    unschedulable: frozenset[int] = frozenset()
    """Roles of the target whose groups wait for a node in vain; told to the planner when nothing else goes."""
    log: list[tuple[Mapping[str, Vector], Vector, Step]] = field(default_factory=list)
    """What was asked for after each step, of old revisions and of the target, and the step."""

    def state(self, active: Revision, unschedulable: bool = False) -> RolloutState:
        """What the planner is told with that old revision as the active one."""
        parked = tuple(revision.old() for revision in self.old if revision is not active)
        stuck = tuple(unschedulable and i in self.unschedulable for i in range(len(self.desired)))
        wanted = tuple(want > 0 for want in self.desired)
        target = self.target
        return RolloutState(
            active.old(),
            parked,
            TargetRevision(wanted, target.spec, target.raw, target.ready, self.desired, stuck),
            baseline(active.old(), parked),
            self.max_surge,
            self.max_unavailable,
            self.policy,
        )

    def candidates(self) -> list[Revision]:
        """Old revisions that still ask for groups: first those without a Ready group, the newest of each first."""
        return sorted((r for r in self.old if any(r.spec)), key=lambda revision: any(revision.raw))

    def choose(self) -> tuple[Revision | None, RolloutState, Step] | None:
        """The step to take now and the old revision it drains; None while nothing may change (50 §7.4)."""
        candidates = self.candidates()
        if not candidates:
            return self._straight()
        shrinking = later = None
        for active in candidates:
            state = self.state(active)
            step = next_step(state)
            if step and step.bootstrap_surge:
                later = later or (active, state, step)
            elif step and any(n < had for n, had in zip(step.target, self.target.spec, strict=True)):
                shrinking = shrinking or (active, state, step)
            elif step:
                return active, state, step
        if shrinking or later:
            return shrinking or later
        for active in candidates if self.unschedulable else ():
            state = self.state(active, unschedulable=True)
            if step := next_step(state):
                return active, state, step
        return None

    def _straight(self) -> tuple[None, RolloutState, Step] | None:
        """With nothing left to drain the target gets what is desired (50 §7.4 item 2)."""
        none = (0,) * len(self.desired)
        exact = self.policy == names.ADVANCE_ROLLOUT
        wanted = self.desired if exact else tuple(map(max, self.desired, self.target.spec))
        if wanted == self.target.spec:
            return None
        empty = Revision("", none, none, none)
        return None, self.state(empty), Step(none, wanted)

    def take(self) -> bool:
        """Choose and apply one step; False if there is none. A step of the planner that breaks a promise fails."""
        chosen = self.choose()
        if chosen is None:
            return False
        active, state, step = chosen
        if active:
            assert violations(state, step) == []
            active.scale(step.old)
        self.target.scale(step.target)
        self.log.append(({r.name: r.spec for r in self.old}, self.target.spec, step))
        return True

    def run(self, readiness: Readiness, most: int) -> Iterator[int]:
        """Take steps and let time pass until neither changes anything, at most that many; yields the number of steps
        taken before each, so that a test can change the world in between."""
        for _ in range(most):
            yield len(self.log)
            stepped, before = self.take(), self._seen()
            self.pass_time(readiness)
            if not stepped and before == self._seen():
                return
        raise AssertionError(f"no end after {most} steps")

    def _seen(self) -> list[tuple[Vector, Vector]]:
        return [(revision.ready, revision.doomed) for revision in (*self.old, self.target)]

    def pass_time(self, readiness: Readiness) -> None:
        """Let time pass for all revisions."""
        for revision in (*self.old, self.target):
            readiness(revision)

    def is_finished(self) -> bool:
        """Whether the target is what is desired and Ready, and old revisions ask for nothing (50 §7.3)."""
        exact = self.policy == names.ADVANCE_ROLLOUT
        reached = all(n == want if exact else n >= want for n, want in zip(self.target.spec, self.desired, strict=True))
        ready = all(r >= want for r, want in zip(self.target.ready, self.desired, strict=True))
        return reached and ready and not any(any(revision.spec) for revision in self.old)
