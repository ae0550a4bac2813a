"""What may be taken from a revision: floors of availability, and whether counts keep them. Pure.

Specification: 50 §8.1 (derived), §8.3, §8.4 step 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from lwskit.disaggregated.planner.state import Flags, OldRevision, RolloutState, Vector, structural, total, usable


@dataclass(frozen=True, slots=True)
class Draining:
    """One revision that loses groups, and what serves beside it.

    `usable` are its Ready groups as far as they serve and `committed` all of them; `served` and `replaced` are the same
    of the others that stay; `observed_usable` and `observed` are what is seen of all together, doomed groups included.
    `floor` is what each role is to keep (50 §8.1).
    """

    required: Flags
    spec: Vector
    usable: Vector
    committed: Vector
    served: Vector
    replaced: Vector
    observed_usable: Vector
    observed: Vector
    floor: Vector


def of_old(state: RolloutState, max_unavailable: Vector) -> Draining:
    """The active old revision as the one that loses groups, with that budget. Specification: 50 §8.1, §8.3."""
    active, target, size = state.active, state.target, len(state.active.spec)
    return Draining(
        active.required,
        active.spec,
        usable(active.required, active.committed),
        active.committed,
        total([usable(r.required, r.committed) for r in (*state.parked, target)], size),
        total([structural(r.required, r.spec, r.committed) for r in (*state.parked, target)], size),
        *_observed(state),
        floors(state, max_unavailable),
    )


def of_target(state: RolloutState) -> Draining:
    """The target as the one that loses groups, all old revisions beside it. Specification: 50 §8.7."""
    target, size = state.target, len(state.target.spec)
    old = (state.active, *state.parked)
    return Draining(
        target.required,
        target.spec,
        usable(target.required, target.committed),
        target.committed,
        total([usable(r.required, r.committed) for r in old], size),
        total([structural(r.required, r.spec, r.committed) for r in old], size),
        *_observed(state),
        tuple(max(0, d - u) for d, u in zip(target.desired, state.max_unavailable, strict=True)),
    )


def _observed(state: RolloutState) -> tuple[Vector, Vector]:
    """obsU and obsR of 50 §8.1."""
    everything = (state.active, *state.parked, state.target)
    size = len(state.active.spec)
    return (
        total([usable(r.required, r.raw) for r in everything], size),
        total([structural(r.required, r.spec, r.raw) for r in everything], size),
    )


def unreplaced(state: RolloutState) -> Vector:
    """Groups of roles that the target has not, as long as its own roles do not make up for them.

    They count for old revisions that share no role with the target: there what serves cannot be compared role by role,
    and old capacity follows the share of the target that is usable. Specification: 50 §8.1, R.
    """
    target, size = state.target, len(state.baseline)
    unshared = [False] * size
    for revision in (state.active, *state.parked):
        if any(revision.spec) and not _shares(revision, target.desired):
            unshared = [seen or need for seen, need in zip(unshared, revision.required, strict=True)]
    if not any(unshared):
        return (0,) * size
    ready = usable(target.required, target.committed)
    parts = [(min(done, want), want) for done, want in zip(ready, target.desired, strict=True) if want > 0]
    if not parts:
        return (0,) * size
    done, want = least_ratio(parts)
    return tuple(
        count - count * done // want if alone else 0 for alone, count in zip(unshared, state.baseline, strict=True)
    )


def _shares(revision: OldRevision, desired: Vector) -> bool:
    return any(need and want > 0 for need, want in zip(revision.required, desired, strict=True))


def least_ratio(parts: list[tuple[int, int]]) -> tuple[int, int]:
    """The smallest of fractions (numerator, positive denominator), compared without division; the first of equals."""
    least = parts[0]
    for part in parts[1:]:
        if part[0] * least[1] < least[0] * part[1]:
            least = part
    return least


def floors(state: RolloutState, max_unavailable: Vector) -> Vector:
    """Ready groups that each role is to keep with that budget. Specification: 50 §8.1, F."""
    desired = state.target.desired
    baseline = desired if state.advances else state.baseline
    return tuple(
        max(0, max(min(base, want), alone) - lost)
        for base, want, alone, lost in zip(baseline, desired, unreplaced(state), max_unavailable, strict=True)
    )


def is_safe(drain: Draining, counts: Vector) -> bool:
    """Whether the revision may be asked for only `counts` (none above its spec) right away.

    Every group that goes is assumed to be a Ready one, a revision serves only with all its roles, and what is short
    already need not be repaired by this. Specification: 50 §8.3.
    """
    removed = tuple(a - t for a, t in zip(drain.spec, counts, strict=True))
    if not any(removed):
        return True
    after = _serving_after(drain, counts, removed)
    for i, gone in enumerate(removed):
        floor = drain.floor[i]
        if (gone or not after[i]) and drain.served[i] + after[i] < min(drain.observed_usable[i], floor):
            return False
        kept = max(0, drain.committed[i] - gone)
        if gone and drain.replaced[i] + kept < min(drain.observed[i], floor):
            return False
    return True


def _serving_after(drain: Draining, counts: Vector, removed: Vector) -> Vector:
    """50 §8.3 step 1."""
    none = (0,) * len(counts)
    if not all(count > 0 for need, count in zip(drain.required, counts, strict=True) if need):
        return none
    after = tuple(max(0, ready - gone) for ready, gone in zip(drain.usable, removed, strict=True))
    if any(need and not left for need, left in zip(drain.required, after, strict=True)):
        return none
    return after


def least_spec(drain: Draining) -> Vector:
    """The fewest groups each role may be asked for so that its floor is kept. Specification: 50 §8.4 step 1."""
    keep = [
        max(0, min(seen, floor) - served)
        for seen, floor, served in zip(drain.observed_usable, drain.floor, drain.served, strict=True)
    ]
    if any(keep):
        keep = [
            max(1, k) if need and spec > 0 else k
            for k, need, spec in zip(keep, drain.required, drain.spec, strict=True)
        ]
    own = [
        max(0, min(seen, floor) - replaced)
        for seen, floor, replaced in zip(drain.observed, drain.floor, drain.replaced, strict=True)
    ]
    return tuple(
        max(_spec_for(spec, ready, k), _spec_for(spec, committed, alone))
        for spec, ready, committed, k, alone in zip(drain.spec, drain.usable, drain.committed, keep, own, strict=True)
    )


def _spec_for(spec: int, ready: int, keep: int) -> int:
    """The least spec that leaves `keep` Ready if every group that goes is a Ready one."""
    return max(0, spec - max(0, ready - keep)) if keep else 0
