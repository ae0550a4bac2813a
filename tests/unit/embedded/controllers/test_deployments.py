"""Deployments, ReplicaSets, garbage and kubelet together, on the embedded API server and virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lwskit.embedded.cluster import Cluster
from lwskit.embedded.controllers import deployment_revisions as revisions
from lwskit.embedded.controllers.kubelet_behaviour import Behaviour
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.kinds import CORE_EVENT, DEPLOYMENT, NAMESPACE, POD, REPLICA_SET, Kind
from lwskit.runtime.objects import condition_of, controller_of, is_deleting

from .test_cluster import WEBHOOKS, image, webhook

pytestmark = pytest.mark.virtual


def sample(replicas: int = 3, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "one"}]},
            },
        }
        | spec,
    }


@pytest.fixture
async def cluster(clock: Clock) -> AsyncIterator[Cluster]:
    async with Cluster(clock, random.Random(1), nodes=2) as made:
        yield made


@pytest.fixture
async def bare(clock: Clock) -> AsyncIterator[Cluster]:
    """Nobody binds pods or runs them."""
    async with Cluster(clock, random.Random(1), without={"scheduler", "kubelet"}) as made:
        yield made


async def all_of(client: Client, kind: Kind) -> list[dict[str, Any]]:
    return (await client.list(kind, "default"))["items"]


async def web(client: Client) -> dict[str, Any]:
    return await client.get(DEPLOYMENT, "web", "default")


async def sizes(client: Client) -> list[int]:
    sets = sorted(await all_of(client, REPLICA_SET), key=revisions.age_of)
    return [s["spec"]["replicas"] for s in sets]


async def told(client: Client, kind: str) -> list[tuple[str, str]]:
    events = [e for e in await all_of(client, CORE_EVENT) if e["involvedObject"]["kind"] == kind]
    return [(e["reason"], e["message"]) for e in events]


class TestRollout:
    async def test_created_updated_and_rolled_back(self, cluster: Cluster):
        client = cluster.client
        await client.create(DEPLOYMENT, sample(4))
        await asyncio.sleep(10)
        made = await web(client)
        assert {k: made["status"][k] for k in ("replicas", "readyReplicas", "updatedReplicas")} == {
            "replicas": 4,
            "readyReplicas": 4,
            "updatedReplicas": 4,
        }
        await client.patch(DEPLOYMENT, "web", image("two"), "default")
        await asyncio.sleep(10)
        assert await sizes(client) == [0, 4]
        await client.patch(DEPLOYMENT, "web", image("one"), "default")
        await asyncio.sleep(10)
        assert await sizes(client) == [4, 0]
        first, second = sorted(await all_of(client, REPLICA_SET), key=revisions.age_of)
        annotations = first["metadata"]["annotations"]
        assert annotations[revisions.REVISION] == "3"
        assert annotations[revisions.HISTORY] == "1"
        assert second["metadata"]["annotations"][revisions.REVISION] == "2"
        made = await web(client)
        assert made["metadata"]["annotations"][revisions.REVISION] == "3"
        progressing = condition_of(made, "Progressing")
        assert progressing is not None
        assert progressing["message"] == f'ReplicaSet "{first["metadata"]["name"]}" has successfully progressed.'

    async def test_events(self, cluster: Cluster):
        client = cluster.client
        await client.create(DEPLOYMENT, sample(1))
        await asyncio.sleep(10)
        await client.patch(DEPLOYMENT, "web", image("two"), "default")
        await asyncio.sleep(10)
        old, new = (s["metadata"]["name"] for s in sorted(await all_of(client, REPLICA_SET), key=revisions.age_of))
        assert await told(client, "Deployment") == [
            ("ScalingReplicaSet", f"Scaled up replica set {old} from 0 to 1"),
            ("ScalingReplicaSet", f"Scaled up replica set {new} from 0 to 1"),
            ("ScalingReplicaSet", f"Scaled down replica set {old} from 1 to 0"),
        ]
        (pod,) = await all_of(client, POD)
        said = await told(client, "ReplicaSet")
        assert ("SuccessfulCreate", f"Created pod: {pod['metadata']['name']}") in said
        assert [reason for reason, _ in said].count("SuccessfulDelete") == 1

    async def test_recreate_waits_for_pods_that_take_their_time(self, clock: Clock):
        async with Cluster(clock, random.Random(1), behaviour=Behaviour(stop_delay=20)) as cluster:
            client = cluster.client
            await client.create(DEPLOYMENT, sample(2, strategy={"type": "Recreate"}))
            await asyncio.sleep(10)
            await client.patch(DEPLOYMENT, "web", image("two"), "default")
            await asyncio.sleep(10)
            assert await sizes(client) == [0]
            assert (await web(client))["status"]["terminatingReplicas"] == 2
            await asyncio.sleep(20)
            assert await sizes(client) == [0, 2]

    async def test_a_template_that_never_gets_ready_times_out(self, bare: Cluster):
        client = bare.client
        await client.create(DEPLOYMENT, sample(2, progressDeadlineSeconds=30))
        await asyncio.sleep(25)
        progressing = condition_of(await web(client), "Progressing")
        assert progressing is not None
        assert progressing["reason"] == "ReplicaSetUpdated"
        await asyncio.sleep(10)
        progressing = condition_of(await web(client), "Progressing")
        assert progressing is not None
        assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")

    async def test_min_ready_seconds(self, cluster: Cluster):
        client = cluster.client
        await client.create(DEPLOYMENT, sample(2, minReadySeconds=30))
        await asyncio.sleep(20)
        status = (await web(client))["status"]
        assert (status["readyReplicas"], status.get("availableReplicas", 0)) == (2, 0)
        await asyncio.sleep(15)
        assert (await web(client))["status"]["availableReplicas"] == 2

    async def test_two_replica_sets_of_one_name(self, bare: Cluster):
        """Somebody else has made one of the name that the new one would have."""
        client = bare.client
        await client.create(DEPLOYMENT, sample(1, paused=True))
        await asyncio.sleep(1)
        taken = revisions.new_set(await web(client))
        taken["metadata"] = {"name": taken["metadata"]["name"], "namespace": "default", "labels": {"app": "other"}}
        await client.create(REPLICA_SET, taken | {"spec": taken["spec"] | {"replicas": 0}})
        await client.patch(DEPLOYMENT, "web", {"spec": {"paused": False}}, "default")
        await asyncio.sleep(10)
        made = await web(client)
        assert made["status"]["collisionCount"] == 1
        mine = [s for s in await all_of(client, REPLICA_SET) if controller_of(s)]
        assert [s["metadata"]["name"] != taken["metadata"]["name"] for s in mine] == [True]
        assert len(await all_of(client, POD)) == 1


class TestOwners:
    async def test_orphans_are_adopted_again(self, cluster: Cluster):
        client = cluster.client
        await client.create(DEPLOYMENT, sample(2))
        await asyncio.sleep(10)
        before = {p["metadata"]["name"] for p in await all_of(client, POD)}
        await client.delete(DEPLOYMENT, "web", "default", propagation="Orphan")
        await asyncio.sleep(10)
        (replica_set,) = await all_of(client, REPLICA_SET)
        assert controller_of(replica_set) is None
        await client.create(DEPLOYMENT, sample(2))
        await asyncio.sleep(10)
        (replica_set,) = await all_of(client, REPLICA_SET)
        owner = controller_of(replica_set)
        assert owner is not None
        assert owner["kind"] == "Deployment"
        assert {p["metadata"]["name"] for p in await all_of(client, POD)} == before

    async def test_a_pod_with_other_labels_is_let_go_and_replaced(self, cluster: Cluster):
        client = cluster.client
        await client.create(DEPLOYMENT, sample(1))
        await asyncio.sleep(10)
        (pod,) = await all_of(client, POD)
        name = pod["metadata"]["name"]
        await client.patch(POD, name, {"metadata": {"labels": {"app": "debugged"}}}, "default")
        await asyncio.sleep(10)
        pods = {p["metadata"]["name"]: p for p in await all_of(client, POD)}
        assert len(pods) == 2
        assert controller_of(pods[name]) is None

    async def test_everything_goes_with_the_deployment(self, cluster: Cluster):
        client = cluster.client
        await client.create(DEPLOYMENT, sample(2))
        await asyncio.sleep(10)
        await client.delete(DEPLOYMENT, "web", "default", propagation="Foreground")
        await asyncio.sleep(10)
        assert [await all_of(client, k) for k in (DEPLOYMENT, REPLICA_SET, POD)] == [[], [], []]


class TestReplicaSets:
    async def test_ended_pods_are_replaced_and_kept(self, bare: Cluster):
        client = bare.client
        await client.create(DEPLOYMENT, sample(2))
        await asyncio.sleep(5)
        name = (await all_of(client, POD))[0]["metadata"]["name"]
        await client.patch(POD, name, {"status": {"phase": "Failed"}}, "default", subresource="status")
        await asyncio.sleep(5)
        phases = sorted(p["status"]["phase"] for p in await all_of(client, POD))
        assert phases == ["Failed", "Pending", "Pending"]

    async def test_the_cheapest_pods_go_first(self, bare: Cluster):
        client = bare.client
        await client.create(DEPLOYMENT, sample(4))
        await asyncio.sleep(5)
        names = [p["metadata"]["name"] for p in await all_of(client, POD)]
        for name, cost in zip(names, ("5", "-100", "0", "-1"), strict=True):
            note = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": cost}}}
            await client.patch(POD, name, note, "default")
        await client.patch(DEPLOYMENT, "web", {"spec": {"replicas": 2}}, "default", subresource="scale")
        await asyncio.sleep(5)
        assert {p["metadata"]["name"] for p in await all_of(client, POD)} == {names[0], names[2]}

    async def test_what_cannot_be_created_is_told_and_tried_again(self, bare: Cluster):
        client, open_ = bare.client, False
        asked: list[str] = []

        def refuse(review: dict[str, Any]) -> dict[str, Any]:
            asked.append(review["request"]["object"]["metadata"]["generateName"])
            return {"response": {"uid": review["request"]["uid"], "allowed": open_, "status": {"message": "not today"}}}

        bare.server.register_admission("inprocess://pods", refuse)
        await client.create(WEBHOOKS, webhook("inprocess://pods"))
        await client.create(DEPLOYMENT, sample(4))
        await asyncio.sleep(0.001)
        assert len(asked) < 4, "a burst begins with one pod"
        await asyncio.sleep(5)
        text = 'admission webhook "refuse.example.com" denied the request: not today'
        (replica_set,) = await all_of(client, REPLICA_SET)
        for obj in (replica_set, await web(client)):
            failure = condition_of(obj, "ReplicaFailure")
            assert failure is not None
            assert (failure["status"], failure["reason"], failure["message"]) == ("True", "FailedCreate", text)
        assert ("FailedCreate", f"Error creating: {text}") in await told(client, "ReplicaSet")
        open_ = True
        await asyncio.sleep(60)
        assert len(await all_of(client, POD)) == 4
        assert condition_of(await web(client), "ReplicaFailure") is None

    async def test_a_namespace_that_ends_gets_no_new_pods(self, cluster: Cluster):
        client = cluster.client
        await client.create(NAMESPACE, {"metadata": {"name": "t"}})
        made = sample(3)
        made["metadata"]["namespace"] = "t"
        await client.create(DEPLOYMENT, made)
        await asyncio.sleep(5)
        await client.delete(NAMESPACE, "t")
        await asyncio.sleep(60)
        assert "t" not in {n["metadata"]["name"] for n in (await client.list(NAMESPACE))["items"]}
        failed = [e for e in (await client.list(CORE_EVENT))["items"] if e["reason"].startswith("Failed")]
        assert failed == []


@pytest.mark.parametrize(("without", "sets", "pods"), [("deployment", 0, 0), ("replicaset", 1, 0)])
async def test_a_cluster_without_one_of_them(clock: Clock, without: str, sets: int, pods: int):
    async with Cluster(clock, random.Random(1), without={without}) as cluster:
        await cluster.client.create(DEPLOYMENT, sample(2))
        await asyncio.sleep(10)
        assert len(await all_of(cluster.client, REPLICA_SET)) == sets
        assert len(await all_of(cluster.client, POD)) == pods


async def test_deleted_pods_are_replaced_while_they_terminate(bare: Cluster):
    client = bare.client
    await client.create(DEPLOYMENT, sample(2))
    await asyncio.sleep(5)
    name = (await all_of(client, POD))[0]["metadata"]["name"]
    await client.patch(POD, name, {"metadata": {"finalizers": ["example.com/held"]}}, "default")
    await client.delete(POD, name, "default")
    await asyncio.sleep(5)
    pods = await all_of(client, POD)
    assert [is_deleting(p) for p in pods].count(True) == 1
    assert len(pods) == 3
    (replica_set,) = await all_of(client, REPLICA_SET)
    assert (replica_set["status"]["replicas"], replica_set["status"]["terminatingReplicas"]) == (2, 1)
