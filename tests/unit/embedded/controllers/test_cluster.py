"""StatefulSets, garbage, namespaces, scheduler and kubelet together, on the embedded API server and virtual time."""

import asyncio
import json
import random
from collections.abc import AsyncIterator

import pytest

from lwskit.embedded.cluster import Cluster
from lwskit.embedded.controllers.kubelet import Kubelet
from lwskit.embedded.controllers.kubelet_behaviour import NEVER, Behaviour
from lwskit.embedded.controllers.nodes import NodeSpec
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError, NotFound
from lwskit.runtime.kinds import (
    CONFIG_MAP,
    CONTROLLER_REVISION,
    CORE_EVENT,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SERVICE,
    STATEFUL_SET,
    Kind,
)
from lwskit.runtime.objects import condition_of, is_deleting, is_true

pytestmark = pytest.mark.virtual


def sample(replicas: int = 3, **spec) -> dict:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "serviceName": "web",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "one"}]},
            },
        }
        | spec,
    }


def bare_pod(name: str = "p", **spec) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "one"}]} | spec,
    }


def image(name: str) -> dict:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": name}]}}}}


@pytest.fixture
async def cluster(clock: Clock) -> AsyncIterator[Cluster]:
    async with Cluster(clock, random.Random(1), nodes=2) as made:
        yield made


async def pods(client: Client) -> dict[str, dict]:
    return {p["metadata"]["name"]: p for p in (await client.list(POD, "default"))["items"]}


async def names(client: Client, kind: Kind = POD, namespace: str = "default") -> set[str]:
    return {o["metadata"]["name"] for o in (await client.list(kind, namespace))["items"]}


async def web(client: Client) -> dict:
    return await client.get(STATEFUL_SET, "web", "default")


async def settle(seconds: float = 30) -> None:
    await asyncio.sleep(seconds)


async def created(client: Client, replicas: int = 3, **spec) -> dict[str, dict]:
    await client.create(STATEFUL_SET, sample(replicas, **spec))
    await settle()
    return await pods(client)


