"""What only another backend can do: ordinals that are left out, and updates of pods where they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from lwskit.api import names
from lwskit.backends.registry import Backends
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, is_true, labels_of
from lwskit.testing.cluster import Runnable, TestCluster
from tests.fleet.controller import fleets
from tests.fleet.kind import FLEET, FleetLeaders, FleetWorkers
from tests.scenarios.manager import manager
from tests.scenarios.support import Sets, partition_of

LEFT_OUT = (1, 3)


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """The manager with leaders that have no ordinals 1 and 3, passed in as a program that embeds it would."""
    return fleets, partial(manager, backends=Backends(FleetLeaders(LEFT_OUT), FleetWorkers()))


def rolling(**fields: int) -> Obj:
    """A rollout strategy."""
    return {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0, **fields}}


async def shows(sets: Sets, replicas: int, partition: int, groups: str, counts: str) -> None:
    """Wait until the fleet asks for this, and groups (a star: not ready) and counts of the set are so."""

    async def there() -> None:
        workload, status = await sets.leader_workload(), (await sets.live()).get("status") or {}
        assert (workload["spec"]["replicas"], partition_of(workload)) == (replicas, partition)
        pods = await sets.pods()
        leaders = [p for p in pods.values() if labels_of(p)[names.WORKER_INDEX_LABEL] == names.LEADER_INDEX]
        leaders.sort(key=lambda p: int(labels_of(p)[names.GROUP_INDEX_LABEL]))
        shown = " ".join(_shown(p) for p in leaders)
        assert shown == groups
        assert f"{status.get('readyReplicas', 0)}/{status.get('updatedReplicas', 0)}" == counts

    await sets.cluster.eventually(there)


def _shown(pod: Obj) -> str:
    tag = pod["spec"]["containers"][0]["image"].partition(":")[2]
    return f"{labels_of(pod)[names.GROUP_INDEX_LABEL]}{tag}{'' if is_true(pod, 'Ready') else '*'}"


async def group_ready(sets: Sets, index: int, image: str) -> None:
    """Make a group ready once both of its pods have this image."""

    async def there() -> list[str]:
        pods = await sets.live_pods()
        group = [n for n, p in pods.items() if labels_of(p)[names.GROUP_INDEX_LABEL] == str(index)]
        assert [pods[n]["spec"]["containers"][0]["image"] for n in group] == [image] * 2
        return group

    await sets.cluster.kubelet.ready(*await sets.cluster.eventually(there))


async def test_a_set_with_gaps_is_created_and_scaled(cluster: TestCluster, sets: Sets):
    """Groups have the ordinals that the fleet gives them, and are counted like any others."""
    await sets.running(replicas=3, size=2)
    assert sorted(await sets.pods()) == ["llm-0", "llm-0-1", "llm-2", "llm-2-1", "llm-4", "llm-4-1"]
    assert await cluster.names(STATEFUL_SET) == []
    before = await sets.pod_uids()
    await sets.scale(4)
    await sets.ready()
    assert sorted(await cluster.names(FLEET)) == ["llm", "llm-0", "llm-2", "llm-4", "llm-5"]
    await sets.scale(2)
    await sets.has_pods("llm-0", "llm-0-1", "llm-2", "llm-2-1")
    after = await sets.pod_uids()
    assert after == {name: before[name] for name in after}


async def test_a_rollout_goes_along_the_row_and_keeps_the_pods(sets: Sets):
    """The partition counts places, notes name ordinals, and the pods stay who they are."""
    await sets.running(replicas=3, size=2, image="img:A")
    before = await sets.pod_uids()
    await sets.set_image("img:B")
    await shows(sets, 3, 2, "0A 2A 4B*", "2/1")
    await sets.has_event("GroupsUpdating", "Updating replica 4")
    await group_ready(sets, 4, "img:B")
    await shows(sets, 3, 1, "0A 2B* 4B", "2/2")
    await sets.has_event("GroupsUpdating", "Updating replica 2")
    await group_ready(sets, 2, "img:B")
    await shows(sets, 3, 0, "0B* 2B 4B", "2/3")
    await group_ready(sets, 0, "img:B")
    await shows(sets, 3, 0, "0B 2B 4B", "3/3")
    await sets.settled()
    assert await sets.pod_uids() == before
    assert (await sets.conditions())[names.CONDITION_AVAILABLE] == "True"
    assert len(await sets.revisions()) == 1


async def test_surge_groups_come_and_go_at_the_end_of_the_row(sets: Sets):
    """With ordinals 0, 2, 4 the surge group is 5, and its removal is told with that number."""
    await sets.running(replicas=3, size=2, image="img:A", rolloutStrategy=rolling(maxUnavailable=0, maxSurge=1))
    await sets.set_image("img:B")
    await shows(sets, 4, 3, "0A 2A 4A 5B*", "3/1")
    await sets.ready()
    await sets.has_event("GroupsProgressing", "deleting surge replica llm-5")
    await sets.settled()
    await shows(sets, 3, 0, "0B 2B 4B", "3/3")


async def test_a_partition_holds_the_first_of_the_row(sets: Sets):
    """A set's own partition counts groups, whatever their ordinals are."""
    await sets.running(replicas=3, size=2, image="img:A", rolloutStrategy=rolling(partition=2))
    await sets.set_image("img:B")
    await group_ready(sets, 4, "img:B")
    await shows(sets, 3, 2, "0A 2A 4B", "3/1")
    await sets.settled()
    await shows(sets, 3, 2, "0A 2A 4B", "3/1")


