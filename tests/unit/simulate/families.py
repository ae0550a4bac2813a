"""DisaggregatedSets whose children have workloads and pods, as a dump of a cluster has them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from lwskit.admission import sets
from lwskit.backends import registry
from lwskit.disaggregated import family as families
from lwskit.disaggregated.family import Family
from lwskit.runtime.objects import Obj
from lwskit.simulate.disaggregated_plan import plan
from lwskit.simulate.disaggregated_report import Report
from lwskit.simulate.disaggregated_world import Judge, Refusal
from tests.unit.doctor.patients import chat, child, role
from tests.unit.groups.small_cluster import NOW, SmallCluster, make_lws
from tests.unit.simulate.scenes import objects_of

BACKENDS = registry.find()


def paced(name: str, replicas: int, *, surge: int | str = 1, unavailable: int | str = 0, **more: Any) -> Obj:
    """A role with these limits."""
    one = role(name, replicas, **more)
    config = {"maxSurge": surge, "maxUnavailable": unavailable}
    one["spec"]["rolloutStrategy"] = {"type": "RollingUpdate", "rollingUpdateConfiguration": config}
    return one


def with_image(ds: Obj, image: str, *roles: str) -> Obj:
    """The set with another image in these roles, or in all: a new revision."""
    new = copy.deepcopy(ds)
    new["metadata"]["generation"] += 1
    for one in new["spec"]["roles"]:
        if not roles or one["name"] in roles:
            (container,) = one["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
            container["image"] = image
    return new


def with_replicas(ds: Obj, **replicas: int) -> Obj:
    """The set with other counts of these roles."""
    new = copy.deepcopy(ds)
    new["metadata"]["generation"] += 1
    for one in new["spec"]["roles"]:
        if one["name"] in replicas:
            one["spec"]["replicas"] = replicas[one["name"]]
    return new


def cluster_of(lws: Obj, ready: int | None = None) -> SmallCluster:
    """A child with its workload and pods, of whose groups the first `ready` are ready, or all."""
    name, wanted = lws["metadata"]["name"], lws["spec"]["replicas"]
    whole = make_lws(name, replicas=wanted, size=lws["spec"]["leaderWorkerTemplate"]["size"])
    meta = {**whole["metadata"], **lws["metadata"], "resourceVersion": "1"}
    cluster = SmallCluster({**whole, "metadata": meta, "spec": {**whole["spec"], **lws["spec"]}})
    cluster._uids = (f"{name}-uid-{n}" for n in range(10**6))
    cluster.settle()
    cluster.make_ready(*range(wanted if ready is None else ready))
    cluster.settle()
    assert cluster.workload is not None
    cluster.workload["metadata"]["generation"] = 1
    status = {"replicas": wanted, "observedGeneration": 1}
    cluster.workload = {**cluster.workload, "status": status}
    lacking = {**(cluster.lws.get("status") or {}), "observedGeneration": 1}
    cluster.lws = {**cluster.lws, "status": lacking}
    return cluster


def objects(ds: Obj, children: Mapping[str, Obj] | None = None, ready: Mapping[str, int] | None = None) -> list[Obj]:
    """A set and all that belongs to it. `children` are those that there are, by any key, or all that it asks for.

    `ready` has how many groups are ready, by that key.
    """
    found = children
    if found is None:
        found = {
            f"{i}/{r['name']}": child(ds, r["name"], r["spec"]["replicas"], slice=i)
            for i in range(ds["spec"]["slices"])
            for r in ds["spec"]["roles"]
        }
    return [ds, *(o for key, lws in found.items() for o in objects_of(cluster_of(lws, (ready or {}).get(key))))]


def family(*objects: Obj, name: str = "chat") -> Family:
    """The family of a set among objects."""
    return families.of(objects, "ns", name, BACKENDS.leaders_of, BACKENDS.workers)


def planned(new: Obj, *objects: Obj, order: str = "", judge: Judge | None = None) -> Report:
    """The plan for storing a set where these objects are."""
    return plan(family(*objects), new, order, BACKENDS.leaders_of, BACKENDS.workers, NOW, judge or admitted)


def admitted(child: Obj, before: Obj | None) -> Sequence[Refusal]:
    """What the webhooks refuse of a child."""
    return [Refusal(error.path, error.detail) for error in sets.faults(child, before)]


def pair(prefill: int = 4, decode: int = 2, **limits: Any) -> Obj:
    """The set `chat` with roles prefill and decode."""
    return chat(paced("prefill", prefill, **limits), paced("decode", decode, **limits))
