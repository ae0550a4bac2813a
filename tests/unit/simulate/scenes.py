"""Scenes from small clusters, for tests of plans and explanations."""

from __future__ import annotations

from typing import Any

from lwskit.groups.scene import Scene
from lwskit.runtime.kinds import CONTROLLER_REVISION, POD, SERVICE, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj
from lwskit.simulate.plan import plan
from lwskit.simulate.report import Report
from tests.unit.groups.small_cluster import LEADERS, NOW, WORKERS, SmallCluster, make_lws, settled


def typed(kind: Kind, obj: Obj) -> Obj:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def objects_of(cluster: SmallCluster) -> list[Obj]:
    """Everything that a dump of the namespace has."""
    return [
        cluster.lws,
        *([typed(STATEFUL_SET, cluster.workload)] if cluster.workload else ()),
        *(typed(POD, p) for p in cluster.leaders.values()),
        *(typed(STATEFUL_SET, w) for w in cluster.workers.values()),
        *(typed(CONTROLLER_REVISION, r) for r in cluster.revisions),
        *(typed(SERVICE, s) for s in cluster.services.values()),
    ]


def scene_of(cluster: SmallCluster) -> Scene:
    return Scene(
        name=cluster.lws["metadata"]["name"],
        namespace="ns",
        lws=cluster.lws,
        workload=cluster.workload,
        pods=tuple(cluster.leaders.values()),
        workers=tuple(cluster.workers.values()),
        revisions=tuple(cluster.revisions),
        services=tuple(cluster.services.values()),
    )


def small(replicas: int = 4, size: int = 1, **rolling: Any) -> SmallCluster:
    """A set all of whose groups are ready; `rolling` is its rollingUpdateConfiguration."""
    lws = make_lws(replicas=replicas, size=size, image="A")
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"].update(rolling)
    return settled(lws)


def planned(cluster: SmallCluster, new: Obj, order: str = "highest-first") -> Report:
    return plan(scene_of(cluster), new, order, LEADERS, WORKERS, NOW)
