"""Plans of sets in Hash mode: what an edit is, its steps, where they end, and at what cost (30 §7, §13, §14)."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups import budget, counters, revisions
from lwskit.groups.model import DecisionError
from lwskit.groups.scene import Scene
from lwskit.groups.status import stamp
from lwskit.runtime.objects import Obj, labels_of
from lwskit.simulate.edit import Verdict
from lwskit.simulate.hashed_plan import restarted
from lwskit.simulate.output import as_data, text
from lwskit.simulate.plan import plan
from lwskit.simulate.report import Outcome, Report
from tests.unit.groups.hash_objects import HASHED, NOW, WORKERS, deployment, hash_lws, leader, worker
from tests.unit.groups.test_victims import on, replica_set

PAGE = Path(__file__).parents[3] / "docs" / "plan.md"


def made_by_deployment(uid: str, size: int, template: Obj, **fields: int) -> Obj:
    """A ReplicaSet of the set's Deployment with that template."""
    one = replica_set(uid, size, **fields)
    one["spec"]["template"] = template
    one["metadata"]["namespace"] = "ns"
    one["metadata"]["ownerReferences"][0]["apiVersion"] = "apps/v1"
    return one


def recorded(lws: Obj, number: int) -> tuple[Obj, str]:
    """The revision of a set as it is, and its key."""
    record = revisions.new_revision(lws, [], revisions.record(lws))
    record["metadata"] |= {"uid": f"revision-{number}", "namespace": "ns"}
    record["revision"] = number
    return record, revisions.revision_key(record)


def scene(replicas: int = 3, *, ready: int | None = None, left: tuple[int, ...] = (), **fields: Any) -> Scene:
    """A set whose first `ready` groups are ready, and groups of which workers are left."""
    lws = hash_lws(replicas=replicas)
    lws["spec"] |= fields
    record, key = recorded(lws, 1)
    workload = deployment(lws, key)
    most = replicas if ready is None else ready
    pods = [on(f"n{i}", leader(i, ready=i < most, revision=key)) for i in range(replicas)]
    one = made_by_deployment("rs", replicas, workload["spec"]["template"])
    one["status"] = {"replicas": replicas, "readyReplicas": ready, "availableReplicas": ready}
    return Scene(
        name="x",
        namespace="ns",
        lws=lws,
        workload=workload,
        between=(one,),
        pods=(*pods, *(worker(i, leaving=True) for i in left)),
        revisions=(record,),
    )


def planned(where: Scene, new: Obj, order: str = "") -> Report:
    return plan(where, new, order, HASHED, WORKERS, NOW)


