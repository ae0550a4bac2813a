"""The decision about a set (specification: 20 §2, §5, §8, §9; checklist 14-24, 43-56)."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups import ordinal, status
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import SetSnapshot, SetState
from lwskit.groups.ports import Capability
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import CONTROLLER_REVISION, POD, SERVICE
from lwskit.runtime.objects import Obj, annotations_of, key_of, labels_of
from lwskit.runtime.plan import AnswerOf, Apply, Create, NeedFresh, OnError, Plan, UpdateStatus
from lwskit.runtime.request import Result
from tests.unit.groups.small_cluster import LEADERS, NOW, SmallCluster, make_lws, ready_pod, ready_workers, settled

GOLDEN = Path(__file__).parents[2] / "conformance" / "golden"


def plan_of(snapshot: SetSnapshot) -> Plan:
    plan = ordinal.decide(snapshot, LEADERS)
    assert isinstance(plan, Plan)
    return plan


def leaders_of(lws: dict) -> dict:
    (apply,) = [a for a in plan_of(SetSnapshot(now=NOW, lws=lws)).actions if isinstance(a, Apply)]
    return apply.obj


def status_of(cluster: SmallCluster) -> UpdateStatus | None:
    return next((a for a in plan_of(cluster.snapshot()).actions if isinstance(a, UpdateStatus)), None)


def test_01_a_new_set_gets_revision_leaders_service_and_status_in_this_order() -> None:
    plan = plan_of(SetSnapshot(now=NOW, lws=make_lws()))
    revision, leaders, service, first = plan.actions
    assert isinstance(revision, Create)
    assert revision.kind == CONTROLLER_REVISION
    assert isinstance(leaders, Apply)
    assert (leaders.manager, leaders.force) == ("lws", True)
    assert isinstance(service, Create)
    assert service.kind == SERVICE
    key = labels_of(revision.obj)[names.REVISION_LABEL]
    assert revision.on_success is not None
    assert revision.on_success.note == f"Creating revision with key {key} for a newly created LeaderWorkerSet"
    assert leaders.on_success is not None
    assert (leaders.on_success.reason, leaders.on_success.note) == ("GroupsProgressing", "Created leader statefulset x")
    assert leaders.on_success.related == AnswerOf(revision.name, CONTROLLER_REVISION)
    assert isinstance(first, UpdateStatus)
    conditions = {c["type"]: c["status"] for c in first.obj["status"]["conditions"]}
    assert conditions == {names.CONDITION_PROGRESSING: "True", names.CONDITION_DEGRADED: "False"}
    assert plan.result.after == 0
    assert not plan.result.requeue


def test_leaders_made_anew_leave_the_status_to_what_is_seen_of_them() -> None:
    stored = {"replicas": 2, "readyReplicas": 2}
    lws = {**make_lws(), "status": stored}
    asked = ordinal.decide(SetSnapshot(now=NOW, lws=lws), LEADERS)
    assert isinstance(asked, NeedFresh)
    assert asked.keys == ((LEADERS.kind, key_of(lws)), (LEADER_WORKER_SET, key_of(lws)))
    plan = plan_of(SetSnapshot(now=NOW, lws=lws, live=frozenset(asked.keys)))
    assert not [a for a in plan.actions if isinstance(a, UpdateStatus)]


def test_14_without_leader_template_leaders_are_made_from_the_worker_template() -> None:
    worker = leaders_of(make_lws())["spec"]["template"]["spec"]
    assert worker["containers"][0]["image"] == "a"
    own = {"metadata": {"labels": {"user": "1"}}, "spec": {"containers": [{"name": "l", "image": "leader"}]}}
    template = leaders_of(make_lws(leaderTemplate=own))["spec"]["template"]
    assert template["spec"] == own["spec"]
    assert template["metadata"]["labels"]["user"] == "1"


def test_15_metadata_reaches_the_statefulset_not_the_pods_and_ours_wins() -> None:
    lws = make_lws()
    lws["metadata"] |= {
        "labels": {"team": "a", names.NAME_LABEL: "wrong", names.ROLE_LABEL: "wrong"},
        "annotations": {"who": "me", names.REPLICAS_ANNOTATION: "99"},
    }
    leaders = leaders_of(lws)
    assert labels_of(leaders) == {
        "team": "a",
        names.NAME_LABEL: "x",
        names.REVISION_LABEL: labels_of(leaders)[names.REVISION_LABEL],
        names.ROLE_LABEL: "leader",
    }
    assert annotations_of(leaders) == {"who": "me", names.REPLICAS_ANNOTATION: "2"}
    template = leaders["spec"]["template"]
    assert set(labels_of(template)) == {names.NAME_LABEL, names.WORKER_INDEX_LABEL, names.REVISION_LABEL}
    assert annotations_of(template) == {names.SIZE_ANNOTATION: "3"}


def test_16_annotations_of_the_leader_template() -> None:
    lws = make_lws(subGroupPolicy={"subGroupPolicyType": "LeaderWorker", "subGroupSize": 2})
    lws["spec"]["networkConfig"] = {"subdomainPolicy": names.SUBDOMAIN_UNIQUE_PER_REPLICA}
    lws["metadata"]["annotations"] = {
        names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack",
        names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION: "block",
    }
    assert annotations_of(leaders_of(lws)["spec"]["template"]) == {
        names.SIZE_ANNOTATION: "3",
        names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack",
        names.SUBGROUP_POLICY_TYPE_ANNOTATION: "LeaderWorker",
        names.SUBGROUP_SIZE_ANNOTATION: "2",
        names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION: "block",
        names.SUBDOMAIN_POLICY_ANNOTATION: "UniquePerReplica",
    }
    lws["metadata"]["annotations"][names.EXCLUSIVE_TOPOLOGY_ANNOTATION] = ""
    assert names.EXCLUSIVE_TOPOLOGY_ANNOTATION not in annotations_of(leaders_of(lws)["spec"]["template"])


@pytest.mark.parametrize(
    ("replicas", "unavailable", "surge", "expected"),
    [(1, 2, 1, 3), (1, 0, 2, 1), (0, 1, 0, 1), (0, 0, 0, 1), (2, 1, "50%", 2)],
)
def test_17_what_the_statefulset_may_take_down(replicas: int, unavailable: int, surge: Any, expected: int) -> None:
    lws = make_lws(replicas=replicas)
    config = lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    config |= {"maxUnavailable": unavailable, "maxSurge": surge}
    assert leaders_of(lws)["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == expected


def test_18_claims_keep_only_what_is_carried_over() -> None:
    claim = {
        "metadata": {"name": "data", "labels": {"x": "y"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "selector": {"matchLabels": {"a": "b"}},
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    bare = {"metadata": {"name": "bare"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    retention = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    lws = make_lws(replicas=1, volumeClaimTemplates=[claim, bare], persistentVolumeClaimRetentionPolicy=retention)
    cluster = SmallCluster(lws)
    cluster.settle()
    assert cluster.workload is not None
    for made in (cluster.workload, cluster.workers[0]):
        spec = made["spec"]
        assert spec["persistentVolumeClaimRetentionPolicy"] == retention
        assert [c["metadata"] for c in spec["volumeClaimTemplates"]] == [
            {"name": "data", "namespace": "ns"},
            {"name": "bare", "namespace": "ns"},
        ]
        assert [c["spec"] for c in spec["volumeClaimTemplates"]] == [
            {k: v for k, v in claim["spec"].items() if k != "selector"},
            bare["spec"],
        ]


def test_19_leaders_that_are_being_deleted_are_waited_for() -> None:
    cluster = settled(make_lws())
    assert cluster.workload is not None
    cluster.workload["metadata"]["deletionTimestamp"] = "2026-10-20T10:00:00Z"
    plan = plan_of(cluster.snapshot())
    assert (plan.actions, plan.result.after) == ((), 5.0)


def test_19_deleted_leaders_are_made_again_with_a_new_revision_of_the_same_key() -> None:
    cluster = settled(make_lws())
    key = labels_of(cluster.revisions[0])[names.REVISION_LABEL]
    cluster.workload = None
    notes = cluster.reconcile()
    assert f"Creating revision with key {key} for a newly created LeaderWorkerSet" in notes
    assert "Created leader statefulset x" in notes
    assert [r["revision"] for r in cluster.revisions] == [1, 2]


def test_20_a_failed_apply_is_told_by_an_event() -> None:
    first = plan_of(SetSnapshot(now=NOW, lws=make_lws())).actions[1].on_failure
    later = plan_of(settled(make_lws()).snapshot()).actions[0].on_failure
    assert first is not None
    assert later is not None
    assert (first.type, first.reason, first.action) == ("Warning", "FailedCreate", "Create")
    assert (later.type, later.reason, later.action) == ("Warning", "FailedUpdate", "Update")
    assert first.note == "Failed to create leader statefulset x: {error}"
    assert later.note == "Failed to update leader statefulset x: {error}"


def test_21_roles_are_on_statefulsets_only() -> None:
    cluster = SmallCluster(make_lws(replicas=1))
    cluster.settle()
    assert cluster.workload is not None
    for made, role in ((cluster.workload, "leader"), (cluster.workers[0], "worker")):
        assert labels_of(made)[names.ROLE_LABEL] == role
        assert names.ROLE_LABEL not in labels_of(made["spec"]["template"])


def test_22_the_shared_service_comes_back() -> None:
    cluster = settled(make_lws())
    service = cluster.services.pop("x")
    assert service["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {names.NAME_LABEL: "x"},
    }
    assert service["metadata"]["labels"] == {names.NAME_LABEL: "x"}
    assert service["metadata"]["ownerReferences"][0]["uid"] == "set-uid"
    cluster.reconcile()
    assert list(cluster.services) == ["x"]


def test_23_each_group_has_its_own_service() -> None:
    lws = make_lws()
    lws["spec"]["networkConfig"] = {"subdomainPolicy": names.SUBDOMAIN_UNIQUE_PER_REPLICA}
    cluster = settled(lws)
    assert sorted(cluster.services) == ["x-0", "x-1"]
    service = cluster.services["x-1"]
    assert service["spec"]["selector"] == {names.NAME_LABEL: "x", names.GROUP_INDEX_LABEL: "1"}
    assert service["metadata"]["ownerReferences"][0]["uid"] == cluster.leaders[1]["metadata"]["uid"]


def test_26_surge_groups_have_services_too() -> None:
    lws = make_lws()
    lws["spec"]["networkConfig"] = {"subdomainPolicy": names.SUBDOMAIN_UNIQUE_PER_REPLICA}
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] |= {"maxSurge": 2, "maxUnavailable": 0}
    cluster = settled(lws)
    cluster.change(image="b")
    cluster.settle()
    assert sorted(cluster.services) == ["x-0", "x-1", "x-2", "x-3"]


def test_41_a_new_size_is_rolled_out() -> None:
    cluster = settled(make_lws())
    cluster.change(size=4)
    cluster.settle()
    assert cluster.target == (2, 1)
    sizes = [annotations_of(cluster.leaders[i])[names.SIZE_ANNOTATION] for i in (0, 1)]
    assert sizes == ["3", "4"]
    assert [cluster.workers[i]["spec"]["replicas"] for i in (0, 1)] == [2, 3]


def test_41_groups_get_their_first_workers_through_a_rollout() -> None:
    cluster = settled(make_lws(size=1))
    cluster.change(size=2)
    cluster.settle()
    for i in (1, 0):
        cluster.make_ready(i)
        cluster.settle()
    assert cluster.target == (2, 0)
    assert sorted(cluster.workers) == [0, 1]
    assert (cluster.conditions["Available"], cluster.counts) == ("True", "2/2")


def test_42_another_subdomain_policy_is_rolled_out() -> None:
    cluster = settled(make_lws())
    cluster.change()
    cluster.lws["spec"]["networkConfig"] = {"subdomainPolicy": names.SUBDOMAIN_UNIQUE_PER_REPLICA}
    cluster.settle()
    assert cluster.target == (2, 1)
    assert [cluster.leaders[i]["spec"]["subdomain"] for i in (0, 1)] == ["x", "x-1"]
    assert sorted(cluster.services) == ["x", "x-1"]


def test_48_groups_below_the_partition_do_not_hold_back_available() -> None:
    lws = make_lws()
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] = 1
    cluster = settled(lws)
    cluster.change(image="b")
    cluster.settle()
    cluster.make_ready(1)
    cluster.settle()
    assert (cluster.conditions["Available"], cluster.counts) == ("True", "2/1")
    assert len(cluster.revisions) == 2


def test_43_all_ready_is_available() -> None:
    cluster = settled(make_lws())
    assert cluster.conditions == {"Available": "True", "Progressing": "False", "Degraded": "False"}
    assert cluster.counts == "2/2"


def test_44_an_old_group_in_the_window_is_an_update() -> None:
    cluster = settled(make_lws())
    cluster.change(image="b")
    cluster.reconcile()
    assert cluster.conditions == {
        "Available": "False",
        "Progressing": "True",
        "Degraded": "False",
        "UpdateInProgress": "True",
    }
    available = next(c for c in cluster.lws["status"]["conditions"] if c["type"] == "Available")
    assert (available["reason"], available["message"]) == ("AllGroupsReady", "All replicas are ready")


def test_45_all_updated_and_one_not_ready_is_progress() -> None:
    cluster = settled(make_lws())
    cluster.change(image="b")
    cluster.settle()
    cluster.make_ready(1)
    cluster.settle()
    update = next(c for c in cluster.lws["status"]["conditions"] if c["type"] == "UpdateInProgress")
    assert (update["status"], update["reason"], update["message"]) == (
        "False",
        "GroupsUpdating",
        "Rolling Upgrade is in progress",
    )
    assert cluster.conditions["Progressing"] == "True"


def test_46_leaders_without_workers_are_not_counted() -> None:
    cluster = SmallCluster(make_lws())
    cluster.reconcile()
    cluster.act()
    for i in (0, 1):
        workers = cluster.workers.pop(i)
        cluster.index.apply(LEADERS.kind, workers, None)
    cluster.reconcile()
    assert cluster.counts == "0/0"
    assert "UpdateInProgress" not in cluster.conditions


def test_leaders_are_taken_over_by_a_workload_that_has_not_counted_them() -> None:
    """20 §8.1: an autoscaler never reads that a set has fewer replicas than groups exist."""
    cluster = settled(make_lws(replicas=4))
    assert cluster.workload is not None
    for status_of_workload in ({}, {"observedGeneration": 1}, {"observedGeneration": 1, "replicas": 2}):
        cluster.workload = {**cluster.workload, "status": status_of_workload}
        assert status_of(cluster) is None
    cluster.remove(3)
    found = status_of(cluster)
    assert found is not None
    assert found.obj["status"]["replicas"] == 3


def test_47_surge_groups_count_but_complete_nothing() -> None:
    lws = make_lws()
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] |= {"maxSurge": 1, "maxUnavailable": 0}
    cluster = settled(lws)
    cluster.change(image="b")
    cluster.settle()
    assert (cluster.counts, cluster.lws["status"]["replicas"]) == ("2/1", 3)
    cluster.make_ready(2)
    cluster.reconcile()
    assert cluster.counts == "3/1"
    assert cluster.conditions["Available"] == "False"


def test_49_a_leader_that_is_no_group_stops_the_status_only() -> None:
    cluster = settled(make_lws())
    stray = copy.deepcopy(cluster.leaders[1])
    stray["metadata"]["labels"][names.GROUP_INDEX_LABEL] = "one"
    cluster.index.apply(POD, cluster.leaders[1], stray)
    plan = plan_of(cluster.snapshot())
    assert not [a for a in plan.actions if isinstance(a, UpdateStatus)]
    assert [a for a in plan.actions if isinstance(a, Apply)]
    assert plan.result.requeue
    assert "x-1" in plan.result.reason


def test_50_nothing_changed_nothing_written() -> None:
    cluster = settled(make_lws())
    before = cluster.workload
    plan = plan_of(cluster.snapshot())
    (apply,) = plan.actions
    assert isinstance(apply, Apply)
    assert apply.on_success is None
    assert before is not None
    assert apply.obj["spec"] == before["spec"]


def aged(cluster: SmallCluster, age: float) -> Plan:
    """The plan so many seconds after the status was written."""
    return plan_of(dataclasses.replace(cluster.snapshot(), status_age=age))


def writes_status(plan: Plan) -> bool:
    return any(isinstance(action, UpdateStatus) for action in plan.actions)


@pytest.mark.parametrize(("replicas", "pause"), [(4, 0.04), (50, 0.5), (1000, 5.0)])
def test_a_status_that_only_counts_otherwise_waits_the_longer_the_larger_the_set(replicas: int, pause: float) -> None:
    cluster = SmallCluster(make_lws(replicas=replicas))
    cluster.settle()
    cluster.make_ready(0)
    early = aged(cluster, pause - 0.01)
    assert not writes_status(early)
    assert early.result.after == pytest.approx(0.01)
    for age in (pause, math.inf):
        late = aged(cluster, age)
        assert writes_status(late)
        assert late.result == Result()


def test_a_status_that_says_something_else_is_written_at_once() -> None:
    cluster = SmallCluster(make_lws(replicas=50))
    cluster.settle()
    cluster.make_ready(*range(50))
    assert writes_status(aged(cluster, 0.0))
    cluster.settle()
    assert cluster.conditions["Available"] == "True"
    assert not writes_status(aged(cluster, 0.0))
    assert aged(cluster, 0.0).result == Result()
    cluster.make_ready(3, ready=False)
    assert writes_status(aged(cluster, 0.0))
    cluster.make_ready(3)
    cluster.change(maxUnavailable=2)
    assert writes_status(aged(cluster, 0.0))


def test_51_a_new_generation_is_observed_everywhere() -> None:
    cluster = settled(make_lws())
    cluster.lws = {**cluster.lws, "metadata": {**cluster.lws["metadata"], "generation": 9}}
    cluster.reconcile()
    found = cluster.lws["status"]
    assert {found["observedGeneration"], *(c["observedGeneration"] for c in found["conditions"])} == {9}


def test_52_the_selector_is_set_once_and_never_corrected() -> None:
    cluster = settled(make_lws())
    selector = "leaderworkerset.sigs.k8s.io/name=x,leaderworkerset.sigs.k8s.io/worker-index=0"
    assert cluster.lws["status"]["hpaPodSelector"] == selector
    cluster.lws["status"]["hpaPodSelector"] = "wrong"
    cluster.change(replicas=3)
    cluster.settle()
    assert cluster.lws["status"]["hpaPodSelector"] == "wrong"


def test_53_a_conflict_of_the_status_is_no_error() -> None:
    cluster = settled(make_lws())
    cluster.make_ready(1, ready=False)
    update = status_of(cluster)
    assert update is not None
    assert update.errors == {"Conflict": OnError.REQUEUE}


def test_55_an_exhausted_group_degrades_the_set() -> None:
    cluster = settled(make_lws())
    leader = copy.deepcopy(cluster.leaders[1])
    leader["metadata"]["annotations"][names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION] = "true"
    cluster.index.apply(POD, cluster.leaders[1], ready_pod(leader, ready=False))
    cluster.reconcile()
    assert cluster.conditions == {
        "Available": "False",
        "Progressing": "False",
        "UpdateInProgress": "False",
        "Degraded": "True",
    }
    cluster.make_ready(0, ready=False)
    notes = cluster.reconcile()
    assert cluster.conditions["Progressing"] == "True"
    assert notes == ["Automatic recovery is stopped for one or more replicas, with 0 groups ready of total 2 groups"]


def test_55_a_healthy_set_says_so() -> None:
    cluster = settled(make_lws())
    degraded = next(c for c in cluster.lws["status"]["conditions"] if c["type"] == "Degraded")
    assert (degraded["status"], degraded["reason"], degraded["message"]) == (
        "False",
        "AsExpected",
        "No replica has exhausted its restart budget",
    )


def test_56_the_event_about_a_change_of_conditions() -> None:
    cluster = settled(make_lws())
    cluster.make_ready(1, ready=False)
    assert cluster.reconcile() == ["Replicas are progressing, with 1 groups ready of total 2 groups"]
    cluster.make_ready(1)
    assert cluster.reconcile() == ["All replicas are ready, with 2 groups ready of total 2 groups"]


def test_57_without_workers_leaders_alone_decide() -> None:
    cluster = settled(make_lws(size=1))
    assert cluster.workers == {}
    assert (cluster.conditions["Available"], cluster.counts) == ("True", "2/2")


def test_no_replicas_is_available() -> None:
    cluster = SmallCluster(make_lws(replicas=0))
    cluster.settle()
    assert cluster.target == (0, 0)
    assert cluster.conditions["Available"] == "True"
    assert "replicas" not in cluster.lws["status"]


def test_transition_times_change_with_the_status_only() -> None:
    stored = [{"type": "Progressing", "status": "True", "reason": "old", "message": "m", "lastTransitionTime": "then"}]
    wanted = [status.Requested("Progressing", True, "new", "m")]
    (same,) = status.merge(stored, wanted, 2, "now")
    assert (same["lastTransitionTime"], same["reason"]) == ("then", "new")
    merged = status.merge(stored, [status.Requested("Available", True, "r", "m")], 2, "now")
    assert [(c["type"], c["status"], c["lastTransitionTime"]) for c in merged] == [
        ("Progressing", "False", "now"),
        ("Available", "True", "now"),
    ]
    assert merged[0]["reason"] == "old"


def test_sets_that_are_gone_going_or_of_another_kind_are_left_alone() -> None:
    going = make_lws()
    going["metadata"]["deletionTimestamp"] = "2026-10-20T10:00:00Z"
    for lws in (None, going):
        plan = plan_of(SetSnapshot(now=NOW, lws=lws))
        assert plan.actions == ()
        assert plan.note


def test_a_set_without_ordinals_is_left_to_the_other_mode() -> None:
    hashed = make_lws()
    hashed["spec"]["groupIdentity"] = names.IDENTITY_HASH
    assert plan_of(SetSnapshot(now=NOW, lws=hashed)).actions == ()


def test_a_template_that_is_refused_again_and_again_makes_one_revision() -> None:
    """The revision of a change stays when the leader workload could not be written, and is taken up at the next try."""
    cluster = settled(make_lws())
    cluster.change(image="refused")
    first = plan_of(cluster.snapshot())
    created = [a for a in first.actions if isinstance(a, Create) and a.kind == CONTROLLER_REVISION]
    assert len(created) == 1
    cluster.revisions.append(created[0].obj)
    again = plan_of(cluster.snapshot())
    assert not [a for a in again.actions if isinstance(a, Create) and a.kind == CONTROLLER_REVISION]
    assert [a.obj for a in again.actions if isinstance(a, Apply)] == [
        a.obj for a in first.actions if isinstance(a, Apply)
    ]


def test_while_a_watch_is_broken_revisions_and_groups_stay() -> None:
    cluster = settled(make_lws())
    cluster.change(image="b")
    cluster.healthy = False
    cluster.settle()
    assert cluster.target == (2, 2)
    cluster.healthy = True
    cluster.settle()
    assert cluster.target == (2, 1)


def test_a_backend_that_cannot_lead_is_refused() -> None:
    @dataclasses.dataclass
    class Poor:
        kind = LEADERS.kind
        capabilities = frozenset({Capability.ORDINALS})

    ordinal.check(LEADERS)
    with pytest.raises(ConfigurationError, match="lacks partition"):
        ordinal.check(Poor())  # type: ignore[arg-type]


def comparable(obj: dict) -> Any:
    """What is compared with a recording: without identities, and without what v1.0.0 adds."""
    obj = copy.deepcopy({"metadata": obj["metadata"], "spec": obj["spec"]})
    for field in ("namespace", "uid", "resourceVersion"):
        obj["metadata"].pop(field, None)
    for owner in obj["metadata"]["ownerReferences"]:
        owner.pop("uid", None)
    obj["metadata"]["labels"].pop(names.ROLE_LABEL, None)
    template = obj["spec"].get("template", {}).get("metadata", {})
    template.get("annotations", {}).pop(names.LEADER_ADDRESS_ANNOTATION, None)
    return json.loads(re.sub(r"\b[0-9a-f]{40}\b", "KEY", json.dumps(obj)).replace('"ns"', '"NS"'))


def contained(ours: Any, recorded: Any, path: str) -> None:
    """What we write is recorded, field by field; labels and annotations are all of them."""
    if isinstance(ours, dict):
        whole = path.rpartition(".")[2] in ("labels", "annotations", "matchLabels", "selector")
        assert not whole or ours == recorded, path
        for key, value in ours.items():
            assert key in recorded, f"{path}.{key} is not recorded"
            contained(value, recorded[key], f"{path}.{key}")
    elif isinstance(ours, list):
        assert len(ours) == len(recorded), path
        for i, value in enumerate(ours):
            contained(value, recorded[i], f"{path}[{i}]")
    else:
        assert ours == recorded, path


@pytest.mark.parametrize(
    "case", ["seed-sample", "metadata-propagation", "service-deleted", "leader-deleted", "pvc", "restart-container"]
)
def test_workloads_and_services_are_those_recorded(case: str) -> None:
    snapshots = json.loads((GOLDEN / f"{case}.json").read_text())["snapshots"]
    recorded = snapshots["ready"] if case == "metadata-propagation" else snapshots[list(snapshots)[-1]]
    lws = recorded["lws"][0]
    lws["metadata"] |= {"namespace": "ns", "uid": "set-uid", "generation": 1}
    if case == "metadata-propagation":
        lws["metadata"] |= {"annotations": {"who": "me"}, "labels": {"team": "x"}}
    cluster = SmallCluster({**lws, "status": {}})
    cluster.settle()
    assert cluster.workload is not None
    made = {m["metadata"]["name"]: m for m in (cluster.workload, *cluster.workers.values())}
    assert set(made) == {s["metadata"]["name"] for s in recorded["sts"]}
    for statefulset in recorded["sts"]:
        name = statefulset["metadata"]["name"]
        contained(comparable(made[name]), comparable(statefulset), name)
    (service,) = recorded["svc"]
    contained(comparable(cluster.services[service["metadata"]["name"]]), comparable(service), "svc")


def test_ready_workers_helper_is_read_as_ready() -> None:
    cluster = SmallCluster(make_lws(replicas=1))
    cluster.settle()
    assert cluster.counts == "0/1"
    cluster.make_ready(0)
    cluster.index.apply(LEADERS.kind, cluster.workers[0], ready_workers(cluster.workers[0], ready=False))
    cluster.reconcile()
    assert cluster.counts == "0/1", "a ready leader without ready workers is no ready group"


def test_the_leaders_of_an_earlier_set_of_this_name_have_to_go_first() -> None:
    cluster = settled(make_lws())
    cluster.lws = {**cluster.lws, "metadata": {**cluster.lws["metadata"], "uid": "another"}}
    plan = plan_of(cluster.snapshot())
    assert (plan.actions, plan.result.after) == ((), 5.0)


def test_leaders_whose_groups_are_not_known_are_put_right_and_nothing_is_said_of_them() -> None:
    cluster = settled(make_lws())
    cluster.change(image="b")
    cluster.settle()
    assert cluster.target == (2, 1)
    cluster.make_ready(1)
    snapshot = dataclasses.replace(cluster.snapshot(), state=SetState(), known=False)
    (apply,) = plan_of(snapshot).actions
    assert isinstance(apply, Apply)
    rolling = apply.obj["spec"]["updateStrategy"]["rollingUpdate"]
    assert (apply.obj["spec"]["replicas"], rolling["partition"]) == (2, 1)


def test_a_partition_that_goes_up_again_is_no_update_of_groups() -> None:
    cluster = settled(make_lws())
    cluster.change(partition=2)
    cluster.change(image="b")
    assert not [n for n in cluster.settle() if n.startswith("Updating")]


def test_restart_counters_stay_with_the_set() -> None:
    notes = {
        names.GROUP_RESTART_COUNTS_ANNOTATION: '{"a/0":1}',
        names.GROUP_RESTART_LEADERS_ANNOTATION: "{}",
        "my": "1",
    }
    lws = make_lws()
    lws["metadata"]["annotations"] = notes
    assert annotations_of(leaders_of(lws)) == {"my": "1", names.REPLICAS_ANNOTATION: "2"}


@pytest.mark.parametrize("record", [None, "", "many"])
def test_a_lost_record_of_replicas_is_put_back_and_takes_nothing_down(record: str | None) -> None:
    """20 §6.4 has an error without it, and nobody else would write it."""
    cluster = settled(make_lws(replicas=4))
    cluster.change(image="b")
    cluster.settle()
    assert cluster.target == (4, 3)
    cluster.make_ready(3)
    assert cluster.workload is not None
    workload = copy.deepcopy(cluster.workload)
    workload["metadata"]["annotations"].pop(names.REPLICAS_ANNOTATION)
    if record is not None:
        workload["metadata"]["annotations"][names.REPLICAS_ANNOTATION] = record
    cluster.workload = workload
    cluster.reconcile()
    assert annotations_of(cluster.workload)[names.REPLICAS_ANNOTATION] == "4"
    assert cluster.target == (4, 3)
    cluster.settle()
    assert cluster.target == (4, 2)


def left_behind(cluster: SmallCluster, **owner: str) -> list[Obj]:
    """The leaders of a cluster whose leader workload has just gone; without an owner unless one is told."""
    leaders = copy.deepcopy([pod for _, pod in sorted(cluster.leaders.items())])
    for leader in leaders:
        kept = [{**r, **owner} for r in leader["metadata"]["ownerReferences"]] if owner else []
        leader["metadata"]["ownerReferences"] = kept
    return leaders


def in_a_rollout() -> SmallCluster:
    """Groups 0 and 1 of three are of the template before, group 3 is surge."""
    lws = make_lws(replicas=3)
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] |= {"maxSurge": 1, "maxUnavailable": 0}
    cluster = settled(lws)
    cluster.change(image="b")
    cluster.settle()
    return cluster


def taken_over(cluster: SmallCluster, left: list[Obj], *read: Obj) -> tuple[int, int] | NeedFresh:
    """Partition and replicas of the leader workload that is made next; what is read live before."""
    live = {(LEADERS.kind, key_of(cluster.lws)), *((POD, key_of(pod)) for pod in read)}
    snapshot = dataclasses.replace(cluster.snapshot(), workload=None, left=left, live=frozenset(live))
    decision = ordinal.decide(snapshot, LEADERS)
    if isinstance(decision, NeedFresh):
        return decision
    (apply,) = [a for a in decision.actions if isinstance(a, Apply)]
    now = LEADERS.observe(apply.obj)
    return now.partition, now.replicas


def test_leaders_that_are_left_behind_are_taken_over_as_they_are() -> None:
    cluster = in_a_rollout()
    assert taken_over(cluster, left_behind(cluster)) == (3, 4)
    # Surge that is there stays, within what is allowed; none is made.
    assert taken_over(cluster, left_behind(cluster)[:3]) == (3, 3)
    cluster.lws["spec"]["replicas"] = 2
    assert taken_over(cluster, left_behind(cluster)) == (2, 3)


def test_of_the_newest_revision_they_need_no_rollout() -> None:
    cluster = settled(make_lws(replicas=3))
    assert taken_over(cluster, left_behind(cluster)) == (0, 3)


def test_surge_stays_while_others_are_not_ready() -> None:
    """The update has reached all groups, and the last of them is not ready yet: surge may be one of the ready ones."""
    cluster = in_a_rollout()
    for group in (3, 2, 1):
        cluster.make_ready(group)
        cluster.settle()
    assert cluster.target == (4, 0)
    assert taken_over(cluster, left_behind(cluster)) == (0, 4)


def test_leaders_that_go_with_their_workload_are_not_taken_over() -> None:
    """Whether they do is read live: their owner is taken away before it goes, and the news come in no order."""
    cluster = in_a_rollout()
    left = left_behind(cluster, uid="the workload before")
    asked = taken_over(cluster, left)
    assert isinstance(asked, NeedFresh)
    assert asked.keys == ((POD, key_of(left[0])),)
    assert taken_over(cluster, left, left[0]) == (0, 3)
    assert taken_over(cluster, [*left_behind(cluster)[:1], *left[1:]], left[0]) == (3, 4)


def test_pods_of_another_name_are_no_leaders_to_take_over() -> None:
    cluster = in_a_rollout()
    strangers = left_behind(cluster)
    for pod in strangers:
        pod["metadata"]["name"] = f"other-{pod['metadata']['name']}"
    assert taken_over(cluster, strangers) == (0, 3)
