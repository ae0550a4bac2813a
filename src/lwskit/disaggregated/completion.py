"""Whether a rollout is over, and what of it is still to come. Pure.

Specification: 50 §7.3.
"""

from __future__ import annotations

from enum import Enum

from lwskit.disaggregated.inputs import Inputs


class Progress(Enum):
    """How far a rollout is."""

    SCALING = "scaling"
    """Counts are still to change."""
    UNREADY = "unready"
    """All counts are final, and groups of the target are not Ready."""
    COMPLETE = "complete"


def progress(inputs: Inputs) -> Progress:
    """How far the rollout is: old revisions ask for nothing, the target for what is wanted, and it is Ready.

    With RolloutCoupled the target may still have more than is wanted, as it does not shrink in a rollout.
    """
    if any(not revision.is_drained for revision in inputs.old):
        return Progress.SCALING
    target = inputs.target
    for wanted, spec in zip(target.desired, target.spec, strict=True):
        if spec < wanted or (inputs.advances and spec != wanted):
            return Progress.SCALING
    return Progress.UNREADY if unready(inputs) else Progress.COMPLETE


def unready(inputs: Inputs) -> list[str]:
    """How many groups are Ready of each part of the target that has fewer than are wanted."""
    target = inputs.target
    return [
        f"{ready} of {wanted} groups of {part} are Ready"
        for part, wanted, ready in zip(inputs.parts, target.desired, target.committed, strict=True)
        if ready < wanted
    ]
