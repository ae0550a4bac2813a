"""What users of others' sets met when pods failed (docs/field-cases.md)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import pytest

from lwskit.api import names
from lwskit.runtime.errors import NotFound
from lwskit.runtime.kinds import POD, SERVICE, STATEFUL_SET
from lwskit.runtime.objects import is_deleting
from lwskit.testing.cluster import Runnable, TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.budgets import all_new
from tests.scenarios.manager import manager
from tests.scenarios.support import Sets, pod_template

AFTER_START = {"restartPolicy": "RecreateGroupAfterStart"}
WAITING = {"annotations": {names.RECREATE_AFTER_START_ANNOTATION: ""}}


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: each test starts its manager itself."""
    return ()


async def replaced(cluster: TestCluster, name: str, uid: str) -> None:
    """Wait until a pod of that name exists that is another one."""

    async def another() -> None:
        assert (await cluster.uids(POD)).get(name, uid) != uid

    await cluster.eventually(another)


async def untouched(cluster: TestCluster, sets: Sets, before: dict[str, str]) -> None:
    """For a while all pods stay the ones that they are."""

    async def same() -> None:
        assert await sets.pod_uids() == before

    await cluster.consistently(same)


async def test_one_restart_per_update(cluster: TestCluster, sets: Sets):
    """F11: over an update each group has two leaders, the old one and the new one."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
        async with cluster.observe(POD) as observer:
            template = pod_template("img:v2")
            template["spec"]["containers"][0]["env"] = [{"name": "A", "value": "2"}]
            both = {"workerTemplate": template, "leaderTemplate": template}
            await sets.patch({"spec": {"leaderWorkerTemplate": both}})

            async def updated() -> None:
                pods = await sets.pods()
                assert len(pods) == 6
                assert {p["spec"]["containers"][0]["image"] for p in pods.values()} == {"img:v2"}

            async with cluster.kubelet.playing():
                await cluster.eventually(updated)
            await sets.ready()
            await sets.settled()
        assert (observer.born["llm-0"], observer.born["llm-1"]) == (1, 1)


async def test_a_worker_that_is_replaced_before_its_deletion_is_told(cluster: TestCluster, sets: Sets):
    """F22: a deletion and the creation of the same name are two pieces of work, and the group is recreated once."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
        before = await sets.pod_uids(group=0)
        async with cluster.observe(POD) as observer:
            with cluster.hold_watches():
                await cluster.delete(POD, "llm-0-2")
                await replaced(cluster, "llm-0-2", before["llm-0-2"])
            await all_new(sets, before)
            await sets.ready()
            await sets.settled()
        assert observer.born["llm-0"] == 1


async def test_old_workers_that_die_late_do_not_reach_the_next_leader(cluster: TestCluster, sets: Sets):
    """F23: a worker acts on its own leader only, so the next one keeps its UID while the old workers go."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
        before = await sets.pod_uids(group=0)
        await cluster.patch(POD, "llm-0-1", {"metadata": {"finalizers": ["example.com/slow"]}})
        async with cluster.observe(POD) as observer:
            await cluster.delete(POD, "llm-0", propagation="Background")
            await replaced(cluster, "llm-0", before["llm-0"])

            async def dies() -> None:
                assert is_deleting((await sets.pods())["llm-0-1"])

            await cluster.eventually(dies)
            await cluster.consistently(lambda: None)
            await cluster.patch(POD, "llm-0-1", {"metadata": {"finalizers": None}})
            await all_new(sets, before)
            await sets.ready()
            await sets.settled()
        assert observer.born["llm-0"] == 1


@pytest.mark.parametrize("by_annotation", [False, True])
async def test_slow_images_do_not_have_a_group_restarted(cluster: TestCluster, sets: Sets, by_annotation: bool):
    """F25: while a pod of the group is Pending nothing is restarted; on the next event after that it is."""
    async with manager(cluster):
        if by_annotation:
            await sets.create(replicas=1, metadata=WAITING)
        else:
            await sets.create(replicas=1, group=AFTER_START)
        await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")
        before = await sets.pod_uids()
        await cluster.kubelet.ready("llm-0", "llm-0-1")
        await cluster.kubelet.pending("llm-0-2")
        await cluster.kubelet.restart_container("llm-0-1")
        await untouched(cluster, sets, before)
        await cluster.kubelet.ready("llm-0-2")
        await cluster.kubelet.restart_container("llm-0-1")
        await all_new(sets, before)


async def test_saying_that_a_pod_is_pending_ends_nothing(cluster: TestCluster, sets: Sets):
    """F26: leaving a group alone is an ordinary reconcile, also with warnings as errors, and it is no failed one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with manager(cluster) as program:
            await sets.create(replicas=1, group=AFTER_START)
            await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")
            await sets.settled()
            before = [c.stats.errors for c in program.controllers]
            await cluster.kubelet.restart_container("llm-0-1")
            await untouched(cluster, sets, await sets.pod_uids())
            assert [c.stats.errors for c in program.controllers] == before


