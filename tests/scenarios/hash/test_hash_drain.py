"""One group is drained: it goes and no other, or nothing is done (`lwskit drain-group`; specification: 30 §14)."""

from __future__ import annotations

import pytest

from lwskit.cli import draining
from lwskit.groups.drain import Drain
from lwskit.groups.model import DecisionError
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import ConfigurationError, Conflict, Forbidden
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import annotations_of
from lwskit.runtime.ranking import DELETION_COST
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import Send, matching
from tests.scenarios.budgets import limited
from tests.scenarios.hash.support import HashSets
from tests.scenarios.hash.test_hash_budget import exhausts


async def looked(cluster: TestCluster, name: str) -> Drain:
    of_set, drain = await draining.look(cluster.client, cluster.namespace, name, cluster.clock.now())
    assert of_set == "llm"
    return drain


async def one_of_two(cluster: TestCluster, sets: HashSets) -> Drain:
    """A set of two ready groups of one pod each, and how one of them is drained."""
    await sets.running(replicas=2, size=1)
    await sets.settled()
    return await looked(cluster, sorted(await sets.pods())[0])


async def drained(cluster: TestCluster, drain: Drain, client: Client | None = None) -> None:
    await draining.carry_out(client or cluster.client, cluster.namespace, "llm", drain, cluster.clock.now)


