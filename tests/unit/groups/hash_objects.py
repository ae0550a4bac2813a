"""Sets in Hash mode, their leaders and workers, as tests of decisions see them."""

from __future__ import annotations

from typing import Any

from lwskit.api import names
from lwskit.backends.deployment import DeploymentLeaders
from lwskit.groups import templates
from lwskit.groups.pool import GroupPool
from lwskit.runtime.kinds import POD, REPLICA_SET
from lwskit.runtime.objects import Key, Obj
from tests.unit.groups.small_cluster import NOW, WORKERS, make_lws, ready_workers

HASHED = DeploymentLeaders()
KEY = Key("ns", "x")
MARK = {names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION: "true"}


def key(i: int) -> str:
    """The key of group i."""
    return f"{i:08x}" + "0" * 32


def hash_lws(**fields: Any) -> Obj:
    """A set in Hash mode; arguments as for `make_lws`."""
    lws = make_lws(**fields)
    lws["spec"]["groupIdentity"] = names.IDENTITY_HASH
    return lws


def leader(
    i: int,
    *,
    revision: str = "r1",
    gated: bool = False,
    leaving: bool = False,
    exhausted: bool = False,
    ready: bool = True,
    phase: str = "Running",
    created: int = 0,
    size: int = 3,
    condition: str = "",
    maker: str = "rs",
) -> Obj:
    """The leader of group i, made by a ReplicaSet `created` seconds after the others, or by nobody."""
    conditions = [{"type": "Ready", "status": str(ready)}, {"type": "ContainersReady", "status": str(ready)}]
    if condition:
        conditions.append({"type": names.GROUP_READY_GATE, "status": condition})
    pod: Obj = {
        "metadata": {
            "name": f"x-rs-{i}",
            "namespace": "ns",
            "uid": f"leader-{i}",
            "creationTimestamp": f"2026-10-20T09:{created // 60:02}:{created % 60:02}Z",
            "labels": {
                names.NAME_LABEL: "x",
                names.WORKER_INDEX_LABEL: "0",
                names.GROUP_INDEX_LABEL: key(i),
                names.GROUP_KEY_LABEL: key(i),
                names.REVISION_LABEL: revision,
            },
            "annotations": {
                names.SIZE_ANNOTATION: str(size),
                names.GROUP_IDENTITY_ANNOTATION: names.IDENTITY_HASH,
                **({names.POD_DELETION_COST_ANNOTATION: names.GATED_DELETION_COST} if gated else {}),
                **(MARK if exhausted else {}),
            },
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": REPLICA_SET.kind, "name": "x-rs", "uid": maker, "controller": True}
            ][: bool(maker)],
        },
        "spec": {
            "hostname": f"x-{key(i)[:8]}",
            "subdomain": "x",
            "containers": [{"name": "c", "image": "a"}],
            **({"readinessGates": [{"conditionType": names.GROUP_READY_GATE}]} if size > 1 else {}),
            **({"schedulingGates": [{"name": names.GROUP_REPLACEMENT_GATE}]} if gated else {}),
        },
        "status": {"phase": phase, "conditions": conditions},
    }
    if leaving:
        pod["metadata"]["deletionTimestamp"] = "2026-10-20T09:59:00Z"
    return pod


def worker(i: int, n: int = 1, *, leaving: bool = False) -> Obj:
    """Worker n of group i."""
    host = f"x-{key(i)[:8]}"
    pod: Obj = {
        "metadata": {
            "name": f"{host}-{n}",
            "namespace": "ns",
            "uid": f"worker-{i}-{n}",
            "labels": {
                names.NAME_LABEL: "x",
                names.WORKER_INDEX_LABEL: str(n),
                names.GROUP_INDEX_LABEL: key(i),
                names.GROUP_KEY_LABEL: key(i),
                names.REVISION_LABEL: "r1",
            },
            "annotations": {
                names.SIZE_ANNOTATION: "3",
                names.GROUP_IDENTITY_ANNOTATION: names.IDENTITY_HASH,
                names.LEADER_NAME_ANNOTATION: f"x-rs-{i}",
            },
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": host, "uid": f"sts-{i}", "controller": True}
            ],
        },
        "spec": {"containers": [{"name": "c", "image": "a"}]},
        "status": {"phase": "Running"},
    }
    if leaving:
        pod["metadata"]["deletionTimestamp"] = "2026-10-20T09:59:00Z"
    return pod


def workers_of(lws: Obj, leading: Obj, *, ready: bool = True) -> Obj:
    """The StatefulSet of workers of a leader, as the manager makes it."""
    made = WORKERS.render(templates.group_plan(lws, lws, leading))
    uid = leading["metadata"]["uid"].replace("leader", "sts")
    return ready_workers({**made, "metadata": {**made["metadata"], "uid": uid, "resourceVersion": "1"}}, ready)


def deployment(lws: Obj, revision: str = "r1", *, observed: bool = True, **status: int) -> Obj:
    """The Deployment of a set's leaders with the counts of its status."""
    made = HASHED.render(templates.hashed_leader_plan(lws, revision))
    meta = {**made["metadata"], "uid": "deployment", "generation": 2, "resourceVersion": "1"}
    return {**made, "metadata": meta, "status": {"observedGeneration": 2 if observed else 1, **status}}


def pool_of(*pods: Obj) -> GroupPool:
    """A pool that was told of these pods."""
    pool = GroupPool()
    for pod in pods:
        pool.apply(POD, None, pod)
    return pool


__all__ = ["NOW", "WORKERS"]
