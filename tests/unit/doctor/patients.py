"""DisaggregatedSets and their children as a cluster has them, well unless told otherwise."""

from __future__ import annotations

from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.api import names as lws_names
from lwskit.backends import registry
from lwskit.disaggregated import children, revision
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.doctor.check import Report, examine
from lwskit.doctor.findings import Finding
from lwskit.doctor.ward import ward_of
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import SERVICE, Kind
from lwskit.runtime.objects import Obj, controller_reference
from tests.unit.groups.small_cluster import NOW

NAMESPACE = "ns"


def role(name: str, replicas: int = 1, **more: Any) -> Obj:
    """A role as the API server stores it."""
    template = {"size": 1, "workerTemplate": {"spec": {"containers": [{"name": "c", "image": "a"}]}}}
    return {"name": name, "spec": {"replicas": replicas, "leaderWorkerTemplate": template}, **more}


def chat(*roles: Obj, slices: int = 1, available: bool = True) -> Obj:
    """The set `chat`, which says that all is well."""
    status = "True" if available else "False"
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {
            "name": "chat",
            "namespace": NAMESPACE,
            "uid": "chat-uid",
            "generation": 3,
            "annotations": {names.REVISION_HASH_VERSION_ANNOTATION: names.HASH_VERSION},
        },
        "spec": {"roles": list(roles) or [role("prefill", 1), role("decode", 2)], "slices": slices},
        "status": {"observedGeneration": 3, "conditions": [{"type": "Available", "status": status}]},
    }


def revision_of(ds: Obj) -> str:
    """The revision that the set is at."""
    return revision.revision_of(ds)


def child(
    ds: Obj, of_role: str, replicas: int = 1, *, slice: int = 0, rev: str = "", ready: int | None = None, **meta: Any
) -> Obj:
    """A child of the set with all groups ready unless told otherwise, as its own manager sees it."""
    name = ds["metadata"]["name"]
    rev = rev or revision_of(ds)
    ready = replicas if ready is None else ready
    named = children.name_of(name, slice, rev, of_role)
    return {
        "apiVersion": lws_names.API_VERSION,
        "kind": lws_names.KIND,
        "metadata": {
            "name": named,
            "namespace": NAMESPACE,
            "uid": f"{named}-uid",
            "generation": 1,
            "creationTimestamp": "2026-10-20T09:00:00Z",
            "labels": children.labels_of(name, slice, rev, of_role),
            "ownerReferences": [children.owner_reference(ds)],
            **meta,
        },
        "spec": {**role(of_role, replicas)["spec"]},
        "status": {"observedGeneration": 1, "replicas": replicas, "readyReplicas": ready, "updatedReplicas": replicas},
    }


def children_of(ds: Obj) -> list[Obj]:
    """All children that the set asks for, all ready."""
    return [
        child(ds, r["name"], r["spec"]["replicas"], slice=i)
        for i in range(ds["spec"]["slices"])
        for r in ds["spec"]["roles"]
    ]


def service(name: str, *, owner: Obj | None = None, of: Kind = LEADER_WORKER_SET, labels: Obj | None = None) -> Obj:
    """A headless Service; `labels` are of LeaderWorkerSet unless it is told of a role."""
    return {
        "apiVersion": SERVICE.api_version,
        "kind": SERVICE.kind,
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"{name}-service",
            "labels": labels or {lws_names.NAME_LABEL: name},
            "ownerReferences": [controller_reference(owner, of)] if owner is not None else [],
        },
        "spec": {"clusterIP": "None"},
    }


def owned_by_set(obj: Obj, ds: Obj) -> Obj:
    """The object with the set as its controller."""
    return {
        **obj,
        "metadata": {**obj["metadata"], "ownerReferences": [controller_reference(ds, DISAGGREGATED_SET)]},
    }


def report(*objects: Obj, **more: Any) -> Report:
    """What the doctor finds; the namespace's name is filled in nowhere."""
    return examine(ward_of(objects, NOW, **more), registry.find())


def found(*objects: Obj, **more: Any) -> list[tuple[str, str]]:
    """Codes and names of what the doctor finds."""
    return [(f.code, f.name) for f in report(*objects, **more).findings]


def only(*objects: Obj, **more: Any) -> Finding:
    """The one thing that the doctor finds."""
    (finding,) = report(*objects, **more).findings
    return finding