async def test_the_group_that_is_named_goes(cluster: TestCluster, sets: HashSets):
    """Whichever of three ready groups: by its key, its leader's name and its host name."""
    await sets.running(replicas=4, size=2)
    await sets.settled()
    for left, naming in ((3, lambda g: g.key[:12]), (2, lambda g: g.name), (1, lambda g: g.host)):
        groups = await sets.groups()
        chosen = groups[sorted(groups)[len(groups) // 2]]
        drain = await looked(cluster, naming(chosen))
        assert drain.name == chosen.name
        assert (drain.before, drain.after) == (left + 1, left)
        await drained(cluster, drain)
        after = await sets.has_groups(left, size=2)
        assert set(after) == set(groups) - {chosen.key}
        assert all(after[k].uids == groups[k].uids for k in after)
        await sets.ready()
        await sets.settled()


async def test_looking_changes_nothing(cluster: TestCluster, sets: HashSets):
    await sets.running(replicas=2, size=1)
    await sets.settled()
    before = await sets.pods()
    await looked(cluster, sorted(before)[0])
    assert await sets.pods() == before
    assert (await sets.live())["spec"]["replicas"] == 2


async def test_refused_while_another_group_is_not_ready(cluster: TestCluster, sets: HashSets):
    await sets.running(replicas=3, size=1)
    await sets.settled()
    first, second, _ = sorted(await sets.pods())
    await cluster.kubelet.unready(second)
    await sets.settled()
    with pytest.raises(DecisionError, match=f"scaling 3 → 2 would remove {second}: not ready"):
        await looked(cluster, first)
    assert (await looked(cluster, second)).name == second


async def test_the_mark_goes_when_another_group_gets_unready_meanwhile(cluster: TestCluster, sets: HashSets):
    """What was true when a person was asked is looked at again with the mark in place."""
    await sets.running(replicas=3, size=1)
    await sets.settled()
    first, second, _ = sorted(await sets.pods())
    drain = await looked(cluster, first)
    await cluster.kubelet.unready(second)
    with pytest.raises(DecisionError, match=f"would remove {second}: not ready"):
        await drained(cluster, drain)
    assert DELETION_COST not in annotations_of(await sets.leader(first))
    assert (await sets.live())["spec"]["replicas"] == 3


async def test_the_mark_goes_when_scaling_fails(cluster: TestCluster, sets: HashSets):
    """The cost that the pod had before is there again."""
    await sets.running(replicas=2, size=1)
    await sets.settled()
    first, _ = sorted(await sets.pods())
    await cluster.patch(POD, first, {"metadata": {"annotations": {DELETION_COST: "5"}}})
    drain = await looked(cluster, first)
    wire = await cluster.connect("drain")
    wire.fail(matching("PATCH", "/scale$"), Forbidden("you may not scale"), times=None)
    with pytest.raises(Forbidden, match="you may not scale"):
        await drained(cluster, drain, Client(wire))
    written = [request.request.path.rpartition("/")[2] for request in wire.select(matching("PATCH"))]
    assert written == [first, "scale", first]
    assert annotations_of(await sets.leader(first))[DELETION_COST] == "5"
    assert (await sets.live())["spec"]["replicas"] == 2


async def test_what_cannot_be_marked_is_not_scaled(cluster: TestCluster, sets: HashSets):
    drain = await one_of_two(cluster, sets)
    wire = await cluster.connect("drain")
    wire.fail(matching("PATCH", "/pods/"), Forbidden("you may not annotate"), times=None)
    with pytest.raises(Forbidden, match="you may not annotate"):
        await drained(cluster, drain, Client(wire))
    assert not wire.select(matching("PATCH", "/scale$"))


async def replaced(cluster: TestCluster, name: str) -> None:
    """The pod goes, and somebody makes another one of its name."""
    await cluster.delete(POD, name)
    await cluster.eventually(lambda: cluster.gone(POD, name))
    await cluster.create(POD, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})


async def test_another_pod_of_the_name_is_not_marked(cluster: TestCluster, sets: HashSets):
    drain = await one_of_two(cluster, sets)
    await replaced(cluster, drain.name)
    with pytest.raises(DecisionError, match=f"leader pod {drain.name} is gone"):
        await drained(cluster, drain)
    assert DELETION_COST not in annotations_of(await cluster.get(POD, drain.name))
    assert (await sets.live())["spec"]["replicas"] == 2


async def test_another_pod_of_the_name_has_no_mark_to_take_away(cluster: TestCluster, sets: HashSets):
    """What is told is why the set was not scaled."""
    drain = await one_of_two(cluster, sets)
    wire = await cluster.connect("drain")

    async def refused(request: HttpRequest, send: Send) -> HttpResponse:
        await replaced(cluster, drain.name)
        raise Forbidden("you may not scale")

    wire.around(matching("PATCH", "/scale$"), refused)
    with pytest.raises(Forbidden, match="you may not scale"):
        await drained(cluster, drain, Client(wire))
    assert len(wire.select(matching("PATCH", "/pods/"))) == 2


async def test_a_mark_that_cannot_be_taken_away_is_told(cluster: TestCluster, sets: HashSets):
    """With the command that takes it away."""
    drain = await one_of_two(cluster, sets)
    wire = await cluster.connect("drain")
    wire.fail(matching("PATCH", "/scale$"), Forbidden("you may not scale"), times=None)

    def again(request: HttpRequest) -> bool:
        """A patch of the pod after the first one."""
        return request.method == "PATCH" and "/pods/" in request.path and len(wire.select(matching("PATCH"))) > 1

    wire.fail(again, Forbidden("you may not annotate"), times=None)
    with pytest.raises(ConfigurationError, match="you may not scale; and the deletion cost of pod") as told:
        await drained(cluster, drain, Client(wire))
    assert f"annotate pod {drain.name} controller.kubernetes.io/pod-deletion-cost-`" in str(told.value)


async def test_a_kept_group_is_not_drained(cluster: TestCluster, sets: HashSets):
    """It does not go when the set is one smaller, and not by itself; a name that is none names nothing."""
    await sets.running(replicas=2, size=2, group=limited(0))
    first, _ = (await sets.groups()).values()
    await exhausts(sets, first)
    for name in (first.name, first.key[:8]):
        with pytest.raises(DecisionError, match=f"the group of {first.name} has no restart left and is kept: it goes"):
            await looked(cluster, name)
    with pytest.raises(DecisionError, match="no group is called ''"):
        await looked(cluster, "")


async def test_writes_of_others_meanwhile_do_not_stop_it(cluster: TestCluster, sets: HashSets):
    """The set's version is a condition of scaling; where it is another one by then, everything is looked at again."""
    await sets.running(replicas=3, size=1)
    await sets.settled()
    first = sorted(await sets.pods())[0]
    drain = await looked(cluster, first)
    wire = await cluster.connect("drain")
    wire.fail(matching("PATCH", "/scale$"), Conflict("the object has been modified"), times=2)
    await drained(cluster, drain, Client(wire))
    after = await sets.has_groups(2, size=1)
    assert first not in {g.name for g in after.values()}
