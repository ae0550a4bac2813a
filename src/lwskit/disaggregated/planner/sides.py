"""The two sides of a step: how far the old revision may be drained, and how far the target may grow or shrink. Pure.

Specification: 50 §8.4, §8.5, §8.7.
"""

from __future__ import annotations

from lwskit.disaggregated.planner.safety import is_safe, least_spec, of_old, of_target, unreplaced
from lwskit.disaggregated.planner.state import Flags, RolloutState, Vector, total, usable
from lwskit.disaggregated.planner.window import caps


def drained(state: RolloutState, max_unavailable: Vector) -> Vector:
    """What the active old revision is to be asked for with that budget; its spec if nothing may go.

    Specification: 50 §8.4.
    """
    active = state.active
    drain = of_old(state, max_unavailable)
    nothing = (0,) * len(active.spec)
    counts = nothing if is_safe(drain, nothing) else least_spec(drain)
    counts = _in_step(state, counts)
    # A last group that is kept leaves its role no further behind than the window is wide: it need not be asked again.
    counts = _complete(active.required, active.spec, counts)
    return counts if is_safe(drain, counts) else active.spec


def _in_step(state: RolloutState, counts: Vector) -> Vector:
    """Counts no lower than the window allows, or than gives back what exceeds the limits (50 §8.4 step 2)."""
    initial, spec = state.active.initial, state.active.spec
    far = caps(initial, tuple(max(0, i - min(t, i)) for i, t in zip(initial, counts, strict=True)))
    held = tuple(min(a, max(t, max(0, i - cap))) for a, t, i, cap in zip(spec, counts, initial, far, strict=True))
    if not state.advances:
        return held
    return tuple(
        min(h, max(t, a - excess))
        for h, t, a, excess in zip(held, counts, spec, excesses(state, state.max_surge), strict=True)
    )


def excesses(state: RolloutState, max_surge: Vector) -> Vector:
    """By role, the groups of all revisions beyond what is allowed with that surge."""
    base, old = surge_baseline(state), old_total(state)
    return tuple(max(0, o + n - b - s) for o, n, b, s in zip(old, state.target.spec, base, max_surge, strict=True))


def _complete(required: Flags, spec: Vector, counts: Vector) -> Vector:
    """The roles of a revision end together or not at all: else each required one keeps a group (50 §8.4 step 3)."""
    needed = [need and a > 0 for need, a in zip(required, spec, strict=True)]
    if not any(need and t > 0 for need, t in zip(needed, counts, strict=True)):
        return counts
    return tuple(max(1, t) if need else t for need, t in zip(needed, counts, strict=True))


def old_total(state: RolloutState) -> Vector:
    """O of 50 §8.1: the groups that old revisions are asked to have."""
    return total([state.active.spec, *(revision.spec for revision in state.parked)], len(state.baseline))


def surge_baseline(state: RolloutState) -> Vector:
    """SB of 50 §8.1: the groups of a role that maxSurge comes on top of."""
    desired = state.target.desired
    return desired if state.advances else tuple(map(max, state.active.initial, desired))


def phase(state: RolloutState) -> Vector:
    """What the target is on its way to while parked revisions serve a part. Specification: 50 §8.5 step 1."""
    parked = total([usable(r.required, r.committed) for r in state.parked], len(state.baseline))
    return tuple(
        max(n, max(1, want - serving) if want > 0 else want - serving)
        for n, want, serving in zip(state.target.spec, state.target.desired, parked, strict=True)
    )


def whole(state: RolloutState) -> Vector:
    """What the target is on its way to if nobody else serves a part."""
    return tuple(map(max, state.target.spec, state.target.desired))


def is_awaited(state: RolloutState) -> bool:
    """Whether old groups wait for more of the target than it is on its way to: it is Ready as far as it goes, and there
    are roles without a counterpart, which stay until all of it serves."""
    settled = all(ready >= n for ready, n in zip(state.target.committed, state.target.spec, strict=True))
    return settled and any(unreplaced(state))


def limits(state: RolloutState, max_surge: Vector) -> Vector:
    """What the target may have at most with that surge. Specification: 50 §8.5 step 2.

    While old groups are there, it is also no more than a batch ahead of what is Ready, with batches as large for each
    role as lets all roles end together.
    """
    target, old, alone = state.target, old_total(state), any(unreplaced(state))
    sizes = tuple(map(max, state.active.initial, target.desired))
    steps = max(sizes)
    result = []
    for i, base in enumerate(surge_baseline(state)):
        most = base + max_surge[i] - old[i]
        if old[i] > 0 or alone:
            most = min(most, target.committed[i] + _ceil(sizes[i] * (max_surge[i] + state.max_unavailable[i]), steps))
        result.append(max(target.spec[i], min(target.desired[i], most)))
    return tuple(result)


def _ceil(product: int, steps: int) -> int:
    return -(-product // steps) if steps else 0


def grown(state: RolloutState, max_surge: Vector, sizes: Vector) -> Vector:
    """What the target is to be asked for with that surge on its way to those sizes, never less than now.

    Specification: 50 §8.5 step 3.
    """
    proposed = tuple(map(min, sizes, limits(state, max_surge)))
    return tuple(
        max(n, min(p, cap)) for n, p, cap in zip(state.target.spec, proposed, caps(sizes, proposed), strict=True)
    )


def shrunk(state: RolloutState) -> Vector:
    """What the target may be lowered to where it has more than desired; its spec if that is not safe.

    Specification: 50 §8.7.
    """
    target, old = state.target, old_total(state)
    drain = of_target(state)
    least = least_spec(drain)
    counts = []
    for i, (n, want) in enumerate(zip(target.spec, target.desired, strict=True)):
        if n <= want:
            counts.append(n)
            continue
        lower = want if old[i] == 0 else min(n, max(0, want + state.max_surge[i] - old[i]))
        counts.append(max(lower, least[i], 1 if target.required[i] else 0))
    result = tuple(counts)
    return result if is_safe(drain, result) else target.spec
