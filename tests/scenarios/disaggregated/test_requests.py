"""What a DisaggregatedSet costs of the API server: nothing at rest, and a step of a rollout what it changes."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import Conflict
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import Recorded, matching
from tests.scenarios.disaggregated.passing import passed_through
from tests.scenarios.disaggregated.support import DisaggregatedSets, role, rolling, two_roles, written_about
from tests.scenarios.disaggregated.test_lifecycle import updated
from tests.scenarios.written import READS, everything, nothing_at_rest, summary, writes

pytestmark = pytest.mark.undisturbed("it counts requests")

ROOT = "/namespaces/"
CHILD = re.compile(r"leaderworkersets/chat-\d+-[0-9a-f]{8}-[a-z]+$")
SCALED = role("encode", mode=names.SCALING_EXTERNAL)


def about(cluster: TestCluster) -> Counter[str]:
    """The writes to the set, its children and its scalers, statuses aside; children's names are left out.

    What was refused because somebody else had just written is not counted: a real cluster's own controllers do.
    """
    refused = Counter(f"{r.verb} {r.request.path.partition(ROOT)[2].partition('/')[2]}" for r in conflicts(cluster))
    found = Counter(what for what in written_about(cluster) if not what.endswith("/status"))
    counts: Counter[str] = Counter()
    for what, count in (found - refused).items():
        counts[CHILD.sub("leaderworkersets/CHILD", what)] += count
    return counts


def conflicts(cluster: TestCluster) -> list[Recorded]:
    """Writes that came too late: what they meet was written, or a status has no object any more. On the embedded
    cluster there are none."""
    found = [r for r in writes(cluster) if r.status == 409 or is_of_what_is_gone(r)]
    assert not found or not cluster.embedded, found
    return found


def is_of_what_is_gone(request: Recorded) -> bool:
    return request.status == 404 and request.request.path.endswith("/status")


def none_refused(cluster: TestCluster) -> None:
    """No write was in vain."""
    refused = conflicts(cluster)
    failed = [(r.verb, r.request.path, r.status) for r in writes(cluster) if r.status not in (200, 201)]
    assert failed == [(r.verb, r.request.path, r.status) for r in refused]


async def test_creation(cluster: TestCluster, sets: DisaggregatedSets):
    """The marker, and each child and scaler, once; only statuses are written as they change."""
    await sets.running(*two_roles(), SCALED)
    await sets.settled()
    none_refused(cluster)
    assert about(cluster) == {
        "patch disaggregatedsets/chat": 1,
        "create leaderworkersets": 3,
        "create disaggregatedsetrolescalers": 1,
    }
    statuses = {what: n for what, n in summary(cluster).items() if "disaggregated" in what and "/status" in what}
    assert len(statuses) == 2
    # At first, and as each of four groups is made and gets ready.
    assert all(count <= 9 for count in statuses.values()), statuses


async def test_at_rest(cluster: TestCluster, sets: DisaggregatedSets):
    """Nothing is written, whatever watches do."""
    await sets.running(role("prefill", 1), role("decode", 2, size=2), SCALED)
    await sets.settled()
    await nothing_at_rest(cluster)


async def test_other_counts(cluster: TestCluster, sets: DisaggregatedSets):
    """One patch of the role that changes, of its measure and its count at once, and nothing of the other."""
    await sets.running()
    await sets.settled()
    before = about(cluster)
    await sets.scale_role("prefill", 3)
    await sets.ready()
    await sets.settled()
    assert about(cluster) - before == {"patch leaderworkersets/CHILD": 1}
    none_refused(cluster)


async def test_a_count_of_a_scaler(cluster: TestCluster, sets: DisaggregatedSets):
    """The same."""
    await sets.running(role("prefill", 1), SCALED)
    await sets.settled()
    before = about(cluster)
    await sets.scale("chat-encode", 3)
    await sets.has_children("0/prefill=1", "0/encode=3")
    await sets.ready()
    await sets.settled()
    assert about(cluster) - before == {"patch leaderworkersets/CHILD": 1}


async def test_a_rollout(cluster: TestCluster, sets: DisaggregatedSets):
    """Two children are made, each change of a count is one patch, two children are deleted; and nothing is read but
    what a write has met that of somebody else on, and leaders whose workers a real collector took away before it was
    heard that they have gone themselves."""
    surge = rolling(1, 0)
    await sets.running(role("prefill", 3, spec=surge), role("decode", 2, size=2, spec=surge))
    await sets.settled()
    before, all_before, children = about(cluster), everything(cluster), (await sets.children()).values()
    async with cluster.observe(LEADER_WORKER_SET) as observer:
        await sets.set_image("img:v2")
        await updated(sets)
        await sets.settled()
    changes = len([*passed_through(observer, children)]) - 1
    counts = about(cluster) - before
    assert counts.pop("create leaderworkersets") == 2
    assert counts.pop("delete leaderworkersets/CHILD") == 2
    # Two of the changes are the creations, two the deletions.
    assert counts == {"patch leaderworkersets/CHILD": changes - 4}
    none_refused(cluster)
    met = Counter(f"get {r.request.path.partition(ROOT)[2].partition('/')[2]}" for r in conflicts(cluster))
    asked = everything(cluster) - all_before - met
    read = {what: n for what, n in asked.items() if what.partition(" ")[0] in READS}
    assert {what: n for what, n in read.items() if cluster.embedded or not what.startswith("get pods/")} == {}


@pytest.mark.virtual_only("five minutes of waiting")
async def test_a_rollout_that_waits(cluster: TestCluster, sets: DisaggregatedSets):
    """While the new groups are not ready nothing is asked and nothing written; it is told once that it waits."""
    await sets.running(*two_roles(2, 2, spec=rolling(1, 0)))
    await sets.settled()
    await sets.set_image("img:v2")
    await sets.settled()
    before = everything(cluster)
    await cluster.consistently(lambda: None, duration=300)
    asked = everything(cluster) - before
    assert sum(count for what, count in asked.items() if "events" not in what) == 0, asked
    assert sum(asked.values()) <= 2, asked
    assert (await sets.reasons()).count(names.EVENT_REVISION_DRAIN_BLOCKED) == 1


@pytest.mark.virtual_only("its manager is made to hear nothing of the set")
async def test_statuses_that_are_refused(cluster: TestCluster, sets: DisaggregatedSets):
    """Where somebody else has just written to the set its status is refused, and tried again ever more seldom."""
    await sets.running()
    await sets.settled()
    await sets.scale_role("prefill", 3)
    await sets.settled()
    (connection,) = cluster.interceptors
    connection.fail(matching("PUT", r"/disaggregatedsets/chat/status$"), Conflict("changed"), times=None)
    before = len(connection.requests)
    (revision,) = await sets.revisions()
    await cluster.kubelet.ready(f"chat-0-{revision}-prefill-1")
    await cluster.consistently(lambda: None, duration=20)
    tries = [r for r in connection.requests[before:] if r.verb == "update" and r.request.path.endswith("chat/status")]
    assert 3 <= len(tries) <= 40, len(tries)
    connection.clear()
    await sets.ready()
