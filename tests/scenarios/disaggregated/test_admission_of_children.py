"""What admission makes of a DisaggregatedSet's LeaderWorkerSets and pods (specification: 50 §3, §7, §19)."""

from __future__ import annotations

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import Forbidden
from lwskit.runtime.objects import labels_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.support import DisaggregatedSets, role, rolling
from tests.scenarios.world import image_of

LABELS = {
    "DISAGGREGATEDSET_NAME": names.NAME_LABEL,
    "DISAGGREGATEDSET_ROLE": names.ROLE_LABEL,
    "DISAGGREGATEDSET_SLICE": names.SLICE_LABEL,
    "DISAGGREGATEDSET_REVISION": names.REVISION_LABEL,
}


async def test_containers_are_told_where_they_are(sets: DisaggregatedSets):
    """Leaders and workers, of all slices."""
    await sets.running(role("prefill", 1, size=2), role("decode", 1), slices=2)
    pods = await sets.pods()
    assert len(pods) == 6
    seen = set()
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        env = {entry["name"]: entry.get("value") for entry in container["env"]}
        told = {name: env[name] for name in LABELS}
        assert told == {name: labels_of(pod)[key] for name, key in LABELS.items()}
        seen.add((told["DISAGGREGATEDSET_ROLE"], told["DISAGGREGATEDSET_SLICE"]))
    assert seen == {(each, slice) for each in ("prefill", "decode") for slice in ("0", "1")}


async def test_percentages_come_to_nothing_on_the_way(cluster: TestCluster, sets: DisaggregatedSets):
    """Of 4 groups 25% is one, of 3 it is none: the set says how many go, and its LeaderWorkerSets are not asked."""
    pace = rolling(0, "25%")
    await sets.running(role("prefill", 4, spec=pace), role("decode", 4, spec=pace))
    (before,) = await sets.revisions()
    await sets.set_image("img:v2")

    async def rolled() -> None:
        found = await sets.revisions()
        assert len(found) == 1
        assert found != {before}

    async with cluster.kubelet.playing():
        await cluster.eventually(rolled)
    await sets.ready()
    assert {image_of(pod) for pod in await sets.pods()} == {"img:v2"}
    assert set((await sets.sizes()).values()) == {4}


async def test_amounts_that_are_none_are_refused_of_a_child_too(cluster: TestCluster, sets: DisaggregatedSets):
    """Only what comes to nothing is let through."""
    await sets.running(role("prefill", 2, spec=rolling(0, 1)), role("decode", 2))
    name = (await sets.child("prefill"))["metadata"]["name"]
    for field, value in (("maxUnavailable", "200%"), ("maxSurge", -1)):
        change = {"rolloutStrategy": {"rollingUpdateConfiguration": {field: value}}}
        with pytest.raises(Forbidden, match=field):
            await cluster.patch(LEADER_WORKER_SET, name, {"spec": change})
