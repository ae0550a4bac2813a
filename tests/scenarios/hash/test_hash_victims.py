"""What `victims` names is what goes: random states of a set in Hash mode, scaled down (30 §14)."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from lwskit.api import names
from lwskit.backends import registry
from lwskit.cli import observed
from lwskit.groups.model import Victim
from lwskit.groups.victims import victims
from lwskit.runtime.kinds import NODE, POD
from lwskit.runtime.objects import uid_of
from lwskit.runtime.ranking import DELETION_COST, UNDECIDED
from lwskit.testing.cluster import TestCluster
from tests.scenarios.hash.gating import gated, lingering
from tests.scenarios.hash.support import Group, HashSets
from tests.scenarios.nodes import beating
from tests.scenarios.support import pod_template
from tests.scenarios.test_exclusive import bind

GROUPS = 5
LATER = 5
"""How many seconds later than the forecast the controller may look; ages are compared by magnitude."""
MUCH_LATER = range(0, 16, 3)
"""The same on a real cluster, all that it may come to."""
REASONS = frozenset({"not", "Pending", "deletion"})
"""The first words of the reasons that must come up: not scheduled, Pending, deletion cost."""


def at_once() -> dict[str, object]:
    """A template of pods that are gone as soon as they are deleted, though no node ends them."""
    template = pod_template("i")
    return {"workerTemplate": {**template, "spec": {**template["spec"], "terminationGracePeriodSeconds": 0}}}


@pytest.fixture
async def nodes(cluster: TestCluster) -> AsyncIterator[tuple[str, str]]:
    """The names of two nodes without a kubelet, of the test's own; they are gone after the test."""
    names = f"{cluster.namespace}-a", f"{cluster.namespace}-b"
    for name in names:
        await cluster.client.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    async with beating(cluster, *names):
        yield names
    for name in names:
        await cluster.client.delete(NODE, name)


async def shake(cluster: TestCluster, sets: HashSets, nodes: tuple[str, str], rng: random.Random) -> None:
    """Bring the groups into a random state: some without a node, some starting, some with an unready worker."""
    groups = [g for g in (await sets.living()).values() if not g.gated]
    for group in groups:
        assert group.leader is not None
        if not group.leader["spec"].get("nodeName") and rng.random() < 0.8:
            await bind(cluster, group.name, rng.choice(nodes))
        if rng.random() < 0.5:
            cost = rng.choice((None, "-7", "-2", "0", "3", "8"))
            await cluster.patch(POD, group.name, {"metadata": {"annotations": {DELETION_COST: cost}}})
        await _workers(cluster, group, rng.random() < 0.75)
    await sets.settled()
    for group in groups:
        act = rng.choice((cluster.kubelet.ready,) * 4 + (cluster.kubelet.pending, cluster.kubelet.unready))
        await act(group.name)
    await sets.settled()


async def _workers(cluster: TestCluster, group: Group, ready: bool) -> None:
    act = cluster.kubelet.ready if ready else cluster.kubelet.unready
    await act(*(pod["metadata"]["name"] for pod in group.workers))


async def forecast(cluster: TestCluster, replicas: int) -> list[Victim] | None:
    """Which groups go; None where it is left to chance, or hangs on the moment."""
    scene = await observed.look(cluster.client, cluster.namespace, "llm", registry.find())
    assert scene.lws is not None
    assert scene.workload is not None
    now = cluster.clock.now()
    found, *later = (
        victims(scene.lws, scene.workload, scene.pods, now + timedelta(seconds=after), replicas, sets=scene.between)
        for after in ((0, LATER) if cluster.embedded else MUCH_LATER)
    )
    chance = any(victim.why == UNDECIDED for victim in found)
    same = all({v.uid for v in found} == {v.uid for v in others} for others in later)
    return None if chance or not same else found


async def scaled(sets: HashSets, replicas: int, before: dict[str, Group], found: list[Victim]) -> None:
    """Scale, and make sure that just these groups go."""
    await sets.scale(replicas)
    leaders = {key: uid_of(g.leader) for key, g in before.items() if g.leader is not None}
    wanted = {key for key, uid in leaders.items() if uid not in {v.uid for v in found}}

    async def gone() -> None:
        assert set(await sets.living()) == wanted, [(v.name, v.why) for v in found]

    await sets.cluster.eventually(gone)
    await sets.settled()
    await gone()


async def test_what_is_named_goes(cluster: TestCluster, sets: HashSets, nodes: tuple[str, str]):
    """30 §18 line 36: in a hundred random states (at least five on a real cluster) just the groups that were named go.

    LWSKIT_REPEAT says in how many, LWSKIT_SEED which ones; it goes on until each reason has been given once.
    """
    states = int(os.environ.get("LWSKIT_REPEAT") or (100 if cluster.embedded else 5))
    rng = random.Random(int(os.environ.get("LWSKIT_SEED") or 30))
    await sets.running(replicas=GROUPS, size=2, group=at_once())
    judged, reasons = 0, set[str]()
    for _ in range(4 * states + 20):
        if judged >= states and reasons >= REASONS:
            break
        await sets.settled()
        await shake(cluster, sets, nodes, rng)
        chosen = rng.choice(list((await sets.living()).values()))
        held = [chosen] if rng.random() < 0.3 else []
        async with lingering(cluster, *held):
            for group in held:
                # The next leader waits at its gate as long as this group's worker is there.
                await cluster.delete(POD, group.name)
                await gated(sets, 1)
                await sets.settled()
            before = await sets.living()
            left = GROUPS - rng.choice((1, 1, 2, 3))
            found = await forecast(cluster, left)
            if found is not None:
                assert len(found) == GROUPS - left
                await scaled(sets, left, before, found)
                judged += 1
                reasons |= {victim.why.split()[0] for victim in found}
        await sets.scale(GROUPS)
        await cluster.eventually(lambda: _complete(sets))
    assert judged >= states
    assert reasons >= REASONS


async def _complete(sets: HashSets) -> None:
    groups = await sets.groups()
    assert len(groups) == GROUPS
    assert all(len(group.pods) == 2 and not group.gated for group in groups.values()), names.GROUP_REPLACEMENT_GATE
