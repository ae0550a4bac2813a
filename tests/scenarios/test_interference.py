"""What other clients do to a set's leader workload and to kept pods: it is put back, and no group is taken down."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import CONTROLLER_REVISION, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, annotations_of, controller_of, is_true, labels_of, uid_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import exhaust, limited
from tests.scenarios.rollouts import group_ready, reaches
from tests.scenarios.support import LEADERS, Sets, images, partition_of, pod_template, revision_key, seen, strategy


async def has_label_again(sets: Sets, label: str, value: str) -> None:
    """Wait until the leader workload carries a label, and is owned by its set."""

    async def back() -> None:
        workload = await sets.leader_workload()
        assert labels_of(workload).get(label) == value
        owner = controller_of(workload)
        assert owner is not None
        assert owner["uid"] == uid_of(await sets.live())

    await sets.cluster.eventually(back)


def unlabelled(label: str) -> Obj:
    """A merge patch that removes a label."""
    return {"metadata": {"labels": {label: None}}}


async def test_leaders_without_their_label_are_no_reason_to_make_them_anew(cluster: TestCluster, sets: Sets):
    """20 §6.4: one group is down at a time, whatever label somebody takes off the leaders' workload in a rollout."""
    await sets.running(replicas=4, size=2)
    await sets.set_image("v:B")
    await reaches(sets, 3, "v1", "v1", "v1", "B*")
    revisions = await sets.revisions()
    async with cluster.observe(sets.workload) as workloads:
        await cluster.patch(STATEFUL_SET, "llm", unlabelled(names.NAME_LABEL))
        await has_label_again(sets, names.NAME_LABEL, "llm")
        await reaches(sets, 3, "v1", "v1", "v1", "B*")
        assert set(seen(workloads, "llm", partition_of)) == {3}
    assert await sets.revisions() == revisions
    await sets.ready()


async def test_another_key_on_the_leaders_workload_rolls_nothing(cluster: TestCluster, sets: Sets):
    """20 §3.3: pods are made from the key that the template carries; another one on the object is put back."""
    await sets.running(replicas=3, size=2)
    key = revision_key(await sets.leader_workload())
    before = await sets.pod_uids()
    for body in ({"metadata": {"labels": {names.REVISION_LABEL: "foo"}}}, unlabelled(names.REVISION_LABEL)):
        await cluster.patch(STATEFUL_SET, "llm", body)
        await has_label_again(sets, names.REVISION_LABEL, key)
        await sets.settled()
        assert await sets.pod_uids() == before
        assert len(await sets.revisions()) == 1


async def test_a_workload_without_its_owner_is_taken_back_and_tells_nothing(cluster: TestCluster, sets: Sets):
    """20 §8: while nobody knows whose groups they are, nothing is said of them."""
    await sets.running(replicas=2, size=2)
    await sets.settled()
    before = await sets.pod_uids()
    async with cluster.observe(LEADER_WORKER_SET) as lives:
        await cluster.patch(STATEFUL_SET, "llm", {"metadata": {"ownerReferences": None}})
        await has_label_again(sets, names.NAME_LABEL, "llm")
        await sets.settled()
        assert [c for c in lives.of("llm") if not is_true(c.obj, names.CONDITION_AVAILABLE)] == []
    assert await sets.pod_uids() == before


@pytest.mark.parametrize(
    ("unavailable", "partition", "groups"), [(0, 3, "v1 v1 v1 B* B"), (1, 2, "v1 v1 B* B* B")], ids=["more", "fewer"]
)
async def test_leaders_that_are_left_behind_in_a_rollout_are_taken_over(
    cluster: TestCluster, sets: Sets, unavailable: int, partition: int, groups: str
):
    """20 §6: `kubectl delete statefulset --cascade=orphan` changes neither the pace nor the groups, surge included."""
    rolling = strategy(maxUnavailable=unavailable, maxSurge=1)
    await sets.running(replicas=4, size=2, rolloutStrategy=rolling)
    await sets.set_image("v:B")
    await sets.has_pods(*(p for i in range(5) for p in (f"llm-{i}", f"llm-{i}-1")))
    await group_ready(sets, 4)
    await reaches(sets, partition, *groups.split())
    await sets.settled()
    before, old = await sets.pod_uids(), await sets.leader_workload()
    async with cluster.observe(LEADER_WORKER_SET) as lives, cluster.observe(STATEFUL_SET) as workloads:
        await cluster.delete(STATEFUL_SET, "llm", propagation="Orphan")

        async def anew() -> None:
            assert uid_of(await sets.leader_workload()) != uid_of(old)

        await cluster.eventually(anew)
        await reaches(sets, partition, *groups.split())
        assert await sets.pod_uids() == before
        assert {w["spec"]["replicas"] for w in (c.obj for c in workloads.of("llm"))} == {5}
        assert min(seen(workloads, "llm", partition_of)) == partition
        assert [c.obj["status"] for c in lives.of("llm")] == []
    await sets.ready()
    assert [image.partition(":")[2] for image in (await images(sets)).values()] == ["B"] * 8


