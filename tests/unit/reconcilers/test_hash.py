"""Hash mode in the reconcilers: which event makes which work, what is observed, who serves a set (30 §3, §6)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from lwskit.api import names
from lwskit.backends.deployment import DeploymentLeaders
from lwskit.backends.registry import Backends, find
from lwskit.backends.statefulset import StatefulSetLeaders, StatefulSetWorkers
from lwskit.groups import services
from lwskit.groups.model import MemberSnapshot
from lwskit.groups.ports import Capability
from lwskit.reconcilers.group import GroupReconciler
from lwskit.reconcilers.hashed import HashReconciler
from lwskit.reconcilers.metrics import SetMetrics
from lwskit.reconcilers.ordinal import OrdinalReconciler
from lwskit.reconcilers.setup import SetsReconciler, set_controller
from lwskit.reconcilers.stats import SetStats
from lwskit.reconcilers.watches import PodWork, Watches
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.listwatch import Replace
from lwskit.runtime.client.client import Client
from lwskit.runtime.controller.handler import Create, Delete, Event, Generic, Update
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import DEPLOYMENT
from lwskit.runtime.objects import Obj, uid_of
from lwskit.runtime.plan import Plan
from lwskit.runtime.request import Request, Result
from lwskit.testing.scripted import Script
from lwskit.testing.virtual import VirtualClock
from tests.unit.groups.hash_objects import KEY, deployment, hash_lws, key, leader, worker, workers_of
from tests.unit.groups.small_cluster import make_lws

SET = Request("ns", "x", "LeaderWorkerSet")


def versioned(obj: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1"}}


def watching(*pods: Obj, lws: Obj | None = None, workload: Obj | None = None, backends: Backends | None = None) -> Any:
    """Watches that have seen these objects."""
    made = Watches(Cache(Client(Script()), VirtualClock(), random.Random(1)), backends or find())
    made.pods.handle(Replace([versioned(p) for p in pods], "1"))
    made.sets.handle(Replace([lws] if lws else [], "1"))
    made.workloads[DEPLOYMENT].handle(Replace([workload] if workload else [], "1"))
    return made


def asked(handle: Callable[[Event], Any], event: Event) -> list[str]:
    return sorted(r.name for r in handle(event))


def test_readiness_of_workers_concerns_their_leader() -> None:
    """30 §6: of their status nothing else does, and in Ordinal mode nothing at all."""
    made, lws = watching(), hash_lws()
    no, yes = (workers_of(lws, leader(1), ready=ready) for ready in (False, True))
    concern = made.workers_concern_leader
    assert concern(Update(no, yes))
    assert concern(Update(yes, no))
    assert not concern(Update(yes, versioned(yes)))
    assert concern(Create(no))
    assert concern(Delete(no))
    assert not concern(Generic(no))
    labels = {**yes["metadata"]["labels"], names.GROUP_INDEX_LABEL: "1"}
    numbered = [{**w, "metadata": {**w["metadata"], "labels": labels}} for w in (no, yes)]
    assert not concern(Update(*numbered))


def test_a_new_leader_concerns_those_at_their_gates_only_while_a_group_goes() -> None:
    waiting, new = leader(1, gated=True), leader(2, gated=True)
    made = watching(waiting, leader(9))
    assert asked(made.freed_by_pod, Create(new)) == []
    made = watching(waiting, leader(9, leaving=True))
    assert asked(made.freed_by_pod, Create(new)) == ["x-rs-1"]
    assert asked(made.freed_by_pod, Create(leader(3))) == []
    assert asked(made.freed_by_pod, Delete(worker(9))) == ["x-rs-1"]


def test_a_leader_that_goes_concerns_the_one_that_may_be_let_in_in_its_place() -> None:
    """30 §7 item 2: no more than are wanted are let in of a revision, and one fewer is now."""
    rows = [leader(i, gated=True, created=i) for i in (3, 4)]
    lws, there, gone = hash_lws(replicas=2), leader(1), leader(1, leaving=True)
    made = watching(gone, leader(2), *rows, lws=lws)
    assert asked(made.freed_by_pod, Update(there, gone)) == ["x-rs-3"]
    assert asked(made.freed_by_pod, Update(gone, gone)) == []
    assert asked(made.freed_by_pod, Update(worker(1), worker(1, leaving=True))) == []
    assert asked(made.freed_by_pod, Update(leader(5, gated=True), leader(5, gated=True, leaving=True))) == []
    kept = leader(1, leaving=True, exhausted=True)
    made = watching(kept, leader(2), *rows, lws=lws)
    assert asked(made.freed_by_pod, Update(there, kept)) == []
    # There was room before: those who wait, wait for groups that go.
    made = watching(gone, *rows, lws=hash_lws(replicas=4))
    assert asked(made.freed_by_pod, Update(there, gone)) == []


def test_a_deployment_concerns_the_leaders_at_their_gates() -> None:
    made = watching(leader(1, gated=True), leader(2), leader(3, gated=True))
    live = deployment(hash_lws())
    assert asked(made.freed_by_workload, Create(live)) == ["x-rs-1", "x-rs-3"]
    plain = leader(1, gated=True)
    del plain["metadata"]["annotations"][names.GROUP_IDENTITY_ANNOTATION]
    assert asked(watching(plain).freed_by_workload, Create(live)) == []


def test_workers_without_an_owner_concern_one_of_them_and_the_leaders_of_their_name() -> None:
    lws = hash_lws()
    owned = workers_of(lws, leader(1))
    orphan = {**owned, "metadata": {**owned["metadata"], "ownerReferences": []}}
    made = watching(leader(1), worker(1), worker(1, 2), worker(2))
    name = f"x-{key(1)[:8]}"
    assert asked(made.pods_of_workers, Create(owned)) == ["x-rs-1"]
    assert asked(made.pods_of_workers, Create(orphan)) == [name, f"{name}-1", "x-rs-1"]
    assert asked(made.pods_of_workers, Delete(orphan)) == [name, "x-rs-1"]
    assert asked(watching(worker(1)).pods_of_workers, Update(owned, orphan)) == [name, f"{name}-1", "x-rs-1"]


def test_what_takes_a_name_concerns_all_leaders_that_need_it() -> None:
    """Two keys may begin alike: the second leader waits for what the first one's group has."""
    first, second = leader(1), leader(2)
    second["spec"]["hostname"] = first["spec"]["hostname"]
    made = watching(first, second)
    assert asked(made.pods_of_workers, Delete(workers_of(hash_lws(), first))) == ["x-rs-1", "x-rs-2"]
    service = services.group_service(hash_lws(), {**first, "spec": {"subdomain": first["spec"]["hostname"]}})
    assert asked(made.freed_by_service, Delete(service)) == ["x-rs-1", "x-rs-2"]
    assert asked(made.freed_by_service, Create(service)) == []


