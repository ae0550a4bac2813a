"""What is decided about pods of sets in Hash mode (specification: 30 §6, §8–§11)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups import member, restarts, revisions, services
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import MemberSnapshot
from lwskit.runtime.kinds import DEPLOYMENT, NODE, POD, SERVICE, STATEFUL_SET
from lwskit.runtime.objects import Key, Obj, condition_of, uid_of
from lwskit.runtime.plan import Create, Decision, Delete, Emit, Modify, NeedFresh, OnError, Patch, Plan
from tests.unit.groups.hash_objects import (
    HASHED,
    KEY,
    MARK,
    NOW,
    WORKERS,
    deployment,
    hash_lws,
    key,
    leader,
    pool_of,
    worker,
    workers_of,
)


def recorded(lws: Obj) -> Obj:
    """The revision `r1` of the set as it is."""
    return revisions.new_revision(lws, [], revisions.record(lws), "r1")


def snapshot(pod: Obj, lws: Obj | None = None, *others: Obj, **fields: Any) -> MemberSnapshot:
    lws = lws or hash_lws()
    pool = pool_of(pod, *others)
    seen: dict[str, Any] = {
        "lws": lws,
        "leader": pod,
        "workload": deployment(lws),
        "revisions": [recorded(lws)],
        "group_pods": [pod, *others],
        "pool": pool.state_of(KEY),
    }
    return MemberSnapshot(now=NOW, pod=pod, **{**seen, **fields})


def decide(given: MemberSnapshot) -> Decision:
    return member.decide(given, HASHED, WORKERS)


def plan_of(given: MemberSnapshot) -> Plan:
    plan = decide(given)
    assert isinstance(plan, Plan)
    return plan


def names_of(plan: Plan) -> list[str]:
    return [type(action).__name__ for action in plan.actions]


def condition(plan: Plan) -> tuple[str, str]:
    """Status and reason of the condition that a plan writes last."""
    patch = plan.actions[-1]
    assert isinstance(patch, Patch)
    assert (patch.subresource, patch.strategic, patch.kind) == ("status", True, POD)
    (written,) = patch.body["status"]["conditions"]
    assert written["type"] == names.GROUP_READY_GATE
    assert written["lastTransitionTime"] == "2026-10-20T10:00:00Z"
    return written["status"], written["reason"]


def test_a_leader_that_is_let_in_gets_its_workers_at_once() -> None:
    """30 §18 lines 18, 26: the gate is lifted, workers are made, the condition says that they are not ready."""
    plan = plan_of(snapshot(leader(1, gated=True, ready=False)))
    assert names_of(plan) == ["Patch", "Create", "Patch"]
    create = plan.actions[1]
    assert isinstance(create, Create)
    assert create.errors == {"AlreadyExists": OnError.LOOK}
    assert condition(plan) == ("False", "WorkerStatefulSetNotReady")


def test_a_leader_that_waits_gets_nothing() -> None:
    """30 §18 line 19: an event, back in ten seconds, no workers."""
    plan = plan_of(snapshot(leader(1, gated=True, ready=False), None, leader(9, leaving=True)))
    assert names_of(plan) == ["Emit"]
    assert plan.result.after == 10.0
    silent = plan_of(snapshot(leader(1, gated=True, ready=False, revision="r0")))
    assert (silent.actions, silent.result.after) == ((), 10.0)


def test_the_service_of_a_group_comes_before_its_gate_opens() -> None:
    lws = hash_lws()
    lws["spec"]["networkConfig"] = {"subdomainPolicy": "UniquePerReplica"}
    pod = leader(1, gated=True, ready=False)
    pod["spec"]["subdomain"] = pod["spec"]["hostname"]
    plan = plan_of(snapshot(pod, lws, leader(9, leaving=True), revisions=[recorded(lws)]))
    assert names_of(plan) == ["Create", "Emit"]
    create = plan.actions[0]
    assert isinstance(create, Create)
    assert create.kind == SERVICE
    made = services.group_service(lws, leader(2))
    assert "belongs to another object" in str(plan_of(snapshot(pod, lws, service=made)).result.error)


def test_the_workers_in_full() -> None:
    """30 §8: named like the leader's host, by labels and annotations of the group."""
    lws = hash_lws(size=3)
    lws["metadata"] |= {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    pod = leader(1)
    plan = plan_of(snapshot(pod, lws))
    create = plan.actions[0]
    assert isinstance(create, Create)
    host = f"x-{key(1)[:8]}"
    places = {names.NAME_LABEL: "x", names.GROUP_INDEX_LABEL: key(1), names.GROUP_KEY_LABEL: key(1)}
    labels = {**places, names.REVISION_LABEL: "r1"}
    assert create.obj["metadata"]["name"] == host
    assert create.obj["metadata"]["labels"] == {"team": "a", **labels, names.ROLE_LABEL: "worker"}
    assert create.obj["metadata"]["annotations"] == {"note": "b"}
    (owner,) = create.obj["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Pod", "x-rs-1", "leader-1")
    spec = create.obj["spec"]
    assert (spec["replicas"], spec["serviceName"], spec["ordinals"]) == (2, "x", {"start": 1})
    assert spec["selector"] == {"matchLabels": places}
    assert spec["template"]["metadata"] == {
        "labels": labels,
        "annotations": {
            names.SIZE_ANNOTATION: "3",
            names.LEADER_NAME_ANNOTATION: "x-rs-1",
            names.LEADER_ADDRESS_ANNOTATION: f"{host}.x.ns",
            names.GROUP_IDENTITY_ANNOTATION: "Hash",
        },
    }


@pytest.mark.parametrize(
    ("stored", "ready", "written"),
    [
        ("", False, ("False", "WorkerStatefulSetNotReady")),
        ("", True, ("True", "WorkerStatefulSetReady")),
        ("False", True, ("True", "WorkerStatefulSetReady")),
        ("True", False, ("False", "WorkerStatefulSetNotReady")),
        ("True", True, None),
        ("False", False, None),
    ],
)
def test_the_condition_follows_the_workers(stored: str, ready: bool, written: tuple[str, str] | None) -> None:
    """30 §18 line 26: it is written when it says otherwise, and only then."""
    lws, pod = hash_lws(), leader(1, condition=stored)
    plan = plan_of(snapshot(pod, lws, workers=workers_of(lws, pod, ready=ready)))
    if written is None:
        assert plan.actions == ()
    else:
        assert condition(plan) == written


def test_workers_of_two_revisions_are_not_ready() -> None:
    lws, pod = hash_lws(), leader(1)
    workers = workers_of(lws, pod)
    workers["status"]["updateRevision"] = "next"
    assert condition(plan_of(snapshot(pod, lws, workers=workers)))[0] == "False"


def test_a_group_of_one_has_no_condition() -> None:
    """30 §18 line 11."""
    pod = leader(1, size=1)
    lws = hash_lws(size=1)
    assert plan_of(snapshot(pod, lws)).actions == ()
    assert names_of(plan_of(snapshot(leader(1, size=1, gated=True), lws))) == ["Patch"]


def test_a_gate_of_that_name_in_ordinal_mode_is_the_users_own() -> None:
    lws, pod = hash_lws(), leader(1)
    del pod["metadata"]["annotations"][names.GROUP_IDENTITY_ANNOTATION]
    assert plan_of(snapshot(pod, lws, workers=workers_of(lws, pod))).actions == ()


def test_workers_wait_for_the_containers_of_their_leader() -> None:
    """30 §18 line 27: its Ready waits for the workers, so it is not asked for."""
    lws = hash_lws()
    lws["spec"]["startupPolicy"] = "LeaderReady"
    pod = leader(1, ready=False)
    assert plan_of(snapshot(pod, lws)).actions == ()
    found = condition_of(pod, "ContainersReady")
    assert found is not None
    found["status"] = "True"
    assert names_of(plan_of(snapshot(pod, lws))) == ["Create", "Patch"]


def test_a_leader_that_is_not_ready_any_more_follows_its_workers_too() -> None:
    """30 §9: else it would be ready with its containers, while workers that it had are not."""
    lws = hash_lws()
    lws["spec"]["startupPolicy"] = "LeaderReady"
    pod = leader(1, ready=False, condition="True")
    plan = plan_of(snapshot(pod, lws, workers=workers_of(lws, pod, ready=False)))
    assert condition(plan) == ("False", "WorkerStatefulSetNotReady")


def test_workers_go_where_their_leader_is() -> None:
    """30 §18 line 28: none while it has no node; then by a label of that."""
    lws = hash_lws()
    lws["metadata"]["annotations"] = {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}
    pod = leader(1)
    assert plan_of(snapshot(pod, lws)).actions == ()
    pod["spec"]["nodeName"] = "n1"
    asked = decide(snapshot(pod, lws))
    assert isinstance(asked, NeedFresh)
    node = {"metadata": {"name": "n1", "labels": {"rack": "7"}}}
    plan = plan_of(snapshot(pod, lws, node=node, live=frozenset({(NODE, Key("", "n1"))})))
    create = plan.actions[0]
    assert isinstance(create, Create)
    assert create.obj["spec"]["template"]["spec"]["nodeSelector"] == {"rack": "7"}


@pytest.mark.parametrize("owned", [True, False])
def test_workers_of_another_leader_are_an_error(owned: bool) -> None:
    """30 §18 line 29: two keys may begin alike; the condition says nothing of the other group's workers."""
    lws, pod = hash_lws(), leader(1)
    other = workers_of(lws, leader(1))
    other["metadata"]["ownerReferences"] = [{**r, "uid": "other"} for r in other["metadata"]["ownerReferences"]]
    if not owned:
        other["metadata"]["ownerReferences"] = []
    plan = plan_of(snapshot(pod, lws, workers=other))
    assert condition(plan)[0] == "False"
    assert "is not controlled by leader pod x-rs-1" in str(plan.result.error)


def test_a_group_keeps_what_its_revision_says() -> None:
    """30 §18 line 30: size and subdomain policy are those of the leader's revision."""
    old = hash_lws(size=4)
    new = hash_lws(size=2)
    new["spec"]["networkConfig"] = {"subdomainPolicy": "UniquePerReplica"}
    plan = plan_of(snapshot(leader(1), new, revisions=[recorded(old)]))
    create = plan.actions[0]
    assert isinstance(create, Create)
    assert create.kind == STATEFUL_SET
    assert create.obj["spec"]["replicas"] == 3
    waits = plan_of(snapshot(leader(1), old, revisions=[]))
    assert (waits.actions, waits.result.after) == ((), 1.0)


def test_nothing_is_made_for_a_leader_that_goes() -> None:
    assert plan_of(snapshot(leader(1, leaving=True))).actions == ()


# Restarts -------------------------------------------------------------------------------------------------------------

LIVE = frozenset({(POD, Key("ns", "x-rs-1")), (LEADER_WORKER_SET, KEY)})


def about_worker(lws: Obj | None = None, **fields: Any) -> MemberSnapshot:
    """A lost worker of group 1."""
    lws = lws or hash_lws()
    lost, led = worker(1, leaving=True), leader(1)
    seen = {"leader": led, "owner": workers_of(lws, led), "live": LIVE, "group_pods": [led, lost, worker(1, 2)]}
    return snapshot(lost, lws, **{**seen, **fields})


def test_a_lost_worker_ends_its_group() -> None:
    """30 §18 line 31."""
    (end,) = plan_of(about_worker()).actions
    assert isinstance(end, Delete)
    assert (end.key.name, end.uid, end.propagation) == ("x-rs-1", "leader-1", "Foreground")


def test_a_worker_of_a_former_group_ends_nothing() -> None:
    """30 §18 line 32: its workload has another leader, or another UID."""
    lws = hash_lws()
    former = workers_of(lws, leader(1))
    former["metadata"]["ownerReferences"][0]["uid"] = "former"
    live = LIVE | {(STATEFUL_SET, Key("ns", f"x-{key(1)[:8]}"))}
    assert plan_of(about_worker(lws, owner=former, live=live)).actions == ()


def test_without_recreation_a_lost_worker_ends_nothing() -> None:
    """30 §18 line 33."""
    assert plan_of(about_worker(hash_lws(restartPolicy="None"))).actions == ()


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
@pytest.mark.parametrize("policy", ["RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None", "Default"])
def test_a_leader_that_has_ended_goes(policy: str, phase: str) -> None:
    """30 §10: no ReplicaSet removes it. It counts as lost, whether the group had started or not."""
    lws = hash_lws(restartPolicy=policy)
    given = snapshot(leader(1, phase=phase, ready=False), lws, live=LIVE)
    (end,) = plan_of(given).actions
    assert isinstance(end, Delete)
    assert (end.key.name, end.uid, end.propagation) == ("x-rs-1", "leader-1", "Foreground")
    assert end.on_success is not None
    assert end.on_success.reason == "RecreateGroup"
    assert restarts.cause(given, plan_of(given)) == "pod_lost"


def test_an_ended_leader_uses_up_a_restart() -> None:
    lws = hash_lws(maxGroupRestarts=1)
    count, end = plan_of(snapshot(leader(1, phase="Failed", ready=False), lws, live=LIVE)).actions
    assert isinstance(count, Modify)
    assert isinstance(end, Delete)
    backing = hash_lws(restartBackoff={"baseSeconds": 7200, "capSeconds": 7200})
    held = plan_of(snapshot(leader(1, phase="Failed", ready=False), backing, live=LIVE))
    assert names_of(held) == ["Patch"]
    assert held.result.after == 3600.0


def test_an_ended_leader_of_ordinal_mode_is_its_controllers_affair() -> None:
    pod = leader(1, phase="Failed", ready=False)
    del pod["metadata"]["annotations"][names.GROUP_IDENTITY_ANNOTATION]
    assert not restarts.is_over(pod)
    assert not restarts.is_over(leader(1, phase="Failed", leaving=True))


# Budget ---------------------------------------------------------------------------------------------------------------


def marked(i: int, **fields: Any) -> Obj:
    """A leader that is kept without a restart left."""
    pod = leader(i, exhausted=True, leaving=True, **fields)
    pod["metadata"]["finalizers"] = [names.GROUP_RESTART_BUDGET_FINALIZER]
    return pod


ALL_LIVE = LIVE | {(DEPLOYMENT, KEY)}


def released(given: MemberSnapshot) -> list[str]:
    """What a plan lets go or changes, by kind and name."""
    found = decide(given)
    assert isinstance(found, Plan)
    assert all(isinstance(a, Modify) for a in found.actions)
    return [f"{a.kind.kind} {a.key.name}" for a in found.actions if isinstance(a, Modify)]


def test_a_kept_group_waits() -> None:
    lws = hash_lws(maxGroupRestarts=0)
    assert released(snapshot(marked(1), lws, live=ALL_LIVE)) == []
    assert released(snapshot(marked(1), lws, leader(2, gated=True), live=ALL_LIVE)) == []
    assert released(snapshot(marked(1), lws, workload=None, live=ALL_LIVE)) == []


def test_a_kept_group_of_a_former_revision_is_let_go() -> None:
    """30 §18 line 35."""
    lws = hash_lws(maxGroupRestarts=0)
    pod = marked(1)
    asked = decide(snapshot(pod, lws, workload=deployment(lws, "r2")))
    assert isinstance(asked, NeedFresh)
    assert set(asked.keys) == ALL_LIVE
    assert released(snapshot(pod, lws, workload=deployment(lws, "r2"), live=ALL_LIVE)) == ["Pod x-rs-1"]


def test_kept_groups_for_which_there_is_no_room_are_let_go_with_their_counts() -> None:
    """30 §18 line 35: the youngest first; who waits at the gate behind a kept group takes no room of its own."""
    lws = hash_lws(replicas=2, maxGroupRestarts=0)
    old, young = marked(1, created=1), marked(2, created=2)
    live = ALL_LIVE | {(POD, Key("ns", "x-rs-2"))}
    for pod, others, wanted in (
        (young, [old], []),
        (young, [old, leader(3, gated=True), leader(4, gated=True)], []),
        (young, [old, leader(3)], ["LeaderWorkerSet x", "Pod x-rs-2"]),
        (old, [young, leader(3)], []),
        (old, [young, leader(3), leader(4)], ["LeaderWorkerSet x", "Pod x-rs-1"]),
    ):
        assert released(snapshot(pod, lws, *others, live=live, group_pods=[pod])) == wanted


def test_recovery() -> None:
    """30 §18 line 34: the count goes, and the group with it."""
    lws = hash_lws(maxGroupRestarts=0)
    pod = marked(1)
    pod["metadata"]["annotations"][names.RECOVER_ANNOTATION] = "true"
    assert released(snapshot(pod, lws, live=ALL_LIVE)) == ["LeaderWorkerSet x", "Pod x-rs-1"]


def test_a_kept_group_of_an_earlier_set_is_let_go() -> None:
    lws = hash_lws(maxGroupRestarts=0)
    lws["metadata"]["creationTimestamp"] = "2026-10-20T09:30:00Z"
    assert released(snapshot(marked(1), lws, live=ALL_LIVE)) == ["Pod x-rs-1"]


def test_marks_are_made_alike_in_both_modes() -> None:
    lws = hash_lws(maxGroupRestarts=0)
    pod = leader(1)
    pod["status"]["containerStatuses"] = [{"name": "c", "restartCount": 1}]
    one, two = worker(1), worker(1, 2)
    plan = plan_of(snapshot(pod, lws, one, two, live=LIVE, workers=workers_of(lws, pod)))
    assert names_of(plan) == ["Modify", "Modify", "Modify", "Delete"]
    mark = plan.actions[0]
    assert isinstance(mark, Modify)
    after = mark.change(copy.deepcopy(pod))
    assert after is not None
    assert after["metadata"]["annotations"] | MARK == after["metadata"]["annotations"]
    assert uid_of(after) == "leader-1"
    assert not any(isinstance(a, Emit) for a in plan.actions)
