"""Roles that others scale: their scalers, and what autoscalers read of them (specification: 50 §2, §11)."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, condition_of, generation_of, labels_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.support import DisaggregatedSets, role, two_roles, written_about

SELECTOR = (
    "disaggregatedset.x-k8s.io/name=chat,disaggregatedset.x-k8s.io/role=decode,"
    "leaderworkerset.sigs.k8s.io/worker-index=0"
)
UNRESOLVED = "DisaggregatedSetRoleScaler could not be created or adopted for roles: decode"


def scaled(**fields: Any) -> tuple[Obj, Obj]:
    return role("prefill", 1), role("decode", 5, mode="External", **fields)


def static(obj: Obj) -> None:
    obj.pop("scaling", None)


def external(obj: Obj) -> None:
    if obj["name"] == "decode":
        obj["scaling"] = {"mode": "External"}


async def test_a_new_role_begins_with_one_group(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 43: a scaler with seed 1, and GET /scale before anybody has written it."""
    created = await sets.create(*scaled())
    scaler = await sets.scaler("chat-decode")
    assert scaler["spec"] == {"replicas": 1}
    assert labels_of(scaler) == {names.NAME_LABEL: "chat", names.ROLE_LABEL: "decode"}
    (owner,) = scaler["metadata"]["ownerReferences"]
    assert owner["uid"] == created["metadata"]["uid"]
    assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, True)
    scale = await cluster.client.get(ROLE_SCALER, "chat-decode", cluster.namespace, subresource="scale")
    assert scale["spec"] == {"replicas": 1}
    await sets.has_children("0/prefill=1", "0/decode=1")
    await sets.has_event("ScalerCreated", "Created scaler chat-decode for role decode")
    assert sorted(await sets.scalers()) == ["chat-decode"]


async def test_a_role_that_runs_keeps_what_it_has(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 43: given existing children, the seed is their sum; nothing of them changes."""
    await sets.running(*two_roles(1, 3))
    await sets.edit_roles(external)
    assert (await sets.scaler("chat-decode"))["spec"] == {"replicas": 3}
    await sets.scale_role("decode", 1)

    async def unchanged() -> None:
        assert sorted((await sets.sizes()).values()) == [1, 3]

    await cluster.consistently(unchanged)


async def test_the_scale_subresource_scales_the_role(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 44: given /scale 5, the child goes to 5; given 0, to 0."""
    await sets.running(*scaled())
    for count in (5, 0, 2):
        await sets.scale("chat-decode", count)
        await sets.has_children("0/prefill=1", f"0/decode={count}")

        async def desired(count: int = count) -> None:
            assert (await sets.rows())["decode"].get("desiredReplicas", 0) == count

        await cluster.eventually(desired)
        await sets.ready()


async def test_a_static_role_has_no_scaler_and_its_own_count(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 45: given External to Static, the scaler is deleted and spec.replicas applies."""
    await sets.running(*scaled())
    await sets.edit_roles(static)
    await cluster.eventually(lambda: cluster.gone(ROLE_SCALER, "chat-decode"))
    await sets.has_children("0/prefill=1", "0/decode=5")
    await sets.has_event("ScalerDeleted", "Deleted scaler chat-decode (role decode is no longer External)")


async def test_a_deleted_scaler_comes_back_with_what_there_is(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §2: deleting a scaler by hand makes the controller make it anew, without a change of the role."""
    await sets.running(*scaled())
    await sets.scale("chat-decode", 3)
    await sets.has_children("0/prefill=1", "0/decode=3")
    old = (await sets.scaler("chat-decode"))["metadata"]["uid"]
    await cluster.delete(ROLE_SCALER, "chat-decode")

    async def anew() -> None:
        scaler = await cluster.get(ROLE_SCALER, "chat-decode")
        assert scaler["metadata"]["uid"] != old
        assert scaler["spec"] == {"replicas": 3}

    await cluster.eventually(anew)
    await sets.has_children("0/prefill=1", "0/decode=3")


def taken(**metadata: object) -> Obj:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.SCALER_KIND,
        "metadata": {"name": "chat-decode", **metadata},
        "spec": {"replicas": 9},
    }


@pytest.mark.parametrize("labelled", [True, False])
async def test_a_scaler_of_somebody_else(cluster: TestCluster, sets: DisaggregatedSets, labelled: bool):
    """50 §23 line 46: ScalerConflict, no workload changes, Progressing with ReplicaTargetsUnresolved; told once."""
    await sets.running(*two_roles(1, 2))
    labels = {"labels": {names.NAME_LABEL: "chat", names.ROLE_LABEL: "decode"}} if labelled else {}
    await cluster.create(ROLE_SCALER, taken(**labels))

    def change(one: Obj) -> None:
        external(one)
        one["spec"]["replicas"] = 4

    await sets.edit_roles(change)

    async def unresolved() -> None:
        assert (await sets.condition("Progressing"))["message"] == UNRESOLVED
        assert await sets.conditions() == {
            "Progressing": ("True", "ReplicaTargetsUnresolved"),
            "Available": ("False", "ReplicaTargetsUnresolved"),
        }

    await cluster.eventually(unresolved)
    note = "Scaler chat-decode exists but is not controlled by this DisaggregatedSet; not adopting"
    await sets.has_event("ScalerConflict", note, type="Warning")
    before = written_about(cluster)

    async def unchanged() -> None:
        assert sorted((await sets.sizes()).values()) == [1, 2]
        assert written_about(cluster) == before
        assert len([e for e in await sets.events() if e["reason"] == "ScalerConflict"]) == 1

    await cluster.consistently(unchanged)
    assert (await cluster.get(ROLE_SCALER, "chat-decode"))["spec"] == {"replicas": 9}
    await cluster.delete(ROLE_SCALER, "chat-decode")
    await sets.has_children("0/prefill=4", "0/decode=2")
    assert (await sets.scaler("chat-decode"))["spec"] == {"replicas": 2}


async def test_what_autoscalers_read(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 47: given size 4, the selector is of leaders only and status.replicas counts groups."""
    await sets.running(*scaled(size=4))
    await sets.scale("chat-decode", 2)

    async def told() -> None:
        scaler = await cluster.get(ROLE_SCALER, "chat-decode")
        status = scaler.get("status") or {}
        assert status.get("selector") == SELECTOR
        assert status.get("replicas") == 2
        assert status.get("observedGeneration") == generation_of(scaler)
        ready = condition_of(scaler, "Ready")
        assert ready is not None
        assert (ready["status"], ready["reason"]) == ("True", "Bound")
        assert ready["message"] == "Scaler bound to a live DisaggregatedSet role"

    await sets.eventually(told)
    await sets.ready()
    assert len(await cluster.list(POD, SELECTOR)) == 2


async def test_a_set_with_scalers_is_recreated(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §18: scalers of a former set of this name are nobody's of ours; they go with it, and new ones are made."""
    await sets.running(*scaled())
    await sets.scale("chat-decode", 3)
    await sets.has_children("0/prefill=1", "0/decode=3")
    await cluster.delete(DISAGGREGATED_SET, "chat")
    await cluster.eventually(lambda: cluster.gone(DISAGGREGATED_SET, "chat"))
    await sets.running(*scaled())
    await sets.has_children("0/prefill=1", "0/decode=1")
    assert len(await cluster.names(LEADER_WORKER_SET)) == 2
