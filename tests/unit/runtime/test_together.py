"""Cache, controller, executor, recorder, election and manager together, on an embedded API server in virtual time."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from lwskit.embedded.cluster import Cluster
from lwskit.runtime.apply import apply_needed
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.builder import Builder
from lwskit.runtime.election import Elector
from lwskit.runtime.events import Recorder
from lwskit.runtime.execute import Executor, Fresh, reconcile
from lwskit.runtime.kinds import CONFIG_MAP, EVENT, LEASE, SECRET, STATEFUL_SET
from lwskit.runtime.manager import Manager
from lwskit.runtime.objects import Obj, controller_reference, ref_of, uid_of
from lwskit.runtime.plan import Apply, Delete, Event, OnError, Patch, Plan
from lwskit.runtime.request import Request, Result

FIELD_MANAGER = "copier"


def bare(clock: Clock) -> Cluster:
    """Only the API server and the garbage collector."""
    return Cluster(clock, random.Random(1), without={"scheduler", "kubelet", "statefulset", "namespace"})


def stateful_set() -> Obj:
    pod_spec = {
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "containers": [
            {
                "name": "main",
                "image": "nginx",
                "args": ["-c", "x"],
                "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
                "env": [
                    {"name": "A", "value": "1000m"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi", "nvidia.com/gpu": 8}},
                "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
                "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
            }
        ],
        "volumes": [{"name": "cache", "emptyDir": {"sizeLimit": "1024Mi"}}, {"name": "tmp", "emptyDir": {}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s", "namespace": "default", "labels": {"app": "x"}, "annotations": {"a/b": "c"}},
        "spec": {
            "replicas": 2,
            "serviceName": "s",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": pod_spec},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}},
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "data"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
                }
            ],
        },
    }


async def test_what_a_server_made_of_an_intent_needs_no_second_apply(clock: Clock) -> None:
    client = bare(clock).client
    live = await client.apply(STATEFUL_SET, stateful_set(), field_manager="m")
    assert not apply_needed(live, stateful_set(), "m")
    again = await client.apply(STATEFUL_SET, stateful_set(), field_manager="m")
    assert again["metadata"]["resourceVersion"] == live["metadata"]["resourceVersion"]
    for change in ({"replicas": 3}, {"minReadySeconds": 5}):
        intent = stateful_set()
        intent["spec"] |= change
        assert apply_needed(live, intent, "m")
    stripped = {"metadata": {"labels": {"app": None}}}
    live = await client.patch(STATEFUL_SET, "s", stripped, "default", field_manager="person")
    assert apply_needed(live, stateful_set(), "m")


class Copier:
    """Keeps a Secret's copy of every ConfigMap; the smallest controller that does everything once."""

    def __init__(self, cluster: Cluster, clock: Clock, elector: Elector | None = None) -> None:
        rng = random.Random(2)
        client = cluster.client_for(FIELD_MANAGER)
        self.cache = Cache(client, clock, rng, keep_manager=FIELD_MANAGER)
        self.recorder = Recorder(client, clock, "copier", "copier-host", rng)
        self.executor = Executor(client, self.cache, self.recorder, clock, FIELD_MANAGER)
        self.controller = (
            Builder(self.reconcile, clock=clock, rng=rng)
            .for_(self.cache.informer(CONFIG_MAP))
            .owns(self.cache.informer(SECRET))
            .build()
        )
        self.manager = Manager(clock, rng, elector)
        for runnable in (self.recorder, self.cache, self.controller):
            self.manager.add(runnable)
        self.decided = 0

    async def reconcile(self, request: Request) -> Result:
        def observe(fresh: Fresh) -> Obj | None:
            return self.cache.store(CONFIG_MAP).get(request.key)

        return await reconcile(observe, self.decide, self.executor)

    def decide(self, source: Obj | None) -> Plan:
        self.decided += 1
        if source is None:
            return Plan(note="it is gone and so is its copy, in time")
        copy: Obj = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": source["metadata"]["name"],
                "namespace": source["metadata"]["namespace"],
                "ownerReferences": [controller_reference(source, CONFIG_MAP)],
            },
            "stringData": source.get("data", {}),
        }
        told = Event(ref_of(source, CONFIG_MAP), "Copied", "Copy", "copied")
        return Plan((Apply(why="keep a copy", kind=SECRET, obj=copy, manager=FIELD_MANAGER, on_success=told),))


async def settle(clock: Clock) -> None:
    await clock.sleep(5)


async def test_a_controller_copies_recreates_and_ends_in_order(clock: Clock) -> None:
    async with bare(clock) as cluster:
        copier = Copier(cluster, clock)
        task = asyncio.create_task(copier.manager.run())
        await settle(clock)
        source: Obj = {"metadata": {"name": "c", "namespace": "default"}, "data": {"a": "b"}}
        await cluster.client.create(CONFIG_MAP, source)
        await settle(clock)
        first = await cluster.client.get(SECRET, "c", "default")
        assert first["metadata"]["ownerReferences"][0]["name"] == "c"
        await cluster.client.delete(SECRET, "c", "default")
        await settle(clock)
        second = await cluster.client.get(SECRET, "c", "default")
        assert uid_of(second) != uid_of(first)
        events = (await cluster.client.list(EVENT, "default"))["items"]
        ours = [e for e in events if e["reportingController"] == "copier"]
        assert ours[0]["note"] == "copied"
        copier.manager.stop()
        await task
        assert copier.decided >= 2


async def test_only_the_elected_of_two_managers_works_and_the_other_takes_over(clock: Clock) -> None:
    async with bare(clock) as cluster:
        copiers: list[tuple[Copier, asyncio.Task[Any]]] = []
        for name in ("one", "two"):
            elector = Elector(cluster.client, clock, random.Random(name), "default", "lock", name)
            copier = Copier(cluster, clock, elector)
            copiers.append((copier, asyncio.create_task(copier.manager.run())))
            await settle(clock)
        source: Obj = {"metadata": {"name": "c", "namespace": "default"}}
        await cluster.client.create(CONFIG_MAP, source)
        await settle(clock)
        assert [copier.decided > 0 for copier, _ in copiers] == [True, False]
        copiers[0][1].cancel()
        with pytest.raises(asyncio.CancelledError):
            await copiers[0][1]
        await clock.sleep(25)
        assert copiers[1][0].decided > 0
        lease = await cluster.client.get(LEASE, "lock", "default")
        assert lease["spec"]["holderIdentity"] == "two"
        assert lease["spec"]["leaseTransitions"] == 1
        copiers[1][0].manager.stop()
        await copiers[1][1]


async def test_preconditions_hold_on_a_server(clock: Clock) -> None:
    cluster = bare(clock)
    copier = Copier(cluster, clock)
    live = await cluster.client.create(CONFIG_MAP, {"metadata": {"name": "c", "namespace": "default"}})
    key = copier.cache.informer(CONFIG_MAP).kind, Request("default", "c").key
    requeue = {"Conflict": OnError.REQUEUE}
    patch: dict[str, Any] = {"kind": key[0], "key": key[1], "body": {"data": {"x": "y"}}, "errors": requeue}
    stale = Patch(why="mark", uid="another", **patch)
    assert (await copier.executor.execute(Plan((stale,)))).requeue
    delete = Delete(why="away", kind=key[0], key=key[1], uid="another", errors=requeue)
    assert (await copier.executor.execute(Plan((delete,)))).requeue
    assert await copier.executor.execute(Plan((Patch(why="mark", uid=uid_of(live), **patch),))) == Result()
    assert (await cluster.client.get(CONFIG_MAP, "c", "default"))["data"] == {"x": "y"}
