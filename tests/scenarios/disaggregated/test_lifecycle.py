"""A DisaggregatedSet from its creation to its deletion (50 §5–§7, §10, §16)."""

from __future__ import annotations

from itertools import pairwise

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD, SERVICE, STATEFUL_SET
from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.passing import passed_through
from tests.scenarios.disaggregated.support import DisaggregatedSets, initial_of, role, rolling, two_roles
from tests.scenarios.world import image_of

Pair = tuple[tuple[int, int], tuple[int, int]]
"""What the old and the new revision have of each of two roles."""
SURGE = rolling(1, 0)


async def updated(sets: DisaggregatedSets) -> str:
    """Make pods ready until nothing old is left; returns the revision."""
    await sets.ready()

    async def alone() -> str:
        found = await sets.revisions()
        assert len(found) == 1
        return found.pop()

    return await sets.cluster.eventually(alone)


async def test_a_set_lives(cluster: TestCluster, sets: DisaggregatedSets):
    """It is created, scaled without a rollout, rolled, taken back, and deleted with all that belongs to it."""
    await sets.running(role("prefill", 1), role("decode", 2, size=2))
    (first,) = await sets.revisions()
    assert await sets.sizes() == {(0, first, "prefill"): 1, (0, first, "decode"): 2}
    before = await cluster.uids(LEADER_WORKER_SET)

    await sets.set_roles(role("prefill", 2), role("decode", 1, size=2))
    assert await updated(sets) == first
    assert await sets.sizes() == {(0, first, "prefill"): 2, (0, first, "decode"): 1}
    assert await cluster.uids(LEADER_WORKER_SET) == before
    assert [initial_of(await sets.child(name)) for name in ("prefill", "decode")] == ["2", "1"]

    await sets.set_image("img:v2")
    second = await updated(sets)
    assert second != first
    assert await sets.sizes() == {(0, second, "prefill"): 2, (0, second, "decode"): 1}
    assert {image_of(pod) for pod in await sets.pods()} == {"img:v2"}
    await sets.has_event(names.EVENT_ROLLING_UPDATE_STARTED, f"Started rolling update to revision {second}")
    await sets.has_event(names.EVENT_ROLLING_UPDATE_COMPLETED, f"Completed rolling update to revision {second}")
    reasons = await sets.reasons()
    assert reasons.count(names.EVENT_ROLLING_UPDATE_STARTED) == 1
    assert reasons.count(names.EVENT_ROLLING_UPDATE_COMPLETED) == 1

    await sets.set_image("img:v1")
    assert await updated(sets) == first
    assert await sets.sizes() == {(0, first, "prefill"): 2, (0, first, "decode"): 1}
    assert {image_of(pod) for pod in await sets.pods()} == {"img:v1"}
    assert not {*(await cluster.uids(LEADER_WORKER_SET)).values()} & {*before.values()}

    await cluster.delete(DISAGGREGATED_SET, "chat")

    async def nothing_left() -> None:
        for kind in (LEADER_WORKER_SET, STATEFUL_SET, POD, SERVICE):
            assert [n for n in await cluster.names(kind) if n.startswith("chat")] == []

    await cluster.eventually(nothing_left)


async def test_a_rollback_before_the_end_uses_what_is_there(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §10: the old children become the target again; no pod of theirs that stands is made anew."""
    await sets.running(*two_roles(2, 2, spec=SURGE))
    (first,) = await sets.revisions()
    before, pods = await cluster.uids(LEADER_WORKER_SET), await cluster.uids(POD)
    await sets.set_image("img:v2")

    async def probed() -> None:
        others = await sets.revisions() - {first}
        assert len(others) == 1
        second = others.pop()
        old = {(0, first, "prefill"): 2, (0, first, "decode"): 2}
        assert await sets.sizes() == old | {(0, second, "prefill"): 1, (0, second, "decode"): 1}

    await cluster.eventually(probed)
    await sets.settled()
    await probed()
    await sets.set_image("img:v1")
    assert await updated(sets) == first

    async def as_before() -> None:
        assert await cluster.uids(LEADER_WORKER_SET) == before
        assert await cluster.uids(POD) == pods

    await cluster.eventually(as_before)
    await sets.settled()
    await as_before()


WITHOUT_SURGE: list[Pair] = [
    ((2, 4), (0, 0)),
    ((1, 3), (0, 0)),
    ((1, 3), (1, 1)),
    ((1, 2), (1, 1)),
    ((1, 2), (1, 2)),
    ((1, 1), (1, 2)),
    ((1, 1), (1, 3)),
    ((0, 0), (1, 3)),
    ((0, 0), (2, 4)),
]
"""50 §9, r02 with its roles the other way round."""


async def test_two_and_four_without_limits(cluster: TestCluster, sets: DisaggregatedSets):
    """Where no limits are given one group of each role may be missing and none comes on top: the recorded rollout of
    two and four takes these steps here, in which each role keeps pace with the other and both end together."""
    await sets.running(role("prefill", 2), role("decode", 4, size=2))
    (first,) = await sets.revisions()
    before = (await sets.children()).values()
    async with cluster.observe(LEADER_WORKER_SET) as observer:
        await sets.set_image("img:v2")
        second = await updated(sets)
    found: list[Pair] = []
    for now in passed_through(observer, before):
        if {*now} == {first, second} and len(now[first]) == len(now[second]) == 2:
            old, new = ((now[r]["prefill"], now[r]["decode"]) for r in (first, second))
            found.append((old, new))
    steps = [pair for pair in found if pair in WITHOUT_SURGE]
    assert steps == WITHOUT_SURGE
    assert {*found} - {*WITHOUT_SURGE} <= _halfway(WITHOUT_SURGE)
    await sets.has_event(names.EVENT_ROLLING_UPDATE_COMPLETED, f"Completed rolling update to revision {second}")
    assert names.EVENT_BOOTSTRAP_SURGE not in await sets.reasons()


def _halfway(steps: list[Pair]) -> set[Pair]:
    """What is there while the two roles of a step are written one after the other."""
    found: set[Pair] = set()
    for (old, new), (less, more) in pairwise(steps):
        found.add(((less[0], old[1]), new))
        found.add((less, (more[0], new[1])))
    return found


async def test_a_foreground_deletion_ends(cluster: TestCluster, sets: DisaggregatedSets):
    """Nothing is made for it any more, and its children and scalers go with it.

    It need not go last: its children do not block its deletion (50 §3).
    """
    await sets.running(role("prefill", 1), role("decode", mode=names.SCALING_EXTERNAL))

    async def gone() -> None:
        for kind in (DISAGGREGATED_SET, LEADER_WORKER_SET, ROLE_SCALER):
            assert await cluster.names(kind) == []

    async with cluster.observe(LEADER_WORKER_SET) as observer, cluster.observe(ROLE_SCALER) as scalers:
        await cluster.delete(DISAGGREGATED_SET, "chat", "Foreground")
        await cluster.eventually(gone)
    assert not observer.born
    assert not scalers.born


async def test_a_set_that_is_made_again_has_children_of_its_own(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §18: what the first one owned, and which lingers, is not the second one's."""
    await sets.running(*two_roles(1, 1))
    before = await cluster.uids(LEADER_WORKER_SET)
    await cluster.delete(DISAGGREGATED_SET, "chat")
    await sets.running(*two_roles(1, 2))
    after = await cluster.uids(LEADER_WORKER_SET)
    assert {*before} == {*after}
    assert not {*before.values()} & {*after.values()}
    await sets.has_children("0/prefill=1", "0/decode=2")
