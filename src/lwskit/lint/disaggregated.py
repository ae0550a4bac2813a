"""What is accepted of a DisaggregatedSet and regretted: its roles as the LeaderWorkerSets that they become. Pure.

Specification: 50 §3, §7, §19.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from lwskit.api import disaggregated_names
from lwskit.disaggregated import scaling
from lwskit.disaggregated.children import path_in_set, render
from lwskit.disaggregated.scene import Scene
from lwskit.disaggregated.spec import SetSpec, read
from lwskit.lint import rules
from lwskit.lint.findings import (
    ALL_GROUPS_GO_DOWN,
    BUDGET_ROUNDS_TO_ZERO,
    CHILD_REFUSED,
    LEADER_NAME_TOO_LONG,
    ONE_GROUP_GOES_DOWN,
    PARTITION_HOLDS_ALL,
    PARTITION_WITH_SURGE,
    REFUSED_WHEN_SCALED,
    SURGE_IS_CAPPED,
    WORKER_NAME_TOO_LONG,
    Fault,
)
from lwskit.lint.server import Server
from lwskit.runtime.objects import Obj

_REVISION: Final = "0" * disaggregated_names.REVISION_LENGTH
_ELSEWHERE: Final = (
    LEADER_NAME_TOO_LONG,
    WORKER_NAME_TOO_LONG,
    ONE_GROUP_GOES_DOWN,
    PARTITION_HOLDS_ALL,
    PARTITION_WITH_SURGE,
    SURGE_IS_CAPPED,
    REFUSED_WHEN_SCALED,
)
"""What admission of the set sees to itself, or what only a rolling update of the LeaderWorkerSet's own does."""
_OF_COUNTS: Final = (BUDGET_ROUNDS_TO_ZERO, ALL_GROUPS_GO_DOWN)
"""What depends on how many groups there are, which the set itself does not say of every role."""


def check(ds: Obj, server: Server) -> Iterator[Fault]:
    """Of each role of a set, as it would be stored: why its LeaderWorkerSets are refused, or what they regret."""
    ds = {**ds, "metadata": {"uid": "unknown", **ds["metadata"]}}
    spec = read(ds)
    last = _last_slice(ds, spec)
    for index, role in enumerate(spec.roles):
        if role.name not in last.targets.roles:
            continue
        child = render(last, role, is_drained=False)
        answer, at = server.create(child, spec.key.namespace), f"spec.roles[{index}]"
        if answer.stored is None or answer.refusals:
            for fault in answer.refusals:
                text = f"the LeaderWorkerSets of the role will be refused: {fault.message}"
                yield Fault(CHILD_REFUSED, path_in_set(fault.path, at), text)
            continue
        counted = not role.is_external and not role.subroles
        for fault in rules.check(answer.stored, child, server):
            if fault.code not in _ELSEWHERE and (counted or fault.code not in _OF_COUNTS):
                yield replace(fault, path=path_in_set(fault.path, at))


def _last_slice(ds: Obj, spec: SetSpec) -> Scene:
    """The slice whose LeaderWorkerSets have the longest names, as the manager makes it of a new set."""
    counts = dict.fromkeys(scaling.external(spec), disaggregated_names.SCALER_SEED)
    return Scene(ds, spec, _REVISION, spec.slices - 1, scaling.targets(spec, counts))
