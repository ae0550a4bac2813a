"""Restart budgets: kept groups, their recovery, waiting recreations (specification: 20 §12; checklist 77-92)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups import counters, gates, member, ordinal, restarts
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError, MemberSnapshot
from lwskit.runtime.kinds import NAMESPACE, POD, STATEFUL_SET
from lwskit.runtime.objects import Key, Obj, annotations_of, controller_reference, labels_of
from lwskit.runtime.plan import AnyAction, Decision, Delete, Emit, Modify, NeedFresh, Patch, Plan, UpdateStatus
from tests.unit.groups.small_cluster import LEADERS, NOW, WORKERS, SmallCluster, make_lws, settled
from tests.unit.groups.test_member import GOING, annotated, counting, group_of, with_meta, worker_of

FINALIZER = names.GROUP_RESTART_BUDGET_FINALIZER
MARK = {"group-restart-budget-exhausted": "true"}
LIVE = frozenset(
    {
        (POD, Key("ns", "x-0")),
        (LEADER_WORKER_SET, Key("ns", "x")),
        (STATEFUL_SET, Key("ns", "x")),
        (NAMESPACE, Key("", "ns")),
    }
)


def cluster_with(lived: int = 1000, **template: Any) -> SmallCluster:
    """A cluster at rest whose leaders were made so many seconds ago."""
    cluster = settled(make_lws(**template))
    for i, leader in cluster.leaders.items():
        created = f"2026-10-20T{10 - (lived + 3599) // 3600:02}:{(-lived // 60) % 60:02}:{-lived % 60:02}Z"
        cluster.leaders[i] = with_meta(leader, creationTimestamp=created)
    return cluster


def counted(cluster: SmallCluster, **counts: int) -> Obj:
    """The cluster's set with counters of its groups: `_0=3`."""
    key = labels_of(cluster.leaders[0])[names.REVISION_LABEL]
    return counters.written(cluster.lws, {f"{key}/{i[1:]}": n for i, n in counts.items()})


def about(cluster: SmallCluster, pod: Obj | None = None, **fields: Any) -> MemberSnapshot:
    """What the reconciler sees of a worker of group 0 that was lost, or of a leader; everything read live."""
    leader = fields.get("leader", cluster.leaders[0])
    workers = cluster.workers.get(0)
    seen: dict[str, Any] = {
        "pod": pod or worker_of(cluster),
        "deleted": pod is None,
        "lws": cluster.lws,
        "leader": leader,
        "owner": workers,
        "workers": workers,
        "workload": cluster.workload,
        "revisions": cluster.revisions,
        "group_pods": [leader, *group_of(cluster)[1:]] if workers else [leader],
        "live": LIVE,
    }
    return MemberSnapshot(now=NOW, **(seen | fields))


def decide(snapshot: MemberSnapshot) -> Decision:
    return member.decide(snapshot, LEADERS, WORKERS)


def plan_of(snapshot: MemberSnapshot) -> Plan:
    decision = decide(snapshot)
    assert isinstance(decision, Plan), decision
    return decision


def told(action: AnyAction) -> str:
    """An action in short."""
    match action:
        case Modify(kind=kind, key=key):
            return f"modify {kind.kind} {key.name}"
        case Patch(kind=kind, key=key):
            return f"patch {kind.kind} {key.name}"
        case Delete(kind=kind, key=key, propagation=how):
            return f"delete {kind.kind} {key.name} {how}"
        case Emit(event=event):
            return f"emit {event.reason}"
        case _:
            return type(action).__name__


def shortly(plan: Plan) -> list[str]:
    return [told(a) for a in plan.actions]


def change(plan: Plan, place: int, obj: Obj) -> Obj | None:
    """What the action at that place makes of an object, which it leaves as it is."""
    action = plan.actions[place]
    assert isinstance(action, Modify)
    before = copy.deepcopy(obj)
    after = action.change(obj)
    assert obj == before
    return after


