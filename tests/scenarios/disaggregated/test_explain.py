"""`lwskit explain` of DisaggregatedSets on a cluster: which slice, role and child hold them, and by which name."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.cli import disaggregated_planning, explaining
from lwskit.disaggregated.explain import SetExplanation
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.groups.explanation import Explanation, State
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, is_true
from lwskit.runtime.webhook import AdmissionDenied, Warn, validator
from lwskit.simulate.disaggregated_report import Report
from lwskit.simulate.report import Outcome
from tests.scenarios import support
from tests.scenarios.disaggregated.support import DisaggregatedSets, role, rolling, set_object, two_roles
from tests.scenarios.explained import says


async def explained(sets: DisaggregatedSets, *texts: str, name: str = "chat", **wanted: Any) -> Explanation:
    """The explanation once nothing moves any more, with these fields, and these texts in its paragraph."""
    await sets.settled()
    return await says(sets.cluster, name, texts, wanted)


async def looked(sets: DisaggregatedSets, name: str = "chat") -> Explanation:
    """The explanation as it is now."""
    cluster = sets.cluster
    return await explaining.on_cluster(cluster.client, cluster.namespace, name, cluster.clock.now())


async def test_all_is_well(sets: DisaggregatedSets) -> None:
    await sets.running()
    found = await explained(sets, state=State.OK, cause="ok")
    assert found.paragraph.endswith("prefill has 1 of 1 groups ready, decode has 2 of 2 groups ready. All is well.")


async def test_a_rollout_that_waits_for_readiness(sets: DisaggregatedSets) -> None:
    """50 §9 m05; and once somebody must see to a pod, the set is blocked."""
    await sets.running(*two_roles(2, 2, spec=rolling(1, 0)))
    await sets.set_image("img:v2")
    await sets.has_children("0/prefill=2", "0/decode=2", "0/prefill=1", "0/decode=1")
    found = await explained(
        sets, "0 of 1 new groups are ready", state=State.PROGRESSING, cause="drain-blocked", slice=0
    )
    assert isinstance(found, SetExplanation)

    async def told() -> str:
        assert names.EVENT_REVISION_DRAIN_BLOCKED in await sets.reasons()
        unready = [p["metadata"]["name"] for p in await sets.pods() if not is_true(p, "Ready")]
        (pod,) = [name for name in unready if "-prefill-" in name] or [""]
        assert pod
        return pod

    pod = await sets.cluster.eventually(told)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    status = {"phase": "Pending", "conditions": [condition]}
    await sets.cluster.patch(POD, pod, {"status": status}, subresource="status")
    found = await explained(sets, state=State.BLOCKED, role="prefill", pod=pod)
    assert isinstance(found, SetExplanation)
    assert found.child == pod.rpartition("-")[0]
    assert f"Pod {pod} is on no node: no room." in found.paragraph


async def test_a_scaler_of_somebody_else(sets: DisaggregatedSets) -> None:
    scaler = {"apiVersion": names.API_VERSION, "kind": names.SCALER_KIND, "metadata": {"name": "chat-decode"}}
    await sets.cluster.create(ROLE_SCALER, {**scaler, "spec": {"replicas": 3}})
    await sets.create(role("prefill"), role("decode", None, mode=names.SCALING_EXTERNAL))
    await explained(sets, state=State.BLOCKED, cause="scaler-conflict")


async def test_a_foreign_child(sets: DisaggregatedSets) -> None:
    await sets.running()
    child = (await sets.child("decode"))["metadata"]["name"]
    await sets.cluster.patch(LEADER_WORKER_SET, child, {"metadata": {"ownerReferences": None}})
    found = await explained(sets, state=State.BLOCKED, cause="foreign-child", role="decode", child=child)
    assert isinstance(found, SetExplanation)


async def test_a_child_that_is_refused(sets: DisaggregatedSets) -> None:
    """10 §6.4, 50 §19: the set is accepted, the LeaderWorkerSet of a role is not."""
    bad = role("decode", 1, size=5, group={"subGroupPolicy": {"subGroupSize": 3}})
    foretold = await planned(sets, role("prefill"), bad)
    await sets.create(role("prefill"), bad)
    await refused(sets, foretold)
    # Once it is mended, all goes on.
    await sets.set_roles(role("prefill"), role("decode", 1, size=5))
    await sets.ready()
    await explained(sets, state=State.OK)


async def test_a_rollout_to_what_is_refused(sets: DisaggregatedSets) -> None:
    """What serves stays, and explain tells what the plan has foretold."""
    good, bad = role("prefill"), role("decode", 1, size=5, group={"subGroupPolicy": {"subGroupSize": 3}})
    await sets.running(good, role("decode", 1, size=5))
    before = await sets.sizes()
    foretold = await planned(sets, good, bad)
    await sets.set_roles(good, bad)
    found = await refused(sets, foretold)
    assert (
        f"rolls from revision {foretold.revision_before} to {found.revision}: prefill 1 old and 0 new"
        in found.paragraph
    )
    now = await sets.sizes()
    assert {key: now[key] for key in before} == before


async def test_a_name_that_no_child_can_be_named_after(sets: DisaggregatedSets) -> None:
    """Nothing is made, the first role says why."""
    foretold = await planned(sets, role("prefill"), role("decode"), name="1chat")
    assert (foretold.outcome, foretold.steps) == (Outcome.STALLED, ())
    await sets.create(role("prefill"), role("decode"), name="1chat")
    told = "a DNS-1035 label must consist of lower case alphanumeric characters"
    await explained(sets, told, name="1chat", state=State.BLOCKED, cause="child-refused")


async def test_a_change_that_is_refused(sets: DisaggregatedSets) -> None:
    """A policy forbids that groups change: the set says so, and goes on when it is allowed again."""
    frozen = True

    def policy(new: Obj, old: Obj, warn: Warn) -> None:
        if frozen and new["spec"]["replicas"] != old["spec"]["replicas"]:
            raise AdmissionDenied("scaling is frozen")

    await sets.running(role("prefill"), role("decode"))
    await sets.cluster.webhook(LEADER_WORKER_SET, validate=validator(update=policy))
    await sets.scale_role("decode", 3)

    async def told() -> None:
        found = await explained(sets)
        assert isinstance(found, SetExplanation)
        assert (found.state, found.cause, found.role) == (State.BLOCKED, "child-refused", "decode")
        assert "denied the request: scaling is frozen" in found.paragraph
        assert names.EVENT_FAILED_UPDATE in await sets.reasons()

    await sets.cluster.eventually(told)
    frozen = False
    await sets.has_children("0/prefill=1", "0/decode=3")


async def planned(sets: DisaggregatedSets, *roles: Obj, name: str = "chat") -> Report:
    """The plan for a set of these roles."""
    cluster = sets.cluster
    manifest = set_object(*roles, name=name, metadata={"namespace": cluster.namespace})
    return await disaggregated_planning.on_cluster(cluster.client, manifest, "", cluster.clock.now())


async def refused(sets: DisaggregatedSets, foretold: Report) -> SetExplanation:
    """What is said of a set whose role decode is refused, as it was foretold."""
    child, why = f"chat-0-{foretold.revision}-decode", "size or size - 1 must be divisible by subGroupSize"
    wanted = {"state": State.BLOCKED, "cause": "child-refused", "slice": 0, "role": "decode", "child": child}
    found = await explained(sets, why, **wanted)
    assert isinstance(found, SetExplanation)
    assert child not in await sets.children()

    async def said() -> None:
        assert names.EVENT_FAILED_CREATE in await sets.reasons()

    await sets.cluster.eventually(said)
    assert foretold.outcome is Outcome.STALLED
    (told,) = [notice.message for notice in foretold.notices if notice.code == "child-refused"]
    assert told.startswith(f"role decode: LeaderWorkerSet {child} is refused by the API server: ")
    assert why in told
    return found


async def test_by_name_and_by_kind(sets: DisaggregatedSets) -> None:
    await sets.running()
    cluster = sets.cluster
    assert isinstance(await explained(sets), SetExplanation)
    with pytest.raises(ConfigurationError, match="did you mean ds/chat"):
        await looked(sets, "chad")
    with pytest.raises(ConfigurationError, match="has no LeaderWorkerSet 'chat'"):
        await explaining.on_cluster(cluster.client, cluster.namespace, "chat", cluster.clock.now(), LEADER_WORKER_SET)
    await cluster.create(LEADER_WORKER_SET, support.set_object("chat", replicas=0))
    with pytest.raises(ConfigurationError, match="say lws/chat or ds/chat"):
        await looked(sets)
    found = await explaining.on_cluster(
        cluster.client, cluster.namespace, "chat", cluster.clock.now(), DISAGGREGATED_SET
    )
    assert isinstance(found, SetExplanation)
