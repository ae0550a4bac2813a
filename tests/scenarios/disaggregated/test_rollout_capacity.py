"""A rollout that the cluster has no room for (specification: 50 §7.4 items 3 and 4, §8.6)."""

from __future__ import annotations

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.api.names import GROUP_IDENTITIES
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.clock import rfc3339
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import labels_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.rollouts import finished, newest, ready_but, stand_of, stands
from tests.scenarios.disaggregated.support import DisaggregatedSets, rolling, two_roles
from tests.scenarios.world import image_of

BOOTSTRAP = (
    "Created one bootstrap replica for roles [prefill] without a free maxSurge slot to preserve revision completeness"
)


async def without_node(cluster: TestCluster, revision: str) -> None:
    """The scheduler finds no node for the prefill group of a revision."""
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    told["lastTransitionTime"] = rfc3339(cluster.clock.now())
    body = {"status": {"conditions": [told]}}
    selector = f"{names.REVISION_LABEL}={revision},{names.ROLE_LABEL}=prefill"
    (pod,) = await cluster.eventually(lambda: _one(cluster, selector))
    await cluster.client.patch(POD, pod, body, cluster.namespace, patch_type=PatchType.STRATEGIC, subresource="status")


async def _one(cluster: TestCluster, selector: str) -> list[str]:
    found = await cluster.names(POD, selector)
    assert len(found) == 1
    return found


@pytest.mark.virtual_only("a pod is without a node for a minute")
async def test_capacity_is_released_after_a_minute_without_a_node(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 39: two old revisions hold what the third one's prefill needs; at 59 seconds nothing has happened."""
    await sets.running(*two_roles(1, 4, spec=rolling(1, 0)))
    (first,) = await sets.revisions()
    async with cluster.kubelet.playing():
        await sets.set_image("img:v2")
        second = await newest(sets, first)
        await stands(sets, first, prefill=1, decode=3)
    await sets.set_image("img:v3")
    third = await newest(sets, first, second)
    await sets.has_event("BootstrapSurge", BOOTSTRAP, "Warning")
    await sets.settled()
    waits = {
        first: {"prefill": 1, "decode": 3},
        second: {"prefill": 1, "decode": 1},
        third: {"prefill": 1, "decode": 1},
    }
    assert await stand_of(sets) == waits
    since = cluster.clock.monotonic()
    await without_node(cluster, third)
    decode = f"{names.REVISION_LABEL}={third},{names.ROLE_LABEL}=decode"
    await cluster.kubelet.ready(*await cluster.names(POD, decode))

    async def holds() -> None:
        assert await stand_of(sets) == waits

    await cluster.consistently(holds, duration=58.5 - (cluster.clock.monotonic() - since))
    assert "AvailabilityFallback" not in await sets.reasons()
    await stands(sets, third, prefill=1, decode=2)

    async def retired() -> None:
        assert second not in await stand_of(sets)

    await cluster.eventually(retired)
    assert cluster.clock.monotonic() - since < 63
    await sets.has_event(
        "AvailabilityFallback",
        "Temporarily relaxed availability by at most one replica per role while retiring revision "
        f"{second} to release excess bootstrap capacity for scheduler-unschedulable target roles [prefill]",
        "Warning",
    )
    assert (await stand_of(sets))[first] == waits[first]
    async with ready_but(sets):
        await finished(sets, third)
    await sets.ready()


@pytest.mark.virtual_only("what is not observed is waited for at each step")
@pytest.mark.parametrize("identity", GROUP_IDENTITIES)
async def test_a_child_that_somebody_has_edited_holds_up_no_rollout(
    cluster: TestCluster, sets: DisaggregatedSets, identity: str
):
    """50 §7.5: its own rolling update has a surge that never starts, and the groups that serve are drained even so."""
    await sets.running(*two_roles(2, 1, spec={**rolling(1, 0), "groupIdentity": identity}))
    child = await sets.child("prefill")
    template = child["spec"]["leaderWorkerTemplate"]
    template["workerTemplate"]["spec"]["containers"][0]["image"] = "img:bad"
    name = child["metadata"]["name"]
    await cluster.patch(LEADER_WORKER_SET, name, {"spec": {"leaderWorkerTemplate": template}})

    async def surged() -> None:
        assert [pod for pod in await cluster.list(POD) if image_of(pod) == "img:bad"]

    async with ready_but(sets, image="img:bad"):
        await cluster.eventually(surged)
        await sets.set_image("img:v2")
        await finished(sets, await newest(sets, labels_of(child)[names.REVISION_LABEL]))
