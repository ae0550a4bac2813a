"""`lwskit explain` of sets in Hash mode: what holds them, which pod, and which group would go next (30 §7, §9, §14)."""

from __future__ import annotations

from lwskit.cli import explaining
from lwskit.groups.explain import Explanation, State
from lwskit.runtime.kinds import DEPLOYMENT, POD
from lwskit.testing.cluster import TestCluster
from tests.scenarios.hash.gating import gated, lingering
from tests.scenarios.hash.support import HashSets
from tests.scenarios.support import pod_template


async def explained(cluster: TestCluster, sets: HashSets) -> Explanation:
    """The explanation once nothing moves any more."""
    await sets.settled()
    return await explaining.on_cluster(cluster.client, cluster.namespace, "llm", cluster.clock.now())


async def test_all_is_well(cluster: TestCluster, sets: HashSets):
    await sets.running(replicas=2, size=2)
    found = await explained(cluster, sets)
    assert (found.state, found.cause) == (State.OK, "ok")
    assert found.paragraph == (
        f"{cluster.namespace}/llm: 2 of 2 groups are ready, 2 of the newest revision. All is well."
    )
    (victim,) = found.next_to_go
    assert found.scale_down == f"scaling 2 → 1 would remove {victim.name}: {victim.why}"
    assert victim.name in await sets.pods()


async def test_a_leader_at_its_gate(cluster: TestCluster, sets: HashSets):
    """It says for how many groups, and which of their pods are still there and why."""
    await sets.running(replicas=2, size=2)
    first, _ = (await sets.groups()).values()
    async with lingering(cluster, first):
        await cluster.delete(POD, first.name)
        (waiting,) = await gated(sets, 1)
        found = await explained(cluster, sets)
        assert (found.state, found.cause) == (State.BLOCKED, "group-replacement")
        assert (found.group, found.pod) == (waiting.key, waiting.name)
        assert f"Leader pod {waiting.name} waits for 1 terminating group(s)" in found.paragraph
        assert f"still there: {first.workers[0]['metadata']['name']}" in found.paragraph
        assert "kept by finalizer example.com/wait" in found.paragraph
        assert [v.name for v in found.next_to_go] == [waiting.name]


async def test_a_worker_that_is_not_ready(cluster: TestCluster, sets: HashSets):
    """The leader's group-ready condition is False because of that worker, which is named."""
    await sets.running(replicas=3, size=3)
    groups = await sets.groups()
    chosen = groups[sorted(groups)[1]]
    worker = chosen.workers[0]["metadata"]["name"]
    await cluster.kubelet.unready(worker)
    await sets.settled()
    await cluster.kubelet.ready(chosen.name)
    found = await explained(cluster, sets)
    assert (found.group, found.pod) == (chosen.key, worker)
    assert found.state is State.PROGRESSING
    assert found.paragraph.startswith(f"{cluster.namespace}/llm: 2 of 3 groups are ready")
    assert found.paragraph.endswith(f"It goes on by itself once group {chosen.key[:8]}… is ready.")
    assert f"The set waits for group {chosen.key[:8]}…, which is on its way. Pod {worker} " in found.paragraph
    assert [v.name for v in found.next_to_go] == [chosen.name]


async def test_a_rollout_that_does_not_get_ready(cluster: TestCluster, sets: HashSets):
    """The new group is told, and that it holds the rollout."""
    await sets.running(replicas=3, size=1)
    old = set(await sets.pods())
    await sets.patch({"spec": {"leaderWorkerTemplate": {"workerTemplate": pod_template("broken")}}})
    await sets.settled()
    new = set(await sets.pods()) - old
    assert new
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}
    status = {"name": "worker", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    for pod in new:
        await cluster.patch(POD, pod, {"status": {"containerStatuses": [status]}}, subresource="status")
    await bind(cluster, *new)
    found = await explained(cluster, sets)
    assert (found.state, found.cause) == (State.BLOCKED, "image-pull")
    assert found.pod in new
    assert "holds the rollout" in found.paragraph


async def bind(cluster: TestCluster, *pods: str) -> None:
    """Put pods on a node, as a scheduler does."""
    for pod in pods:
        meta = {"name": pod, "namespace": cluster.namespace}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": {"kind": "Node", "name": "n"}}
        await cluster.client.create(POD, body, subresource="binding")


async def test_the_deployment_of_somebody_else(cluster: TestCluster, sets: HashSets):
    template = {**pod_template("i"), "metadata": {"labels": {"app": "x"}}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "replicas": 0, "template": template}
    await cluster.create(DEPLOYMENT, {"metadata": {"name": "llm"}, "spec": spec})
    await sets.create(replicas=1, size=1)
    found = await explained(cluster, sets)
    assert found.state is State.BLOCKED
    assert found.cause in ("foreign-workload", "not-written")
    assert found.next_to_go == ()
