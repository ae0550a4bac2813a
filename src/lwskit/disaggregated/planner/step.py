"""The next step of a rollout: what the limits allow, or else one group too many or too few (specification: 50 §8.6)."""

from __future__ import annotations

from lwskit.disaggregated.planner import sound
from lwskit.disaggregated.planner.safety import floors
from lwskit.disaggregated.planner.sides import (
    drained,
    excesses,
    grown,
    is_awaited,
    limits,
    old_total,
    phase,
    shrunk,
    surge_baseline,
    whole,
)
from lwskit.disaggregated.planner.state import RolloutState, Step


def next_step(state: RolloutState) -> Step | None:
    """The step to take now, None while nothing may change.

    First what the limits allow, drain and growth together; only if that is nothing, one group too many
    (`bootstrap_surge`), and last one group too few (`availability_fallback`). Raises DecisionError for what is no
    state. Specification: 50 §8.6.
    """
    sound.require_type(state, RolloutState, "the state")
    spec, target = state.active.spec, state.target.spec
    old, new = drained(state, state.max_unavailable), grown(state, state.max_surge, phase(state))
    if state.advances and old == spec:
        new = tuple(low if low < n else more for low, n, more in zip(shrunk(state), target, new, strict=True))
    if old != spec or new != target:
        return Step(old, new)
    return _awaited(state) or _bootstrap(state) or _fallback(state)


def _awaited(state: RolloutState) -> Step | None:
    """Growth within the limits for which parked revisions would leave no need, where old groups wait for it.

    The specification has no step there, and neither side could ever move again.
    """
    new = grown(state, state.max_surge, whole(state))
    return Step(state.active.spec, new) if is_awaited(state) and new != state.target.spec else None


def _bootstrap(state: RolloutState) -> Step | None:
    """One group too many for roles without which the target cannot serve, or holds up all others (50 §8.6 step 3).

    The specification has it for roles without a group, and where new counts hold at once for full ones; here also where
    old groups wait for the target, for the same reason as in `_awaited`.
    """
    target, old, base = state.target, old_total(state), surge_baseline(state)
    awaited = is_awaited(state)
    most, wanted = limits(state, state.max_surge), whole(state) if awaited else phase(state)
    surge = list(state.max_surge)
    for i, n in enumerate(target.spec):
        s, u = state.max_surge[i], state.max_unavailable[i]
        held_up = state.advances and old[i] + n == base[i] + s and target.committed[i] >= n
        if s + u > 0 and wanted[i] > n == most[i] and (n == 0 or held_up or awaited):
            surge[i] = max(s + 1, old[i] + n - base[i] + 1)
    new = grown(state, tuple(surge), wanted)
    return Step(state.active.spec, new, bootstrap_surge=True) if new != target.spec else None


def _fallback(state: RolloutState) -> Step | None:
    """One group too few, where groups beyond the limits wait for a node in vain (50 §8.6 step 4)."""
    more = tuple(
        u + 1 if floor > 1 else u
        for u, floor in zip(state.max_unavailable, floors(state, state.max_unavailable), strict=True)
    )
    old = drained(state, more)
    released = zip(state.target.unschedulable, excesses(state, state.max_surge), state.active.spec, old, strict=True)
    if any(stuck and excess and t < a for stuck, excess, a, t in released):
        return Step(old, state.target.spec, availability_fallback=True)
    return None