async def test_what_is_observed_of_a_set() -> None:
    lws = hash_lws()
    made = watching(leader(1), leader(2, gated=True), lws=lws, workload=deployment(lws))
    reconciler = HashReconciler(made, object(), VirtualClock())  # type: ignore[arg-type]
    seen = reconciler.observe(SET, {})
    assert (seen.lws, seen.workload) == (lws, deployment(lws))
    assert (seen.pool.leaders, seen.pool.waiting, seen.owned) == (2, 1, frozenset())
    lws["metadata"]["annotations"] = {names.GROUP_RESTART_COUNTS_ANNOTATION: "{}"}
    seen = reconciler.observe(SET, {})
    assert (seen.owned, seen.unclaimed) == ({key(1), key(2)}, 0)
    pod = leader(2, gated=True)
    del pod["spec"]["schedulingGates"]
    made = watching(leader(1), pod, lws=lws, workload=deployment(lws))
    assert HashReconciler(made, object(), VirtualClock()).observe(SET, {}).unclaimed == 1  # type: ignore[arg-type]
    assert reconciler.observe(Request("ns", "y", "LeaderWorkerSet"), {}).lws is None


async def test_leaders_of_the_other_mode_are_not_foreign() -> None:
    """They are of an earlier set of this name, and go by themselves; those of a kind nobody knows are somebody's."""
    old, other = leader(1), leader(2)
    old["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "uid": "u"}]
    other["metadata"]["ownerReferences"] = [{"apiVersion": "e.com/v1", "kind": "Fleet", "name": "x", "uid": "u"}]
    for pod in (old, other):
        pod["metadata"]["ownerReferences"][0]["controller"] = True
    for make, lws in ((HashReconciler, hash_lws()), (OrdinalReconciler, make_lws())):
        for pod, wanted in ((old, ""), (leader(3), ""), (other, "Fleet.e.com")):
            made = watching(pod, lws=lws)
            assert make(made, object(), VirtualClock()).observe(SET, {}).led_by == wanted  # type: ignore[arg-type]


class Slow(DeploymentLeaders):
    capabilities = frozenset({Capability.RANKED_SCALE_DOWN})


def test_a_backend_that_cannot_serve_the_mode_is_refused_when_the_controller_is_built() -> None:
    made = watching(backends=Backends(StatefulSetLeaders(), StatefulSetWorkers(), Slow()))
    with pytest.raises(ConfigurationError, match="cannot lead sets in Hash mode, for it lacks readiness-paced"):
        set_controller(made, object(), VirtualClock(), random.Random(1))  # type: ignore[arg-type]


class Recording:
    """An executor that takes down the plans it is given."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []

    async def attempt(self, plan: Plan) -> Result:
        self.plans.append(plan)
        return plan.result


@pytest.mark.parametrize(("lws", "kind"), [(hash_lws(), "Deployment"), (make_lws(), "StatefulSet")])
async def test_each_set_is_served_in_its_mode(lws: Obj, kind: str) -> None:
    made, executor = watching(lws=lws), Recording()
    await SetsReconciler(made, executor, VirtualClock())(SET)  # type: ignore[arg-type]
    (plan,) = executor.plans
    assert [a.obj["kind"] for a in plan.actions if hasattr(a, "manager")] == [kind]  # type: ignore[union-attr]


async def test_what_a_leader_waits_for_is_told_once() -> None:
    """30 §7: not again when it changes, and forgotten with the leader."""
    lws = hash_lws()
    pod, going = leader(1, gated=True), leader(9, leaving=True)
    made, executor = watching(pod, going, lws=lws, workload=deployment(lws)), Recording()
    reconcile = GroupReconciler(made, executor, VirtualClock())  # type: ignore[arg-type]
    request = Request("ns", "x-rs-1", "Pod", uid_of(pod), payload=PodWork(("x", key(1))))

    async def told() -> list[str]:
        executor.plans.clear()
        await reconcile(request)
        return [type(a).__name__ for plan in executor.plans for a in plan.actions]

    assert await told() == ["Emit"]
    assert await told() == []
    made.pods.handle(Replace([versioned(p) for p in (pod, going, leader(8, leaving=True))], "2"))
    assert await told() == []
    gone = Request("ns", "x-rs-1", "Pod", uid_of(pod), True, PodWork(("x", key(1)), pod))
    await reconcile(gone)
    assert await told() == ["Emit"]


async def test_what_is_observed_of_a_leader() -> None:
    lws = hash_lws()
    pod = leader(1, gated=True)
    made = watching(pod, leader(2), worker(2), lws=lws, workload=deployment(lws))
    reconcile = GroupReconciler(made, object(), VirtualClock())  # type: ignore[arg-type]

    def seen() -> MemberSnapshot:
        return reconcile.observe(Request("ns", "x-rs-1", "Pod", payload=PodWork(("x", key(1)))), {})

    assert (seen().pool.waiting, seen().set_pods, seen().owned) == (1, (), frozenset())
    assert seen().workload == deployment(lws)
    lws["metadata"]["annotations"] = {names.GROUP_RESTART_COUNTS_ANNOTATION: "{}"}
    assert seen().owned == {key(1), key(2)}


def test_metrics_of_a_set() -> None:
    lws = hash_lws(replicas=3)
    live = deployment(lws, replicas=4, readyReplicas=3, updatedReplicas=1)
    pods = [leader(1), leader(2, exhausted=True), leader(3)]
    registry = CollectorRegistry()
    made = watching(*pods, lws=lws, workload=live)
    registry.register(SetMetrics(made, SetStats()))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"namespace": KEY.namespace, "name": KEY.name, **labels})

    states = {s: value("lwskit_groups", state=s) for s in ("wanted", "created", "ready", "updated", "exhausted")}
    assert states == {"wanted": 3, "created": 4, "ready": 2, "updated": 1, "exhausted": 1}
    assert value("lwskit_rollout_groups_left") == 3
    assert value("lwskit_rollout_partition") is None


def test_pods_feed_the_pool() -> None:
    made = watching(leader(1))
    assert made.pool.state_of(KEY).leaders == 1
    made.pods.handle(Replace([], "2"))
    assert made.pool.state_of(KEY).leaders == 0
