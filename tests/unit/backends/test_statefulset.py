"""Leaders and workers as StatefulSets: what is written, and what is read of live ones (20 §5, §6.2, §10.4)."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from lwskit.api import names
from lwskit.backends.statefulset import StatefulSetLeaders, StatefulSetWorkers
from lwskit.groups.model import GroupId, GroupPlan, LeaderPlan, LeaderState, WorkerState
from lwskit.groups.ports import Capability, LeaderBackend, WorkerBackend
from lwskit.runtime.kinds import STATEFUL_SET
from lwskit.runtime.objects import Obj

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEADERS: LeaderBackend = StatefulSetLeaders()
WORKERS: WorkerBackend = StatefulSetWorkers()
OWNER = {"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u", "controller": True, "blockOwnerDeletion": True}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c"}]}}
CLAIM = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}


def leader_plan(**changes: Any) -> LeaderPlan:
    return LeaderPlan(
        **{
            "name": "x",
            "namespace": "ns",
            "labels": {"l": "1"},
            "annotations": {"a": "1"},
            "owner": OWNER,
            "replicas": 3,
            "partition": 2,
            "strategy": "RollingUpdate",
            "max_unavailable": 2,
            "max_surge": 1,
            "service_name": "x",
            "selector": {"s": "1"},
            "template": TEMPLATE,
            **changes,
        }
    )


def group_plan(**changes: Any) -> GroupPlan:
    return GroupPlan(
        **{
            "name": "x-0",
            "namespace": "ns",
            "labels": {"l": "1"},
            "annotations": {},
            "owner": OWNER,
            "replicas": 2,
            "first_ordinal": 1,
            "service_name": "x",
            "selector": {"s": "1"},
            "template": TEMPLATE,
            **changes,
        }
    )


def test_the_leaders_are_one_statefulset() -> None:
    assert LEADERS.render(leader_plan()) == {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": "x",
            "namespace": "ns",
            "labels": {"l": "1"},
            "annotations": {"a": "1"},
            "ownerReferences": [OWNER],
        },
        "spec": {
            "replicas": 3,
            "serviceName": "x",
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "partition": 2}},
            "selector": {"matchLabels": {"s": "1"}},
            "template": TEMPLATE,
        },
    }


def test_the_workers_of_a_group_are_one_that_counts_from_one() -> None:
    assert WORKERS.render(group_plan()) == {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "x-0", "namespace": "ns", "labels": {"l": "1"}, "ownerReferences": [OWNER]},
        "spec": {
            "replicas": 2,
            "serviceName": "x",
            "podManagementPolicy": "Parallel",
            "ordinals": {"start": 1},
            "selector": {"matchLabels": {"s": "1"}},
            "template": TEMPLATE,
        },
    }


def test_claims_and_their_retention_are_written_where_there_are_any() -> None:
    retention = {"whenDeleted": "Delete"}
    for made in (
        LEADERS.render(leader_plan(claims=(CLAIM,), retention=retention)),
        WORKERS.render(group_plan(claims=(CLAIM,), retention=retention)),
    ):
        assert made["spec"]["volumeClaimTemplates"] == [CLAIM]
        assert made["spec"]["persistentVolumeClaimRetentionPolicy"] == retention


def test_leaders_are_applied_and_workers_only_created() -> None:
    assert (LEADERS.write, WORKERS.write) == ("apply", "create")
    assert LEADERS.kind == WORKERS.kind == STATEFUL_SET
    assert LEADERS.watches == ()
    assert LEADERS.capabilities == {Capability.ORDINALS, Capability.PARTITION, Capability.CLAIM_TEMPLATES}


def live(plan: LeaderPlan | GroupPlan, **status: Any) -> Obj:
    """A StatefulSet as the server has it."""
    obj = LEADERS.render(plan) if isinstance(plan, LeaderPlan) else WORKERS.render(plan)
    obj["metadata"] |= {"uid": "sts-uid", "generation": 4}
    return {**obj, "status": status}


def test_what_leaders_say_of_themselves() -> None:
    plan = leader_plan(labels={names.REVISION_LABEL: "rev"}, annotations={names.REPLICAS_ANNOTATION: "2"})
    obj = live(plan, replicas=1, observedGeneration=3)
    assert LEADERS.observe(obj) == LeaderState(
        uid="sts-uid",
        replicas=3,
        status_replicas=1,
        partition=2,
        revision="rev",
        recorded="2",
        generation=4,
        observed_generation=3,
        deleting=False,
    )
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert LEADERS.observe(obj).deleting
    for current, update, settled in (("a", "b", False), ("b", "b", True), ("", "b", True)):
        assert LEADERS.observe(live(plan, currentRevision=current, updateRevision=update)).settled is settled


def test_what_is_not_there_counts_as_its_default() -> None:
    bare: Obj = {"metadata": {"name": "x", "uid": "u"}, "spec": {"updateStrategy": {"type": "OnDelete"}}}
    assert LEADERS.observe(bare) == LeaderState(
        uid="u",
        replicas=1,
        status_replicas=0,
        partition=0,
        revision="",
        recorded=None,
        generation=0,
        observed_generation=0,
        deleting=False,
    )
    assert WORKERS.observe({"metadata": {"name": "w", "uid": "u"}, "spec": {}}) == WorkerState(
        uid="u", name="w", ready=False, revision="", deleting=False
    )


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({"availableReplicas": 2, "currentRevision": "r", "updateRevision": "r"}, True),
        ({"availableReplicas": 1, "currentRevision": "r", "updateRevision": "r"}, False),
        ({"availableReplicas": 3, "currentRevision": "r", "updateRevision": "r"}, False),
        ({"availableReplicas": 2, "currentRevision": "r", "updateRevision": "s"}, False),
        ({}, False),
    ],
)
def test_workers_are_ready_when_all_are_available_and_of_one_revision(status: Obj, ready: bool) -> None:
    state = WORKERS.observe(live(group_plan(labels={names.REVISION_LABEL: "rev"}), **status))
    assert state == WorkerState(uid="sts-uid", name="x-0", ready=ready, revision="rev", deleting=False)


@pytest.mark.parametrize(("size", "asked", "ready"), [("3", 2, True), ("3", 3, True), ("3", 1, False), ("3", 0, False)])
def test_workers_that_were_scaled_down_are_not_ready(size: str, asked: int, ready: bool) -> None:
    done = {"availableReplicas": asked, "currentRevision": "r", "updateRevision": "r"}
    obj = live(group_plan(template={"metadata": {"annotations": {names.SIZE_ANNOTATION: size}}}), **done)
    obj["spec"]["replicas"] = asked
    assert WORKERS.observe(obj).ready is ready
    for unknown in ({}, {"metadata": {"annotations": {names.SIZE_ANNOTATION: "many"}}}):
        obj["spec"]["template"] = unknown
        assert WORKERS.observe(obj).ready is True


def leader_pod(ordinal: int = 3, **owner: Any) -> Obj:
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "uid": "sts-uid", "controller": True}
    labels = {names.WORKER_INDEX_LABEL: "0", names.GROUP_INDEX_LABEL: str(ordinal)}
    return {
        "metadata": {
            "name": f"x-{ordinal}",
            "uid": f"uid-{ordinal}",
            "labels": labels,
            "ownerReferences": [{**reference, **owner}],
        }
    }


def test_a_leader_pod_stands_for_its_group() -> None:
    assert LEADERS.group_of(leader_pod(3)) == GroupId("sts-uid", "3")


def test_other_pods_stand_for_none() -> None:
    worker = leader_pod()
    worker["metadata"]["labels"][names.WORKER_INDEX_LABEL] = "1"
    orphan = copy.deepcopy(leader_pod())
    orphan["metadata"]["ownerReferences"] = []
    for pod in (worker, orphan, leader_pod(kind="ReplicaSet"), leader_pod(controller=False)):
        assert LEADERS.group_of(pod) is None


def test_ordinals_count_from_where_the_statefulset_starts() -> None:
    obj = LEADERS.render(leader_plan())
    assert list(LEADERS.ordinals(obj)) == [0, 1, 2]
    obj["spec"]["ordinals"] = {"start": 5}
    assert list(LEADERS.ordinals(obj)) == [5, 6, 7]
    assert list(LEADERS.ordinals({"spec": {}})) == [0]


def test_the_highest_ordinal_goes_first() -> None:
    odd = {"metadata": {"name": "odd", "uid": "uid-odd"}}
    ranked = LEADERS.rank([leader_pod(2), leader_pod(10), odd, leader_pod(0)], NOW)
    assert [v.name for v in ranked] == ["x-10", "x-2", "x-0", "odd"]
    assert ranked[0].uid == "uid-10"
    assert "10" in ranked[0].why


def test_what_the_manager_must_be_allowed_to_do() -> None:
    allowed = {(rule.group, resource): set(rule.verbs) for rule in LEADERS.rbac for resource in rule.resources}
    assert {"get", "list", "watch", "create", "patch", "delete"} <= allowed["apps", "statefulsets"]
    assert allowed["apps", "statefulsets/finalizers"] == {"update"}
    assert WORKERS.rbac == LEADERS.rbac
