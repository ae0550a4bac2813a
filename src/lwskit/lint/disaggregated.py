"""What is accepted of a DisaggregatedSet and regretted: its roles as the LeaderWorkerSets that they become. Pure.

Specification: 50 §3, §7, §19.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from lwskit.api import disaggregated_names, names
from lwskit.disaggregated.children import labels_of, name_of
from lwskit.disaggregated.spec import Role, SetSpec, read
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
    spec = read(ds)
    for index, role in enumerate(spec.roles):
        child = _child(spec, role)
        answer = server.create(child, spec.key.namespace)
        if answer.stored is None or answer.refusals:
            for fault in answer.refusals:
                text = f"the LeaderWorkerSets of the role will be refused: {fault.message}"
                yield Fault(CHILD_REFUSED, _path(fault.path, index), text)
            continue
        counted = not role.is_external and not role.subroles
        for fault in rules.check(answer.stored, child, server):
            if fault.code not in _ELSEWHERE and (counted or fault.code not in _OF_COUNTS):
                yield replace(fault, path=_path(fault.path, index))


def _child(spec: SetSpec, role: Role) -> Obj:
    """The LeaderWorkerSet of a role with the longest name."""
    last = spec.slices - 1
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {
            "name": name_of(spec.name, last, _REVISION, role.name),
            "namespace": spec.key.namespace,
            "labels": {**role.labels, **labels_of(spec.name, last, _REVISION, role.name)},
            "annotations": dict(role.annotations),
        },
        "spec": _with_labels(role.spec, labels_of(spec.name, last, _REVISION, role.name)),
    }


def _with_labels(spec: Mapping[str, Any], labels: Mapping[str, str]) -> Obj:
    """The spec of a role, its pods with the labels of the set."""
    inner = dict(spec["leaderWorkerTemplate"])
    for field in ("leaderTemplate", "workerTemplate"):
        if inner.get(field) is not None:
            meta = inner[field].get("metadata") or {}
            own = {**meta, "labels": {**(meta.get("labels") or {}), **labels}}
            inner[field] = {**inner[field], "metadata": own}
    return {**spec, "leaderWorkerTemplate": inner}


def _path(path: str, index: int) -> str:
    """The field of the set that a field of its role's LeaderWorkerSet comes from."""
    at = f"spec.roles[{index}]"
    if path == "metadata.name":
        return f"{at}.name"
    return f"{at}.{path}" if path else at
