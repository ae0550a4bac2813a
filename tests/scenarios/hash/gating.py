"""Groups that go slowly, and leaders that wait for them at their gate: for the scenarios of Hash mode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lwskit.runtime.kinds import POD
from lwskit.testing.cluster import TestCluster
from tests.scenarios.hash.support import Group, HashSets, is_gated

WAIT = "example.com/wait"


@asynccontextmanager
async def lingering(cluster: TestCluster, *groups: Group, pods: str = "workers") -> AsyncIterator[None]:
    """Inside the block the workers (or leaders) of these groups stay, being deleted, when they are deleted."""
    held = [p["metadata"]["name"] for g in groups for p in (g.workers if pods == "workers" else (g.leader,)) if p]
    for name in held:
        await cluster.patch(POD, name, {"metadata": {"finalizers": [WAIT]}})
    try:
        yield
    finally:
        there = await cluster.list(POD)
        for pod in there:
            rest = [f for f in pod["metadata"].get("finalizers") or () if f != WAIT]
            if pod["metadata"]["name"] in held and rest != pod["metadata"].get("finalizers", []):
                await cluster.patch(POD, pod["metadata"]["name"], {"metadata": {"finalizers": rest or None}})


async def gated(sets: HashSets, count: int) -> list[Group]:
    """Wait until so many leaders wait at their gate; they are returned, the oldest first."""

    async def check() -> list[Group]:
        found = [g for g in (await sets.living()).values() if g.gated]
        assert len(found) == count, [g.name for g in found]
        return sorted(found, key=lambda g: (g.leader or {})["metadata"]["creationTimestamp"])

    return await sets.cluster.eventually(check)


async def stay(sets: HashSets, *groups: Group) -> None:
    """These leaders stay at their gate, and nothing is made for their groups."""

    async def check() -> None:
        for group in groups:
            assert is_gated(await sets.leader(group.name))
            assert group.host not in await sets.workers()

    await sets.cluster.consistently(check, duration=2)


async def pass_a_second(cluster: TestCluster) -> None:
    """Wait until what is there is older than what comes: ages are whole seconds."""
    begin = cluster.clock.now()

    async def later() -> None:
        assert (cluster.clock.now() - begin).total_seconds() > 1

    await cluster.eventually(later)
