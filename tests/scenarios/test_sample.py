"""The sample on a whole cluster: scheduler and kubelet run, and nobody plays them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD
from lwskit.testing.cluster import ClusterOptions, TestCluster
from tests.scenarios.support import Sets

SAMPLE = Path(__file__).parents[2] / "config" / "samples" / "leaderworkerset.yaml"

pytestmark = pytest.mark.virtual_only("it needs nodes; on a real cluster `lwskit demo` shows the same")


@pytest.fixture
def cluster_options() -> ClusterOptions:
    return ClusterOptions(without=frozenset(), nodes=3)


async def available(sets: Sets, name: str) -> None:
    assert (await sets.conditions(name)).get(names.CONDITION_AVAILABLE) == "True"


async def test_the_sample_becomes_available_and_heals(cluster: TestCluster, sets: Sets):
    """The main job from end to end: two groups of three; a deleted worker recreates its group and no other."""
    sample = yaml.safe_load(SAMPLE.read_text())
    name = sample["metadata"]["name"]
    await cluster.create(LEADER_WORKER_SET, sample)
    await cluster.eventually(lambda: available(sets, name))
    before = await sets.pods(name)
    assert sorted(before) == [f"{name}-{g}{w}" for g in (0, 1) for w in ("", "-1", "-2")]
    assert all(p["spec"]["nodeName"] for p in before.values())
    uids = await sets.pod_uids(name)
    async with cluster.observe(POD) as observer:
        await cluster.delete(POD, f"{name}-0-1")

        async def back() -> None:
            after = await sets.pod_uids(name)
            assert sorted(after) == sorted(uids)
            assert {n for n in after if after[n] != uids[n]} == {f"{name}-0", f"{name}-0-1", f"{name}-0-2"}
            await available(sets, name)

        await cluster.eventually(back)
        await sets.settled()
    assert observer.born[f"{name}-0"] == 1
    assert not {n for n in observer.born if n.startswith(f"{name}-1")}


async def test_a_rollout_by_itself(cluster: TestCluster, sets: Sets):
    """A new image is rolled out group by group without anybody's help, and never more than one group is down."""
    sample = yaml.safe_load(SAMPLE.read_text())
    name = sample["metadata"]["name"]
    await cluster.create(LEADER_WORKER_SET, sample)
    await cluster.eventually(lambda: available(sets, name))
    template = sample["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    template["spec"]["containers"][0]["image"] = "nginx:1.28"
    await sets.patch({"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}}, name)

    async def updated() -> None:
        await available(sets, name)
        assert (await sets.live(name))["status"]["updatedReplicas"] == 2
        workers = {n: p for n, p in (await sets.pods(name)).items() if n[-2:] in ("-1", "-2") and n.count("-") > 2}
        assert {p["spec"]["containers"][0]["image"] for p in workers.values()} == {"nginx:1.28"}

    async with cluster.observe(LEADER_WORKER_SET) as observer:
        await cluster.eventually(updated)
    assert min(c.obj["status"].get("readyReplicas", 0) for c in observer.changes) >= 1
