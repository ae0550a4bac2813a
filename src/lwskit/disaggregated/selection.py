"""Which step of a rollout is taken next, and which old revision it drains. Pure.

Specification: 50 §7.4 items 1 to 4 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from lwskit.disaggregated import planner
from lwskit.disaggregated.inputs import Inputs, Revision
from lwskit.disaggregated.planner import RolloutState, Step


@dataclass(frozen=True, slots=True)
class Choice:
    """A step, the old revision whose counts it changes, and the parts that wait for a node where that is its cause."""

    revision: Revision
    step: Step
    state: RolloutState
    unschedulable: tuple[str, ...] = ()

    def violations(self, inputs: Inputs) -> list[str]:
        """What the step would break, a sentence each (50 §7.4 item 6)."""
        return planner.violations(self.state, self.step, inputs.texts)


def candidates(inputs: Inputs) -> list[Revision]:
    """The old revisions that still ask for groups: first those without any Ready group, and of each kind the newest."""
    left = [revision for revision in inputs.old if not revision.is_drained]
    return sorted(left, key=lambda revision: revision.has_ready)


def choose(inputs: Inputs) -> Choice | None:
    """The step to take, None while nothing may change."""
    schedulable = replace(inputs.target, unschedulable=(False,) * len(inputs.parts))
    found = [c for c in (_next(inputs, old, schedulable) for old in candidates(inputs)) if c is not None]
    best = _first(found, lambda choice: not choice.step.bootstrap_surge and not _shrinks(choice))
    best = best or _first(found, lambda choice: not choice.step.bootstrap_surge) or _first(found, lambda _: True)
    return best or _released(inputs)


def _released(inputs: Inputs) -> Choice | None:
    """The step that makes room for groups of the target that find no node."""
    target = inputs.target
    waiting = tuple(
        flag and spec > ready
        for flag, spec, ready in zip(target.unschedulable, target.spec, target.committed, strict=True)
    )
    if not any(waiting):
        return None
    seen = replace(target, unschedulable=waiting)
    texts = tuple(text for text, waits in zip(inputs.texts, waiting, strict=True) if waits)
    for old in candidates(inputs):
        found = _next(inputs, old, seen)
        if found is not None:
            return replace(found, unschedulable=texts)
    return None


def _next(inputs: Inputs, old: Revision, target: planner.TargetRevision) -> Choice | None:
    parked = tuple(revision.counts for revision in inputs.old if revision is not old)
    state = RolloutState(
        active=old.counts,
        parked=parked,
        target=target,
        baseline=planner.baseline(old.counts, parked),
        max_surge=tuple(limits.max_surge for limits in inputs.limits),
        max_unavailable=tuple(limits.max_unavailable for limits in inputs.limits),
        policy=inputs.policy,
    )
    step = planner.next_step(state)
    return Choice(old, step, state) if step is not None else None


def _first(found: list[Choice], matches: Callable[[Choice], bool]) -> Choice | None:
    return next((choice for choice in found if matches(choice)), None)


def _shrinks(choice: Choice) -> bool:
    """Whether the target loses groups: that is for when no old revision can (50 §7.4 item 3)."""
    return any(new < had for new, had in zip(choice.step.target, choice.state.target.spec, strict=True))
