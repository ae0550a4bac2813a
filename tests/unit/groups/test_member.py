"""The decision about a pod (specification: 20 §10, §11; checklist 24-25, 58-78)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups import member
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError, MemberSnapshot
from lwskit.runtime.kinds import NODE, POD, SERVICE, STATEFUL_SET
from lwskit.runtime.objects import Key, annotations_of, controller_reference, key_of, labels_of, ref_of, uid_of
from lwskit.runtime.plan import Create, Decision, Delete, Emit, NeedFresh, OnError, Patch, Plan
from lwskit.runtime.request import Result
from tests.unit.groups.small_cluster import LEADERS, NOW, WORKERS, SmallCluster, make_lws, settled

LIVE = frozenset({(POD, Key("ns", "x-0")), (LEADER_WORKER_SET, Key("ns", "x"))})
GOING = {"deletionTimestamp": "2026-10-20T10:00:00Z"}


def with_meta(obj: dict, **fields: Any) -> dict:
    return {**obj, "metadata": {**obj["metadata"], **fields}}


def annotated(obj: dict, **notes: str) -> dict:
    return with_meta(obj, annotations={**annotations_of(obj), **{names.PREFIX + k: v for k, v in notes.items()}})


def labelled(obj: dict, **labels: str) -> dict:
    return with_meta(
        obj, labels={**labels_of(obj), **{names.PREFIX + k.replace("_", "-"): v for k, v in labels.items()}}
    )


def counting(pod: dict, restarts: int, *, phase: str = "Running", field: str = "containerStatuses") -> dict:
    return {**pod, "status": {**pod["status"], "phase": phase, field: [{"name": "c", "restartCount": restarts}]}}


def worker_of(cluster: SmallCluster, i: int = 0, index: int = 1) -> dict:
    """A running worker pod as admission and the StatefulSet controller make it."""
    workers = cluster.workers[i]
    template = workers["spec"]["template"]
    return {
        "metadata": {
            **template["metadata"],
            "labels": {**template["metadata"]["labels"], names.WORKER_INDEX_LABEL: str(index)},
            "name": f"{workers['metadata']['name']}-{index}",
            "namespace": "ns",
            "uid": f"worker-{i}-{index}",
            "ownerReferences": [controller_reference(workers, STATEFUL_SET)],
        },
        "spec": template["spec"],
        "status": {"phase": "Running"},
    }


def group_of(cluster: SmallCluster, i: int = 0) -> list[dict]:
    return [cluster.leaders[i], *(worker_of(cluster, i, n) for n in (1, 2))]


def about_worker(cluster: SmallCluster, **fields: Any) -> MemberSnapshot:
    """What the reconciler sees of a worker of group 0, everything read live."""
    seen: dict[str, Any] = {
        "pod": worker_of(cluster),
        "lws": cluster.lws,
        "leader": cluster.leaders[0],
        "owner": cluster.workers[0],
        "revisions": cluster.revisions,
        "group_pods": group_of(cluster),
        "live": LIVE,
    }
    return MemberSnapshot(now=NOW, **(seen | fields))


def decide(snapshot: MemberSnapshot) -> Decision:
    return member.decide(snapshot, LEADERS, WORKERS)


def plan_of(snapshot: MemberSnapshot) -> Plan:
    plan = decide(snapshot)
    assert isinstance(plan, Plan)
    return plan


def deletion(decision: Decision) -> Delete:
    assert isinstance(decision, Plan)
    (action,) = decision.actions
    assert isinstance(action, Delete)
    return action


@pytest.fixture
def cluster() -> SmallCluster:
    return settled(make_lws())


def policy(cluster: SmallCluster, value: str) -> dict:
    lws = copy.deepcopy(cluster.lws)
    lws["spec"]["leaderWorkerTemplate"]["restartPolicy"] = value
    return lws


# Making what a group needs ------------------------------------------------------------------------------------------


def test_58_workers_appear_at_once_or_when_the_leader_is_ready() -> None:
    cluster = SmallCluster(make_lws(replicas=1))
    cluster.settle()
    without = cluster.member_snapshot(0, workers=None)
    (create,) = plan_of(without).actions
    assert isinstance(create, Create)
    assert create.obj["spec"]["replicas"] == 2
    assert create.on_success is not None
    assert create.on_success.note == "Created worker statefulset for leader pod x-0"
    lws = copy.deepcopy(cluster.lws)
    lws["spec"]["startupPolicy"] = names.STARTUP_LEADER_READY
    assert plan_of(cluster.member_snapshot(0, workers=None, lws=lws)).actions == ()
    cluster.make_ready(0)
    assert len(plan_of(cluster.member_snapshot(0, workers=None, lws=lws)).actions) == 1


def test_57_a_leader_alone_has_no_workers() -> None:
    cluster = settled(make_lws(replicas=1, size=1))
    assert plan_of(cluster.member_snapshot(0)).actions == ()


def test_59_an_unknown_revision_is_waited_for(cluster: SmallCluster) -> None:
    plan = plan_of(cluster.member_snapshot(0, workers=None, revisions=[]))
    assert (plan.actions, plan.result.after) == ((), 1.0)


def test_59_an_older_revision_that_is_gone_is_told_of(cluster: SmallCluster) -> None:
    """It was deleted by hand, and nothing makes it again. Groups that have their workers need none."""
    newer = copy.deepcopy(cluster.workload)
    assert newer is not None
    newer["spec"]["template"]["metadata"]["labels"][names.REVISION_LABEL] = "newer"
    where = (STATEFUL_SET, Key("ns", "x"))
    asked = decide(cluster.member_snapshot(0, workers=None, revisions=[], workload=newer))
    assert isinstance(asked, NeedFresh)
    assert asked.keys == (where,)
    live = frozenset({where})
    plan = plan_of(cluster.member_snapshot(0, workers=None, revisions=[], workload=newer, live=live))
    (emit,) = plan.actions
    assert isinstance(emit, Emit)
    assert (emit.event.type, emit.event.reason) == ("Warning", "FailedCreate")
    assert "has been deleted, so its workers cannot be made before the group is updated" in emit.event.note
    assert plan.result.requeue
    furnished = plan_of(cluster.member_snapshot(0, revisions=[], workload=newer))
    assert (furnished.actions, furnished.result) == ((), Result())


def test_60_workers_follow_their_leader_into_its_domain(cluster: SmallCluster) -> None:
    lws = annotated(cluster.lws, **{"exclusive-topology": "rack"})
    unplaced = cluster.member_snapshot(0, workers=None, lws=lws)
    assert plan_of(unplaced).actions == ()
    leader = {**cluster.leaders[0], "spec": {**cluster.leaders[0]["spec"], "nodeName": "n1"}}
    seen: dict[str, Any] = {"pod": leader, "leader": leader, "workers": None, "lws": lws}
    asked = decide(cluster.member_snapshot(0, **seen))
    assert isinstance(asked, NeedFresh)
    assert asked.keys == ((NODE, Key("", "n1")),)
    live = frozenset(asked.keys)
    with pytest.raises(DecisionError, match='getting node "n1"'):
        decide(cluster.member_snapshot(0, **seen, live=live))
    with pytest.raises(DecisionError, match="node does not have topology label: rack"):
        decide(cluster.member_snapshot(0, **seen, live=live, node={"metadata": {"name": "n1"}}))
    node = {"metadata": {"name": "n1", "labels": {"rack": "r7"}}}
    (create,) = plan_of(cluster.member_snapshot(0, **seen, live=live, node=node)).actions
    assert isinstance(create, Create)
    assert create.obj["spec"]["template"]["spec"]["nodeSelector"] == {"rack": "r7"}


def test_61_workers_that_exist_are_left_alone(cluster: SmallCluster) -> None:
    assert plan_of(cluster.member_snapshot(0)).actions == ()
    own = controller_reference(cluster.leaders[0], POD)
    former = with_meta(cluster.workers[0], ownerReferences=[{**own, "uid": "the leader before"}])
    plan = plan_of(cluster.member_snapshot(0, workers=former))
    assert (plan.actions, plan.result) == ((), Result())
    assert "leader before" in plan.note
    assert len(plan_of(cluster.member_snapshot(0, workers=None)).actions) == 1


def test_workers_of_somebody_else_are_told_to_a_person(cluster: SmallCluster) -> None:
    """Nobody tells when they go: it is looked for again."""
    other = controller_reference({**cluster.lws, "apiVersion": "example.com/v1", "kind": "Other"}, LEADER_WORKER_SET)
    for owner in ({**other, "kind": "Other"}, controller_reference(cluster.leaders[1], POD)):
        foreign = with_meta(cluster.workers[0], ownerReferences=[owner])
        plan = plan_of(cluster.member_snapshot(0, workers=foreign))
        (emit,) = plan.actions
        assert isinstance(emit, Emit)
        assert (emit.event.type, emit.event.reason) == ("Warning", "FailedCreate")
        belong = f"workers x-0 belong to {owner['kind']} {owner['name']}, so leader pod x-0 gets none of its own"
        assert emit.event.note == f"{belong}; delete them"
        assert plan.result.requeue


def test_workers_that_are_in_no_cache_get_their_label_back_or_are_looked_for_again(cluster: SmallCluster) -> None:
    own = copy.deepcopy(cluster.workers[0])
    del own["metadata"]["labels"][names.NAME_LABEL]
    plan = plan_of(cluster.member_snapshot(0, workers=own))
    (patch,) = plan.actions
    assert isinstance(patch, Patch)
    assert (patch.key, patch.uid) == (Key("ns", "x-0"), own["metadata"]["uid"])
    assert patch.body == {"metadata": {"labels": {names.NAME_LABEL: "x"}}}
    assert plan.result == Result()
    for references in ([], [{**own["metadata"]["ownerReferences"][0], "uid": "the leader before"}]):
        plan = plan_of(cluster.member_snapshot(0, workers=with_meta(own, ownerReferences=references)))
        assert not [a for a in plan.actions if isinstance(a, Patch)]
        assert plan.result.requeue


def test_workers_without_an_owner_are_told_to_a_person():
    cluster = settled(make_lws())
    orphan = copy.deepcopy(cluster.member_snapshot(0).workers)
    assert orphan is not None
    del orphan["metadata"]["ownerReferences"]
    (emit,) = plan_of(cluster.member_snapshot(0, workers=orphan)).actions
    assert isinstance(emit, Emit)
    assert emit.event.type == "Warning"
    assert emit.event.note.endswith("have no owner, so leader pod x-0 gets none of its own; delete them")


def test_61_workers_that_have_just_gone_are_made_again_only_for_a_leader_that_is_there(cluster: SmallCluster) -> None:
    leader = cluster.leaders[0]
    key = (POD, Key("ns", "x-0"))
    own = cluster.member_snapshot(0, workers=None, bereft=leader["metadata"]["uid"])
    asked = member.decide(own, LEADERS, WORKERS)
    assert isinstance(asked, NeedFresh)
    assert asked.keys == (key,)
    there = cluster.member_snapshot(0, workers=None, bereft=leader["metadata"]["uid"], live=frozenset({key}))
    others = cluster.member_snapshot(0, workers=None, bereft="the leader before")
    for snapshot in (there, others):
        plan = member.decide(snapshot, LEADERS, WORKERS)
        assert isinstance(plan, Plan)
        assert [a.kind for a in plan.actions if isinstance(a, Create)] == [STATEFUL_SET]


def test_62_workers_that_exist_already_are_no_error(cluster: SmallCluster) -> None:
    (create,) = plan_of(cluster.member_snapshot(0, workers=None)).actions
    assert create.errors == {"AlreadyExists": OnError.LOOK}
    assert create.on_failure is not None
    assert create.on_failure.note == "Failed to create worker statefulset for leader pod x-0: {error}"
    assert (create.on_failure.type, create.on_failure.reason) == ("Warning", "FailedCreate")


def test_63_a_worker_that_looks_like_a_leader_gets_nothing(cluster: SmallCluster) -> None:
    leader = annotated(cluster.leaders[0], **{"leader-name": "x-0"})
    (emit,) = plan_of(cluster.member_snapshot(0, pod=leader, leader=leader, workers=None)).actions
    assert isinstance(emit, Emit)
    assert emit.event.type == "Warning"
    assert emit.event.note == (
        "leader pod ns/x-0 contains mistake annotation 'leaderworkerset.sigs.k8s.io/leader-name': "
        "requires Kubernetes ≥v1.27 or v1.26 with StatefulSetStartOrdinal feature"
    )


def test_workers_terminate_with_their_leader_where_the_policy_says_so(cluster: SmallCluster) -> None:
    leader = with_meta(annotated(cluster.leaders[0], **{"pod-termination-policy": "Parallel"}), **GOING)
    snapshot = cluster.member_snapshot(0, pod=leader, leader=leader)
    end = deletion(decide(snapshot))
    assert snapshot.workers is not None
    assert (end.kind, end.key, end.uid) == (STATEFUL_SET, key_of(snapshot.workers), uid_of(snapshot.workers))
    assert (end.propagation, end.errors["NotFound"]) == ("Background", OnError.IGNORE)

    foreign = with_meta(snapshot.workers, ownerReferences=[])
    for workers in (None, with_meta(snapshot.workers, **GOING), foreign):
        assert not plan_of(cluster.member_snapshot(0, pod=leader, leader=leader, workers=workers)).actions
    plain = with_meta(cluster.leaders[0], **GOING)
    assert not plan_of(cluster.member_snapshot(0, pod=plain, leader=plain)).actions


@pytest.mark.parametrize("label", [names.NAME_LABEL, names.WORKER_INDEX_LABEL])
def test_64_a_pod_without_its_labels_is_an_error(cluster: SmallCluster, label: str) -> None:
    labels = {k: v for k, v in labels_of(worker_of(cluster)).items() if k != label}
    with pytest.raises(DecisionError, match=f"{label} label is unexpected missing"):
        decide(about_worker(cluster, pod=with_meta(worker_of(cluster), labels=labels)))


def test_64_what_is_gone_is_no_error(cluster: SmallCluster) -> None:
    for snapshot in (
        MemberSnapshot(now=NOW, pod=None),
        cluster.member_snapshot(0, lws=None),
        cluster.member_snapshot(0, lws=with_meta(cluster.lws, **GOING)),
    ):
        assert plan_of(snapshot).actions == ()


def test_66_a_leader_without_name_in_the_network_is_an_error(cluster: SmallCluster) -> None:
    for field in ("hostname", "subdomain"):
        leader = {**cluster.leaders[0], "spec": {**cluster.leaders[0]["spec"], field: ""}}
        with pytest.raises(DecisionError, match="leader pod ns/x-0 has no hostname or subdomain"):
            decide(cluster.member_snapshot(0, pod=leader, leader=leader, workers=None))
    template = cluster.workers[0]["spec"]["template"]
    assert annotations_of(template)[names.LEADER_ADDRESS_ANNOTATION] == "x-0.x.ns"


def test_67_workers_are_of_their_leaders_revision(cluster: SmallCluster) -> None:
    cluster.change(image="b", size=1)
    cluster.reconcile()
    (create,) = plan_of(cluster.member_snapshot(0, workers=None)).actions
    assert isinstance(create, Create)
    spec = create.obj["spec"]
    assert spec["replicas"] == 2
    assert spec["template"]["spec"]["containers"][0]["image"] == "a"
    assert annotations_of(spec["template"])[names.SIZE_ANNOTATION] == "3"


def test_the_worker_statefulset_as_a_whole(cluster: SmallCluster) -> None:
    lws = with_meta(cluster.lws, labels={"team": "a", names.GROUP_INDEX_LABEL: "wrong"}, annotations={"who": "me"})
    (create,) = plan_of(cluster.member_snapshot(1, workers=None, lws=lws)).actions
    assert isinstance(create, Create)
    leader = cluster.leaders[1]
    selector = {k: labels_of(leader)[k] for k in (names.NAME_LABEL, names.GROUP_INDEX_LABEL, names.GROUP_KEY_LABEL)}
    made = selector | {names.REVISION_LABEL: labels_of(leader)[names.REVISION_LABEL]}
    assert create.obj["metadata"] == {
        "name": "x-1",
        "namespace": "ns",
        "labels": {"team": "a", **made, names.ROLE_LABEL: "worker"},
        "annotations": {"who": "me"},
        "ownerReferences": [controller_reference(leader, POD)],
    }
    spec = create.obj["spec"]
    assert spec["selector"] == {"matchLabels": selector}
    assert spec["ordinals"] == {"start": 1}
    assert spec["serviceName"] == "x"
    assert "updateStrategy" not in spec
    assert labels_of(spec["template"]) == made


def test_24_nothing_is_made_for_a_leader_that_goes() -> None:
    lws = make_lws()
    lws["spec"]["networkConfig"] = {"subdomainPolicy": names.SUBDOMAIN_UNIQUE_PER_REPLICA}
    cluster = settled(lws)
    leader = with_meta(cluster.leaders[0], **GOING)
    assert plan_of(cluster.member_snapshot(0, pod=leader, leader=leader, workers=None, service=None)).actions == ()


def test_25_a_stale_service_holds_up_everything() -> None:
    lws = make_lws()
    lws["spec"]["networkConfig"] = {"subdomainPolicy": names.SUBDOMAIN_UNIQUE_PER_REPLICA}
    cluster = settled(lws)
    leader = cluster.leaders[0]
    leader = {**leader, "spec": {**leader["spec"], "subdomain": "x-0"}}
    service = cluster.services["x-0"]
    seen: dict[str, Any] = {"pod": leader, "leader": leader, "workers": None}
    for stale in (
        with_meta(service, **GOING),
        with_meta(service, ownerReferences=[controller_reference(cluster.leaders[1], POD)]),
    ):
        plan = plan_of(cluster.member_snapshot(0, **seen, service=stale))
        assert "Service x-0" in str(plan.result.error)
        assert not any(isinstance(action, Create) for action in plan.actions)
    made = plan_of(cluster.member_snapshot(0, **seen, service=None)).actions
    assert [a.kind for a in made if isinstance(a, Create)] == [SERVICE, STATEFUL_SET]


def test_a_service_that_goes_with_an_earlier_leader_is_no_event() -> None:
    """It is about to go; one that stays until somebody moves it is told of."""
    lws = make_lws()
    lws["spec"]["networkConfig"] = {"subdomainPolicy": names.SUBDOMAIN_UNIQUE_PER_REPLICA}
    cluster = settled(lws)
    leader = cluster.leaders[0]
    former = controller_reference(leader, POD) | {"uid": "former"}
    seen: dict[str, Any] = {"pod": leader, "leader": leader, "workers": None}
    service = with_meta(cluster.services["x-0"], ownerReferences=[former])
    assert plan_of(cluster.member_snapshot(0, **seen, service=service)).actions == ()
    for owners in ([], [former | {"name": "y-0"}], [former | {"kind": "Mine"}]):
        foreign = with_meta(cluster.services["x-0"], ownerReferences=owners)
        plan = plan_of(cluster.member_snapshot(0, **seen, service=foreign))
        (told,) = plan.actions
        assert isinstance(told, Emit)
        assert told.event.reason == "FailedCreate"
        assert told.event.note == (
            "Failed to create headless service for error: Service x-0 belongs to another object than leader pod x-0; "
            "delete it or rename it, for the group needs its name"
        )
        assert str(plan.result.error) in told.event.note


def test_a_service_is_made_even_where_workers_cannot_be() -> None:
    lws = make_lws()
    lws["spec"]["networkConfig"] = {"subdomainPolicy": names.SUBDOMAIN_UNIQUE_PER_REPLICA}
    cluster = settled(lws)
    leader = {**cluster.leaders[0], "spec": {**cluster.leaders[0]["spec"], "hostname": ""}}
    plan = plan_of(cluster.member_snapshot(0, pod=leader, leader=leader, workers=None, service=None))
    assert [a.kind for a in plan.actions if isinstance(a, Create)] == [SERVICE]
    assert plan.result.requeue
    assert "no hostname" in plan.result.reason


# Restarts -----------------------------------------------------------------------------------------------------------


def test_68_under_policy_none_a_lost_worker_is_lost_alone(cluster: SmallCluster) -> None:
    lws = policy(cluster, names.RESTART_NONE)
    assert plan_of(about_worker(cluster, lws=lws, deleted=True)).actions == ()
    lws = policy(cluster, names.RESTART_DEFAULT)
    assert plan_of(about_worker(cluster, lws=lws, deleted=True)).actions == ()


def test_69_a_lost_worker_takes_its_group_along(cluster: SmallCluster) -> None:
    action = deletion(decide(about_worker(cluster, deleted=True)))
    leader = cluster.leaders[0]
    assert (action.kind, action.key, action.uid) == (POD, Key("ns", "x-0"), leader["metadata"]["uid"])
    assert action.propagation == "Foreground"
    event = action.on_success
    assert event is not None
    assert (event.reason, event.action, event.type) == ("RecreateGroup", "Delete", "Normal")
    assert event.note == "Worker pod x-0-1 failed, deleted leader pod x-0 to recreate group 0"
    assert event.related == ref_of(leader, POD)


@pytest.mark.parametrize("phase", ["Running", "Pending"])
@pytest.mark.parametrize("field", ["containerStatuses", "initContainerStatuses"])
def test_69_a_container_restart_takes_the_group_along(cluster: SmallCluster, phase: str, field: str) -> None:
    pod = counting(worker_of(cluster), 1, phase=phase, field=field)
    assert deletion(decide(about_worker(cluster, pod=pod))).key.name == "x-0"
    leader = counting(cluster.leaders[0], 1, phase=phase, field=field)
    action = deletion(decide(cluster.member_snapshot(0, pod=leader, leader=leader, live=LIVE)))
    assert action.on_success is not None
    assert action.on_success.note.startswith("Worker pod x-0 failed, deleted leader pod x-0")


@pytest.mark.parametrize("phase", ["Failed", "Succeeded", ""])
def test_70_restarts_of_a_finished_pod_do_not_count(cluster: SmallCluster, phase: str) -> None:
    assert plan_of(about_worker(cluster, pod=counting(worker_of(cluster), 3, phase=phase))).actions == ()


def test_70_no_restarts_no_action(cluster: SmallCluster) -> None:
    assert plan_of(about_worker(cluster, pod=counting(worker_of(cluster), 0))).actions == ()


@pytest.mark.parametrize("by_annotation", [True, False])
def test_71_after_start_waits_until_all_have_started(cluster: SmallCluster, by_annotation: bool) -> None:
    if by_annotation:
        lws = annotated(cluster.lws, **{"experimental-recreate-group-after-start": ""})
    else:
        lws = policy(cluster, names.RESTART_RECREATE_GROUP_AFTER_START)
    pod = counting(worker_of(cluster), 1)
    pods = group_of(cluster)
    pending = [*pods[:2], {**pods[2], "status": {"phase": "Pending"}}]
    for group in (pods[:2], pending):
        assert plan_of(about_worker(cluster, lws=lws, pod=pod, group_pods=group)).actions == ()
    assert deletion(decide(about_worker(cluster, lws=lws, pod=pod, group_pods=pods)))


def test_71_under_the_default_policy_nobody_waits(cluster: SmallCluster) -> None:
    assert deletion(decide(about_worker(cluster, pod=counting(worker_of(cluster), 1), group_pods=[])))


def test_71_an_unset_policy_is_the_default(cluster: SmallCluster) -> None:
    assert deletion(decide(about_worker(cluster, lws=policy(cluster, ""), deleted=True)))


def test_72_pods_of_an_earlier_group_are_ignored(cluster: SmallCluster) -> None:
    worker, owner = worker_of(cluster), cluster.workers[0]
    seen = frozenset({*LIVE, (STATEFUL_SET, Key("ns", "x-0"))})
    alien = {"apiVersion": "batch/v1", "kind": "Job", "name": "x-0", "uid": "j", "controller": True}
    former = controller_reference(with_meta(cluster.leaders[0], uid="former"), POD)
    for what, fields in {
        "another revision": {"pod": labelled(worker, template_revision_hash="other")},
        "no controller": {"pod": with_meta(worker, ownerReferences=[])},
        "another kind of controller": {"pod": with_meta(worker, ownerReferences=[alien])},
        "its workload is gone": {"owner": None},
        "its workload was made again": {"owner": with_meta(owner, uid="again")},
        "its workload is nobody's": {"owner": with_meta(owner, ownerReferences=[])},
        "its workload is of the leader before": {"owner": with_meta(owner, ownerReferences=[former])},
    }.items():
        plan = plan_of(about_worker(cluster, deleted=True, live=seen, **fields))
        assert plan.actions == (), what


def test_72_a_worker_of_the_leader_itself_belongs_to_it(cluster: SmallCluster) -> None:
    worker = with_meta(worker_of(cluster), ownerReferences=[controller_reference(cluster.leaders[0], POD)])
    assert deletion(decide(about_worker(cluster, pod=worker, owner=None, deleted=True)))


def test_73_a_leader_that_goes_already_is_not_deleted_again(cluster: SmallCluster) -> None:
    leader = with_meta(cluster.leaders[0], **GOING)
    assert plan_of(about_worker(cluster, leader=leader, deleted=True)).actions == ()
    assert plan_of(cluster.member_snapshot(0, pod=leader, leader=leader)).actions == ()


def test_74_without_leader_there_is_nothing_to_do(cluster: SmallCluster) -> None:
    assert plan_of(about_worker(cluster, leader=None, deleted=True)).actions == ()


def test_74_a_worker_that_tells_no_leader_is_an_error(cluster: SmallCluster) -> None:
    notes = {k: v for k, v in annotations_of(worker_of(cluster)).items() if k != names.LEADER_NAME_ANNOTATION}
    worker = with_meta(worker_of(cluster), name="odd", annotations=notes)
    with pytest.raises(DecisionError, match="parsing pod name for pod odd"):
        decide(about_worker(cluster, pod=worker, leader=None, deleted=True))


def test_76_a_worker_that_was_replaced_at_once_still_counts_as_lost(cluster: SmallCluster) -> None:
    lost, again = worker_of(cluster), with_meta(worker_of(cluster), uid="again")
    assert deletion(decide(about_worker(cluster, pod=lost, deleted=True, group_pods=[*group_of(cluster)[:2], again])))
    assert plan_of(about_worker(cluster, pod=again)).actions == ()


def test_77_a_leader_that_is_gone_does_nothing_to_the_next(cluster: SmallCluster) -> None:
    gone = counting(with_meta(cluster.leaders[0], uid="former"), 1)
    assert plan_of(cluster.member_snapshot(0, pod=gone, deleted=True, live=LIVE)).actions == ()
    assert plan_of(cluster.member_snapshot(0, pod=gone, live=LIVE)).actions == ()


def test_a_leader_is_deleted_only_after_a_fresh_look(cluster: SmallCluster) -> None:
    asked = decide(about_worker(cluster, deleted=True, live=frozenset()))
    assert isinstance(asked, NeedFresh)
    assert set(asked.keys) == LIVE
    unset = policy(cluster, names.RESTART_NONE)
    assert plan_of(about_worker(cluster, deleted=True, lws=unset)).actions == (), "what was read live counts"
    action = deletion(decide(about_worker(cluster, deleted=True)))
    assert action.errors == {"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE}


def test_a_loss_is_not_forgotten_because_the_cache_is_behind(cluster: SmallCluster) -> None:
    asked = decide(about_worker(cluster, deleted=True, owner=None))
    assert isinstance(asked, NeedFresh)
    assert asked.keys == ((STATEFUL_SET, Key("ns", "x-0")),)
    asked = decide(about_worker(cluster, deleted=True, lws=None, live=frozenset()))
    assert isinstance(asked, NeedFresh)
    assert asked.keys == ((LEADER_WORKER_SET, Key("ns", "x")),)
    assert plan_of(about_worker(cluster, deleted=True, lws=None)).actions == ()


def test_a_scheduler_comes_before_the_workers(cluster: SmallCluster) -> None:
    class Gang:
        def group_actions(self, lws: dict, leader: dict) -> tuple[Create, ...]:
            return (Create(why="gang", kind=SERVICE, obj={"metadata": {"name": leader["metadata"]["name"]}}),)

    plan = member.decide(cluster.member_snapshot(0, workers=None), LEADERS, WORKERS, Gang())
    assert isinstance(plan, Plan)
    assert [a.kind for a in plan.actions if isinstance(a, Create)] == [SERVICE, STATEFUL_SET]
