"""What broke for users of DisaggregatedSets elsewhere."""

from __future__ import annotations

from itertools import groupby

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import ApiError
from lwskit.runtime.objects import annotations_of, labels_of, version_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.passing import passed_through
from tests.scenarios.disaggregated.support import DisaggregatedSets, role, rolling, two_roles
from tests.scenarios.disaggregated.test_lifecycle import updated
from tests.scenarios.support import set_object as lws_object


@pytest.mark.parametrize("nothing", [0, "0%"])
async def test_limits_of_nothing(cluster: TestCluster, sets: DisaggregatedSets, nothing: int | str):
    """F95: a role whose rollouts may neither add nor take a group is refused where it has groups, with the field."""
    with pytest.raises(ApiError, match=r"spec\.roles\[1\]\.spec\.rolloutStrategy\.[a-zA-Z.]*maxUnavailable") as error:
        await sets.create(role("prefill", 2), role("decode", 2, spec=rolling(nothing, nothing)))
    assert "must not be 0" in error.value.message
    assert await cluster.names(DISAGGREGATED_SET) == []
    await sets.create(*two_roles(0, 0, spec=rolling(nothing, nothing)))
    await sets.has_children("0/prefill=0", "0/decode=0")


@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1), (2, 1)])
async def test_no_role_is_drained_alone(cluster: TestCluster, sets: DisaggregatedSets, surge: int, unavailable: int):
    """F97: whenever a role of the old revision is at nothing, so are the others, but for the moment of the writes."""
    limits = rolling(surge, unavailable)
    await sets.running(role("prefill", 3, spec=limits), role("decode", 1, spec=limits), role("encode", 2, spec=limits))
    (first,) = await sets.revisions()
    before = (await sets.children()).values()
    async with cluster.observe(LEADER_WORKER_SET) as observer:
        await sets.set_image("img:v2")
        await updated(sets)
    passed = [now[first] for now in passed_through(observer, before) if len(now.get(first, ())) == 3]
    # Without what only the new revision did meanwhile.
    stands = [one for one, _ in groupby(passed)]
    alone = [at for at, one in enumerate(stands) if not all(one.values()) and any(one.values())]
    # The roles come to nothing in one step, one write after the other: at most two states lie between.
    assert len(alone) <= 2
    assert not any(stands[alone[-1] + 1].values()) if alone else True
    assert not any(stands[-1].values())


async def test_what_others_own_is_not_touched(cluster: TestCluster, sets: DisaggregatedSets):
    """F98: a LeaderWorkerSet with a child's name and labels, but of nobody, is neither scaled nor adopted nor deleted;
    the set says so by not becoming available, and goes on when the name is free."""
    await sets.running(*two_roles(1, 1))
    (revision,) = await sets.revisions()
    mine = await sets.child("decode")
    await cluster.delete(DISAGGREGATED_SET, "chat")
    await cluster.eventually(lambda: cluster.gone(LEADER_WORKER_SET, mine["metadata"]["name"]))
    foreign = lws_object(mine["metadata"]["name"], replicas=3, size=1, metadata={"labels": dict(labels_of(mine))})
    await cluster.create(LEADER_WORKER_SET, foreign)
    await sets.create(*two_roles(1, 2))
    await sets.settled()
    async with cluster.kubelet.playing():
        await cluster.consistently(lambda: None, duration=10)
    live = await cluster.get(LEADER_WORKER_SET, mine["metadata"]["name"])
    assert live["spec"]["replicas"] == 3
    assert "ownerReferences" not in live["metadata"]
    assert names.INITIAL_REPLICAS_ANNOTATION not in annotations_of(live)
    assert (await sets.conditions())[names.CONDITION_PROGRESSING][0] == "True"
    await cluster.delete(LEADER_WORKER_SET, mine["metadata"]["name"])
    assert await updated(sets) == revision
    await sets.has_children("0/prefill=1", "0/decode=2")


async def test_a_role_with_a_scaler_and_slices(cluster: TestCluster, sets: DisaggregatedSets):
    """F101: External with more than one slice is refused; that its spec.replicas counts for nothing is warned of
    (`unit/admission/`), and the scaler begins with one group."""
    scaled = role("decode", 3, mode=names.SCALING_EXTERNAL)
    with pytest.raises(ApiError, match=r"spec\.slices: Forbidden: .* External \(alpha restriction\)"):
        await sets.create(role("prefill", 1), scaled, slices=2)
    await sets.create(role("prefill", 1), scaled)
    await sets.has_children("0/prefill=1", "0/decode=1")


async def test_another_placement(cluster: TestCluster, sets: DisaggregatedSets):
    """F103: another placement rolls nothing and changes no child; the children of the next template have it."""
    await sets.running(*two_roles(1, 1))
    await sets.settled()
    before = {name: version_of(child) for name, child in (await sets.children()).items()}
    await sets.patch({"spec": {"placementPolicy": {"type": names.PLACEMENT_EXCLUSIVE_SLICE, "topology": "rack"}}})
    await sets.ready()
    await sets.settled()
    assert {name: version_of(child) for name, child in (await sets.children()).items()} == before
    await sets.set_image("img:v2")
    await updated(sets)
    for child in (await sets.children()).values():
        affinity = child["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["affinity"]
        assert {*affinity} == {"podAffinity", "podAntiAffinity"}


async def test_children_from_before_there_were_slices(cluster: TestCluster, sets: DisaggregatedSets):
    """F100: an owned child without a slice in its name and labels is what v0.9 made. v1.0.0 does not know those any
    more: it is left as it is, and the set has its own beside it."""
    made = await sets.create(*two_roles(1, 1))
    (revision,) = await cluster.eventually(lambda: some(sets))
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "name": "chat",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    labels = {names.NAME_LABEL: "chat", names.ROLE_LABEL: "decode", names.REVISION_LABEL: revision}
    name = f"chat-{revision}-decode"
    metadata = {"labels": labels, "ownerReferences": [owner]}
    await cluster.create(LEADER_WORKER_SET, lws_object(name, replicas=1, size=1, metadata=metadata))
    await sets.scale_role("decode", 2)
    async with cluster.kubelet.playing():
        await cluster.consistently(lambda: None, duration=10)
    old = await cluster.get(LEADER_WORKER_SET, name)
    assert old["spec"]["replicas"] == 1
    assert labels_of(old) == labels
    assert (await cluster.get(LEADER_WORKER_SET, f"chat-0-{revision}-decode"))["spec"]["replicas"] == 2


async def some(sets: DisaggregatedSets) -> set[str]:
    """The revisions, when there are children."""
    found = await sets.revisions()
    assert found
    return found