def edited(where: Scene, *, image: str = "", surge: int | None = None, down: int | None = None, **fields: Any) -> Obj:
    new = copy.deepcopy(where.lws)
    assert new is not None
    new["spec"] |= fields
    if image:
        new["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] = image
    rolling = new["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    rolling |= {k: v for k, v in (("maxSurge", surge), ("maxUnavailable", down)) if v is not None}
    return new


def moves(report: Report) -> list[tuple[str, list[str], tuple[str, ...], tuple[str, ...], int, int]]:
    """Of each step: the event, what goes, what is made, what is let in, and how many are ready and take room."""
    return [(s.event, [o.name for o in s.down], s.made, s.let_in, s.ready, s.total) for s in report.hash_steps]


def codes(report: Report) -> list[str]:
    return [n.code for n in report.notices]


class TestRollout:
    def test_the_next_group_waits_until_the_former_is_gone(self) -> None:
        """Without surge never more groups take room than are wanted."""
        where = scene(2)
        report = planned(where, edited(where, image="b", surge=0, down=1))
        assert (report.verdict, report.rolled, report.outcome) == (Verdict.ROLLS, 2, Outcome.DONE)
        first, gone, ready, *_ = report.hash_steps
        ((going,), (other,)) = ([one.name for one in step.down] for step in (first, ready))
        assert moves(report) == [
            ("the edit", [going], ("new 1",), (), 1, 2),
            (f"{going} is gone", [], (), ("new 1",), 1, 1 + 1),
            ("new 1 is ready", [other], ("new 2",), (), 1, 2),
            (f"{other} is gone", [], (), ("new 2",), 1, 2),
            ("new 2 is ready", [], (), (), 2, 2),
        ]
        assert (first.waiting, first.going, gone.waiting) == (("new 1",), (going,), ())
        assert (report.lowest, report.floor, report.at_worst, report.peak_groups) == (1, 1, 1, 2)
        assert report.peak_pods == report.pods_before == 6

    def test_under_immediate_it_does_not(self) -> None:
        where = scene(2)
        new = edited(where, image="b", surge=0, down=1, groupReplacementPolicy=names.REPLACEMENT_IMMEDIATE)
        report = planned(where, new)
        assert report.hash_steps[0].let_in == ("new 1",)
        assert (report.peak_groups, report.peak_pods, report.outcome) == (3, 9, Outcome.DONE)

    def test_surge_comes_first(self) -> None:
        """No group that is ready goes before a new one is."""
        where = scene(3)
        report = planned(where, edited(where, image="b", surge=1, down=0))
        assert moves(report)[0] == ("the edit", [], ("new 1",), ("new 1",), 3, 4)
        assert (report.lowest, report.peak_groups, report.at_worst) == (3, 4, 3)

    def test_a_template_that_never_gets_ready(self) -> None:
        """30 §13: it stalls after surge and unavailability, and the others serve on."""
        where = scene(4)
        report = planned(where, edited(where, image="broken", surge=1, down=1), "never")
        assert (report.outcome, report.lowest, report.at_worst) == (Outcome.STALLED, 3, 3)
        assert codes(report) == ["any-alike", "held-readiness"]
        notice = report.notices[-1]
        assert notice.message == (
            "the rollout waits for new 1, new 2: until they are ready, the Deployment takes away no further group that "
            "is"
        )
        assert "after 600 s without progress Deployment x says ProgressDeadlineExceeded" in notice.hints[0]

    def test_groups_that_are_not_ready_go_first(self) -> None:
        where = scene(3, ready=2)
        report = planned(where, edited(where, image="b", surge=0, down=1))
        (going,) = report.hash_steps[0].down
        assert (going.name, going.why, going.sure) == ("x-rs-2", "not ready", True)
        assert report.lowest == 2

    def test_what_is_in_the_leaders_template_alone_rolls_all_groups_too(self) -> None:
        where = scene()
        new = edited(where)
        new["metadata"]["annotations"] = {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}
        report = planned(where, new)
        assert (report.verdict, report.rolled, report.outcome) == (Verdict.ROLLS, 3, Outcome.DONE)

    def test_back_to_a_template_that_has_a_replica_set(self) -> None:
        """Its groups stay."""
        where = scene(2)
        assert where.lws is not None
        assert where.workload is not None
        new = edited(where, image="b")
        record, key = recorded(new, 2)
        newer = deployment(new, key)
        two = made_by_deployment("rs2", 1, newer["spec"]["template"], created=1, most=2)
        (one,) = where.between
        one["spec"]["replicas"] = 1
        one["metadata"]["annotations"] = two["metadata"]["annotations"] = {
            "deployment.kubernetes.io/desired-replicas": "2",
            "deployment.kubernetes.io/max-replicas": "2",
        }
        pods = (where.pods[0], on("n5", leader(5, revision=key, ready=False), "rs2"))
        rolling = Scene(
            name="x",
            namespace="ns",
            lws=new,
            workload=newer,
            between=(one, two),
            pods=pods,
            revisions=(*where.revisions, record),
        )
        report = planned(rolling, {**new, "spec": where.lws["spec"]})
        assert (report.verdict, report.rolled, report.outcome) == (Verdict.ROLLS, 1, Outcome.DONE)
        assert [one.name for step in report.hash_steps for one in step.down] == ["x-rs-5"]
        assert report.lowest == 1

    def test_surge_that_is_broken_is_not_made_anew_by_going_back(self) -> None:
        """Both broken groups go, and one comes back in their place: that one is counted."""
        where = scene(3)
        assert where.lws is not None
        old = where.lws["spec"]
        new = edited(where, image="b", surge=1, down=1)
        record, key = recorded(new, 2)
        newer = deployment(new, key)
        two = made_by_deployment("rs2", 2, newer["spec"]["template"], created=1)
        two["status"] = {"replicas": 2}
        (one,) = where.between
        one["spec"]["replicas"] = 2
        one["status"] = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}
        for made in (one, two):
            made["metadata"]["annotations"] = {
                "deployment.kubernetes.io/desired-replicas": "3",
                "deployment.kubernetes.io/max-replicas": "4",
            }
        broken = [on(f"n{i}", leader(i, revision=key, ready=False, created=i), "rs2") for i in (5, 6)]
        rolling = replace(
            where,
            lws=new,
            workload=newer,
            between=(one, two),
            pods=(*where.pods[:2], *broken),
            revisions=(*where.revisions, record),
        )
        back = copy.deepcopy(new)
        back["spec"]["leaderWorkerTemplate"] = old["leaderWorkerTemplate"]
        report = planned(rolling, back)
        assert sorted(one.name for step in report.hash_steps for one in step.down) == ["x-rs-5", "x-rs-6"]
        assert [name for step in report.hash_steps for name in step.made] == ["new 1"]
        assert next(text(report)) == "ns/x: makes 1 of 3 groups anew"

    def test_surge_that_stays_is_not_counted(self) -> None:
        """Of the two that are made before it stalls one is surge."""
        where = scene(4)
        report = planned(where, edited(where, image="broken", surge=1, down=1), "never")
        assert (report.hash_steps[-1].made or report.hash_steps[0].made, report.rolled) == (("new 1", "new 2"), 1)

    def test_leaders_that_come_just_when_groups_go(self) -> None:
        """With so much surge that all are made at once, whether some wait hangs on the moment: it is told."""
        where = scene(2)
        report = planned(where, edited(where, image="b", surge=2, down=1))
        assert report.hash_steps[0].either == ("new 2",)
        (notice,) = [n for n in report.notices if n.code == "gate-close-call"]
        assert notice.message == (
            "at step 1 new 2 may be let in before the groups that go then are seen to go; 4 groups, 12 pods would take "
            "room until these are gone"
        )

    def test_a_deployment_that_is_paused(self) -> None:
        where = scene(2)
        assert where.workload is not None
        where.workload["spec"]["paused"] = True
        report = planned(where, edited(where, image="b"))
        assert (report.outcome, codes(report)) == (Outcome.STALLED, ["held-paused"])

    def test_min_ready_seconds_that_somebody_has_set(self) -> None:
        where = scene(2)
        assert where.workload is not None
        where.workload["spec"]["minReadySeconds"] = 30
        assert "min-ready-seconds" in codes(planned(where, edited(where, image="b")))


class TestScaling:
    def test_fewer_groups(self) -> None:
        where = scene(3, ready=2)
        found = planned(where, edited(where, replicas=2))
        assert (found.verdict, found.outcome) == (Verdict.SCALES, Outcome.DONE)
        assert moves(found) == [
            ("the edit", ["x-rs-2"], (), (), 2, 3),
            ("x-rs-2 is gone", [], (), (), 2, 2),
        ]
        lines = list(text(found))
        assert lines[0] == "ns/x: scales from 3 to 2 groups"
        assert "  note: scaling 3 → 2 would remove x-rs-2: not ready [scale-down]" in lines

    def test_more_groups_come_at_once(self) -> None:
        where = scene(2)
        report = planned(where, edited(where, replicas=4))
        assert moves(report)[0] == ("the edit", [], ("new 1", "new 2"), ("new 1", "new 2"), 2, 4)
        assert (report.outcome, report.peak_groups) == (Outcome.DONE, 4)

    def test_a_group_that_still_goes_keeps_one_waiting(self) -> None:
        where = scene(2, left=(9,))
        report = planned(where, edited(where, replicas=3))
        assert (report.hash_steps[0].waiting, report.groups_before) == (("new 1",), 3)
        assert report.hash_steps[1].let_in == ("new 1",)

    def test_fewer_groups_with_a_new_template(self) -> None:
        where = scene(3, ready=2)
        found = planned(where, edited(where, replicas=2, image="b"))
        assert (found.verdict, found.rolled, found.outcome) == (Verdict.ROLLS, 2, Outcome.DONE)
        assert codes(found) == ["scale-down"]


class TestLeadersThatWereLetGo:
    def scene(self) -> Scene:
        """One of two leaders is nobody's any more, and has a worker; its ReplicaSet has made another in its place."""
        where = scene(2)
        key = labels_of(where.pods[0])[names.REVISION_LABEL]
        loose = leader(9, revision=key, maker="")
        return replace(where, pods=(*where.pods, loose, worker(9)))

    def test_they_are_no_groups(self) -> None:
        where = self.scene()
        report = planned(where, edited(where, image="b", surge=0, down=1))
        assert (report.ready_before, report.groups_before, report.outcome) == (2, 2, Outcome.DONE)
        assert "x-rs-9" not in {one.name for step in report.hash_steps for one in step.down}
        (notice,) = report.notices
        assert notice.code == "leader-let-go"
        assert notice.message == (
            "no ReplicaSet counts x-rs-9, so it is not among the groups of the plan; nobody removes it"
        )
        assert notice.hints == ("`kubectl -n ns delete pod x-rs-9`, once you are done with it",)

    def test_one_that_goes_takes_its_place_all_the_same(self) -> None:
        where = self.scene()
        where.pods[2]["metadata"]["deletionTimestamp"] = "2026-10-20T09:59:00Z"
        report = planned(where, edited(where, replicas=3))
        assert (report.groups_before, report.hash_steps[0].waiting) == (3, ("new 1",))
        assert "leader-let-go" not in codes(report)


class TestStalls:
    def test_a_group_that_is_not_ready_and_stays(self) -> None:
        where = scene(2, ready=1)
        unschedulable = [{"type": "PodScheduled", "status": "False", "message": "no node"}]
        where.pods[1]["status"] = {"phase": "Pending", "conditions": unschedulable}
        del where.pods[1]["spec"]["nodeName"]
        report = planned(where, edited(where, replicas=3))
        assert (report.outcome, codes(report)) == (Outcome.STALLED, ["not-ready"])
        assert report.notices[0].message == "x-rs-1 is not ready, and nothing in this edit makes it anew"

    def test_a_group_without_a_restart_left_keeps_its_successor_waiting(self) -> None:
        where = scene(2)
        key = labels_of(where.pods[0])[names.REVISION_LABEL]
        marked = leader(1, exhausted=True, leaving=True, revision=key)
        report = planned(
            Scene(
                name="x",
                namespace="ns",
                lws=where.lws,
                workload=where.workload,
                between=where.between,
                pods=(where.pods[0], on("n1", marked)),
                revisions=where.revisions,
            ),
            edited(where),
        )
        assert report.outcome is Outcome.STALLED
        assert codes(report) == ["held-restart-budget"]
        assert "x-rs-1 is kept without a restart left; new 1 waits at the gate for that" in report.notices[0].message
        # A new template lets it go.
        assert planned(where, edited(where, image="b")).outcome is Outcome.DONE

    def test_a_leader_of_a_replaced_template_at_its_gate(self) -> None:
        """What lets it in is neither waited for nor named by `explain`: it is going back."""
        where = scene(2)
        assert where.lws is not None
        new = edited(where, image="b", surge=1, down=0)
        record, key = recorded(new, 2)
        newer = deployment(new, key)
        two = made_by_deployment("rs2", 1, newer["spec"]["template"], created=1)
        for made in (*where.between, two):
            made["metadata"]["annotations"] = {
                "deployment.kubernetes.io/desired-replicas": "2",
                "deployment.kubernetes.io/max-replicas": "3",
            }
        old = labels_of(where.pods[0])[names.REVISION_LABEL]
        lost = on("", leader(7, revision=old, gated=True, ready=False, phase="Pending", created=9))
        broken = on("n5", leader(5, revision=key, ready=False, created=5), "rs2")
        rolling = replace(
            where,
            lws=new,
            workload=newer,
            between=(*where.between, two),
            pods=(where.pods[0], lost, broken),
            revisions=(*where.revisions, record),
        )
        report = planned(rolling, copy.deepcopy(new), "never")
        (notice,) = [n for n in report.notices if n.code == "held-gate"]
        assert notice.message.startswith("x-rs-7 waits at the gate: the leader is of revision ")
        assert notice.hints == (
            "x-rs-7 is of a template that is replaced: it is let in if you go back to that one, and goes when the "
            "update goes on",
        )
        back = copy.deepcopy(new)
        back["spec"]["leaderWorkerTemplate"] = where.lws["spec"]["leaderWorkerTemplate"]
        assert "x-rs-7" in planned(rolling, back).hash_steps[0].let_in

    def test_a_replica_set_that_is_being_deleted_while_a_group_is_kept(self) -> None:
        """It makes no leaders, nor does anybody else, until the group is let go."""
        where = scene(2)
        key = labels_of(where.pods[0])[names.REVISION_LABEL]
        marked = on("n1", leader(1, exhausted=True, leaving=True, revision=key))
        going = on("n0", leader(0, leaving=True, revision=key))
        (one,) = where.between
        one["metadata"]["deletionTimestamp"] = "2026-10-20T09:59:00Z"
        where = replace(where, pods=(going, marked))
        report = planned(where, edited(where, replicas=3))
        assert [step.made for step in report.hash_steps] == [(), ()]
        assert report.outcome is Outcome.STALLED
        assert codes(report) == ["floor-unready-at-start", "replica-set-deleting", "held-restart-budget"]
        assert report.notices[1].message == (
            "ReplicaSet x-rs is being deleted, and stays until x-rs-1 is gone; until then the Deployment makes no "
            "leader of its template"
        )
        # A new template lets the group go, and with it the ReplicaSet.
        assert planned(where, edited(where, image="b")).outcome is Outcome.DONE
        # Without a kept group it is gone as soon as its pods are, and another one is made.
        other = planned(replace(where, pods=(going,)), edited(where, replicas=3))
        assert (other.outcome, other.hash_steps[0].made) == (Outcome.DONE, ())
        assert other.hash_steps[1].made == ("new 1", "new 2", "new 3")

    def test_the_floor_is_told_of(self) -> None:
        where = scene(3, ready=1)
        report = planned(where, edited(where, image="b", surge=0, down=1), "never")
        assert (report.lowest, report.floor) == (1, 2)
        assert "floor-unready-at-start" in codes(report)


class TestRestart:
    def planned(self, where: Scene, name: str) -> Report:
        return restarted(where, name, "", HASHED, WORKERS, NOW)

    def test_the_next_group_waits_until_this_one_is_gone(self) -> None:
        report = self.planned(scene(2), "x-rs-1")
        assert moves(report) == [
            ("x-rs-1 fails", ["x-rs-1"], ("new 1",), (), 1, 2),
            ("x-rs-1 is gone", [], (), ("new 1",), 1, 2),
            ("new 1 is ready", [], (), (), 2, 2),
        ]
        assert next(text(report)) == "ns/x: recreates x-rs-1, one of 2 groups"
        assert (report.outcome, report.lowest, report.at_worst, report.peak_groups) == (Outcome.DONE, 1, 1, 2)
        assert not report.notices

    def test_under_immediate_it_does_not(self) -> None:
        report = self.planned(scene(2, groupReplacementPolicy=names.REPLACEMENT_IMMEDIATE), "x-rs-1")
        assert (report.hash_steps[0].let_in, report.peak_groups) == (("new 1",), 3)

    def limited(self, limit: int, count: int = 0, **template: Any) -> Scene:
        """A set of two groups with a limit of restarts, of which the second was restarted some times."""
        there = hash_lws()["spec"]["leaderWorkerTemplate"]
        where = scene(2, leaderWorkerTemplate={**there, "maxGroupRestarts": limit, **template})
        assert where.lws is not None
        if count:
            counted = json.dumps({counters.key_of_group(where.pods[1]): count})
            where.lws["metadata"].setdefault("annotations", {})[names.GROUP_RESTART_COUNTS_ANNOTATION] = counted
        return where

    def test_without_a_restart_left_the_group_is_kept(self) -> None:
        for where, times in ((self.limited(0), "0 times"), (self.limited(1, 1), "once")):
            report = self.planned(where, "x-rs-1")
            (step,) = report.hash_steps
            assert (step.made, step.waiting, step.let_in, step.ready) == (("new 1",), ("new 1",), (), 1)
            assert (report.outcome, report.good) == (Outcome.STALLED, False)
            assert next(text(report)) == "ns/x: keeps x-rs-1, one of 2 groups"
            assert codes(report) == ["restart-budget", "held-restart-budget"]
            limit = budget.limit_of(where.lws or {})
            assert report.notices[0].message == (
                f"x-rs-1 is kept, not recreated: maxGroupRestarts is {limit}, and it was restarted {times}"
            )

    def test_with_one_left_it_is_not(self) -> None:
        report = self.planned(self.limited(2, 1), "x-rs-1")
        assert (report.outcome, codes(report)) == (Outcome.DONE, [])
        # The limit is for each group.
        assert self.planned(self.limited(1, 1), "x-rs-0").outcome is Outcome.DONE

    def test_counts_that_cannot_be_read(self) -> None:
        where = self.limited(1)
        assert where.lws is not None
        where.lws["metadata"].setdefault("annotations", {})[names.GROUP_RESTART_COUNTS_ANNOTATION] = "[]"
        report = self.planned(where, "x-rs-1")
        assert (report.outcome, report.hash_steps) == (Outcome.STALLED, ())
        assert codes(report) == ["restart-counts-unreadable"]
        assert next(text(report)) == "ns/x: does not recreate x-rs-1, one of 2 groups"

    def test_a_group_that_is_kept_already(self) -> None:
        where = scene(2)
        key = labels_of(where.pods[0])[names.REVISION_LABEL]
        marked = on("n1", leader(1, exhausted=True, leaving=True, revision=key))
        with pytest.raises(DecisionError, match="x-rs-1 is kept without a restart left, so it is not recreated: `kub"):
            self.planned(replace(where, pods=(where.pods[0], marked)), "x-rs-1")

    def test_a_back_off_is_told_of(self) -> None:
        """A leader that is 20 s old, of a group that was restarted once: 2 × 100 s are to pass."""
        where = self.limited(9, 1, restartBackoff={"baseSeconds": 100, "capSeconds": 900})
        where.pods[1]["metadata"]["creationTimestamp"] = stamp(NOW - timedelta(seconds=20))
        report = self.planned(where, "x-rs-1")
        assert (report.outcome, codes(report)) == (Outcome.DONE, ["restart-backoff"])
        message = report.notices[0].message
        assert "a group that was restarted once has to have lived 200 s" in message
        assert "x-rs-1 is recreated 180 s from now" in message

    def test_a_policy_that_recreates_no_groups(self) -> None:
        where = self.limited(0, restartPolicy=names.RESTART_NONE)
        report = self.planned(where, "x-rs-1")
        assert (report.hash_steps[0].event, report.outcome) == ("x-rs-1 is lost", Outcome.DONE)
        assert codes(report) == ["restart-policy"]
        assert "a worker that is lost is replaced alone" in report.notices[0].message

    def test_a_group_that_has_not_started_under_a_policy_that_waits_for_that(self) -> None:
        where = self.limited(0, restartPolicy=names.RESTART_RECREATE_GROUP_AFTER_START)
        report = self.planned(where, "x-rs-1")
        assert codes(report) == ["restart-policy"]
        assert "with 1 of 3 pods or some Pending" in report.notices[0].message
        whole = replace(where, pods=(*where.pods, worker(1, 1), worker(1, 2)))
        assert self.planned(whole, "x-rs-1").outcome is Outcome.STALLED

    def test_a_group_that_is_none(self) -> None:
        with pytest.raises(DecisionError, match="no group of ns/x that is there to stay is led by x-rs-7"):
            self.planned(scene(2), "x-rs-7")


class TestOtherEdits:
    def test_what_touches_no_pod(self) -> None:
        where = scene()
        assert list(text(planned(where, edited(where)))) == ["ns/x: nothing changes"]
        new = edited(where, groupReplacementPolicy=names.REPLACEMENT_IMMEDIATE)
        assert planned(where, new).verdict is Verdict.NEXT_ROLLOUT

    def test_a_new_set(self) -> None:
        report = planned(Scene(name="x", namespace="ns", lws=None), hash_lws(replicas=2))
        assert next(text(report)) == "ns/x: creates the set with 2 groups"
        assert (report.outcome, report.floor) == (Outcome.DONE, None)
        assert [step.event for step in report.hash_steps] == ["the edit", "new 1 is ready", "new 2 is ready"]

    def test_a_deployment_of_somebody_else(self) -> None:
        where = scene()
        assert where.workload is not None
        where.workload["metadata"]["ownerReferences"][0]["uid"] = "another"
        (notice,) = planned(where, edited(where, replicas=1)).notices
        assert notice.message == "Deployment x belongs to LeaderWorkerSet x, not to this set"

    def test_a_deployment_that_is_being_deleted(self) -> None:
        where = scene(2)
        assert where.workload is not None
        where.workload["metadata"]["deletionTimestamp"] = "2026-10-20T09:59:00Z"
        report = planned(where, edited(where, image="b"))
        assert codes(report) == ["workload-deleting"]
        assert report.hash_steps[0].made == ("new 1", "new 2")


@pytest.mark.parametrize(
    ("order", "ready"),
    [
        ("", ["new 1", "new 2", "new 3"]),
        ("highest-first", ["new 3", "new 2", "new 1"]),
        ("2,1", ["new 2", "new 1", "new 3"]),
        ("together", ["new 1, new 2, new 3"]),
        ("never", []),
    ],
)
def test_the_order_is_by_number(order: str, ready: list[str]) -> None:
    report = planned(Scene(name="x", namespace="ns", lws=None), hash_lws(replicas=3), order)
    told = [s.event.removesuffix(" is ready").removesuffix(" are ready") for s in report.hash_steps[1:]]
    assert told == ready


def test_json() -> None:
    where = scene(2)
    data = json.loads(json.dumps(as_data(planned(where, edited(where, image="b", surge=0, down=1)))))
    assert (data["lowestReady"], data["floor"], data["lowestIfNoneBecomesReady"]) == (1, 1, 1)
    assert data["peak"] == {"groups": 2, "pods": 6, "extraGroups": 0, "extraPods": 0}
    step = data["steps"][0]
    assert (step["made"], step["letIn"], step["waiting"], step["going"]) == (
        ["new 1"],
        [],
        ["new 1"],
        [d["group"] for d in step["down"]],
    )


def example() -> Report:
    """That of the page."""
    where = scene(3)
    return planned(where, edited(where, image="b", surge=0, down=1))


def test_the_example_is_as_the_page_has_it() -> None:
    shown = "\n".join(text(example()))
    assert f"```text\n{shown}\n```" in PAGE.read_text(), shown
