"""The status of a DisaggregatedSet (specification: 50 §1.2, §16)."""

from __future__ import annotations

import pytest

from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import InternalError
from lwskit.runtime.objects import generation_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.disaggregated.support import DisaggregatedSets, role, rolling, two_roles, written_about
from tests.scenarios.support import seen

READY = "All roles have reached their desired replica count, ready and updated to the current revision"
NOT_READY = "Not all roles have reached their desired replica count, ready and updated to the current revision"
STATUS = "update disaggregatedsets/chat/status"


async def test_from_progressing_to_available(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 49: one condition on a fresh set; in the end Available, and Progressing false with its reason."""
    async with cluster.observe(DISAGGREGATED_SET) as observer:
        await sets.create()

        async def progressing() -> None:
            assert (await sets.live()).get("status")

        await cluster.eventually(progressing)
        first = (await sets.live())["status"]
        (only,) = first["conditions"]
        assert (only["type"], only["status"], only["reason"]) == ("Progressing", "True", "RolloutInProgress")
        assert only["message"] == NOT_READY
        assert {row["name"]: row["desiredReplicas"] for row in first["roleStatuses"]} == {"prefill": 1, "decode": 2}
        live = await sets.ready()
    told = seen(observer, "chat", lambda o: [c["type"] for c in (o.get("status") or {}).get("conditions") or ()])
    assert told == [[], ["Progressing"], ["Progressing", "Available"]]
    assert live["status"]["observedGeneration"] == generation_of(live)
    assert live["status"]["roleStatuses"] == [
        {"name": "prefill", "desiredReplicas": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1},
        {"name": "decode", "desiredReplicas": 2, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2},
    ]
    assert await sets.conditions() == {
        "Progressing": ("False", "AllRolesReady"),
        "Available": ("True", "AllRolesReady"),
    }
    for kind in ("Progressing", "Available"):
        condition = await sets.condition(kind)
        assert condition["message"] == READY
        assert condition["observedGeneration"] == generation_of(live)


async def test_a_change_of_the_generation_only(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 50: given a generation-only change, lastTransitionTime stays."""
    before = (await sets.running())["status"]["conditions"]
    await cluster.consistently(lambda: None, duration=2)
    await sets.patch({"spec": {"scalingPolicy": {"duringRollout": "AdvanceRollout"}}})

    async def observed() -> None:
        live = await sets.live()
        assert live["status"]["observedGeneration"] == generation_of(live) == 2
        assert live["status"]["conditions"] == [{**c, "observedGeneration": 2} for c in before]

    await cluster.eventually(observed)


async def test_a_set_that_is_paused_is_available(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 52: given all roles at 0, then Available; rows without zeros."""
    await sets.running(*two_roles(0, 0))
    assert await sets.rows() == {"prefill": {}, "decode": {}}
    assert (await sets.conditions())["Available"] == ("True", "AllRolesReady")


async def test_what_is_wanted_in_all_slices(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 53: given slices 2 and replicas 3, desiredReplicas is 6."""
    await sets.running(role("decode", 3), slices=2)
    counts = {"desiredReplicas": 6, "replicas": 6, "readyReplicas": 6, "updatedReplicas": 6}
    assert await sets.rows() == {"decode": counts}


async def test_a_group_that_is_lost(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §16: as long as a group is not ready the set is not available."""
    await sets.running()
    (revision,) = await sets.revisions()
    await cluster.kubelet.unready(f"chat-0-{revision}-decode-1")

    async def not_available() -> None:
        assert (await sets.conditions())["Available"] == ("False", "RolloutInProgress")
        assert (await sets.rows())["decode"]["readyReplicas"] == 1

    await cluster.eventually(not_available)
    await sets.ready()


@pytest.mark.virtual_only("a rollout that waits for ever")
async def test_a_removed_role_that_drains_has_no_row(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 51: given a removed role still draining, it has no entry, and the set is not available."""
    await sets.running(*two_roles(2, 2, spec=rolling(1, 0)))
    await sets.set_roles(role("prefill", 2, spec=rolling(1, 0)))

    async def draining() -> None:
        assert any(one == "decode" for _, _, one in await sets.sizes())
        assert [*await sets.rows()] == ["prefill"]
        assert (await sets.conditions())["Available"][0] == "False"

    await cluster.eventually(draining)
    await cluster.consistently(draining)


@pytest.mark.undisturbed("it counts requests")
async def test_a_status_that_others_have_changed_is_mended(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §16: one write, and none when nothing is wrong."""
    await sets.running()
    await sets.settled()
    before, wanted = written_about(cluster), (await sets.live())["status"]
    await cluster.patch(DISAGGREGATED_SET, "chat", {"status": {"roleStatuses": []}}, subresource="status")

    async def mended() -> None:
        assert (await sets.live())["status"] == wanted

    await cluster.eventually(mended)
    await sets.settled()
    assert written_about(cluster)[len(before) :] == [STATUS]


async def test_the_status_is_written_even_if_a_slice_fails(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 40: given one slice failing, the other slices still progress and the status is written."""
    interceptor = cluster.interceptors[0]

    def of_slice_0(request: HttpRequest) -> bool:
        creates = matching("POST", r"/leaderworkersets$")(request)
        return creates and b'"chat-0-' in (request.body or b"")

    interceptor.fail(of_slice_0, InternalError("boom"), times=None)
    await sets.create(slices=2)
    await sets.has_children("1/prefill=1", "1/decode=2")

    async def told() -> None:
        assert (await sets.rows())["decode"]["desiredReplicas"] == 4

    await cluster.eventually(told)
