"""The planner of rollouts: what counts an old revision and the target have next, in step over all roles. Pure.

Specification: 50 §8. It knows counts only (`state`) and remembers nothing: the same state has the same step.
"""

from lwskit.disaggregated.planner.check import violations
from lwskit.disaggregated.planner.state import OldRevision, RolloutState, Step, TargetRevision, Vector, baseline
from lwskit.disaggregated.planner.step import next_step

__all__ = ["OldRevision", "RolloutState", "Step", "TargetRevision", "Vector", "baseline", "next_step", "violations"]