async def test_a_lost_worker_recreates_a_group_with_a_gap_before_it(cluster: TestCluster, sets: Sets):
    """Restarts go by owners and labels, not by positions."""
    await sets.running(replicas=3, size=2)
    before = await sets.pod_uids()
    await cluster.delete(POD, "llm-4-1")

    async def replaced() -> None:
        after = await sets.pod_uids()
        assert sorted(after) == sorted(before)
        changed = {name for name in after if after[name] != before[name]}
        assert changed == {"llm-4", "llm-4-1"}

    await cluster.eventually(replaced)
    await sets.ready()


async def test_a_set_that_something_else_leads_is_left_alone_and_says_so(cluster: TestCluster, sets: Sets):
    """Leaders of a StatefulSet, as a manager with the built-in backend has made them, and a manager for fleets."""
    foreign: Obj = {
        "metadata": {"name": "llm", "labels": {names.NAME_LABEL: "llm"}},
        "spec": {
            "replicas": 1,
            "serviceName": "llm",
            "selector": {"matchLabels": {names.NAME_LABEL: "llm", names.WORKER_INDEX_LABEL: "0"}},
            "template": {
                "metadata": {
                    "labels": {names.NAME_LABEL: "llm", names.WORKER_INDEX_LABEL: "0"},
                    "annotations": {names.SIZE_ANNOTATION: "2"},
                },
                "spec": {"containers": [{"name": "c", "image": "img:A"}], "schedulerName": "nobody"},
            },
        },
    }
    await cluster.create(STATEFUL_SET, foreign)
    await sets.has_pods("llm-0")
    await sets.create(replicas=1, size=2)

    async def told() -> None:
        condition = await sets.condition(names.CONDITION_DEGRADED)
        assert (condition["status"], condition["reason"]) == ("True", names.REASON_OTHER_LEADER_WORKLOAD)
        assert "made by a StatefulSet.apps, and this manager makes leaders with Fleet." in condition["message"]

    await cluster.eventually(told)
    await sets.settled()
    assert await cluster.names(FLEET) == []
    assert await sets.revisions() == []
    await cluster.delete(STATEFUL_SET, "llm")
    await sets.ready()
    assert (await sets.condition(names.CONDITION_DEGRADED))["status"] == "False"
    assert await cluster.names(FLEET) == ["llm", "llm-0"]
