"""DisaggregatedSets, their children and scenes, for the tests of the decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import children, spec
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.disaggregated.model import Child, Part, Readiness
from lwskit.disaggregated.scene import Scene, Targets
from lwskit.runtime.objects import Obj, controller_reference

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DS_UID = "ds-uid"
REVISION = "1a2b3c4d"


def role(name: str, replicas: int | None = 1, *, image: str = "img:v1", mode: str = "", **fields: Any) -> Obj:
    """A role; `fields` are those of the role itself, but for `spec`, whose fields are added to the set's."""
    own: Obj = {"leaderWorkerTemplate": {"size": 1, "workerTemplate": {"spec": {"containers": [{"name": "c"}]}}}}
    own["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] = image
    if replicas is not None:
        own["replicas"] = replicas
    found: Obj = {"name": name, "spec": {**own, **fields.pop("spec", {})}, **fields}
    if mode:
        found["scaling"] = {"mode": mode}
    return found


def ds_object(*roles: Obj, name: str = "chat", uid: str = DS_UID, **fields: Any) -> Obj:
    """A set in the namespace `prod`; `fields` are those of its spec, `metadata` and `status` aside."""
    metadata = {
        "name": name,
        "namespace": "prod",
        "uid": uid,
        "generation": 1,
        "resourceVersion": "1",
        "annotations": {names.REVISION_HASH_VERSION_ANNOTATION: names.HASH_VERSION},
        **fields.pop("metadata", {}),
    }
    found: Obj = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata}
    if "status" in fields:
        found["status"] = fields.pop("status")
    return {**found, "spec": {"roles": [*roles], **fields}}


def child_object(
    role: str,
    replicas: int = 1,
    *,
    slice: int = 0,
    revision: str = REVISION,
    initial: int | None = None,
    ds: str = "chat",
    owner: str = DS_UID,
    status: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    **metadata: Any,
) -> Obj:
    """A LeaderWorkerSet of the set; its initial-replicas are its replicas unless given."""
    name = children.name_of(ds, slice, revision, role)
    meta = {
        "name": name,
        "namespace": "prod",
        "uid": f"{name}-uid",
        "resourceVersion": "7",
        "generation": 1,
        "creationTimestamp": "2026-11-30T11:00:00Z",
        "labels": children.labels_of(ds, slice, revision, role),
        "annotations": {
            names.INITIAL_REPLICAS_ANNOTATION: str(replicas if initial is None else initial),
            **(annotations or {}),
        },
        "ownerReferences": [
            controller_reference({"metadata": {"name": ds, "uid": owner}}, DISAGGREGATED_SET),
        ],
        **metadata,
    }
    template = {"size": 1, "workerTemplate": {"spec": {"containers": [{"name": "c", "image": "img:v1"}]}}}
    found: Obj = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": meta,
        "spec": {"replicas": replicas, "leaderWorkerTemplate": template},
    }
    if status is not None:
        found["status"] = {"observedGeneration": 1, **status}
    return found


def scaler(name: str, role: str, replicas: int = 1, subrole: str = "", owner: str = DS_UID, **metadata: Any) -> Obj:
    """A scaler of the set."""
    kind = {"apiVersion": names.API_VERSION, "kind": names.SCALER_KIND}
    labels = {names.NAME_LABEL: "chat", names.ROLE_LABEL: role, **({names.SUBROLE_LABEL: subrole} if subrole else {})}
    reference = controller_reference({"metadata": {"name": "chat", "uid": owner}}, DISAGGREGATED_SET)
    meta = {"name": name, "namespace": "prod", "uid": f"{name}-uid", "generation": 2, "labels": labels}
    return {**kind, "metadata": {**meta, "ownerReferences": [reference], **metadata}, "spec": {"replicas": replicas}}


def targets(counts: Mapping[str, int]) -> Targets:
    """Targets of roles without sub-roles."""
    return Targets({Part(name): count for name, count in counts.items()}, dict(counts))


def scene(
    ds: Obj,
    objects: Sequence[Obj] = (),
    *,
    counts: Mapping[str, int] | None = None,
    slice: int = 0,
    revision: str = REVISION,
    readiness: Mapping[str, Readiness] | None = None,
) -> Scene:
    """The scene of a slice; the targets are the Static ones unless given."""
    found = spec.read(ds)
    return Scene(
        ds,
        found,
        revision,
        slice,
        targets({role.name: role.replicas for role in found.roles} if counts is None else counts),
        tuple(Child.of(obj) for obj in objects),
        {obj["metadata"]["name"]: obj for obj in objects},
        readiness or {},
        now=NOW,
    )