async def test_leaders_that_are_left_behind_at_rest_are_taken_over(cluster: TestCluster, sets: Sets):
    """Nobody sees anything of it: pods and status stay, no surge is made, and one revision is left."""
    await sets.running(replicas=3, size=2, rolloutStrategy=strategy(maxSurge=1))
    await sets.settled()
    before, old = await sets.pod_uids(), await sets.leader_workload()
    async with cluster.observe(LEADER_WORKER_SET) as lives, cluster.observe(STATEFUL_SET) as workloads:
        await cluster.delete(STATEFUL_SET, "llm", propagation="Orphan")

        async def anew() -> None:
            assert uid_of(await sets.leader_workload()) != uid_of(old)

        await cluster.eventually(anew)
        await sets.settled()
        assert await sets.pod_uids() == before
        assert {(c.obj["spec"]["replicas"], partition_of(c.obj)) for c in workloads.of("llm")} == {(3, 0)}
        assert [c.obj["status"] for c in lives.of("llm")] == []


@pytest.mark.undisturbed("it disturbs its manager by itself")
@pytest.mark.parametrize("late", ["pods", "statefulsets"])
@pytest.mark.parametrize("rolls", [False, True], ids=["at-rest", "in-a-rollout"])
async def test_leaders_are_taken_over_in_whatever_order_that_is_heard_of(
    cluster: TestCluster, sets: Sets, late: str, rolls: bool
):
    """20 §2, §6: until it is known whose the leaders are nothing is said of them; after that the rollout goes on."""
    await sets.running(replicas=3, size=2, rolloutStrategy=strategy(maxSurge=1))
    partition, groups = 0, ("v1", "v1", "v1")
    if rolls:
        await sets.set_image("v:B")
        partition, groups = 2, ("v1", "v1", "B*", "B*")
        await reaches(sets, partition, *groups)
    await sets.settled()
    before, old = await sets.pod_uids(), await sets.leader_workload()
    async with cluster.observe(LEADER_WORKER_SET) as lives:
        with cluster.slow_watches(lambda request: 1.0 if request.path.endswith(f"/{late}") else 0.0):
            await cluster.delete(STATEFUL_SET, "llm", propagation="Orphan")

            async def anew() -> None:
                assert uid_of(await sets.leader_workload()) != uid_of(old)

            await cluster.eventually(anew)
            await sets.settled()
        await reaches(sets, partition, *groups)
        assert await sets.pod_uids() == before
        assert [c.obj["status"] for c in lives.of("llm")] == []
    await sets.ready()


async def test_leaders_that_go_with_their_workload_in_a_rollout_are_all_made_anew(cluster: TestCluster, sets: Sets):
    """20 §6.4 case 1: what is made after `kubectl delete statefulset` is of the newest template at once."""
    await sets.running(replicas=3, size=2, rolloutStrategy=strategy(maxSurge=1))
    await sets.set_image("v:B")
    await reaches(sets, 2, "v1", "v1", "B*", "B*")
    async with cluster.observe(STATEFUL_SET) as workloads:
        await cluster.delete(STATEFUL_SET, "llm", propagation="Background")

        async def anew() -> None:
            assert set((await images(sets)).values()) == {"v:B"}
            assert len(await sets.live_pods()) == 6

        await cluster.eventually(anew)
    made = [c.obj for c in workloads.of("llm") if c.type == "ADDED"]
    assert [(w["spec"]["replicas"], partition_of(w)) for w in made] == [(3, 0)]
    await sets.ready()


async def test_a_set_that_is_made_anew_waits_for_the_leaders_of_the_one_before(cluster: TestCluster, sets: Sets):
    """20 §2: the workload of an earlier set of this name is removed by the collector, not taken over."""
    await sets.create(replicas=2, size=2, leader=pod_template("leader:v1"), image="img:v1")
    await sets.ready()
    old, pods = uid_of(await sets.leader_workload()), await sets.pod_uids()
    await cluster.delete(LEADER_WORKER_SET, "llm", "Background")
    await sets.create(replicas=2, size=2, leader=pod_template("leader:v1"), image="img:v2")

    async def anew() -> None:
        assert uid_of(await sets.leader_workload()) != old
        live = await sets.live_pods()
        assert not {uid_of(p) for p in live.values()} & set(pods.values())
        workers = [p for p in live.values() if labels_of(p)[names.WORKER_INDEX_LABEL] != names.LEADER_INDEX]
        assert [p["spec"]["containers"][0]["image"] for p in workers] == ["img:v2", "img:v2"]

    await cluster.eventually(anew)
    await sets.ready()
    assert len(await cluster.list(POD, LEADERS)) == 2


