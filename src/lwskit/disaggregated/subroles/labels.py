"""The patches that give the pods of a group their sub-role, or take it away. Pure.

Specification: 50 §13: workers first, the leader last, each guarded by the pod's UID and resourceVersion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.subroles.groups import LabelledGroup, label_of
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, key_of, uid_of, version_of
from lwskit.runtime.plan import AnyAction, OnError, Patch


def due(group: LabelledGroup, subrole: str, why: str, *, changed: OnError = OnError.REQUEUE) -> list[AnyAction]:
    """The patches after which all pods of a group have the label of `subrole`, or with an empty text none.

    `changed` is what a pod that is not as it was seen does to the plan: it ends it, unless nothing else depends on it.
    """
    return [
        patched(pod, {"labels": {names.SUBROLE_LABEL: subrole or None}}, why, changed=changed)
        for pod in (*group.workers, group.leader)
        if label_of(pod) != subrole
    ]


def patched(pod: Obj, metadata: Mapping[str, object], why: str, *, changed: OnError = OnError.REQUEUE) -> Patch:
    """A patch of a pod's metadata that fails if it is another pod, or was changed since it was seen."""
    return Patch(
        kind=POD,
        key=key_of(pod),
        uid=uid_of(pod),
        body={"metadata": {"resourceVersion": version_of(pod), **metadata}},
        why=why,
        errors={"Conflict": changed, "NotFound": changed},
    )


def gives(action: Patch) -> bool:
    """Whether a patch gives a pod a sub-role."""
    return bool((action.body["metadata"].get("labels") or {}).get(names.SUBROLE_LABEL))


def cleared(groups: Iterable[LabelledGroup], why: str) -> list[AnyAction]:
    """The patches after which no pod of the groups has a label."""
    return [action for group in groups for action in due(group, "", why)]