def exhausted_leader(cluster: SmallCluster, i: int = 0, *, going: bool = True, **notes: str) -> Obj:
    """The leader of a group that was terminated."""
    leader = with_meta(annotated(cluster.leaders[i], **MARK, **notes), finalizers=[FINALIZER, "foregroundDeletion"])
    return with_meta(leader, **GOING) if going else leader


def kept_workers(cluster: SmallCluster) -> list[Obj]:
    return [with_meta(w, finalizers=[FINALIZER], **GOING) for w in group_of(cluster)[1:]]


TERMINATED = [
    "modify Pod x-0",
    "modify Pod x-0-1",
    "modify Pod x-0-2",
    "delete Pod x-0 Foreground",
]
RELEASED = ["modify Pod x-0-1", "modify Pod x-0-2", "modify Pod x-0"]
RECREATED = ["modify LeaderWorkerSet x", "delete Pod x-0 Foreground"]


# Budget ---------------------------------------------------------------------------------------------------------------


def test_79_without_a_limit_nothing_is_counted() -> None:
    assert shortly(plan_of(about(cluster_with()))) == ["delete Pod x-0 Foreground"]
    unreadable = annotated(cluster_with().lws, **{"group-restart-counts": "{"})
    assert shortly(plan_of(about(cluster_with(), lws=unreadable))) == ["delete Pod x-0 Foreground"]


def test_79_a_restart_is_counted_before_it_happens() -> None:
    cluster = cluster_with(maxGroupRestarts=2)
    plan = plan_of(about(cluster, lws=counted(cluster, _0=1, _1=7)))
    assert shortly(plan) == RECREATED
    changed = change(plan, 0, counted(cluster, _0=1, _1=7))
    assert changed is not None
    assert counters.read(changed) == counters.read(counted(cluster, _0=2, _1=7))
    assert shortly(plan_of(about(cluster, lws=changed))) == ["delete Pod x-0 Foreground"], "counted, not deleted yet"
    successor = with_meta(cluster.leaders[0], uid="next")
    again = worker_of(cluster)
    again["metadata"]["ownerReferences"] = [controller_reference(successor, POD)]
    last = plan_of(about(cluster, again, deleted=True, leader=successor, lws=changed))
    assert "delete Pod x-0 Foreground" in shortly(last)
    assert len(last.actions) > 1, "the next leader's restart is none of those that were counted"
    assert change(plan, 0, counted(cluster, _0=5)) is None
    count = plan.actions[0]
    assert count.on_failure is not None
    assert count.on_failure.note == "Failed to count restart 2 of group 0, so it is not restarted: {error}"


def test_93_a_restart_that_was_counted_is_made_by_whoever_comes_next() -> None:
    """Its manager may have died before it deleted the leader, and with it the news of a deleted worker."""
    cluster = cluster_with(maxGroupRestarts=2)
    changed = change(plan_of(about(cluster)), 0, cluster.lws)
    assert changed is not None
    for pod in (cluster.leaders[0], group_of(cluster)[1]):
        plan = plan_of(about(cluster, pod, lws=changed))
        assert shortly(plan) == ["delete Pod x-0 Foreground"]
        assert restarts.cause(about(cluster, pod, lws=changed), plan) == restarts.POD_LOST
    assert shortly(plan_of(about(cluster, cluster.leaders[0]))) == [], "nothing was counted"
    successor = with_meta(cluster.leaders[0], uid="another")
    workers = with_meta(cluster.workers[0], ownerReferences=[controller_reference(successor, POD)])
    seen = about(cluster, successor, leader=successor, lws=changed, workers=workers)
    assert shortly(plan_of(seen)) == [], "the leader that was counted is gone"


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (2, 2), (2, 3)])
def test_79_a_group_that_has_used_up_its_restarts_is_terminated_and_kept(limit: int, count: int) -> None:
    cluster = cluster_with(maxGroupRestarts=limit)
    plan = plan_of(about(cluster, lws=counted(cluster, _0=count)))
    assert shortly(plan) == TERMINATED, "the counter is not raised"
    marked = change(plan, 0, annotated(cluster.leaders[0], recover="true"))
    assert marked is not None
    assert marked["metadata"]["finalizers"] == [FINALIZER]
    assert annotations_of(marked)[names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION] == "true"
    assert names.RECOVER_ANNOTATION not in annotations_of(marked)
    for place, worker in ((1, worker_of(cluster)), (2, worker_of(cluster, 0, 2))):
        kept = change(plan, place, with_meta(worker, finalizers=["other/one"]))
        assert kept is not None
        assert kept["metadata"]["finalizers"] == ["other/one", FINALIZER]
        assert change(plan, place, with_meta(worker, **GOING)) is None, "the server refuses that"
        assert change(plan, place, with_meta(worker, uid="next")) is None
    event = plan.actions[-1].on_success
    assert event is not None
    assert (event.type, event.reason, event.action) == ("Warning", "ReplicaRestartBudgetExceeded", "Delete")
    assert event.note == "Restart budget exhausted; terminated group 0 and stopped automatic recovery"


