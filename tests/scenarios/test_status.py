"""Status, conditions, events and the scale subresource (specification: 20 §8, §9)."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import EVENT
from lwskit.runtime.objects import generation_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import ALL_KINDS, Sets

AVAILABLE, PROGRESSING = names.CONDITION_AVAILABLE, names.CONDITION_PROGRESSING
UPDATING, DEGRADED = names.CONDITION_UPDATE_IN_PROGRESS, names.CONDITION_DEGRADED


async def test_progressing_then_available(cluster: TestCluster, sets: Sets):
    """20 §14 lines 43, 46: creation shows Progressing and never UpdateInProgress; all ready shows Available alone."""
    async with cluster.observe(LEADER_WORKER_SET) as observer:
        await sets.create()

        async def progressing() -> None:
            assert await sets.conditions() == {PROGRESSING: "True", DEGRADED: "False"}

        await cluster.eventually(progressing)
        live = await sets.ready()
    assert await sets.conditions() == {AVAILABLE: "True", PROGRESSING: "False", DEGRADED: "False"}
    assert (live["status"]["replicas"], live["status"]["readyReplicas"], live["status"]["updatedReplicas"]) == (2, 2, 2)
    seen = {c["type"] for change in observer.changes for c in (change.obj.get("status") or {}).get("conditions", ())}
    assert UPDATING not in seen


async def test_reasons_and_messages(sets: Sets):
    """20 §8.3: the texts of the conditions, and Degraded=False on a healthy set."""
    await sets.running()
    available = await sets.condition(AVAILABLE)
    assert (available["reason"], available["message"]) == ("AllGroupsReady", "All replicas are ready")
    progressing = await sets.condition(PROGRESSING)
    assert (progressing["reason"], progressing["message"]) == ("GroupsProgressing", "Replicas are progressing")
    degraded = await sets.condition(DEGRADED)
    assert (degraded["status"], degraded["reason"]) == ("False", "AsExpected")
    assert degraded["message"] == "No replica has exhausted its restart budget"


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
async def test_events_of_creation(sets: Sets):
    """20 §9 and §14 line 56: what a set tells while it comes up, in kubectl describe."""
    await sets.running()
    await sets.has_event("GroupsProgressing", "Created leader statefulset llm")
    for leader in ("llm-0", "llm-1"):
        event = await sets.has_event("GroupsProgressing", f"Created worker statefulset for leader pod {leader}")
        assert event["related"]["name"] == leader
    event = await sets.has_event("AllGroupsReady", "All replicas are ready, with 2 groups ready of total 2 groups")
    assert event["reportingController"] == "leaderworkerset"
    assert event["action"] == "Update"


async def test_a_group_counts_only_when_all_of_it_is_ready(cluster: TestCluster, sets: Sets):
    """20 §6.2: leader and all workers must be ready."""
    await sets.create()
    await sets.has_pods("llm-0", "llm-0-1", "llm-0-2", "llm-1", "llm-1-1", "llm-1-2")
    await cluster.kubelet.ready("llm-0", "llm-0-1", "llm-0-2", "llm-1", "llm-1-1")

    async def one() -> None:
        assert (await sets.live())["status"].get("readyReplicas") == 1

    await cluster.eventually(one)
    await cluster.consistently(one)
    assert (await sets.conditions())[PROGRESSING] == "True"
    await cluster.kubelet.ready("llm-1-2")

    async def available() -> None:
        assert (await sets.conditions())[AVAILABLE] == "True"

    await cluster.eventually(available)


async def test_a_group_that_turns_unready_ends_availability(cluster: TestCluster, sets: Sets):
    """20 §14 line 45, §8.5: Available turns False with its old message, Progressing True, and back."""
    await sets.running()
    await cluster.kubelet.unready("llm-1-1")

    async def progressing() -> None:
        conditions = await sets.conditions()
        assert (conditions[AVAILABLE], conditions[PROGRESSING]) == ("False", "True")

    await cluster.eventually(progressing)
    assert (await sets.condition(AVAILABLE))["message"] == "All replicas are ready"
    await cluster.kubelet.ready("llm-1-1")

    async def available() -> None:
        conditions = await sets.conditions()
        assert (conditions[AVAILABLE], conditions[PROGRESSING]) == ("True", "False")

    await cluster.eventually(available)


async def test_update_in_progress_during_a_rollout(cluster: TestCluster, sets: Sets):
    """20 §14 lines 44, 45: UpdateInProgress and Progressing while old groups are left, then Progressing alone."""
    await sets.running(replicas=1)
    await sets.set_image("img:v2")

    async def updated() -> None:
        assert (await sets.live())["status"].get("updatedReplicas") == 1
        conditions = await sets.conditions()
        assert (conditions[UPDATING], conditions[PROGRESSING], conditions[AVAILABLE]) == ("False", "True", "False")

    async with cluster.observe(LEADER_WORKER_SET) as observer:
        await cluster.eventually(updated)
    flags = [
        {c["type"]: c["status"] for c in change.obj["status"]["conditions"]}
        for change in observer.changes
        if (change.obj.get("status") or {}).get("conditions")
    ]
    assert any((f.get(UPDATING), f.get(PROGRESSING), f.get(AVAILABLE)) == ("True", "True", "False") for f in flags) or (
        (await sets.condition(UPDATING))["message"] == "Rolling Upgrade is in progress"
    )
    await sets.ready()
    assert (await sets.conditions())[UPDATING] == "False"


async def test_observed_generation_follows_any_change(cluster: TestCluster, sets: Sets):
    """20 §14 line 51: given a generation bump only, status and all conditions carry the new generation."""
    await sets.running()
    changed = await sets.patch({"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxUnavailable": 2}}}})

    async def observed() -> None:
        status = (await sets.live())["status"]
        assert status["observedGeneration"] == generation_of(changed)
        assert {c["observedGeneration"] for c in status["conditions"]} == {generation_of(changed)}

    await cluster.eventually(observed)
    assert (await sets.conditions())[AVAILABLE] == "True"


async def test_nothing_is_written_at_rest(cluster: TestCluster, sets: Sets):
    """20 §14 line 50: given nothing changed, no status write and no event."""
    await sets.running()
    await cluster.settled(*ALL_KINDS, EVENT)
    async with cluster.observe(LEADER_WORKER_SET) as sets_seen, cluster.observe(EVENT) as events_seen:
        await cluster.consistently(lambda: None)
    assert sets_seen.changes == []
    # The cluster's own controllers may be late with theirs.
    assert [c for c in events_seen.changes if c.obj["regarding"]["kind"] == names.KIND] == []


async def test_the_selector_for_autoscalers(cluster: TestCluster, sets: Sets):
    """20 §14 lines 52, 54: hpaPodSelector, and the scale subresource reads and writes spec.replicas."""
    await sets.running()
    selector = f"{names.NAME_LABEL}=llm,{names.WORKER_INDEX_LABEL}=0"
    assert (await sets.live())["status"]["hpaPodSelector"] == selector
    scale = await cluster.client.get(LEADER_WORKER_SET, "llm", cluster.namespace, subresource="scale")
    assert scale["spec"]["replicas"] == 2
    assert scale["status"] == {"replicas": 2, "selector": selector}
    await sets.scale(1)
    assert (await sets.live())["spec"]["replicas"] == 1
