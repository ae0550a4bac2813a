"""`lwskit explain` on a cluster: for each cause, the paragraph names it, the group, the pod, and what to do."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import names
from lwskit.cli import explaining, observed
from lwskit.groups.explain import Explanation, State
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import TestCluster
from tests.scenarios.behind import rests
from tests.scenarios.explained import says
from tests.scenarios.support import ALL_KINDS, Sets, pod_template


async def explained(cluster: TestCluster, *texts: str, name: str = "llm", **wanted: Any) -> Explanation:
    """The explanation once nothing moves any more, with these fields, and these texts in its paragraph."""
    await rests(cluster, *ALL_KINDS)
    return await says(cluster, name, texts, wanted)


async def looked(cluster: TestCluster, name: str) -> Explanation:
    """The explanation as it is now."""
    return await explaining.on_cluster(cluster.client, cluster.namespace, name, cluster.clock.now())


async def status(cluster: TestCluster, pod: str, **fields: Any) -> None:
    """Write into the status of a pod, as a kubelet does."""
    await cluster.patch(POD, pod, {"status": fields}, subresource="status")


def waiting(reason: str, message: str = "", **more: Any) -> list[Obj]:
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    return [{"name": "worker", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state, **more}]


def rolling(**fields: Any) -> Obj:
    return {"type": "RollingUpdate", "rollingUpdateConfiguration": fields}


async def test_all_is_well(cluster: TestCluster, sets: Sets) -> None:
    await sets.running(replicas=2, size=2)
    found = await explained(cluster, state=State.OK, cause="ok")
    assert found.paragraph == (
        f"{cluster.namespace}/llm: 2 of 2 groups are ready; 2 are of the newest revision. All is well."
    )


@pytest.mark.parametrize(("length", "suffix", "most"), [(58, "-0", 52), (52, "-0-1", 50)])
async def test_a_name_that_leaves_no_room_for_pods(
    cluster: TestCluster, sets: Sets, length: int, suffix: str, most: int
) -> None:
    """The label with the StatefulSet's revision is the name and a hash: too long for leaders, or only for workers."""
    name, pod = "n" * length, "n" * length + suffix
    await sets.create(name, replicas=1, size=2)
    async with cluster.kubelet.playing():
        await explained(
            cluster,
            f"here {name}-",
            "which has",
            f"A set cannot be renamed: create it anew with a name of at most {most} characters.",
            name=name,
            state=State.BLOCKED,
            cause="name-too-long",
            group=0,
            pod=pod,
        )


async def test_a_leader_without_a_node(cluster: TestCluster, sets: Sets) -> None:
    await sets.create(replicas=1, size=2)
    await sets.has_pods("llm-0", "llm-0-1")
    conditions = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}
    ]
    await status(cluster, "llm-0", phase="Pending", conditions=conditions)
    await explained(
        cluster,
        "Pod llm-0 is on no node: 0/3 nodes are available.",
        state=State.BLOCKED,
        cause="unschedulable",
        group=0,
        pod="llm-0",
    )


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_a_worker_whose_image_is_not_there_holds_the_rollout(cluster: TestCluster, sets: Sets) -> None:
    await sets.running(replicas=3, size=2)
    await sets.set_image("img:nonsense")
    await sets.has_event("GroupsUpdating", "Updating replica 2")
    await sets.has_image("img:nonsense", "llm-2", "llm-2-1")
    await cluster.kubelet.ready("llm-2")
    await status(cluster, "llm-2-1", phase="Pending", containerStatuses=waiting("ImagePullBackOff", "no such tag"))
    await bind(cluster, "llm-2-1")
    await explained(
        cluster,
        "Group 2 holds the rollout.",
        "cannot get the image of container worker (ImagePullBackOff): no such tag",
        state=State.BLOCKED,
        cause="image-pull",
        group=2,
        pod="llm-2-1",
        waits_for="group 2 to become ready",
    )


async def bind(cluster: TestCluster, pod: str) -> None:
    """Put a pod on a node, as a scheduler does."""
    meta = {"name": pod, "namespace": cluster.namespace}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": {"kind": "Node", "name": "n"}}
    await cluster.client.create(POD, body, subresource="binding")


async def test_a_leader_that_crashes(cluster: TestCluster, sets: Sets) -> None:
    await sets.running(replicas=2, size=1, group={"restartPolicy": "None"})
    await cluster.kubelet.unready("llm-1")
    await bind(cluster, "llm-1")
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    crashing = waiting("CrashLoopBackOff", restartCount=4)
    await status(cluster, "llm-1", phase="Running", containerStatuses=[{**crashing[0], "lastState": ended}])
    await explained(
        cluster,
        "(CrashLoopBackOff, 4 restarts, exit code 137, OOMKilled)",
        "`kubectl -n ",
        state=State.BLOCKED,
        cause="crash-loop",
        pod="llm-1",
    )


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_the_known_hold_and_the_group_to_delete(cluster: TestCluster, sets: Sets) -> None:
    """20 §6.5: a group that is down below the update keeps it from a ready one; deleting that one lets it go on."""
    await sets.running(replicas=3, size=1)
    await cluster.kubelet.unready("llm-0")
    await sets.counts_ready(2)
    await sets.set_image("img:v2")
    await explained(
        cluster,
        "held by group 0",
        f"`kubectl -n {cluster.namespace} delete pod llm-2`",
        state=State.BLOCKED,
        cause="formula-hold",
        group=0,
    )
    await cluster.delete(POD, "llm-2")
    await sets.has_event("GroupsUpdating", "Updating replica 2")


