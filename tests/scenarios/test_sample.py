"""The sample on a whole cluster: scheduler and kubelet run, and nobody plays them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD
from lwskit.testing.cluster import ClusterOptions, TestCluster
from tests.scenarios.support import Sets

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "config" / "samples" / "leaderworkerset.yaml"
HASH_SAMPLE = ROOT / "config" / "samples" / "leaderworkerset-hash.yaml"
HASH_PAGE = ROOT / "docs" / "hash.md"

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


async def test_the_walk_through_hash_mode(cluster: TestCluster, sets: Sets):
    """The page's sample and its broken image: what serves stays as it is, and the former image brings the rest back."""
    sample = yaml.safe_load(HASH_SAMPLE.read_text())
    name = sample["metadata"]["name"]
    shown = re.search(r"^cat > broken\.yaml <<'END'\n(.*?)^END$", HASH_PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert shown is not None
    broken = yaml.safe_load(shown[1])
    assert broken["metadata"]["name"] == name
    await cluster.create(LEADER_WORKER_SET, sample)
    await cluster.eventually(lambda: available(sets, name))
    await sets.scale(4, name)

    async def ready(count: int) -> None:
        assert ((await sets.live(name)).get("status") or {}).get("readyReplicas") == count

    await cluster.eventually(lambda: ready(4))
    before = await sets.pod_uids(name)
    await sets.patch(broken, name)

    async def stuck() -> None:
        pods = (await sets.live_pods(name)).values()
        reasons = [
            c["state"]["waiting"]["reason"]
            for p in pods
            for c in p["status"].get("containerStatuses") or ()
            if "waiting" in c["state"]
        ]
        assert reasons == ["ImagePullBackOff"] * 2
        assert len(before.items() & (await sets.pod_uids(name)).items()) == 6

    await cluster.eventually(stuck)
    await sets.settled()
    await stuck()
    await ready(3)
    assert (await sets.condition(names.CONDITION_AVAILABLE, name))["status"] == "False"
    template = broken["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    template["metadata"]["annotations"] = dict.fromkeys(template["metadata"]["annotations"])
    template["spec"]["containers"] = sample["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    await sets.patch(broken, name)
    await cluster.eventually(lambda: ready(4))
    await cluster.eventually(lambda: available(sets, name))
    assert len(before.items() & (await sets.pod_uids(name)).items()) == 6
