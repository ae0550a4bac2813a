"""The LeaderWorkerSets that a DisaggregatedSet consists of: their names, and how a new one is made. Pure.

Specification: 50 §3.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.api import names as lws
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.disaggregated.placement import placed
from lwskit.disaggregated.scene import Scene
from lwskit.disaggregated.spec import Role, SetSpec
from lwskit.disaggregated.subroles import tally
from lwskit.groups.explanation import quoted
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.scene import Happening
from lwskit.runtime.objects import Obj, ObjectRef, controller_reference
from lwskit.runtime.plan import Create, Emit, Event, OnError

_REFUSALS = (names.EVENT_FAILED_CREATE, names.EVENT_FAILED_UPDATE)
OWN_ANNOTATIONS = frozenset(
    {
        names.INITIAL_REPLICAS_ANNOTATION,
        names.INITIAL_SUBROLE_REPLICAS_ANNOTATION,
        names.SUBROLE_REPLICAS_ANNOTATION,
        names.SUBROLE_PLAN_ANNOTATION,
        names.SCALE_DOWN_PENDING_ANNOTATION,
    }
)
"""What the controller notes on children; a role's metadata cannot say it in its place."""


def name_of(set_name: str, slice: int, revision: str, role: str) -> str:
    """The name of the child of a role in a slice."""
    return f"{set_name}-{slice}-{revision}-{role}"


def names_of(spec: SetSpec, revision: str) -> list[str]:
    """The names of all children that a set of that revision is to have."""
    return [name_of(spec.name, i, revision, role.name) for i in range(spec.slices) for role in spec.roles]


def labels_of(set_name: str, slice: int, revision: str, role: str) -> dict[str, str]:
    """The labels that a child and all its pods carry."""
    return {
        names.APP_LABEL: f"{set_name}-{slice}-{role}",
        names.NAME_LABEL: set_name,
        names.ROLE_LABEL: role,
        names.SLICE_LABEL: str(slice),
        names.REVISION_LABEL: revision,
    }


def path_in_set(path: str, role: str) -> str:
    """The field of a set that a field of a child comes from; `role` is the path of the child's role in the set."""
    if path == "metadata.name":
        return f"{role}.name"
    return f"{role}.{path}" if path else role


def owner_reference(ds: Obj) -> Obj:
    """The reference that makes a set the controller of a child; the child does not keep it from being deleted."""
    reference = controller_reference(ds, DISAGGREGATED_SET)
    del reference["blockOwnerDeletion"]
    return reference


def render(scene: Scene, role: Role, *, is_drained: bool) -> Obj:
    """The child of a role, with the groups that it is to have, or with none where a rollout brings them (`is_drained`).

    What the role's own metadata says is overruled by what the controller has to say itself.
    """
    name, desired = scene.spec.name, scene.targets.roles[role.name]
    own = labels_of(name, scene.slice, scene.revision, role.name)
    annotations = {
        **{key: value for key, value in role.annotations.items() if key not in OWN_ANNOTATIONS},
        names.INITIAL_REPLICAS_ANNOTATION: str(desired),
    }
    if wanted := scene.targets.of_subroles(role.name):
        issued = dict.fromkeys(wanted, 0) if is_drained else wanted
        annotations[names.INITIAL_SUBROLE_REPLICAS_ANNOTATION] = tally.written(wanted)
        annotations[names.SUBROLE_REPLICAS_ANNOTATION] = tally.written(issued)
    spec = copy.deepcopy(dict(role.spec))
    spec["replicas"] = 0 if is_drained else desired
    inner = spec["leaderWorkerTemplate"]
    for field in ("leaderTemplate", "workerTemplate"):
        if inner.get(field) is not None:
            inner[field] = _template(inner[field], scene, own)
    return {
        "apiVersion": lws.API_VERSION,
        "kind": lws.KIND,
        "metadata": {
            "name": name_of(name, scene.slice, scene.revision, role.name),
            "namespace": scene.spec.key.namespace,
            "labels": {**role.labels, **own},
            "annotations": annotations,
            "ownerReferences": [owner_reference(scene.ds)],
        },
        "spec": spec,
    }


def create(scene: Scene, role: Role, *, is_drained: bool = False) -> Create:
    """The action that makes the child of a role; one that is there already is looked at before it is judged."""
    child = render(scene, role, is_drained=is_drained)
    name = child["metadata"]["name"]
    return Create(
        kind=LEADER_WORKER_SET,
        obj=child,
        why=f"role {role.name} of slice {scene.slice} has no LeaderWorkerSet of revision {scene.revision}",
        on_failure=_failed(scene, name, f"Failed to create LeaderWorkerSet {name}: {{error}}"),
        errors={"AlreadyExists": OnError.LOOK},
    )


def refusal(happenings: Sequence[Happening], name: str) -> str:
    """Why the child of that name could not be made or changed, as the latest event about it says, without a full stop;
    empty if that says something else. `happenings` are events about the set, oldest first."""
    latest = next((h for h in reversed(happenings) if h.related == name), None)
    if latest is None or latest.type != "Warning" or latest.reason not in _REFUSALS:
        return ""
    return quoted(latest.note)


def refused(scene: Scene, name: str, what: str = "adopt") -> str:
    """The sentence about a LeaderWorkerSet that somebody else has under the name of a child (50 §18)."""
    return (
        f"LeaderWorkerSet {name} exists but is not controlled by DisaggregatedSet {scene.spec.name}; "
        f"refusing to {what} it"
    )


def mislabelled(scene: Scene, role: str) -> str:
    """The sentence about a child of the set's revision whose labels say that it is another one's: what it has would be
    drained, and nothing could take its place."""
    name = name_of(scene.spec.name, scene.slice, scene.revision, role)
    own = labels_of(scene.spec.name, scene.slice, scene.revision, role)
    meant = ", ".join(f"{key}={own[key]}" for key in (names.ROLE_LABEL, names.SLICE_LABEL, names.REVISION_LABEL))
    return f"LeaderWorkerSet {name} has not the labels of its name; give it {meant} again, or delete it"


def conflict(scene: Scene, name: str, note: str = "") -> Emit:
    """The event about it, or with another note, the same in every pass, so that all of them are counted as one."""
    note = note or refused(scene, name)
    return Emit(event=_failed(scene, name, note), why=note)


def _failed(scene: Scene, name: str, note: str) -> Event:
    related = ObjectRef(lws.API_VERSION, lws.KIND, scene.spec.key.namespace, name)
    regarding = scene.ref._replace(resource_version="")
    return Event(regarding, names.EVENT_FAILED_CREATE, names.ACTION_CREATE, note, "Warning", related)


def _template(template: Mapping[str, Any], scene: Scene, own: Mapping[str, str]) -> Obj:
    metadata = template.get("metadata") or {}
    return {
        **template,
        "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **own}},
        "spec": placed(template.get("spec") or {}, scene.spec.name, scene.slice, scene.spec.placement),
    }