async def test_a_leader_that_is_gone_before_it_is_deleted(cluster: TestCluster, sets: Sets):
    """F29: that the leader is not there any more is what was wanted, and no error."""
    async with manager(cluster) as program:
        await sets.running()
        await sets.settled()
        before = await sets.pod_uids(group=0)
        errors = [c.stats.errors for c in program.controllers]
        gone = NotFound('pods "llm-0" not found')
        cluster.interceptors[-1].fail(matching("DELETE", path="/pods/llm-0$"), gone, times=1)
        await cluster.kubelet.restart_container("llm-0-1")
        deletions = matching("DELETE", path="/pods/llm-0$")
        # The next news of the group has it deleted again.
        await cluster.eventually(lambda: cluster.interceptors[-1].count(deletions) >= 1)
        await cluster.consistently(lambda: None)
        assert [c.stats.errors for c in program.controllers] == errors
        await cluster.delete(POD, "llm-0")
        await all_new(sets, before)


async def test_workers_can_ask_for_their_leader_before_it_is_ready(cluster: TestCluster, sets: Sets):
    """F32: names are published for pods that are not ready, and with LeaderReady no worker is there before that."""
    async with manager(cluster):
        await sets.create(replicas=1, startupPolicy="LeaderReady")
        await sets.has_pods("llm-0")
        await sets.settled()
        service = await cluster.get(SERVICE, "llm")
        assert service["spec"]["publishNotReadyAddresses"] is True
        assert service["spec"]["clusterIP"] == "None"
        assert await cluster.names(STATEFUL_SET) == ["llm"]
        await cluster.kubelet.ready("llm-0")
        await sets.has_pods("llm-0", "llm-0-1", "llm-0-2")


@pytest.mark.parametrize(("policy", "new"), [("None", 1), ("RecreateGroupOnPodRestart", 3)])
async def test_who_is_new_is_told_by_uids(cluster: TestCluster, sets: Sets, policy: str, new: int):
    """F34: under None one pod of three is another one afterwards, else all three."""
    async with manager(cluster):
        await sets.running(replicas=1, group={"restartPolicy": policy})
        await sets.settled()
        before = await sets.pod_uids()
        await cluster.delete(POD, "llm-0-1")
        await replaced(cluster, "llm-0-1", before["llm-0-1"])
        if new == len(before):
            await all_new(sets, before)
        await sets.ready()
        await sets.settled()
        after = await sets.pod_uids()
        assert sorted(after) == sorted(before)
        assert sum(after[n] != before[n] for n in after) == new


@pytest.mark.virtual_only("an hour passes")
async def test_a_process_that_hangs_is_nobodys_signal(cluster: TestCluster, sets: Sets):
    """F35: only restarts, failures and deletions are seen; a pod that hangs needs a probe of its own."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
        before = await sets.pod_uids()
        await cluster.kubelet.unready("llm-0-1")
        await cluster.clock.sleep(3600)
        assert await sets.pod_uids() == before
        await sets.ready()


async def test_a_deletion_that_no_manager_saw(cluster: TestCluster, sets: Sets):
    """F37: a worker that was deleted and replaced while no manager ran looks like any other; nothing is guessed."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
    before = await sets.pod_uids()
    await cluster.delete(POD, "llm-0-1")
    await replaced(cluster, "llm-0-1", before["llm-0-1"])
    async with manager(cluster):
        await sets.ready()
        await sets.settled()
        after = await sets.pod_uids()
    assert {n for n in after if after[n] != before[n]} == {"llm-0-1"}


async def test_a_pod_that_others_keep_is_waited_for(cluster: TestCluster, sets: Sets):
    """F38: a group that is scaled down and up again comes back once its old leader is gone, not before."""
    async with manager(cluster):
        await sets.running()
        await sets.settled()
        before = await sets.pod_uids(group=1)
        await cluster.patch(POD, "llm-1", {"metadata": {"finalizers": ["example.com/mine"]}})
        await sets.scale(1)

        async def going() -> None:
            assert is_deleting((await sets.pods())["llm-1"])

        await cluster.eventually(going)
        await sets.scale(2)

        async def kept() -> None:
            assert (await sets.pod_uids())["llm-1"] == before["llm-1"]

        await cluster.consistently(kept)
        await cluster.patch(POD, "llm-1", {"metadata": {"finalizers": None}})
        await all_new(sets, before)
        await sets.ready()
