"""Rolling updates in Hash mode: the Deployment's, at the pace of groups that get ready (specification: 30 §3, §13)."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.cli import planning
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD, REPLICA_SET
from lwskit.runtime.objects import Obj, annotations_of, is_deleting, is_true, labels_of
from lwskit.simulate import order as orders
from lwskit.testing.cluster import TestCluster
from lwskit.testing.observer import Observer
from tests.scenarios.hash.gating import gated, pass_a_second, stay
from tests.scenarios.hash.support import HashSets
from tests.scenarios.support import images, revision_key, strategy


def fewest_ready(pods: Observer, before: dict[str, Obj]) -> int:
    """The lowest number of leaders that were ready and not being deleted at one time."""
    ready = {name for name, pod in before.items() if _serves(pod)}
    lowest = len(ready)
    for change in pods.changes:
        if change.type != "DELETED" and _serves(change.obj):
            ready.add(change.name)
        else:
            ready.discard(change.name)
        lowest = min(lowest, len(ready))
    return lowest


async def one_revision(sets: HashSets) -> Obj:
    """Wait until only one revision is left; returns it."""

    async def check() -> Obj:
        (revision, *others) = await sets.revisions()
        assert others == []
        return revision

    return await sets.cluster.eventually(check)


def _serves(pod: Obj) -> bool:
    leads = labels_of(pod).get(names.WORKER_INDEX_LABEL) == "0"
    return leads and is_true(pod, "Ready") and not is_deleting(pod)


@pytest.mark.parametrize(
    ("unavailable", "surge", "lowest"), [(1, 0, 2), (0, 1, 3), (2, 1, 1)], ids=["one-down", "one-more", "both"]
)
async def test_a_new_template(cluster: TestCluster, sets: HashSets, unavailable: int, surge: int, lowest: int):
    """30 §18 lines 12, 37: the Deployment carries the new revision, and no more groups are down than may be."""
    await sets.running(replicas=3, size=2, rolloutStrategy=strategy(maxUnavailable=unavailable, maxSurge=surge))
    before = await sets.groups()
    (first,) = await sets.revisions()
    pods = await sets.pods()
    async with cluster.observe(POD) as observer:
        await sets.set_image("img:v2")
        async with cluster.kubelet.playing():
            await sets.ready()
    assert fewest_ready(observer, pods) >= lowest
    after = await sets.has_groups(3, size=2)
    assert not set(before) & set(after)
    assert set((await images(sets)).values()) == {"img:v2"}
    deployment = await sets.leader_workload()
    revision = await one_revision(sets)
    assert revision["metadata"]["name"] != first["metadata"]["name"]
    assert revision_key(deployment) == revision_key(revision)
    assert labels_of(deployment["spec"]["template"])[names.REVISION_LABEL] == revision_key(revision)
    assert deployment["spec"]["replicas"] == 3


async def test_a_template_that_never_gets_ready(cluster: TestCluster, sets: HashSets):
    """The rollout stops where maxUnavailable and maxSurge end: the other groups stay ready, and no revision goes."""
    await sets.running(replicas=4, size=2, rolloutStrategy=strategy(maxUnavailable=1, maxSurge=1))
    before = await sets.groups()
    pods = await sets.pods()
    async with cluster.observe(POD) as observer:
        await sets.set_image("broken:v2")
        await sets.has_groups(5, size=2)

        async def stalled() -> None:
            live = await sets.live()
            assert live["status"]["readyReplicas"] == 3
            assert live["status"]["updatedReplicas"] == 2
            assert (await sets.conditions())["UpdateInProgress"] == "True"
            assert (await sets.conditions())["Available"] == "False"

        await cluster.eventually(stalled)
        await cluster.consistently(stalled, duration=2)
    assert fewest_ready(observer, pods) == 3
    assert len(await sets.revisions()) == 2
    await sets.set_image("img:v1")
    await sets.ready()
    kept = set(before) & set(await sets.groups())
    assert len(kept) == 3

    async def one_is_used() -> None:
        assert len({revision_key(r) for r in await sets.revisions()}) == 1
        assert len([r for r in await cluster.list(REPLICA_SET) if r["spec"]["replicas"]]) == 1

    await cluster.eventually(one_is_used)


async def test_a_smaller_set_of_which_fewer_may_be_down(cluster: TestCluster, sets: HashSets):
    """30 §13: a smaller size is shared out whatever is ready; so fewer groups can be ready than the smaller set wants,
    where fewer of it may be down than of the larger one. Here one of three is, and half of them may be down."""
    pace = {"maxUnavailable": "50%", "maxSurge": 0}
    await sets.running(replicas=4, size=1, rolloutStrategy={"rollingUpdateConfiguration": pace})
    before = await sets.groups()
    # ReplicaSets are told apart by their age in whole seconds.
    await pass_a_second(cluster)
    await sets.set_image("broken:v2")

    async def stalled() -> None:
        living = await sets.living()
        assert len(living) == 4
        assert sum(group.ready for group in living.values()) == 2
        assert not any(group.gated for group in living.values())

    await cluster.eventually(stalled)
    await sets.settled()
    live = await sets.live()
    smaller = {**live, "spec": {**live["spec"], "replicas": 3}}
    plan = await planning.on_cluster(cluster.client, smaller, orders.HIGHEST, cluster.clock.now())
    assert "floor-scale-down" in {notice.code for notice in plan.notices}
    await sets.scale(3)
    groups = await sets.has_groups(3, size=1)
    assert [group.ready for key, group in groups.items() if key in before] == [True]
    await sets.set_image("img:v3")
    await sets.ready()


async def test_a_group_that_is_lost_in_an_update_that_stopped(cluster: TestCluster, sets: HashSets):
    """30 §18 line 23: what its ReplicaSet makes in its place is of a replaced revision and is not let in; going back
    to that revision lets it in."""
    await sets.running(replicas=3, size=2, rolloutStrategy=strategy(maxUnavailable=1))
    before = await sets.groups()
    await sets.set_image("broken:v2")

    async def stalled() -> None:
        groups = await sets.has_groups(3, size=2)
        assert len(set(groups) - set(before)) == 1

    await cluster.eventually(stalled)
    lost = next(group for key, group in (await sets.living()).items() if key in before)
    await cluster.delete(POD, lost.name)
    (waiting,) = await gated(sets, 1)
    await stay(sets, waiting)
    await sets.set_image("img:v1")
    await sets.ready()
    groups = await sets.has_groups(3, size=2)
    assert waiting.key in groups
    assert len(set(groups) & set(before)) == 1


async def test_the_workers_count(cluster: TestCluster, sets: HashSets):
    """A new group whose leader runs and whose workers do not is not ready: the next old group stays."""
    await sets.running(replicas=2, size=2, rolloutStrategy=strategy(maxUnavailable=0, maxSurge=1))
    before = await sets.groups()
    await sets.set_image("img:v2")
    groups = await sets.has_groups(3, size=2)
    (new,) = (g for k, g in groups.items() if k not in before)
    await cluster.kubelet.ready(new.name)

    async def still() -> None:
        assert set(await sets.living()) == set(groups)

    await cluster.consistently(still, duration=2)
    await cluster.kubelet.ready(new.workers[0]["metadata"]["name"])
    await sets.ready()
    assert not set(before) & set(await sets.groups())


async def test_what_the_status_says_meanwhile(cluster: TestCluster, sets: HashSets):
    """30 §18 line 38: not Available from the change on, until all is new; then the former revision is dropped."""
    await sets.running(replicas=2, size=2)
    async with cluster.observe(LEADER_WORKER_SET) as observer:
        await sets.set_image("img:v2")
        await sets.ready()
        await sets.settled()
    said = [
        {c["type"]: c["status"] for c in change.obj["status"]["conditions"]}
        for change in observer.of("llm")
        if change.obj["status"].get("observedGeneration") == change.obj["metadata"]["generation"]
    ]
    assert said[0]["Available"] == "False"
    assert said[0]["UpdateInProgress"] == said[0]["Progressing"] == "True"
    assert said[-1] | {"Available": "True", "UpdateInProgress": "False", "Progressing": "False"} == said[-1]
    last = next(i for i, s in enumerate(said) if s["Available"] == "True")
    assert all(s["Available"] == "True" for s in said[last:])
    await sets.has_event("GroupsUpdating", "Rolling Upgrade is in progress, with 2 groups ready of total 2 groups")


async def test_old_groups_keep_what_their_revision_says(cluster: TestCluster, sets: HashSets):
    """30 §18 line 30: size and subdomain policy of a group are those of its own revision."""
    await sets.running(replicas=2, size=3, rolloutStrategy=strategy(maxUnavailable=1), group={"restartPolicy": "None"})
    body = {"spec": {"leaderWorkerTemplate": {"size": 2}, "networkConfig": {"subdomainPolicy": "UniquePerReplica"}}}
    before = await sets.groups()
    await sets.patch(body)

    async def one_left() -> None:
        assert len(set(before) & set(await sets.living())) == 1

    await cluster.eventually(one_left)
    (key,) = set(before) & set(await sets.living())
    old = before[key]
    await cluster.delete(POD, old.workers[0]["metadata"]["name"])

    async def whole() -> None:
        group = (await sets.groups())[key]
        assert len(group.workers) == 2
        assert group.uids != old.uids
        workers = (await sets.workers())[old.host]
        assert workers["spec"]["replicas"] == 2
        assert workers["spec"]["serviceName"] == "llm"

    await cluster.eventually(whole)
    await sets.ready()
    assert all(len(g.pods) == 2 for g in (await sets.groups()).values())


async def test_back_to_a_former_template(cluster: TestCluster, sets: HashSets):
    """The former revision and its ReplicaSet are used again."""
    await sets.running(replicas=2, size=1)
    (first,) = await cluster.list(REPLICA_SET)
    await sets.set_image("img:v2")
    await sets.has_groups(2, size=1, gated=0)
    await sets.set_image("img:v1")
    await sets.ready()

    async def only_the_first() -> None:
        # The one that is taken back may still ask for pods of which nobody has made any.
        active = [r for r in await cluster.list(REPLICA_SET) if r["spec"]["replicas"]]
        assert [r["metadata"]["name"] for r in active] == [first["metadata"]["name"]]

    await cluster.eventually(only_the_first)


async def test_metadata_of_a_set_replaces_nothing(cluster: TestCluster, sets: HashSets):
    """Labels and annotations of a set go to the Deployment; the template and so the groups stay."""
    await sets.running(replicas=2, size=2)
    before = await sets.groups()
    await sets.patch({"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}})

    async def carried() -> None:
        deployment = await sets.leader_workload()
        assert labels_of(deployment)["team"] == "a"
        assert annotations_of(deployment)["note"] == "b"

    await cluster.eventually(carried)
    await sets.settled()
    assert {k: g.uids for k, g in (await sets.groups()).items()} == {k: g.uids for k, g in before.items()}

    async def available() -> None:
        # Another annotation is another generation of a Deployment, which its controller has to see.
        assert (await sets.conditions())["Available"] == "True"

    await cluster.eventually(available)