async def test_a_leader_workload_that_cannot_be_written(cluster: TestCluster, sets: Sets) -> None:
    def claims(size: str) -> Obj:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return {"volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": spec}]}

    await sets.running(replicas=1, size=1, group=claims("1Gi"))
    await sets.patch({"spec": {"leaderWorkerTemplate": claims("2Gi")}})
    await explained(
        cluster,
        "Failed to update leader statefulset llm",
        "volumeClaimTemplates cannot be changed",
        state=State.BLOCKED,
        cause="not-written",
    )


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_the_partition_holds(cluster: TestCluster, sets: Sets) -> None:
    await sets.running(replicas=3, size=1, rolloutStrategy=rolling(partition=2))
    await sets.set_image("img:v2")
    await sets.has_event("GroupsUpdating", "Updating replica 2")
    await sets.has_image("img:v2", "llm-2")
    await cluster.kubelet.ready("llm-2")
    await explained(cluster, "The partition 2 keeps groups 0 and 1", state=State.HELD, cause="partition")


async def test_a_restart_budget_that_is_used_up(cluster: TestCluster, sets: Sets) -> None:
    group = {"restartPolicy": names.RESTART_RECREATE_GROUP, "maxGroupRestarts": 0}
    await sets.running(replicas=2, size=2, group=group)
    await cluster.kubelet.restart_container("llm-1-1")
    await explained(
        cluster,
        f"annotate pod llm-1 {names.RECOVER_ANNOTATION}=true",
        state=State.BLOCKED,
        cause="budget-exhausted",
        group=1,
    )


async def test_a_recreation_that_waits(cluster: TestCluster, sets: Sets) -> None:
    group = {"restartPolicy": names.RESTART_RECREATE_GROUP, "restartBackoff": {"baseSeconds": 300, "capSeconds": 300}}
    await sets.running(replicas=1, size=2, group=group)
    await cluster.kubelet.restart_container("llm-0-1", ready=False)
    await explained(cluster, "(restartBackoff)", state=State.PROGRESSING, cause="back-off", pod="llm-0-1")


async def test_workers_wait_for_their_leader(cluster: TestCluster, sets: Sets) -> None:
    await sets.create(replicas=1, size=2, startupPolicy=names.STARTUP_LEADER_READY)
    await sets.has_pods("llm-0")
    await explained(
        cluster,
        "its workers are made when it is ready (startupPolicy LeaderReady)",
        state=State.PROGRESSING,
        cause="not-scheduled",
        pod="llm-0",
    )


async def test_workers_wait_for_the_node_of_their_leader(cluster: TestCluster, sets: Sets) -> None:
    topology = {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}
    await sets.create(replicas=1, size=2, metadata={"annotations": topology})
    await sets.has_pods("llm-0")
    await cluster.kubelet.ready("llm-0")
    await explained(cluster, "which has no node yet", state=State.PROGRESSING, cause="no-workers", group=0)


async def test_a_set_that_is_being_deleted(cluster: TestCluster, sets: Sets) -> None:
    await sets.running(replicas=1, size=1)
    await sets.patch({"metadata": {"finalizers": ["example.com/wait"]}})
    await cluster.delete(LEADER_WORKER_SET, "llm")
    await explained(cluster, "kept by finalizer example.com/wait", state=State.DELETING, cause="deleting")
    await sets.patch({"metadata": {"finalizers": None}})


async def test_a_foreign_statefulset_has_the_name(cluster: TestCluster, sets: Sets) -> None:
    template = {**pod_template("i"), "metadata": {"labels": {"app": "x"}}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "serviceName": "x", "replicas": 0, "template": template}
    await cluster.create(STATEFUL_SET, {"metadata": {"name": "llm"}, "spec": spec})
    await sets.create(replicas=1, size=1)
    found = await explained(cluster, state=State.BLOCKED)
    assert found.cause in ("foreign-workload", "not-written")


async def test_unknown_names(cluster: TestCluster, sets: Sets) -> None:
    await sets.create("llm", replicas=0, size=1)
    with pytest.raises(ConfigurationError, match="did you mean llm"):
        await looked(cluster, "lmm")
    with pytest.raises(ConfigurationError, match=r"there are: llm"):
        await looked(cluster, "other-thing")
    assert await observed.names_on(cluster.client, cluster.namespace) == ["llm"]


class TestWithoutManager:
    """Nobody serves the set."""

    @pytest.fixture
    def cluster_runnables(self) -> tuple[()]:
        return ()

    async def test_nobody_has_acted(self, cluster: TestCluster, sets: Sets) -> None:
        await sets.create(replicas=1, size=1)
        await explained(
            cluster, "the manager does not run", state=State.BLOCKED, cause="no-manager", waits_for="the manager"
        )
