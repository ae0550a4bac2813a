"""Whether a cluster's controllers are behind what is there: for those who wait for them where time is real."""

from __future__ import annotations

import contextlib
from collections import defaultdict

from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, controller_of, generation_of, is_deleting, is_of, is_true, uid_of
from lwskit.testing.cluster import TestCluster

WORKLOADS = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET)
KINDS = (LEADER_WORKER_SET, *WORKLOADS)
"""Whose statuses say how much of their spec has been seen."""
LONGEST = 15.0
"""Seconds after which nobody waits any more for what a cluster's controllers may leave as it is."""


async def acted_on(cluster: TestCluster, kind: Kind, name: str) -> None:
    """Wait until the manager has acted on an object as it is now, as its status says."""

    async def observed() -> None:
        live = await cluster.get(kind, name)
        assert (live.get("status") or {}).get("observedGeneration") == generation_of(live)

    await cluster.eventually(observed)


async def rests(cluster: TestCluster, *kinds: Kind) -> None:
    """Wait until no object of these kinds in the test's namespace has changed for a while.

    Where time is real a controller that stands still for a moment changes nothing either: then what workloads say must
    be what there is, too, and what has lost its owner be gone, unless nothing comes of waiting for that.
    """
    await cluster.settled(*kinds)
    if cluster.embedded or "statefulset" in cluster.options.without:
        return
    while True:
        with contextlib.suppress(AssertionError):
            await no_workload_is_behind(cluster)
            return
        try:
            await cluster.eventually(lambda: no_workload_is_behind(cluster), LONGEST)
        except AssertionError:
            return
        await cluster.settled(*kinds)


async def no_workload_is_behind(cluster: TestCluster) -> None:
    """Raises AssertionError where a StatefulSet, ReplicaSet or Deployment does not say what there is, or where pods and
    workloads are left of an owner that is gone.

    Pods that are on their way out, or have failed, are not looked at, nor are workloads that have some.
    """
    there = {kind: await cluster.list(kind) for kind in (POD, *WORKLOADS)}
    uids = {uid_of(obj) for objects in there.values() for obj in objects}
    owned: dict[str, list[Obj]] = defaultdict(list)
    for obj in (obj for objects in there.values() for obj in objects):
        owner = controller_of(obj)
        if owner is None:
            continue
        owned[owner["uid"]].append(obj)
        if not _goes(obj) and any(is_of(owner, kind) for kind in there):
            assert owner["uid"] in uids, f"{obj['metadata']['name']} outlives its owner"
    for kind in WORKLOADS:
        for obj in there[kind]:
            mine, status = owned[uid_of(obj)], obj.get("status") or {}
            if any(map(_goes, (obj, *mine))):
                continue
            assert status.get("observedGeneration") == generation_of(obj), kind
            counts = len(mine), sum(is_true(pod, "Ready") for pod in mine)
            if kind is DEPLOYMENT:
                said = [one.get("status") or {} for one in mine]
                counts = sum(one.get("replicas", 0) for one in said), sum(one.get("readyReplicas", 0) for one in said)
            told = status.get("replicas", 0), status.get("readyReplicas", 0)
            assert told == counts, f"{kind.kind} {obj['metadata']['name']} says {told}, and there are {counts}"


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