async def test_a_rollout_goes_on_without_the_record_of_replicas(cluster: TestCluster, sets: Sets):
    """20 §5: a field of ours that somebody removes is put back; §6.4 cannot decide without it."""
    await sets.running(replicas=4, size=2)
    await sets.set_image("v:B")
    await reaches(sets, 3, "v1", "v1", "v1", "B*")
    async with cluster.observe(sets.workload) as workloads:
        for value in (None, "many"):
            notes = {"metadata": {"annotations": {names.REPLICAS_ANNOTATION: value}}}
            await cluster.patch(STATEFUL_SET, "llm", notes)

            async def back() -> None:
                assert annotations_of(await sets.leader_workload())[names.REPLICAS_ANNOTATION] == "4"

            await cluster.eventually(back)
        await reaches(sets, 3, "v1", "v1", "v1", "B*")
        assert set(seen(workloads, "llm", partition_of)) == {3}
    await sets.ready()


async def test_a_group_without_its_revision_says_so(cluster: TestCluster, sets: Sets):
    """20 §10.2 step 16: nothing makes an older revision again; the group is whole again once the update reaches it."""
    await sets.running(replicas=2, size=2, rolloutStrategy=strategy(partition=1))
    (old,) = await sets.revisions()
    await sets.set_image("v:B")
    await reaches(sets, 1, "v1", "B*")
    await sets.ready()
    await cluster.delete(CONTROLLER_REVISION, old["metadata"]["name"])
    # News of revisions and of pods reach the manager by different ways.
    await sets.settled()
    await cluster.delete(POD, "llm-0")
    key = revision_key(old)
    await sets.has_event(
        "FailedCreate",
        f"revision {key}, which leader pod llm-0 is of, has been deleted, so its workers cannot be made before the "
        "group is updated",
        type="Warning",
    )
    await sets.patch({"spec": {"rolloutStrategy": strategy(partition=0)}})
    await sets.ready()


async def test_workers_without_their_label_get_it_back(cluster: TestCluster, sets: Sets):
    """20 §6.2: they are found by it, and the name is taken: their group would never be ready again."""
    await sets.running(replicas=2, size=2)
    await sets.settled()
    before = await sets.pod_uids()
    await cluster.patch(STATEFUL_SET, "llm-0", unlabelled(names.NAME_LABEL))

    async def back() -> None:
        assert labels_of(await cluster.get(STATEFUL_SET, "llm-0")).get(names.NAME_LABEL) == "llm"

    await cluster.eventually(back)
    await sets.ready()
    await sets.settled()
    assert await sets.pod_uids() == before
    assert not [e for e in await sets.events() if e["type"] == "Warning"]


async def scale_workers(cluster: TestCluster, name: str, replicas: int) -> None:
    """As `kubectl scale statefulset NAME --replicas=N`."""
    await cluster.patch(STATEFUL_SET, name, {"spec": {"replicas": replicas}}, subresource="scale")


async def test_a_group_whose_workers_somebody_scaled_away_is_not_ready(cluster: TestCluster, sets: Sets):
    """20 §6.2: ready is a whole group, and a StatefulSet without replicas has all that it asks for."""
    await sets.running(replicas=2, size=3, group={"restartPolicy": "None"})
    for replicas in (0, 1):
        await scale_workers(cluster, "llm-0", replicas)

        async def not_ready() -> None:
            assert (await sets.live())["status"]["readyReplicas"] == 1
            assert (await sets.conditions())[names.CONDITION_AVAILABLE] == "False"

        async with cluster.kubelet.playing():
            await cluster.eventually(not_ready)
            await cluster.consistently(not_ready)
    await scale_workers(cluster, "llm-0", 2)
    await sets.ready()


async def test_workers_that_somebody_scales_away_are_lost_pods(cluster: TestCluster, sets: Sets):
    """20 §11.2: the group is recreated for them, with workers as its revision has them."""
    await sets.running(replicas=1, size=3)
    before = await sets.pod_uids()
    await scale_workers(cluster, "llm-0", 0)

    async def another() -> None:
        assert uid_of((await sets.live_pods())["llm-0"]) != before["llm-0"]

    await cluster.eventually(another)
    await sets.ready()
    assert (await cluster.get(STATEFUL_SET, "llm-0"))["spec"]["replicas"] == 2


async def test_a_kept_leader_that_loses_its_mark_is_let_go(cluster: TestCluster, sets: Sets):
    """20 §12.3: kept is what carries the mark; without it the group is made anew."""
    await sets.running(replicas=1, group=limited(0))
    await sets.settled()
    await exhaust(cluster, sets)
    kept = (await sets.pods())["llm-0"]
    mark = names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION
    await cluster.patch(POD, "llm-0", {"metadata": {"annotations": {mark: None}}})

    async def another() -> None:
        assert uid_of((await sets.live_pods())["llm-0"]) != uid_of(kept)

    await cluster.eventually(another)
    await sets.ready()
