"""Sub-groups, startup and restarts: what has no effect, or not the one that was meant. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lwskit.api import names
from lwskit.groups import identity, spec
from lwskit.lint.findings import (
    LEADER_READY_WITHOUT_WORKERS,
    NO_RESTART_ALLOWED,
    RESTART_ANNOTATION_DEPRECATED,
    RESTART_DEFAULT_DEPRECATED,
    SUBGROUPS_OF_ONE_POD,
    UNEVEN_SUBGROUPS,
    Fault,
)
from lwskit.lint.rules.paths import SUBGROUPS, TEMPLATE
from lwskit.runtime.objects import Obj, annotations_of


def check(lws: Obj) -> Iterator[Fault]:
    """Sub-groups that are not what they seem, and policies without a use."""
    size = spec.size(lws)
    yield from _subgroups(lws, size)
    if size == 1 and spec.startup_policy(lws) == names.STARTUP_LEADER_READY:
        text = "LeaderReady has no effect: groups of size 1 have no workers that could wait"
        yield Fault(LEADER_READY_WITHOUT_WORKERS, "spec.startupPolicy", text)
    if names.RECREATE_AFTER_START_ANNOTATION in annotations_of(lws):
        text = f"the annotation is the old way to say restartPolicy {names.RESTART_RECREATE_GROUP_AFTER_START}"
        path = f"metadata.annotations[{names.RECREATE_AFTER_START_ANNOTATION}]"
        if spec.restart_policy(lws) == names.RESTART_NONE:
            text += f"; with the policy {names.RESTART_NONE} it has no effect"
        else:
            text += ", and counts whatever its value is"
        yield Fault(RESTART_ANNOTATION_DEPRECATED, path, text, "write the policy and drop the annotation")
    if spec.template_of(lws).get("maxGroupRestarts") == 0:
        text = "0 restarts: the first failure of a pod stops its group for good, until somebody recovers it by hand"
        hint = "leave the field out for no limit"
        yield Fault(NO_RESTART_ALLOWED, f"{TEMPLATE}.maxGroupRestarts", text, hint)


def rewritten(written: Obj) -> Iterator[Fault]:
    """What a set says in words that are stored in others."""
    if spec.template_of(written).get("restartPolicy") == names.RESTART_DEFAULT:
        text = f"{names.RESTART_DEFAULT} is a deprecated word for {names.RESTART_NONE}, not the default"
        hint = f"write {names.RESTART_NONE}, or leave it out for {names.RESTART_RECREATE_GROUP}"
        yield Fault(RESTART_DEFAULT_DEPRECATED, f"{TEMPLATE}.restartPolicy", text, hint)


def _subgroups(lws: Obj, size: int) -> Iterator[Fault]:
    policy = spec.subgroup_policy(lws)
    if policy is None:
        return
    if size == 1:
        yield Fault(SUBGROUPS_OF_ONE_POD, SUBGROUPS, "groups of size 1 are their own only sub-group")
        return
    part = policy["subGroupSize"]
    excluded = policy.get("subGroupPolicyType") == names.SUBGROUP_LEADER_EXCLUDED
    if excluded or size % part == 0:
        return
    counts = [1] + [0] * (identity.subgroup_index(size, part, size - 1))
    for worker in range(1, size) if size <= _COUNTED else ():
        counts[identity.subgroup_index(size, part, worker)] += 1
    shown = f": they have {', '.join(map(str, counts))} pods" if size <= _COUNTED and len(counts) > 1 else ""
    text = (
        f"subGroupSize {part} does not divide size {size}, so the leader is one pod more in the first "
        f"sub-group{shown}; subGroupSize is how many pods a sub-group has, not how many sub-groups there are"
    )
    hint = f"choose a size that {part} divides, or {names.SUBGROUP_LEADER_EXCLUDED} to keep the leader out"
    yield Fault(UNEVEN_SUBGROUPS, f"{SUBGROUPS}.subGroupSize", text, hint)


_COUNTED = 64
"""Pods of a group up to which its sub-groups are counted out in a message."""
