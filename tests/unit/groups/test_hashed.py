"""What is decided about a set in Hash mode (specification: 30 §3, §12)."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups import counters, hashed, revisions, services
from lwskit.groups.hashed import Counts
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import SetSnapshot
from lwskit.runtime.objects import Obj, labels_of
from lwskit.runtime.plan import Apply, Create, Delete, Emit, Modify, NeedFresh, Plan, UpdateStatus
from lwskit.runtime.request import Result
from tests.unit.groups.hash_objects import HASHED, KEY, NOW, deployment, hash_lws, key, leader, pool_of


def revision_of(lws: Obj, number: int = 1) -> Obj:
    """The revision that records the set as it is."""
    made = revisions.new_revision(lws, [], revisions.record(lws))
    return {**made, "revision": number, "metadata": {**made["metadata"], "uid": f"rev-{number}"}}


def decide(lws: Obj, **fields: Any) -> Plan:
    plan = hashed.decide(SetSnapshot(now=NOW, lws=lws, **fields), HASHED)
    assert isinstance(plan, Plan)
    return plan


def kinds(plan: Plan) -> list[str]:
    return [f"{type(a).__name__} {a.kind.kind}" for a in plan.actions if not isinstance(a, Emit)]


def status_of(plan: Plan) -> Obj:
    (write,) = (a for a in plan.actions if isinstance(a, UpdateStatus))
    return write.obj["status"]


def said(plan: Plan) -> dict[str, str]:
    return {c["type"]: c["status"] for c in status_of(plan)["conditions"]}


def living(revision: str, ready: int, unready: int = 0) -> list[Obj]:
    return [leader(i, revision=revision, ready=i < ready) for i in range(ready + unready)]


def test_a_new_set() -> None:
    """30 §18 line 6: revision, Deployment, Service and a first status, in that order."""
    lws = hash_lws()
    plan = decide(lws)
    assert kinds(plan) == [
        "Create ControllerRevision",
        "Apply Deployment",
        "Create Service",
        "UpdateStatus LeaderWorkerSet",
    ]
    create, apply, *_ = plan.actions
    assert isinstance(create, Create)
    assert isinstance(apply, Apply)
    assert labels_of(apply.obj)[names.REVISION_LABEL] == labels_of(create.obj)[names.REVISION_LABEL]
    assert apply.on_success is not None
    assert apply.on_success.note == "Created leader deployment x"
    assert apply.on_failure is not None
    assert apply.on_failure.note == "Failed to create leader deployment x: {error}"
    assert said(plan) == {"Progressing": "True", "Degraded": "False"}
    assert plan.result == Result()


def test_a_template_without_a_spec_is_left_to_the_api_server() -> None:
    """The schema allows it, and a set in Ordinal mode is refused its StatefulSet."""
    lws = hash_lws()
    lws["spec"]["leaderWorkerTemplate"]["workerTemplate"] = {}
    (apply,) = (a for a in decide(lws).actions if isinstance(a, Apply))
    assert apply.obj["spec"]["template"]["spec"].keys() == {"subdomain", "readinessGates"}


@pytest.mark.parametrize("reason", ["deleting", "gone", "workload"])
def test_nothing_is_done(reason: str) -> None:
    """30 §18 line 8: a Deployment that is being deleted is waited for; a set that goes is left alone."""
    lws = hash_lws()
    workload = deployment(lws)
    if reason == "gone":
        assert hashed.decide(SetSnapshot(now=NOW, lws=None), HASHED) == Plan(note="the set is gone")
        return
    (lws if reason == "deleting" else workload)["metadata"]["deletionTimestamp"] = "2026-10-20T09:00:00Z"
    plan = decide(lws, workload=workload)
    assert plan.actions == ()
    assert plan.result.after == (5.0 if reason == "workload" else 0.0)


def test_leaders_without_an_owner_are_taken_back_by_a_set_that_is_there() -> None:
    """Deleted with its dependents orphaned, the set may be gone, and what it owned would be collected."""
    lws = hash_lws()
    workload = deployment(lws)
    del workload["metadata"]["ownerReferences"]
    seen: dict[str, Any] = {"workload": workload, "revisions": [revision_of(lws)]}
    asked = hashed.decide(SetSnapshot(now=NOW, lws=lws, **seen), HASHED)
    assert isinstance(asked, NeedFresh)
    assert asked.keys == ((LEADER_WORKER_SET, KEY),)
    plan = decide(lws, **seen, live=frozenset(asked.keys))
    assert any(isinstance(a, Apply) and a.obj["metadata"]["ownerReferences"] for a in plan.actions)


def test_a_set_that_another_kind_leads_is_left_alone() -> None:
    plan = decide(hash_lws(), led_by="Fleet.example.com")
    assert kinds(plan) == ["UpdateStatus LeaderWorkerSet"]
    assert said(plan) == {"Degraded": "True"}


def test_a_second_reconcile_changes_nothing() -> None:
    """30 §18 line 7: one revision, no request but the apply, which the executor skips; no time to come back at."""
    lws = hash_lws()
    revision = revision_of(lws)
    name = labels_of(revision)[names.REVISION_LABEL]
    workload = deployment(lws, name, replicas=2, readyReplicas=2, updatedReplicas=2)
    seen = {
        "workload": workload,
        "revisions": [revision],
        "shared_service": services.shared_service(lws),
        "pool": pool_of(*living(name, 2)).state_of(KEY),
    }
    first = decide(lws, **seen)
    assert said(first)["Available"] == "True"
    lws["status"] = status_of(first)
    plan = decide(lws, **seen)
    assert kinds(plan) == ["Apply Deployment"]
    (apply,) = plan.actions
    assert isinstance(apply, Apply)
    assert apply.obj["spec"] == workload["spec"]
    assert plan.result == Result()


def test_a_changed_template_is_a_new_revision_and_not_available() -> None:
    """30 §18 lines 12, 38: until the Deployment has looked at it the old counts say nothing, and no revision goes."""
    before = hash_lws()
    revision = revision_of(before)
    name = labels_of(revision)[names.REVISION_LABEL]
    lws = hash_lws(image="b")
    pool = pool_of(*living(name, 2)).state_of(KEY)
    seen = {"revisions": [revision], "pool": pool, "shared_service": services.shared_service(lws)}
    plan = decide(lws, workload=deployment(before, name, replicas=2, readyReplicas=2, updatedReplicas=2), **seen)
    assert kinds(plan) == ["Create ControllerRevision", "Apply Deployment", "UpdateStatus LeaderWorkerSet"]
    create, apply, _ = plan.actions
    assert isinstance(create, Create)
    assert isinstance(apply, Apply)
    new = labels_of(create.obj)[names.REVISION_LABEL]
    assert new != name
    assert labels_of(apply.obj["spec"]["template"])[names.REVISION_LABEL] == new
    assert said(plan) == {"UpdateInProgress": "True", "Progressing": "True", "Degraded": "False"}
    assert "updatedReplicas" not in status_of(plan)
    # Applied, and not looked at yet.
    after = decide(
        lws,
        workload=deployment(lws, new, observed=False, replicas=2, readyReplicas=2, updatedReplicas=2),
        **{**seen, "revisions": [revision, {**create.obj, "metadata": {**create.obj["metadata"], "uid": "rev-2"}}]},
    )
    assert kinds(after) == ["Apply Deployment", "UpdateStatus LeaderWorkerSet"]
    assert said(after)["UpdateInProgress"] == "True"
    assert "updatedReplicas" not in status_of(after)


def test_a_deployment_that_nobody_has_looked_at_says_nothing() -> None:
    """30 §12: one that is made anew has the leaders of the last one before it counts them."""
    lws = hash_lws()
    revision = revision_of(lws)
    name = labels_of(revision)[names.REVISION_LABEL]
    counts = {"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2}
    pool = pool_of(*living(name, 2)).state_of(KEY)
    seen = {"revisions": [revision], "pool": pool, "shared_service": services.shared_service(lws)}
    lws["status"] = status_of(decide(lws, workload=deployment(lws, name, **counts), **seen))
    anew = {**deployment(lws, name), "status": {}}
    assert kinds(decide(lws, workload=anew, **seen)) == ["Apply Deployment"]
    edited = {**lws, "metadata": {**lws["metadata"], "generation": 9}}
    assert status_of(decide(edited, workload=anew, **seen))["observedGeneration"] == 9


def test_what_a_finished_rollout_leaves_behind_goes() -> None:
    lws = hash_lws()
    old, new = revision_of(hash_lws(image="b"), 1), revision_of(lws, 2)
    name = labels_of(new)[names.REVISION_LABEL]
    seen: dict[str, Any] = {
        "revisions": [old, new],
        "shared_service": services.shared_service(lws),
        "pool": pool_of(*living(name, 2)).state_of(KEY),
        "workload": deployment(lws, name, replicas=2, readyReplicas=2, updatedReplicas=2),
    }
    deletions = [a.key.name for a in decide(lws, **seen).actions if isinstance(a, Delete)]
    assert deletions == [old["metadata"]["name"]]
    assert not any(isinstance(a, Delete) for a in decide(lws, **seen, healthy=False).actions)
    pool = pool_of(*living(name, 2), leader(9, revision="older")).state_of(KEY)
    assert not any(isinstance(a, Delete) for a in decide(lws, **{**seen, "pool": pool}).actions)


def test_each_group_with_a_service_of_its_own_needs_no_shared_one() -> None:
    lws = hash_lws()
    lws["spec"]["networkConfig"] = {"subdomainPolicy": "UniquePerReplica"}
    assert "Create Service" not in kinds(decide(lws))


D = tuple[int, int, int]


def counted(d: D, pods: list[Obj], *, replicas: int = 2, observed: bool = True, revision: str = "r1") -> Counts:
    live = deployment(hash_lws(replicas=replicas), revision, observed=observed)
    live["status"] |= dict(zip(("replicas", "readyReplicas", "updatedReplicas"), d, strict=True))
    now = HASHED.observe(live)
    return hashed.count(now, pool_of(*pods).state_of(KEY), replicas, "r1")


@pytest.mark.parametrize(
    ("d", "pods", "wanted"),
    [
        ((3, 2, 2), [*living("r1", 2), leader(9, revision="r0")], ["UpdateInProgress", "Progressing"]),
        ((1, 1, 1), living("r1", 1), ["Progressing"]),
        ((2, 0, 2), living("r1", 0, 2), ["Progressing"]),
        ((2, 2, 2), living("r1", 2), ["Available"]),
        ((2, 2, 2), [], ["Available"]),
    ],
    ids=["surging", "one-of-two", "none-ready", "all", "pods-not-seen"],
)
def test_conditions(d: D, pods: list[Obj], wanted: list[str]) -> None:
    """30 §18 line 39: all conditions of one pass at once, by the counts of the Deployment and the leaders."""
    found = counted(d, pods).conditions(hash_lws())
    assert [c.type for c in found if c.status] == wanted
    assert found[-1].type == "Degraded"


def test_an_update_ends_when_the_last_new_group_is_there() -> None:
    """Its only leader may wait at its gate: an old leader that is still there tells that the update goes on."""
    waiting = leader(1, gated=True, ready=False)
    going = leader(2, revision="r0", leaving=True)
    one = counted((1, 0, 1), [waiting, going], replicas=1)
    assert (one.updating, one.available, one.progressing) == (False, False, True)
    staying = counted((1, 1, 0), [leader(2, revision="r0")], replicas=1)
    assert (staying.updating, staying.available) == (True, False)


def test_scaling_is_no_update() -> None:
    """30 §12 (iv): while leaders come or go the set progresses, and no update is in progress."""
    for d, pods, replicas in (((2, 2, 2), living("r1", 2), 4), ((3, 2, 3), living("r1", 2, 1), 4)):
        found = counted(d, pods, replicas=replicas, observed=False)
        assert (found.updating, found.available, found.progressing) == (False, False, True)


def test_counts_of_another_template_are_not_passed_on() -> None:
    found = counted((3, 3, 3), living("r1", 1), replicas=3, observed=False)
    assert found.updated == 1
    assert counted((3, 3, 3), living("r1", 1), replicas=3, revision="r0").updated == 1
    assert not counted((3, 3, 3), living("r1", 3), replicas=3, observed=False).available
    assert counted((3, 3, 3), living("r1", 3), replicas=3).available


@pytest.mark.parametrize(
    ("d", "pods", "wanted"),
    [
        (
            (2, 2, 2),
            [leader(0), leader(1, exhausted=True)],
            [("Available", False), ("Progressing", False), ("UpdateInProgress", False), ("Degraded", True)],
        ),
        (
            (2, 0, 2),
            [leader(0, ready=False), leader(1, exhausted=True, ready=False)],
            [("Available", False), ("Progressing", True), ("UpdateInProgress", False), ("Degraded", True)],
        ),
        (
            (2, 1, 1),
            [leader(0), leader(1, exhausted=True, leaving=True), leader(2, revision="r0", ready=False)],
            [("Available", False), ("UpdateInProgress", True), ("Progressing", False), ("Degraded", True)],
        ),
    ],
    ids=["one-exhausted", "another-unready", "updating"],
)
def test_conditions_of_a_degraded_set(d: D, pods: list[Obj], wanted: list[tuple[str, bool]]) -> None:
    assert [(c.type, c.status) for c in counted(d, pods).conditions(hash_lws())] == wanted


def test_update_in_progress_is_taken_back() -> None:
    lws = hash_lws()
    lws["status"] = {"conditions": [{"type": "UpdateInProgress", "status": "True", "reason": "GroupsUpdating"}]}
    found = counted((2, 1, 2), living("r1", 1, 1)).conditions(lws)
    assert [(c.type, c.status) for c in found] == [
        ("Progressing", True),
        ("UpdateInProgress", False),
        ("Degraded", False),
    ]


def test_the_status_in_full() -> None:
    lws = hash_lws()
    revision = revision_of(lws)
    name = labels_of(revision)[names.REVISION_LABEL]
    workload = deployment(lws, name, replicas=2, readyReplicas=1, updatedReplicas=2)
    plan = decide(lws, workload=workload, revisions=[revision], pool=pool_of(*living(name, 1, 1)).state_of(KEY))
    status = status_of(plan)
    assert {k: v for k, v in status.items() if k != "conditions"} == {
        "replicas": 2,
        "readyReplicas": 1,
        "updatedReplicas": 2,
        "observedGeneration": 1,
        "hpaPodSelector": f"{names.NAME_LABEL}=x,{names.WORKER_INDEX_LABEL}=0",
    }
    (write,) = (a for a in plan.actions if isinstance(a, UpdateStatus))
    assert write.on_success is not None
    assert write.on_success.note == "Replicas are progressing, with 1 groups ready of total 2 groups"


# Counters -------------------------------------------------------------------------------------------------------------


def counting(lws: Obj, counts: dict[str, int]) -> Obj:
    text = "{" + ",".join(f'"{k}":{n}' for k, n in counts.items()) + "}"
    notes = {names.GROUP_RESTART_COUNTS_ANNOTATION: text}
    return {**lws, "metadata": {**lws["metadata"], "annotations": notes}}


def dropped(lws: Obj, pods: list[Obj], revision: str, **fields: Any) -> list[str]:
    """The counters that are dropped from a set with that Deployment."""
    pool = pool_of(*pods)
    workload = deployment(lws, revision, replicas=2, readyReplicas=1, updatedReplicas=2)
    found = decide(
        lws,
        workload=workload,
        revisions=[],
        pool=pool.state_of(KEY),
        owned=pool.owned(KEY, revision),
        **fields,
    )
    (drop, *_) = [*(a for a in found.actions if isinstance(a, Modify)), None]
    if drop is None:
        return []
    after = drop.change(lws)
    before = counters.read(lws)
    left = counters.read(after) if after is not None else before
    return sorted(before.keys() - left.keys())


def test_counters_that_no_group_can_take_over_are_dropped() -> None:
    """30 §11 item 4: of two places one is taken, so of the three counts that nobody has the highest stays."""
    counts = {f"r1/{key(i)}": n for i, n in ((0, 5), (7, 1), (8, 3), (9, 2))} | {"r0/z": 9}
    lws = counting(hash_lws(), counts)
    assert dropped(lws, [leader(0)], "r1") == [f"r1/{key(7)}", f"r1/{key(9)}"]
    assert dropped(lws, [leader(0), leader(1)], "r1") == [f"r1/{key(i)}" for i in (7, 8, 9)]
    assert dropped(lws, [leader(0), leader(1)], "r1", healthy=False) == []
    waiting = [leader(0), leader(1), leader(2, gated=True)]
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["maxSurge"] = 1
    assert dropped(lws, waiting, "r1") == [f"r1/{key(7)}", f"r1/{key(9)}"]
    kept = [leader(0), leader(7, exhausted=True), leader(2, gated=True)]
    assert dropped(lws, kept, "r1") == [f"r1/{key(8)}", f"r1/{key(9)}"]


def test_a_count_waits_for_a_leader_that_was_let_in_without_one() -> None:
    lws = counting(hash_lws(), {f"r1/{key(7)}": 3, f"r1/{key(8)}": 1})
    assert dropped(lws, [leader(0), leader(1)], "r1", unclaimed=1) == [f"r1/{key(8)}"]


def test_counters_that_cannot_be_read_hold_up_nothing_else() -> None:
    lws = hash_lws()
    lws["metadata"]["annotations"] = {names.GROUP_RESTART_COUNTS_ANNOTATION: "[]"}
    plan = decide(lws, workload=deployment(lws))
    assert "Apply Deployment" in kinds(plan)
    assert plan.result.error is not None
