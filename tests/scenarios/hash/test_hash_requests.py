"""What the manager asks of the API server for sets in Hash mode: what Ordinal mode does, and what the gate needs."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from lwskit.runtime.kinds import POD
from lwskit.testing.cluster import TestCluster
from tests.scenarios.hash.support import HashSets
from tests.scenarios.hash.test_hash_budget import gone
from tests.scenarios.support import strategy
from tests.scenarios.written import everything, none_failed, summary

pytestmark = pytest.mark.undisturbed("it counts requests")

DRAWN = re.compile(r"llm-[0-9a-z-]+")
STATUS = "update leaderworkersets/llm/status"


def kinds(counts: Counter[str]) -> Counter[str]:
    """The same counts without the names that are drawn."""
    found: Counter[str] = Counter()
    for what, count in counts.items():
        found[DRAWN.sub("NAME", what)] += count
    return found


def of_groups(count: int) -> dict[str, int]:
    """What so many new groups cost, events aside: the gate, the workers, and twice the condition of the leader."""
    return {"patch pods/NAME": count, "create statefulsets": count, "patch pods/NAME/status": 2 * count}


async def test_creating_a_set(cluster: TestCluster, sets: HashSets):
    """Each object is written once; of a group its gate once and its condition twice: not ready, ready."""
    await sets.running()
    await sets.settled()
    none_failed(cluster)
    counts = kinds(summary(cluster))
    assert counts.pop(STATUS) <= 8
    assert counts == {
        "create controllerrevisions": 1,
        "patch deployments/llm": 1,
        "create services": 1,
        **of_groups(2),
    }


@pytest.mark.virtual_only("two hundred pods")
async def test_what_a_group_costs(cluster: TestCluster, sets: HashSets):
    """For each group its workers and the event about them, as in Ordinal mode; its gate and the event about that, and
    two writes of its leader's condition. All else together is a fifth of a request a group."""
    await sets.running(replicas=100, size=2)
    await sets.settled()
    counts = kinds(everything(cluster))
    for what, count in of_groups(100).items():
        assert counts.pop(what) == count, what
    assert counts.pop("create events") - 200 <= 5
    assert counts.total() <= 15, counts


async def test_a_lost_worker(cluster: TestCluster, sets: HashSets):
    """The leader is deleted once, and the group that comes costs what any new one does."""
    await sets.running()
    await sets.settled()
    before = summary(cluster)
    group = next(iter((await sets.groups()).values()))
    await cluster.delete(POD, group.workers[0]["metadata"]["name"])
    await gone(sets, group)
    await sets.ready()
    await sets.settled()
    counts = kinds(summary(cluster) - before)
    assert counts.pop(STATUS) <= 8
    # The group that goes says once that it is not ready, unless its leader went first.
    assert counts.pop("patch pods/NAME/status") in (2, 3)
    assert counts == {"delete pods/NAME": 1, "patch pods/NAME": 1, "create statefulsets": 1}
    none_failed(cluster)


async def test_a_rollout(cluster: TestCluster, sets: HashSets):
    """One apply for all of it: the Deployment goes on by itself. The old revision is deleted once."""
    await sets.running(replicas=3, size=2, rolloutStrategy=strategy(maxUnavailable=1, maxSurge=1))
    await sets.settled()
    before = summary(cluster)
    await sets.set_image("img:v2")
    await sets.ready()

    async def one_is_left() -> None:
        assert len(await sets.revisions()) == 1

    await cluster.eventually(one_is_left)
    await sets.settled()
    counts = kinds(summary(cluster) - before)
    assert counts.pop(STATUS) <= 16
    assert counts == {
        "create controllerrevisions": 1,
        "patch deployments/llm": 1,
        "delete controllerrevisions/NAME": 1,
        **of_groups(3),
    }
    none_failed(cluster)
