"""A manager that ends while a DisaggregatedSet rolls, and the next one (50 §10)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.testing.cluster import Runnable, TestCluster
from tests.scenarios.disaggregated.support import KINDS, DisaggregatedSets, role, rolling, two_roles
from tests.scenarios.disaggregated.test_lifecycle import updated
from tests.scenarios.manager import manager

SURGE = rolling(1, 0)


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: each test starts its managers itself."""
    return ()


async def test_a_rollout_goes_on_where_the_manager_stopped(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §10: nothing is remembered outside of the objects; while no manager runs, nothing changes."""
    async with manager(cluster):
        await sets.running(*two_roles(3, 2, spec=SURGE))
        (first,) = await sets.revisions()
        await sets.set_image("img:v2")

        async def begun() -> None:
            sizes = await sets.sizes()
            assert {part: n for (_, revision, part), n in sizes.items() if revision != first} == {
                "prefill": 1,
                "decode": 1,
            }
            # Pods that are made while nobody admits them have no place in a group.
            assert len(await sets.pods()) == sum(sizes.values())

        await cluster.eventually(begun)
    stopped = await sets.sizes()
    async with cluster.kubelet.playing():
        await cluster.consistently(lambda: None, duration=5)
    assert await sets.sizes() == stopped
    async with manager(cluster):
        second = await updated(sets)
        assert second != first
        assert await sets.sizes() == {(0, second, "prefill"): 3, (0, second, "decode"): 2}


async def test_a_successor_writes_nothing_about_sets_at_rest(cluster: TestCluster, sets: DisaggregatedSets):
    """Neither of a set that is done nor of one whose rollout waits."""

    async def versions() -> dict[tuple[str, str], str]:
        return {
            (kind.plural, obj["metadata"]["name"]): obj["metadata"]["resourceVersion"]
            for kind in KINDS
            for obj in await cluster.list(kind)
        }

    async with manager(cluster):
        await sets.running(role("prefill", 1), role("decode", mode="External"))
        await sets.running(*two_roles(2, 2, spec=SURGE), name="waits")
        (old,) = await sets.revisions("waits")
        await sets.set_image("img:v2", name="waits")

        async def waits() -> None:
            new = {(role, count) for (_, of, role), count in (await sets.sizes("waits")).items() if of != old}
            assert new == {("prefill", 1), ("decode", 1)}
            rows = await sets.rows("waits")
            assert [rows[role].get("updatedReplicas") for role in ("prefill", "decode")] == [1, 1]
            assert names.EVENT_REVISION_DRAIN_BLOCKED in await sets.reasons("waits")

        await cluster.eventually(waits)
        await sets.settled()
        before = await versions()
    async with manager(cluster):

        async def same() -> None:
            assert await versions() == before

        await cluster.consistently(same)
