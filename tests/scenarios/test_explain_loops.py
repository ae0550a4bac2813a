"""`lwskit explain` and groups that are recreated: loops, back-offs, and what a newer template mends."""

from __future__ import annotations

from typing import Any

from lwskit.api import names
from lwskit.groups.explain import Explanation, State
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import Forbidden
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import annotations_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.behind import rests
from tests.scenarios.explained import says
from tests.scenarios.support import ALL_KINDS, Sets, images, strategy


async def explained(cluster: TestCluster, *texts: str, client: Client | None = None, **wanted: Any) -> Explanation:
    """The explanation once nothing moves any more, with these fields, and these texts in its paragraph."""
    await rests(cluster, *ALL_KINDS)
    return await says(cluster, "llm", texts, wanted, client)


async def crash(cluster: TestCluster, sets: Sets, pod: str, leader: str, number: int) -> None:
    """A container of a pod restarts; returns once the group's leader is another one and the event is there."""
    before = (await sets.pod_uids())[leader]
    await cluster.kubelet.restart_container(pod, ready=False)

    async def anew() -> None:
        assert (await sets.pod_uids()).get(leader, before) != before
        told = [e for e in await sets.events() if e["reason"] == names.EVENT_RECREATE_GROUP]
        assert len(told) == number

    await cluster.eventually(anew)
    await sets.has_pods("llm-0", "llm-0-1", "llm-1", "llm-1-1")


async def test_a_loop_of_recreations_holds_the_rollout(cluster: TestCluster, sets: Sets) -> None:
    """The default policy: the pods go with what their containers ended with, so only events remember it."""
    await sets.running(replicas=2, size=2)
    await sets.set_image("img:broken")
    await sets.has_event("GroupsUpdating", "Updating replica 1")
    await sets.has_image("img:broken", "llm-1", "llm-1-1")
    for number in (1, 2):
        await crash(cluster, sets, "llm-1-1", "llm-1", number)
        await explained(cluster, state=State.PROGRESSING, group=1)
    await crash(cluster, sets, "llm-1", "llm-1", 3)
    await explained(
        cluster,
        "Group 1 holds the rollout. Group 1 has been recreated 3 times within ",
        "last pod llm-1",
        state=State.BLOCKED,
        cause="restart-loop",
        group=1,
        pod="llm-1",
    )
    # What the broken template did says nothing of the next one.
    await sets.set_image("img:v3")

    async def replaced() -> None:
        assert (await images(sets)).get("llm-1") == "img:v3"

    await cluster.eventually(replaced)
    last = "It goes on by itself once group 1 is ready."
    found = await explained(
        cluster, "The rollout waits for group 1, which is on its way.", last, state=State.PROGRESSING, group=1
    )
    assert found.paragraph.endswith(last)


async def test_a_loop_is_found_by_who_may_not_read_events(cluster: TestCluster, sets: Sets) -> None:
    """By the restarts that the set counts; and it is said what the explanation is made without."""
    await sets.running(replicas=2, size=2, group={"maxGroupRestarts": 5})
    for number in (1, 2, 3):
        await crash(cluster, sets, "llm-1-1", "llm-1", number)
    transport = await cluster.connect("explainer")
    client = Client(transport, clock=cluster.clock)
    transport.fail(matching("GET", "/events$"), Forbidden("events is forbidden"), times=None)
    await explained(
        cluster,
        "Group 1 has been recreated 3 times within ",
        "Events could not be read (events is forbidden): ",
        client=client,
        state=State.BLOCKED,
        cause="restart-loop",
        group=1,
    )


async def test_a_ready_group_that_waits_for_its_back_off_is_not_well(cluster: TestCluster, sets: Sets) -> None:
    group = {"restartPolicy": names.RESTART_RECREATE_GROUP, "restartBackoff": {"baseSeconds": 300, "capSeconds": 300}}
    await sets.running(replicas=2, size=2, group=group)
    await cluster.kubelet.restart_container("llm-1-1")
    await explained(
        cluster,
        "2 of 2 groups are ready",
        "Group 1 is ready and will be recreated all the same. Pod llm-1-1 failed",
        state=State.PROGRESSING,
        cause="back-off",
        group=1,
        pod="llm-1-1",
    )


async def test_a_newer_template_replaces_a_group_without_restarts_left(cluster: TestCluster, sets: Sets) -> None:
    """What the advice says comes to pass, without the annotation that gives a fresh budget."""
    group = {"restartPolicy": names.RESTART_RECREATE_GROUP, "maxGroupRestarts": 0}
    await sets.running(replicas=2, size=1, group=group, rolloutStrategy=strategy(maxUnavailable=1))
    await sets.set_image("img:broken")
    await sets.has_event("GroupsUpdating", "Updating replica 1")
    await sets.has_image("img:broken", "llm-1")
    await cluster.kubelet.restart_container("llm-1", ready=False)

    async def kept() -> None:
        pod = await cluster.get(POD, "llm-1")
        assert annotations_of(pod).get(names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION) == "true"

    await cluster.eventually(kept)
    found = await explained(cluster, state=State.BLOCKED, cause="budget-exhausted", group=1)
    assert "correct it in the set, and the rollout replaces the group" in found.advice[0]
    await sets.set_image("img:v3")

    async def replaced() -> None:
        assert (await images(sets)).get("llm-1") == "img:v3"

    await cluster.eventually(replaced)
