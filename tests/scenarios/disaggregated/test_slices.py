"""Slices: copies of all roles that come and go as a whole (specification: 50 §12)."""

from __future__ import annotations

import pytest

from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import InternalError
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.disaggregated.support import DisaggregatedSets, rolling, two_roles


async def test_more_slices(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 23: given slices 1 to 3, two more sets of children; those of slice 0 are untouched."""
    await sets.running()
    before = await cluster.uids(LEADER_WORKER_SET)
    await sets.patch({"spec": {"slices": 3}})
    await sets.has_children(*(f"{i}/{one}" for i in range(3) for one in ("prefill=1", "decode=2")))
    await sets.ready()
    assert (await cluster.uids(LEADER_WORKER_SET)).items() >= before.items()
    assert len(await sets.revisions()) == 1


async def test_fewer_slices(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 23: given slices 3 to 1, slices 1 and 2 are deleted and slice 0 is untouched."""
    await sets.running(slices=3)
    before = await cluster.uids(LEADER_WORKER_SET)
    (revision,) = await sets.revisions()
    await sets.patch({"spec": {"slices": 1}})
    await sets.has_children("0/prefill=1", "0/decode=2")
    for number in (1, 2):
        for one in ("prefill", "decode"):
            name = f"chat-{number}-{revision}-{one}"
            await sets.has_event("LWSDeleted", f"Deleted LWS {name} for removed slice {number}")
            await cluster.eventually(lambda name=name: cluster.gone(LEADER_WORKER_SET, name))
    await sets.ready()
    assert before.items() >= (await cluster.uids(LEADER_WORKER_SET)).items()
    assert {row["replicas"] for row in (await sets.rows()).values()} == {1, 2}


async def test_slices_that_come_back(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §12: a slice that comes back waits until the name of each former child is free."""
    await sets.running(slices=2)
    before = await cluster.uids(LEADER_WORKER_SET)
    await sets.patch({"spec": {"slices": 1}})
    await sets.patch({"spec": {"slices": 2}})
    await sets.has_children(*(f"{i}/{one}" for i in range(2) for one in ("prefill=1", "decode=2")))
    await sets.ready()
    after = await cluster.uids(LEADER_WORKER_SET)
    assert after.keys() == before.keys()
    assert all(after[name] == uid for name, uid in before.items() if name.startswith("chat-0-"))


async def test_children_without_a_readable_slice_stay(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §12: a label that is no number is of no slice, so nothing is removed for it."""
    await sets.running(slices=2)
    name = (await sets.child("decode", 1))["metadata"]["name"]
    label = {"disaggregatedset.x-k8s.io/slice": "one"}
    await cluster.patch(LEADER_WORKER_SET, name, {"metadata": {"labels": label}})
    await sets.patch({"spec": {"slices": 1}})

    async def others_gone() -> None:
        assert sorted(await cluster.names(LEADER_WORKER_SET)) == sorted(
            [name, *(n for n in await cluster.names(LEADER_WORKER_SET) if n.startswith("chat-0-"))]
        )
        assert len(await cluster.names(LEADER_WORKER_SET)) == 3

    await cluster.eventually(others_gone)
    await cluster.consistently(others_gone)


@pytest.mark.virtual_only("a rollout that waits for ever")
async def test_a_new_slice_does_not_wait_for_a_rollout(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 41: given slices that roll, when slices grow, the new slice is made at once at its size."""
    await sets.running(*two_roles(2, 2, spec=rolling(1, 0)))
    (old,) = await sets.revisions()
    await sets.set_image("img:v2")

    async def rolling_out() -> None:
        assert len(await sets.revisions()) == 2

    await cluster.eventually(rolling_out)
    await sets.patch({"spec": {"slices": 2}})

    async def made() -> None:
        found = await sets.sizes()
        new = {(r, one): n for (i, r, one), n in found.items() if i == 1}
        assert {one: n for (_, one), n in new.items()} == {"prefill": 2, "decode": 2}
        assert old not in {r for r, _ in new}
        assert found[0, old, "decode"] == 2

    await cluster.eventually(made)


async def test_a_slice_that_fails_holds_up_no_rollout_of_another(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 40: given one slice failing, the others roll out as fast as ever, and the status is written."""
    await sets.running(*two_roles(2, 2, spec=rolling(1, 0)), slices=2)
    (old,) = await sets.revisions()

    def of_slice_0(request: HttpRequest) -> bool:
        return matching("POST", r"/leaderworkersets$")(request) and b'"chat-0-' in (request.body or b"")

    interceptor = cluster.interceptors[0]
    interceptor.fail(of_slice_0, InternalError("boom"), times=None)
    begin = cluster.clock.monotonic()
    await sets.set_image("img:v2")

    async def rolled() -> None:
        found = await sets.sizes()
        assert {key[1] for key in found if key[0] == 1} - {old}
        assert old not in {key[1] for key in found if key[0] == 1}
        assert {key: n for key, n in found.items() if key[0] == 0} == {(0, old, "prefill"): 2, (0, old, "decode"): 2}

    await sets.eventually(rolled)
    if cluster.embedded:
        # A real machine may be slow with all of it.
        assert cluster.clock.monotonic() - begin <= 20
    failed = interceptor.count(of_slice_0)
    assert 0 < failed <= 60
    assert (await sets.conditions())["Progressing"] == ("True", "RolloutInProgress")
    assert "FailedCreate" in await sets.reasons()