def test_79_only_pods_of_this_very_group_are_kept() -> None:
    cluster = cluster_with(maxGroupRestarts=0)
    _, first, second = group_of(cluster)
    labels = {**labels_of(first), names.REVISION_LABEL: "older"}
    older = with_meta(first, labels=labels)
    foreign = with_meta(second, ownerReferences=[controller_reference(with_meta(cluster.workers[0], uid="old"), POD)])
    for pods in ([older, foreign], [with_meta(first, **GOING), with_meta(second, finalizers=[FINALIZER])]):
        plan = plan_of(about(cluster, group_pods=[cluster.leaders[0], *pods]))
        assert shortly(plan) == ["modify Pod x-0", "delete Pod x-0 Foreground"]


@pytest.mark.parametrize("limit", [None, 100])
def test_80_a_marked_group_stays_so_whatever_the_limit(limit: int | None) -> None:
    cluster = cluster_with(**({} if limit is None else {"maxGroupRestarts": limit}))
    leader = exhausted_leader(cluster, going=False)
    for pod in (None, leader):
        plan = plan_of(about(cluster, pod, leader=leader))
        assert shortly(plan) == [TERMINATED[1], TERMINATED[2], TERMINATED[3]], "what is done is not done again"
    going = exhausted_leader(cluster)
    assert plan_of(about(cluster, going, leader=going)).actions == ()
    assert plan_of(about(cluster, leader=going)).actions == ()


def test_81_recovery_clears_one_counter_and_lets_workers_go_first() -> None:
    cluster = cluster_with(maxGroupRestarts=1)
    lws = counted(cluster, _0=1, _1=1)
    leader = exhausted_leader(cluster, recover="true")
    pods = [leader, *kept_workers(cluster)]
    plan = plan_of(about(cluster, leader, leader=leader, lws=lws, group_pods=pods))
    assert shortly(plan) == ["modify LeaderWorkerSet x", *RELEASED]
    assert change(plan, 0, lws) == counted(cluster, _1=1)
    freed = change(plan, 3, leader)
    assert freed is not None
    assert freed["metadata"]["finalizers"] == ["foregroundDeletion"]
    ours = {names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION, names.RECOVER_ANNOTATION}
    assert not ours & annotations_of(freed).keys()
    assert change(plan, 3, with_meta(leader, uid="next")) is None


@pytest.mark.parametrize("value", ["True", "1", "false", ""])
def test_81_other_values_ask_for_nothing(value: str) -> None:
    cluster = cluster_with(maxGroupRestarts=1)
    leader = exhausted_leader(cluster, recover=value)
    assert plan_of(about(cluster, leader, leader=leader)).actions == ()


def test_81_recovery_begins_once_the_group_is_terminated() -> None:
    cluster = cluster_with(maxGroupRestarts=1)
    leader = exhausted_leader(cluster, going=False, recover="true")
    assert shortly(plan_of(about(cluster, leader, leader=leader)))[-1] == "delete Pod x-0 Foreground"


def test_82_waiting_needs_no_request() -> None:
    cluster = cluster_with(maxGroupRestarts=1)
    leader = exhausted_leader(cluster)
    plan = plan_of(about(cluster, leader, leader=leader, live=frozenset()))
    assert plan.actions == ()
    assert plan.note.startswith("group 0 has no restart left and waits for annotation")


