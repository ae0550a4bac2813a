"""`lwskit explain` of sets in Hash mode: what holds them, which pod, and which group would go next (30 §7, §9, §14)."""

from __future__ import annotations

from typing import Any

from lwskit.api import names
from lwskit.cli import explaining
from lwskit.groups.explain import Explanation, State
from lwskit.runtime.kinds import DEPLOYMENT, EVENT, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, condition_of, is_true
from lwskit.runtime.webhook import Handler, allowed, denied
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import limited
from tests.scenarios.explained import says
from tests.scenarios.hash.gating import gated, lingering
from tests.scenarios.hash.support import Group, HashSets, said
from tests.scenarios.support import pod_template


async def explained(cluster: TestCluster, sets: HashSets, *texts: str, **wanted: Any) -> Explanation:
    """The explanation once nothing moves any more, with these fields, and these texts in its paragraph."""
    await sets.settled()
    return await says(cluster, "llm", texts, wanted)


async def test_all_is_well(cluster: TestCluster, sets: HashSets):
    await sets.running(replicas=2, size=2)
    found = await explained(cluster, sets, state=State.OK, cause="ok")
    assert found.paragraph == (
        f"{cluster.namespace}/llm: 2 of 2 groups are ready; 2 are of the newest revision. All is well."
    )
    (victim,) = found.next_to_go
    assert found.scale_down == f"scaling 2 → 1 would remove {victim.name}: {victim.why}"
    assert victim.name in await sets.pods()


async def well_again(cluster: TestCluster, sets: HashSets, pods: int, *sentences: str) -> None:
    """Wait until a set with so many pods, its own and others, is where it should be, and what is said after that has
    just these parts, one in each further sentence."""

    async def well() -> None:
        assert len(await sets.pods()) == pods
        found = await explaining.on_cluster(cluster.client, cluster.namespace, "llm", cluster.clock.now())
        assert found.state is State.OK
        assert len(found.sentences) == 1 + len(sentences), found.sentences
        for sentence, part in zip(found.sentences[1:], sentences, strict=True):
            assert part in sentence

    async with cluster.kubelet.playing():
        await cluster.eventually(well)


async def test_what_holds_devices_beside_a_set_that_is_well(cluster: TestCluster, sets: HashSets):
    """A leader whose label was taken off, and a group that was scaled away and cannot go."""
    await sets.running(replicas=2, size=1)
    looked_at, *_ = sorted(await sets.pods())
    await cluster.patch(POD, looked_at, {"metadata": {"labels": {"pod-template-hash": None}}})

    alone = (
        f"Leader pod {looked_at} is controlled by no ReplicaSet: its group is none of these, but its pods stay on "
        "their nodes until you delete that pod."
    )
    await well_again(cluster, sets, 3, alone)
    await cluster.delete(POD, looked_at)
    await sets.ready()
    await sets.settled()
    group, *_ = (await sets.groups()).values()
    # Without a cost their ages decide, and those may be of another magnitude a moment later.
    await cluster.patch(POD, group.name, {"metadata": {"annotations": {names.POD_DELETION_COST_ANNOTATION: "-1"}}})
    (victim,) = (await explained(cluster, sets)).next_to_go
    assert victim.name == group.name
    async with lingering(cluster, group, pods="leaders"):
        await sets.scale(1)
        going = f"no longer wanted: {victim.name}; {victim.name} is being deleted"
        await well_again(cluster, sets, 2, going)
        await explained(cluster, sets, "kept by finalizer example.com/wait.", state=State.OK)


async def test_a_leader_at_its_gate(cluster: TestCluster, sets: HashSets):
    """It says for how many groups, and which of their pods are still there and why."""
    await sets.running(replicas=2, size=2)
    first, _ = (await sets.groups()).values()
    async with lingering(cluster, first):
        await cluster.delete(POD, first.name)
        (waiting,) = await gated(sets, 1)
        found = await explained(
            cluster,
            sets,
            f"Leader pod {waiting.name} waits for 1 terminating group(s)",
            f"still there: {first.workers[0]['metadata']['name']}",
            "kept by finalizer example.com/wait",
            state=State.BLOCKED,
            cause="group-replacement",
            group=waiting.key,
            pod=waiting.name,
        )
        assert [v.name for v in found.next_to_go] == [waiting.name]


