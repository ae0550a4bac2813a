"""Whether a cluster's controllers are behind what is there: for those who wait for them where time is real."""

from __future__ import annotations

from collections import defaultdict

from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET
from lwskit.runtime.objects import Obj, controller_of, generation_of, is_deleting, is_true, uid_of
from lwskit.testing.cluster import TestCluster

KINDS = (LEADER_WORKER_SET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET)
"""Whose statuses say how much of their spec has been seen."""


async def nobody_is_behind(cluster: TestCluster) -> None:
    """Raises AssertionError unless each workload has been seen as it is, and StatefulSets and ReplicaSets count the
    pods that are there: then whoever makes and removes pods knows how they stand.

    Pods that are on their way out, or have failed, count for some and for others not; who has some is not looked at.
    """
    pods: dict[str, list[Obj]] = defaultdict(list)
    for pod in await cluster.list(POD):
        pods[(controller_of(pod) or {}).get("uid", "")].append(pod)
    for kind in KINDS:
        for obj in await cluster.list(kind):
            status = obj.get("status") or {}
            assert status.get("observedGeneration") == generation_of(obj), kind
            mine = pods[uid_of(obj)]
            if kind in (REPLICA_SET, STATEFUL_SET) and not any(map(_goes, (obj, *mine))):
                ready = sum(is_true(pod, "Ready") for pod in mine)
                said = status.get("replicas", 0), status.get("readyReplicas", 0)
                assert said == (len(mine), ready), (kind, obj["metadata"]["name"])


def _goes(obj: Obj) -> bool:
    return is_deleting(obj) or (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded")