def scaled(cluster: SmallCluster, replicas: int = 2, partition: int = 0, revision: str = "") -> Obj:
    """The leader workload with other settings."""
    workload = copy.deepcopy(cluster.workload)
    assert workload is not None
    workload["spec"]["replicas"] = replicas
    workload["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = partition
    if revision:
        for carrier in (workload, workload["spec"]["template"]):
            carrier["metadata"]["labels"][names.REVISION_LABEL] = revision
    return workload


@pytest.mark.parametrize(
    ("settings", "free"),
    [
        ({}, False),
        ({"replicas": 1}, True),
        ({"replicas": 2, "partition": 1, "revision": "next"}, True),
        ({"replicas": 2, "partition": 2, "revision": "next"}, False),
        ({"replicas": 2, "partition": 0}, False),
        ({"replicas": 3, "partition": 3, "revision": "next"}, False),
    ],
)
def test_83_who_is_scaled_down_or_updated_is_let_go(settings: dict[str, Any], free: bool) -> None:
    cluster = cluster_with(maxGroupRestarts=0)
    leader = exhausted_leader(cluster, 1)
    live = frozenset({*LIVE, (POD, Key("ns", "x-1"))})
    fields: dict[str, Any] = {"leader": leader, "group_pods": [leader], "live": live}
    plan = plan_of(about(cluster, leader, workload=scaled(cluster, **settings), **fields))
    assert shortly(plan) == (["modify Pod x-1"] if free else [])


def test_83_surge_groups_and_a_missing_workload_let_nobody_go() -> None:
    cluster = cluster_with(maxGroupRestarts=0, replicas=2)
    leader = exhausted_leader(cluster, 1)
    cluster.change(replicas=1)
    live = frozenset({*LIVE, (POD, Key("ns", "x-1"))})
    fields: dict[str, Any] = {"leader": leader, "group_pods": [leader], "live": live}
    assert plan_of(about(cluster, leader, workload=scaled(cluster, replicas=2), **fields)).actions == ()
    assert plan_of(about(cluster, leader, workload=None, **fields)).actions == ()


def test_84_the_pods_of_a_set_that_goes_are_let_go() -> None:
    cluster = cluster_with(maxGroupRestarts=0)
    leader = exhausted_leader(cluster)
    workers = kept_workers(cluster)
    going = {"metadata": {"name": "ns", **GOING}}
    for gone in ({"lws": None}, {"lws": with_meta(counted(cluster, _0=1), **GOING)}, {"namespace": going}):
        fields: dict[str, Any] = {"leader": leader, "group_pods": [leader, *workers], **gone}
        assert shortly(plan_of(about(cluster, leader, **fields))) == RELEASED
        assert shortly(plan_of(about(cluster, workers[0], **fields))) == ["modify Pod x-0-1"]
        assert plan_of(about(cluster, worker_of(cluster), **fields)).actions == ()
        asked = decide(about(cluster, leader, **fields, live=frozenset()))
        assert isinstance(asked, NeedFresh)
        assert set(asked.keys) == {(LEADER_WORKER_SET, Key("ns", "x")), (NAMESPACE, Key("", "ns"))}


def test_84_in_a_namespace_that_goes_nothing_is_recreated() -> None:
    cluster = cluster_with()
    assert plan_of(about(cluster, namespace={"metadata": {"name": "ns", **GOING}})).actions == ()


def test_84_the_pods_of_an_earlier_set_of_the_name_are_let_go() -> None:
    cluster = cluster_with(maxGroupRestarts=0)
    leader = exhausted_leader(cluster)
    later = with_meta(cluster.lws, creationTimestamp="2026-10-20T09:59:59Z", uid="next")
    workload = with_meta(scaled(cluster), uid="next-workload")
    fields: dict[str, Any] = {"leader": leader, "group_pods": [leader, *kept_workers(cluster)]}
    assert shortly(plan_of(about(cluster, leader, lws=later, workload=workload, **fields))) == RELEASED
    assert plan_of(about(cluster, leader, lws=later, **fields)).actions == (), "adopted, not made anew"
    assert plan_of(about(cluster, leader, workload=workload, **fields)).actions == (), "only the workload is new"


def test_84_a_worker_without_a_marked_leader_is_let_go() -> None:
    cluster = cluster_with(maxGroupRestarts=0)
    worker = kept_workers(cluster)[0]
    for leader in (None, cluster.leaders[0]):
        fields: dict[str, Any] = {"leader": leader, "group_pods": [worker]}
        assert shortly(plan_of(about(cluster, worker, **fields))) == ["modify Pod x-0-1"]
        asked = decide(about(cluster, worker, **fields, live=frozenset()))
        assert isinstance(asked, NeedFresh)
    marked = exhausted_leader(cluster)
    assert plan_of(about(cluster, worker, leader=marked)).actions == ()


def test_85_nothing_is_counted_or_kept_by_what_may_be_stale() -> None:
    cluster = cluster_with(maxGroupRestarts=1)
    for limit in (0, 1):
        lws = copy.deepcopy(cluster.lws)
        lws["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] = limit
        asked = decide(about(cluster, lws=lws, live=frozenset()))
        assert isinstance(asked, NeedFresh)
        assert {(POD, Key("ns", "x-0")), (LEADER_WORKER_SET, Key("ns", "x"))} == set(asked.keys)
    leader = exhausted_leader(cluster, recover="true")
    asked = decide(about(cluster, leader, leader=leader, live=frozenset()))
    assert isinstance(asked, NeedFresh)
    assert (POD, Key("ns", "x-0")) in asked.keys


@pytest.mark.parametrize("text", ["null", "{", '{"a/0":-1}'])
@pytest.mark.parametrize("template", [{"maxGroupRestarts": 5}, {"restartBackoff": {}}])
def test_86_unreadable_counters_fail_with_a_word_on_the_set(text: str, template: dict[str, Any]) -> None:
    cluster = cluster_with(**template)
    lws = annotated(cluster.lws, **{"group-restart-counts": text})
    plan = plan_of(about(cluster, lws=lws))
    assert shortly(plan) == ["emit RestartCountsUnreadable"]
    assert isinstance(plan.result.error, DecisionError)
    leader = exhausted_leader(cluster, recover="true")
    plan = plan_of(about(cluster, leader, leader=leader, lws=lws))
    assert shortly(plan) == ["emit RestartCountsUnreadable"]
    assert isinstance(plan.result.error, DecisionError)


# The set's part -------------------------------------------------------------------------------------------------------


def test_87_counters_of_groups_that_are_gone_are_dropped() -> None:
    cluster = cluster_with(replicas=3, maxGroupRestarts=5)
    cluster.lws = counted(cluster, _0=1, _1=2, _2=3, _7=4)
    plan = ordinal.decide(cluster.snapshot(), LEADERS)
    assert isinstance(plan, Plan)
    (drop,) = [a for a in plan.actions if isinstance(a, Modify)]
    assert drop is plan.actions[-1]
    assert drop.change(cluster.lws) == counted(cluster, _0=1, _1=2, _2=3)
    cluster.change(replicas=1)
    assert not _drops(cluster, "/2"), "the workload still asks for that group"
    cluster.workload = scaled(cluster, replicas=1)
    assert _drops(cluster, "/2")


def _drops(cluster: SmallCluster, suffix: str) -> bool:
    plan = ordinal.decide(cluster.snapshot(), LEADERS)
    assert isinstance(plan, Plan)
    changed = [a.change(cluster.lws) for a in plan.actions if isinstance(a, Modify)]
    left = counters.read(changed[0] or cluster.lws) if changed else counters.read(cluster.lws)
    return not any(key.endswith(suffix) for key in left)


def test_87_counters_of_other_revisions_go_when_the_rollout_is_done() -> None:
    cluster = cluster_with(maxGroupRestarts=5)
    cluster.lws = counters.written(cluster.lws, {**counters.read(counted(cluster, _0=1)), "old/1": 3})
    assert _drops(cluster, "old/1") is True
    cluster.make_ready(1, ready=False)
    assert _drops(cluster, "old/1") is False
    cluster.make_ready(1)
    cluster.healthy = False
    assert _drops(cluster, "old/1") is False


def test_87_counters_that_cannot_be_read_hold_up_nothing_else() -> None:
    cluster = cluster_with(maxGroupRestarts=5)
    cluster.lws = annotated(cluster.lws, **{"group-restart-counts": '{"odd": 1}'})
    cluster.change(replicas=3)
    plan = ordinal.decide(cluster.snapshot(), LEADERS)
    assert isinstance(plan, Plan)
    assert isinstance(plan.result.error, DecisionError)
    assert [type(a).__name__ for a in plan.actions] == ["Apply", "UpdateStatus", "Emit"]
    cluster.lws = annotated(cluster.lws, **{"group-restart-counts": ""})
    plan = ordinal.decide(cluster.snapshot(), LEADERS)
    assert isinstance(plan, Plan)
    assert plan.result.error is None


def test_55_progressing_with_a_kept_group() -> None:
    """20 §14 line 55: Progressing is true only as long as another group is not ready."""
    cluster = cluster_with(replicas=3)
    for i in range(3):
        cluster._put_leader(i, cluster.leaders[i])
    cluster._put_leader(0, exhausted_leader(cluster))
    for ready, progressing in ((True, "False"), (False, "True")):
        cluster.make_ready(2, ready=ready)
        plan = ordinal.decide(cluster.snapshot(), LEADERS)
        assert isinstance(plan, Plan)
        (update,) = [a for a in plan.actions if isinstance(a, UpdateStatus)]
        found = {c["type"]: c["status"] for c in update.obj["status"]["conditions"]}
        assert found == {
            "Available": "False",
            "Progressing": progressing,
            "UpdateInProgress": "False",
            "Degraded": "True",
        }


# Back-off -------------------------------------------------------------------------------------------------------------


def test_89_inside_the_window_the_group_waits() -> None:
    cluster = cluster_with(lived=4, restartBackoff={})
    plan = plan_of(about(cluster))
    assert shortly(plan) == ["patch Pod x-0"]
    assert plan.result.after == 6
    patch = plan.actions[0]
    assert isinstance(patch, Patch)
    assert patch.uid == cluster.leaders[0]["metadata"]["uid"]
    assert patch.body == {"metadata": {"annotations": {names.GROUP_RECREATE_PENDING_ANNOTATION: "x-0-1"}}}
    event = patch.on_success
    assert event is not None
    assert (event.type, event.reason, event.action) == ("Warning", "GroupRestartBackoff", "Update")
    assert event.note == "Pod x-0-1 failed, group 0 is recreated in 6s, after 0 restarts so far"


def test_89_a_group_that_waits_is_told_once_and_read_live_no_more() -> None:
    cluster = cluster_with(lived=4, restartBackoff={})
    leader = annotated(cluster.leaders[0], **{"group-recreate-pending": "x-0-1"})
    for pod in (None, worker_of(cluster, 0, 2), leader):
        for live in (LIVE, frozenset()):
            plan = plan_of(about(cluster, pod, leader=leader, live=live))
            assert plan.actions == ()
            assert plan.result.after == 6


def test_89_after_the_window_it_is_recreated_and_counted() -> None:
    cluster = cluster_with(lived=10, restartBackoff={})
    assert shortly(plan_of(about(cluster))) == RECREATED
    leader = annotated(cluster.leaders[0], **{"group-recreate-pending": "x-0-1"})
    for pod in (worker_of(cluster, 0, 2), leader):
        plan = plan_of(about(cluster, pod, leader=leader))
        assert shortly(plan) == RECREATED
        after = change(plan, 0, cluster.lws)
        assert after is not None
        assert counters.read(after) == counters.read(counted(cluster, _0=1))
        event = plan.actions[-1].on_success
        assert event is not None
        assert event.note == "Worker pod x-0-1 failed, deleted leader pod x-0 to recreate group 0"
        assert isinstance(decide(about(cluster, pod, leader=leader, live=frozenset())), NeedFresh)


def test_89_the_count_makes_the_window_longer() -> None:
    cluster = cluster_with(lived=15, restartBackoff={})
    assert plan_of(about(cluster, lws=counted(cluster, _0=1))).result.after == 5
    assert shortly(plan_of(about(cluster, lws=counted(cluster, _1=9)))) == RECREATED


def test_89_without_a_back_off_a_pending_group_is_recreated_at_once() -> None:
    cluster = cluster_with(lived=4)
    leader = annotated(cluster.leaders[0], **{"group-recreate-pending": "x-0-1"})
    assert shortly(plan_of(about(cluster, leader, leader=leader))) == ["delete Pod x-0 Foreground"]


def test_90_a_pending_worker_does_not_end_a_wait() -> None:
    policy = names.RESTART_RECREATE_GROUP_AFTER_START
    cluster = cluster_with(lived=10, restartBackoff={}, restartPolicy=policy)
    pending = {**worker_of(cluster), "status": {"phase": "Pending"}}
    leader = annotated(cluster.leaders[0], **{"group-recreate-pending": "x-0-1"})
    pods = [leader, pending, worker_of(cluster, 0, 2)]
    assert plan_of(about(cluster, group_pods=[cluster.leaders[0], *pods[1:]])).actions == ()
    assert shortly(plan_of(about(cluster, pending, leader=leader, group_pods=pods))) == RECREATED


def test_91_a_waiting_group_gets_its_workers() -> None:
    cluster = cluster_with(lived=4, restartBackoff={})
    leader = counting(cluster.leaders[0], 1)
    fields: dict[str, Any] = {"leader": leader, "workers": None, "group_pods": [leader]}
    plan = plan_of(about(cluster, leader, **fields))
    assert shortly(plan) == ["patch Pod x-0", "Create"]
    assert plan.result.after == 6
    marked = annotated(leader, **{"group-recreate-pending": "x-0"})
    plan = plan_of(about(cluster, marked, **(fields | {"leader": marked, "group_pods": [marked]})))
    assert shortly(plan) == ["Create"]
    assert plan.result.after == 6


def test_91_the_rest_is_returned_on_every_way_out() -> None:
    for size, startup, revisions, least in (
        (1, names.STARTUP_LEADER_CREATED, True, 6),
        (3, names.STARTUP_LEADER_READY, True, 6),
        (3, names.STARTUP_LEADER_CREATED, False, 1),
    ):
        cluster = cluster_with(lived=4, size=size, restartBackoff={})
        cluster.lws["spec"]["startupPolicy"] = startup
        leader = {**counting(cluster.leaders[0], 1), "spec": cluster.leaders[0]["spec"]}
        leader["status"]["conditions"] = []
        known = cluster.revisions if revisions else []
        plan = plan_of(about(cluster, leader, leader=leader, workers=None, group_pods=[leader], revisions=known))
        assert shortly(plan) == ["patch Pod x-0"]
        assert plan.result.after == least


def test_91_an_error_in_between_does_not_hold_back_the_mark() -> None:
    cluster = cluster_with(lived=4, restartBackoff={})
    leader = counting(cluster.leaders[0], 1)
    leader = {**leader, "spec": {**leader["spec"], "hostname": ""}}
    plan = plan_of(about(cluster, leader, leader=leader, workers=None, group_pods=[leader]))
    assert shortly(plan) == ["patch Pod x-0"]
    assert isinstance(plan.result.error, DecisionError)


def test_92_exhaustion_comes_before_the_back_off() -> None:
    cluster = cluster_with(lived=1, maxGroupRestarts=0, restartBackoff={})
    assert shortly(plan_of(about(cluster))) == TERMINATED
    leader = annotated(cluster.leaders[0], **{"group-recreate-pending": "x-0-1"})
    assert shortly(plan_of(about(cluster, leader=leader))) == TERMINATED


def test_77_a_deleted_leader_touches_neither_counters_nor_finalizers() -> None:
    cluster = cluster_with(maxGroupRestarts=0)
    gone = exhausted_leader(cluster, recover="true")
    for lws in (cluster.lws, None, with_meta(cluster.lws, **GOING)):
        assert plan_of(about(cluster, gone, deleted=True, lws=lws)).actions == ()


# Gates ----------------------------------------------------------------------------------------------------------------


def gated(pod: Obj, created: str = "2026-10-20T10:00:00Z") -> Obj:
    """The leader at its gate."""
    pod = with_meta(pod, creationTimestamp=created)
    return {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": names.GROUP_REPLACEMENT_GATE}]}}


def test_a_gated_leader_waits_for_groups_that_still_take_a_place() -> None:
    cluster = cluster_with(replicas=3)
    first, second = gated(cluster.leaders[0]), gated(cluster.leaders[1], "2026-10-20T10:00:01Z")
    going = with_meta(cluster.leaders[2], **GOING)
    assert gates.waits_for(first, [first, second, cluster.leaders[2]]) == 0
    assert gates.waits_for(first, [first, second, going]) == 0, "the oldest has the one place that is free"
    assert gates.waits_for(second, [first, second, going]) == 1
    assert gates.waits_for(second, [first, second, annotated(cluster.leaders[2], **MARK)]) == 1
    leftover = worker_of(cluster, 2)
    assert gates.waits_for(second, [first, second, leftover]) == 1, "workers whose leader is gone"
    assert gates.waits_for(second, [second, going]) == 1
    assert gates.waits_for(second, [with_meta(first, **GOING), second]) == 1


def test_the_gate_of_others_stays() -> None:
    leader = gated(cluster_with().leaders[0])
    leader["spec"]["schedulingGates"].append({"name": "example.com/wait"})
    freed = gates.without_gate(leader)
    assert freed is not None
    assert freed["spec"]["schedulingGates"] == [{"name": "example.com/wait"}]
    assert gates.without_gate(freed) is None
    assert "schedulingGates" not in (gates.without_gate(gated(leader)) or leader)["spec"]


def test_a_gated_leader_is_admitted_or_says_what_it_waits_for() -> None:
    cluster = cluster_with(replicas=2)
    leader = gated(cluster.leaders[0])
    going = with_meta(cluster.leaders[1], **GOING)
    fields: dict[str, Any] = {"leader": leader, "workers": None}
    plan = plan_of(about(cluster, leader, set_pods=[leader, going], **fields))
    assert shortly(plan) == ["emit GroupReplacementDeferred"]
    assert plan.result.after == 10
    emit = plan.actions[0]
    assert isinstance(emit, Emit)
    assert emit.event.action == "Update"
    note = "Leader pod x-0 waits for 1 terminating group(s) to be removed before scheduling"
    assert emit.event.note == note
    plan = plan_of(about(cluster, leader, set_pods=[leader, cluster.leaders[1]], **fields))
    assert shortly(plan) == ["modify Pod x-0", "Create"]
    event = plan.actions[0].on_success
    assert event is not None
    assert (event.reason, event.note) == ("GroupReplacementAdmitted", "Leader pod x-0 admitted for scheduling")


# What is counted ------------------------------------------------------------------------------------------------------


def test_the_cause_of_a_restart_is_told_of_its_decision() -> None:
    cluster = cluster_with(lived=10, restartBackoff={})
    pending = annotated(cluster.leaders[0], **{"group-recreate-pending": "x-0-1"})
    container = {**cluster.leaders[0], "status": {"phase": "Running", "containerStatuses": [{"restartCount": 1}]}}
    for snapshot, cause in (
        (about(cluster), restarts.POD_LOST),
        (about(cluster, container, leader=container), restarts.CONTAINER_RESTART),
        (about(cluster, pending, leader=pending), restarts.AFTER_BACKOFF),
        (about(cluster, pending, leader=pending, live=frozenset()), ""),
        (about(cluster, cluster.leaders[0]), ""),
        (about(cluster_with(lived=4, restartBackoff={})), ""),
    ):
        assert restarts.cause(snapshot, decide(snapshot)) == cause