async def test_a_worker_that_is_not_ready(cluster: TestCluster, sets: HashSets):
    """The leader's group-ready condition is False because of that worker, which is named."""
    await sets.running(replicas=3, size=3)
    groups = await sets.groups()
    chosen = groups[sorted(groups)[1]]
    worker = chosen.workers[0]["metadata"]["name"]
    await cluster.kubelet.unready(worker)
    # As its kubelet does: the leader is not ready without its gate.
    await said(sets, chosen.name, "False")
    await cluster.kubelet.ready(chosen.name)
    first = f"{cluster.namespace}/llm: 2 of 3 groups are ready"
    last = f"It goes on by itself once group {chosen.key[:8]}… is ready."
    found = await explained(
        cluster,
        sets,
        first,
        f"The set waits for group {chosen.key[:8]}…, which is on its way. Pod {worker} ",
        last,
        group=chosen.key,
        pod=worker,
        state=State.PROGRESSING,
    )
    assert found.paragraph.startswith(first)
    assert found.paragraph.endswith(last)
    assert [v.name for v in found.next_to_go] == [chosen.name]


async def test_a_rollout_that_does_not_get_ready(cluster: TestCluster, sets: HashSets):
    """The new group is told, and that it holds the rollout."""
    await sets.running(replicas=3, size=1)
    old = set(await sets.pods())
    await sets.patch({"spec": {"leaderWorkerTemplate": {"workerTemplate": pod_template("broken")}}})

    async def started() -> set[str]:
        groups = await sets.living()
        assert not any(group.gated for group in groups.values())
        new = set(await sets.pods()) - old
        assert new
        return new

    new: set[str] = await cluster.eventually(started)
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}
    status = {"name": "worker", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    for pod in new:
        await cluster.patch(POD, pod, {"status": {"containerStatuses": [status]}}, subresource="status")
    await bind(cluster, *new)
    found = await explained(cluster, sets, "holds the rollout", state=State.BLOCKED, cause="image-pull")
    assert found.pod in new


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
    found = await explained(cluster, sets, state=State.BLOCKED)
    assert found.cause in ("foreign-workload", "not-written")
    assert found.next_to_go == ()


async def recreated(cluster: TestCluster, sets: HashSets, group: Group, number: int) -> Group:
    """A container of a worker restarts; returns the group in place of that one once it is let in, and all is told."""
    others = set(await sets.groups())
    await cluster.kubelet.restart_container(group.workers[0]["metadata"]["name"], ready=False)

    async def next_one() -> Group:
        groups = await sets.groups()
        assert group.key not in groups
        new = [g for k, g in groups.items() if k not in others]
        assert [len(g.pods) for g in new] == [2]
        told = [e for e in await sets.events() if e["reason"] == names.EVENT_RECREATE_GROUP]
        assert len(told) == number
        return new[0]

    found: Group = await cluster.eventually(next_one)
    return found


async def test_a_loop_of_recreations_in_which_each_group_has_another_key(cluster: TestCluster, sets: HashSets):
    """Two are what happens now and then; three in a row hold the rollout, until the next template comes."""
    await sets.running(replicas=2, size=2)
    old = set(await sets.groups())
    await sets.patch({"spec": {"leaderWorkerTemplate": {"workerTemplate": pod_template("broken")}}})

    async def started() -> Group:
        new = [g for k, g in (await sets.groups()).items() if k not in old]
        assert [len(g.pods) for g in new] == [2]
        return new[0]

    group: Group = await cluster.eventually(started)
    for number in (1, 2):
        group = await recreated(cluster, sets, group, number)
        await explained(cluster, sets, state=State.PROGRESSING)
    last = group.workers[0]["metadata"]["name"]
    group = await recreated(cluster, sets, group, 3)
    await explained(
        cluster,
        sets,
        f"Group {group.key[:8]}… takes the place of groups that have been recreated 3 times",
        f"last pod {last}",
        "correct it in the set, and the rollout replaces the group",
        state=State.BLOCKED,
        cause="restart-loop",
        group=group.key,
    )
    await sets.patch({"spec": {"leaderWorkerTemplate": {"workerTemplate": pod_template("better")}}})

    async def replaced() -> None:
        assert group.key not in await sets.groups()

    await cluster.eventually(replaced)
    await explained(cluster, sets, state=State.PROGRESSING)


async def test_others_that_fail_once_are_no_loop(cluster: TestCluster, sets: HashSets):
    """Three groups that are recreated once each."""
    await sets.running(replicas=3, size=2)
    for number, group in enumerate([*(await sets.groups()).values()], 1):
        await recreated(cluster, sets, group, number)
    await explained(cluster, sets, state=State.PROGRESSING)


async def test_a_group_without_a_restart_left(cluster: TestCluster, sets: HashSets):
    await sets.running(replicas=2, size=1, group=limited(0))
    name, *_ = sorted(await sets.pods())
    await cluster.kubelet.restart_container(name)
    await gated(sets, 1)
    await explained(
        cluster,
        sets,
        f"annotate pod {name} {names.RECOVER_ANNOTATION}=true",
        state=State.BLOCKED,
        cause="budget-exhausted",
        pod=name,
    )


async def test_a_ready_group_that_waits_for_its_back_off(cluster: TestCluster, sets: HashSets):
    backoff = {"restartBackoff": {"baseSeconds": 300, "capSeconds": 300}}
    await sets.running(replicas=2, size=2, group={"restartPolicy": names.RESTART_RECREATE_GROUP, **backoff})
    group, *_ = (await sets.groups()).values()
    worker = group.workers[0]["metadata"]["name"]
    await cluster.kubelet.restart_container(worker)
    await explained(
        cluster,
        sets,
        f"Group {group.key[:8]}… is ready and will be recreated all the same. Pod {worker} failed",
        state=State.PROGRESSING,
        cause="back-off",
        group=group.key,
        pod=worker,
    )


async def test_a_group_that_finds_no_node(cluster: TestCluster, sets: HashSets):
    await sets.running(replicas=2, size=2)
    old = set(await sets.groups())
    await sets.scale(3)
    (new,) = (g for k, g in (await sets.has_groups(3, size=2)).items() if k not in old)
    worker = new.workers[0]["metadata"]["name"]
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit"}]
    await cluster.patch(POD, worker, {"status": {"conditions": conditions}}, subresource="status")
    await cluster.kubelet.ready(new.name)
    await explained(
        cluster,
        sets,
        "is on no node: 0/3 nodes fit",
        state=State.BLOCKED,
        cause="unschedulable",
        group=new.key,
        pod=worker,
    )


def refusing(index: str) -> Handler:
    """Refuse pods with that worker index (`*`: any but leaders), as a quota that is used up does."""

    def answer(request: Obj) -> Obj:
        meta = request["object"]["metadata"]
        leads = (meta.get("labels") or {}).get(names.WORKER_INDEX_LABEL) == names.LEADER_INDEX
        return denied("exceeded quota: gpus") if leads == (index == names.LEADER_INDEX) else allowed()

    return answer


async def test_leaders_that_a_quota_keeps_from_being_made(cluster: TestCluster, sets: HashSets):
    """What the Deployment says of its ReplicaSets comes before a group that is on its way."""
    await sets.running(replicas=2, size=1)
    first, *_ = sorted(await sets.pods())
    await cluster.webhook(POD, validate=refusing(names.LEADER_INDEX), operations=("CREATE",))
    await sets.scale(3)
    await cluster.kubelet.unready(first)

    async def told() -> None:
        deployment = await cluster.get(DEPLOYMENT, "llm")
        assert is_true(deployment, "ReplicaFailure")

    await cluster.eventually(told)
    await explained(
        cluster,
        sets,
        "Deployment llm cannot make what it should: ",
        "exceeded quota: gpus",
        state=State.BLOCKED,
        cause="no-leader",
    )


async def test_workers_that_a_quota_keeps_from_being_made(cluster: TestCluster, sets: HashSets):
    await cluster.webhook(POD, validate=refusing("*"), operations=("CREATE",))
    await sets.create(replicas=1, size=2)

    async def refused() -> None:
        events = [e for e in await cluster.list(EVENT) if e["regarding"]["kind"] == STATEFUL_SET.kind]
        assert any("exceeded quota: gpus" in e["note"] for e in events)

    await cluster.eventually(refused)
    (leader,) = await sets.pods()
    await cluster.kubelet.ready(leader)
    (group,) = (await sets.groups()).values()
    wanted = {"state": State.BLOCKED, "cause": "no-worker", "group": group.key, "pod": f"{group.host}-1"}
    await says(cluster, "llm", ("exceeded quota: gpus",), wanted)


async def test_a_rollout_that_takes_longer_than_its_deadline(cluster: TestCluster, sets: HashSets):
    """What is on its way for so long is told as blocked, with what the Deployment says."""
    await sets.running(replicas=2, size=1)
    await cluster.patch(DEPLOYMENT, "llm", {"spec": {"progressDeadlineSeconds": 2}})
    await sets.patch({"spec": {"leaderWorkerTemplate": {"workerTemplate": pod_template("slow")}}})

    async def late() -> None:
        condition = condition_of(await cluster.get(DEPLOYMENT, "llm"), "Progressing") or {}
        assert condition.get("reason") == "ProgressDeadlineExceeded"

    await cluster.eventually(late)
    await explained(
        cluster,
        sets,
        "The rollout waits for group ",
        "Deployment llm has not come on within 2 s (ProgressDeadlineExceeded: ReplicaSet ",
        state=State.BLOCKED,
        cause="no-progress",
    )


async def test_a_paused_deployment(cluster: TestCluster, sets: HashSets):
    """Nobody but who paused it lets it go on; groups that are lost meanwhile are told of."""
    await sets.running(replicas=2, size=1)
    first, _ = (await sets.groups()).values()
    await cluster.patch(DEPLOYMENT, "llm", {"spec": {"paused": True}})
    await sets.set_image("img:v2")
    await explained(
        cluster,
        sets,
        "Deployment llm is paused, so it makes no group of another template. Let it go on",
        f"kubectl rollout resume deployment/llm -n {cluster.namespace}",
        state=State.BLOCKED,
        cause="paused",
    )
    await cluster.delete(POD, first.name)
    await gated(sets, 1)
    lost = "1 group of the former template was lost meanwhile, to be replaced only if you go back to that template or"
    await explained(cluster, sets, f"{lost} the update goes on.", cause="paused")


async def test_workers_that_were_left_behind(cluster: TestCluster, sets: HashSets):
    """A leader waits for a group that nobody removes: it does not go on by itself."""
    await sets.running(replicas=2, size=2)
    first, _ = (await sets.groups()).values()
    await cluster.delete(POD, first.name, propagation="Orphan")
    (waiting,) = await gated(sets, 1)
    await explained(
        cluster,
        sets,
        f"StatefulSet {first.host} has no owner and the leader of its pods is gone; delete it",
        state=State.BLOCKED,
        cause="group-replacement",
        pod=waiting.name,
    )
    await cluster.delete(STATEFUL_SET, first.host)
    await sets.ready()


async def test_a_leader_that_is_one_too_many(cluster: TestCluster, sets: HashSets):
    """That it gets ready is not what ends its wait."""
    await sets.running(replicas=1, size=2)
    (group,) = (await sets.groups()).values()
    async with lingering(cluster, group):
        await cluster.delete(POD, group.name)
        await gated(sets, 1)
        found = await explained(cluster, sets)
        assert "goes on by itself" not in found.paragraph
