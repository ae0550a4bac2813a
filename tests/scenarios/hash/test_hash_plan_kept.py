"""A plan foretells that a group without a restart left is kept, and what then waits for it (specification: 30 §11)."""

from __future__ import annotations

from lwskit.cli import planning
from lwskit.runtime.kinds import POD, REPLICA_SET
from lwskit.runtime.objects import is_deleting, uid_of
from lwskit.simulate.report import Outcome, Report
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import counts, limited, recover
from tests.scenarios.hash.gating import gated, stay
from tests.scenarios.hash.support import HashSets
from tests.scenarios.hash.test_hash_budget import exhausts, fails


async def test_the_last_restart_and_the_one_after_it(cluster: TestCluster, sets: HashSets):
    """The group that has one left is recreated; the next one is kept, and another waits at its gate."""
    await sets.running(replicas=2, size=2, group=limited(1))
    first, _ = (await sets.groups()).values()

    async def planned(name: str) -> Report:
        return await planning.restart_on_cluster(cluster.client, name, cluster.namespace, "", cluster.clock.now())

    report = await planned(first.name)
    assert (report.outcome, report.notices) == (Outcome.DONE, ())
    second = await fails(sets, first)

    async def handed_over() -> None:
        assert await counts(sets) == {second.key: 1}

    await cluster.eventually(handed_over)
    report = await planned(second.name)
    (step,) = report.hash_steps
    assert (report.outcome, [n.code for n in report.notices]) == (
        Outcome.STALLED,
        ["restart-budget", "held-restart-budget"],
    )
    await exhausts(sets, second)
    waiting = await gated(sets, len(step.waiting))
    assert len(waiting) == 1
    await stay(sets, *waiting)
    assert sum(g.ready for g in (await sets.groups()).values()) == step.ready


async def test_a_replica_set_that_is_deleted_meanwhile(cluster: TestCluster, sets: HashSets):
    """No leader is made while it waits for the kept group, as the plan says, and one is after that."""
    await sets.running(replicas=1, size=2, group=limited(0))
    (group,) = (await sets.groups()).values()
    kept = await exhausts(sets, group)
    await gated(sets, 1)
    (one,) = await cluster.client.list_all(REPLICA_SET, cluster.namespace)
    await cluster.client.delete(REPLICA_SET, one["metadata"]["name"], cluster.namespace, propagation="Foreground")

    async def alone() -> None:
        pods = await cluster.client.list_all(POD, cluster.namespace)
        assert {uid_of(p) for p in pods} == {uid_of(p) for p in kept.pods}
        (found,) = await cluster.client.list_all(REPLICA_SET, cluster.namespace)
        assert is_deleting(found)

    await cluster.eventually(alone)
    live = await sets.live()
    report = await planning.on_cluster(
        cluster.client,
        {
            "apiVersion": live["apiVersion"],
            "kind": live["kind"],
            "metadata": {"name": live["metadata"]["name"], "namespace": cluster.namespace},
            "spec": {**live["spec"], "replicas": 2},
        },
        "",
        cluster.clock.now(),
    )
    assert report.outcome is Outcome.STALLED
    assert "replica-set-deleting" in [n.code for n in report.notices]
    assert not [name for step in report.hash_steps for name in step.made]
    await sets.scale(2)
    await sets.settled()
    await alone()
    await recover(cluster, kept.name)
    await sets.ready()
    await sets.has_groups(2, size=2)