class TestStatefulSet:
    async def test_parallel_pods_become_ready(self, cluster: Cluster):
        found = await created(cluster.client)
        assert set(found) == {"web-0", "web-1", "web-2"}
        assert all(is_true(p, "Ready") and p["status"]["podIP"] and p["spec"]["nodeName"] for p in found.values())
        status = (await web(cluster.client))["status"]
        assert status["currentRevision"] == status["updateRevision"]
        assert [status[k] for k in ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas")] == [3] * 4
        events = (await cluster.client.list(CORE_EVENT, "default"))["items"]
        made = {e["message"] for e in events if e["reason"] == "SuccessfulCreate"}
        assert "Create Pod web-0 in StatefulSet web successful" in made

    async def test_ordered_pods_come_one_after_the_other(self, cluster: Cluster):
        found = await created(cluster.client, podManagementPolicy="OrderedReady")
        order = sorted(found.values(), key=lambda p: int(p["metadata"]["resourceVersion"]))
        assert [p["metadata"]["name"] for p in order] == ["web-0", "web-1", "web-2"]
        assert len(found) == 3

    async def test_scale_up_and_down(self, cluster: Cluster):
        await created(cluster.client)
        await cluster.client.patch(STATEFUL_SET, "web", {"spec": {"replicas": 5}}, "default")
        await settle()
        assert len(await names(cluster.client)) == 5
        await cluster.client.patch(STATEFUL_SET, "web", {"spec": {"replicas": 1}}, "default")
        await settle()
        assert await names(cluster.client) == {"web-0"}
        assert (await web(cluster.client))["status"]["replicas"] == 1

    async def test_a_deleted_pod_is_replaced_only_when_it_is_gone(self, clock: Clock):
        async with Cluster(clock, random.Random(1), behaviour=Behaviour(stop_delay=10)) as cluster:
            before = await created(cluster.client)
            await cluster.client.delete(POD, "web-1", "default")
            await asyncio.sleep(9)
            lingering = (await pods(cluster.client))["web-1"]
            assert lingering["metadata"]["uid"] == before["web-1"]["metadata"]["uid"]
            assert is_deleting(lingering)
            await settle()
            after = await pods(cluster.client)
            assert after["web-1"]["metadata"]["uid"] != before["web-1"]["metadata"]["uid"]
            assert is_true(after["web-1"], "Ready")
            for other in ("web-0", "web-2"):
                assert after[other]["metadata"]["uid"] == before[other]["metadata"]["uid"]

    async def test_a_rollout_replaces_all_pods(self, cluster: Cluster):
        before = await created(cluster.client)
        await cluster.client.patch(STATEFUL_SET, "web", image("two"), "default")
        await settle()
        after = await pods(cluster.client)
        assert {p["spec"]["containers"][0]["image"] for p in after.values()} == {"two"}
        assert not {p["metadata"]["uid"] for p in after.values()} & {p["metadata"]["uid"] for p in before.values()}
        status = (await web(cluster.client))["status"]
        assert (
            status["currentRevision"]
            == status["updateRevision"]
            != before["web-0"]["metadata"]["labels"]["controller-revision-hash"]
        )

    async def test_the_partition_holds_pods_at_their_revision_even_when_they_are_recreated(self, cluster: Cluster):
        await created(cluster.client, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
        await cluster.client.patch(STATEFUL_SET, "web", image("two"), "default")
        await settle()
        await cluster.client.delete(POD, "web-0", "default")
        await settle()
        after = await pods(cluster.client)
        assert [after[f"web-{i}"]["spec"]["containers"][0]["image"] for i in range(3)] == ["one", "one", "two"]
        status = (await web(cluster.client))["status"]
        assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)

    async def test_a_roll_back_uses_the_old_revision_again(self, cluster: Cluster):
        await created(cluster.client)
        for name in ("two", "one"):
            await cluster.client.patch(STATEFUL_SET, "web", image(name), "default")
            await settle()
        revisions = (await cluster.client.list(CONTROLLER_REVISION, "default"))["items"]
        assert sorted(r["revision"] for r in revisions) == [2, 3]

    async def test_the_history_is_limited(self, cluster: Cluster):
        await created(cluster.client, 1, revisionHistoryLimit=2)
        for i in range(5):
            await cluster.client.patch(STATEFUL_SET, "web", image(f"i{i}"), "default")
            await settle()
        assert len(await names(cluster.client, CONTROLLER_REVISION)) == 3

    async def test_a_revision_is_sent_as_servers_spell_it(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
        sent: list[bytes] = []
        handle = cluster.server.handle

        async def listen(request: HttpRequest, user: str = "admin") -> HttpResponse:
            if request.method == "POST" and request.path.endswith("/controllerrevisions"):
                sent.append(request.body or b"")
            return await handle(request, user)

        monkeypatch.setattr(cluster.server, "handle", listen)
        await created(
            cluster.client, 1, template=image("a&b")["spec"]["template"] | {"metadata": {"labels": {"app": "web"}}}
        )
        assert len(sent) == 1
        # Sorted and escaped: otherwise a later patch of its metadata would count as a change of its data.
        assert b'"data":{"spec":{"template":{"$patch":"replace","metadata":' in sent[0]
        assert b'"image":"a\\u0026b"' in sent[0]

    async def test_a_failed_pod_is_replaced(self, cluster: Cluster):
        before = await created(cluster.client, 1)
        note = {"metadata": {"annotations": {"embedded.k8s.test/fail": "Evicted"}}}
        await cluster.client.patch(POD, "web-0", note, "default")
        await settle()
        after = await pods(cluster.client)
        assert after["web-0"]["metadata"]["uid"] != before["web-0"]["metadata"]["uid"]
        assert after["web-0"]["status"]["phase"] == "Running"

    async def test_orphans_are_adopted_and_strangers_released(self, cluster: Cluster):
        before = await created(cluster.client, 2)
        await cluster.client.delete(STATEFUL_SET, "web", "default", propagation="Orphan")
        await settle()
        orphans = await pods(cluster.client)
        assert set(orphans) == {"web-0", "web-1"}
        assert not any(p["metadata"].get("ownerReferences") for p in orphans.values())
        after = await created(cluster.client, 2)
        assert {p["metadata"]["uid"] for p in after.values()} == {p["metadata"]["uid"] for p in before.values()}
        owner = (await web(cluster.client))["metadata"]["uid"]
        assert all(p["metadata"]["ownerReferences"][0]["uid"] == owner for p in after.values())
        await cluster.client.patch(POD, "web-1", {"metadata": {"labels": {"app": "other"}}}, "default")
        await settle(1)
        assert not (await pods(cluster.client))["web-1"]["metadata"].get("ownerReferences")

    async def test_a_refused_pod_is_told_and_tried_again(self, cluster: Cluster):
        tries = 0

        def refuse(review: dict) -> dict:
            nonlocal tries
            tries += 1
            uid = review["request"]["uid"]
            return {"response": {"uid": uid, "allowed": tries > 3, "status": {"message": "not today"}}}

        cluster.server.register_admission("inprocess://pods", refuse)
        await cluster.client.create(WEBHOOKS, webhook("inprocess://pods"))
        await cluster.client.create(STATEFUL_SET, sample(1))
        await settle()
        assert tries == 4
        events = [
            e for e in (await cluster.client.list(CORE_EVENT, "default"))["items"] if e["reason"] == "FailedCreate"
        ]
        assert len(events) == 1
        assert events[0]["count"] == 3
        assert events[0]["message"].startswith("Create Pod web-0 in StatefulSet web failed error: admission webhook")
        assert is_true((await pods(cluster.client))["web-0"], "Ready")

    async def test_claims_are_made_and_kept(self, cluster: Cluster):
        claim = {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        await created(cluster.client, 2, volumeClaimTemplates=[claim])
        await cluster.client.delete(STATEFUL_SET, "web", "default")
        await settle()
        assert await names(cluster.client, PERSISTENT_VOLUME_CLAIM) == {"data-web-0", "data-web-1"}
        assert await names(cluster.client) == set()


WEBHOOKS = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)


def webhook(url: str) -> dict:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "refuse"},
        "webhooks": [
            {
                "name": "refuse.example.com",
                "clientConfig": {"url": url},
                "rules": [rule],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


class TestGarbage:
    async def test_background_deletes_the_owner_first(self, cluster: Cluster):
        await created(cluster.client)
        await cluster.client.delete(STATEFUL_SET, "web", "default", propagation="Background")
        with pytest.raises(NotFound):
            await web(cluster.client)
        await settle()
        assert await names(cluster.client) == set()
        assert await names(cluster.client, CONTROLLER_REVISION) == set()

    async def test_foreground_keeps_the_owner_until_its_dependents_are_gone(self, clock: Clock):
        async with Cluster(clock, random.Random(1), behaviour=Behaviour(stop_delay=10)) as cluster:
            await created(cluster.client)
            await cluster.client.delete(STATEFUL_SET, "web", "default", propagation="Foreground")
            await asyncio.sleep(5)
            assert is_deleting(await web(cluster.client))
            assert all(is_deleting(p) for p in (await pods(cluster.client)).values())
            await settle()
            assert await names(cluster.client) == await names(cluster.client, STATEFUL_SET) == set()

    async def test_an_object_with_another_living_owner_stays(self, cluster: Cluster):
        owners = []
        for name in ("a", "b"):
            made = await cluster.client.create(CONFIG_MAP, config(name))
            owners.append({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": made["metadata"]["uid"]})
        await cluster.client.create(CONFIG_MAP, config("child", owners))
        await cluster.client.delete(CONFIG_MAP, "a", "default")
        await settle()
        child = await cluster.client.get(CONFIG_MAP, "child", "default")
        assert [r["name"] for r in child["metadata"]["ownerReferences"]] == ["b"]
        await cluster.client.delete(CONFIG_MAP, "b", "default")
        await settle()
        assert "child" not in await names(cluster.client, CONFIG_MAP)

    async def test_an_object_born_with_an_owner_that_is_gone_goes(self, cluster: Cluster):
        ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "no-such-uid"}
        await cluster.client.create(CONFIG_MAP, config("child", [ref]))
        await settle()
        assert "child" not in await names(cluster.client, CONFIG_MAP)

    async def test_an_owner_of_an_unknown_kind_is_no_reason_to_delete(self, cluster: Cluster):
        ref = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "thing-uid"}
        await cluster.client.create(CONFIG_MAP, config("child", [ref]))
        await settle()
        assert "child" in await names(cluster.client, CONFIG_MAP)

    async def test_the_chain_goes_down_to_the_last(self, cluster: Cluster):
        owners: list[dict] = []
        for name in ("a", "b", "c", "d"):
            made = await cluster.client.create(CONFIG_MAP, config(name, owners))
            owners = [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": name,
                    "uid": made["metadata"]["uid"],
                    "blockOwnerDeletion": True,
                }
            ]
        await cluster.client.delete(CONFIG_MAP, "a", "default", propagation="Foreground")
        await settle()
        assert not {"a", "b", "c", "d"} & await names(cluster.client, CONFIG_MAP)

    async def test_custom_kinds_that_come_later_own_and_are_owned(self, cluster: Cluster):
        await cluster.client.create(CRDS, thing_crd())
        await settle(1)
        owner = await cluster.client.create(THING, thing("owner"))
        ref = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "owner", "uid": owner["metadata"]["uid"]}
        await cluster.client.create(THING, thing("child", [ref]))
        await cluster.client.create(CONFIG_MAP, config("child", [ref]))
        await settle(1)
        await cluster.client.delete(THING, "owner", "default")
        await settle()
        assert await names(cluster.client, THING) == set()
        assert "child" not in await names(cluster.client, CONFIG_MAP)


CRDS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
THING = Kind("example.com", "v1", "Thing", "things")


def thing_crd() -> dict:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def thing(name: str, owners: list | None = None) -> dict:
    meta = {"name": name, "namespace": "default", "ownerReferences": owners or []}
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": meta}


def config(name: str, owners: list | None = None, namespace: str = "default") -> dict:
    meta = {"name": name, "namespace": namespace, "ownerReferences": owners or []}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


class TestNamespace:
    async def test_everything_in_it_goes_then_the_namespace(self, cluster: Cluster):
        client = cluster.client
        await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
        inside = sample(2)
        inside["metadata"]["namespace"] = "n"
        await client.create(STATEFUL_SET, inside)
        await client.create(CONFIG_MAP, config("c", namespace="n"))
        await settle()
        assert len(await names(client, POD, "n")) == 2
        await client.delete(NAMESPACE, "n")
        await settle()
        with pytest.raises(NotFound):
            await client.get(NAMESPACE, "n")
        for kind in (POD, STATEFUL_SET, CONFIG_MAP):
            assert await names(client, kind, "n") == set()

    async def test_a_finalizer_holds_it_and_is_named(self, cluster: Cluster):
        client = cluster.client
        await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
        held = config("c", namespace="n")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await client.create(CONFIG_MAP, held)
        await client.delete(NAMESPACE, "n")
        await settle()
        condition = condition_of(await client.get(NAMESPACE, "n"), "NamespaceFinalizersRemaining")
        assert condition
        assert condition["message"].endswith("finalizers remaining: example.com/hold in 1 resource instances")
        await client.patch(CONFIG_MAP, "c", {"metadata": {"finalizers": None}}, "n")
        await settle()
        with pytest.raises(NotFound):
            await client.get(NAMESPACE, "n")


class TestScheduler:
    async def test_gates_hold_a_pod(self, cluster: Cluster):
        client = cluster.client
        await client.create(POD, bare_pod(schedulingGates=[{"name": "example.com/wait"}]))
        await settle()
        pod = (await pods(client))["p"]
        assert "nodeName" not in pod["spec"]
        condition = condition_of(pod, "PodScheduled")
        assert condition
        assert condition["reason"] == "SchedulingGated"
        await client.patch(POD, "p", {"spec": {"schedulingGates": None}}, "default")
        await settle()
        assert is_true((await pods(client))["p"], "Ready")

    async def test_what_fits_nowhere_is_told_and_placed_when_there_is_room(self, cluster: Cluster):
        client = cluster.client
        await client.create(POD, bare_pod(nodeSelector={"zone": "z"}))
        await settle()
        condition = condition_of((await pods(client))["p"], "PodScheduled")
        assert condition
        assert condition["reason"] == "Unschedulable"
        assert condition["message"].startswith("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity")
        events = (await client.list(CORE_EVENT, "default"))["items"]
        assert "FailedScheduling" in {e["reason"] for e in events}
        await client.patch(NODE, "node-1", {"metadata": {"labels": {"zone": "z"}}})
        await settle()
        pod = (await pods(client))["p"]
        assert pod["spec"]["nodeName"] == "node-1"
        assert is_true(pod, "PodScheduled")

    async def test_capacity_is_never_exceeded(self, clock: Clock):
        node = NodeSpec("small", capacity={"cpu": "2", "memory": "1Gi", "pods": "10"})
        async with Cluster(clock, random.Random(1), nodes=[node]) as cluster:
            wants = {"containers": [{"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
            template = {"metadata": {"labels": {"app": "web"}}, "spec": wants}
            found = await created(cluster.client, 3, template=template)
            assert sorted(bool(p["spec"].get("nodeName")) for p in found.values()) == [False, True, True]
            await cluster.client.patch(STATEFUL_SET, "web", {"spec": {"replicas": 4}}, "default")
            placed = next(n for n, p in found.items() if p["spec"].get("nodeName"))
            await cluster.client.delete(POD, placed, "default")
            await settle()
            assert sum("nodeName" in p["spec"] for p in (await pods(cluster.client)).values()) == 2


class TestKubelet:
    async def test_crash_restarts_the_container(self, cluster: Cluster):
        await cluster.client.create(POD, bare_pod())
        await settle()
        assert cluster.kubelet
        cluster.kubelet.crash("default", "p")
        await settle()
        pod = (await pods(cluster.client))["p"]
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
        assert is_true(pod, "Ready")
        with pytest.raises(ConfigurationError, match="does not run"):
            cluster.kubelet.crash("default", "nobody")

    async def test_a_job_like_pod_ends(self, cluster: Cluster):
        pod = bare_pod(restartPolicy="Never")
        pod["metadata"]["annotations"] = {"embedded.k8s.test/run-time": "5", "embedded.k8s.test/exit-code": "3"}
        await cluster.client.create(POD, pod)
        await settle()
        ended = (await pods(cluster.client))["p"]
        assert ended["status"]["phase"] == "Failed"
        assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3

    async def test_readiness_gates(self, cluster: Cluster):
        await cluster.client.create(POD, bare_pod(readinessGates=[{"conditionType": "example.com/go"}]))
        await settle()
        assert not is_true((await pods(cluster.client))["p"], "Ready")
        status = {"status": {"conditions": [{"type": "example.com/go", "status": "True"}]}}
        pod = (await pods(cluster.client))["p"]
        pod["status"]["conditions"] += status["status"]["conditions"]
        await cluster.client.update(POD, pod, subresource="status")
        await settle()
        assert is_true((await pods(cluster.client))["p"], "Ready")

    async def test_a_finalizer_keeps_the_stopped_pod(self, cluster: Cluster):
        pod = bare_pod()
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        await cluster.client.create(POD, pod)
        await settle()
        await cluster.client.delete(POD, "p", "default")
        await settle()
        held = (await pods(cluster.client))["p"]
        assert held["metadata"]["deletionGracePeriodSeconds"] == 0
        assert not is_true(held, "Ready")
        await cluster.client.patch(POD, "p", {"metadata": {"finalizers": None}}, "default")
        assert await names(cluster.client) == set()

    async def test_nodes(self, cluster: Cluster):
        node = await cluster.client.get(NODE, "node-0")
        assert is_true(node, "Ready")
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "node-0"
        assert not node["spec"].get("taints")
        assert cluster.kubelet
        await cluster.kubelet.set_ready("node-0", False)
        assert not is_true(await cluster.client.get(NODE, "node-0"), "Ready")

    async def test_a_node_that_is_cut_off_ends_no_pod_before_it_is_found(self, cluster: Cluster):
        assert cluster.kubelet
        await cluster.client.create(POD, bare_pod())
        await settle()
        cluster.kubelet.cut_off("node-0")
        await cluster.client.delete(POD, "p", "default")
        await settle()
        assert is_true((await pods(cluster.client))["p"], "Ready")
        cluster.kubelet.found("node-0")
        await settle()
        assert await names(cluster.client) == set()

    async def test_a_behaviour_may_depend_on_the_pod(self, clock: Clock):
        def behaviour(pod: dict) -> Behaviour:
            return Behaviour(ready_delay=NEVER if pod["metadata"]["name"] == "late" else 0)

        async with Cluster(clock, random.Random(1), without={"kubelet"}) as cluster:
            kubelet = Kubelet(cluster.client_for("kubelet"), clock=clock, rng=random.Random(1), behaviour=behaviour)
            async with asyncio.TaskGroup() as group:
                running = group.create_task(kubelet.run())
                await cluster.client.create(POD, bare_pod())
                await cluster.client.create(POD, bare_pod("late"))
                await settle()
                found = {n: is_true(p, "Ready") for n, p in (await pods(cluster.client)).items()}
                assert found == {"p": True, "late": False}
                running.cancel()


class TestCluster:
    async def test_what_it_is_made_without_does_not_run(self, clock: Clock):
        without = {"scheduler", "kubelet", "statefulset", "claims", "garbage", "namespace"}
        async with Cluster(clock, random.Random(1), without=without) as cluster:
            assert await created(cluster.client) == {}
            assert (await cluster.client.list(NODE))["items"] == []
            assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= await names(
                cluster.client, NAMESPACE, ""
            )
            assert "kubernetes" in await names(cluster.client, SERVICE)

    async def test_bad_names_are_refused(self, clock: Clock):
        with pytest.raises(ConfigurationError, match="cannot be made without sceduler"):
            Cluster(clock, random.Random(1), without={"sceduler"})

    async def test_stop_leaves_no_task(self, clock: Clock):
        cluster = Cluster(clock, random.Random(1))
        await cluster.start()
        await created(cluster.client)
        await cluster.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    async def test_the_same_seed_gives_the_same_cluster(self, clock: Clock):
        async def uids() -> list[tuple[str, str]]:
            async with Cluster(clock, random.Random(7), nodes=3) as cluster:
                found = await created(cluster.client, 5)
                return [(p["metadata"]["uid"], p["spec"]["nodeName"]) for p in found.values()]

        assert await uids() == await uids()


async def test_a_misspelt_annotation_is_an_event_and_a_warning(cluster: Cluster):
    pod = bare_pod()
    pod["metadata"]["annotations"] = {"embedded.k8s.test/ready-dely": "5"}
    body = json.dumps(pod).encode()
    headers = {"content-type": "application/json"}
    path = "/api/v1/namespaces/default/pods"
    answer = await cluster.server.handle(HttpRequest("POST", path, (), headers, body))
    assert answer.status == 201
    assert "embedded.k8s.test/ready-dely is unknown" in answer.headers["warning"]
    await asyncio.sleep(2)
    events = [e for e in (await cluster.client.list(CORE_EVENT, "default"))["items"] if e["reason"] == "BadAnnotation"]
    assert [(e["type"], e["involvedObject"]["name"], e["count"]) for e in events] == [("Warning", "p", 1)]
    assert "perhaps ready-delay" in events[0]["message"]
    change = {"metadata": {"annotations": {"embedded.k8s.test/ready-dely": None, "embedded.k8s.test/fail": ""}}}
    headers = {"content-type": "application/merge-patch+json"}
    request = HttpRequest("PATCH", f"{path}/p", (), headers, json.dumps(change).encode())
    answer = await cluster.server.handle(request)
    assert "embedded.k8s.test/fail is empty" in answer.headers["warning"]
    assert "ready-dely" not in answer.headers["warning"]


async def test_a_round_that_fails_counts_no_old_pod_down(cluster: Cluster, clock: Clock):
    """A foreign pod stands where one is to be made: nothing is updated, and the status does not say so."""
    client = cluster.client
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 3}}
    await client.create(STATEFUL_SET, sample(2, updateStrategy=strategy))
    await clock.sleep(5)
    foreign = bare_pod("web-2")
    foreign["metadata"]["labels"] = {"app": "else"}
    await client.create(POD, foreign)
    await client.patch(STATEFUL_SET, "web", {"spec": image("two")["spec"] | {"replicas": 3}}, "default")
    await clock.sleep(5)
    status = (await web(client))["status"]
    assert (status["replicas"], status["currentReplicas"]) == (2, 2)
    assert status["currentRevision"] != status["updateRevision"]


async def test_a_round_that_fails_still_cuts_the_history(cluster: Cluster, clock: Clock):
    """No pod is made while an earlier claim of its name is on its way out."""
    client = cluster.client
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": "data-web-0", "namespace": "default", "finalizers": ["example.com/held"]}
    await client.create(PERSISTENT_VOLUME_CLAIM, {"metadata": meta, "spec": spec})
    await client.delete(PERSISTENT_VOLUME_CLAIM, "data-web-0", "default")
    templates = [{"metadata": {"name": "data"}, "spec": spec}]
    await client.create(STATEFUL_SET, sample(1, revisionHistoryLimit=0, volumeClaimTemplates=templates))
    for name in ("two", "three"):
        await clock.sleep(5)
        await client.patch(STATEFUL_SET, "web", image(name), "default")
    await clock.sleep(5)
    assert not await pods(client)
    images = [
        r["data"]["spec"]["template"]["spec"]["containers"][0]["image"]
        for r in (await client.list(CONTROLLER_REVISION, "default"))["items"]
    ]
    assert sorted(images) == ["one", "three"]
